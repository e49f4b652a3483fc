//! Bars on stderr, if somebody is there to see them, and Ctrl-C.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use dataset::features::Filling;
use dataset::printable;
use experiments::briefing::Briefing;
use experiments::cycle::Event;
use experiments::cycle::gates::Judgement;
use indicatif::{ProgressBar, ProgressStyle};
use models::training::Progress;

use crate::call;
use crate::failure::{Failure, Problem};

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// A flag that Ctrl-C sets. Pressed again, it ends the program.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool, Failure> {
    stop_flag_with("writing a checkpoint; press Ctrl-C again to end without")
}

/// The same, with a line that says what happens after Ctrl-C.
pub(crate) fn stop_flag_with(line: &'static str) -> Result<&'static AtomicBool, Failure> {
    let set = ctrlc::set_handler(move || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(2);
        }
        let _ = io::stderr().write_all(format!("\n{line}\n").as_bytes());
    });
    match set {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&STOP),
        Err(error) => Err(Problem::new(format!("cannot listen for Ctrl-C: {error}")).into()),
    }
}

/// Trains with a bar: loss, throughput, time left.
pub(crate) fn training<T>(what: &str, steps: u64, work: impl FnOnce(&mut dyn FnMut(&Progress)) -> T) -> T {
    let Some(bar) = bar(steps, "{elapsed} {bar:30} {pos}/{len} {msg}") else { return work(&mut |_| {}) };
    bar.set_message(what.to_owned());
    let done = work(&mut |progress| {
        let Progress { step, loss, per_second, unit, eta_seconds, .. } = progress;
        bar.set_position(*step);
        bar.set_message(format!("{what}, loss {loss:.4}, {per_second:.0} {unit}/s, {} left", time(*eta_seconds)));
    });
    bar.finish_and_clear();
    done
}

/// The stages of a run: a line for each, and a bar while one trains.
pub(crate) struct Stages {
    name: String,
    bar: Option<ProgressBar>,
}

impl Stages {
    pub(crate) fn new() -> Stages {
        Stages { name: String::new(), bar: None }
    }

    /// Shows an event of a run.
    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Stage { name, done } => {
                self.finish();
                self.name = (*name).to_owned();
                say(&format!("{name}{}", if *done { ": already done" } else { "" }));
            }
            Event::Training(Progress { step, steps, loss, per_second, unit, eta_seconds, .. }) => {
                self.bar = self.bar.take().or_else(|| bar(*steps, "{elapsed} {bar:30} {pos}/{len} {msg}"));
                if let Some(bar) = &self.bar {
                    bar.set_position(*step);
                    let (name, left) = (&self.name, time(*eta_seconds));
                    bar.set_message(format!("{name}, loss {loss:.4}, {per_second:.0} {unit}/s, {left} left"));
                }
            }
            Event::Judged { candidate, judgement } => {
                let verdict = if judgement.admitted { "admitted" } else { "rejected" };
                say(&format!("  {verdict}: {} ({})", candidate.body, measured(judgement)));
            }
        }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// What the gates measured, with their limits.
fn measured(judgement: &Judgement) -> String {
    let of = |figure: &report::Figure| {
        let value = figure.value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let bound = figure.high.map_or(String::new(), |high| format!(" to {high:.3}"));
        let limit = figure.limit.map_or(String::new(), |limit| format!(" of {limit:.3}"));
        format!("{} {value}{bound}{limit}", figure.gate)
    };
    judgement.figures.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// One line on stderr.
pub(crate) fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Makes features with a bar.
pub(crate) fn filling<T>(work: impl FnOnce(&mut dyn FnMut(Filling)) -> T) -> T {
    let Some(bar) = bar(0, "{elapsed} {bar:30} {pos}/{len} pictures, {per_sec}, {eta} left") else {
        return work(&mut |_| {});
    };
    let done = work(&mut |filling| {
        bar.set_length(filling.frames as u64);
        bar.set_position(filling.done as u64);
    });
    bar.finish_and_clear();
    done
}

/// Says what a run is about, and what to know about it, before it starts.
pub(crate) fn brief(briefing: &Briefing) {
    briefing.lines.iter().for_each(|line| say(&printable(line)));
    note(&briefing.notes);
}

/// Says what differs from what a user may expect, where that is no mistake.
pub(crate) fn note(notes: &[String]) {
    notes.iter().for_each(|note| say(&format!("note: {}", printable(note))));
}

/// Says what was wrong without stopping anything.
pub(crate) fn warn(warnings: &[String]) {
    if call::take_warnings(warnings) {
        return;
    }
    for warning in warnings {
        let _ = io::stderr().write_all(format!("warning: {warning}\n").as_bytes());
    }
}

pub(crate) fn bar(length: u64, template: &str) -> Option<ProgressBar> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    Some(bar)
}

fn time(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
