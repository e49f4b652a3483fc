//! The skills: agreement with true phases, and for each skill its figures, mean displacement as an arrow and pictures.

use super::html::{Html, missing, put};
use super::number::{count, counted, fixed, percent, place};
use super::palette::{hue, swatch};
use crate::motion::{Example, Skill, badges};
use crate::report::Report;

/// Half of the arrow figure's height; the longest arrow of all skills reaches nearly so far.
const REACH: f64 = 34.0;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Skills</h2>\n<div id=\"fig-skills\">\n");
    if report.skills.is_empty() {
        missing(out, "No skill was found.");
        put!(out, "</div>\n");
        return;
    }
    put!(
        out,
        "<p class=\"lead\">A skill is a class of behaviourally equivalent segments together with a gripper command. "
    );
    let pictures = report.skills.iter().flat_map(|skill| &skill.examples).any(|example| !example.pictures.is_empty());
    if pictures {
        put!(out, "Each strip is one example, from its first frame to its last. ");
    }
    let moves = report.skills.iter().any(|skill| skill.displacement.is_some());
    if moves {
        put!(
            out,
            "Arrows show the gripper’s mean displacement, all on one scale, as seen from above (up is forward); "
        );
        put!(out, "the bar next to an arrow is the change of height.");
    }
    put!(out, "</p>\n");
    super::metrics::of_skills(out, report);
    if !moves {
        missing(
            out,
            "No columns are known to hold the gripper’s position (a robot that is commanded by joints has none), so there are no displacements.",
        );
    }
    if !pictures {
        let recorded = report.run.datasets.iter().any(|dataset| dataset.pictures);
        let why = if recorded {
            "The data has pictures, but this report includes none."
        } else {
            "The data has no pictures, so skills are described by figures alone."
        };
        missing(out, why);
    }
    if report.phases.is_empty() {
        missing(out, "The data has no true phases, so purity is unknown.");
    }
    let longest = report
        .skills
        .iter()
        .filter_map(|skill| skill.displacement)
        .flat_map(|[x, y, z]| [x.hypot(y), z.abs()])
        .filter(|length| length.is_finite())
        .fold(0.0, f64::max);
    put!(out, "<div class=\"skills\">\n");
    for (index, (skill, badge)) in report.skills.iter().zip(badges(&report.skills)).enumerate() {
        card(out, report, (index, &badge), skill, longest);
    }
    put!(out, "</div></div>\n");
}

fn card(out: &mut Html, report: &Report, (index, badge): (usize, &str), skill: &Skill, longest: f64) {
    let label = index as i64;
    put!(out, "<article class=\"skill\" id=\"skill-", { index }, "\"><h3>");
    swatch(out, label, badge);
    put!(out, " ", { skill.title() }, "</h3>\n<div class=\"about\">");
    if let Some(displacement) = skill.displacement.filter(|part| part.iter().all(|value| value.is_finite())) {
        arrow(out, label, displacement, longest);
    }
    put!(out, "<dl><div><dt>segments</dt><dd>", { count(skill.size) }, "</dd></div><div><dt>mean length</dt><dd>");
    put!(out, { fixed(skill.mean_length, 1) }, " frames</dd></div>");
    if let Some(purity) = skill.purity {
        let phase = skill.main_phase.and_then(|phase| report.phases.get(usize::try_from(phase).ok()?));
        put!(out, "<div><dt>purity</dt><dd>", { percent(purity) });
        if let Some(phase) = phase {
            put!(out, " ", { phase });
        }
        put!(out, "</dd></div>");
    }
    if let Some(parts) = skill.displacement {
        let [x, y, z] = parts.map(|part| fixed(part * 100.0, 1));
        put!(out, "<div><dt>displacement</dt><dd>", { x }, ", ", { y }, ", ", { z }, " cm</dd></div>");
    }
    if let Some(gripper) = skill.gripper.filter(|value| value.is_finite()) {
        let share = fixed(gripper.abs() * 100.0, 0);
        // Less than a twentieth is noise of its sensor.
        let words = match gripper {
            closing if closing < -0.05 => format!("closes by {share} % of its range"),
            opening if opening > 0.05 => format!("opens by {share} % of its range"),
            _ => "does not move".to_owned(),
        };
        put!(out, "<div><dt>gripper</dt><dd>", { words }, "</dd></div>");
    }
    put!(out, "</dl></div>\n<div class=\"strips\">");
    for example in skill.examples.iter().filter(|example| !example.pictures.is_empty()) {
        strip(out, report, skill, example);
    }
    put!(out, "</div></article>\n");
}

