//! Batches made ahead on another thread, in order.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::objective::{Objective, Part};
use crate::error::{Error, Result};

/// How many steps are prepared ahead.
const AHEAD: usize = 2;

/// The micro-batches that a rank takes, in order.
pub(super) struct Prepared<'scope, B> {
    batches: Receiver<Result<B>>,
    worker: Option<ScopedJoinHandle<'scope, ()>>,
}

/// Starts preparing the given parts of each step.
pub(super) fn prepare<'scope, 'env, O: Objective>(
    scope: &'scope Scope<'scope, 'env>,
    objective: &'env O,
    steps: Range<u64>,
    parts: Vec<Part>,
) -> Prepared<'scope, O::Batch>
where
    O::Batch: 'scope,
{
    let (sender, batches) = sync_channel((AHEAD * parts.len()).saturating_sub(1));
    let worker = scope.spawn(move || {
        for step in steps {
            for part in &parts {
                let batch = objective.prepare(step, *part);
                let failed = batch.is_err();
                // Nobody listens any more once training has stopped.
                if sender.send(batch).is_err() || failed {
                    return;
                }
            }
        }
    });
    Prepared { batches, worker: Some(worker) }
}

impl<B> Prepared<'_, B> {
    /// The next one.
    pub(super) fn next(&mut self) -> Result<B> {
        match self.batches.recv() {
            Ok(batch) => batch,
            Err(_) => {
                if let Some(Err(panic)) = self.worker.take().map(ScopedJoinHandle::join) {
                    resume_unwind(panic);
                }
                Err(Error::Config("batches ended before the steps did".into()))
            }
        }
    }
}
