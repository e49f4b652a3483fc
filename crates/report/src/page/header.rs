//! The head of the page: what was run, the result in sentences, and the key figures. Every held-out figure here is a row of
//! the tables below, so both always show the same policy.

use super::html::{Html, put};
use super::number::{count, counted, duration, fixed, short};
use crate::learning::Iteration;
use crate::metrics::{Estimate, Metric};
use crate::report::Report;

/// The head of the page.
pub(crate) fn header(out: &mut Html, report: &Report) {
    let run = &report.run;
    put!(out, "<header>\n<p class=\"kicker\">REFACTOR-VLA run report</p>\n<h1>", { run.title }, "</h1>\n");
    put!(out, "<ul class=\"facts\">");
    for dataset in &run.datasets {
        put!(out, "<li><span>dataset</span> ", { dataset.name }, "</li>");
    }
    if run.datasets.is_empty() {
        put!(out, "<li><span>dataset</span> not recorded</li>");
    }
    let presets = if run.presets.is_empty() { "none".to_owned() } else { run.presets.join(" + ") };
    put!(out, "<li><span>preset</span> ", { presets }, "</li><li><span>seed</span> ", { run.seed }, "</li>");
    put!(out, "<li id=\"labels\">", { run.labels }, "</li><li><span>version</span> ", { run.version }, "</li>");
    put!(out, "<li><span>wall-clock time</span> ", { duration(run.seconds) }, "</li>");
    put!(out, "<li><span>device</span> ", { run.device }, "</li></ul>\n<div class=\"summary\" id=\"summary\">");
    for sentence in sentences(report) {
        put!(out, "<p>", { sentence }, "</p>");
    }
    put!(out, "</div>\n");
    tiles(out, report);
    problems(out, report);
    put!(out, "</header>\n");
}

/// The result in sentences that need no glossary.
fn sentences(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    let run = &report.run;
    let demonstrations: u64 = run.datasets.iter().map(|dataset| dataset.episodes).fold(0, u64::saturating_add);
    let held_out: u64 = run.datasets.iter().map(|dataset| dataset.held_out_episodes).fold(0, u64::saturating_add);
    let rounds = report.iterations.iter().filter(|iteration| iteration.t > 0).count() as u64;
    sentences.push(format!(
        "From {} the loop learned {} and a library of {} in {}.{}",
        counted(demonstrations, "demonstration", "demonstrations"),
        counted(report.skills.len() as u64, "skill", "skills"),
        counted(report.library.len() as u64, "program", "programs"),
        counted(rounds, "iteration", "iterations"),
        match held_out {
            0 => String::new(),
            1 => " One further demonstration was held out for evaluation.".to_owned(),
            more => format!(" {} further demonstrations were held out for evaluation.", count(more)),
        },
    ));
    if let Some((before, after)) = lengths(report) {
        let (old, new) = (fixed(before, 0), fixed(after, 0));
        sentences.push(if after < before {
            let factor = fixed(before / after, 2);
            format!(
                "Written with this library, the training demonstrations take {new} nats instead of {old}, including the \
                 library itself: {factor} times shorter."
            )
        } else {
            format!(
                "The library did not make the training demonstrations shorter: they take {new} nats instead of {old}, \
                 including the library itself."
            )
        });
    }
    if report.iterations.is_empty() {
        sentences.push("No iteration was finished, so there are no figures of the loop.".to_owned());
    }
    let headlines: Vec<&Metric> = report.metrics.iter().filter(|metric| metric.headline).collect();
    for group in headlines.chunk_by(|one, next| one.group == next.group) {
        let parts: Vec<String> = group.iter().filter_map(|metric| compared(report, metric)).collect();
        if !parts.is_empty() {
            sentences.push(format!("Held-out figures, {}: {}.", group[0].group, parts.join("; ")));
        }
    }
    sentences.extend(gates(report));
    sentences
}

/// A metric with the values of its arms: `exact match 0.750 (with library), 0.600 (without library)`.
fn compared(report: &Report, metric: &Metric) -> Option<String> {
    let values: Vec<String> =
        by_arm(report, metric).into_iter().map(|(arm, estimate)| format!("{} ({arm})", short(estimate.mean))).collect();
    let oracle = if metric.oracle { " with oracle programs" } else { "" };
    (!values.is_empty()).then(|| format!("{}{oracle} {}", metric.name, values.join(", ")))
}

