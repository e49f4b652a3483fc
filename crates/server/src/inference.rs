//! The thread on which the policy lives, and its batches.
//!
//! A batch begins with a request and is complete when every connected client has asked, when it is full, or when the window
//! is over. A single client so never waits, and one that is connected but silent costs the others at most the window. Nothing
//! is computed for a client that has left.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::error::ServerError;
use crate::metrics::Metrics;
use crate::policy::{ClientId, Policy, PolicyError, Reply, Request};

/// What the thread is asked to do.
pub(crate) enum Order {
    /// Answer a request.
    Infer(Job),
    /// Forget a client.
    Forget(ClientId),
    /// End, after everything before it.
    Stop,
}

/// A request on its way.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) asked: Instant,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// What became of a request.
pub(crate) struct Answer {
    pub(crate) result: Result<Reply, PolicyError>,
    /// The request as it was, so that its images can be shown.
    pub(crate) request: Request,
    /// How long it waited for its batch.
    pub(crate) queue: Duration,
    /// How long the inference of its batch took.
    pub(crate) infer: Duration,
    /// How many requests the batch had.
    pub(crate) batch: usize,
}

/// How batches are made.
pub(crate) struct Batching {
    pub(crate) window: Duration,
    pub(crate) most: usize,
    /// How many clients are connected.
    pub(crate) clients: Arc<AtomicUsize>,
}

/// An error once the thread has ended. Nobody has to wait for that: a policy may be slow.
pub(crate) type Ended = oneshot::Receiver<Infallible>;

/// Starts the thread. It ends at [`Order::Stop`] or when all senders are gone; what was sent before is answered.
pub(crate) fn start(
    policy: Box<dyn Policy>,
    batching: Batching,
    metrics: Arc<Metrics>,
) -> Result<(Sender<Order>, Ended), ServerError> {
    let (sender, orders) = channel();
    let (running, ended) = oneshot::channel();
    let worker = Worker { policy, batching, metrics, orders };
    let work = move || {
        worker.run();
        drop(running);
    };
    thread::Builder::new().name("inference".to_owned()).spawn(work).map_err(ServerError::Start)?;
    Ok((sender, ended))
}

struct Worker {
    policy: Box<dyn Policy>,
    batching: Batching,
    metrics: Arc<Metrics>,
    orders: Receiver<Order>,
}

/// A batch, and what else was ordered meanwhile.
struct Gathered {
    jobs: Vec<Job>,
    gone: Vec<ClientId>,
    stop: bool,
}

impl Worker {
    fn run(mut self) {
        while let Ok(order) = self.orders.recv() {
            match order {
                Order::Stop => return,
                Order::Forget(client) => self.forget(client),
                Order::Infer(job) => {
                    if !self.is_awaited(&job) {
                        continue;
                    }
                    let Gathered { jobs, gone, stop } = self.gather(job);
                    self.answer(jobs);
                    gone.into_iter().for_each(|client| self.forget(client));
                    if stop {
                        return;
                    }
                }
            }
        }
    }

    /// A batch that begins with a job.
    fn gather(&self, first: Job) -> Gathered {
        let end = Instant::now() + self.batching.window;
        let mut gathered = Gathered { jobs: vec![first], gone: Vec::new(), stop: false };
        while !gathered.stop {
            let full = gathered.jobs.len() >= self.batching.most;
            let complete = gathered.jobs.len() >= self.batching.clients.load(Ordering::Relaxed);
            if full || complete {
                break;
            }
            match self.orders.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Order::Infer(job)) if self.is_awaited(&job) => gathered.jobs.push(job),
                Ok(Order::Infer(_)) => {}
                Ok(Order::Forget(client)) => gathered.gone.push(client),
                Ok(Order::Stop) => gathered.stop = true,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        gathered
    }

    /// Whether the client of a job is still there.
    fn is_awaited(&self, job: &Job) -> bool {
        let is_awaited = !job.answer.is_closed();
        if !is_awaited {
            self.metrics.abandoned();
        }
        is_awaited
    }

    fn answer(&mut self, jobs: Vec<Job>) {
        let begun = Instant::now();
        let (mut requests, mut rest) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
        for Job { request, asked, answer } in jobs {
            requests.push(request);
            rest.push((asked, answer));
        }
        // A policy does not panic; if one does, its clients are told and all others are served on.
        let results = catch_unwind(AssertUnwindSafe(|| self.policy.infer(&requests)));
        let infer = begun.elapsed();
        let batch = requests.len();
        self.metrics.batch(batch);
        let failed = |what: &str| PolicyError::Failed(what.to_owned());
        let mut results = results.unwrap_or_else(|_| vec![Err(failed("internal error (panic)")); batch]).into_iter();
        for (request, (asked, answer)) in requests.into_iter().zip(rest) {
            let result = results.next().unwrap_or_else(|| Err(failed("internal error: no reply")));
            let queue = begun.saturating_duration_since(asked);
            // A client that has left does not hear it.
            let _ = answer.send(Answer { result, request, queue, infer, batch });
        }
    }

