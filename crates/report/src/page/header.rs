//! What was run, what came out of it in sentences, and the key figures.

use super::html::{Html, put};
use super::number::{count, counted, duration, fixed, percent, short};
use crate::learning::Iteration;
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
    put!(out, "<li><span>version</span> ", { run.version });
    if let Some(revision) = &run.revision {
        put!(out, " (", { revision }, ")");
    }
    put!(out, "</li><li><span>took</span> ", { duration(run.seconds) }, "</li>");
    put!(out, "<li><span>on</span> ", { run.device }, "</li>");
    if let Some(started) = &run.started {
        put!(out, "<li><span>began</span> ", { started }, "</li>");
    }
    put!(out, "</ul>\n<div class=\"summary\" id=\"summary\">");
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
        "From {} the loop found {} and {} in {}{}.",
        counted(demonstrations, "demonstration", "demonstrations"),
        counted(report.skills.len() as u64, "skill", "skills"),
        counted(report.library.len() as u64, "program", "programs"),
        counted(rounds, "iteration", "iterations"),
        if held_out > 0 { format!("; {} were kept apart to judge it", count(held_out)) } else { String::new() },
    ));
    if let Some((before, after)) = lengths(report) {
        let (old, new) = (fixed(before, 0), fixed(after, 0));
        sentences.push(if after < before {
            let factor = fixed(before / after, 2);
            format!(
                "Written with this library, the demonstrations take {new} nats instead of {old}, the library itself \
                 included: {factor} times shorter."
            )
        } else {
            format!(
                "The library did not make the demonstrations shorter: they take {new} nats, and took {old} before, the \
                 library itself included."
            )
        });
    }
    match report.iterations.last() {
        Some(last) => {
            sentences.extend(agreement(last));
            sentences.extend(policy(last));
        }
        None => sentences.push("No iteration was finished, so there are no figures of the loop.".to_owned()),
    }
    sentences.extend(gates(report));
    sentences
}

fn agreement(last: &Iteration) -> Option<String> {
    let value = |value: Option<f64>| value.filter(|value| value.is_finite()).map(|value| fixed(value, 2));
    let scale = "0 is not at all, 1 is fully";
    Some(match (value(last.nmi_phase), value(last.nmi_task)) {
        (Some(phase), Some(task)) => {
            format!("Skills agree with the true phases to {phase} and with the tasks to {task} (NMI; {scale}).")
        }
        (Some(phase), None) => format!("Skills agree with the true phases to {phase} (NMI; {scale})."),
        (None, Some(task)) => format!(
            "Skills agree with the tasks to {task} (NMI; {scale}). The data has no true phases, so whether they are skills \
             is not measured."
        ),
        (None, None) => return None,
    })
}

fn policy(last: &Iteration) -> Option<String> {
    let mut parts = Vec::new();
    if let (Some(tokens), Some(exact)) = (last.tpe_token_accuracy, last.tpe_exact_match) {
        parts.push(format!(
            "the emitter gets {} of tokens and {} of whole programs right",
            percent(tokens),
            percent(exact)
        ));
    }
    if let (Some(with), Some(without)) = (last.lcad_error_with_library, last.lcad_error_without_library) {
        parts.push(format!(
            "the decoder's velocity error is {} with the library and {} without",
            short(with),
            short(without)
        ));
    }
    (!parts.is_empty()).then(|| format!("On held-out episodes {}.", parts.join(", and ")))
}

fn gates(report: &Report) -> Option<String> {
    let reward = report.run.datasets.iter().any(|dataset| dataset.reward);
    let silent = "The data has no reward, so the return gate was inactive";
    if report.candidates.is_empty() {
        return (!reward).then(|| format!("{silent}."));
    }
    let admitted = report.candidates.iter().filter(|candidate| candidate.admitted).count() as u64;
    let all = counted(report.candidates.len() as u64, "candidate", "candidates");
    let first = format!("Of {all} for the library {} passed the gates.", count(admitted));
    Some(if reward { first } else { format!("{first} {silent}.") })
}

/// Description length of everything before the loop and after it.
fn lengths(report: &Report) -> Option<(f64, f64)> {
    let total = |iteration: &Iteration| iteration.programs_nats + iteration.library_nats;
    let (first, last) = (report.iterations.first()?, report.iterations.last()?);
    let (before, after) = (total(first), total(last));
    (report.iterations.len() > 1 && before.is_finite() && after.is_finite() && after > 0.0).then_some((before, after))
}

fn tiles(out: &mut Html, report: &Report) {
    let mut tiles: Vec<(String, &str, String)> = Vec::new();
    tiles.push((count(report.skills.len() as u64), "skills", String::new()));
    tiles.push((count(report.library.len() as u64), "programs in the library", String::new()));
    if let Some((before, after)) = lengths(report) {
        let detail = format!("{} → {} nats", fixed(before, 0), fixed(after, 0));
        tiles.push((format!("{}×", fixed(before / after, 2)), "shorter", detail));
    }
    if let Some(last) = report.iterations.last() {
        let ari = |value: Option<f64>| value.map_or_else(String::new, |value| format!("ARI {}", fixed(value, 2)));
        let mut add = |value: Option<f64>, name, detail: String, decimals| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                tiles.push((fixed(value, decimals), name, detail));
            }
        };
        add(last.nmi_phase, "NMI with phases", ari(last.ari_phase), 2);
        add(last.nmi_task, "NMI with tasks", ari(last.ari_task), 2);
        let tokens = last.tpe_token_accuracy.map_or_else(String::new, |share| format!("{} of tokens", percent(share)));
        let without = last.lcad_error_without_library;
        let without = without.map_or_else(String::new, |error| format!("{} without library", fixed(error, 3)));
        add(last.lcad_error_with_library, "velocity error", without, 3);
        if let Some(exact) = last.tpe_exact_match.filter(|share| share.is_finite()) {
            tiles.push((percent(exact), "programs exactly right", tokens));
        }
    }
    if !report.candidates.is_empty() {
        let admitted = report.candidates.iter().filter(|candidate| candidate.admitted).count();
        tiles.push((format!("{admitted}/{}", report.candidates.len()), "candidates admitted", String::new()));
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
