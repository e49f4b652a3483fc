//! F1 against noise, one line for each cutter and one panel for each dataset, as a standalone SVG.

use std::fmt::Write as _;

use super::{AnnotateReport, CutterReport};
use crate::svg::{COLOURS, escaped};

/// The size of a panel, the axes in it, and how many panels stand in a row.
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 316.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 214.0;
const ACROSS: usize = 3;

/// The height of a line of the legend.
const LINE: f64 = 18.0;

/// Draws the boundary F1 at ±0.2 s over the levels of noise. Reports without noise are left out; nothing without any.
pub fn noise_plot(reports: &[AnnotateReport]) -> Option<String> {
    let reports: Vec<&AnnotateReport> = reports.iter().filter(|report| !report.disturbed.is_empty()).collect();
    let mut names: Vec<&str> = Vec::new();
    for report in &reports {
        for one in &report.disturbed[0].cutters {
            if !names.contains(&one.name.as_str()) {
                names.push(&one.name);
            }
        }
    }
    if reports.is_empty() {
        return None;
    }
    let across = reports.len().min(ACROSS);
    let rows = reports.len().div_ceil(ACROSS);
    let legend = names.len().div_ceil(3) as f64 * LINE + 20.0;
    let (width, height) = (WIDTH * across.max(3) as f64, HEIGHT * rows as f64 + legend);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"sans-serif\" font-size=\"12\"><title>Boundary F1 at 0.2 seconds against human \
         noise</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    for (at, report) in reports.iter().enumerate() {
        let place = ((at % ACROSS) as f64 * WIDTH, (at / ACROSS) as f64 * HEIGHT);
        panel(&mut svg, report, &names, place);
    }
    for (at, name) in names.iter().enumerate() {
        let (x, y) = (20.0 + (at % 3) as f64 * WIDTH, HEIGHT * rows as f64 + 12.0 + (at / 3) as f64 * LINE);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}h28\" {}/><text x=\"{:.1}\" y=\"{y:.1}\" dy=\".32em\">{}</text>",
            stroke(at),
            x + 36.0,
            escaped(name)
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// One dataset.
fn panel(svg: &mut String, report: &AnnotateReport, names: &[&str], (left, top): (f64, f64)) {
    let levels: Vec<(&str, &[CutterReport])> = std::iter::once(("recorded", &report.recorded[..]))
        .chain(report.disturbed.iter().map(|one| (one.level.as_str(), &one.cutters[..])))
        .collect();
    let room = (levels.len() - 1).max(1) as f64;
    let across = |at: usize| left + LEFT + 14.0 + at as f64 / room * (RIGHT - LEFT - 28.0);
    let up = |value: f64| top + BOTTOM - value * (BOTTOM - TOP);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"bold\">{}</text>",
        left + LEFT,
        top + 18.0,
        escaped(&report.dataset)
    );
    for tick in 0..=5 {
        let value = f64::from(tick) / 5.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"#e4e4e4\" fill=\"none\"/><text x=\"{:.1}\" y=\"{:.1}\" dy=\".32em\" \
             text-anchor=\"end\">{value:.1}</text>",
            left + LEFT,
            up(value),
            left + RIGHT,
            left + LEFT - 6.0,
            up(value)
        );
    }
    for (at, (level, _)) in levels.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            across(at),
            top + BOTTOM + 18.0,
            escaped(level)
        );
    }
    // Ours last, so that it lies above the others.
    for (at, name) in names.iter().enumerate().rev() {
        let points: Vec<String> = levels
            .iter()
            .enumerate()
            .filter_map(|(level, (_, cutters))| {
                let own = cutters.iter().find(|one| one.name == *name)?;
                Some(format!("{:.1} {:.1}", across(level), up(own.boundary_02.mean)))
            })
            .collect();
        if !points.is_empty() {
            let _ = writeln!(svg, "<path d=\"M{}\" {}/>", points.join("L"), stroke(at));
        }
    }
}

/// The look of a line: its colour, and dashes once colours repeat. Ours is the first and black.
fn stroke(at: usize) -> String {
    let dashes = match at / COLOURS.len() {
        0 => "",
        1 => " stroke-dasharray=\"5 3\"",
        _ => " stroke-dasharray=\"2 2\"",
    };
    let width = if at == 0 { 2.5 } else { 1.5 };
    let colour = COLOURS[(at + COLOURS.len() - 1) % COLOURS.len()];
    format!("stroke=\"{colour}\" stroke-width=\"{width}\" fill=\"none\"{dashes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate_eval::DisturbedReport;
    use crate::annotate_eval::scores::Figure;

    fn cutter(name: &str, value: f64) -> CutterReport {
        let figure = Figure { mean: value, low: value, high: value, pooled: value };
        CutterReport {
            name: name.to_owned(),
            setting: None,
            tried: 1,
            training: value,
            segments: 7.0,
            boundary_02: figure,
            boundary_05: figure,
            segment_50: figure,
            segment_75: figure,
            phase: figure,
            phase_object: figure,
        }
    }

    #[test]
    fn every_cutter_has_a_line_over_all_levels() {
        let mut report = AnnotateReport {
            dataset: "a<b>".to_owned(),
            fps: 20.0,
            training_episodes: 1,
            held_out_episodes: 1,
            true_segments: 7.0,
            recorded: vec![cutter("ours", 0.9), cutter("PELT", 0.7), cutter("peer", 0.1)],
            disturbed: Vec::new(),
            episodes: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(noise_plot(std::slice::from_ref(&report)), None);
        report.disturbed = vec![DisturbedReport {
            level: "beginner".to_owned(),
            cutters: vec![cutter("ours", 0.8), cutter("PELT", 0.4)],
            episodes: Vec::new(),
        }];
        let plot = noise_plot(&[report]).unwrap();
        assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>") && !plot.contains("NaN"));
        assert!(plot.contains("a&lt;b&gt;") && plot.contains("beginner") && !plot.contains("peer"));
        // Two lines of two points, and as many in the legend.
        assert_eq!(plot.matches("stroke-width").count(), 4);
    }
}