    fn forget(&mut self, client: ClientId) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.policy.forget(client)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Metadata, Task};

    /// Replies with the size of the batch; panics and fails on request.
    struct Counting;

    impl Policy for Counting {
        fn metadata(&self) -> Metadata {
            Metadata::default()
        }

        fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>> {
            assert!(batch.iter().all(|request| request.task.text() != "panic"), "asked to");
            let one = |request: &Request| match request.task.text() {
                "fail" => Err(PolicyError::Refused("no".to_owned())),
                _ => Ok(Reply { actions: vec![batch.len() as f32], ..Reply::default() }),
            };
            batch.iter().map(one).collect()
        }

        fn forget(&mut self, _: ClientId) {}
    }

    fn job(client: u64, task: &str) -> (Order, oneshot::Receiver<Answer>) {
        let (answer, receiver) = oneshot::channel();
        let task = Task::Prompt(task.to_owned());
        let (pictures, state) = (Vec::new(), Vec::new());
        let request = Request { client: ClientId(client), pictures, state, task, restart: false, episode: None };
        (Order::Infer(Job { request, asked: Instant::now(), answer }), receiver)
    }

    fn started(clients: usize, window: Duration) -> (Sender<Order>, Ended) {
        let batching = Batching { window, most: 8, clients: Arc::new(AtomicUsize::new(clients)) };
        start(Box::new(Counting), batching, Arc::new(Metrics::new())).unwrap()
    }

    #[test]
    fn requests_of_several_clients_share_a_batch_and_fail_alone() {
        let (sender, ended) = started(3, Duration::from_secs(20));
        let mut receivers = Vec::new();
        for (client, task) in [(0, "a"), (1, "fail"), (2, "b")] {
            let (order, receiver) = job(client, task);
            sender.send(order).unwrap();
            receivers.push(receiver);
        }
        let answers: Vec<Answer> = receivers.into_iter().map(|one| one.blocking_recv().unwrap()).collect();
        assert_eq!(answers[0].result.as_ref().unwrap().actions, [3.0]);
        assert!(answers[1].result.is_err() && answers[2].result.is_ok());
        drop(sender);
        assert!(ended.blocking_recv().is_err());
    }

    #[test]
    fn silent_clients_cost_no_more_than_the_window() {
        let (sender, ended) = started(2, Duration::from_millis(5));
        let (order, receiver) = job(0, "a");
        let asked = Instant::now();
        sender.send(order).unwrap();
        assert_eq!(receiver.blocking_recv().unwrap().batch, 1);
        assert!(asked.elapsed() < Duration::from_secs(5));
        drop(sender);
        assert!(ended.blocking_recv().is_err());
    }

    #[test]
    fn a_panic_is_an_error_of_its_batch_alone() {
        let (sender, ended) = started(1, Duration::ZERO);
        for (task, ok) in [("panic", false), ("a", true)] {
            let (order, receiver) = job(0, task);
            sender.send(order).unwrap();
            assert_eq!(receiver.blocking_recv().unwrap().result.is_ok(), ok);
        }
        drop(sender);
        assert!(ended.blocking_recv().is_err());
    }

    #[test]
    fn nothing_is_computed_for_clients_that_have_left() {
        let (sender, orders) = channel();
        let mut receivers = Vec::new();
        for (client, has_left) in [(0, true), (1, false), (2, true), (3, false)] {
            let (order, receiver) = job(client, if has_left { "panic" } else { "a" });
            sender.send(order).unwrap();
            receivers.extend(Some(receiver).filter(|_| !has_left));
        }
        drop(sender);
        let metrics = Arc::new(Metrics::new());
        let batching = Batching { window: Duration::ZERO, most: 8, clients: Arc::new(AtomicUsize::new(4)) };
        Worker { policy: Box::new(Counting), batching, metrics: metrics.clone(), orders }.run();
        for receiver in receivers {
            assert!(receiver.blocking_recv().unwrap().result.is_ok());
        }
        assert!(metrics.text().contains("abandoned_total 2"), "{}", metrics.text());
    }

    #[test]
    fn what_was_asked_is_answered_before_the_end() {
        let (sender, ended) = started(2, Duration::ZERO);
        let (order, receiver) = job(0, "a");
        sender.send(order).unwrap();
        drop(sender);
        assert!(receiver.blocking_recv().unwrap().result.is_ok());
        assert!(ended.blocking_recv().is_err());
    }
}
