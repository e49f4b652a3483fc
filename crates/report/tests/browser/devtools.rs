//! A browser without a window, driven over two pipes: Chromium's own protocol, JSON messages that end with a zero byte.
//! No crate and no port is needed for that.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// The longest that one answer may take; a machine that is busy with other tests is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// The browser that `CHROMIUM` names, or the first on the path.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

/// A running browser with one page.
pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    session: Option<String>,
    sent: u64,
}

impl Browser {
    /// Starts a browser that keeps its files in `profile`.
    pub(crate) fn start(program: &Path, profile: &Path) -> Browser {
        // The browser reads from descriptor 3 and writes to 4. Standard pipes are what `Command` can make, so a shell moves
        // them there.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1 </dev/null"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && sender.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Browser { process, input, messages, events: VecDeque::new(), session: None, sent: 0 };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Calls a method and waits for its answer; events that come meanwhile are kept.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(message.to_string().as_bytes()).unwrap();
        self.input.write_all(&[0]).unwrap();
        loop {
            let mut message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if message["id"] == json!(self.sent) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push_back(message);
        }
    }

    /// Shows a file in a window of this width, and gives what the browser complained about.
    pub(crate) fn open(&mut self, file: &Path, width: u32, scheme: &str) -> Vec<String> {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.messages.recv_timeout(PATIENCE).expect("the page does not load");
            self.events.push_back(event);
        }
        // Events of the load that are still on their way come before the answer to this.
        self.eval("1");
        self.complaints()
    }

    /// Console messages, exceptions, log entries and every request that is not the page itself or its own data.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        for event in self.events.drain(..) {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or("") {
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                    complaints.push(parameters.to_string());
                }
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or("");
                    if !url.starts_with("data:") && !url.starts_with("file:") {
                        complaints.push(format!("request of {url}"));
                    }
                }
                _ => {}
            }
        }
        complaints
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The page as a PNG in base64: all of it, or the part from `top` on.
    pub(crate) fn screenshot(&mut self, top: f64, height: f64) -> String {
        let width = self.eval("document.documentElement.clientWidth");
        let clip = json!({ "x": 0, "y": top, "width": width, "height": height, "scale": 1 });
        let answer = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }));
        answer["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell was replaced by the browser, whose helpers end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
