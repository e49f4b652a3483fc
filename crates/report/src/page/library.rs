//! The library as a tree: entries that no other entry calls are roots, and the entries that an entry calls are its children. An
//! entry that is called from several places is shown in full once and linked elsewhere, so cycles end.

use std::collections::BTreeSet;

use super::code::program;
use super::html::{Html, missing, put};
use super::number::{count, fixed, percent, place};
use super::scale::Scale;
use crate::learning::Iteration;
use crate::programs::{Entry, Posterior};
use crate::report::Report;

/// Entries nest no deeper than this in the page; browsers and readers give up sooner.
const MAX_DEPTH: usize = 12;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    put!(out, "<h2>Library</h2>\n<div id=\"fig-library\">\n");
    let library = &report.library;
    if library.is_empty() {
        missing(out, "The library is empty: no candidate passed all gates, or none was proposed.");
        held_out(out, report);
        put!(out, "</div>\n");
        return;
    }
    put!(out, "<p class=\"lead\">Typed programs that were admitted because the demonstrations get shorter with them. ");
    put!(
        out,
        "Parameters are in <span class=\"hole\">boxes<i>:Type</i></span>; the entries that an entry calls are nested "
    );
    put!(out, "below it. The bar is the posterior share of calls with its 95 % interval.</p>\n");
    kinds(out, library);
    held_out(out, report);
    let most = library
        .iter()
        .filter_map(|entry| entry.posterior.map(|posterior| posterior.high))
        .filter(|high| high.is_finite())
        .fold(0.0, f64::max);
    let mut tree = Tree { report, library, shown: BTreeSet::new(), most };
    put!(out, "<ul class=\"tree\">\n");
    let called: BTreeSet<&str> = library
        .iter()
        .flat_map(|entry| entry.calls.iter().filter(|call| **call != entry.name))
        .map(String::as_str)
        .collect();
    for (index, entry) in library.iter().enumerate() {
        if !called.contains(entry.name.as_str()) {
            tree.node(out, index, 0);
        }
    }
    // What is left hangs in a circle or below the depth that is drawn.
    for index in 0..library.len() {
        if !tree.shown.contains(&index) {
            tree.node(out, index, 0);
        }
    }
    put!(out, "</ul></div>\n");
}

/// How many entries there are of each kind, in the order of their first entry. Nothing if no kind was determined.
fn kinds(out: &mut Html, library: &[Entry]) {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for kind in library.iter().filter_map(|entry| entry.kind.as_deref()) {
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, number)) => *number += 1,
            None => counts.push((kind, 1)),
        }
    }
    if counts.is_empty() {
        return;
    }
    put!(out, "<dl class=\"figures\" id=\"fig-kinds\">");
    for (kind, number) in counts {
        put!(out, "<div><dt>", { kind }, "</dt><dd>", { count(number) }, "</dd></div>");
    }
    put!(out, "</dl>\n");
}

/// The description length of held-out demonstrations without a library and with the last one, where it was measured.
fn held_out(out: &mut Html, report: &Report) {
    let measured = |iteration: &Iteration| iteration.held_out_nats.filter(|nats| nats.is_finite());
    let without = report.iterations.iter().find(|iteration| iteration.t == 0).and_then(measured);
    let with = report.iterations.last().filter(|iteration| iteration.t > 0).and_then(measured);
    let (Some(without), Some(with)) = (without, with) else { return };
    put!(
        out,
        "<p id=\"fig-held-out-length\">The programs of held-out demonstrations, which the library was not learned "
    );
    put!(out, "from, take ", { fixed(with, 0) }, " nats with the library and ", { fixed(without, 0) }, " without it");
    if with > 0.0 && with < without {
        put!(out, ": ", { fixed(without / with, 2) }, " times shorter");
    }
    put!(out, ".</p>\n");
}

struct Tree<'a> {
    report: &'a Report,
    library: &'a [Entry],
    shown: BTreeSet<usize>,
    /// The highest end of an interval; all bars share it as their scale.
    most: f64,
}

