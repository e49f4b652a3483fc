//! The figures of all gates for every candidate, admitted or rejected, iteration by iteration. Gates are drawn by name, in
//! the order in which they first occur, so a new gate needs no change here.

use super::code::program;
use super::html::{Html, definitions, missing, put, range};
use super::number::{count, place, short};
use super::scale::Scale;
use crate::figure::Figure;
use crate::programs::{Candidate, Verdict};
use crate::report::Report;

/// One sentence about each of the gates of the paper. A gate without a sentence is drawn like the others.
const ABOUT: [(&str, &str); 3] = [
    ("soundness", "the mean distance D_φ between the motions that the candidate merges; at most ε_t."),
    ("returns", "the mean change of the imagined return; its confidence bound must stay below ε."),
    ("length", "the drop in description length; it must exceed the limit."),
];

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Gates</h2>\n<div id=\"fig-gates\">\n");
    if report.candidates.is_empty() {
        missing(out, "No candidate was proposed, so the gates judged nothing.");
        put!(out, "</div>\n");
        return;
    }
    let gates = gates(&report.candidates);
    put!(out, "<p class=\"lead\">A candidate enters the library only if no gate rejects it: ✓ passed, ✗ rejected, ");
    put!(
        out,
        "○ inactive. Each cell has the measured value, its confidence interval in brackets, and the limit, which is "
    );
    put!(out, "the tick in the small figure. Point at a cell for further numbers.</p>\n");
    definitions(out, ABOUT.into_iter().filter(|(name, _)| gates.contains(name)));
    for gate in &gates {
        if let Some(reason) = silent(&report.candidates, gate) {
            missing(out, &format!("The gate `{gate}` was inactive for all candidates{reason}."));
        }
    }
    let mut rounds: Vec<u32> = report.candidates.iter().map(|candidate| candidate.iteration).collect();
    rounds.sort_unstable();
    rounds.dedup();
    for (index, round) in rounds.iter().enumerate() {
        let own: Vec<&Candidate> = report.candidates.iter().filter(|one| one.iteration == *round).collect();
        let admitted = own.iter().filter(|candidate| candidate.admitted).count();
        put!(out, "<details", { if index + 1 == rounds.len() { " open" } else { "" } }, "><summary><b>t = ", { round });
        put!(out, "</b> <small>", { admitted }, " of ", { own.len() }, " admitted");
        let unseen = report.iterations.iter().find(|one| one.t == *round).and_then(|one| one.not_proposed);
        if let Some(unseen) = unseen {
            put!(out, "; ", { count(unseen) }, " more were not proposed because they save too few nats");
        }
        put!(out, "</small></summary>\n<table class=\"gates\"><thead><tr><th>Candidate</th>");
        for gate in &gates {
            put!(out, "<th>", { gate }, "</th>");
        }
        put!(out, "<th>Decision</th></tr></thead><tbody>\n");
        for candidate in own {
            row(out, candidate, &gates, report);
        }
        put!(out, "</tbody></table></details>\n");
    }
    put!(out, "</div>\n");
}

/// Names of the gates, in the order in which they first occur.
fn gates(candidates: &[Candidate]) -> Vec<&str> {
    let mut gates: Vec<&str> = Vec::new();
    for figure in candidates.iter().flat_map(|candidate| &candidate.figures) {
        if !gates.contains(&figure.gate.as_str()) {
            gates.push(&figure.gate);
        }
    }
    gates
}

/// The reason of a gate that judged nothing in the whole run, after a colon; `None` of one that did judge.
fn silent(candidates: &[Candidate], gate: &str) -> Option<String> {
    let mut figures = candidates.iter().flat_map(|candidate| &candidate.figures).filter(|figure| figure.gate == gate);
    let reason = figures.clone().map(|figure| figure.reason.as_str()).find(|reason| !reason.is_empty());
    let is_silent = figures.all(|figure| figure.verdict == Verdict::Inactive);
    is_silent.then(|| reason.map_or_else(String::new, |reason| format!(": {reason}")))
}

fn row(out: &mut Html, candidate: &Candidate, gates: &[&str], report: &Report) {
    put!(out, "<tr class=\"", { if candidate.admitted { "admitted" } else { "rejected" } }, "\"><td>");
    if let Some(name) = &candidate.name {
        put!(out, "<code class=\"name\">", { name }, "</code> ");
    }
    put!(out, "<code class=\"type\">", { candidate.ty }, "</code><pre>");
    program(out, &candidate.body, &candidate.holes, report);
    put!(out, "</pre><small>", { count(candidate.uses) });
    put!(out, { if candidate.uses == 1 { " place" } else { " places" } }, "</small></td>");
    for gate in gates {
        match candidate.figures.iter().find(|figure| figure.gate == *gate) {
            Some(figure) => cell(out, figure),
            None => put!(out, "<td data-name=\"", { gate }, "\" class=\"idle\">not judged</td>"),
        }
    }
    put!(out, "<td data-name=\"Decision\"><b class=\"verdict\">");
    out.markup(if candidate.admitted { "✓ admitted" } else { "✗ rejected" });
    put!(out, "</b>");
    let mut reasons = candidate.rejections();
    if reasons.is_empty() && !candidate.admitted {
        reasons.push("no gate recorded a reason".to_owned());
    }
    for reason in reasons {
        put!(out, " <small>", { reason }, "</small>");
    }
    put!(out, "</td></tr>\n");
}

