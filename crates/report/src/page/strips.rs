//! Episodes of a dataset as film strips with their subtasks: a page for people who check an annotation.

use super::html::{Html, missing, put};
use super::number::{counted, fixed};
use super::palette::{hatch, hue, swatch};
use crate::strips::{Part, Strip, Strips};

/// Makes one self-contained HTML file. The same strips give the same bytes.
pub fn render_strips(strips: &Strips) -> String {
    let mut out = Html::default();
    put!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    put!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(out, "<meta name=\"color-scheme\" content=\"light dark\">\n");
    // Whatever slipped through the escaping could still load nothing.
    put!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; ");
    put!(out, "style-src 'unsafe-inline'\">\n<link rel=\"icon\" href=\"data:,\">\n");
    put!(out, "<title>", { strips.title }, " – subtasks</title>\n<style>\n");
    out.markup(include_str!("style.css"));
    out.markup(include_str!("strips.css"));
    put!(out, "</style></head>\n<body>\n<main>\n<section id=\"episodes\">\n<h1>", { strips.title }, "</h1>\n");
    for sentence in &strips.lead {
        put!(out, "<p class=\"lead\">", { sentence }, "</p>\n");
    }
    if strips.episodes.is_empty() {
        missing(&mut out, "There are no episodes to show.");
    }
    for strip in &strips.episodes {
        episode(&mut out, strips, strip);
    }
    if strips.left_out > 0 {
        put!(out, "<p class=\"missing\">", { counted(strips.left_out, "episode is", "episodes are") });
        put!(out, " not shown.</p>\n");
    }
    put!(out, "</section>\n</main>\n</body></html>\n");
    out.into_string()
}

fn episode(out: &mut Html, strips: &Strips, strip: &Strip) {
    let name = |part: &Part| strips.names.get(part.name).map_or("", String::as_str);
    put!(out, "<article class=\"film\" id=\"episode-", { strip.episode }, "\">\n<h2>Episode ", { strip.episode });
    put!(out, " <small>", { strip.instruction }, "</small></h2>\n");
    let pictures: Vec<_> = strip.pictures.iter().filter_map(|one| Some((one.media_type()?, one.base64()))).collect();
    if !pictures.is_empty() {
        put!(out, "<div class=\"reel\" role=\"img\" aria-label=\"");
        put!(out, { counted(pictures.len() as u64, "picture", "pictures") }, " in the order of time\">");
        for (media, content) in &pictures {
            put!(out, "<img alt=\"\" decoding=\"async\" src=\"data:", { media }, ";base64,", { content }, "\">");
        }
        put!(out, "</div>\n");
    }
    put!(out, "<div class=\"band\" aria-hidden=\"true\">");
    for (at, part) in strip.parts.iter().enumerate() {
        let width = part.end.saturating_sub(part.first) as f64 / strip.frames.max(1) as f64 * 100.0;
        let label = part.name as i64;
        put!(out, "<span style=\"width:", { fixed(width, 2) }, "%\" class=\"", { hue(label) }, " ", { hatch(label) });
        put!(out, "\" title=\"", { name(part) }, "\">", { at + 1 }, "</span>");
    }
    put!(out, "</div>\n<ol class=\"parts\">");
    for (at, part) in strip.parts.iter().enumerate() {
        put!(out, "<li>");
        swatch(out, part.name as i64, &(at + 1).to_string());
        let seconds = |frame: u64| fixed(frame as f64 / strips.fps.max(1e-9), 1);
        put!(out, " ", { name(part) }, " <small>", { seconds(part.first) }, "–", { seconds(part.end) }, " s");
        put!(out, ", frames ", { part.first }, "–", { part.end });
        if let Some(note) = &part.note {
            put!(out, ", ", { note });
        }
        put!(out, "</small></li>");
    }
    put!(out, "</ol>\n</article>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::Picture;

    #[test]
    fn names_are_text_and_pictures_are_data() {
        let part = |first, end, name| Part { first, end, name, note: Some("motion".to_owned()) };
        let strip = Strip {
            episode: 7,
            instruction: "put <it> away".to_owned(),
            frames: 40,
            pictures: vec![Picture(vec![0xff, 0xd8, 0xff, 0xe0]), Picture(b"not a picture".to_vec())],
            parts: vec![part(0, 10, 0), part(10, 40, 1), part(40, 40, 99)],
        };
        let strips = Strips {
            title: "a & b".to_owned(),
            lead: vec!["two sentences".to_owned()],
            fps: 20.0,
            names: vec!["reach <b>".to_owned(), "lift".to_owned()],
            episodes: vec![strip],
            left_out: 3,
        };
        let page = render_strips(&strips);
        assert!(page.contains("put &lt;it&gt; away") && page.contains("reach &lt;b&gt;") && page.contains("a &amp; b"));
        assert_eq!(page.matches("data:image/jpeg;base64,/9j/4A==").count(), 1);
        assert_eq!(page.matches("<img").count(), 1);
        assert!(page.contains("width:25.00%") && page.contains("width:75.00%"), "{page}");
        assert!(page.contains("0.5–2.0 s, frames 10–40, motion") && page.contains("3 episodes are"));
        assert_eq!(render_strips(&strips), page);
        let empty = Strips { episodes: vec![], ..strips };
        assert!(render_strips(&empty).contains("There are no episodes to show."));
    }
}
