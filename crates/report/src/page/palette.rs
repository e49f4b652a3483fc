//! Colours of categories. Eight hues stay apart for people who see all colours, no red, no green or no blue, on the light
//! and on the dark page; a test measures it. The ninth category has the first hue again, with another mark and a hatching,
//! and every category is labelled where it is drawn: colour is never the only sign.

use super::html::{Html, put};

/// Hues before they come again.
pub(crate) const HUES: usize = 8;

/// Hues on the light page; `style.css` has the same as `--c0` to `--c7`.
#[cfg(test)]
pub(crate) const LIGHT: [&str; HUES] =
    ["#1795fa", "#a74a04", "#398472", "#8235b9", "#821829", "#134d6e", "#9d9707", "#dd56b8"];

/// Hues on the dark page.
#[cfg(test)]
pub(crate) const DARK: [&str; HUES] =
    ["#4057da", "#fd8706", "#50c39b", "#c08ffd", "#c92516", "#9ce4fe", "#fdd506", "#a16d8f"];

/// The class of a category's colour: `c0` to `c7`, `cx` for a label that means none.
pub(crate) fn hue(label: i64) -> &'static str {
    const CLASSES: [&str; HUES] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    usize::try_from(label).map_or("cx", |index| CLASSES[index % HUES])
}

/// The class of a category's hatching: none for the first eight, then stripes, dots and bars in turn.
pub(crate) fn hatch(label: i64) -> &'static str {
    const CLASSES: [&str; 4] = ["h0", "h1", "h2", "h3"];
    usize::try_from(label).map_or("h0", |index| CLASSES[index / HUES % CLASSES.len()])
}

/// A small box with a category's colour, hatching and badge.
pub(crate) fn swatch(out: &mut Html, label: i64, badge: &str) {
    put!(out, "<span class=\"swatch ", { hue(label) }, " ", { hatch(label) }, "\">", { badge }, "</span>");
}

/// Adds a category's mark at a place to the data of a path: a disc, then a triangle, a square and a diamond.
pub(crate) fn mark(out: &mut Html, label: i64, x: f64, y: f64, size: f64) {
    let p = super::number::place;
    let round = usize::try_from(label).map_or(4, |index| index / HUES % 4);
    match round {
        0 => {
            let (r, d) = (p(size), p(2.0 * size));
            put!(out, "M", { p(x - size) }, " ", { p(y) }, "a", { r }, " ", { r }, " 0 1 0 ", { d }, " 0a", { r });
            put!(out, " ", { r }, " 0 1 0 -", { d }, " 0");
        }
        1 => {
            let (h, w) = (size * 2.0, size * 1.25);
            put!(out, "M", { p(x) }, " ", { p(y - h * 0.6) }, "l", { p(w) }, " ", { p(h) }, "h-", { p(2.0 * w) }, "z");
        }
        2 => {
            let s = size * 0.9;
            put!(out, "M", { p(x - s) }, " ", { p(y - s) }, "h", { p(2.0 * s) }, "v", { p(2.0 * s) });
            put!(out, "h-", { p(2.0 * s) }, "z");
        }
        3 => {
            let s = size * 1.35;
            put!(out, "M", { p(x) }, " ", { p(y - s) }, "l", { p(s) }, " ", { p(s) }, "l-", { p(s) }, " ", { p(s) });
            put!(out, "l-", { p(s) }, " -", { p(s) }, "z");
        }
        // No category: a small cross.
        _ => {
            let (s, t) = (size * 0.8, size * 1.6);
            put!(out, "M", { p(x - s) }, " ", { p(y - s) }, "l", { p(t) }, " ", { p(t) }, "m0-", { p(t) });
            put!(out, "l-", { p(t) }, " ", { p(t) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machado, Oliveira and Fernandes (2009), severity 1: how linear RGB looks to those who see no red, green, blue.
    const SIGHTS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    fn product(matrix: [[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
    }

    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        let cones = product(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ],
            rgb.map(|value| value.clamp(0.0, 1.0)),
        );
        product(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ],
            cones.map(f64::cbrt),
        )
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let light = |colour| {
            let [r, g, b] = linear(colour);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (a, b): (f64, f64) = (light(a), light(b));
        a.max(b) / a.min(b)
    }

    #[test]
    fn hues_stay_apart_for_every_kind_of_sight_and_stand_out_from_the_page() {
        for (hues, page) in [(LIGHT, "#ffffff"), (DARK, "#15181d")] {
            for sight in SIGHTS {
                for (i, a) in hues.iter().enumerate() {
                    assert!(contrast(a, page) >= 3.0, "{a} on {page}");
                    for b in &hues[..i] {
                        let [a, b] = [a, b].map(|hue| oklab(product(sight, linear(hue))));
                        let distance = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
                        assert!(distance > 0.1, "{distance}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_style_sheet_has_these_hues() {
        let style = include_str!("style.css");
        for (index, hue) in LIGHT.iter().chain(&DARK).enumerate() {
            let wanted = format!("--c{}: {hue}", index % HUES);
            assert!(style.contains(&wanted), "{wanted}");
        }
    }

    #[test]
    fn categories_beyond_the_hues_differ_by_hatching() {
        assert_eq!((hue(3), hatch(3)), ("c3", "h0"));
        assert_eq!((hue(11), hatch(11)), ("c3", "h1"));
        assert_eq!((hue(-1), hatch(-1)), ("cx", "h0"));
    }
}
