//! The calibration plot: mean true return over mean imagined return, one line for each verifier, as a standalone SVG.

use std::fmt::Write as _;

use super::Calibration;
use crate::svg::{COLOURS, escaped};

/// The size of the picture and the place of the axes in it.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 440.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 366.0;

/// Draws calibrations by name. The area of a dot grows with the number of windows in its bin; the diagonal is a verifier whose
/// returns are right on average.
pub fn calibration_plot(calibrations: &[(&str, &Calibration)]) -> String {
    let points = |calibration: &Calibration| -> Vec<(f64, f64, usize)> {
        calibration.bins.iter().filter_map(|bin| Some((bin.imagined?, bin.truth?, bin.count))).collect()
    };
    let all: Vec<f64> = calibrations.iter().flat_map(|(_, one)| points(one)).flat_map(|(x, y, _)| [x, y]).collect();
    let low = all.iter().copied().fold(0.0, f64::min);
    let high = all.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let room = 0.04 * (high - low);
    let (low, high) = (low - if low < 0.0 { room } else { 0.0 }, high + room);
    let across = |value: f64| LEFT + (value - low) / (high - low) * (RIGHT - LEFT);
    let up = |value: f64| BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP);

    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" font-family=\"sans-serif\" font-size=\"12\"><title>Imagined against true returns of held-out \
         windows</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    for tick in 0..=4 {
        let value = low + (high - low) * f64::from(tick) / 4.0;
        let (x, y) = (across(value), up(value));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{BOTTOM}M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e4e4e4\" fill=\"none\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.2}</text>\
             <text x=\"{:.1}\" y=\"{y:.1}\" dy=\".32em\" text-anchor=\"end\">{value:.2}</text>",
            BOTTOM + 18.0,
            LEFT - 6.0
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#888888\" stroke-dasharray=\"4 4\" fill=\"none\"/>",
        across(low),
        up(low),
        across(high),
        up(high)
    );
    let largest = calibrations.iter().flat_map(|(_, one)| &one.bins).map(|bin| bin.count).max().unwrap_or(1).max(1);
    for (at, (name, calibration)) in calibrations.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let found = points(calibration);
        let line: Vec<String> = found.iter().map(|(x, y, _)| format!("{:.1} {:.1}", across(*x), up(*y))).collect();
        let _ =
            writeln!(svg, "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\"/>", line.join("L"));
        for (x, y, count) in found {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"{colour}\" fill-opacity=\".6\"><title>imagined {x:.3}, \
                 true {y:.3}, {count} windows</title></circle>",
                across(x),
                up(y),
                3.0 + 7.0 * (count as f64 / largest as f64).sqrt()
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}: calibration error {:.3}</text>",
            LEFT + 10.0,
            TOP + 16.0 + 16.0 * at as f64,
            escaped(name),
            calibration.expected_calibration_error
        );
    }
    let middle = (TOP + BOTTOM) / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">mean imagined return</text>\
         <text transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">mean true return</text>\n</svg>",
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 12.0
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_with_windows_is_a_dot_and_names_are_not_markup() {
        let calibration = Calibration::of(&[(0.0, 0.1), (0.05, 0.1), (1.0, 0.8)]).unwrap();
        let plot = calibration_plot(&[("a<b>&\u{1b}", &calibration), ("other", &calibration)]);
        assert_eq!(plot.matches("<circle").count(), 4);
        assert!(plot.contains("a&lt;b&gt;&amp;:") && !plot.contains("a<b>") && !plot.contains("NaN"), "{plot}");
        assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"));
        // Nothing but zeros has axes all the same.
        let nothing = Calibration::of(&[(0.0, 0.0)]).unwrap();
        assert!(!calibration_plot(&[("nothing", &nothing)]).contains("NaN"));
    }
}
