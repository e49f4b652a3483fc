//! The page as text: the same bytes each time, within its size, and nothing of the data is ever markup.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod page_text;
mod sample;

use std::sync::LazyLock;

use page_text::{Piece, pieces};
use proptest::prelude::*;
use report::{Report, ReportError, render};
use serde_json::{Value, json};

#[test]
fn the_same_report_gives_the_same_bytes_and_a_page_of_modest_size() {
    let page = render(&sample::sample());
    assert_eq!(page, render(&sample::sample()));
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
    assert!(sample::sample().problems().is_empty(), "{:?}", sample::sample().problems());
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let page = render(&sample::sample());
    for piece in pieces(&page).unwrap() {
        let Piece::Tag { name, attributes } = piece else { continue };
        assert!(!["iframe", "object", "embed", "base"].contains(&name), "{name}");
        for (attribute, value) in attributes {
            match attribute {
                "href" => assert!(value.starts_with('#') || value == "data:,", "{value}"),
                "src" => assert!(value.starts_with("data:image/"), "{value}"),
                _ => assert!(!attribute.starts_with("on"), "{attribute}"),
            }
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import") && !page.contains("fetch("));
}

#[test]
fn ids_are_unique_and_links_lead_somewhere() {
    for report in [sample::sample(), sample::bare()] {
        let page = render(&report);
        let mut ids = Vec::new();
        let mut links = Vec::new();
        for piece in pieces(&page).unwrap() {
            let Piece::Tag { attributes, .. } = piece else { continue };
            for (attribute, value) in attributes {
                match attribute {
                    "id" => ids.push(value),
                    "href" if value.starts_with('#') => links.push(&value[1..]),
                    _ => {}
                }
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(links.iter().all(|link| ids.binary_search(link).is_ok()));
    }
}

#[test]
fn what_is_missing_is_said() {
    let page = render(&sample::bare());
    for words in [
        "No iteration was finished",
        "The data has no reward",
        "The data has no pictures",
        "The data has no true phases",
        "No projection of fragments",
        "The library is empty",
        "No candidate was proposed",
        "Nothing was measured on held-out episodes",
        "No loss curve was recorded",
        "The run left no notes",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn contradictions_are_listed_and_do_not_stop_the_page() {
    let mut report = sample::sample();
    let map = report.map.as_mut().unwrap();
    map.y.truncate(7);
    map.skill[0] = 99;
    report.episodes[0].skills[0].end = 9999;
    let name = report.library[2].name.clone();
    report.library[0].calls = vec!["nowhere".into(), name];
    report.training[0].terms[0].training.values.truncate(3);
    report.iterations.reverse();
    let problems = report.problems();
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert!(render(&report).contains("This report contradicts itself"));
}

#[test]
fn reports_come_back_from_json_and_others_are_refused() {
    let mut report = sample::sample();
    let text = report.to_json().unwrap();
    assert_eq!(Report::from_json(&text).unwrap(), report);
    // Numbers that JSON cannot hold come back as missing, and the page is the same.
    report.training[0].terms[0].training.values[5] = f64::INFINITY;
    report.iterations[1].programs_nats = f64::NAN;
    report.iterations[1].nmi_task = Some(f64::NAN);
    let again = Report::from_json(&report.to_json().unwrap()).unwrap();
    assert_eq!(render(&again), render(&report));

    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["surprise"] = json!(1);
    assert!(matches!(Report::from_json(&value.to_string()), Err(ReportError::Json(_))));
    value["schema"] = json!(3);
    assert!(matches!(Report::from_json(&value.to_string()), Err(ReportError::Schema { found: 3 })));
    assert!(matches!(Report::from_json("[]"), Err(ReportError::Json(_))));
}

/// A report in which every list is short, so that many variations can be drawn.
fn small() -> Value {
    fn shorten(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.truncate(3);
                items.iter_mut().for_each(shorten);
            }
            Value::Object(fields) => fields.values_mut().for_each(shorten),
            _ => {}
        }
    }
    static SMALL: LazyLock<Value> = LazyLock::new(|| {
        let mut value = serde_json::to_value(sample::sample()).unwrap();
        shorten(&mut value);
        value
    });
    SMALL.clone()
}

/// Puts something else in the place of every text or number; the names of variants and the bytes of pictures stay.
fn replace(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, change)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if !["schema", "better", "verdict", "pictures"].contains(&name.as_str()) {
                    replace(field, change);
                }
            }
        }
        _ => change(value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_the_data_becomes_markup(texts in prop::collection::vec("[<>&\"'/=a!\\-\\]\\[ \\\\\u{0}\u{202e}é]{0,12}|\\PC{0,8}|</script>|<!--|--><b>", 1..9)) {
        let mut value = small();
        let mut next = 0;
        replace(&mut value, &mut |field| {
            if field.is_string() {
                *field = json!(texts[next % texts.len()]);
                next += 1;
            }
        });
        let report = Report::from_json(&value.to_string()).unwrap();
        let page = render(&report);
        let pieces = pieces(&page);
        prop_assert!(pieces.is_ok(), "{:?}", pieces);
    }

    #[test]
    fn no_number_breaks_the_page(numbers in prop::collection::vec(prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::MAX), Just(0.0)], 1..9)) {
        let mut value = small();
        let mut next = 0;
        replace(&mut value, &mut |field| {
            if field.is_f64() {
                *field = json!(numbers[next % numbers.len()]);
                next += 1;
            } else if field.is_u64() && next % 5 == 3 {
                *field = json!(u32::MAX);
            }
        });
        let report = Report::from_json(&value.to_string()).unwrap();
        let page = render(&report);
        prop_assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains("inf "));
        prop_assert!(pieces(&page).is_ok());
    }
}
