//! Figures on held-out episodes, with and without library, beside the paper's.

use super::html::{Html, missing, put};
use super::number::{NONE, short};
use crate::report::{Better, Estimate, Metric, Report};

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Held-out figures</h2>\n<div id=\"fig-metrics\">\n");
    if report.metrics.is_empty() {
        missing(out, "Nothing was measured on held-out episodes.");
        put!(out, "</div>\n");
        return;
    }
    put!(
        out,
        "<p class=\"lead\">Measured on episodes that no part of the loop was trained on. The better of two figures is "
    );
    put!(
        out,
        "bold; intervals are 95 %. The paper’s values were measured on its own data and are there for orientation.</p>\n"
    );
    put!(out, "<table class=\"metrics\"><thead><tr><th>Figure</th><th>With library</th><th>Without</th><th>Paper</th>");
    put!(out, "<th>Note</th></tr></thead>\n");
    for (index, metric) in report.metrics.iter().enumerate() {
        let first = index == 0 || report.metrics[index - 1].group != metric.group;
        if first {
            out.markup(if index == 0 { "<tbody>" } else { "</tbody><tbody>" });
            put!(out, "<tr class=\"group\"><th colspan=\"5\" scope=\"rowgroup\">", { metric.group }, "</th></tr>\n");
        }
        row(out, metric);
    }
    put!(out, "</tbody></table></div>\n");
}

fn row(out: &mut Html, metric: &Metric) {
    put!(out, "<tr><th scope=\"row\">", { metric.name });
    let direction = match metric.better {
        Better::Higher => " ↑",
        Better::Lower => " ↓",
        Better::Neither => "",
    };
    put!(out, { direction });
    if !metric.unit.is_empty() {
        put!(out, " <small>", { metric.unit }, "</small>");
    }
    put!(out, "</th>");
    let ahead = |one: Option<Estimate>, other: Option<Estimate>| match (one, other, metric.better) {
        (Some(one), Some(other), Better::Higher) => one.mean > other.mean,
        (Some(one), Some(other), Better::Lower) => one.mean < other.mean,
        _ => false,
    };
    let (with, without) = (metric.with_library, metric.without_library);
    cell(out, "With library", with, ahead(with, without));
    cell(out, "Without", without, ahead(without, with));
    put!(out, "<td data-name=\"Paper\">");
    match &metric.paper {
        Some(paper) => put!(out, { paper }),
        None => put!(out, "<small>not comparable</small>"),
    }
    put!(out, "</td><td class=\"note\"><small>", { metric.note }, "</small></td></tr>\n");
}

fn cell(out: &mut Html, name: &'static str, estimate: Option<Estimate>, ahead: bool) {
    put!(out, "<td data-name=\"", { name }, "\">");
    match estimate {
        Some(estimate) => {
            out.markup(if ahead { "<b>" } else { "<span>" });
            put!(out, { short(estimate.mean) });
            out.markup(if ahead { "</b>" } else { "</span>" });
            if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                put!(out, " <small>[", { short(low) }, ", ", { short(high) }, "]</small>");
            }
        }
        None => put!(out, "<small>", { NONE }, "</small>"),
    }
    put!(out, "</td>");
}