/// The cell of one gate: value, interval, limit, and a mark that does not rest on colour.
fn cell(out: &mut Html, figure: &Figure) {
    let (class, sign, word) = match figure.verdict {
        Verdict::Passed => ("passed", "✓", "passed"),
        Verdict::Failed => ("failed", "✗", "rejected"),
        Verdict::Inactive => ("idle", "○", "inactive"),
    };
    put!(out, "<td data-name=\"", { figure.gate }, "\" class=\"", { class }, " detailed\" title=\"", {
        details(figure)
    });
    put!(out, "\"><span class=\"sign\" role=\"img\" aria-label=\"", { word }, "\">", { sign }, "</span> ");
    let Some(value) = figure.value.filter(|value| value.is_finite()) else {
        put!(out, "<span class=\"idle-word\">", { word }, "</span>");
        if !figure.reason.is_empty() {
            put!(out, " <small>", { figure.reason }, "</small>");
        }
        put!(out, "</td>");
        return;
    };
    put!(out, "<span class=\"figure\">", { short(value) }, "</span>");
    if !figure.unit.is_empty() {
        put!(out, " ", { figure.unit });
    }
    if let Some((low, high)) = interval(figure, value) {
        range(out, low, high);
    }
    if let Some(limit) = figure.limit.filter(|limit| limit.is_finite()) {
        put!(out, " <small class=\"limit-word\">limit ", { short(limit) }, "</small>");
        bullet(out, figure, value, limit);
    }
    put!(out, "</td>");
}

/// The interval of a value; one with a single end reaches from the value to that end.
fn interval(figure: &Figure, value: f64) -> Option<(f64, f64)> {
    let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
    match (finite(figure.low), finite(figure.high)) {
        (None, None) => None,
        (low, high) => Some((low.unwrap_or(value), high.unwrap_or(value))),
    }
}

/// Everything that the gate recorded, one item a line.
fn details(figure: &Figure) -> String {
    let mut lines = Vec::new();
    if !figure.reason.is_empty() {
        lines.push(figure.reason.clone());
    }
    lines.extend(figure.details.iter().map(|(name, number)| format!("{}: {}", name.replace('_', " "), plain(*number))));
    lines.join("\n")
}

/// Counts without decimals, other numbers with about three digits.
fn plain(number: f64) -> String {
    let is_count = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
    if is_count { count(number as u64) } else { short(number) }
}

/// The value as a dot, the interval as a line, the limit as a tick.
fn bullet(out: &mut Html, figure: &Figure, value: f64, limit: f64) {
    let whiskers = interval(figure, value);
    let (low, high) = whiskers.unwrap_or((value, value));
    let ends = [low, high, value, limit];
    let most = ends.iter().map(|end| end.abs()).fold(0.0, f64::max).min(1e150) * 1.15;
    let lowest = ends.iter().copied().fold(0.0, f64::min).max(-1e150) * 1.15;
    let x = Scale::between(lowest, most, 4.0, 116.0);
    put!(
        out,
        "<svg class=\"bullet\" aria-hidden=\"true\" viewBox=\"0 0 120 14\"><path class=\"grid\" d=\"M4 7H116\"/>"
    );
    put!(out, "<path class=\"limit\" d=\"M", { place(x.place(limit)) }, " 1v12\"/>");
    if whiskers.is_some() {
        put!(out, "<path class=\"whisker\" d=\"M", { place(x.place(low)) }, " 7H", { place(x.place(high)) }, "\"/>");
    }
    put!(out, "<circle class=\"dot\" cx=\"", { place(x.place(value)) }, "\" cy=\"7\" r=\"3.5\"/></svg>");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn figure(gate: &str, verdict: Verdict) -> Figure {
        Figure {
            verdict,
            value: Some(0.4),
            high: Some(0.5),
            limit: Some(0.25),
            unit: "nats".to_owned(),
            details: BTreeMap::from([("pairs".to_owned(), 1200.0), ("worst_pair".to_owned(), 0.9)]),
            ..Figure::inactive(gate, "too far")
        }
    }

    fn candidate(figures: Vec<Figure>) -> Candidate {
        let admitted = !figures.iter().any(Figure::rejects);
        let (name, body, ty) = (None, "seq[]".to_owned(), "Motion".to_owned());
        Candidate { iteration: 1, name, body, holes: Vec::new(), ty, uses: 1, figures, admitted }
    }

    #[test]
    fn gates_are_columns_in_the_order_of_their_first_figure() {
        let first = candidate(vec![figure("length", Verdict::Passed)]);
        let second = candidate(vec![figure("novelty", Verdict::Passed), figure("length", Verdict::Passed)]);
        assert_eq!(gates(&[first, second]), ["length", "novelty"]);
    }

    #[test]
    fn a_cell_has_value_interval_limit_unit_and_details() {
        let mut out = Html::default();
        cell(&mut out, &figure("novelty", Verdict::Failed));
        let text = out.into_string();
        for part in
            ["data-name=\"novelty\"", "aria-label=\"rejected\"", "0.400</span> nats", "[0.400, 0.500]", "limit 0.250"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("title=\"too far\npairs: 1200\nworst pair: 0.900\""), "{text}");
    }

    #[test]
    fn a_row_says_why_it_was_rejected_and_which_gate_did_not_judge() {
        let mut out = Html::default();
        row(
            &mut out,
            &candidate(vec![figure("length", Verdict::Failed)]),
            &["length", "novelty"],
            &crate::report::empty(),
        );
        let text = out.into_string();
        assert!(
            text.contains("✗ rejected</b> <small>length: too far</small>") && text.contains("not judged"),
            "{text}"
        );
    }

    #[test]
    fn a_gate_that_never_judged_says_so_once() {
        let silent_one = candidate(vec![Figure::inactive("returns", "the data has no reward")]);
        let both = [silent_one.clone(), silent_one.clone()];
        assert_eq!(silent(&both, "returns").as_deref(), Some(": the data has no reward"));
        let other = candidate(vec![figure("returns", Verdict::Passed)]);
        assert_eq!(silent(&[silent_one, other], "returns"), None);
    }
}
