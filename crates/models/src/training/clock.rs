//! How fast a run is, and when it will end.

use std::time::{Duration, Instant};

/// Times of the steps that this start has taken.
pub(super) struct Clock {
    pub(super) started: Instant,
    first_step: u64,
    reported: Instant,
    reported_step: u64,
    /// Since the last report, for evaluations and checkpoints.
    pub(super) paused: Duration,
}

impl Clock {
    pub(super) fn start(step: u64) -> Clock {
        let now = Instant::now();
        Clock { started: now, first_step: step, reported: now, reported_step: step, paused: Duration::ZERO }
    }

    /// Steps a second since the last report, without pauses; seconds to the end, with them.
    pub(super) fn report(&mut self, step: u64, steps: u64) -> (f64, f64) {
        let busy = self.reported.elapsed().saturating_sub(self.paused).as_secs_f64().max(1e-9);
        let speed = (step - self.reported_step) as f64 / busy;
        let each = self.started.elapsed().as_secs_f64() / (step - self.first_step).max(1) as f64;
        (self.reported, self.reported_step, self.paused) = (Instant::now(), step, Duration::ZERO);
        (speed, (steps - step) as f64 * each)
    }
}
