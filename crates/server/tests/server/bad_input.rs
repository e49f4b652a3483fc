//! Every kind of bad input has its error, and nothing else happens.

use std::time::Duration;

use bytes::Bytes;
use server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::{Heard, PATIENCE, Robot, Running, image, map, observation, state, text};

#[tokio::test]
async fn malformed_messages_are_errors_that_say_what_is_wrong() {
    let server = Running::start(Config::default()).await;
    let with = |at: usize, value: Vec<u8>| {
        let mut parts = observation("a");
        parts[at].1 = value;
        map(&parts)
    };
    let deep = [[0x91_u8; 4000].as_slice(), &[0xc0]].concat();
    let mut both = observation("a");
    both.push(("program", text("seq[]")));
    let mut float_image = vec![0x84, 0xc4, 11];
    float_image.extend(b"__ndarray__\xc3\xc4\x04data\xc4\x0c");
    float_image.extend([0; 12]);
    float_image.extend(b"\xc4\x05dtype\xa3<f4\xc4\x05shape\x93\x01\x01\x03");
    let cases: Vec<(Bytes, &str)> = vec![
        (Bytes::new(), "ends after 0 bytes"),
        (Bytes::from_static(b"\xc1"), "extension type"),
        (Bytes::from_static(b"hello"), "bytes after its value"),
        (Bytes::from_static(b"\x90"), "the message is a list of 0; expected a map"),
        (map(&observation("a")).slice(..300), "in the middle of a value"),
        (Bytes::from_static(b"\xdf\xff\xff\xff\xff"), "declares 4294967295 items"),
        (Bytes::from_static(b"\xc6\xff\xff\xff\xff"), "in the middle of a value"),
        (deep.into(), "nested more than 16 deep"),
        (with(0, image(3, 3).into_iter().rev().collect()), "a key of a map is an integer; expected text"),
        (
            with(0, float_image),
            "`observation/image` is float32 [1, 1, 3]; expected an image as uint8 [height, width, 3]",
        ),
        (with(1, text("no")), "`observation/wrist_image` is a text"),
        (with(2, state(&[0.0; 7])), "`observation/state` is float32 [7]; expected 8 finite numbers"),
        (with(2, state(&[0.0, 0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0])), "NaN at place 2"),
        (with(2, state(&[f32::INFINITY; 8])), "inf at place 0"),
        (with(3, vec![0xc3]), "`prompt` is a truth value; expected a text"),
        (map(&observation("a")[..3]), "needs a `prompt` or a `program`"),
        (map(&observation("a")[1..]), "no image of the camera `observation.images.image`"),
        (map(&both), "both a prompt and a program"),
    ];
    let nested = |inner: (&str, Vec<u8>)| {
        let mut parts = observation("a");
        parts.push(inner);
        map(&parts)
    };
    let cases = cases.into_iter().chain([
        (
            nested(("observation.state", state(&[0.5; 8]))),
            "`observation/state` and `observation.state` are the same name",
        ),
        (nested(("observation", map(&[("state", state(&[0.5; 8]))]).to_vec())), "are the same name; send one of them"),
        (nested((LONG_KEY, vec![0xc0])), "a key has 300 bytes"),
        (nested(("episode", vec![7])), "`episode` is an integer; expected a text of at most 256 bytes"),
        (nested(("episode", text(LONG_KEY))), "`episode` is a text of 300 bytes; expected a text of at most 256 bytes"),
        (nested(("reset", text("yes"))), "`reset` is a text; expected true or false"),
    ]);
    for (message, part) in cases {
        let mut robot = Robot::connect(&server).await;
        robot.say(Message::Binary(message)).await;
        let error = robot.error().await;
        assert!(error.contains(part), "found `{error}`, expected `{part}`");
    }
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Text("hello".into())).await;
    assert!(robot.error().await.contains("a text frame; expected msgpack in a binary frame"));
    // All others are served as before.
    Robot::connect(&server).await.act("a").await;
    server.stop().await;
}

/// A text of 300 bytes.
const LONG_KEY: &str = match std::str::from_utf8(&[b'k'; 300]) {
    Ok(text) => text,
    Err(_) => "",
};

