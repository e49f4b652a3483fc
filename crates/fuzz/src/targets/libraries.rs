//! Library files, as JSON and as text: whatever they hold is refused or comes back the same.

use compression::{Library, LibraryEntry, LibraryError};
use language::{TermId, parse};

use super::reading::generated;
use super::{Outcome, Target, Verdict, World, ensure};
use crate::inputs::Source;
use crate::random::Random;

/// Both forms of libraries.
pub(super) fn library() -> Target {
    let (world, generator) = (World::without_library(), World::without_library());
    let mut words = world.constants();
    // As many of the structural words as of all constants, or else soup is made of constants only.
    for _ in 0..4 {
        words.extend(
            [
                "library 1, next fn_3\n",
                "library 2, next fn_0",
                "fn_0",
                "fn_1/1",
                " : Lang -> Motion",
                " : ",
                "[t 1, 2 uses, 3.5 nats]",
                "[share 0.1 in 0.05 to 0.2]",
                "[inf nats]",
                " = ",
                "\n",
                "# c\n",
                "seq[fn_0, fn_1]",
                "\\x0. pick x0",
                "{\"version\":1,\"next\":0,\"abstractions\":[",
                "]}",
                "{\"name\":\"fn_0\",",
                "\"arity\":1,",
                "\"type\":\"Motion\",",
                "\"iteration\":1,",
                "\"gain\":1e400,",
                "\"uses\":18446744073709551616,",
                "\"posterior\":null,",
                "\"body\":\"seq[]\"}",
                ",",
                "\\n",
                "\\u0000",
                "fn_999999999",
                "fn_18446744073709551615",
            ]
            .map(String::from),
        );
    }
    Target {
        name: "library",
        cost: 10,
        source: Source {
            words,
            seeds: seeds(),
            nests: &[
                ("[", "", "]"),
                ("{\"library\":", "1", "}"),
                ("fn_0 = (", "seq[]", ")"),
                ("fn_0 = \\x.", "x", "\n"),
                ("fn_0 = seq[], ", "seq[]", "\n"),
                ("a = seq[]\n", "c = a", "\ne = f"),
                ("fn_0 [", "t 1", "] = seq[]"),
                ("{\"version\":1,\"next\":0,\"abstractions\":[{\"name\":\"", "fn_", "\"}]}"),
            ],
            grammar: Box::new(move |random| written(&generator, random)),
        },
        check: Box::new(move |text| check_library(&world, text)),
    }
}

fn seeds() -> Vec<String> {
    [
        "library 1, next fn_2\nfn_0/2 : Lang -> Pose -> Motion [t 1, 12 uses, 34.5 nats] = \\x0. \\x1. seq[pick x0, place x0 x1]\nfn_1/0 : Motion [t 2, 3 uses, 4.0 nats, share 0.1000 in 0.0500 to 0.2000] = fn_0 \"milk\" (in \"basket\")\n",
        "# mine\n\ngrab = \\x. seq[reach (on x), grasp x]\ntwice = \\m. seq[m, m]\nmore = \\x. twice (grab x)\n",
        "late = early\nearly = open \"drawer = [top]\"\n",
        r#"{"version":1,"next":1,"abstractions":[{"name":"fn_0","arity":1,"type":"Lang -> Motion","iteration":1,"gain":27.44,"uses":14,"posterior":{"mean":0.1,"low":0.05,"high":0.2},"body":"\\x0. seq[pick x0, place x0 (in \"basket\")]"}]}"#,
        r#"{"version":1,"next":7,"abstractions":[{"name":"fn_6","arity":0,"type":"Motion","iteration":3,"gain":-0.0,"uses":0,"body":"seq[ # first\n  open \"a # b\",\n  close \"\\u{e9}\\n\"]"}]}"#,
        r#"{"version":1,"next":0,"abstractions":[]}"#,
        "",
    ]
    .map(String::from)
    .to_vec()
}

