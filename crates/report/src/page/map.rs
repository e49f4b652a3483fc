//! Fragments in the plane. Each colouring is a layer of its own, one path for each category; radio buttons choose the layer,
//! so that the choice needs no script. Over them lies one transparent layer of points that tell where they are from.

use super::html::{Html, missing, put};
use super::number::{count, place};
use super::palette::{hatch, hue, mark};
use super::scale::Scale;
use crate::motion::ClusterMap;
use crate::report::Report;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 520.0;
const MARGIN: f64 = 26.0;

/// Longer names stand in the legend alone.
const LONGEST_NAME: usize = 18;

/// A category whose marks lie further than this from their middle, in the median, gets no label in the map.
const MAX_SPREAD: f64 = 90.0;

/// Height of a label.
const LINE: f64 = 17.0;

/// A way to colour the map.
struct Colouring<'a> {
    /// `skill`, `phase`, `task`.
    name: &'static str,
    labels: &'a [i64],
    names: Vec<&'a str>,
}

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Map of fragments</h2>\n<figure id=\"fig-map\" class=\"map\">\n");
    match &report.map {
        Some(map) if map.x.iter().zip(&map.y).any(|(x, y)| x.is_finite() && y.is_finite()) => draw(out, report, map),
        Some(_) => missing(out, "The map has no fragment with finite coordinates."),
        None => missing(out, "No projection of fragments was computed for this run."),
    }
    put!(out, "</figure>\n");
}

fn draw(out: &mut Html, report: &Report, map: &ClusterMap) {
    put!(out, "<p class=\"lead\">Each mark is one fragment of motion, placed by ", { map.method });
    put!(out, ". Marks that are close look alike to the model.</p>\n");
    let mut colourings = vec![Colouring {
        name: "skill",
        labels: &map.skill,
        names: report.skills.iter().map(|skill| skill.name.as_str()).collect(),
    }];
    for (name, labels, names) in [("phase", &map.phase, &report.phases), ("task", &map.task, &report.tasks)] {
        if labels.iter().any(|label| *label >= 0) && !names.is_empty() {
            colourings.push(Colouring { name, labels, names: names.iter().map(String::as_str).collect() });
        }
    }
    put!(out, "<div class=\"by\" role=\"radiogroup\" aria-label=\"Colour by\"><span>Colour by</span>");
    for (index, colouring) in colourings.iter().enumerate() {
        put!(out, "<label><input type=\"radio\" name=\"by\" id=\"by-", { colouring.name }, "\"");
        put!(out, { if index == 0 { " checked" } else { "" } }, "> ");
        out.markup(match colouring.name {
            "phase" => "true phase",
            "task" => "task",
            _ => "skill",
        });
        put!(out, "</label>");
    }
    put!(out, "</div>\n");
    absent(out, report, map);
    let places = placed(map);
    put!(out, "<div class=\"plane\"><svg role=\"img\" viewBox=\"0 0 ", { WIDTH }, " ", { HEIGHT }, "\"><title>Map of ");
    put!(out, { count(places.len() as u64) }, " fragments in the plane</title>\n");
    for colouring in &colourings {
        layer(out, colouring, &places);
    }
    put!(out, "<g class=\"hits\">\n");
    for (index, x, y) in &places {
        put!(out, "<circle class=\"hit\" cx=\"", { place(*x) }, "\" cy=\"", { place(*y) }, "\" r=\"5\"><title>");
        describe(out, &colourings, map, *index);
        put!(out, "</title></circle>\n");
    }
    put!(out, "</g></svg></div>\n");
    for colouring in &colourings {
        legend(out, colouring);
    }
}

/// What the map cannot be coloured by is said, so that nobody looks for a button.
fn absent(out: &mut Html, report: &Report, map: &ClusterMap) {
    let none = |labels: &[i64]| !labels.iter().any(|label| *label >= 0);
    let what = match (report.phases.is_empty() || none(&map.phase), report.tasks.is_empty() || none(&map.task)) {
        (true, true) => "The data has neither true phases nor tasks to colour by.",
        (true, false) => "The data has no true phases to colour by.",
        (false, true) => "The data has no tasks to colour by.",
        (false, false) => return,
    };
    missing(out, what);
}

