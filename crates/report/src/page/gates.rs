//! What the three gates measured for every candidate, admitted or not, iteration by iteration.

use super::code::program;
use super::html::{Html, missing, put};
use super::number::{count, place, short};
use super::scale::Scale;
use crate::programs::{Candidate, Entry, Gate, Verdict};
use crate::report::Report;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Gates</h2>\n<div id=\"fig-gates\">\n");
    if report.candidates.is_empty() {
        missing(out, "No candidate was proposed, so the gates had nothing to judge.");
        put!(out, "</div>\n");
        return;
    }
    put!(
        out,
        "<p class=\"lead\">A program enters the library only if three gates let it through: the motions that it merges "
    );
    put!(
        out,
        "are equivalent (D<sub>φ</sub> ≤ ε<sub>t</sub>), returns change by less than ε (smaller where even standing still changes little), and "
    );
    put!(out, "everything gets shorter. In the small figures the tick is the limit.</p>\n");
    if report.candidates.iter().all(|candidate| candidate.returns.verdict == Verdict::Inactive) {
        let reward = report.run.datasets.iter().any(|dataset| dataset.reward);
        let why = if reward {
            "The return gate was inactive in this run."
        } else {
            "The return gate was inactive: the data has no reward."
        };
        missing(out, why);
    }
    let mut rounds: Vec<u32> = report.candidates.iter().map(|candidate| candidate.iteration).collect();
    rounds.sort_unstable();
    rounds.dedup();
    for (index, round) in rounds.iter().enumerate() {
        let own: Vec<&Candidate> = report.candidates.iter().filter(|one| one.iteration == *round).collect();
        let admitted = own.iter().filter(|candidate| candidate.admitted).count();
        put!(out, "<details", { if index + 1 == rounds.len() { " open" } else { "" } }, "><summary><b>t = ", { round });
        put!(out, "</b> <small>", { admitted }, " of ", { own.len() }, " admitted</small></summary>\n");
        put!(out, "<table class=\"gates\"><thead><tr><th>Candidate</th><th>Equivalence D<sub>φ</sub></th>");
        put!(out, "<th>Change of return</th><th>MDL gain, nats</th><th>Verdict</th></tr></thead><tbody>\n");
        for candidate in own {
            row(out, candidate, &report.library);
        }
        put!(out, "</tbody></table></details>\n");
    }
    put!(out, "</div>\n");
}

fn row(out: &mut Html, candidate: &Candidate, library: &[Entry]) {
    put!(out, "<tr class=\"", { if candidate.admitted { "admitted" } else { "refused" } }, "\"><td>");
    if let Some(name) = &candidate.name {
        put!(out, "<code class=\"name\">", { name }, "</code> ");
    }
    put!(out, "<code class=\"type\">", { candidate.ty }, "</code><pre>");
    program(out, &candidate.body, &candidate.holes, library);
    put!(out, "</pre><small>", { count(candidate.uses) }, " places</small></td>");
    gate(out, "Equivalence", &candidate.soundness, "≤ ");
    gate(out, "Change of return", &candidate.returns, "< ");
    gate(out, "MDL gain, nats", &candidate.gain, "> ");
    put!(out, "<td data-name=\"Verdict\"><b class=\"verdict\">");
    out.markup(if candidate.admitted { "✓ admitted" } else { "✗ refused" });
    put!(out, "</b>");
    if !candidate.reason.is_empty() {
        put!(out, " <small>", { candidate.reason }, "</small>");
    } else if !candidate.admitted {
        put!(out, " <small>no reason was recorded</small>");
    }
    put!(out, "</td></tr>\n");
}

/// One gate's cell: the figure, its interval, its limit, and a mark that does not rest on colour.
fn gate(out: &mut Html, name: &'static str, gate: &Gate, relation: &'static str) {
    let (class, sign, word) = match gate.verdict {
        Verdict::Passed => ("passed", "✓", "passed"),
        Verdict::Failed => ("failed", "✗", "failed"),
        Verdict::Inactive => ("idle", "○", "inactive"),
        Verdict::NotReached => ("idle", "·", "not reached"),
    };
    put!(
        out,
        "<td data-name=\"",
        { name },
        "\" class=\"",
        { class },
        "\"><span class=\"sign\" role=\"img\" aria-label=\""
    );
    put!(out, { word }, "\">", { sign }, "</span> ");
    let Some(value) = gate.value.filter(|value| value.is_finite()) else {
        put!(out, "<span class=\"idle-word\">", { word }, "</span></td>");
        return;
    };
    put!(out, "<span class=\"figure\">", { short(value) }, "</span>");
    if let (Some(low), Some(high)) = (gate.low, gate.high) {
        put!(out, " <small>[", { short(low) }, ", ", { short(high) }, "]</small>");
    }
    if let Some(limit) = gate.limit {
        put!(out, " <small class=\"limit-word\">", { relation }, { short(limit) }, "</small>");
        bullet(out, gate, value, limit);
    }
    put!(out, "</td>");
}

/// The value as a dot, the interval as a line, the limit as a tick.
fn bullet(out: &mut Html, gate: &Gate, value: f64, limit: f64) {
    let ends = [gate.low.unwrap_or(value), gate.high.unwrap_or(value), value, limit];
    let most = ends.iter().map(|end| end.abs()).filter(|end| end.is_finite()).fold(0.0, f64::max).min(1e150) * 1.15;
    let lowest = ends.iter().copied().filter(|end| end.is_finite()).fold(0.0, f64::min).max(-1e150) * 1.15;
    let x = Scale::between(lowest, most, 4.0, 116.0);
    put!(
        out,
        "<svg class=\"bullet\" aria-hidden=\"true\" viewBox=\"0 0 120 14\"><path class=\"grid\" d=\"M4 7H116\"/>"
    );
    put!(out, "<path class=\"limit\" d=\"M", { place(x.place(limit)) }, " 1v12\"/>");
    if let (Some(low), Some(high)) = (gate.low, gate.high) {
        put!(out, "<path class=\"whisker\" d=\"M", { place(x.place(low)) }, " 7H", { place(x.place(high)) }, "\"/>");
    }
    put!(out, "<circle class=\"dot\" cx=\"", { place(x.place(value)) }, "\" cy=\"7\" r=\"3.5\"/></svg>");
}
