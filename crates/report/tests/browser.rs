//! The page in a real browser. Needs Chromium (`.ci/packages` installs it); where there is none, the tests say so and pass.
//!
//! `REPORT_SCREENSHOTS=DIR cargo test -p report --test browser` also keeps the sample page and pictures of it, at both widths
//! and in both colour schemes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up fails loudly"
)]
#![expect(clippy::print_stdout, reason = "skipped tests say so")]

#[path = "browser/devtools.rs"]
mod devtools;
mod sample;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use devtools::Browser;
use report::{Report, render};
use serde_json::json;

/// The figures that every page has, even if only to say why there is nothing to show.
const FIGURES: [&str; 12] = [
    "summary",
    "tiles",
    "fig-description-length",
    "fig-entries",
    "fig-tpe",
    "fig-lcad",
    "fig-skills",
    "fig-map",
    "fig-timelines",
    "fig-library",
    "fig-gates",
    "fig-metrics",
];

/// Runs `test` with a browser and the sample written to a file, or says why not.
fn with_browser(report: &Report, test: impl FnOnce(&mut Browser, &Path)) {
    let Some(program) = devtools::find() else {
        println!("skipped: no Chromium on the path; install it or name one in CHROMIUM");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, render(report)).unwrap();
    let mut browser = Browser::start(&program, &folder.path().join("profile"));
    test(&mut browser, &file);
}

#[test]
fn the_page_is_sound_at_both_widths_and_in_both_schemes() {
    with_browser(&sample::sample(), |browser, file| {
        if let Some(folder) = std::env::var_os("REPORT_SCREENSHOTS") {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(file, Path::new(&folder).join("report.html")).unwrap();
        }
        for width in [1280, 390] {
            for scheme in ["light", "dark"] {
                assert_eq!(browser.open(file, width, scheme), Vec::<String>::new());
                assert_no_overflow(browser, width);
                for figure in FIGURES.into_iter().chain([
                    "fig-skill-metrics",
                    "fig-kinds",
                    "fig-kernel",
                    "fig-loss-0",
                    "fig-loss-9",
                    "skill-13",
                    "entry-6",
                ]) {
                    let script = format!("document.getElementById({figure:?})?.getBoundingClientRect().height ?? 0");
                    assert!(browser.eval(&script).as_f64().unwrap() > 20.0, "{figure} is not there at {width}");
                }
                keep_pictures(browser, &format!("{width}-{scheme}"));
                // What is folded away must fit, too.
                browser.eval("document.querySelectorAll('details').forEach(one => { one.open = true; })");
                assert_no_overflow(browser, width);
            }
        }
    });
}

