//! A loaded policy.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cli::call::Complaint;
use cli::session::{Session as Loaded, SessionOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use server::message::Value;
use server::reply::status_json;

use crate::convert::value;
use crate::raised;

/// The policy of a run, with the episodes of its clients.
#[pyclass(frozen, module = "refactor_vla._native")]
pub(crate) struct Session {
    loaded: Mutex<Loaded>,
    warnings: Vec<String>,
}

/// The bytes of a reply's actions, float32 in C order, and its other keys as JSON.
type Answer<'py> = (Bound<'py, PyBytes>, String);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (run, device, weights, replan, emit, arm))]
    fn new(
        py: Python<'_>,
        run: PathBuf,
        device: String,
        weights: Option<PathBuf>,
        replan: usize,
        emit: String,
        arm: Option<String>,
    ) -> PyResult<Session> {
        let options = SessionOptions { device, weights, replan, emit, arm };
        let loaded = py.detach(|| Loaded::load(&run, &options));
        let (loaded, warnings) = loaded.map_err(|complaint| raised(py, complaint))?;
        Ok(Session { loaded: Mutex::new(loaded), warnings })
    }

    /// What a user should know of the policy.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// What the policy expects and returns, as JSON.
    fn metadata(&self, py: Python<'_>) -> String {
        py.detach(|| self.loaded.lock().unwrap_or_else(PoisonError::into_inner).metadata().to_string())
    }

    /// Answers observations of different clients together; `None` answers one that only resets.
    fn infer<'py>(
        &self,
        py: Python<'py>,
        observations: Vec<(u64, Bound<'py, PyAny>)>,
    ) -> PyResult<Vec<Option<Answer<'py>>>> {
        let read = observations.iter().map(|(client, object)| Ok((*client, value(object)?)));
        let observations = read.collect::<PyResult<Vec<(u64, Value)>>>()?;
        let replies = py.detach(|| {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.infer(&observations)
        });
        let answer = |reply: Result<Option<server::Reply>, String>| {
            let Some(reply) = reply.map_err(|reason| raised(py, Complaint::new(reason)))? else { return Ok(None) };
            let bytes: Vec<u8> = reply.actions.iter().flat_map(|value| value.to_le_bytes()).collect();
            let mut rest = status_json(&reply);
            rest.insert("stages_ms".to_owned(), serde_json::json!(reply.stages));
            Ok(Some((PyBytes::new(py, &bytes), serde_json::Value::Object(rest).to_string())))
        };
        replies.into_iter().map(answer).collect()
    }

    /// Forgets all episodes.
    fn reset(&self, py: Python<'_>) {
        py.detach(|| self.loaded.lock().unwrap_or_else(PoisonError::into_inner).reset());
    }
}
