//! The page, what it is told, and what it shows in Chromium. `SERVER_SCREENSHOTS=DIR` keeps pictures of it; with
//! `SERVER_PAGE=URL` as well, they are of a server that is running.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::devtools::{Browser, find};
use crate::{PATIENCE, Robot, Running};

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let server = Running::start(Config::default()).await;
    let page = server.get("/", "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"), "{page}");
    let body = page.split_once("\r\n\r\n").unwrap().1;
    for outside in ["http://www.", "https://", "src=\"/", "@import", "url("] {
        assert!(!body.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    server.stop().await;
}

#[tokio::test]
async fn events_have_all_clients_and_the_one_that_is_shown() {
    let server = Running::start(Config::default()).await;
    let (mut first, mut second) = (Robot::connect(&server).await, Robot::connect(&server).await);
    first.act("open the drawer").await;
    second.act("push the plate").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /live?client=0 HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut next = async || {
        let mut part = vec![0; 1 << 16];
        let length = timeout(PATIENCE, stream.read(&mut part)).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&part[..length]));
        text.clone()
    };
    let mut heard = next().await;
    while !heard.contains("\n\n") {
        heard = next().await;
    }
    for part in [
        "open the drawer",
        "push the plate",
        "data:image/jpeg;base64",
        "\"readable\":\"move down, open\"",
        "\"shown\":{\"id\":0",
    ] {
        assert!(heard.contains(part), "{part} is not in {heard}");
    }
    first.act("close the drawer").await;
    let begun = Instant::now();
    while !heard.contains("close the drawer") {
        assert!(begun.elapsed() < PATIENCE, "no event of a change");
        heard = next().await;
    }
    // An open page does not hold up the end.
    server.stop().await;
}

/// Widths and colour schemes.
const VIEWS: [(&str, u32, &str); 4] = [
    ("wide-light", 1300, "light"),
    ("wide-dark", 1300, "dark"),
    ("narrow-light", 420, "light"),
    ("narrow-dark", 420, "dark"),
];

/// Opens the page and waits until it shows a client.
fn open(browser: &mut Browser, url: &str, width: u32, scheme: &str) {
    let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser.call("Emulation.setDeviceMetricsOverride", size);
    let media = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    browser.call("Emulation.setEmulatedMedia", json!({ "features": media }));
    browser.call("Page.navigate", json!({ "url": url }));
    let begun = Instant::now();
    while browser.eval("document.readyState === 'complete' && !!document.querySelector('#stages tr')") != json!(true) {
        assert!(begun.elapsed() < PATIENCE, "the page shows nothing");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Keeps a picture of the whole page.
fn keep(browser: &mut Browser, folder: &Path, name: &str) {
    let height = browser.eval("document.documentElement.scrollHeight").as_f64().unwrap();
    let picture = base64::engine::general_purpose::STANDARD.decode(browser.screenshot(0.0, height)).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
}

fn screenshots() -> Option<PathBuf> {
    std::env::var_os("SERVER_SCREENSHOTS").map(PathBuf::from)
}

#[test]
fn pictures_of_a_running_server() {
    let (Ok(url), Some(folder), Some(chromium)) = (std::env::var("SERVER_PAGE"), screenshots(), find()) else {
        println!("skipped: `SERVER_PAGE` and `SERVER_SCREENSHOTS` are not set, or there is no Chromium");
        return;
    };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&chromium, profile.path());
    for (name, width, scheme) in VIEWS {
        open(&mut browser, &url, width, scheme);
        keep(&mut browser, &folder, name);
    }
}

/// What the page must show at any width, in both colour schemes.
fn look(url: &str, folder: Option<&Path>) {
    let Some(chromium) = find() else {
        println!("skipped: there is no Chromium (`.ci/packages` installs it)");
        return;
    };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&chromium, profile.path());
    for (name, width, scheme) in VIEWS {
        open(&mut browser, url, width, scheme);
        let mut shows =
            |expression: &str, wanted: Value| assert_eq!(browser.eval(expression), wanted, "{name}: {expression}");
        shows("document.getElementById('instruction').textContent", json!("put the bowl on the plate"));
        shows("document.querySelector('#program mark').textContent", json!("skill_0 pose[0,0,0,0,0,0]"));
        shows("document.querySelectorAll('nav button').length", json!(2));
        shows("document.querySelectorAll('nav button[aria-pressed=true]').length", json!(1));
        shows(
            "[...document.querySelectorAll('#pictures img')].every((image) => image.complete && image.naturalWidth > 0)",
            json!(true),
        );
        shows("document.querySelectorAll('#chunk polyline').length", json!(7));
        shows("document.getElementById('return').textContent", json!("0.750"));
        shows("document.getElementById('done').textContent", json!("50 % of the way to its target"));
        shows("document.getElementById('link').textContent", json!("live"));
        shows("document.querySelectorAll('#timeline span').length > 3", json!(true));
        // No label begins left of its figure.
        shows("[...document.querySelectorAll('svg text')].every((text) => text.getBBox().x >= 0)", json!(true));
        // Nothing is wider than the window.
        shows("document.documentElement.scrollWidth <= document.documentElement.clientWidth", json!(true));
        let dark = "getComputedStyle(document.body).backgroundColor === 'rgb(16, 20, 24)'";
        shows(dark, json!(scheme == "dark"));
        let complaints = browser.complaints();
        let foreign: Vec<&String> =
            complaints.iter().filter(|one| !one.contains(&format!("request of {}", origin(url)))).collect();
        assert!(foreign.is_empty(), "{name}: {foreign:?}");
        if let Some(folder) = folder {
            keep(&mut browser, folder, name);
        }
    }
    // Another client is shown when it is chosen.
    browser.eval("document.querySelectorAll('nav button')[1].click()");
    let begun = Instant::now();
    while browser.eval("document.getElementById('instruction').textContent")
        != json!("open the middle drawer of the cabinet")
    {
        assert!(begun.elapsed() < PATIENCE, "the other client is not shown");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The start of an address that all requests of a page share.
fn origin(url: &str) -> &str {
    url.split_once('?').map_or(url, |(origin, _)| origin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_in_a_browser() {
    let server = Running::start(Config::default()).await;
    let mut robots = [Robot::connect(&server).await, Robot::connect(&server).await];
    for _ in 0..30 {
        robots[0].act("put the bowl on the plate").await;
        robots[1].act("open the middle drawer of the cabinet").await;
    }
    let url = format!("http://{}/?client=0", server.address);
    let folder = screenshots().filter(|_| std::env::var_os("SERVER_PAGE").is_none());
    tokio::task::spawn_blocking(move || look(&url, folder.as_deref())).await.unwrap();
    server.stop().await;
}
