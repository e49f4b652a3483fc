//! What a person sees: source and rendered errors together.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use language::{Report, Signature, TermStore, TypeId, parse_scheme, read};
use miette::{GraphicalReportHandler, GraphicalTheme};

/// The source, then its errors as the command line draws them.
fn rendered(source: &str) -> String {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    match read(&mut store, &signature, source, Some(TypeId::MOTION)) {
        Ok(typed) => format!("{source}\n\nno errors: {}\n", store.types().show_scheme(typed.scheme)),
        Err(report) => format!("{source}\n\n{}", drawn(&report)),
    }
}

fn drawn(report: &Report) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    handler.render_report(&mut text, report).unwrap();
    text.lines().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_wrong_argument_points_at_the_argument_and_at_the_function() {
    insta::assert_snapshot!(rendered(r#"seq[pick "bowl", place "bowl" "basket"]"#));
}

#[test]
fn several_type_errors_are_shown_at_once() {
    insta::assert_snapshot!(rendered(
        "seq[\n  pick left,\n  repeat(open \"drawer\", \"three\"),\n  branch(3, reach top, seq[])\n]"
    ));
}

#[test]
fn a_function_without_its_arguments_says_what_is_missing() {
    insta::assert_snapshot!(rendered(r#"seq[place "bowl", open "drawer"]"#));
}

#[test]
fn two_motions_without_a_comma_are_too_many_arguments() {
    insta::assert_snapshot!(rendered(r#"seq[pick "bowl" open "drawer"]"#));
}

#[test]
fn self_application_is_an_infinite_type() {
    insta::assert_snapshot!(rendered(r"(\x. x x) (\y. y)"));
}

#[test]
fn an_annotation_that_disagrees_is_shown_at_the_binder() {
    insta::assert_snapshot!(rendered(r#"repeat((\f:Lang -> Motion. f "a") (\x:Pose. reach x), 2)"#));
}

#[test]
fn unknown_names_are_suggested() {
    insta::assert_snapshot!(rendered("seq[pik \"bowl\", place \"bowl\" (in_ \"basket\"), fly]"));
}

#[test]
fn brackets_that_do_not_match_are_shown_with_their_partner() {
    insta::assert_snapshot!(rendered("seq[pick (at \"bowl\" left, open \"drawer\"]\n"));
}

#[test]
fn bad_literals_are_shown() {
    insta::assert_snapshot!(rendered(
        "seq[goto pose[1, 2, x], move twist[0,0,0,0,0,1e999], repeat(seq[], -1), pick \"a\\q\", open \"b]"
    ));
}

#[test]
fn a_free_variable_is_shown() {
    insta::assert_snapshot!(rendered("seq[pick $2, \\x. pick x]"));
}

#[test]
fn a_bad_scheme_is_shown() {
    let mut store = TermStore::new();
    let source = "forall a. a -> Langg -> b";
    let report = parse_scheme(store.types_mut(), source).unwrap_err();
    insta::assert_snapshot!(format!("{source}\n\n{}", drawn(&report)));
    let source = "forall a. a -> b";
    let report = parse_scheme(store.types_mut(), source).unwrap_err();
    insta::assert_snapshot!(format!("{source}\n\n{}", drawn(&report)));
}
