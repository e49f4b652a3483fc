//! Cells in processes of their own, and what becomes of them.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes with this text among their arguments.
fn processes(text: &str) -> usize {
    let arguments = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    let with = |found: &Vec<u8>| String::from_utf8_lossy(found).contains(text);
    fs::read_dir("/proc").unwrap().flatten().filter_map(arguments).filter(with).count()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn no_process_is_left_behind_by_one_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("matrix");
    let mut parent = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(["eval", "phase-c", "--preset", "tiny", "--modes", "none", "--seeds", "2", "--jobs", "2", "--out"])
        .arg(&out)
        .args(["--device", "cpu", "--set", "world_model.train.steps=1000000"])
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let place = out.to_str().unwrap();
    let trains = |seed: u64| out.join(format!("libero_goal_mini/none/seed-{seed}/world-model/metrics.jsonl")).exists();
    wait_until("both cells train", || trains(0) && trains(1));
    assert_eq!(processes(place), 3);
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("they have ended", || processes(place) == 0);
    for seed in 0..2 {
        let checkpoints = out.join(format!("libero_goal_mini/none/seed-{seed}/world-model/checkpoints"));
        assert!(fs::read_dir(checkpoints).unwrap().count() > 0, "they end with a checkpoint");
    }
}
