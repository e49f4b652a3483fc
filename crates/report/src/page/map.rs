//! Segments in the plane. Each colouring is one layer with a path for each category; radio buttons choose the layer, so that
//! the choice needs no script. A transparent layer of points above them has the tooltips.

use super::html::{Html, missing, put};
use super::number::{count, counted, fixed, place};
use super::palette::{hue, mark, swatch};
use super::scale::Scale;
use super::skills::dataset_name;
use crate::motion::{ClusterMap, Skill, badges};
use crate::report::Report;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 520.0;
const MARGIN: f64 = 26.0;

/// Longer names are in the legend only.
const LONGEST_NAME: usize = 24;

/// A category whose marks lie further than this from their middle, in the median, gets no label in the map.
const MAX_SPREAD: f64 = 90.0;

/// Height of a label.
const LINE: f64 = 17.0;

/// A way to colour the map.
struct Colouring<'a> {
    /// `skill`, `phase`, `task`.
    name: &'static str,
    labels: &'a [i64],
    categories: Vec<Category>,
}

/// What marks of one colour have in common.
struct Category {
    /// Its short label.
    badge: String,
    /// Its whole name.
    title: String,
    /// What the map shows behind the badge.
    in_map: Option<String>,
}

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Map of segments</h2>\n<figure id=\"fig-map\" class=\"map\">\n");
    match &report.map {
        Some(map) if map.x.iter().zip(&map.y).any(|(x, y)| x.is_finite() && y.is_finite()) => draw(out, report, map),
        Some(_) => missing(out, "The map has no segment with finite coordinates."),
        None => missing(out, "No projection of segments was computed for this run."),
    }
    put!(out, "</figure>\n");
}

fn draw(out: &mut Html, report: &Report, map: &ClusterMap) {
    put!(out, "<p class=\"lead\">Each mark is one segment, placed by ", { map.method });
    put!(out, ". Segments that are close to each other are behaviourally similar under the kernel.</p>\n");
    kernel(out, report);
    let mut colourings = vec![by_skill(report, map)];
    for (name, labels, names) in [("phase", &map.phase, &report.phases), ("task", &map.task, &report.tasks)] {
        if labels.iter().any(|label| *label >= 0) && !names.is_empty() {
            let category = |(index, name): (usize, &String)| Category {
                badge: index.to_string(),
                title: name.clone(),
                in_map: Some(name.clone()),
            };
            colourings.push(Colouring { name, labels, categories: names.iter().enumerate().map(category).collect() });
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
    put!(out, { count(places.len() as u64) }, " segments in the plane</title>\n");
    for colouring in &colourings {
        layer(out, colouring, &places);
    }
    put!(out, "<g class=\"hits\">\n");
    for (index, x, y) in &places {
        put!(out, "<circle class=\"hit\" cx=\"", { place(*x) }, "\" cy=\"", { place(*y) }, "\" r=\"5\"><title>");
        describe(out, report, &colourings, map, *index);
        put!(out, "</title></circle>\n");
    }
    put!(out, "</g></svg></div>\n");
    for colouring in &colourings {
        legend(out, colouring);
    }
}

fn by_skill<'a>(report: &Report, map: &'a ClusterMap) -> Colouring<'a> {
    let category =
        |(skill, badge): (&Skill, String)| Category { badge, title: skill.title(), in_map: skill.readable.clone() };
    let categories = report.skills.iter().zip(badges(&report.skills)).map(category).collect();
    Colouring { name: "skill", labels: &map.skill, categories }
}

