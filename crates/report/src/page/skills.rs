//! The skills: figures, mean displacement as an arrow, and what they look like in pictures.

use super::html::{Html, missing, put};
use super::number::{count, counted, fixed, percent, place};
use super::palette::{hatch, hue};
use crate::motion::{Example, Skill};
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
    put!(out, "<p class=\"lead\">A skill is a class of stretches of motion that do the same thing. ");
    let pictures = report.skills.iter().flat_map(|skill| &skill.examples).any(|example| !example.pictures.is_empty());
    if pictures {
        put!(out, "Each strip is one example, from its first frame to its last. ");
    }
    let moves = report.skills.iter().any(|skill| skill.displacement.is_some());
    if moves {
        put!(out, "Arrows show the gripper’s mean displacement, all on one scale: in the plane as seen from above ");
        put!(out, "(up is forward), and the bar beside it is height.");
    }
    put!(out, "</p>\n");
    if !moves {
        missing(out, "Displacements were not recorded, so there are no arrows.");
    }
    if !pictures {
        let recorded = report.run.datasets.iter().any(|dataset| dataset.pictures);
        let why = if recorded {
            "The data has pictures, but none were put into this report."
        } else {
            "The data has no pictures, so skills are described by figures alone."
        };
        missing(out, why);
    }
    if report.phases.is_empty() {
        missing(out, "The data has no true phases, so purity is not known.");
    }
    let longest = report
        .skills
        .iter()
        .filter_map(|skill| skill.displacement)
        .flat_map(|[x, y, z]| [x.hypot(y), z.abs()])
        .filter(|length| length.is_finite())
        .fold(0.0, f64::max);
    put!(out, "<div class=\"skills\">\n");
    for (index, skill) in report.skills.iter().enumerate() {
        card(out, report, index, skill, longest);
    }
    put!(out, "</div></div>\n");
}

fn card(out: &mut Html, report: &Report, index: usize, skill: &Skill, longest: f64) {
    let label = index as i64;
    put!(
        out,
        "<article class=\"skill\" id=\"skill-",
        { index + 1 },
        "\"><h3><span class=\"swatch ",
        { hue(label) },
        " "
    );
    put!(out, { hatch(label) }, "\">", { index + 1 }, "</span> ", { skill.name }, "</h3>\n<div class=\"about\">");
    if let Some(displacement) = skill.displacement.filter(|part| part.iter().all(|value| value.is_finite())) {
        arrow(out, label, displacement, longest);
    }
    put!(out, "<dl><div><dt>stretches</dt><dd>", { count(skill.size) }, "</dd></div><div><dt>mean length</dt><dd>");
    put!(out, { fixed(skill.mean_length, 1) }, " frames</dd></div>");
    if let Some(purity) = skill.purity {
        let phase = skill.main_phase.and_then(|phase| report.phases.get(usize::try_from(phase).ok()?));
        put!(out, "<div><dt>purity</dt><dd>", { percent(purity) });
        if let Some(phase) = phase {
            put!(out, " ", { phase });
        }
        put!(out, "</dd></div>");
    }
    put!(out, "<div><dt>displacement</dt><dd>");
    match skill.displacement {
        Some(parts) => {
            let [x, y, z] = parts.map(|part| fixed(part * 100.0, 1));
            put!(out, { x }, ", ", { y }, ", ", { z }, " cm");
        }
        None => put!(out, "not recorded"),
    }
    put!(out, "</dd></div>");
    if let Some(gripper) = skill.gripper.filter(|value| value.is_finite()) {
        let cm = fixed(gripper.abs() * 100.0, 1);
        // Less than two millimetres is noise of the fingers' sensors.
        let words = match gripper {
            closing if closing < -0.002 => format!("closes {cm} cm"),
            opening if opening > 0.002 => format!("opens {cm} cm"),
            _ => "keeps still".to_owned(),
        };
        put!(out, "<div><dt>gripper</dt><dd>", { words }, "</dd></div>");
    }
    put!(out, "</dl></div>\n<div class=\"strips\">");
    for example in skill.examples.iter().filter(|example| !example.pictures.is_empty()) {
        strip(out, skill, example);
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

fn strip(out: &mut Html, skill: &Skill, example: &Example) {
    let last = example.end_frame.saturating_sub(1);
    put!(out, "<figure class=\"strip\"><div role=\"img\" aria-label=\"", { skill.name }, ": ");
    put!(out, { counted(example.pictures.len() as u64, "picture", "pictures") }, " of episode ", { example.episode });
    put!(out, ", frames ", { example.first_frame }, " to ", { last }, "\">");
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
    put!(out, "</div><figcaption>episode ", { example.episode }, ", frames ", { example.first_frame }, "–", { last });
    if unknown > 0 {
        put!(out, "; ", { unknown }, " left out, neither PNG nor JPEG");
    }
    put!(out, "</figcaption></figure>");
}
