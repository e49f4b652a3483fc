//! Several clients: limits, keys, slow ones, and the end.

use std::time::{Duration, Instant};

use server::Config;
use server::message::Value;
use tokio_tungstenite::tungstenite::Message;

use crate::{Heard, Robot, Running, map, observation, text_of};

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
    let server = Running::start(Config { batch_window: Duration::from_millis(1), ..Config::default() }).await;
    // One asks and never reads, one vanishes after asking, one sends half a message.
    let mut stalled = Robot::connect(&server).await;
    for _ in 0..20 {
        stalled.say(Message::Binary(map(&observation("stalled")))).await;
    }
    let mut gone = Robot::connect(&server).await;
    gone.say(Message::Binary(map(&observation("gone")))).await;
    drop(gone);
    let mut robots = Vec::new();
    for _ in 0..4 {
        robots.push(Robot::connect(&server).await);
    }
    let begun = Instant::now();
    for round in 1..=50 {
        for robot in &mut robots {
            let reply = robot.act("a").await;
            let Value::Array(actions) = text_of(&reply, "actions") else { panic!("no array") };
            assert_eq!(actions.numbers()[0], f64::from(round), "no reply is lost or mixed up");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(stalled);
    server.stop().await;
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
