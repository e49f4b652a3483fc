//! Line charts: thin axes, a few ticks, labels at the ends of the lines instead of a legend.

use super::html::{Html, missing, put};
use super::number::{place, short};
use super::scale::{Kind, Scale};

/// Size of a chart in its own units; it is drawn as wide as its column.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 196.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 166.0;
const LEFT: f64 = 40.0;

/// Maximum number of points of a line; a longer line is thinned to the lowest and the highest point of each interval.
const MAX_POINTS: usize = 360;

/// Labels at the ends of lines keep this distance.
const LABEL_GAP: f64 = 13.0;

/// A line of a chart.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The label at its end; empty for none.
    pub(crate) label: &'a str,
    /// Class of its colour.
    pub(crate) colour: &'static str,
    /// `solid`, `dashed` or `faint`.
    pub(crate) look: &'static str,
    /// Its points, by ascending x. Those that are not finite interrupt it.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether each point has a dot with its value as a tooltip.
    pub(crate) dots: bool,
}

/// A chart of lines.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    /// Identifier of the figure in the page.
    pub(crate) id: &'a str,
    /// Title over it.
    pub(crate) title: &'a str,
    /// Unit or direction, in smaller type behind the title.
    pub(crate) unit: &'a str,
    /// What the horizontal axis counts.
    pub(crate) x_label: &'a str,
    /// How the vertical axis is laid out.
    pub(crate) kind: Kind,
    /// Room at the right for the labels.
    pub(crate) label_room: f64,
    /// The lines; the last is on top.
    pub(crate) lines: Vec<Line<'a>>,
    /// The sentence that replaces a chart without points.
    pub(crate) if_empty: &'a str,
}

/// Draws a chart as a figure.
pub(crate) fn draw(out: &mut Html, chart: &Chart<'_>) {
    put!(out, "<figure class=\"chart\" id=\"", { chart.id }, "\"><figcaption><b>", { chart.title }, "</b>");
    let drawn: Vec<&Line<'_>> = chart.lines.iter().filter(|line| line.points.iter().any(is_finite)).collect();
    let points = || drawn.iter().flat_map(|line| line.points.iter().copied().filter(is_finite));
    let y = Scale::over(points().map(|point| point.1), chart.kind, BOTTOM, TOP);
    if !chart.unit.is_empty() || y.is_log() {
        put!(out, " <span class=\"unit\">", { chart.unit });
        out.markup(match (y.is_log(), chart.unit.is_empty()) {
            (true, true) => "logarithmic axis",
            (true, false) => ", logarithmic axis",
            (false, _) => "",
        });
        out.markup("</span>");
    }
    out.markup("</figcaption>");
    if drawn.is_empty() {
        missing(out, chart.if_empty);
        out.markup("</figure>\n");
        return;
    }
    let right = WIDTH - chart.label_room;
    let x = across(points().map(|point| point.0), right);
    put!(out, "<svg role=\"img\" viewBox=\"0 0 ", { WIDTH }, " ", { HEIGHT }, "\"><title>", { chart.title }, ": ");
    for (index, line) in drawn.iter().filter(|line| !line.label.is_empty()).enumerate() {
        let Some(last) = line.points.iter().rev().find(|point| is_finite(point)) else { continue };
        out.markup(if index == 0 { "" } else { ", " });
        put!(out, { line.label }, " ends at ", { short(last.1) });
    }
    out.markup("</title>\n");
    for (value, label) in y.ticks() {
        let at = place(y.place(value));
        put!(out, "<path class=\"grid\" d=\"M", { LEFT }, " ", { at }, "H", { right }, "\"/>");
        put!(out, "<text class=\"tick\" x=\"", { LEFT - 6.0 }, "\" y=\"", { at }, "\" dy=\".32em\" ");
        put!(out, "text-anchor=\"end\">", { label }, "</text>");
    }
    for (value, label) in x_ticks(&x, points().map(|point| point.0)) {
        put!(out, "<text class=\"tick\" x=\"", { place(x.place(value)) }, "\" y=\"", { BOTTOM + 15.0 });
        put!(out, "\" text-anchor=\"middle\">", { label }, "</text>");
    }
    put!(out, "<text class=\"tick\" x=\"", { place((LEFT + right) / 2.0) }, "\" y=\"", { HEIGHT - 2.0 });
    put!(out, "\" text-anchor=\"middle\">", { chart.x_label }, "</text>\n");
    for line in &drawn {
        draw_line(out, line, &x, &y);
    }
    draw_labels(out, &drawn, &x, &y, right);
    out.markup("</svg></figure>\n");
}

