//! Commands as functions of this process: for the Python module, which wants results, warnings and errors as data.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::failure::Complaint;
use crate::{PROGRAM, parse, run};

/// What a command said, instead of printing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What it would have printed on stdout.
    pub out: Vec<u8>,
    /// Its warnings.
    pub warnings: Vec<String>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuccessful {
    /// Something was wrong.
    Complaint(Complaint),
    /// The flag was set.
    Interrupted,
}

/// What a command in progress says, instead of printing it, and the flag that stops it.
#[derive(Default)]
struct Capture {
    out: Vec<u8>,
    /// None if they are printed.
    warnings: Option<Vec<String>>,
    stop: Option<Arc<AtomicBool>>,
}

thread_local! {
    /// That of the call on this thread. Commands print and warn on the thread that runs them.
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// Carried by the unwinding of an interrupted command, which so cleans up after itself.
struct Stopped;

/// Runs a command, given by its words without the name of the program. Setting `stop` ends `annotate` early and leaves
/// nothing behind; other commands finish first.
///
/// # Errors
/// If the command fails, or was stopped.
pub fn call(words: impl IntoIterator<Item = OsString>, stop: &Arc<AtomicBool>) -> Result<Said, Unsuccessful> {
    let words: Vec<OsString> = std::iter::once(OsString::from(PROGRAM)).chain(words).collect();
    let args = parse(&words).map_err(|error| {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Unsuccessful::Complaint(Complaint { text, ..Complaint::new(first) })
    })?;
    let (said, done) = capturing(stop, || run(args))?;
    done.map(|()| said).map_err(|failure| Unsuccessful::Complaint(failure.into_complaint()))
}

/// Runs the work on this thread, and collects what it prints and warns about.
pub(crate) fn capturing<T>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> Result<(Said, T), Unsuccessful> {
    CAPTURE.set(Some(Capture { warnings: Some(Vec::new()), stop: Some(stop.clone()), ..Capture::default() }));
    let done = catch_unwind(AssertUnwindSafe(work));
    let Capture { out, warnings, .. } = CAPTURE.take().unwrap_or_default();
    match done {
        Ok(value) => Ok((Said { out, warnings: warnings.unwrap_or_default() }, value)),
        Err(payload) if payload.is::<Stopped>() => Err(Unsuccessful::Interrupted),
        Err(payload) => {
            Err(Unsuccessful::Complaint(Complaint::new(format!("internal error: {}", words_of(&*payload)))))
        }
    }
}

fn words_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("panic")
}

/// Runs the work on this thread, and collects what it would print on stdout.
pub(crate) fn redirected<T>(work: impl FnOnce() -> T) -> (Vec<u8>, T) {
    // Within a call its flag and its warnings stay.
    let out = CAPTURE.with_borrow_mut(|capture| std::mem::take(&mut capture.get_or_insert_default().out));
    let is_call = stop_flag().is_some();
    let done = work();
    let printed = CAPTURE.with_borrow_mut(|capture| std::mem::replace(&mut capture.get_or_insert_default().out, out));
    if !is_call {
        CAPTURE.set(None);
    }
    (printed, done)
}

/// Takes what would be printed on stdout, if it is collected.
pub(crate) fn take_output(bytes: &[u8]) -> bool {
    CAPTURE.with_borrow_mut(|capture| capture.as_mut().map(|capture| capture.out.extend_from_slice(bytes)).is_some())
}

/// Takes warnings, if they are collected.
pub(crate) fn take_warnings(warnings: &[String]) -> bool {
    CAPTURE.with_borrow_mut(|capture| {
        let taken = capture.as_mut().and_then(|capture| capture.warnings.as_mut());
        taken.map(|taken| taken.extend_from_slice(warnings)).is_some()
    })
}

/// The flag of the call on this thread, for work on any thread.
pub(crate) fn stop_flag() -> Option<Arc<AtomicBool>> {
    CAPTURE.with_borrow(|capture| capture.as_ref().and_then(|capture| capture.stop.clone()))
}

/// Ends the work by unwinding, so that temporary files are removed, if the flag is set.
pub(crate) fn unwind_if_set(stop: &AtomicBool) {
    if stop.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(words: &[&str], stop: bool) -> Result<Said, Unsuccessful> {
        call(words.iter().map(OsString::from), &Arc::new(AtomicBool::new(stop)))
    }

    #[test]
    fn results_are_returned_and_errors_are_data() {
        let said = called(&["program", "check", r#"pick "milk""#], false).unwrap();
        assert_eq!(String::from_utf8(said.out).unwrap(), "Motion\n");
        let Err(Unsuccessful::Complaint(complaint)) = called(&["library", "show", "nowhere.json"], false) else {
            panic!("there is no such file")
        };
        assert_eq!(complaint.message, "cannot read `nowhere.json`: there is no such file");
        assert!(complaint.hint.is_some() && complaint.text.starts_with("error: cannot read"), "{complaint:?}");
        let Err(Unsuccessful::Complaint(complaint)) = called(&["program", "chekc"], false) else {
            panic!("there is no such command")
        };
        assert!(complaint.message.contains("unrecognized subcommand"), "{complaint:?}");
    }

    #[test]
    fn an_interrupted_annotation_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let words = ["annotate", "embedded:libero_goal_mini", out.to_str().unwrap(), "--json"];
        assert_eq!(called(&words, true), Err(Unsuccessful::Interrupted));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let said = called(&words, false).unwrap();
        let outcome: serde_json::Value = serde_json::from_slice(&said.out).unwrap();
        assert_eq!(outcome["episodes"], 36);
    }
}
