//! Counters and histograms, in the format of Prometheus.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Labels of a metric, as names and values.
type Labels = Vec<(&'static str, String)>;

/// What the server counts.
pub(crate) struct Metrics {
    registry: Registry,
    clients: Gauge,
    connections: Counter,
    requests: Counter,
    abandoned: Counter,
    errors: Family<Labels, Counter>,
    received: Counter,
    sent: Counter,
    batches: Histogram,
    stages: Family<Labels, Histogram, fn() -> Histogram>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let stage: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_1, 2.0, 16));
        let metrics = Metrics {
            registry: Registry::with_prefix("refactor_vla"),
            clients: Gauge::default(),
            connections: Counter::default(),
            requests: Counter::default(),
            abandoned: Counter::default(),
            errors: Family::default(),
            received: Counter::default(),
            sent: Counter::default(),
            batches: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            stages: Family::new_with_constructor(stage),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Metrics {
        let registry = &mut self.registry;
        registry.register("clients", "Connected clients", self.clients.clone());
        registry.register("connections", "Connections of clients so far", self.connections.clone());
        registry.register("requests", "Requests that were answered with actions", self.requests.clone());
        registry.register("abandoned", "Requests whose client left before its turn", self.abandoned.clone());
        registry.register("errors", "Requests that were answered with an error, by kind", self.errors.clone());
        registry.register_with_unit("received", "Bytes of messages received", Unit::Bytes, self.received.clone());
        registry.register_with_unit("sent", "Bytes of messages sent", Unit::Bytes, self.sent.clone());
        registry.register("batch_requests", "Requests in a batch", self.batches.clone());
        registry.register_with_unit("stage", "Time of each stage of a request", Unit::Seconds, self.stages.clone());
        self
    }

    pub(crate) fn connected(&self) {
        self.clients.inc();
        self.connections.inc();
    }

    pub(crate) fn disconnected(&self) {
        self.clients.dec();
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.inc_by(bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.inc_by(bytes as u64);
    }

    pub(crate) fn answered(&self) {
        self.requests.inc();
    }

    pub(crate) fn abandoned(&self) {
        self.abandoned.inc();
    }

    pub(crate) fn error(&self, kind: &str) {
        self.errors.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    pub(crate) fn batch(&self, requests: usize) {
        self.batches.observe(requests as f64);
    }

    /// A stage took so many milliseconds.
    pub(crate) fn stage(&self, stage: &str, milliseconds: f64) {
        self.stages.get_or_create(&vec![("stage", stage.to_owned())]).observe(milliseconds / 1000.0);
    }

    /// All of them as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let metrics = Metrics::new();
        metrics.connected();
        metrics.answered();
        metrics.error("message");
        metrics.batch(3);
        metrics.stage("decode", 0.5);
        let text = metrics.text();
        for line in [
            "refactor_vla_clients 1",
            "refactor_vla_requests_total 1",
            "refactor_vla_errors_total{kind=\"message\"} 1",
            "refactor_vla_stage_seconds_count{stage=\"decode\"} 1",
            "refactor_vla_batch_requests_sum 3.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
