//! The real client from PyPI. Without it the test says that it skips.

use std::path::{Path, PathBuf};
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

/// Runs a script with the real client, if there is one.
async fn runs(script: PathBuf, arguments: Vec<String>) -> Option<String> {
    let Some(python) = python() else {
        println!("skipped: no Python with `openpi-client` (`.ci/packages` installs it into `.venv`)");
        return None;
    };
    let ran = tokio::task::spawn_blocking(move || Command::new(python).arg(script).args(arguments).output().unwrap());
    let ran = ran.await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    Some(said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_client_is_served() {
    let server = Running::start(Config { api_key: Some("secret".to_owned()), ..Config::default() }).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/ask_with_openpi.py");
    runs(script, vec![server.address.port().to_string(), "secret".to_owned()]).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_in_python_is_served() {
    let server = Running::start(Config::default()).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/client.py");
    if let Some(said) = runs(script, vec![server.address.port().to_string()]).await {
        assert!(said.starts_with("(4, 7) seq[skill_0 "), "{said}");
        assert_eq!(server.strings.asked(), ["put the bowl on the plate", r#"put "bowl" (on "plate")"#]);
    }
    server.stop().await;
}
