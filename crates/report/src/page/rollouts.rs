//! Executed episodes: the images, below them instruction, program and active skill, and a slider through time.

use super::html::{Html, missing, put};
use super::number::{counted, fixed};
use crate::rollouts::{Moment, Rollout, Rollouts};

/// Pictures in the strip of an episode.
const STRIP: usize = 10;

/// Makes one self-contained HTML file. The same episodes give the same bytes.
pub fn render_rollouts(rollouts: &Rollouts) -> String {
    let mut out = Html::default();
    put!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    put!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put!(out, "<meta name=\"color-scheme\" content=\"light dark\">\n");
    // Whatever slipped through the escaping could still load nothing.
    put!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; ");
    put!(out, "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<link rel=\"icon\" href=\"data:,\">\n");
    put!(out, "<title>", { rollouts.title }, " – closed loop</title>\n<style>\n");
    out.markup(include_str!("style.css"));
    out.markup(include_str!("strips.css"));
    out.markup(include_str!("rollouts.css"));
    put!(out, "</style></head>\n<body>\n<main>\n<section id=\"rollouts\">\n<h1>", { rollouts.title }, "</h1>\n");
    for sentence in &rollouts.lead {
        put!(out, "<p class=\"lead\">", { sentence }, "</p>\n");
    }
    if rollouts.episodes.is_empty() {
        missing(&mut out, "No episode was filmed.");
    }
    for episode in &rollouts.episodes {
        draw(&mut out, rollouts, episode);
    }
    put!(out, "</section>\n</main>\n<script>\n");
    out.markup(include_str!("rollouts.js"));
    put!(out, "</script>\n</body></html>\n");
    out.into_string()
}

fn draw(out: &mut Html, rollouts: &Rollouts, episode: &Rollout) {
    let seconds = |at: usize| fixed(at as f64 * rollouts.stride as f64 / rollouts.fps.max(1e-9), 1);
    let interval = 1000.0 * rollouts.stride as f64 / rollouts.fps.max(1e-9);
    put!(out, "<article class=\"rollout\" id=\"task-", { episode.task }, "-", { episode.start });
    put!(out, "\" data-interval=\"", { fixed(interval, 0) }, "\">\n");
    heading(out, episode);
    if episode.moments.is_empty() {
        missing(out, "The images of this episode were not kept.");
        put!(out, "</article>\n");
        return;
    }
    for (at, moment) in episode.moments.iter().enumerate() {
        put!(out, "<div class=\"moment stage\" data-time=\"", { seconds(at) }, " s\"");
        out.markup(if at == 0 { ">" } else { " hidden>" });
        put!(out, "<div class=\"views\">");
        moment.pictures.iter().for_each(|picture| image(out, picture, None));
        put!(out, "</div>\n");
        caption(out, moment);
        put!(out, "</div>\n");
    }
    // The script shows them: without it they would do nothing.
    put!(out, "<div class=\"controls\" hidden><button type=\"button\">Play</button>");
    put!(out, "<input type=\"range\" min=\"0\" value=\"0\" aria-label=\"Moment\" max=\"", {
        episode.moments.len() - 1
    });
    put!(out, "\"><output>0.0 s</output></div>\n");
    strip(out, episode);
    put!(out, "</article>\n");
}

/// Task, instruction and outcome.
pub(crate) fn heading(out: &mut Html, episode: &Rollout) {
    put!(out, "<h2>Task ", { episode.task }, " <small>", { episode.instruction }, "</small>");
    match episode.success {
        true => put!(out, "<span class=\"outcome success\">success after "),
        false => put!(out, "<span class=\"outcome failure\">failure after "),
    }
    put!(out, { counted(episode.steps, "step", "steps") }, "</span> <small>start state ", { episode.start });
    put!(out, "; ", { episode.of_task.0 }, " of ", { episode.of_task.1 }, " episodes succeeded</small></h2>\n");
}

