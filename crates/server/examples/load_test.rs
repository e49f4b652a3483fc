//! Asks a running server from many clients at once, and prints what it measured as JSON.
//!
//! ```text
//! refactor-vla serve RUN --port 8000 &
//! cargo run --release -p server --example load_test -- --port 8000 --pid $! --clients 32 --requests 10000
//! cargo run --release -p server --example load_test -- --port 8000 --pid $! --clients 4 --pause-ms 500 --minutes 30
//! ```
//! One more client is killed in the middle of a request, again and again, and one asks and never reads, until its socket takes
//! no more requests and the server ends the connection; `--alone` does without them, to measure latency. The exit code is 1 if
//! a request was lost, or if the server's memory grew by more than a tenth after the first tenth of the time.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use server::client::{Client, Input};
use server::message::{Key, Value};

/// The receive buffer of the client that stalls, in bytes: a few replies fill it.
const BUFFER: u32 = 1 << 12;

/// Time between its requests: it is to stall, not to take the server's time.
const STALLED_PAUSE: Duration = Duration::from_millis(5);

/// What was asked for.
#[derive(Clone)]
struct Plan {
    address: String,
    key: Option<String>,
    clients: usize,
    /// Requests of all clients together, unless there is a time.
    requests: usize,
    minutes: Option<f64>,
    /// The side of images, in pixels.
    size: usize,
    /// Requests of each client before its episode begins again.
    episode: usize,
    /// Time between two requests of a client.
    pause: Duration,
    /// Without the clients that are killed and stall.
    alone: bool,
    /// The server's process.
    pid: Option<u32>,
}

/// What one client found.
#[derive(Default)]
struct Found {
    latencies: Vec<f64>,
    stages: BTreeMap<String, Vec<f64>>,
    errors: Vec<String>,
}

fn main() -> ExitCode {
    match tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| runtime.block_on(measure(&plan()))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{}", json!({ "error": error.to_string() }));
            ExitCode::FAILURE
        }
    }
}