impl Tree<'_> {
    fn node(&mut self, out: &mut Html, index: usize, depth: usize) {
        let entry = &self.library[index];
        if self.shown.contains(&index) || depth > MAX_DEPTH {
            put!(out, "<li class=\"again\"><a href=\"#entry-", { index }, "\"><code>", { entry.name }, "</code></a> ");
            put!(out, "<small>shown elsewhere</small></li>\n");
            return;
        }
        self.shown.insert(index);
        put!(out, "<li><article class=\"entry\" id=\"entry-", { index }, "\"><h3><code>", { entry.name }, "</code> ");
        put!(out, "<code class=\"type\">", { entry.ty }, "</code></h3>\n<pre>");
        program(out, &entry.body, &entry.holes, self.report);
        put!(out, "</pre>\n<dl class=\"figures\"><div><dt>uses</dt><dd>", { count(entry.uses) }, "</dd></div>");
        put!(out, "<div><dt>gain</dt><dd>", { fixed(entry.gain_nats, 1) }, " nats</dd></div>");
        put!(out, "<div><dt>admitted at</dt><dd>t = ", { entry.iteration }, "</dd></div>");
        if let Some(kind) = &entry.kind {
            put!(out, "<div><dt>kind</dt><dd>", { kind }, "</dd></div>");
        }
        put!(out, "<div class=\"wide\"><dt>posterior share of calls</dt><dd>");
        match entry.posterior.filter(|posterior| posterior.mean.is_finite()) {
            Some(posterior) => interval(out, posterior, self.most),
            None => put!(out, "not estimated"),
        }
        put!(out, "</dd></div></dl>\n");
        expansions(out, entry, self.report);
        put!(out, "</article>\n");
        let mut called: Vec<usize> = Vec::new();
        for call in &entry.calls {
            if let Some(below) = self.library.iter().position(|other| other.name == *call)
                && !called.contains(&below)
            {
                called.push(below);
            }
        }
        if !called.is_empty() {
            put!(out, "<ul>\n");
            for below in called {
                self.node(out, below, depth + 1);
            }
            put!(out, "</ul>");
        }
        put!(out, "</li>\n");
    }
}

/// A bar to the mean, and a thin line over the interval.
fn interval(out: &mut Html, posterior: Posterior, most: f64) {
    let x = Scale::between(0.0, if most > 0.0 { most } else { 1.0 }, 0.0, 160.0);
    let (mean, low, high) = (x.place(posterior.mean), x.place(posterior.low), x.place(posterior.high));
    let words = format!(
        "{} ({} to {})",
        percent(posterior.mean),
        fixed(posterior.low * 100.0, 0),
        fixed(posterior.high * 100.0, 0)
    );
    put!(out, "<svg class=\"interval\" role=\"img\" viewBox=\"0 0 162 14\"><title>", { words }, "</title>");
    put!(out, "<rect class=\"track\" y=\"4\" width=\"160\" height=\"6\"/><rect class=\"bar c0\" y=\"4\" width=\"");
    put!(out, { place(mean) }, "\" height=\"6\"/><path class=\"whisker\" d=\"M", { place(low) }, " 7H", {
        place(high)
    });
    put!(out, "M", { place(low) }, " 3v8M", { place(high) }, " 3v8\"/></svg> ", { words });
}

fn expansions(out: &mut Html, entry: &Entry, report: &Report) {
    if entry.expansions.is_empty() {
        put!(out, "<p class=\"missing small\">No example call was recorded.</p>");
        return;
    }
    put!(out, "<details class=\"expansions\"><summary>Example calls and their expansions</summary>");
    for expansion in &entry.expansions {
        put!(out, "<div><pre>");
        program(out, &expansion.call, &[], report);
        put!(out, "</pre><pre>");
        program(out, &expansion.meaning, &[], report);
        put!(out, "</pre></div>");
    }
    put!(out, "</details>");
}