/// Pictures of the first camera at equal distances.
pub(crate) fn strip(out: &mut Html, episode: &Rollout) {
    let count = episode.moments.len();
    let shown = count.min(STRIP);
    put!(out, "<div class=\"reel\" role=\"img\" aria-label=\"", { counted(shown as u64, "picture", "pictures") });
    put!(out, " in the order of time\">");
    for which in 0..shown {
        // The first and the last moment are among them.
        let at = if shown > 1 { which * (count - 1) / (shown - 1) } else { 0 };
        if let Some(picture) = episode.moments[at].pictures.first() {
            image(out, picture, Some(at));
        }
    }
    put!(out, "</div>\n");
}

fn image(out: &mut Html, picture: &crate::motion::Picture, at: Option<usize>) {
    let Some(media) = picture.media_type() else { return };
    put!(out, "<img alt=\"\" decoding=\"async\" src=\"data:", { media }, ";base64,", { picture.base64() }, "\"");
    if let Some(at) = at {
        put!(out, " data-at=\"", { at }, "\"");
    }
    put!(out, ">");
}

fn caption(out: &mut Html, moment: &Moment) {
    let (before, active, after) = moment.cut();
    put!(out, "<dl><dt>Instruction</dt><dd>", { moment.prompt }, "</dd>");
    if !moment.task.is_empty() {
        put!(out, "<dt>Task program</dt><dd><code>", { moment.task }, "</code></dd>");
    }
    put!(out, "<dt>Program</dt><dd><code>", { before });
    if !active.is_empty() {
        put!(out, "<mark>", { active }, "</mark>");
    }
    put!(out, { after }, "</code></dd>");
    if let Some(skill) = &moment.skill {
        put!(out, "<dt>Skill</dt><dd>", { skill }, "</dd>");
    }
    if let Some(progress) = moment.progress {
        let share = fixed(progress.clamp(0.0, 1.0), 2);
        put!(out, "<dt>Progress</dt><dd><meter min=\"0\" max=\"1\" value=\"", { share }, "\">", { share });
        put!(out, "</meter> <small>", { fixed(100.0 * progress.clamp(0.0, 1.0), 0) }, " %</small></dd>");
    }
    put!(out, "</dl>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::Picture;

    fn moment(active: Option<(u64, u64)>) -> Moment {
        Moment {
            pictures: vec![Picture(vec![0xff, 0xd8, 0xff, 0xe0]), Picture(b"not a picture".to_vec())],
            prompt: "put <it> away".to_owned(),
            program: "seq[reach λ, lift]".to_owned(),
            active,
            task: "put \"it\"".to_owned(),
            skill: Some("move <down>".to_owned()),
            progress: Some(0.25),
        }
    }

    #[test]
    fn the_active_call_is_marked_and_data_is_escaped() {
        let moments = vec![moment(Some((4, 12))), moment(None), moment(Some((10, 11))), moment(Some((5, 400)))];
        let episode = Rollout {
            task: 3,
            instruction: "put <it> away".to_owned(),
            start: 0,
            success: true,
            steps: 31,
            of_task: (7, 20),
            moments,
        };
        let rollouts = Rollouts {
            title: "a & b".to_owned(),
            lead: vec!["one sentence".to_owned()],
            fps: 20.0,
            stride: 8,
            episodes: vec![episode],
        };
        let page = render_rollouts(&rollouts);
        assert!(page.contains("seq[<mark>reach λ</mark>, lift]"), "{page}");
        assert_eq!(page.matches("<mark>").count(), 1, "spans outside the program or inside a character mark nothing");
        assert!(
            page.contains("put &lt;it&gt; away") && page.contains("move &lt;down&gt;") && page.contains("a &amp; b")
        );
        assert!(page.contains("success after 31 steps") && page.contains("7 of 20 episodes succeeded"));
        assert!(page.contains("data-time=\"1.2 s\"") && page.contains("data-interval=\"400\""), "8 steps at 20 Hz");
        assert_eq!(page.matches("<img").count(), 8, "four moments, and the strip");
        assert_eq!(render_rollouts(&rollouts), page);
        let empty = Rollouts { episodes: vec![], ..rollouts };
        assert!(render_rollouts(&empty).contains("No episode was filmed."));
    }
}
