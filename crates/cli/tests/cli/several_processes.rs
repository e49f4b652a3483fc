//! Two processes of the binary that meet over loopback, as `torchrun` starts them, give the bits of one process that
//! accumulates as many parts.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::folder;

const MINI: &str = "embedded:libero_goal_mini";

/// A process of the binary with the variables that `torchrun` sets for one of several processes on one machine.
fn start(args: &[String], rank: usize, world: usize, port: u16) -> Child {
    Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(args)
        .env_clear()
        .envs([("LC_ALL", "C.UTF-8"), ("NO_COLOR", "1"), ("MASTER_ADDR", "127.0.0.1")])
        .envs(
            [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", world)]
                .map(|(name, value)| (name, value.to_string())),
        )
        .env("MASTER_PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the command in as many processes and returns the JSON that the first prints; the others print nothing.
fn run_in(world: usize, args: &[String]) -> Value {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let children: Vec<Child> = (0..world).map(|rank| start(args, rank, world, port)).collect();
    let outputs: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for (rank, output) in outputs.iter().enumerate() {
        assert!(output.status.success(), "rank {rank}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(rank == 0 || output.stdout.is_empty(), "rank {rank}: {}", String::from_utf8_lossy(&output.stdout));
    }
    serde_json::from_slice(&outputs[0].stdout).unwrap()
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// `--set` for each of the settings.
fn sets(settings: &[String]) -> Vec<String> {
    settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]).collect()
}

/// Few steps of small batches.
const FEW: [&str; 4] = ["train.steps=4", "train.warmup=1", "train.evaluate_every=4", "batch=8"];

/// The weights in a file, without the header, which records the number of parts.
fn weights(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    bytes[8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize..].to_vec()
}

/// All trained models of a run, by their place in it.
fn models(run: &Path) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec![run.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false if path.ends_with("model.safetensors") => {
                    found.push(path.strip_prefix(run).unwrap().display().to_string());
                }
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn assert_same_models(one: &Path, other: &Path, least: usize) {
    let names = models(one);
    assert!(names.len() >= least && names == models(other), "{names:?}, {:?}", models(other));
    for name in names {
        assert!(weights(&one.join(&name)) == weights(&other.join(&name)), "{name} differs");
    }
}

#[test]
fn two_processes_give_the_bits_of_two_accumulated_parts() {
    let folder = folder(&[]);
    let place = |name: &str| folder.path().join(name);
    let shown = |name: &str| place(name).to_str().unwrap().to_owned();

    // The whole loop.
    let sections = ["world_model", "amortizer", "wake.emitter", "wake.decoder"];
    let mut few: Vec<String> =
        sections.iter().flat_map(|section| FEW.map(|setting| format!("{section}.{setting}"))).collect();
    few.extend(words(&["cycle.iterations=1", "cycle.refactor.max_judged=2", "wake.judged=16", "wake.emitted=2"]));
    let whole = |out: &str, extra: &[String]| {
        let args = ["run", MINI, "--preset", "tiny", "--seed", "5", "--device", "cpu", "--json", "--out"];
        [words(&args), vec![shown(out)], sets(&few), sets(extra)].concat()
    };
    let parts = sections.map(|section| format!("{section}.train.accumulation=2"));
    let expected = run_in(1, &whole("one", &parts));
    let found = run_in(2, &whole("two", &[]));
    assert_eq!(found[0]["summary"], expected[0]["summary"]);
    assert_same_models(&place("one"), &place("two"), 6);

    // A single phase, which learns from the world model of that run.
    let amortizer = |out: &str, extra: &[String]| {
        let args = ["train", "amortizer", "--preset", "tiny", "--seed", "5", "--device", "cpu", "--json", "--teacher"];
        let few = FEW.map(str::to_owned);
        [words(&args), vec![shown("one"), "--out".to_owned(), shown(out)], sets(&few), sets(extra)].concat()
    };
    run_in(1, &amortizer("phase_one", &words(&["train.accumulation=2"])));
    run_in(2, &amortizer("phase_two", &[]));
    assert_same_models(&place("phase_one"), &place("phase_two"), 1);
}

#[test]
fn one_of_several_processes_must_know_where_to_meet() {
    let ran = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(["train", "amortizer", "--preset", "tiny", "--device", "cpu", "--out", "nowhere"])
        .env_clear()
        .envs([("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1")])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{error}");
    assert!(error.contains("`MASTER_ADDR` is not set") && error.contains("`MASTER_PORT` is not set"), "{error}");
}
