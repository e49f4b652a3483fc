//! The extension module `refactor_vla._native`: the command line and policies, as `python/refactor_vla` wraps them.
//!
//! It has three parts: `main` is the program, for the console command `refactor-vla`; `call` runs a command and returns what
//! it would print; `Session` is a loaded policy. Everything that users see is written in Python, in `python/refactor_vla`.
//! Built for Python's stable interface, one wheel serves all versions from 3.10 on.

mod convert;
mod session;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cli::call::{Complaint, Unsuccessful};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// How often Ctrl-C is looked for while a command runs.
const SIGNALS: Duration = Duration::from_millis(50);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_class::<session::Session>()
}

/// Runs the program with these arguments; returns its exit code. `launcher` starts this program again.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, launcher: Vec<OsString>) -> u8 {
    cli::launch::started_by(launcher);
    py.detach(|| cli::main(words))
}

/// Runs a command; returns what it would print on stdout, and its warnings. Ctrl-C raises `KeyboardInterrupt`.
#[pyfunction]
fn call<'py>(py: Python<'py>, words: Vec<OsString>) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, result) = channel();
    // The receiver alone cannot be used without the lock of Python's interpreter.
    let result = Mutex::new(result);
    let flag = stop.clone();
    let work = move || {
        // Nobody waits any more if Python has ended.
        let _ = sender.send(cli::call::call(words, &flag));
    };
    thread::Builder::new()
        .name("command".to_owned())
        .spawn(work)
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
    let mut interrupted = None;
    let said = loop {
        match py.detach(|| result.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNALS)) {
            Ok(said) => break said,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    interrupted = Some(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                break Err(Unsuccessful::Complaint(Complaint::new("internal error")));
            }
        }
    };
    match (said, interrupted) {
        (_, Some(signal)) => Err(signal),
        (Ok(said), None) => Ok((PyBytes::new(py, &said.out), said.warnings)),
        (Err(Unsuccessful::Complaint(complaint)), None) => Err(raised(py, complaint)),
        (Err(Unsuccessful::Interrupted), None) => Err(PyKeyboardInterrupt::new_err(())),
    }
}

/// The exception of an error.
fn raised(py: Python<'_>, complaint: Complaint) -> PyErr {
    let Complaint { text, message, facts, problems, hint } = complaint;
    let class = py.import("refactor_vla._error").and_then(|module| module.getattr("RefactorVLAError"));
    let error = class.and_then(|class| class.call1((text.trim_end(), message, facts, problems, hint)));
    error.map_or_else(|error| error, PyErr::from_value)
}
