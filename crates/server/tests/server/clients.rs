//! Several clients: limits, keys, slow ones, and the end.

use std::time::Duration;

use futures_util::StreamExt as _;
use server::Config;
use server::message::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::{Heard, PATIENCE, Robot, Running, map, observation, text_of};

#[tokio::test]
async fn keys_are_demanded_everywhere_but_for_health() {
    let server = Running::start(Config { api_key: Some("secret".to_owned()), ..Config::default() }).await;
    let refused = |headers: &'static [(&'static str, &'static str)]| {
        let server = &server;
        async move { Robot::connect_with(server, headers).await.err().unwrap() }
    };
    assert!(refused(&[]).await.contains("401"));
    assert!(refused(&[("authorization", "Api-Key wrong")]).await.contains("401"));
    assert!(refused(&[("authorization", "Bearer secret")]).await.contains("401"));
    Robot::connect_with(&server, &[("authorization", "Api-Key secret")]).await.unwrap().act("a").await;
    for path in ["/", "/metrics", "/live", "/?key=wrong", "/live?key="] {
        let found = server.get(path, "").await;
        assert!(found.starts_with("HTTP/1.1 401"), "{path}: {found}");
    }
    for path in ["/?key=secret", "/metrics?key=secret", "/healthz"] {
        let found = server.get(path, "").await;
        assert!(found.starts_with("HTTP/1.1 200"), "{path}: {found}");
    }
    server.stop().await;
}

#[tokio::test]
async fn one_client_too_many_is_refused_until_another_leaves() {
    let server = Running::start(Config { max_clients: 2, ..Config::default() }).await;
    let (first, mut second) = (Robot::connect(&server).await, Robot::connect(&server).await);
    assert!(Robot::connect_with(&server, &[]).await.err().unwrap().contains("503"));
    drop(first);
    let mut third = Robot::connect_with(&server, &[]).await;
    while third.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        third = Robot::connect_with(&server, &[]).await;
    }
    third.unwrap().act("a").await;
    second.act("a").await;
    server.stop().await;
}

#[tokio::test]
async fn clients_that_stall_or_vanish_do_not_delay_others() {
    let never = Duration::from_secs(600);
    let config =
        Config { batch_window: Duration::from_millis(1), write_timeout: never, ping: never, ..Config::default() };
    let server = Running::start(config).await;
    // One asks and never reads, one vanishes after asking, one sends half a message.
    let mut stalled = Robot::connect_narrowly(&server).await;
    stalled.say(Message::Binary(map(&observation("long")))).await;
    server.until_asked("long").await;
    let mut gone = Robot::connect(&server).await;
    gone.say(Message::Binary(map(&observation("gone")))).await;
    drop(gone);
    let mut half = Robot::connect(&server).await;
    half.write(&HALF_A_FRAME).await;
    let mut robots = Vec::new();
    for _ in 0..4 {
        robots.push(Robot::connect(&server).await);
    }
    for round in 1..=50 {
        for robot in &mut robots {
            let reply = robot.act("a").await;
            let Value::Array(actions) = text_of(&reply, "actions") else { panic!("no array") };
            assert_eq!(actions.numbers()[0], f64::from(round), "no reply is lost or mixed up");
        }
    }
    let reasons = server.until_left(1).await;
    assert_eq!(reasons, ["the connection was lost"], "the others are still there, and were waited for by nobody");
    drop((stalled, half));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let server = Running::start(Config { write_timeout: Duration::from_millis(200), ..Config::default() }).await;
    let (mut stalled, mut other) = (Robot::connect_narrowly(&server).await, Robot::connect(&server).await);
    stalled.say(Message::Binary(map(&observation("long")))).await;
    server.until_asked("long").await;
    other.act("a").await;
    assert_eq!(server.until_left(1).await, ["it does not read its replies"]);
    other.act("a").await;
    drop(stalled);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_stops_in_the_middle_of_a_frame_is_disconnected() {
    let server = Running::start(Config { ping: Duration::from_millis(50), ..Config::default() }).await;
    let mut half = Robot::connect(&server).await;
    half.write(&HALF_A_FRAME).await;
    // It reads, and its pongs are in the middle of its frame.
    while !matches!(half.hear().await, Heard::Closed(_)) {}
    assert_eq!(server.until_left(1).await, ["it does not answer pings"]);
    server.stop().await;
}

/// A masked binary frame of 126 bytes, of which 10 are there.
const HALF_A_FRAME: [u8; 18] = [0x82, 0xfe, 0, 126, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

#[tokio::test]
async fn pings_are_answered_while_a_request_is_being_answered() {
    let server = Running::start(Config::default()).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("hold")))).await;
    server.until_asked("hold").await;
    robot.say(Message::Ping("are you there".into())).await;
    match timeout(PATIENCE, robot.socket.next()).await.unwrap() {
        Some(Ok(Message::Pong(bytes))) => assert_eq!(bytes, "are you there"),
        other => panic!("{other:?}"),
    }
    server.strings.release();
    assert!(matches!(robot.hear().await, Heard::Reply(_)));
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_comes_early_waits_for_its_turn_and_so_does_an_error() {
    let server = Running::start(Config::default()).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("hold")))).await;
    server.until_asked("hold").await;
    robot.say(Message::Binary(map(&observation("early")))).await;
    robot.say(Message::Text("nonsense".into())).await;
    server.strings.release();
    for _ in 0..2 {
        assert!(matches!(robot.hear().await, Heard::Reply(_)));
    }
    assert!(robot.error().await.contains("a text frame"));
    assert_eq!(server.strings.asked(), ["hold", "early"]);
    server.stop().await;
}

