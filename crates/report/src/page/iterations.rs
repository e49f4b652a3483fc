//! The loop's figures over outer iterations, as small multiples, and the same as a table.

use super::chart::{Chart, Line, draw};
use super::html::{Html, missing, put};
use super::number::{count, place, short, short_or_dash};
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
    put!(
        out,
        "<p class=\"lead\">Each outer iteration t learns from programs written with the library so far, clusters "
    );
    put!(out, "motion again, and refactors the library. t = 0 is the state before the loop.</p>\n");
    put!(out, "<div class=\"multiples\">\n");
    description_length(out, all);
    // The missing line is accounted for where one looks for it.
    let (nmi, ari) = match report.phases.is_empty() {
        true => ("1 is perfect; no true phases", "0 is chance; no true phases"),
        false => ("1 is perfect", "0 is chance"),
    };
    let single = |id, title, unit, line: Line<'static>, kind| Chart {
        id,
        title,
        unit,
        x_label: "iteration t",
        kind,
        label_room: 62.0,
        lines: vec![line],
        if_empty: NOT_MEASURED,
    };
    let entries = line(all, "entries", "c0", |iteration| Some(iteration.entries as f64));
    draw(out, &single("fig-entries", "Entries of the library", "", entries, Kind::FromZero));
    let pair = |id, title, unit, first: Line<'static>, second: Line<'static>, if_empty| Chart {
        id,
        title,
        unit,
        x_label: "iteration t",
        kind: Kind::FromZero,
        label_room: 62.0,
        lines: vec![first, second],
        if_empty,
    };
    let task = line(all, "task", "c1", |iteration| iteration.nmi_task);
    let phase = line(all, "phase", "c3", |iteration| iteration.nmi_phase);
    draw(out, &pair("fig-nmi", "NMI of skills", nmi, task, phase, NOT_MEASURED));
    let task = line(all, "task", "c1", |iteration| iteration.ari_task);
    let phase = line(all, "phase", "c3", |iteration| iteration.ari_phase);
    draw(out, &pair("fig-ari", "ARI of skills", ari, task, phase, NOT_MEASURED));
    let tokens = line(all, "tokens", "c2", |iteration| iteration.tpe_token_accuracy);
    let exact = line(all, "exact", "c4", |iteration| iteration.tpe_exact_match);
    draw(out, &pair("fig-tpe", "Emitter (TPE)", "share right, held out", tokens, exact, NOT_MEASURED));
    let without = line(all, "without", "cx", |iteration| iteration.lcad_error_without_library);
    let with = line(all, "library", "c0", |iteration| iteration.lcad_error_with_library);
    let unit = "velocity error, less is better";
    draw(out, &pair("fig-lcad", "Decoder (LCAD)", unit, without, with, NOT_MEASURED));
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

/// Stacked bars: the library is small beside the programs, and only their sum is what the loop minimises.
fn description_length(out: &mut Html, all: &[Iteration]) {
    put!(out, "<figure class=\"chart\" id=\"fig-description-length\"><figcaption><b>Description length</b> ");
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
    // Figures over the bars only where they do not touch.
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
    put!(
        out,
        "<th>library, nats</th><th>entries</th><th>skills</th><th>NMI task</th><th>ARI task</th><th>NMI phase</th>"
    );
    put!(out, "<th>ARI phase</th><th>TPE tokens</th><th>TPE exact</th><th>LCAD, library</th><th>LCAD, without</th>");
    put!(out, "<th>seconds</th></tr></thead><tbody>");
    for one in all {
        let skills = one.skills.map(count).unwrap_or_else(|| super::number::NONE.to_owned());
        put!(out, "<tr><th>", { one.t }, "</th><td>", { short(one.programs_nats) }, "</td><td>");
        put!(out, { short(one.library_nats) }, "</td><td>", { count(one.entries) }, "</td><td>", { skills }, "</td>");
        for value in [
            one.nmi_task,
            one.ari_task,
            one.nmi_phase,
            one.ari_phase,
            one.tpe_token_accuracy,
            one.tpe_exact_match,
            one.lcad_error_with_library,
            one.lcad_error_without_library,
            one.seconds,
        ] {
            put!(out, "<td>", { short_or_dash(value) }, "</td>");
        }
        put!(out, "</tr>");
    }
    put!(out, "</tbody></table></div></details>\n");
}
