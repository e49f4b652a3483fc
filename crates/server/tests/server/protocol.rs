//! What openpi's clients rely on, and the extra keys.

use server::Config;
use server::message::{Key, Value};

use crate::{Heard, Robot, Running, image, observation, state, text, text_of};

#[tokio::test]
async fn metadata_actions_and_timing_are_what_openpi_has() {
    let server = Running::start(Config::default()).await;
    let mut robot = Robot::connect(&server).await;
    let texts = |names: &[&str]| Value::List(names.iter().map(|name| Value::Text((*name).to_owned())).collect());
    for (key, wanted) in [
        ("action_horizon", Value::Integer(4)),
        ("action_dim", Value::Integer(7)),
        ("action_names", texts(&["x", "y", "z", "roll", "pitch", "yaw", "gripper"])),
        ("cameras", texts(&["observation.images.image", "observation.images.wrist_image"])),
        ("state_key", Value::Text("observation.state".to_owned())),
        ("state_dim", Value::Integer(8)),
        ("state_names", texts(&["x", "y", "z", "a", "b", "c", "left", "right"])),
        ("run", Value::Text("puppet".to_owned())),
        ("library_size", Value::Integer(1)),
        ("fps", Value::Float(20.0)),
        ("server", Value::Text("refactor-vla".to_owned())),
    ] {
        assert_eq!(text_of(&robot.metadata, key), &wanted, "{key}");
    }
    for request in 0..3 {
        let reply = robot.act("open the drawer").await;
        let Value::Array(actions) = text_of(&reply, "actions") else { panic!("no array") };
        assert_eq!((actions.shape(), actions.numbers()[0]), (&[4, 7][..], f64::from(request + 1)));
        let Value::Map(timing) = text_of(&reply, "server_timing") else { panic!("no timing") };
        let has = |key: &str| timing.contains_key(&Key::Text(key.to_owned()));
        assert!(has("infer_ms") && has("decode_ms") && has("vision_ms"));
        assert_eq!(has("prev_total_ms"), request > 0);
        assert_eq!(text_of(&reply, "estimated_return"), &Value::Float(0.75));
        let Value::Map(skill) = text_of(&reply, "skill") else { panic!("no skill") };
        assert_eq!(skill[&Key::Text("readable".to_owned())], Value::Text("move down, open".to_owned()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_new_prompt_and_a_reset_start_over() {
    let server = Running::start(Config::default()).await;
    let (mut robot, mut other) = (Robot::connect(&server).await, Robot::connect(&server).await);
    let first = |reply: &std::collections::BTreeMap<Key, Value>| match text_of(reply, "actions") {
        Value::Array(actions) => actions.numbers()[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(first(&robot.act("a").await), 1.0);
    assert_eq!(first(&robot.act("a").await), 2.0);
    assert_eq!(first(&other.act("a").await), 1.0, "episodes belong to connections");
    assert_eq!(first(&robot.act("b").await), 1.0);
    assert_eq!(first(&robot.act("b").await), 2.0);
    let Heard::Reply(reply) = robot.ask(&[("reset", vec![0xc3])]).await else { panic!("no answer") };
    assert_eq!(text_of(&reply, "reset"), &Value::Bool(true));
    assert_eq!(first(&robot.act("b").await), 1.0);
    let mut again = observation("b");
    again.push(("reset", vec![0xc3]));
    let Heard::Reply(reply) = robot.ask(&again).await else { panic!("no answer") };
    assert_eq!(first(&reply), 1.0);
    // The task stays if a request has none.
    let bare = [("image", image(2, 2)), ("wrist_image", image(2, 2)), ("state", state(&[0.0; 8]))];
    let Heard::Reply(reply) = robot.ask(&bare).await else { panic!("no answer") };
    assert_eq!(first(&reply), 2.0);
    let mut program = bare.to_vec();
    program.push(("program", text("seq[]")));
    let Heard::Reply(reply) = robot.ask(&program).await else { panic!("no answer") };
    assert_eq!(first(&reply), 1.0);
    server.stop().await;
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let server = Running::start(Config::default()).await;
    let health = server.get("/healthz", "").await;
    assert!(health.starts_with("HTTP/1.1 200") && health.ends_with("\r\n\r\nOK\n"), "{health}");
    let mut robot = Robot::connect(&server).await;
    robot.act("a").await;
    let metrics = server.get("/metrics", "").await;
    for line in [
        "refactor_vla_clients 1",
        "refactor_vla_requests_total 1",
        "refactor_vla_stage_seconds_count{stage=\"vision\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let lost = server.get("/nothing", "").await;
    assert!(lost.starts_with("HTTP/1.1 404"), "{lost}");
    server.stop().await;
}
