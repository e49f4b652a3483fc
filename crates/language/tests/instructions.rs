//! Instructions to programs: every LIBERO instruction, what pronouns and prepositions mean, and what errors say.

use std::collections::BTreeSet;
use std::fmt::Write;

use insta::assert_snapshot;
use language::instruction::{self, InstructionError, MAX_BYTES, MAX_WORDS};
use language::{Signature, TermStore, TypeId};
use miette::{GraphicalReportHandler, GraphicalTheme, Report};
use proptest::prelude::*;

const LIBERO: &str = include_str!("../fixtures/libero_instructions.json");
const LIBERO_90: &str = include_str!("../fixtures/libero_90_instructions.json");

/// The quoted strings of a JSON text that are not keys; instructions contain no escapes.
fn instructions(json: &'static str) -> Vec<&'static str> {
    let pieces: Vec<&str> = json.split('"').collect();
    let quoted = pieces.iter().skip(1).step_by(2).zip(pieces.iter().skip(2).step_by(2));
    quoted.filter(|(_, after)| !after.starts_with(':')).map(|(text, _)| *text).collect()
}

fn libero() -> BTreeSet<&'static str> {
    instructions(LIBERO).into_iter().chain(instructions(LIBERO_90)).collect()
}

fn plan(text: &str) -> String {
    match instruction::plan(text) {
        Ok(plan) => plan.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

fn rendered(text: &str) -> String {
    let Err(error) = instruction::plan(text) else {
        return format!("no error: {}\n", plan(text));
    };
    let mut out = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(120);
    let report = Report::from(error).with_source_code(text.to_owned());
    match handler.render_report(&mut out, report.as_ref()) {
        Ok(()) => out,
        Err(error) => error.to_string(),
    }
}

#[test]
fn fixtures_are_complete() {
    assert_eq!(instructions(LIBERO).len(), 77);
    assert_eq!(instructions(LIBERO_90).len(), 90);
    assert_eq!(libero().len(), 112);
}

#[test]
fn every_libero_instruction_is_a_well_typed_motion() {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    for text in libero() {
        let program = instruction::program(text, &mut store, &signature).expect(text);
        assert_eq!(language::infer(&mut store, &signature, program).unwrap().body(), TypeId::MOTION, "{text}");
        assert!(!language::evaluate(&mut store, &signature, program).unwrap().is_empty(), "{text}");
        // What the plan prints is the program, in the concrete syntax and as the printer writes it.
        let written = plan(text);
        assert_eq!(language::parse(&mut store, &signature, &written).unwrap().term, program, "{text}");
        assert_eq!(language::print(&store, program), written);
    }
}

/// The review of all distinct instructions, read line by line.
#[test]
fn programs_of_libero() {
    let mut table = String::new();
    for text in libero() {
        writeln!(table, "{text}\n    {}", plan(text)).unwrap();
    }
    assert_snapshot!(table);
}

#[test]
fn programs_beyond_libero() {
    let mut table = String::new();
    for (heading, texts) in BEYOND {
        writeln!(table, "# {heading}").unwrap();
        for text in *texts {
            let program = plan(text);
            assert!(!program.starts_with("error"), "{text}: {program}");
            writeln!(table, "{text}\n    {program}").unwrap();
        }
    }
    assert_snapshot!(table);
}

const BEYOND: &[(&str, &[&str])] = &[
    (
        "pronouns",
        &[
            "turn on the stove, then put the moka pot on it and turn it off",
            "open the drawer, put the bowl in it, and close it",
            "put the laptop in the cabinet and close it",
            "pick up the bowl, open the drawer and put it in the drawer",
            "put the plate on the table and put the bowl on it",
            "close the microwave and put the mug on top",
            "put the knife to the right of the plate and the fork to the left of it",
            "open the cabinet and its top drawer",
            "pick up the bowl and the mug and put the plate between them",
            "put the white mug on the left plate and the red one on the right one",
            "put the left bowl next to the right one",
            "put the plate under the bowl and lift them",
            "open the left door of the cabinet and put the cup inside",
            "close the bottom drawer of the cabinet and put the mug next to it",
        ],
    ),
    (
        "parts",
        &[
            "open the top drawer of the cabinet, put the bowl inside and close the drawer",
            "open the cabinet's top drawer",
            "grasp the cabinet's top drawer's handle",
            "open the wooden cabinet top drawer",
            "grasp the handle of the bottom drawer of the white cabinet",
            "put the mug in the middle of the tray",
            "put the bottle of wine on the rack",
        ],
    ),
    (
        "coordination",
        &[
            "put the bowl on the plate and the mug on the tray",
            "put the soup, the sauce and the butter in the basket",
            "put the red and the blue mug on the plate",
            "put the red and blue mug on the plate",
            "pick up the glass and the red mug",
            "close the top and bottom drawers of the cabinet",
            "pick up both bowls and place them in the tray",
            "pick up both the soup and the sauce and put them in the basket",
            "put two bowls in the sink",
            "stack the red block on the blue block and the green block on the yellow block",
            "grasp and lift the mug",
            "lift the bowl three times and release it",
        ],
    ),
    (
        "attachment",
        &[
            "put the mug on the plate next to the bowl",
            "pick up the mug and place it on the plate next to the bowl",
            "put the bowl from the drawer on the plate",
            "pick up the bowl on the plate on the left",
            "pick up the top left book",
            "put the glass right of the plate",
            "open the microwave, pick up the bowl that is on the plate and put it inside",
            "pick up the can from under the table and put it on top of the box",
            "put the mug in the center of the table",
            "put the mug on the left side of the plate",
            "push the plate to the stove",
            "push the plate left",
            "move to the left of the plate",
            "reach for the mug",
        ],
    ),
    (
        "wording",
        &[
            "  Put the  BOWL on the plate. ",
            "KITCHEN_SCENE3_turn_on_the_stove_and_put_the_moka_pot_on_it_demo",
            "LIVING_ROOM_SCENE4_pick_up_the_salad_dressing_and_put_it_in_the_tray",
            "put bowl on plate",
            "pick up carrot and place in bowl",
            "please grab the red-and-white mug and set it down on the table",
            "turn the stove on",
            "switch the lamp off",
            "shut the fridge",
            "take the mug to the table",
            "drop the can in the bin",
            "push the drawer shut",
            "put the bowl back in the drawer",
        ],
    ),
];

#[test]
fn errors_say_what_is_wrong() {
    let texts = [
        "frobnicate the bowl",
        "wrpie the table",
        "mets le bol sur la table",
        "  .",
        "the bowl on the plate",
        "open the drawer and",
        "put on the plate",
        "put the bowl on",
        "put the bowl",
        "put it on the plate",
        "put the bowl inside",
        "pick up the bowl and put it on it",
        "place them in the tray",
        "put the bowl on the plate the mug",
        "pick up it on the plate",
    ];
    let shown: Vec<String> = texts.iter().map(|text| format!("> {text}\n{}", rendered(text))).collect();
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn long_texts_are_refused() {
    let long = |text: &str| matches!(instruction::plan(text), Err(InstructionError::TooLong { .. }));
    assert!(long(&"a".repeat(MAX_BYTES + 1)));
    assert!(long(&"bowl ".repeat(MAX_WORDS + 1)));
    let doubling = "pick up the bowl".to_owned() + &" and pick up the bowl between it and it".repeat(25);
    assert!(long(&doubling), "a reference may not grow without bound");
}

#[test]
fn the_deepest_texts_are_evaluated() {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    for text in [
        "pick up bowl".to_owned() + &" on bowl".repeat(120),
        "grasp handle".to_owned() + &" of handle".repeat(120),
        "grasp handle".to_owned() + &"'s handle".repeat(120),
        "pick up bowl".to_owned() + &" and bowl".repeat(120),
        "open the drawer".to_owned() + &" and grasp its handle".repeat(60),
    ] {
        let program = instruction::program(&text, &mut store, &signature).expect(&text);
        assert!(language::evaluate(&mut store, &signature, program).is_ok(), "{text}");
    }
}

#[test]
fn a_signature_without_the_primitive_is_named() {
    let mut store = TermStore::new();
    let error = instruction::program("open the drawer", &mut store, &Signature::empty());
    assert_eq!(error, Err(InstructionError::NoPrimitive { name: "open" }));
}

#[test]
fn a_position_reaches_over_two_colours() {
    let program = plan("put the bowl on the left yellow and white plate");
    assert_eq!(program, r#"put "bowl" (on (at "yellow and white plate" left))"#);
}

/// A description with the expression that it stands for.
fn thing() -> impl Strategy<Value = (String, String)> {
    let nouns = ["bowl", "moka pot", "alphabet soup", "cabinet", "apple", "toothbrush", "wine rack", "lemon"];
    let noun = prop::sample::select(nouns.to_vec());
    let colour = prop::sample::select(vec!["", "red ", "small wooden ", "yellow and white "]);
    let position = prop::sample::select(vec!["", "left", "back", "middle"]);
    (noun, colour, position, any::<bool>()).prop_map(|(noun, colour, position, before)| match (position, before) {
        ("", _) => (format!("the {colour}{noun}"), format!("\"{colour}{noun}\"")),
        (_, true) => (format!("the {position} {colour}{noun}"), format!("(at \"{colour}{noun}\" {position})")),
        (_, false) => (format!("the {colour}{noun} at the {position}"), format!("(at \"{colour}{noun}\" {position})")),
    })
}

fn relation() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("on", "on"),
        ("inside", "in"),
        ("under", "under"),
        ("on top of", "on_top_of"),
        ("next to", "next_to"),
        ("to the left of", "left_of"),
        ("on the right of", "right_of"),
        ("in front of", "front_of"),
        ("behind", "back_of"),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_sentences_mean_what_they_were_made_from(
        (object, object_term) in thing(),
        (landmark, landmark_term) in thing(),
        (words, primitive) in relation(),
        verb in prop::sample::select(vec!["put", "place", "push", "pull"]),
    ) {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let goal = format!("({primitive} {landmark_term})");
        for (text, source) in [
            (format!("{verb} {object} {words} {landmark}"), format!("{verb} {object_term} {goal}")),
            (
                format!("pick up {object} and place it {words} {landmark}"),
                format!("seq[pick {object_term}, place {object_term} {goal}]"),
            ),
        ] {
            let program = instruction::program(&text, &mut store, &signature);
            let expected = language::parse(&mut store, &signature, &source).unwrap().term;
            prop_assert_eq!(program, Ok(expected), "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = instruction::plan(&text);
    }

    #[test]
    fn no_order_of_known_words_panics(
        words in prop::collection::vec(prop::sample::select(instruction::lexicon_words().collect::<Vec<_>>()), 0..40),
        separator in prop::sample::select(vec![" ", ", ", "'s ", "_"]),
    ) {
        let _ = instruction::plan(&words.join(separator));
    }

    #[test]
    fn no_order_of_grammar_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "put", "pick", "up", "stack", "turn", "on", "off", "in", "to", "from", "between", "and", "of", "the", "both",
        "it", "them", "its", "one", "two", "left", "back", "top", "middle", "bowl", "drawer", "table", "red", "orange",
        "open", "inside", "side", "'s", ",", "that is", "twice", "reach", "gizmo",
    ]), 0..60)) {
        if let Ok(plan) = instruction::plan(&words.join(" ")) {
            let mut store = TermStore::new();
            let signature = Signature::general(&mut store);
            let program = plan.build(&mut store, &signature).unwrap();
            prop_assert!(!plan.to_string().contains("\"\""), "an object without a name: {}", plan);
            prop_assert!(language::evaluate(&mut store, &signature, program).is_ok());
            let written = language::parse(&mut store, &signature, &plan.to_string()).unwrap();
            prop_assert_eq!(written.term, program);
        }
    }
}
