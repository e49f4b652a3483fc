//! Figures on held-out episodes: one table for each group of rows, with a column for each arm that has a value in it.

use super::html::{Html, definitions, missing, put, range};
use super::number::{NONE, short};
use crate::metrics::{Better, Estimate, Metric, SKILL_GROUP};
use crate::report::Report;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Held-out figures</h2>\n<div id=\"fig-metrics\">\n");
    let groups = groups(&report.metrics, |group| group != SKILL_GROUP);
    if groups.is_empty() {
        missing(out, "Nothing was measured on held-out episodes.");
        put!(out, "</div>\n");
        return;
    }
    put!(
        out,
        "<p class=\"lead\">Measured on episodes that no part of the loop was trained on. The best value of a row is "
    );
    put!(out, "bold; brackets are 95 % intervals. The paper’s values were measured on its own data and are given for ");
    put!(out, "orientation only.");
    if report.metrics.iter().any(|metric| metric.oracle) {
        put!(
            out,
            " Rows marked <span class=\"tag\">oracle</span> use programs that contain the episode’s own future: they "
        );
        put!(out, "bound what a policy could reach with perfect programs, and are not what this policy achieves.");
    }
    put!(out, "</p>\n");
    arms(out, report, &groups);
    for group in groups {
        put!(out, "<h3>", { group[0].group }, "</h3>\n");
        table(out, report, group);
    }
    put!(out, "</div>\n");
}

/// The table of the skills, for their section; nothing if there is none.
pub(crate) fn of_skills(out: &mut Html, report: &Report) {
    let groups = groups(&report.metrics, |group| group == SKILL_GROUP);
    if groups.is_empty() {
        return;
    }
    put!(
        out,
        "<div id=\"fig-skill-metrics\"><p class=\"lead\">Evaluation of the skills on held-out episodes. The best "
    );
    put!(out, "value of a row is bold.</p>\n");
    arms(out, report, &groups);
    for group in groups {
        table(out, report, group);
    }
    put!(out, "</div>\n");
}

/// Rows that follow each other under one heading.
fn groups(metrics: &[Metric], wanted: impl Fn(&str) -> bool) -> Vec<&[Metric]> {
    metrics.chunk_by(|one, next| one.group == next.group).filter(|group| wanted(&group[0].group)).collect()
}

/// Names of the arms that have a value in some rows: those that are listed in their order, then any others.
fn columns<'a>(report: &'a Report, rows: &'a [Metric]) -> Vec<&'a str> {
    let has = |arm: &str| rows.iter().any(|metric| metric.value(arm).is_some());
    let mut names: Vec<&str> = report.arms.iter().map(|arm| arm.name.as_str()).filter(|arm| has(arm)).collect();
    for (arm, _) in rows.iter().flat_map(|metric| &metric.values) {
        if !names.contains(&arm.as_str()) {
            names.push(arm);
        }
    }
    names
}

/// The arms of some groups, each with its description.
fn arms(out: &mut Html, report: &Report, groups: &[&[Metric]]) {
    let shown: Vec<&str> = groups.iter().flat_map(|group| columns(report, group)).collect();
    let arms = report.arms.iter().filter(|arm| shown.contains(&arm.name.as_str()));
    definitions(out, arms.map(|arm| (arm.name.as_str(), arm.description.as_str())));
}

fn table(out: &mut Html, report: &Report, rows: &[Metric]) {
    let columns = columns(report, rows);
    put!(out, "<table class=\"metrics\"><thead><tr><th>Figure</th>");
    for arm in &columns {
        put!(out, "<th>", { arm }, "</th>");
    }
    let papers = rows.iter().any(|metric| metric.paper.is_some());
    if papers {
        put!(out, "<th>Paper</th>");
    }
    put!(out, "<th>Note</th></tr></thead><tbody>\n");
    for metric in rows {
        row(out, metric, &columns, papers);
    }
    put!(out, "</tbody></table>\n");
}

fn row(out: &mut Html, metric: &Metric, columns: &[&str], papers: bool) {
    put!(out, "<tr><th scope=\"row\">", { metric.name });
    out.markup(match metric.better {
        Better::Higher => " ↑",
        Better::Lower => " ↓",
        Better::Neither => "",
    });
    if !metric.unit.is_empty() {
        put!(out, " <small>", { metric.unit }, "</small>");
    }
    if metric.oracle {
        put!(out, " <span class=\"tag\" title=\"The programs contain the episode’s own future.\">oracle</span>");
    }
    put!(out, "</th>");
    let best = best_as_shown(metric);
    for arm in columns {
        let estimate = metric.value(arm);
        cell(out, arm, estimate, estimate.is_some_and(|estimate| Some(short(estimate.mean)) == best));
    }
    if papers {
        put!(out, "<td data-name=\"Paper\">");
        match &metric.paper {
            Some(paper) => put!(out, { paper }),
            None => put!(out, "<small>not comparable</small>"),
        }
        put!(out, "</td>");
    }
    put!(out, "<td class=\"note\"><small>", { metric.note }, "</small></td></tr>\n");
}

/// The best value of a row as it is printed; `None` if all values are printed alike, so that no reader looks for a difference.
fn best_as_shown(metric: &Metric) -> Option<String> {
    let best = short(metric.best()?);
    metric.values.iter().any(|(_, estimate)| short(estimate.mean) != best).then_some(best)
}

fn cell(out: &mut Html, arm: &str, estimate: Option<Estimate>, is_best: bool) {
    put!(out, "<td data-name=\"", { arm }, "\">");
    match estimate {
        Some(estimate) => {
            out.markup(if is_best { "<b>" } else { "<span>" });
            put!(out, { short(estimate.mean) });
            out.markup(if is_best { "</b>" } else { "</span>" });
            if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                range(out, low, high);
            }
        }
        None => put!(out, "<small>", { NONE }, "</small>"),
    }
    put!(out, "</td>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_printed_alike_are_both_bold_or_none_is() {
        let metric = |means: &[f64]| Metric {
            group: String::new(),
            name: String::new(),
            unit: String::new(),
            better: Better::Lower,
            oracle: false,
            headline: false,
            values: means.iter().map(|mean| (String::new(), Estimate::exact(*mean))).collect(),
            paper: None,
            note: String::new(),
        };
        assert_eq!(best_as_shown(&metric(&[1.9912, 1.9934])), None);
        assert_eq!(best_as_shown(&metric(&[1.9912, 1.9934, 2.5])).as_deref(), Some("1.99"));
        assert_eq!(best_as_shown(&metric(&[1.98, 1.99])).as_deref(), Some("1.98"));
        assert_eq!(best_as_shown(&metric(&[1.98])), None);
    }
}
