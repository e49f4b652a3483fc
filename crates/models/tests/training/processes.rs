//! Several processes give the weights of one.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::{Device, Tensor};
use models::training::distributed::{Environment, Loopback, Patience, Transport};
use models::training::{Outcome, TrainConfig};

use crate::regression::{Run, config, metrics, model, weights};

/// Tells a test to be one of several processes, and where to train.
const DIRECTORY: &str = "TRAINING_TEST_RANK_IN";

const PATIENCE: Patience = Patience { meeting: Duration::from_secs(20), silence: Duration::from_secs(20) };

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn environment(rank: usize, world: usize, port: u16) -> Environment {
    Environment { rank, world, local_rank: rank, address: "127.0.0.1".into(), port }
}

/// Runs on as many threads, each a rank.
fn ranks<T: Send>(world: usize, run: impl Fn(Arc<dyn Transport>) -> T + Sync) -> Vec<T> {
    let port = free_port();
    std::thread::scope(|scope| {
        let start = |rank| {
            let run = &run;
            scope.spawn(move || run(Arc::new(Loopback::connect(&environment(rank, world, port), PATIENCE).unwrap())))
        };
        let threads: Vec<_> = (0..world).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn trained(world: usize, accumulation: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let config = TrainConfig { accumulation, ema: Some(0.9), ..config() };
    let outcomes = ranks(world, |transport| Run { transport, ..Run::new(config) }.start(directory.path()).unwrap());
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Finished(_))));
    directory
}

fn alone(accumulation: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let config = TrainConfig { accumulation, ema: Some(0.9), ..config() };
    Run::new(config).start(directory.path()).unwrap();
    directory
}

fn assert_near(left: &Path, right: &Path) {
    for (name, left) in &weights(left) {
        let right = &weights(right)[name];
        let scale = left.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        for (left, right) in left.iter().zip(right) {
            assert!((left - right).abs() <= 1e-5 * scale, "{name}: {left} and {right}");
        }
    }
}

#[test]
fn ranks_give_the_bits_of_accumulated_parts() {
    for world in [2, 3] {
        let (one, several) = (alone(world), trained(world, 1));
        assert!(model(one.path()) == model(several.path()), "{world} ranks");
        assert_eq!(metrics(one.path()), metrics(several.path()));
    }
}

#[test]
fn parts_give_the_weights_of_the_whole_batch() {
    let whole = alone(1);
    assert_near(whole.path(), alone(4).path());
    assert_near(whole.path(), trained(2, 2).path());
}

#[test]
fn two_processes_give_the_weights_of_one() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let environment = Environment::from_process().unwrap().unwrap();
        let transport = Arc::new(Loopback::connect(&environment, PATIENCE).unwrap());
        let config = TrainConfig { ema: Some(0.9), ..config() };
        Run { transport, resume: true, ..Run::new(config) }.start(Path::new(&directory)).unwrap();
        return;
    }
    let several = tempfile::tempdir().unwrap();
    let port = free_port();
    let children: Vec<Child> = (0..2).map(|rank| process(rank, 2, port, several.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert!(model(alone(2).path()) == model(several.path()));
}

fn process(rank: usize, world: usize, port: u16, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::two_processes_give_the_weights_of_one"])
        .env(DIRECTORY, directory)
        .env("RANK", rank.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("WORLD_SIZE", world.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn a_run_of_one_process_goes_on_with_two() {
    let config = |accumulation| TrainConfig { accumulation, ema: Some(0.9), ..config() };
    let directory = tempfile::tempdir().unwrap();
    let flag = std::sync::atomic::AtomicBool::new(false);
    Run { stop: Some(&flag), stop_at: 21, ..Run::new(config(2)) }.start(directory.path()).unwrap();
    ranks(2, |transport| {
        // The second rank starts with other weights on another machine: the first one's are what counts.
        let run = Run { transport, resume: true, ..Run::new(config(1)) };
        let own = tempfile::tempdir().unwrap();
        let place = if run.transport.rank() == 0 { directory.path() } else { own.path() };
        run.start(place).unwrap();
    });
    assert!(model(alone(2).path()) == model(directory.path()));
}

#[test]
fn sums_are_taken_in_the_order_of_ranks_on_all() {
    // In another order these would round to something else.
    let values = [1.0_f32, 1e8, -1e8];
    let sums = ranks(3, |transport| {
        for _ in 0..2 {
            let mine = Tensor::new(&[values[transport.rank()], -0.0], &Device::Cpu).unwrap();
            transport.begin_sum(5, mine).unwrap();
        }
        transport.finish_sums().unwrap().iter().map(|sum| sum.to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
    });
    let wanted = ((values[0] + values[1]) + values[2]).to_bits();
    for sum in sums.iter().flatten() {
        assert_eq!([sum[0].to_bits(), sum[1].to_bits()], [wanted, (-0.0_f32).to_bits()]);
    }
}

#[test]
fn ranks_tell_each_other_in_order() {
    let all = ranks(3, |transport| {
        transport.barrier().unwrap();
        let mine = vec![transport.rank() as f64; transport.rank() + 1];
        let said = transport.exchange(&mine).unwrap();
        (said, transport.broadcast_bytes(vec![transport.rank() as u8]).unwrap())
    });
    for (said, bytes) in all {
        assert_eq!(said, [vec![0.0], vec![1.0; 2], vec![2.0; 3]]);
        assert_eq!(bytes, [0]);
    }
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let patience = Patience { meeting: Duration::from_secs(1), ..PATIENCE };
    let text = Loopback::connect(&environment(0, 3, free_port()), patience).err().unwrap().to_string();
    assert!(text.contains("ranks 1, 2 did not connect") && text.contains("within 1 s"), "{text}");
    let text = Loopback::connect(&environment(1, 2, free_port()), patience).err().unwrap().to_string();
    assert!(text.starts_with("rank 1: no rank 0 at `127.0.0.1:"), "{text}");
}

#[test]
fn a_rank_that_leaves_is_noticed_at_once() {
    let started = Instant::now();
    let texts = ranks(3, |transport| {
        if transport.rank() == 1 {
            return None;
        }
        let sum = Tensor::new(&[1.0_f32], &Device::Cpu).unwrap();
        let error = transport.begin_sum(1, sum).and_then(|()| transport.finish_sums()).unwrap_err();
        Some(error.to_string())
    });
    assert!(texts[0].as_ref().unwrap().contains("rank 1 has gone"), "{texts:?}");
    assert!(texts[2].as_ref().unwrap().contains("rank 0 has gone"), "{texts:?}");
    assert!(started.elapsed() < PATIENCE.silence);
}

#[test]
fn ranks_that_sum_different_things_are_stopped() {
    let texts = ranks(2, |transport| {
        let sum = Tensor::new(&[1.0_f32], &Device::Cpu).unwrap();
        let label = transport.rank() as u64;
        transport.begin_sum(label, sum).and_then(|()| transport.finish_sums()).err().map(|error| error.to_string())
    });
    assert!(texts[0].as_ref().unwrap().contains("sums other gradients"), "{texts:?}");
    assert!(texts[1].is_some());
}
