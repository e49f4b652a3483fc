//! The page: one section for each part of a report.

mod chart;
mod code;
mod gates;
mod header;
mod html;
mod iterations;
mod library;
mod losses;
mod map;
mod metrics;
mod number;
mod palette;
mod reproduce;
mod rollouts;
mod scale;
mod skills;
mod strips;
mod timelines;

use crate::report::Report;
use html::{Html, put};
pub use rollouts::render_rollouts;
pub use strips::render_strips;

/// Sections in their order: identifier, name in the navigation, what draws it.
const SECTIONS: [(&str, &str, Section); 9] = [
    ("loop", "Loop", iterations::section),
    ("skills", "Skills", skills::section),
    ("map", "Map", map::section),
    ("episodes", "Episodes", timelines::section),
    ("library", "Library", library::section),
    ("gates", "Gates", gates::section),
    ("metrics", "Held-out", metrics::section),
    ("training", "Training", losses::section),
    ("reproduce", "Notes & reproduce", reproduce::section),
];

type Section = fn(&mut Html, &Report);

/// Makes one self-contained HTML file of a report. It never fails: the page says what is missing or contradicts itself.
/// The same report gives the same bytes.
pub fn render(report: &Report) -> String {
    let mut out = Html::default();
    put!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    put!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(out, "<meta name=\"color-scheme\" content=\"light dark\">\n");
    // Whatever slipped through the escaping could still load nothing.
    put!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; ");
    put!(out, "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n");
    // An icon of no bytes keeps browsers from asking for one.
    put!(out, "<link rel=\"icon\" href=\"data:,\">\n");
    put!(out, "<title>", { report.run.title }, " – REFACTOR-VLA</title>\n<style>\n");
    out.markup(include_str!("page/style.css"));
    put!(out, "</style></head>\n<body>\n<a class=\"skip\" href=\"#loop\">Skip to the content</a>\n");
    header::header(&mut out, report);
    put!(out, "<nav aria-label=\"Sections\"><ul>");
    for (id, name, _) in SECTIONS {
        put!(out, "<li><a href=\"#", { id }, "\">", { name }, "</a></li>");
    }
    put!(out, "</ul></nav>\n<main>\n");
    for (id, _, draw) in SECTIONS {
        put!(out, "<section id=\"", { id }, "\">\n");
        draw(&mut out, report);
        put!(out, "</section>\n");
    }
    put!(out, "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>\n");
    out.markup(include_str!("page/script.js"));
    put!(out, "</script>\n</body></html>\n");
    out.into_string()
}