/// The displacement as seen from above, and its height as a bar. Robots count x forward and y to the left; the figure
/// has forward up, so both axes turn.
fn arrow(out: &mut Html, label: i64, [x, y, z]: [f64; 3], longest: f64) {
    let scale = if longest > 0.0 { REACH / longest } else { 0.0 };
    let (right, up, height) = (-y * scale, x * scale, z * scale);
    let length = right.hypot(up);
    put!(out, "<svg class=\"arrow\" role=\"img\" viewBox=\"-40 -40 104 80\"><title>moves ", { fixed(x * 100.0, 1) });
    put!(out, " cm forward, ", { fixed(y * 100.0, 1) }, " cm left, ", { fixed(z * 100.0, 1) }, " cm up</title>");
    put!(out, "<circle class=\"ring\" r=\"", { REACH }, "\"/><path class=\"grid\" d=\"M-34 0H34M0-34V34M46 0H60\"/>");
    put!(out, "<path class=\"shaft ", { hue(label) }, "\" d=\"M0 0L", { place(right) }, " ", { place(-up) });
    if length > 5.0 {
        // The head: two strokes, each 150° from the direction of the shaft.
        let (dx, dy) = (right / length * 6.5, -up / length * 6.5);
        for (cos, sin) in [(-0.82, 0.57), (-0.82, -0.57)] {
            put!(out, "M", { place(right) }, " ", { place(-up) }, "l", { place(dx * cos - dy * sin) }, " ");
            put!(out, { place(dx * sin + dy * cos) });
        }
    }
    put!(out, "\"/><rect class=\"bar ", { hue(label) }, "\" x=\"49\" y=\"", { place((-height).min(0.0)) });
    put!(out, "\" width=\"8\" height=\"", { place(height.abs().max(0.6)) }, "\"/>");
    put!(out, "</svg>");
}

fn strip(out: &mut Html, report: &Report, skill: &Skill, example: &Example) {
    let last = example.end_frame.saturating_sub(1);
    let dataset = dataset_name(report, example.dataset);
    put!(out, "<figure class=\"strip\"><div role=\"img\" aria-label=\"", { skill.title() }, ": ");
    put!(out, { counted(example.pictures.len() as u64, "picture", "pictures") }, " of ", { dataset }, "episode ");
    put!(out, { example.episode }, ", frames ", { example.first_frame }, " to ", { last }, "\">");
    let mut unknown = 0;
    for picture in &example.pictures {
        match picture.media_type() {
            Some(media) => {
                put!(out, "<img alt=\"\" decoding=\"async\" src=\"data:", { media }, ";base64,", { picture.base64() });
                put!(out, "\">");
            }
            None => unknown += 1,
        }
    }
    put!(out, "</div><figcaption>", { dataset }, "episode ", { example.episode }, ", frames ", { example.first_frame });
    put!(out, "–", { last });
    if unknown > 0 {
        put!(out, "; ", { unknown }, " omitted because they are neither PNG nor JPEG");
    }
    put!(out, "</figcaption></figure>");
}

/// The name of an episode's dataset with a space behind it where a report has several datasets; empty otherwise.
pub(crate) fn dataset_name(report: &Report, dataset: u64) -> String {
    let named = usize::try_from(dataset).ok().and_then(|index| report.run.datasets.get(index));
    match named {
        Some(dataset) if report.run.datasets.len() > 1 => format!("{} ", dataset.name),
        _ => String::new(),
    }
}
