//! Episodes as two thin bands over time: skills above true phases. Bands are plain boxes with widths in percent, so that
//! they fit any screen without scaling their labels.

use super::code::program;
use super::html::{Html, missing, put};
use super::number::{counted, fixed};
use super::palette::{hatch, hue, swatch};
use super::skills::dataset_name;
use crate::motion::{Episode, Skill, Span, badges};
use crate::report::Report;

/// With so few episodes all groups are open from the start.
const ALL_OPEN: usize = 12;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Episodes</h2>\n<div id=\"fig-timelines\">\n");
    if report.episodes.is_empty() {
        missing(out, "No episode was segmented into skills.");
        put!(out, "</div>\n");
        return;
    }
    let phases = report.episodes.iter().any(|episode| !episode.phases.is_empty());
    put!(out, "<p class=\"lead\">Time runs to the right; within a task, a band is as long as its episode. ");
    if phases {
        put!(out, "The upper band shows the skills, the lower one the true phases, which the loop never sees. ");
        put!(out, "Where boundaries line up, a skill begins where a phase begins.</p>\n");
    } else {
        put!(out, "The band shows the skills.</p>\n");
        missing(out, "The data has no true phases to compare with.");
    }
    let badges = badges(&report.skills);
    key(out, report, &badges);
    put!(out, "<p class=\"tools\"><button type=\"button\" class=\"needs-script\" data-open=\"#fig-timelines\" hidden>");
    put!(out, "Open all</button></p>\n");
    let open = report.episodes.len() <= ALL_OPEN;
    for (index, (title, group)) in grouped(report).into_iter().enumerate() {
        put!(out, "<details class=\"task\"", { if open || index == 0 { " open" } else { "" } }, "><summary><b>");
        put!(out, { title }, "</b> <small>", { counted(group.len() as u64, "episode", "episodes") }, ", ");
        let mean = group.iter().map(|episode| episode.skills.len()).sum::<usize>() as f64 / group.len().max(1) as f64;
        put!(out, { fixed(mean, 1) }, " segments each</small></summary>\n");
        // Lengths are comparable within a task; one long task would leave no room for the labels of the others.
        let longest = group.iter().map(|episode| episode.frames).max().unwrap_or(1).max(1);
        for episode in group {
            row(out, report, &badges, episode, (title, longest));
        }
        put!(out, "</details>\n");
    }
    put!(out, "</div>\n");
}

/// The skills by their badges.
fn key(out: &mut Html, report: &Report, badges: &[String]) {
    put!(out, "<ul class=\"legend key\" aria-label=\"Skills\">");
    for (index, (skill, badge)) in report.skills.iter().zip(badges).enumerate() {
        put!(out, "<li><a href=\"#skill-", { index }, "\">");
        swatch(out, index as i64, badge);
        put!(out, " ", { skill.title() }, "</a></li>");
    }
    put!(out, "</ul>\n");
}

/// Episodes by task, in the order of the tasks, episodes without one at the end.
fn grouped(report: &Report) -> Vec<(&str, Vec<&Episode>)> {
    let known = 0..report.tasks.len() as i64;
    let mut groups: Vec<(&str, Vec<&Episode>)> = Vec::new();
    for (task, title) in report.tasks.iter().enumerate() {
        let group = report.episodes.iter().filter(|episode| episode.task == task as i64).collect();
        groups.push((title, group));
    }
    groups.push(("no task", report.episodes.iter().filter(|episode| !known.contains(&episode.task)).collect()));
    groups.retain(|(_, group)| !group.is_empty());
    groups
}

