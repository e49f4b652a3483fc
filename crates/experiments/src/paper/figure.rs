//! The figure of an experiment: for each row ours as a dot with its interval, and the paper's value as a diamond.

use std::fmt::Write as _;

use super::report::Report;
use crate::svg::{COLOURS, escaped};

/// The size of the picture and the place of the axes in it.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 870.0;
const TOP: f64 = 62.0;
const LINE: f64 = 24.0;

/// How many columns are drawn: both questions of a clustering.
const SHOWN: usize = 2;

/// The longest label of a row, in letters.
const LETTERS: usize = 46;

/// Draws the first columns of a report's table.
pub(super) fn figure(report: &Report) -> String {
    let columns = &report.columns[..report.columns.len().min(SHOWN)];
    let ends = |key: &str| -> Vec<f64> {
        let entries = report.rows.iter().filter_map(|row| row.figures.get(key));
        let of = |entry: &super::Entry| {
            let (low, high) = whiskers(&entry.ours);
            [low, high].into_iter().chain(entry.paper.map(|paper| paper.mean)).collect::<Vec<f64>>()
        };
        entries.flat_map(of).collect()
    };
    let all: Vec<f64> = columns.iter().flat_map(|(key, ..)| ends(key)).collect();
    let high = all.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let low = all.iter().copied().fold(0.0, f64::min);
    let step = step((high - low) / 5.0);
    let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
    let across = |value: f64| LEFT + (value - low) / (high - low) * (RIGHT - LEFT);
    let bottom = TOP + LINE * report.rows.len().max(1) as f64;
    let height = bottom + 34.0;

    let mut svg = String::new();
    let title = escaped(&format!("{}: {}", report.experiment, report.question));
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" font-family=\"sans-serif\" font-size=\"12\"><title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"12\" y=\"20\" font-size=\"14\">{title}</text>"
    );
    let mut tick = low;
    while tick <= high + step / 2.0 {
        let (x, digits) = (
            across(tick),
            if step < 0.01 {
                3
            } else if step < 1.0 {
                2
            } else {
                0
            },
        );
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#e4e4e4\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{tick:.digits$}</text>",
            bottom + 18.0
        );
        tick += step;
    }
    for (at, row) in report.rows.iter().enumerate() {
        let y = TOP + LINE * (at as f64 + 0.5);
        if at > 0 && report.rows[at - 1].dataset != row.dataset {
            let edge = TOP + LINE * at as f64;
            let _ = writeln!(svg, "<path d=\"M12 {edge:.1}H{RIGHT}\" stroke=\"#999999\"/>");
        }
        let label = escaped(&shortened(&format!("{} · {}", row.dataset, row.row)));
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{y:.1}\" dy=\".32em\" text-anchor=\"end\">{label}</text>",
            LEFT - 10.0
        );
        for (place, (key, heading, digits)) in columns.iter().enumerate() {
            let Some(entry) = row.figures.get(key) else { continue };
            let colour = COLOURS[place % COLOURS.len()];
            let y = y + if columns.len() > 1 { 8.0 * place as f64 - 4.0 } else { 0.0 };
            let (from, to) = whiskers(&entry.ours);
            let mean = entry.ours.mean;
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/><circle cx=\"{:.1}\" cy=\"{y:.1}\" \
                 r=\"4\" fill=\"{colour}\"><title>{}: {mean:.digits$}</title></circle>",
                across(from),
                across(to),
                across(mean),
                escaped(heading)
            );
            if let Some(paper) = entry.paper {
                let x = across(paper.mean);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"1.5\">\
                     <title>paper, {}: {:.digits$}</title></path>",
                    y - 5.0,
                    escaped(heading),
                    paper.mean
                );
            }
        }
    }
    // The key: what dots and diamonds are.
    let mut x = LEFT;
    for (place, (_, heading, _)) in columns.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let text = escaped(heading);
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"42\" r=\"4\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"46\">{text}</text>",
            x + 10.0
        );
        x += 32.0 + 7.0 * heading.chars().count() as f64;
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} 37l5 5l-5 5l-5 -5z\" fill=\"#ffffff\" stroke=\"#444444\" stroke-width=\"1.5\"/>\
         <text x=\"{:.1}\" y=\"46\">paper</text>\n</svg>",
        x + 10.0
    );
    svg
}

/// The ends of the line through a dot: the interval, or one deviation on either side.
fn whiskers(spread: &super::statistics::Spread) -> (f64, f64) {
    let std = spread.std.unwrap_or(0.0);
    spread.interval.unwrap_or((spread.mean - std, spread.mean + std))
}

/// The nearest step of 1, 2 or 5 times a power of ten that is not smaller.
fn step(rough: f64) -> f64 {
    let power = 10.0_f64.powf(rough.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= rough * 0.999).unwrap_or(power)
}

fn shortened(text: &str) -> String {
    match text.chars().count() <= LETTERS {
        true => text.to_owned(),
        false => text.chars().take(LETTERS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::sample;
    use super::*;

    #[test]
    fn every_row_has_its_dots_and_the_papers_values_are_diamonds() {
        let svg = figure(&sample());
        assert_eq!(svg.matches("<circle").count(), 3 * 2 + 2, "three rows of two columns, and the key");
        assert_eq!(svg.matches("<title>paper").count(), 2);
        assert!(svg.contains("supcon &lt;b&gt;|") && !svg.contains("<b>"), "{svg}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_report_without_figures_or_with_equal_ones_is_still_a_picture() {
        let mut empty = sample();
        empty.rows.iter_mut().for_each(|row| row.figures.clear());
        assert!(!figure(&empty).contains("NaN"));
        empty.rows.clear();
        assert!(figure(&empty).contains("</svg>"));
        for (rough, wanted) in [(0.07, 0.1), (0.2, 0.2), (3.0, 5.0), (41.0, 50.0)] {
            assert!((step(rough) - wanted).abs() < 1e-9, "{rough}: {}", step(rough));
        }
        assert!(step(0.0) > 0.0);
    }
}
