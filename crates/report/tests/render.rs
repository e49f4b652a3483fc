//! The page as text: the same bytes each time, within its size, and nothing of the data is ever markup.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod page_text;
mod sample;

use std::sync::LazyLock;

use page_text::{Piece, pieces};
use proptest::prelude::*;
use report::{Arm, DatasetInfo, Figure, Report, ReportError, render};
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
        "No projection of segments",
        "The library is empty",
        "No candidate was proposed",
        "Nothing was measured on held-out episodes",
        "No loss curve was recorded",
        "The run recorded no notes",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// The text of the element with an identifier, up to the next element with one.
fn part<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let rest = &page[start + 4..];
    &rest[..rest.find(" id=\"").unwrap_or(rest.len())]
}

#[test]
fn a_new_gate_is_a_column_without_any_change_of_the_page() {
    let mut report = sample::sample();
    let reason = "the candidate repeats an entry";
    for candidate in &mut report.candidates {
        candidate.figures.push(Figure::inactive("novelty", "switched off"));
    }
    let last = report.candidates.last_mut().unwrap();
    *last.figures.last_mut().unwrap() = Figure {
        verdict: report::Verdict::Failed,
        value: Some(0.25),
        unit: "shares".into(),
        ..Figure::inactive("novelty", reason)
    };
    assert!(report.problems().is_empty(), "{:?}", report.problems());
    let page = render(&report);
    let gates = part(&page, "fig-gates");
    assert_eq!(gates.matches("<th>novelty</th>").count(), 3, "one for each iteration");
    assert!(gates.contains(&format!("<small>novelty: {reason}</small>")) && gates.contains("0.250</span> shares"));
}

#[test]
fn every_rejected_candidate_says_why() {
    let report = sample::sample();
    let page = render(&report);
    let rejected: Vec<_> = report.candidates.iter().filter(|candidate| !candidate.admitted).collect();
    assert!(rejected.len() >= 5);
    for candidate in rejected {
        let reasons = candidate.rejections();
        assert!(!reasons.is_empty() && reasons.iter().all(|reason| page.contains(&format!("<small>{reason}</small>"))));
    }
}

#[test]
fn finding_9_the_head_shows_the_same_policy_as_the_tables() {
    let mut report = sample::sample();
    // Those of iterations were trained with an earlier library, and are not those of the head.
    for policy in report.iterations.iter_mut().filter_map(|one| one.policy.as_mut()) {
        (policy.token_accuracy, policy.exact_match, policy.velocity_error) = (0.987, 0.986, 0.985);
    }
    for (at, metric) in report.metrics.iter_mut().enumerate() {
        for (place, (_, estimate)) in metric.values.iter_mut().enumerate() {
            estimate.mean = 0.101 + 0.01 * at as f64 + 0.001 * place as f64;
        }
    }
    let page = render(&report);
    let (summary, tiles) = (part(&page, "summary"), part(&page, "tiles"));
    let headlines: Vec<_> = report.metrics.iter().filter(|metric| metric.headline).collect();
    assert_eq!(headlines.len(), 3);
    for metric in headlines {
        for (arm, estimate) in &metric.values {
            assert!(summary.contains(&format!("{:.3} ({arm})", estimate.mean)), "{arm} of {}", metric.name);
            assert!(tiles.contains(&format!("{:.3}", estimate.mean)) && tiles.contains(arm.as_str()));
        }
    }
    for earlier in ["0.987", "0.986", "0.985"] {
        assert!(!summary.contains(earlier) && !tiles.contains(earlier), "{earlier}");
        assert!(page.contains(earlier), "the section about iterations has it");
    }
}

#[test]
fn no_iteration_claims_a_library_that_its_policy_did_not_have() {
    let page = render(&sample::sample());
    let start = page.find("aria-label=\"Figures of each iteration\"").unwrap();
    let table = &page[start..start + page[start..].find("</table>").unwrap()];
    let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
    // Before the loop there is no policy; that of t = 1 was trained with the empty library.
    assert!(
        rows[0].starts_with("<th>0</th>") && rows[0].ends_with("<td>–</td><td>–</td><td>–</td></tr>"),
        "{}",
        rows[0]
    );
    assert!(rows[1].starts_with("<th>1</th>") && rows[1].contains("<td>3</td><td>0</td>"), "{}", rows[1]);
}