fn plan() -> Plan {
    let all: Vec<String> = std::env::args().collect();
    let option = |name: &str| all.iter().position(|one| one == name).and_then(|at| all.get(at + 1)).cloned();
    let number = |name: &str, default: usize| option(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    Plan {
        address: format!("127.0.0.1:{}", number("--port", 8000)),
        key: option("--api-key"),
        clients: number("--clients", 32),
        requests: number("--requests", 10_000),
        minutes: option("--minutes").and_then(|text| text.parse().ok()),
        size: number("--size", 128),
        episode: number("--episode", 50),
        pause: Duration::from_millis(number("--pause-ms", 0) as u64),
        alone: all.iter().any(|one| one == "--alone"),
        pid: option("--pid").and_then(|text| text.parse().ok()),
    }
}

async fn measure(plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let (asked, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let end = plan.minutes.map(|minutes| Instant::now() + Duration::from_secs_f64(60.0 * minutes));
    let begun = Instant::now();
    let memory = tokio::spawn(watch_memory(plan.pid, done.clone()));
    let kills = tokio::spawn(killed(plan.clone(), done.clone()));
    let stalls = tokio::spawn(stalled(plan.clone(), done.clone()));
    let robots: Vec<_> =
        (0..plan.clients).map(|at| tokio::spawn(robot(plan.clone(), at, asked.clone(), end))).collect();
    let mut all = Found::default();
    for robot in robots {
        let found = robot.await?;
        all.latencies.extend(found.latencies);
        all.errors.extend(found.errors);
        for (stage, times) in found.stages {
            all.stages.entry(stage).or_default().extend(times);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    let memory = memory.await?;
    let (kills, stalls) = (kills.await?, stalls.await?);
    let answered = all.latencies.len();
    let wanted = if end.is_some() { answered + all.errors.len() } else { plan.requests };
    let stages: BTreeMap<&String, f64> =
        all.stages.iter_mut().map(|(stage, times)| (stage, rounded(quantile(times, 0.5)))).collect();
    let settled = memory.get(memory.len() / 10).copied();
    let flat = match (settled, memory.last()) {
        (Some(first), Some(last)) => *last as f64 <= first as f64 * 1.1,
        _ => true,
    };
    let latency = |share: f64| rounded(quantile(&mut all.latencies.clone(), share));
    println!(
        "{:#}",
        json!({
            "clients": plan.clients,
            "image_side": plan.size,
            "requests": wanted,
            "answered": answered,
            "lost": wanted - answered,
            "errors": all.errors.iter().take(5).collect::<Vec<_>>(),
            "seconds": rounded(seconds),
            "requests_per_second": rounded(answered as f64 / seconds),
            "latency_ms": { "p50": latency(0.5), "p90": latency(0.9), "p99": latency(0.99), "max": latency(1.0) },
            "server_timing_p50_ms": stages,
            "killed_clients": kills,
            "stalled_client": {
                "requests": stalls.requests, "refusals": stalls.refusals, "thrown_out": stalls.thrown_out,
            },
            "memory_kib": {
                "after_a_tenth": settled, "end": memory.last(), "most": memory.iter().max(), "flat": flat,
            },
        })
    );
    Ok(wanted == answered && flat)
}

/// A client that asks as often as it can.
async fn robot(plan: Plan, at: usize, asked: Arc<AtomicUsize>, end: Option<Instant>) -> Found {
    let mut found = Found::default();
    let mut client = match Client::connect(&plan.address, plan.key.as_deref()).await {
        Ok(client) => client,
        Err(error) => {
            found.errors.push(error.to_string());
            return found;
        }
    };
    let robot = Robot::new(&client, &plan, at);
    for request in 0.. {
        let over = match end {
            Some(end) => Instant::now() >= end,
            None => asked.fetch_add(1, Ordering::Relaxed) >= plan.requests,
        };
        if over {
            break;
        }
        let state = robot.state(request % plan.episode.max(1));
        let sent = Instant::now();
        match client.infer(&robot.observation(&state, request % plan.episode.max(1) == 0)).await {
            Ok(answer) => {
                found.latencies.push(sent.elapsed().as_secs_f64() * 1000.0);
                if let Some(Value::Map(timing)) = answer.all.get(&Key::Text("server_timing".to_owned())) {
                    for (stage, time) in timing {
                        if let Value::Float(time) = time {
                            found.stages.entry(stage.shown()).or_default().push(*time);
                        }
                    }
                }
            }
            Err(error) => {
                found.errors.push(error.to_string());
                break;
            }
        }
        if !plan.pause.is_zero() {
            tokio::time::sleep(plan.pause).await;
        }
    }
    found
}

/// Observations of a robot that moves a little from request to request.
struct Robot {
    image: Vec<u8>,
    side: usize,
    width: usize,
    prompt: &'static str,
}

/// Tasks of the dataset in the program.
const PROMPTS: [&str; 4] = [
    "put the bowl on the plate",
    "open the middle drawer of the cabinet",
    "turn on the stove",
    "put the wine bottle on top of the cabinet",
];

impl Robot {
    fn new(client: &Client, plan: &Plan, at: usize) -> Robot {
        let side = plan.size;
        let image = (0..side * side * 3).map(|place| (place * 7 + at * 13) as u8).collect();
        Robot { image, side, width: client.number("state_dim").unwrap_or(0), prompt: PROMPTS[at % PROMPTS.len()] }
    }

    fn state(&self, request: usize) -> Vec<f32> {
        const LIBERO: [f32; 8] = [-0.1, 0.0, 1.1, 3.1, -0.1, 0.0, 0.03, -0.03];
        let drift = (request as f32 / 20.0).sin() * 0.1;
        (0..self.width).map(|at| LIBERO.get(at).copied().unwrap_or(0.0) + if at < 3 { drift } else { 0.0 }).collect()
    }

    fn observation<'a>(&'a self, state: &'a [f32], reset: bool) -> [(&'static str, Input<'a>); 5] {
        [
            ("observation/image", Input::Image(self.side, self.side, &self.image)),
            ("observation/wrist_image", Input::Image(self.side, self.side, &self.image)),
            ("observation/state", Input::Numbers(state)),
            ("prompt", Input::Text(self.prompt)),
            ("reset", Input::Flag(reset)),
        ]
    }
}

/// Connects, asks, and is gone before the reply; gives how often.
async fn killed(plan: Plan, done: Arc<AtomicBool>) -> usize {
    let mut count = 0;
    while !plan.alone && !done.load(Ordering::Relaxed) {
        if let Ok(mut client) = Client::connect(&plan.address, plan.key.as_deref()).await {
            let robot = Robot::new(&client, &plan, 0);
            let state = robot.state(0);
            let _ = client.send(&robot.observation(&state, false)).await;
            count += 1;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    count
}

/// Asks and never reads, until the server has stopped reading as well and throws it out; then again.
async fn stalled(plan: Plan, done: Arc<AtomicBool>) -> Stalls {
    let mut stalls = Stalls::default();
    while !plan.alone && !done.load(Ordering::Relaxed) {
        let connected = Client::connect_with_buffer(&plan.address, plan.key.as_deref(), Some(BUFFER)).await;
        let Ok(mut client) = connected else {
            tokio::time::sleep(Duration::from_millis(500)).await;
            continue;
        };
        let robot = Robot::new(&client, &plan, 1);
        let state = robot.state(0);
        let observation = robot.observation(&state, false);
        while !done.load(Ordering::Relaxed) {
            match tokio::time::timeout(Duration::from_secs(1), client.send(&observation)).await {
                Ok(Ok(())) => stalls.requests += 1,
                // Nobody takes the next request, as nobody takes the replies.
                Err(_) => {
                    stalls.refusals += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Ok(Err(_)) => {
                    stalls.thrown_out += 1;
                    break;
                }
            }
            tokio::time::sleep(STALLED_PAUSE).await;
        }
    }
    stalls
}

/// What the client that stalls has seen.
#[derive(Default)]
struct Stalls {
    /// Requests that it sent without reading a reply.
    requests: usize,
    /// How often its socket took no request for a second.
    refusals: usize,
    /// How often the server ended the connection.
    thrown_out: usize,
}

/// The resident memory of a process, in KiB, twice a second.
async fn watch_memory(pid: Option<u32>, done: Arc<AtomicBool>) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(pid) = pid.filter(|_| !done.load(Ordering::Relaxed)) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        seen.extend(line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    seen
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let at = (share * times.len().saturating_sub(1) as f64).round() as usize;
    times.get(at).copied().unwrap_or(0.0)
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
