//! `eval closed-loop` with a stand-in for the simulator: a shell script that writes the results.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{LOOP, folder, run, shown};

/// Writes results as `rollout.py` does: even start states succeed. Each call is noted in `calls`.
const ROLLOUT: &str = r#"#!/bin/sh
here=$(dirname "$0")
shift
echo "$*" >> "$here/calls"
while [ $# -gt 0 ]; do
    case $1 in
        --tasks) task=$2 ;;
        --episodes) episodes=$2 ;;
        --first) first=$2 ;;
        --seed) seed=$2 ;;
        --out) out=$2 ;;
    esac
    shift 2
done
list=
episode=0
while [ $episode -lt $episodes ]; do
    if [ $(( (first + episode) % 2 )) -eq 0 ]; then success=true; else success=false; fi
    [ $episode -eq 0 ] || list="$list,"
    list="$list{\"task\":$task,\"episode\":$episode,\"seed\":$((seed + 1000 * task + episode)),\"success\":$success,"
    list="$list\"steps\":100,\"requests\":13,\"seconds\":1.5,\"latency_ms\":4.0,\"prompt\":\"x\"}"
    episode=$((episode + 1))
done
echo "{\"episodes\":[$list]}" > "$out"
"#;

/// Starts a process, notes both, and waits for ever.
const HANGING: &str = r#"#!/bin/sh
sleep 600 &
echo $$ $! > "$(dirname "$0")/processes"
wait
"#;

const TASKS: &str = r#"{
    "libero_goal": [{"language": "turn on the stove"}, {"language": "put the bowl on the plate"}, {"language": "fly"}],
    "libero_10": [{"language": "stack the mugs"}]}"#;

const POLICY: &str = r#"{"fps": 20.0, "state_key": "observation.state", "state_names": [], "action_names": [], "limits": [],
    "encoder": null, "tasks": [{"instruction": "turn on the stove", "program": "turn_on \"stove\""}]}"#;

