//! Figures over outer iterations, as small multiples and as a table.

use super::chart::{Chart, Line, draw};
use super::html::{Html, missing, put};
use super::number::{NONE, count, place, short, short_or_dash};
use super::scale::{Kind, Scale};
use crate::learning::Iteration;
use crate::report::Report;

const NOT_MEASURED: &str = "Not measured in this run.";

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>The loop, iteration by iteration</h2>\n");
    let all = &report.iterations;
    if all.is_empty() {
        missing(out, "No outer iteration was finished, so there is nothing to plot over t.");
    }
    put!(out, "<p class=\"lead\">Outer iteration t trains a policy on programs written with the library ");
    put!(out, "F<sub>t−1</sub> and then refactors it into F<sub>t</sub>. So the policy of t = 1 has no library. ");
    put!(
        out,
        "t = 0 is the state before the loop. The policy with the last library is compared with the others under "
    );
    put!(out, "<a href=\"#metrics\">Held-out</a>.</p>\n<div class=\"multiples\">\n");
    description_length(out, all);
    let chart = |id, title, unit, lines: Vec<Line<'static>>| Chart {
        id,
        title,
        unit,
        x_label: "iteration t",
        kind: Kind::FromZero,
        label_room: 62.0,
        lines,
        if_empty: NOT_MEASURED,
    };
    let held_out = line(all, "programs", "c0", |iteration| iteration.held_out_nats);
    if held_out.points.iter().any(|point| point.1.is_finite()) {
        let unit = "nats, less is better";
        draw(out, &chart("fig-held-out", "Description length of held-out programs", unit, vec![held_out]));
    }
    let entries = line(all, "entries", "c0", |iteration| Some(iteration.entries as f64));
    draw(out, &chart("fig-entries", "Entries of the library", "", vec![entries]));
    let tokens = line(all, "tokens", "c2", |iteration| Some(iteration.policy?.token_accuracy));
    let exact = line(all, "exact", "c4", |iteration| Some(iteration.policy?.exact_match));
    let unit = "held-out accuracy, with the library of t − 1";
    draw(out, &chart("fig-tpe", "Emitter of iteration t", unit, vec![tokens, exact]));
    let error = line(all, "error", "c0", |iteration| Some(iteration.policy?.velocity_error));
    let unit = "held-out velocity error with oracle programs, library of t − 1";
    draw(out, &chart("fig-lcad", "Decoder of iteration t", unit, vec![error]));
    put!(out, "</div>\n");
    if !all.is_empty() {
        table(out, all);
    }
}

fn line(
    all: &[Iteration],
    label: &'static str,
    colour: &'static str,
    value: fn(&Iteration) -> Option<f64>,
) -> Line<'static> {
    let points = all.iter().map(|one| (f64::from(one.t), value(one).unwrap_or(f64::NAN))).collect();
    Line { label, colour, look: "solid", points, dots: true }
}

