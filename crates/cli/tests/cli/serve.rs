//! What `serve` refuses before it listens, and what it answers.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use server::client::{Client, ClientError, Input};
use server::message::{Key, Value};

use crate::{folder, run};

#[test]
fn directories_that_are_no_finished_run() {
    let folder = folder(&[("config.json", r#"{"settings": {"world_model": {}, "wake": {}, "cycle": {}}}"#)]);
    let path = folder.path().to_str().unwrap();
    let ran = run(&["serve", path, "--device", "cpu", "--port", "0"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is not finished") && ran.err.contains("--resume"), "{}", ran.shown());
    let ran = run(&["serve", &format!("{path}/nothing"), "--device", "cpu", "--port", "0"]);
    assert!(ran.err.starts_with("error: there is no directory"), "{}", ran.shown());
}

#[test]
fn an_address_that_others_can_reach_is_warned_about_unless_there_is_a_key() {
    // Skills are enough to begin with a run, and too little to load it: nothing is ever served.
    let folder = folder(&[("skills.json", "{}")]);
    let path = folder.path().to_str().unwrap();
    let warning = "warning: 0.0.0.0 can be reached from other machines and there is no API key";
    let open = ["serve", path, "--device", "cpu", "--port", "0", "--host", "0.0.0.0"];
    let ran = run(&open);
    assert!(ran.code == 2 && ran.err.starts_with(warning), "{}", ran.shown());
    assert!(ran.err.contains("set a key with `--api-key` or `REFACTOR_VLA_API_KEY`"), "{}", ran.shown());
    for others in [[&open[..], &["--api-key", "secret"]].concat(), open[..6].to_vec()] {
        let ran = run(&others);
        assert!(ran.code == 2 && !ran.err.contains("warning"), "{}", ran.shown());
    }
}

#[test]
fn options_have_limits() {
    for option in
        [["--max-clients", "0"], ["--max-message-mib", "0"], ["--batch-window-ms", "5000"], ["--port", "70000"]]
    {
        let ran = run(&["serve", "run", option[0], option[1]]);
        assert_eq!(ran.code, 2, "{option:?}");
        assert!(ran.err.contains("invalid value"), "{}", ran.shown());
    }
}

#[test]
fn a_run_is_served_right_after_it_is_made() {
    let folder = folder(&[]);
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let mut sets: Vec<String> = Vec::new();
    for section in ["world_model", "amortizer", "wake.emitter", "wake.decoder"] {
        sets.extend(["train.steps=4", "train.warmup=1", "batch=8"].map(|few| format!("--set={section}.{few}")));
    }
    let few =
        ["wake.judged=4", "wake.emitted=1", "wake.beam.width=1", "cycle.refactor.max_judged=1", "cycle.iterations=1"];
    sets.extend(few.map(|set| format!("--set={set}")));
    let mut arguments = vec!["run", "embedded:libero_goal_mini", "--preset", "tiny", "--device", "cpu", "--out", out];
    arguments.extend(sets.iter().map(String::as_str));
    let made = run(&arguments);
    assert_eq!(made.code, 0, "{}", made.shown());

    // The features of the dataset in the program are DINOv2's, and its weights are not there: the policy says so and answers.
    let mut serving = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(["serve", out, "--port", "0", "--device", "cpu", "--api-key", "secret"])
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.rsplit("ws://").next().unwrap().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert!(Client::connect(&address, None).await.is_err(), "without the key");
        let mut client = Client::connect(&address, Some("secret")).await.unwrap();
        assert_eq!((client.number("action_dim"), client.number("state_dim")), (Some(7), Some(8)));
        let image = vec![50; 64 * 48 * 3];
        let state = [-0.1, 0.0, 1.1, 3.1, -0.1, 0.0, 0.03, -0.03];
        let observation = |task: (&'static str, &'static str)| {
            [
                ("observation/image", Input::Image(48, 64, &image)),
                ("observation/wrist_image", Input::Image(48, 64, &image)),
                ("observation/state", Input::Numbers(&state)),
                (task.0, Input::Text(task.1)),
            ]
        };
        let answer = client.infer(&observation(("prompt", "turn on the stove"))).await.unwrap();
        assert!(!answer.actions.is_empty() && answer.actions.iter().flatten().all(|value| value.abs() <= 1.0));
        let answer = client.infer(&observation(("program", r#"seq[turn_on "stove", open "stove"]"#))).await.unwrap();
        assert_eq!(answer.all[&Key::Text("task".to_owned())], Value::Text(r#"turn_on "stove""#.to_owned()));
        let refused = client.infer(&observation(("program", "seq[pick left]"))).await;
        let Err(ClientError::Server(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains("1 │ seq[pick left]"), "{text}");
        // Few bytes that ask for much work do not reach the policy, and another client is served.
        for count in [1001, 30_000, 99_999] {
            let mut client = Client::connect(&address, Some("secret")).await.unwrap();
            let program = format!(r#"repeat(open "stove", {count})"#);
            let mut asked = observation(("program", ""));
            asked[3].1 = Input::Text(&program);
            let Err(ClientError::Server(text)) = client.infer(&asked).await else { panic!("{program}") };
            assert!(text.contains("makes more than 1000 calls; a served policy executes at most 1000"), "{text}");
        }
        let mut client = Client::connect(&address, Some("secret")).await.unwrap();
        let answer = client.infer(&observation(("program", r#"repeat(open "stove", 1000)"#))).await.unwrap();
        let Value::Map(step) = &answer.all[&Key::Text("step".to_owned())] else { panic!("no step") };
        assert_eq!(step[&Key::Text("count".to_owned())], Value::Integer(1000));
    });
    let ended = Command::new("kill").arg(serving.id().to_string()).status().unwrap();
    assert!(ended.success());
    let ran = serving.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("warning: the policy was trained on features by `dinov2-small cls`"), "{said}");
    assert!(said.contains("client 0 connected from") && said.contains("stopping; "), "{said}");
    crate::closed_loop::evaluates(out);
}