/// A bundle of the simulator whose `run` is a script.
fn simulator(script: &str) -> tempfile::TempDir {
    let kit = folder(&[("run", script), ("kit/tasks.json", TASKS), ("data/config.yaml", "")]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(kit.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    kit
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn calls(kit: &Path) -> usize {
    fs::read_to_string(kit.join("calls")).map_or(0, |text| text.lines().count())
}

#[test]
fn mistakes_are_explained() {
    let runs = folder(&[
        ("run/config.json", LOOP),
        ("act/policy.json", POLICY),
        ("kit/rollout.py", ""),
        ("kit/tasks.json", "{}"),
    ]);
    let root = runs.path();
    let sim = simulator(ROLLOUT);
    let (act, loop_run) = (root.join("act"), root.join("run"));
    let (act, loop_run, sim) = (path(&act), path(&loop_run), path(sim.path()));
    let (nothing, kit) = (root.join("nothing"), root.join("kit"));
    let server = ["--server", "127.0.0.1:1"];
    let mut texts = Vec::new();
    for arguments in [
        vec![act, "--simulator", path(&nothing)],
        vec![act, "--simulator", act],
        vec![act, "--simulator", path(&kit)],
        vec![path(&nothing), "--simulator", sim],
        vec![loop_run, "--simulator", sim],
        vec![path(&nothing), "--simulator", sim, server[0], server[1]],
        vec![act, "--simulator", sim, server[0], server[1], "--suite", "libero_soup"],
        vec![act, "--simulator", sim, server[0], server[1], "--tasks", "1,3,9"],
        vec![act, "--simulator", sim, server[0], server[1], "--suite", "libero_goal,libero_10", "--tasks", "0"],
        vec![act, "--simulator", sim, server[0], server[1], "--prompt", "program"],
        vec![act, "--simulator", sim, "--server", "nowhere"],
    ] {
        let ran = run(&[&["eval", "closed-loop"], &arguments[..]].concat());
        assert_eq!(ran.code, 2, "{}", ran.shown());
        texts.push(shown(&ran, root).replace(sim, "SIM"));
    }
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn finished_episodes_are_kept_and_others_are_added() {
    let (runs, sim) = (folder(&[("act/policy.json", POLICY)]), simulator(ROLLOUT));
    let act = runs.path().join("act");
    let evaluate = |more: &[&str]| {
        let fixed = ["eval", "closed-loop", path(&act), "--simulator", path(sim.path()), "--server", "127.0.0.1:1"];
        run(&[&fixed[..], &["--workers", "2"], more].concat())
    };
    let ran = evaluate(&["--episodes", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    insta::assert_snapshot!(shown(&ran, runs.path()));
    let first = calls(sim.path());
    assert_eq!(first, 5, "the task that the run was trained on, one start state at a time");

    let again = evaluate(&["--episodes", "5", "--json"]);
    assert_eq!(calls(sim.path()), first, "nothing is run again");
    let reports = again.json();
    assert_eq!((&reports[0]["total"]["successes"], &reports[0]["settings"]["replan"]), (&3.into(), &8.into()));
    let seeds: Vec<u64> =
        reports[0]["episodes"].as_array().unwrap().iter().map(|one| one["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [9_000_000, 9_000_001, 9_000_002, 9_000_003, 9_000_004], "seeds follow from start states");
    let stored: Value =
        serde_json::from_slice(&fs::read(act.join("closed_loop/libero_goal.server.json")).unwrap()).unwrap();
    assert_eq!(stored, reports[0]);

    assert_eq!(evaluate(&["--episodes", "7"]).code, 0);
    assert_eq!(calls(sim.path()), first + 2, "only the new start states");
    assert_eq!(evaluate(&["--episodes", "7", "--replan", "5"]).code, 0);
    assert_eq!(calls(sim.path()), first + 2 + 7, "other settings are other episodes");
}

#[test]
fn a_simulator_that_fails_is_quoted_and_what_is_finished_stays() {
    let script = ROLLOUT
        .replace("list=\n", "list=\nif [ $first -eq 3 ]; then echo 'RuntimeError: no such camera' >&2; exit 1; fi\n");
    let (runs, sim) = (folder(&[("act/policy.json", POLICY)]), simulator(&script));
    let act = runs.path().join("act");
    let arguments = ["eval", "closed-loop", path(&act), "--simulator", path(sim.path()), "--server", "127.0.0.1:1"];
    let ran = run(&[&arguments[..], &["--workers", "1", "--episodes", "4"]].concat());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the simulator failed at task 0, start states 3 to 3"), "{}", ran.shown());
    assert!(ran.err.contains("RuntimeError: no such camera"), "{}", ran.shown());
    fs::write(sim.path().join("run"), ROLLOUT).unwrap();
    assert_eq!(run(&[&arguments[..], &["--workers", "1", "--episodes", "4"]].concat()).code, 0);
    assert_eq!(calls(sim.path()), 5, "three, the one that failed, and the same again");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_process_behind() {
    let (runs, sim) = (folder(&[("act/policy.json", POLICY)]), simulator(HANGING));
    let act = runs.path().join("act");
    let mut child = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(["eval", "closed-loop", path(&act), "--simulator", path(sim.path())])
        .args(["--server", "127.0.0.1:1", "--episodes", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let noted = sim.path().join("processes");
    let until = Instant::now() + Duration::from_secs(60);
    let mut processes = String::new();
    while !processes.ends_with('\n') && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        processes = fs::read_to_string(&noted).unwrap_or_default();
    }
    let processes: Vec<&str> = processes.split_whitespace().collect();
    assert_eq!(processes.len(), 2, "the script and what it started");
    let signal = |name: &str, process: &str| {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).stderr(Stdio::null()).status();
        sent.unwrap().success()
    };
    assert!(processes.iter().all(|one| signal("0", one)), "they run");
    assert!(signal("INT", &child.id().to_string()));
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let gone = |process: &str| {
        // Nobody may wait for an orphan in a container: a zombie is gone as well.
        let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        !signal("0", process) || state.contains(") Z ")
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !processes.iter().all(|one| gone(one)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(processes.iter().all(|one| gone(one)), "both have ended");
}

/// The policy of a real run, served in the process of the evaluation.
pub(crate) fn evaluates(made: &str) {
    let sim = simulator(ROLLOUT);
    let arguments = ["eval", "closed-loop", made, "--simulator", path(sim.path()), "--device", "cpu", "--json"];
    let ran = run(&[&arguments[..], &["--episodes", "2", "--workers", "1", "--replan", "2"]].concat());
    let reports = ran.json();
    assert_eq!(reports[0]["name"], "libero_goal");
    assert_eq!(reports[0]["total"]["episodes"], 4, "two of the three tasks are among the run's: {}", ran.shown());
    assert!(reports[0]["run"]["policy"]["tasks"].is_array() && reports[0]["run"]["config"]["settings"].is_object());
    assert!(Path::new(made).join("closed_loop/libero_goal.md").is_file());
    let called = fs::read_to_string(sim.path().join("calls")).unwrap();
    assert!(called.contains("--host 127.0.0.1 --port ") && !called.contains("--port 0"), "{called}");
    let ran = run(&[&arguments[..], &["--replan", "100"]].concat());
    assert!(ran.err.contains("`--replan 100` is more than the policy returns"), "{}", ran.shown());
}