fn draw_line(out: &mut Html, line: &Line<'_>, x: &Scale, y: &Scale) {
    put!(out, "<path class=\"line ", { line.look }, " ", { line.colour }, "\" d=\"");
    let mut broken = true;
    for point in thinned(&line.points) {
        if !is_finite(&point) {
            broken = true;
            continue;
        }
        out.markup(if broken { "M" } else { "L" });
        put!(out, { place(x.place(point.0)) }, " ", { place(y.place(point.1)) });
        broken = false;
    }
    out.markup("\"/>");
    let finite = line.points.iter().filter(|point| is_finite(point)).count();
    // A single point makes no line; without a dot it would not be seen.
    if line.dots || finite == 1 {
        for point in line.points.iter().filter(|point| is_finite(point)) {
            put!(out, "<circle class=\"dot ", { line.colour }, "\" cx=\"", { place(x.place(point.0)) }, "\" cy=\"");
            put!(out, { place(y.place(point.1)) }, "\" r=\"3.5\"><title>", { line.label }, ": ", { short(point.1) });
            out.markup("</title></circle>");
        }
    }
    out.markup("\n");
}

/// Labels at the ends of lines, moved apart where they would cover each other.
fn draw_labels(out: &mut Html, lines: &[&Line<'_>], x: &Scale, y: &Scale, right: f64) {
    let mut labels: Vec<(f64, f64, &Line<'_>)> = Vec::new();
    for line in lines.iter().filter(|line| !line.label.is_empty()) {
        if let Some(last) = line.points.iter().rev().find(|point| is_finite(point)) {
            labels.push((y.place(last.1), x.place(last.0), line));
        }
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    for index in 1..labels.len() {
        labels[index].0 = labels[index].0.max(labels[index - 1].0 + LABEL_GAP);
    }
    let over = labels.last().map_or(0.0, |last| (last.0 - BOTTOM).max(0.0));
    for (at, end, line) in labels {
        // Next to the last point, or at the right edge if that is close to it.
        let at_end = if right - end < 30.0 { right } else { end };
        put!(out, "<text class=\"end ", { line.colour }, "\" x=\"", { place(at_end + 8.0) }, "\" y=\"");
        put!(out, { place(at - over) }, "\" dy=\".32em\">", { line.label }, "</text>");
    }
    out.markup("\n");
}

/// The horizontal scale: exactly the values' range, since iterations and steps begin and end where they do.
fn across(values: impl Iterator<Item = f64>, right: f64) -> Scale {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    Scale::between(low.max(-1e150), high.min(1e150), LEFT + 8.0, right - 4.0)
}

/// Ticks of the horizontal axis: each value if they are few whole numbers, round ones otherwise.
fn x_ticks(scale: &Scale, values: impl Iterator<Item = f64>) -> Vec<(f64, String)> {
    let mut own: Vec<f64> = Vec::new();
    for value in values {
        if own.len() > 8 {
            break;
        }
        if !own.contains(&value) {
            own.push(value);
        }
    }
    if let [only] = own[..] {
        return vec![(only, if only.fract() == 0.0 && only.abs() < 1e6 { only.to_string() } else { short(only) })];
    }
    if own.len() <= 8 && own.iter().all(|value| value.fract() == 0.0 && value.abs() < 100.0) {
        return own.into_iter().map(|value| (value, value.to_string())).collect();
    }
    scale.ticks()
}

fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// At most [`MAX_POINTS`] points: the lowest and the highest of each interval, so that peaks stay.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MAX_POINTS / 2);
    let mut kept = Vec::with_capacity(MAX_POINTS);
    for part in points.chunks(stretch) {
        let finite = || part.iter().enumerate().filter(|(_, point)| is_finite(point));
        let low = finite().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let high = finite().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        match (low, high) {
            (Some((i, low)), Some((j, high))) if i != j => {
                kept.extend(if i < j { [*low, *high] } else { [*high, *low] })
            }
            (Some((_, only)), _) => kept.push(*only),
            _ => kept.push((f64::NAN, f64::NAN)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_and_order() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[5003].1 = 99.0;
        let kept = thinned(&points);
        assert!(kept.len() <= MAX_POINTS);
        assert!(kept.contains(&(5003.0, 99.0)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn series_without_a_finite_point_are_said_in_words() {
        for points in [vec![], vec![(f64::NAN, 1.0)], vec![(1.0, f64::INFINITY)]] {
            let line = Line { label: "a", colour: "c0", look: "solid", points, dots: false };
            let chart = Chart {
                id: "fig",
                title: "t",
                unit: "",
                x_label: "step",
                kind: Kind::PerhapsLog,
                label_room: 40.0,
                lines: vec![line],
                if_empty: "Nothing was measured.",
            };
            let mut out = Html::default();
            draw(&mut out, &chart);
            let page = out.into_string();
            assert!(page.contains("Nothing was measured.") && !page.contains("<svg"));
        }
    }
}