#[test]
fn the_map_changes_its_colours_and_describes_what_is_under_the_pointer() {
    with_browser(&sample::sample(), |browser, file| {
        browser.open(file, 1280, "light");
        let shown = "[...document.querySelectorAll('.layer, .map .legend')].filter(one => getComputedStyle(one).display \
                     !== 'none').map(one => one.getAttribute('class')).join('; ')";
        assert_eq!(browser.eval(shown), "layer by-skill; legend by-skill");
        browser.eval("document.getElementById('by-phase').click()");
        assert_eq!(browser.eval(shown), "layer by-phase; legend by-phase");
        keep_figure(browser, "map", "map-by-phase");
        browser.eval("document.getElementById('by-task').click()");
        keep_figure(browser, "map", "map-by-task");
        browser.eval("document.getElementById('by-phase').click()");
        let script = "(() => { const hit = document.querySelectorAll('.hit')[7]; hit.dispatchEvent(new PointerEvent('pointerover', \
                      { bubbles: true, clientX: 100, clientY: 100 })); return document.getElementById('tip').textContent })()";
        let tip = browser.eval(script);
        let tip = tip.as_str().unwrap();
        assert!(tip.starts_with("episode ") && tip.contains("frames") && tip.contains("phase: "), "{tip}");
        let script = "(() => { const cell = document.querySelector('.gates .failed'); cell.dispatchEvent(new \
                      PointerEvent('pointerover', { bubbles: true, clientX: 100, clientY: 100 })); return \
                      document.getElementById('tip').textContent })()";
        let tip = browser.eval(script);
        let tip = tip.as_str().unwrap();
        assert!(tip.contains("allowed") || tip.contains("needed"), "{tip}");
        browser.eval("document.querySelector('.legend.by-phase button').click()");
        assert!(browser.eval("document.querySelectorAll('.layer .dim').length").as_u64().unwrap() > 0);
        browser.eval("document.querySelector('[data-open]').click()");
        assert_eq!(browser.eval("document.querySelectorAll('.task:not([open])').length"), 0);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn no_label_of_the_map_is_cut_off() {
    labels_are_inside(&sample::sample());
}

/// Wide letters, long badges, and clouds in the corners of the map.
#[test]
fn finding_9_labels_at_the_edges_of_the_map_are_not_cut_off() {
    let mut report = sample::sample();
    for (at, name) in report.tasks.iter_mut().enumerate() {
        *name = if at % 2 == 0 {
            "引き出しを開けてカップを中に入れてください".into()
        } else {
            "W".repeat(24)
        };
    }
    for (at, name) in report.phases.iter_mut().enumerate() {
        *name = format!("MMMMMMMMMMMMMMMMMMMM {at}");
    }
    for (at, skill) in report.skills.iter_mut().enumerate() {
        skill.name = format!("skill_{at}_left_open_right_closed");
        skill.readable = Some("MOVE 12 CM WITH BOTH".to_owned());
    }
    let map = report.map.as_mut().unwrap();
    let corners =
        [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0), (0.0, -1.0)];
    for at in 0..map.x.len() {
        let label = at % 10;
        let (x, y) = corners[label % corners.len()];
        (map.x[at], map.y[at]) = (x, y);
        (map.skill[at], map.phase[at], map.task[at]) =
            (label as i64, (label % report.phases.len()) as i64, label as i64);
    }
    labels_are_inside(&report);
}

fn labels_are_inside(report: &Report) {
    with_browser(report, |browser, file| {
        for width in [1280, 390] {
            browser.open(file, width, "light");
            for by in ["skill", "phase", "task"] {
                browser.eval(&format!("document.getElementById('by-{by}').click()"));
                let cut = format!(
                    "(() => {{ const edge = document.querySelector('.plane svg').getBoundingClientRect(); return \
                     [...document.querySelectorAll('.layer.by-{by} .at')].filter(one => {{ const box = \
                     one.getBoundingClientRect(); return box.left < edge.left - 1 || box.right > edge.right + 1 || \
                     box.top < edge.top - 1 || box.bottom > edge.bottom + 1 }}).map(one => \
                     one.textContent).join('; ') }})()"
                );
                assert_eq!(browser.eval(&cut), "", "at {width}, by {by}");
            }
            let labels = browser.eval("document.querySelectorAll('.layer.by-skill .at').length");
            assert!(labels.as_u64().unwrap() > 3, "{labels}");
        }
    });
}

#[test]
fn without_scripts_the_page_is_whole() {
    with_browser(&sample::sample(), |browser, file| {
        browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
        browser.open(file, 390, "light");
        assert_eq!(browser.eval("document.querySelector('[data-open]').hidden"), true);
        assert_eq!(browser.eval("getComputedStyle(document.querySelector('.layer.by-skill')).display"), "inline");
        assert!(browser.eval("document.querySelector('.hit title').textContent.length").as_u64().unwrap() > 10);
        assert_no_overflow(browser, 390);
    });
}

#[test]
fn on_paper_nothing_is_folded_away_or_cut_off() {
    with_browser(&sample::sample(), |browser, file| {
        browser.open(file, 720, "dark");
        browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
        let closed = "document.querySelectorAll('details:not([open])').length";
        let before = browser.eval(closed);
        browser.eval("window.dispatchEvent(new Event('beforeprint'))");
        assert_eq!(browser.eval(closed), 0);
        assert_no_overflow(browser, 720);
        assert_eq!(browser.eval("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
        browser.eval("window.dispatchEvent(new Event('afterprint'))");
        assert_eq!(browser.eval(closed), before);
    });
}

#[test]
fn what_is_missing_is_said_in_words() {
    with_browser(&sample::bare(), |browser, file| {
        for width in [1280, 390] {
            assert_eq!(browser.open(file, width, "light"), Vec::<String>::new());
            assert_no_overflow(browser, width);
            for figure in FIGURES {
                let script = format!("document.getElementById({figure:?}).textContent.trim().length");
                assert!(browser.eval(&script).as_u64().unwrap() > 10, "{figure} is empty");
            }
            keep_pictures(browser, &format!("bare-{width}-light"));
        }
    });
}

#[test]
fn hostile_text_neither_runs_nor_breaks_the_page() {
    let mut report = sample::sample();
    let hostile =
        "</title></style></script><script>window.hurt = 1</script><img src=x onerror='window.hurt=1'>\" onload=\"x";
    report.run.title = hostile.into();
    report.run.command = "x".repeat(3000);
    report.run.datasets[0].name = hostile.into();
    report.skills[0].name = hostile.into();
    report.skills[1].name = "w".repeat(400);
    report.phases[0] = hostile.into();
    report.tasks[0] = hostile.into();
    report.episodes[0].instruction = hostile.into();
    report.library[0].name = hostile.into();
    report.library[0].body = hostile.into();
    report.candidates[0].figures[0].reason = "y".repeat(700);
    report.candidates[0].figures[0].gate = hostile.into();
    report.candidates[0].figures[0].details.insert(hostile.into(), 1.0);
    report.metrics[3].values[0].0 = hostile.into();
    report.arms[0].name = "z".repeat(200);
    report.notes.push(hostile.into());
    with_browser(&report, |browser, file| {
        assert_eq!(browser.open(file, 390, "dark"), Vec::<String>::new());
        assert_eq!(browser.eval("window.hurt === undefined"), true);
        assert_eq!(browser.eval("document.querySelector('h1').textContent").as_str(), Some(hostile));
        assert_eq!(browser.eval("document.scripts.length"), 1);
        assert_no_overflow(browser, 390);
    });
}

/// Nothing reaches beyond the right edge, unless it scrolls within itself.
fn assert_no_overflow(browser: &mut Browser, width: u32) {
    assert_eq!(browser.eval("document.documentElement.clientWidth"), width);
    let wide = browser.eval("document.documentElement.scrollWidth");
    let culprit = "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > \
                   document.documentElement.clientWidth + 1 && !one.closest('nav, .scroll')).map(one => one.outerHTML.slice(0, \
                   120)).slice(0, 3).join(' | ')";
    let culprit = browser.eval(culprit);
    assert!(wide.as_u64() <= Some(width.into()), "the page is {wide} wide in a window of {width}: {culprit}");
}

/// Keeps the part of the page that an element takes, if asked for.
fn keep_figure(browser: &mut Browser, id: &str, name: &str) {
    let Some(folder) = std::env::var_os("REPORT_SCREENSHOTS") else { return };
    let mut measure = |what: &str| {
        let script = format!(
            "(() => {{ const box = document.getElementById({id:?}).getBoundingClientRect(); return {what} }})()"
        );
        browser.eval(&script).as_f64().unwrap()
    };
    let (top, height) = (measure("box.top + scrollY"), measure("box.height"));
    std::fs::create_dir_all(&folder).unwrap();
    let bytes = STANDARD.decode(browser.screenshot(top, height)).unwrap();
    std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
}

/// Keeps the page in pieces that an image viewer takes, if asked for.
fn keep_pictures(browser: &mut Browser, name: &str) {
    const PIECE: f64 = 2600.0;
    let Some(folder) = std::env::var_os("REPORT_SCREENSHOTS") else { return };
    std::fs::create_dir_all(&folder).unwrap();
    let height = browser.eval("document.documentElement.scrollHeight").as_f64().unwrap();
    for piece in 0..(height / PIECE).ceil() as u32 {
        let top = f64::from(piece) * PIECE;
        let bytes = STANDARD.decode(browser.screenshot(top, PIECE.min(height - top))).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}-{piece}.png")), bytes).unwrap();
    }
}