/// The finite values of a metric, in the order of the arms.
fn by_arm<'a>(report: &'a Report, metric: &Metric) -> Vec<(&'a str, Estimate)> {
    let value = |arm: &'a str| metric.value(arm).filter(|estimate| estimate.mean.is_finite()).map(|one| (arm, one));
    report.arms.iter().filter_map(|arm| value(&arm.name)).collect()
}

fn gates(report: &Report) -> Option<String> {
    let reward = report.run.datasets.iter().any(|dataset| dataset.reward);
    let silent = "The data has no reward, so returns could not be compared";
    if report.candidates.is_empty() {
        return (!reward).then(|| format!("{silent}."));
    }
    let admitted = report.candidates.iter().filter(|candidate| candidate.admitted).count() as u64;
    let all = counted(report.candidates.len() as u64, "candidate", "candidates");
    let first = format!("The gates admitted {} of {all} for the library.", count(admitted));
    Some(if reward { first } else { format!("{first} {silent}.") })
}

/// Total description length before the loop and after it.
fn lengths(report: &Report) -> Option<(f64, f64)> {
    let total = |iteration: &Iteration| iteration.programs_nats + iteration.library_nats;
    let (first, last) = (report.iterations.first()?, report.iterations.last()?);
    let (before, after) = (total(first), total(last));
    (report.iterations.len() > 1 && before.is_finite() && after.is_finite() && after > 0.0).then_some((before, after))
}

fn tiles(out: &mut Html, report: &Report) {
    let mut tiles: Vec<(String, String, String)> = Vec::new();
    tiles.push((count(report.skills.len() as u64), "skills".to_owned(), String::new()));
    tiles.push((count(report.library.len() as u64), "programs in the library".to_owned(), String::new()));
    if let Some((before, after)) = lengths(report) {
        let detail = format!("{} → {} nats", fixed(before, 0), fixed(after, 0));
        tiles.push((format!("{}×", fixed(before / after, 2)), "shorter programs".to_owned(), detail));
    }
    for metric in report.metrics.iter().filter(|metric| metric.headline) {
        if let [(arm, first), others @ ..] = &by_arm(report, metric)[..] {
            let mut detail = vec![(*arm).to_owned()];
            detail.extend(others.iter().map(|(arm, estimate)| format!("{} {arm}", short(estimate.mean))));
            let name = if metric.oracle { format!("{} (oracle)", metric.name) } else { metric.name.clone() };
            tiles.push((short(first.mean), name, detail.join("; ")));
        }
    }
    if !report.candidates.is_empty() {
        let admitted = report.candidates.iter().filter(|candidate| candidate.admitted).count();
        tiles.push((
            format!("{admitted}/{}", report.candidates.len()),
            "candidates admitted".to_owned(),
            String::new(),
        ));
    }
    put!(out, "<dl class=\"tiles\" id=\"tiles\">");
    for (value, name, detail) in tiles {
        put!(out, "<div><dt>", { name }, "</dt><dd>", { value }, "</dd>");
        if !detail.is_empty() {
            put!(out, "<dd class=\"detail\">", { detail }, "</dd>");
        }
        put!(out, "</div>");
    }
    put!(out, "</dl>\n");
}

fn problems(out: &mut Html, report: &Report) {
    let problems = report.problems();
    if problems.is_empty() {
        return;
    }
    put!(
        out,
        "<div class=\"warning\" role=\"note\"><p><b>This report contradicts itself.</b> Figures may be wrong.</p><ul>"
    );
    for problem in problems {
        put!(out, "<li>", { problem }, "</li>");
    }
    put!(out, "</ul></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Arm, Better};

    #[test]
    fn sentences_name_the_arm_of_every_value() {
        let arm = |name: &str| Arm { name: name.to_owned(), description: String::new() };
        let metric = Metric {
            group: "emitter".to_owned(),
            name: "exact match".to_owned(),
            unit: String::new(),
            better: Better::Higher,
            oracle: false,
            headline: true,
            values: vec![("without".to_owned(), Estimate::exact(0.6)), ("with".to_owned(), Estimate::exact(0.75))],
            paper: None,
            note: String::new(),
        };
        let mut report = crate::report::empty();
        report.arms = vec![arm("with"), arm("without")];
        assert_eq!(compared(&report, &metric).as_deref(), Some("exact match 0.750 (with), 0.600 (without)"));
        let metric = Metric { oracle: true, values: vec![("with".to_owned(), Estimate::exact(f64::NAN))], ..metric };
        assert_eq!(compared(&report, &metric), None);
    }
}
