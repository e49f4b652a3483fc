//! The settings of a server.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::message::Limits;

/// How a policy is served. `Default` is what the command does without options.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to bind.
    pub host: IpAddr,
    /// The port to bind; 0 lets the system choose.
    pub port: u16,
    /// What clients must present as `Authorization: Api-Key …`; nothing if there is no key.
    pub api_key: Option<String>,
    /// How long a request waits for others to share its batch. Nobody waits when all clients have asked.
    pub batch_window: Duration,
    /// Most requests in a batch.
    pub max_batch: usize,
    /// Most clients at once.
    pub max_clients: usize,
    /// Most bytes of a message.
    pub max_message: usize,
    /// A client without a request for so long is disconnected.
    pub idle: Duration,
    /// A client that sends nothing for so long is sent a ping; it is disconnected if it then sends nothing for as long again.
    pub ping: Duration,
    /// A client that does not take a reply for so long is disconnected.
    pub write_timeout: Duration,
    /// Time for the head of an HTTP request.
    pub head_timeout: Duration,
    /// Time for work in progress when the server stops.
    pub shutdown: Duration,
    /// Limits of a message's structure.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            api_key: None,
            batch_window: Duration::from_millis(2),
            max_batch: 64,
            max_clients: 64,
            max_message: 16 << 20,
            idle: Duration::from_secs(600),
            ping: Duration::from_secs(20),
            write_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(10),
            shutdown: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// What a user should know about these settings before they are used.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.host.is_loopback() && self.api_key.is_none() {
            warnings.push(format!(
                "{} can be reached from other machines and there is no API key: anyone there can use the policy and see its \
                 images; set a key with `--api-key` or `REFACTOR_VLA_API_KEY`",
                self.host
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_address_without_a_key_is_warned_about() {
        assert!(Config::default().warnings().is_empty());
        let open = Config { host: IpAddr::V4(Ipv4Addr::UNSPECIFIED), ..Config::default() };
        assert!(open.warnings()[0].contains("no API key"));
        assert!(Config { api_key: Some("secret".to_owned()), ..open }.warnings().is_empty());
    }
}