/// The kernel behind the map, and how far it agrees with its reference.
fn kernel(out: &mut Html, report: &Report) {
    let Some(kernel) = &report.kernel else { return };
    put!(out, "<p class=\"lead\" id=\"fig-kernel\">Kernel: <code>", { kernel.kernel }, "</code>. ");
    if let Some(rho) = kernel.spearman.filter(|rho| rho.is_finite()) {
        put!(out, "Its distances agree with the Monte-Carlo kernel to Spearman’s ρ = ", { fixed(rho, 3) });
        if let Some(pairs) = kernel.pairs {
            put!(out, " over ", { counted(pairs, "held-out pair", "held-out pairs") });
        }
        put!(out, ". ");
    }
    match kernel.samples {
        0 | 1 => put!(out, "The Monte-Carlo kernel follows the means of the world model and draws no samples.</p>\n"),
        more => put!(out, "The Monte-Carlo kernel draws ", { count(more) }, " rollouts from each start.</p>\n"),
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

/// Indices and places of the segments that can be drawn. One scale serves both directions, so that distances are comparable.
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
    for label in -1..colouring.categories.len() as i64 {
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
    // Labels over all marks. A category that is spread over the map is named in the legend only.
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (index, category) in colouring.categories.iter().enumerate() {
        let label = index as i64;
        let own = || places.iter().filter(|(index, ..)| colouring.label(*index) == label);
        let (Some(x), Some(y)) = (median(own().map(|point| point.1)), median(own().map(|point| point.2))) else {
            continue;
        };
        // At one of its marks: the middle of two clouds can be empty.
        let near = |point: &(usize, f64, f64)| (point.1 - x).hypot(point.2 - y);
        let Some((_, x, y)) = own().min_by(|a, b| near(a).total_cmp(&near(b))).copied() else { continue };
        let far = median(own().map(|point| (point.1 - x).hypot(point.2 - y))).unwrap_or(0.0);
        if far > MAX_SPREAD {
            continue;
        }
        let name = category.in_map.as_ref().filter(|name| name.chars().count() <= LONGEST_NAME);
        let wide = label_width(&category.badge, name.map(String::as_str));
        let x = inside(x, wide);
        let Some(y) = free_place(&taken, x, y, wide) else { continue };
        taken.push((x, y, wide));
        put!(out, "<text class=\"at\" x=\"", { place(x) }, "\" y=\"", { place(y) }, "\" dy=\".35em\" ");
        put!(out, "text-anchor=\"middle\" data-label=\"", { label }, "\">", { category.badge });
        if let Some(name) = name {
            put!(out, "<tspan class=\"name\"> ", { name }, "</tspan>");
        }
        put!(out, "</text>");
    }
    put!(out, "</g>\n");
}

/// An upper bound of a label's width, with the outline of its letters. The badge is bold and larger than the name; on small
/// screens badges are larger still, and names are hidden.
fn label_width(badge: &str, name: Option<&str>) -> f64 {
    const BADGE: f64 = 15.0;
    const BADGE_ON_SMALL_SCREENS: f64 = 26.0;
    const NAME: f64 = 12.0;
    const OUTLINE: f64 = 8.0;
    let ems = |text: &str| text.chars().map(em).sum::<f64>();
    let name = name.map_or(0.0, |name| NAME * (0.5 + ems(name)));
    (BADGE * ems(badge) + name).max(BADGE_ON_SMALL_SCREENS * ems(badge)) + OUTLINE
}

/// An upper bound of the width of a bold letter as a multiple of the size of the font.
fn em(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ' ' => 0.45,
        'a'..='z' if !matches!(letter, 'm' | 'w') => 0.74,
        '0'..='9' => 0.72,
        // Capitals, wide letters, and scripts of which a letter is as wide as it is high.
        _ => 1.15,
    }
}

/// The place nearest to `x` at which a label of this width, centred there, is not cut off at the edge.
fn inside(x: f64, wide: f64) -> f64 {
    let half = wide.min(WIDTH) / 2.0;
    x.clamp(half, WIDTH - half)
}

/// The median, which outliers do not move.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The height nearest to `y` at which a label covers no other, `None` if that is far away.
fn free_place(taken: &[(f64, f64, f64)], x: f64, y: f64, wide: f64) -> Option<f64> {
    let free = |at: f64| taken.iter().all(|(tx, ty, tw)| (tx - x).abs() > (tw + wide) / 2.0 || (ty - at).abs() > LINE);
    let steps = (0..4).flat_map(|step| [f64::from(step) * LINE, -f64::from(step) * LINE]);
    steps.map(|step| y + step * 1.05).find(|at| (MARGIN / 2.0..HEIGHT - MARGIN / 2.0).contains(at) && free(*at))
}

fn legend(out: &mut Html, colouring: &Colouring<'_>) {
    put!(out, "<ul class=\"legend by-", { colouring.name }, "\" aria-label=\"Legend\">");
    let mut sizes = vec![0_u64; colouring.categories.len()];
    let mut none = 0;
    for label in colouring.labels {
        match usize::try_from(*label).ok().and_then(|index| sizes.get_mut(index)) {
            Some(size) => *size += 1,
            None => none += 1,
        }
    }
    let mut item = |label: i64, badge: &str, title: &str, size: u64| {
        put!(out, "<li><button type=\"button\" data-label=\"", { label }, "\">");
        swatch(out, label, badge);
        put!(out, " ", { title }, " <small>", { count(size) }, "</small></button></li>");
    };
    for ((category, size), label) in colouring.categories.iter().zip(&sizes).zip(0..) {
        item(label, &category.badge, &category.title, *size);
    }
    if none > 0 {
        item(-1, "×", "none", none);
    }
    put!(out, "</ul>\n");
}

fn describe(out: &mut Html, report: &Report, colourings: &[Colouring<'_>], map: &ClusterMap, index: usize) {
    if let Some(dataset) = map.dataset.get(index) {
        put!(out, { dataset_name(report, *dataset) });
    }
    if let Some(episode) = map.episode.get(index) {
        put!(out, "episode ", { episode });
    }
    if let (Some(first), Some(end)) = (map.first_frame.get(index), map.end_frame.get(index)) {
        put!(out, ", frames ", { first }, "–", { end.saturating_sub(1) });
    }
    for colouring in colourings {
        let label = colouring.label(index);
        let category = usize::try_from(label).ok().and_then(|label| colouring.categories.get(label));
        put!(out, "\n", { colouring.name }, ": ", { category.map_or("none", |category| category.title.as_str()) });
    }
}

impl Colouring<'_> {
    /// The label of a segment, −1 where it has none that is known.
    fn label(&self, index: usize) -> i64 {
        let label = self.labels.get(index).copied().unwrap_or(-1);
        if (0..self.categories.len() as i64).contains(&label) { label } else { -1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_9_labels_at_the_edge_are_moved_inside() {
        let wide = label_width("13", Some("approach handle"));
        assert_eq!(inside(WIDTH - MARGIN, wide), WIDTH - wide / 2.0);
        assert_eq!(inside(0.0, wide), wide / 2.0);
        assert_eq!(inside(WIDTH / 2.0, wide), WIDTH / 2.0);
        // Letters that are as wide as high take more room than narrow ones.
        assert!(label_width("1", Some("引き出しを開ける")) > label_width("1", Some("lift lid")) + 30.0);
        // Even what is wider than the map has a place.
        assert_eq!(inside(3.0, 10.0 * WIDTH), WIDTH / 2.0);
    }

    #[test]
    fn a_label_goes_where_it_covers_no_other() {
        assert_eq!(free_place(&[], 100.0, 100.0, 20.0), Some(100.0));
        let found = free_place(&[(100.0, 100.0, 20.0)], 105.0, 100.0, 20.0);
        assert!(found.is_some_and(|y| (y - 100.0).abs() > LINE), "{found:?}");
        assert_eq!(free_place(&[(400.0, 100.0, 20.0)], 105.0, 100.0, 20.0), Some(100.0));
    }
}