#[tokio::test]
async fn nothing_is_computed_for_clients_that_have_left() {
    let server = Running::start(Config::default()).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("hold")))).await;
    server.until_asked("hold").await;
    // One closes, one breaks off; both while their requests wait for the policy.
    let (mut closing, mut broken) = (Robot::connect(&server).await, Robot::connect(&server).await);
    closing.say(Message::Binary(map(&observation("in vain")))).await;
    closing.say(Message::Close(None)).await;
    server.until_left(1).await;
    broken.say(Message::Binary(map(&observation("in vain")))).await;
    drop(broken);
    assert_eq!(server.until_left(2).await, ["closed by the client", "the connection was lost"]);
    server.strings.release();
    assert!(matches!(robot.hear().await, Heard::Reply(_)));
    robot.act("after").await;
    assert_eq!(server.strings.asked(), ["hold", "after"]);
    let metrics = server.get("/metrics", "").await;
    assert!(metrics.contains("refactor_vla_abandoned_total 2"), "{metrics}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_falls_silent_while_it_waits_is_noticed() {
    let server = Running::start(Config { ping: Duration::from_millis(50), ..Config::default() }).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("hold")))).await;
    server.until_asked("hold").await;
    // It reads nothing, so it answers no ping.
    assert_eq!(server.until_left(1).await, ["it does not answer pings"]);
    server.stop().await;
}

#[tokio::test]
async fn the_end_does_not_wait_for_ever_for_a_policy() {
    let server = Running::start(Config { shutdown: Duration::from_millis(100), ..Config::default() }).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("hold")))).await;
    server.until_asked("hold").await;
    let Running { stop, done, strings, notices, .. } = server;
    stop.send(()).unwrap();
    timeout(PATIENCE, done).await.unwrap().unwrap();
    let last = notices.lock().unwrap().last().map(ToString::to_string);
    assert_eq!(last.as_deref(), Some("stopped; a request was not answered within 100ms"));
    // The policy is still at work; the thread ends once it is done.
    strings.release();
}

#[tokio::test]
async fn work_in_progress_is_completed_before_the_end() {
    let server = Running::start(Config::default()).await;
    let (mut busy, mut quiet) = (Robot::connect(&server).await, Robot::connect(&server).await);
    busy.say(Message::Binary(map(&observation("slow")))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let address = server.address;
    let stopping = tokio::spawn(server.stop());
    assert!(matches!(busy.hear().await, Heard::Reply(_)), "what was asked is answered");
    for robot in [&mut busy, &mut quiet] {
        match robot.hear().await {
            Heard::Closed(Some(frame)) => {
                assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1001, "the server stops"));
            }
            other => panic!("{other:?}"),
        }
    }
    stopping.await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_says_so() {
    let server = Running::start(Config::default()).await;
    let config = Config { port: server.address.port(), ..Config::default() };
    let error = server::Server::bind(Box::new(crate::policy::Puppet::default()), config, |_| {}).await.err().unwrap();
    assert!(error.to_string().contains("another program uses this port; choose one with `--port`"), "{error}");
    server.stop().await;
}