/// A library whose entries call each other, in one of its forms.
fn written(world: &World, random: &mut Random) -> String {
    let doubling = random.once_in(20);
    let count = if doubling { random.magnitude(40) } else { random.below(5) };
    let mut text = String::new();
    for at in 0..count {
        let motion = generated(world, random).replace('\n', " ");
        let earlier = at.checked_sub(1).map_or("seq[]".to_owned(), |before| format!("fn_{before}"));
        let body = match random.below(5) {
            _ if doubling => format!("seq[{earlier}, {earlier}]"),
            0 => format!("seq[{earlier}, {motion}]"),
            1 => r"\x0. \x1. seq[pick x0, place x0 x1]".to_owned(),
            2 => format!(r"\x0. seq[x0, {motion}]"),
            3 => format!("fn_{}", random.below(6)),
            _ => motion,
        };
        text.push_str(&format!("fn_{at} [t {}, {} uses, {}.25 nats] = {body}\n", at + 1, at * 7, random.below(100)));
    }
    let Ok(library) = Library::from_text(&text, &world.store, &world.signature) else { return text };
    match random.below(4) {
        0 => text,
        1 => library.to_text(),
        2 => serde_json::to_string_pretty(&library).unwrap_or_default(),
        // Line breaks within bodies, and sometimes within what they quote.
        _ => serde_json::to_string(&library)
            .unwrap_or_default()
            .replace(", ", random.word(&[", ", ",\\n  ", ", # c\\n"])),
    }
}

fn check_library(world: &World, text: &str) -> Verdict {
    let read = [
        Library::from_json(text, &world.store, &world.signature),
        Library::from_text(text, &world.store, &world.signature),
    ];
    let mut outcome = Outcome::Refused;
    for library in read {
        match library {
            Ok(library) => {
                outcome = Outcome::Accepted;
                comes_back(world, &library)?;
            }
            Err(error) => explained(&error)?,
        }
    }
    Ok(outcome)
}

fn explained(error: &LibraryError) -> Result<(), String> {
    let messages: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    ensure(!messages.is_empty() && messages.iter().all(|message| !message.is_empty()), || {
        "an error says nothing".into()
    })
}

/// JSON gives the very library, text all but digits that it rounds off.
fn comes_back(world: &World, library: &Library) -> Result<(), String> {
    let json = serde_json::to_string(library).map_err(|error| format!("it cannot be written: {error}"))?;
    let again =
        Library::from_json(&json, &world.store, &world.signature).map_err(|error| format!("{error}: {json}"))?;
    ensure(again == *library, || format!("JSON is not read back as the same library: {json}"))?;
    let text = library.to_text();
    let again =
        Library::from_text(&text, &world.store, &world.signature).map_err(|error| format!("{error}: {text}"))?;
    ensure(again.next() == library.next() && again.len() == library.len(), || format!("entries are lost: {text}"))?;
    ensure(terms(world, &again)? == terms(world, library)?, || format!("a body is another term: {text}"))?;
    for (one, other) in library.entries().iter().zip(again.entries()) {
        let said = |entry: &LibraryEntry| {
            let LibraryEntry { name, arity, principal_type, iteration, uses, .. } = entry.clone();
            (name, arity, principal_type, iteration, uses, entry.posterior.is_some())
        };
        ensure(said(one) == said(other), || format!("{one:?} is read back as {other:?}"))?;
    }
    ensure(again.to_text() == text, || format!("what is read back is written in another way: {text}"))
}

/// The bodies as terms of one store.
fn terms(world: &World, library: &Library) -> Result<Vec<TermId>, String> {
    let mut store = world.store.clone();
    let signature = library.define(&mut store, &world.signature).map_err(|error| error.to_string())?;
    let bodies = library.entries().iter();
    bodies
        .map(|entry| parse(&mut store, &signature, &entry.body).map(|parsed| parsed.term))
        .collect::<Result<_, _>>()
        .map_err(|report| format!("a body that was defined is refused: {report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_good() {
        let target = library();
        for seed in &target.source.seeds {
            assert_eq!((target.check)(seed), Ok(Outcome::Accepted), "{seed}");
        }
    }
}