#[tokio::test]
async fn violations_of_the_websocket_protocol_are_errors_with_their_own_codes() {
    let server = Running::start(Config::default()).await;
    let cases: [(&[u8], u16, &str); 8] = [
        (&[0x82, 1, 0x80], 1002, "Received an unmasked frame from client"),
        (&[0xc2, 0x80, 0, 0, 0, 0], 1002, "Reserved bits are non-zero"),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002, "Encountered invalid opcode: 3"),
        (&[0x80, 0x80, 0, 0, 0, 0], 1002, "Continue frame but nothing to continue"),
        (&[0x09, 0x80, 0, 0, 0, 0], 1002, "Fragmented control frame"),
        (&[0x89, 0xfe, 0, 126, 0, 0, 0, 0], 1002, "Control frame too big"),
        (&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff], 1007, "a text that is not valid UTF-8"),
        // It declares 4 EiB, and sends none of them.
        (&[0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1011, "the message is longer than 16 MiB"),
    ];
    for (bytes, code, part) in cases {
        let mut robot = Robot::connect(&server).await;
        robot.write(bytes).await;
        if part.contains("too big") {
            robot.write(&[0; 126]).await;
        }
        let (message, found) = robot.error_and_code().await;
        assert!(message.contains(part) && found == code, "{found}: {message}, expected {code}: {part}");
    }
    let metrics = server.get("/metrics", "").await;
    for line in ["refactor_vla_errors_total{kind=\"websocket\"} 7", "refactor_vla_errors_total{kind=\"length\"} 1"] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let reasons = server.until_left(cases.len()).await;
    assert!(reasons.iter().all(|why| why.starts_with("error: ")), "{reasons:?}");
    Robot::connect(&server).await.act("a").await;
    server.stop().await;
}

#[tokio::test]
async fn refusals_and_panics_of_the_policy_are_told() {
    let server = Running::start(Config::default()).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("refuse")))).await;
    assert_eq!(robot.error().await, "nothing is called `refuse`");
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(map(&observation("panic")))).await;
    assert!(robot.error().await.contains("the policy failed: internal error"));
    Robot::connect(&server).await.act("a").await;
    server.stop().await;
}

#[tokio::test]
async fn messages_beyond_the_limit_are_refused_and_the_client_hears_it() {
    let server = Running::start(Config { max_message: 1 << 20, ..Config::default() }).await;
    let mut robot = Robot::connect(&server).await;
    robot.say(Message::Binary(vec![0; 3 << 20].into())).await;
    assert!(robot.error().await.contains("longer than 1 MiB"));
    server.stop().await;
}

#[tokio::test]
async fn connections_that_never_ask_are_closed() {
    let config = Config { head_timeout: Duration::from_millis(100), ..Config::default() };
    let server = Running::start(config).await;
    // A socket that is open and says nothing, and one that stops in the middle of its request.
    for half in ["", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn clients_that_are_gone_without_a_word_are_noticed() {
    let config = Config { ping: Duration::from_millis(100), max_clients: 1, ..Config::default() };
    let server = Running::start(config).await;
    // It reads nothing, so it answers no ping.
    let silent = Robot::connect(&server).await;
    let mut next = Robot::connect_with(&server, &[]).await;
    for _ in 0..100 {
        if next.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        next = Robot::connect_with(&server, &[]).await;
    }
    next.ok().unwrap().act("a").await;
    drop(silent);
    server.stop().await;
}

#[tokio::test]
async fn idle_clients_are_told_to_leave() {
    let config = Config { idle: Duration::from_millis(200), ping: Duration::from_millis(50), ..Config::default() };
    let server = Running::start(config).await;
    let mut robot = Robot::connect(&server).await;
    robot.act("a").await;
    // It answers pings, and asks nothing.
    match robot.hear().await {
        Heard::Closed(Some(frame)) => {
            assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1001, "no request for too long"));
        }
        other => panic!("{other:?}"),
    }
    server.stop().await;
}

#[tokio::test]
async fn handshakes_that_are_none_are_refused() {
    let server = Running::start(Config::default()).await;
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    let old = server.get("/", "Upgrade: websocket\r\nSec-WebSocket-Version: 8\r\n").await;
    assert!(old.starts_with("HTTP/1.1 200"), "without `Connection: upgrade` it is the page: {old}");
    for (headers, status) in [
        ("Sec-WebSocket-Version: 8\r\n", "426"),
        ("Sec-WebSocket-Version: 13\r\n", "400"),
        ("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\nOrigin: http://example.org\r\n", "403"),
    ] {
        let found = raw(&server, &format!("{upgrade}{headers}")).await;
        assert!(found.starts_with(&format!("HTTP/1.1 {status}")), "{found}");
    }
    let posted = raw_request(&server, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").await;
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    let rebound = raw_request(&server, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").await;
    assert!(rebound.starts_with("HTTP/1.1 421"), "{rebound}");
    let nonsense = raw_request(&server, "nonsense\r\n\r\n").await;
    assert!(nonsense.starts_with("HTTP/1.1 400"), "{nonsense}");
    server.stop().await;
}

async fn raw(server: &Running, headers: &str) -> String {
    raw_request(server, &format!("GET / HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.address)).await
}

/// The first part of the response.
async fn raw_request(server: &Running, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 4096];
    let length = timeout(PATIENCE, stream.read(&mut head)).await.unwrap().unwrap();
    String::from_utf8_lossy(&head[..length]).into_owned()
}