fn row(out: &mut Html, report: &Report, badges: &[String], episode: &Episode, (title, longest): (&str, u64)) {
    put!(out, "<div class=\"episode\"><p><small>", { dataset_name(report, episode.dataset) }, "</small><b>");
    put!(out, { episode.index }, "</b>");
    if episode.held_out {
        put!(out, " <span class=\"tag\">held-out</span>");
    }
    if episode.instruction != title && !episode.instruction.is_empty() {
        put!(out, " <small>", { episode.instruction }, "</small>");
    }
    put!(out, " <small class=\"frames\">", { counted(episode.frames, "frame", "frames") }, "</small></p>");
    let width = fixed(episode.frames as f64 / longest as f64 * 100.0, 2);
    put!(out, "<div class=\"bands\" style=\"width:", { width }, "%\">");
    let skill = |label: i64| usize::try_from(label).ok().and_then(|index| report.skills.get(index));
    let name = |label: i64| skill(label).map_or_else(|| "no skill".to_owned(), Skill::title);
    describe(out, "Skills", &episode.skills, name);
    for span in pieces(&episode.skills, episode.frames) {
        let label = if skill(span.label).is_some() { span.label } else { -1 };
        start_box(out, span, episode.frames);
        put!(out, "class=\"", { hue(label) }, " ", { hatch(label) }, "\" title=\"", { name(label) }, ", ", {
            frames(span)
        });
        put!(out, "\">");
        if let Some(badge) = usize::try_from(label).ok().and_then(|index| badges.get(index)) {
            put!(out, { badge });
        }
        put!(out, "</span>");
    }
    put!(out, "</div>");
    if !episode.phases.is_empty() {
        let phase = |label: i64| usize::try_from(label).ok().and_then(|index| report.phases.get(index));
        let name = |label: i64| phase(label).map_or_else(|| "no phase".to_owned(), String::clone);
        describe(out, "True phases", &episode.phases, name);
        for span in pieces(&episode.phases, episode.frames) {
            // Greys: a colour would suggest the skill of that colour.
            let shade = usize::try_from(span.label).map_or("p0", |index| ["p1", "p2", "p3", "p4"][index % 4]);
            start_box(out, span, episode.frames);
            put!(out, "class=\"phase ", { shade }, "\" title=\"", { name(span.label) }, ", ", { frames(span) }, "\">");
            put!(out, { phase(span.label).map_or("", String::as_str) }, "</span>");
        }
        put!(out, "</div>");
    }
    put!(out, "</div>");
    if let Some(text) = &episode.program {
        put!(out, "<details class=\"program\"><summary>program</summary><pre>");
        program(out, text, &[], report);
        put!(out, "</pre></details>");
    }
    put!(out, "</div>\n");
}

fn start_box(out: &mut Html, span: Span, frames: u64) {
    let width = (span.end - span.first) as f64 / frames.max(1) as f64 * 100.0;
    put!(out, "<span style=\"width:", { fixed(width, 2) }, "%\" ");
}

/// Opens a band, with its content in words for screen readers.
fn describe(out: &mut Html, what: &str, spans: &[Span], name: impl Fn(i64) -> String) {
    put!(out, "<div class=\"band\" role=\"img\" aria-label=\"", { what }, ":");
    for span in spans {
        put!(out, " ", { name(span.label) }, " ", { span.first }, "–", { span.end.saturating_sub(1) }, ",");
    }
    put!(out, "\">");
}

fn frames(span: Span) -> String {
    format!("frames {}–{}", span.first, span.end.saturating_sub(1))
}

/// Spans that cover the episode without gaps and overlaps, whatever was given, so that widths add up to the band's.
fn pieces(spans: &[Span], frames: u64) -> Vec<Span> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for span in spans {
        let (first, end) = (span.first.max(at), span.end.min(frames));
        if first >= end {
            continue;
        }
        if first > at {
            pieces.push(Span { first: at, end: first, label: -1 });
        }
        pieces.push(Span { first, end, label: span.label });
        at = end;
    }
    if at < frames {
        pieces.push(Span { first: at, end: frames, label: -1 });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_episode_whatever_was_given() {
        let span = |first, end, label| Span { first, end, label };
        let found = pieces(&[span(2, 5, 0), span(4, 6, 1), span(9, 99, 2), span(3, 1, 3)], 10);
        let wanted = [span(0, 2, -1), span(2, 5, 0), span(5, 6, 1), span(6, 9, -1), span(9, 10, 2)];
        assert_eq!(found, wanted);
        assert_eq!(pieces(&[], 0), []);
    }
}