/// Stacked bars: the library is small compared with the programs, and the loop minimises their sum.
fn description_length(out: &mut Html, all: &[Iteration]) {
    put!(
        out,
        "<figure class=\"chart\" id=\"fig-description-length\"><figcaption><b>Description length of training programs</b> "
    );
    put!(out, "<span class=\"unit\">nats, less is better</span></figcaption>");
    let finite: Vec<&Iteration> =
        all.iter().filter(|one| one.programs_nats.is_finite() && one.library_nats.is_finite()).collect();
    let (Some(first), Some(last)) = (finite.first(), finite.last()) else {
        missing(out, "No description length was computed.");
        put!(out, "</figure>\n");
        return;
    };
    let total = |one: &Iteration| one.programs_nats + one.library_nats;
    let (left, right, top, bottom) = (40.0, 278.0, 18.0, 166.0);
    let y = Scale::over(finite.iter().map(|one| total(one)), Kind::FromZero, bottom, top);
    put!(out, "<svg role=\"img\" viewBox=\"0 0 340 196\"><title>Description length: from ", { short(total(first)) });
    put!(out, " nats at t = ", { first.t }, " to ", { short(total(last)) }, " at t = ", { last.t }, "</title>\n");
    for (value, label) in y.ticks() {
        let at = place(y.place(value));
        put!(out, "<path class=\"grid\" d=\"M", { left }, " ", { at }, "H", { right }, "\"/>");
        put!(
            out,
            "<text class=\"tick\" x=\"",
            { left - 6.0 },
            "\" y=\"",
            { at },
            "\" dy=\".32em\" text-anchor=\"end\">"
        );
        put!(out, { label }, "</text>");
    }
    let slot = (right - left) / finite.len() as f64;
    let width = (slot * 0.66).min(44.0);
    // Values over the bars only where they do not touch.
    let labelled = slot >= 34.0;
    for (index, one) in finite.iter().enumerate() {
        let middle = left + slot * (index as f64 + 0.5);
        let (zero, split, end) = (y.place(0.0), y.place(one.programs_nats), y.place(total(one)));
        for (colour, from, to, what, value) in
            [("c0", zero, split, "programs", one.programs_nats), ("c1", split, end, "library", one.library_nats)]
        {
            put!(out, "<rect class=\"bar ", { colour }, "\" x=\"", { place(middle - width / 2.0) }, "\" y=\"");
            put!(out, { place(to.min(from)) }, "\" width=\"", { place(width) }, "\" height=\"");
            put!(out, { place((from - to).abs()) }, "\"><title>t = ", { one.t }, ", ", { what }, ": ");
            put!(out, { short(value) }, " nats</title></rect>");
        }
        let x = place(middle);
        if labelled {
            put!(
                out,
                "<text class=\"value\" x=\"",
                { x },
                "\" y=\"",
                { place(end - 5.0) },
                "\" text-anchor=\"middle\">"
            );
            put!(out, { short(total(one)) }, "</text>");
        }
        if slot >= 14.0 || index == 0 || index + 1 == finite.len() {
            put!(out, "<text class=\"tick\" x=\"", { x }, "\" y=\"181\" text-anchor=\"middle\">", { one.t }, "</text>");
        }
        if index + 1 == finite.len() {
            let (a, b) = ((zero + split) / 2.0, ((split + end) / 2.0).min((zero + split) / 2.0 - 13.0));
            put!(out, "<text class=\"end c0\" x=\"286\" y=\"", { place(a) }, "\" dy=\".32em\">programs</text>");
            put!(out, "<text class=\"end c1\" x=\"286\" y=\"", { place(b) }, "\" dy=\".32em\">library</text>");
        }
    }
    put!(out, "<text class=\"tick\" x=\"159\" y=\"194\" text-anchor=\"middle\">iteration t</text></svg></figure>\n");
}

fn table(out: &mut Html, all: &[Iteration]) {
    put!(
        out,
        "<details><summary>The same figures as a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
    );
    put!(
        out,
        "aria-label=\"Figures of each iteration\"><table class=\"numbers\"><thead><tr><th>t</th><th>programs, nats</th>"
    );
    put!(out, "<th>library, nats</th><th>held-out programs, nats</th><th>entries of F<sub>t</sub></th>");
    put!(out, "<th>entries of F<sub>t−1</sub></th><th>token accuracy</th><th>exact match</th><th>velocity error</th>");
    put!(out, "</tr></thead><tbody>");
    for one in all {
        put!(out, "<tr><th>", { one.t }, "</th><td>", { short(one.programs_nats) }, "</td><td>");
        put!(out, { short(one.library_nats) }, "</td><td>", { short_or_dash(one.held_out_nats) }, "</td><td>");
        let before = one.policy.map_or_else(|| NONE.to_owned(), |policy| count(policy.library_entries));
        put!(out, { count(one.entries) }, "</td><td>", { before }, "</td>");
        let policy = one.policy;
        for value in [
            policy.map(|policy| policy.token_accuracy),
            policy.map(|policy| policy.exact_match),
            policy.map(|policy| policy.velocity_error),
        ] {
            put!(out, "<td>", { short_or_dash(value) }, "</td>");
        }
        put!(out, "</tr>");
    }
    put!(out, "</tbody></table></div></details>\n");
}
