//! Loss curves: for each model a row of small charts, one for each term. The last outer iteration is drawn strong and earlier
//! ones faint, so that changes between iterations are visible.

use std::collections::BTreeSet;

use super::chart::{Chart, Line, draw};
use super::html::{Html, missing, put};
use super::scale::Kind;
use crate::learning::{Series, TrainingPhase};
use crate::report::Report;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Training</h2>\n");
    if report.training.is_empty() {
        missing(out, "No loss curve was recorded.");
        return;
    }
    put!(
        out,
        "<p class=\"lead\">Solid: training batches. Dashed: held-out episodes. Where a model was trained in several "
    );
    put!(out, "iterations, the last is drawn strong and the earlier ones faint.</p>\n");
    let mut names: Vec<&str> = Vec::new();
    for training in &report.training {
        if !names.contains(&training.name.as_str()) {
            names.push(&training.name);
        }
    }
    let mut figure = 0;
    put!(out, "<div class=\"groups\">\n");
    for name in names {
        let group: Vec<&TrainingPhase> = report.training.iter().filter(|training| training.name == name).collect();
        let rounds: BTreeSet<u32> = group.iter().filter_map(|training| training.iteration).collect();
        let terms = terms_of(&group);
        // Models with few terms share a row.
        let width = ["g1", "g1", "g2"].get(terms.len()).unwrap_or(&"g3");
        put!(out, "<div class=\"", { width }, "\"><h3>", { name }, " <span class=\"unit\">");
        match (rounds.first(), rounds.last()) {
            (Some(first), Some(last)) if first != last => {
                put!(out, "iterations ", { first }, " to ", { last });
            }
            (Some(only), _) => {
                put!(out, "iteration ", { only });
            }
            _ => put!(out, "trained once"),
        }
        put!(out, "</span></h3>\n");
        charts(out, &group, &terms, &mut figure);
        put!(out, "</div>\n");
    }
    put!(out, "</div>\n");
}

fn terms_of<'a>(group: &[&'a TrainingPhase]) -> Vec<&'a str> {
    let mut terms: Vec<&str> = Vec::new();
    for term in group.iter().flat_map(|training| &training.terms) {
        if !terms.contains(&term.name.as_str()) {
            terms.push(&term.name);
        }
    }
    terms
}

fn charts(out: &mut Html, group: &[&TrainingPhase], terms: &[&str], figure: &mut usize) {
    if terms.is_empty() {
        missing(out, "No term of this loss was recorded.");
        return;
    }
    put!(out, "<div class=\"multiples\">\n");
    for term in terms {
        let mut lines = Vec::new();
        for (index, training) in group.iter().enumerate() {
            let last = index + 1 == group.len();
            for one in training.terms.iter().filter(|one| one.name == *term) {
                let (solid, dashed) = if last { ("solid", "dashed") } else { ("faint", "faint dashed") };
                let (training, held_out) = if last { ("training", "held-out") } else { ("", "") };
                lines.push(line(&one.training, training, "c0", solid));
                lines.push(line(&one.held_out, held_out, "c1", dashed));
            }
        }
        let id = format!("fig-loss-{figure}");
        *figure += 1;
        draw(
            out,
            &Chart {
                id: &id,
                title: term,
                unit: "",
                x_label: "step",
                kind: Kind::PerhapsLog,
                label_room: 62.0,
                lines,
                if_empty: "No finite value was recorded.",
            },
        );
    }
    put!(out, "</div>\n");
}

fn line<'a>(series: &Series, label: &'a str, colour: &'static str, look: &'static str) -> Line<'a> {
    let points = series.steps.iter().copied().zip(series.values.iter().copied()).collect();
    Line { label, colour, look, points, dots: false }
}