/// Indices and places of the fragments that can be drawn. One scale serves both directions: distances are what the map
/// is about.
fn placed(map: &ClusterMap) -> Vec<(usize, f64, f64)> {
    let points: Vec<(usize, f64, f64)> = map
        .x
        .iter()
        .zip(&map.y)
        .enumerate()
        .filter(|(_, (x, y))| x.is_finite() && y.is_finite())
        .map(|(index, (x, y))| (index, x.clamp(-1e150, 1e150), y.clamp(-1e150, 1e150)))
        .collect();
    let range = |of: fn(&(usize, f64, f64)) -> f64| {
        points.iter().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let ((left, right), (low, high)) = (range(|point| point.1), range(|point| point.2));
    let (wide, tall) = (WIDTH - 2.0 * MARGIN, HEIGHT - 2.0 * MARGIN);
    // Data units for each unit of the figure; the tighter direction decides.
    let unit = ((right - left) / wide).max((high - low) / tall).max(f64::MIN_POSITIVE);
    let (cx, cy) = (left / 2.0 + right / 2.0, low / 2.0 + high / 2.0);
    let across = Scale::between(cx - unit * wide / 2.0, cx + unit * wide / 2.0, MARGIN, WIDTH - MARGIN);
    let up = Scale::between(cy - unit * tall / 2.0, cy + unit * tall / 2.0, HEIGHT - MARGIN, MARGIN);
    points.into_iter().map(|(index, x, y)| (index, across.place(x), up.place(y))).collect()
}

fn layer(out: &mut Html, colouring: &Colouring<'_>, places: &[(usize, f64, f64)]) {
    put!(out, "<g class=\"layer by-", { colouring.name }, "\">\n");
    for label in -1..colouring.names.len() as i64 {
        let own = || places.iter().filter(|(index, ..)| colouring.label(*index) == label);
        if own().next().is_none() {
            continue;
        }
        put!(out, "<path class=\"mark ", { hue(label) }, "\" data-label=\"", { label }, "\" d=\"");
        for (_, x, y) in own() {
            mark(out, label, *x, *y, 3.2);
        }
        put!(out, "\"/>\n");
    }
    // Labels over all marks. A category that is spread over the map has no place of its own, only the legend names it.
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (index, name) in colouring.names.iter().enumerate() {
        let label = index as i64;
        let own = || places.iter().filter(|(index, ..)| colouring.label(*index) == label);
        let (Some(x), Some(y)) = (median(own().map(|point| point.1)), median(own().map(|point| point.2))) else {
            continue;
        };
        // At a mark of its own: the middle of two clouds is a place where there is nothing.
        let near = |point: &(usize, f64, f64)| (point.1 - x).hypot(point.2 - y);
        let Some((_, x, y)) = own().min_by(|a, b| near(a).total_cmp(&near(b))).copied() else { continue };
        let far = median(own().map(|point| (point.1 - x).hypot(point.2 - y))).unwrap_or(0.0);
        if far > MAX_SPREAD {
            continue;
        }
        let named = name.chars().count() <= LONGEST_NAME;
        let wide = if named { 24.0 + 7.2 * name.chars().count() as f64 } else { 22.0 };
        let Some(y) = free_place(&taken, x, y, wide) else { continue };
        taken.push((x, y, wide));
        put!(
            out,
            "<text class=\"at\" x=\"",
            { place(x) },
            "\" y=\"",
            { place(y) },
            "\" dy=\".35em\" text-anchor=\"middle\" "
        );
        put!(out, "data-label=\"", { label }, "\">", { index + 1 });
        if named {
            put!(out, "<tspan class=\"name\"> ", { name }, "</tspan>");
        }
        put!(out, "</text>");
    }
    put!(out, "</g>\n");
}

/// The median, which one straggler does not move.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The height nearest to `y` at which a label covers none that is there, `None` if it would have to go far.
fn free_place(taken: &[(f64, f64, f64)], x: f64, y: f64, wide: f64) -> Option<f64> {
    let free = |at: f64| taken.iter().all(|(tx, ty, tw)| (tx - x).abs() > (tw + wide) / 2.0 || (ty - at).abs() > LINE);
    let steps = (0..4).flat_map(|step| [f64::from(step) * LINE, -f64::from(step) * LINE]);
    steps.map(|step| y + step * 1.05).find(|at| (MARGIN / 2.0..HEIGHT - MARGIN / 2.0).contains(at) && free(*at))
}

fn legend(out: &mut Html, colouring: &Colouring<'_>) {
    put!(out, "<ul class=\"legend by-", { colouring.name }, "\" aria-label=\"Legend\">");
    let mut sizes = vec![0_u64; colouring.names.len()];
    let mut none = 0;
    for label in colouring.labels {
        match usize::try_from(*label).ok().and_then(|index| sizes.get_mut(index)) {
            Some(size) => *size += 1,
            None => none += 1,
        }
    }
    for (index, (name, size)) in colouring.names.iter().zip(&sizes).enumerate() {
        let label = index as i64;
        put!(out, "<li><button type=\"button\" data-label=\"", { label }, "\"><span class=\"swatch ", { hue(label) });
        put!(out, " ", { hatch(label) }, "\">", { index + 1 }, "</span> ", { name }, " <small>", { count(*size) });
        put!(out, "</small></button></li>");
    }
    if none > 0 {
        put!(out, "<li><button type=\"button\" data-label=\"-1\"><span class=\"swatch cx\">×</span> none <small>");
        put!(out, { count(none) }, "</small></button></li>");
    }
    put!(out, "</ul>\n");
}

fn describe(out: &mut Html, colourings: &[Colouring<'_>], map: &ClusterMap, index: usize) {
    if let Some(episode) = map.episode.get(index) {
        put!(out, "episode ", { episode });
    }
    if let (Some(first), Some(end)) = (map.first_frame.get(index), map.end_frame.get(index)) {
        put!(out, ", frames ", { first }, "–", { end.saturating_sub(1) });
    }
    for colouring in colourings {
        let label = colouring.label(index);
        let name = usize::try_from(label).ok().and_then(|label| colouring.names.get(label)).copied();
        put!(out, "\n", { colouring.name }, ": ", { name.unwrap_or("none") });
    }
}

impl Colouring<'_> {
    /// The label of a fragment, −1 where it has none that is known.
    fn label(&self, index: usize) -> i64 {
        let label = self.labels.get(index).copied().unwrap_or(-1);
        if (0..self.names.len() as i64).contains(&label) { label } else { -1 }
    }
}
