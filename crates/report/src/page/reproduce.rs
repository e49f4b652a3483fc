//! Notes for the reader, the command that reproduces the run, and its data.

use super::html::{Html, missing, put};
use super::number::{count, short};
use crate::report::Report;

/// The section.
pub(crate) fn section(out: &mut Html, report: &Report) {
    let run = &report.run;
    put!(out, "<h2>Notes</h2>\n<div id=\"notes\">");
    if report.notes.is_empty() {
        missing(out, "The run recorded no notes.");
    } else {
        put!(out, "<ul class=\"notes\">");
        for note in &report.notes {
            put!(out, "<li>", { note }, "</li>");
        }
        put!(out, "</ul>");
    }
    put!(
        out,
        "</div>\n<h2>Reproduce</h2>\n<p class=\"lead\">The same command on the same data gives the same result.</p>\n"
    );
    put!(out, "<pre class=\"command\" id=\"command\">", { run.command }, "</pre>\n<dl class=\"figures\">");
    put!(out, "<div><dt>seed</dt><dd>", { run.seed }, "</dd></div><div><dt>version</dt><dd>", { run.version });
    put!(
        out,
        "</dd></div><div><dt>labels</dt><dd>",
        { run.labels },
        "</dd></div><div class=\"wide\"><dt>hash of the configuration</dt><dd><code>",
        { run.config_hash }
    );
    put!(out, "</code></dd></div></dl>\n");
    if let Some(config) = &run.config {
        put!(out, "<details><summary>Resolved configuration</summary><pre>", { config }, "</pre></details>\n");
    }
    put!(out, "<h3>Data</h3>\n");
    if run.datasets.is_empty() {
        missing(out, "The datasets were not recorded.");
        return;
    }
    put!(
        out,
        "<table class=\"data\"><thead><tr><th>Dataset</th><th>Training episodes</th><th>Held-out</th><th>Frames</th>"
    );
    put!(out, "<th>Tasks</th><th>Frames per second</th><th>Reward</th><th>Pictures</th></tr></thead><tbody>");
    for set in &run.datasets {
        put!(out, "<tr><th scope=\"row\">", { set.name }, "</th><td data-name=\"Training episodes\">", {
            count(set.episodes)
        });
        put!(
            out,
            "</td><td data-name=\"Held-out\">",
            { count(set.held_out_episodes) },
            "</td><td data-name=\"Frames\">"
        );
        put!(out, { count(set.frames) }, "</td><td data-name=\"Tasks\">", { count(set.tasks) });
        put!(out, "</td><td data-name=\"Frames per second\">", { short(set.fps) }, "</td>");
        for (name, there) in [("Reward", set.reward), ("Pictures", set.pictures)] {
            put!(out, "<td data-name=\"", { name }, "\">", { if there { "yes" } else { "no" } }, "</td>");
        }
        put!(out, "</tr>");
    }
    put!(out, "</tbody></table>\n");
}