#[test]
fn columns_are_the_arms_that_a_group_has() {
    let mut report = sample::sample();
    report.arms.push(Arm { name: "unused".into(), description: "Nothing has it.".into() });
    let page = render(&report);
    let skills = part(&page, "fig-skill-metrics");
    assert!(skills.contains("<th>our classes</th><th>actions of the same segments</th><th>raw windows</th>"));
    assert!(!skills.contains("with library") && !page.contains("Nothing has it."));
    let policy = part(&page, "fig-metrics");
    assert!(policy.contains("<th>with library</th><th>without library</th><th>no programs</th>"));
    assert_eq!(policy.matches(">oracle</span></th>").count(), 2);
    assert!(!policy.contains("raw windows"));
}

#[test]
fn episodes_are_named_with_their_dataset_if_there_are_several() {
    let mut report = sample::sample();
    let name = |report: &Report, at: usize| report.run.datasets[at].name.clone();
    assert!(!part(&render(&report), "fig-timelines").contains(&name(&report, 0)));
    let other = DatasetInfo { name: "demonstrations/libero_object".into(), ..report.run.datasets[0].clone() };
    report.run.datasets.push(other);
    report.episodes[3].dataset = 1;
    report.skills[0].examples[0].dataset = 1;
    report.map.as_mut().unwrap().dataset[5] = 1;
    let page = render(&report);
    assert!(page.contains("<small>demonstrations/libero_object </small><b>3</b>"));
    assert!(page.contains("<figcaption>demonstrations/libero_object episode "));
    assert!(page.contains("<title>demonstrations/libero_object episode "));
    assert!(page.contains("<title>demonstrations/libero_goal episode "));
}

#[test]
fn the_library_names_its_skills_and_kinds_and_compares_held_out_lengths() {
    let page = render(&sample::sample());
    assert!(page.contains("<a class=\"primitive\" href=\"#skill-8\" title=\"skill_8 · open\">skill_8</a>"));
    assert!(
        part(&page, "fig-kinds").contains("<dt>several skills</dt><dd>5</dd></div><div><dt>constant</dt><dd>1</dd>")
    );
    assert!(
        part(&page, "fig-held-out-length")
            .contains("981 nats with the library and 2612 without it: 2.66 times shorter")
    );
    assert!(part(&page, "labels").contains("no labels were used"));
    let kernel = part(&page, "fig-kernel");
    assert!(
        kernel.contains("ρ = 0.934 over 20\u{202f}000 held-out pairs") && kernel.contains("8 rollouts"),
        "{kernel}"
    );
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
    report.candidates[0].admitted = !report.candidates[0].admitted;
    let twice = report.candidates[1].figures[0].clone();
    report.candidates[1].figures.push(twice);
    report.metrics[0].values[0].0 = "elsewhere".into();
    report.episodes[1].dataset = 7;
    let problems = report.problems();
    assert_eq!(problems.len(), 10, "{problems:#?}");
    assert!(render(&report).contains("This report contradicts itself"));
}

#[test]
fn reports_come_back_from_json_and_other_versions_are_rejected() {
    let mut report = sample::sample();
    let text = report.to_json().unwrap();
    assert_eq!(Report::from_json(&text).unwrap(), report);
    // Numbers that JSON cannot hold come back as missing, and the page is the same.
    report.training[0].terms[0].training.values[5] = f64::INFINITY;
    report.iterations[1].programs_nats = f64::NAN;
    report.iterations[1].held_out_nats = Some(f64::NAN);
    report.candidates[0].figures[1].details.insert("worst".into(), f64::NAN);
    report.metrics[0].values[0].1.mean = f64::NAN;
    let again = Report::from_json(&report.to_json().unwrap()).unwrap();
    assert_eq!(render(&again), render(&report));

    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["surprise"] = json!(1);
    assert!(matches!(Report::from_json(&value.to_string()), Err(ReportError::Json(_))));
    value["schema"] = json!(2);
    assert!(matches!(Report::from_json(&value.to_string()), Err(ReportError::Schema { found: 2 })));
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
