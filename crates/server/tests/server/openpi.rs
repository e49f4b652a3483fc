//! The real client from PyPI. Without it the test says that it skips.

use std::path::PathBuf;
use std::process::Command;

use server::Config;

use crate::Running;

/// Python with `openpi-client`: `$OPENPI_PYTHON`, the environment that `.ci/packages` makes, or the system's.
fn python() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("OPENPI_PYTHON").map(PathBuf::from);
    let candidates = named.into_iter().chain([root.join(".venv/bin/python"), PathBuf::from("python3")]);
    let has = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", "import openpi_client.websocket_client_policy"]).output();
        found.is_ok_and(|found| found.status.success())
    };
    candidates.into_iter().find(has)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_client_is_served() {
    let Some(python) = python() else {
        println!("skipped: no Python with `openpi-client` (`.ci/packages` installs it into `.venv`)");
        return;
    };
    let server = Running::start(Config { api_key: Some("secret".to_owned()), ..Config::default() }).await;
    let (script, port) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/ask_with_openpi.py"), server.address.port());
    let ran = tokio::task::spawn_blocking(move || {
        Command::new(python).args([script, &port.to_string(), "secret"]).output().unwrap()
    });
    let ran = ran.await.unwrap();
    assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    server.stop().await;
}
