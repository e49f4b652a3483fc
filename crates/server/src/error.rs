//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a server does not start or go on.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {}", reason(.source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The runtime or a thread cannot be started.
    #[error("cannot start the server: {0}")]
    Start(io::Error),
    /// The policy describes itself in a way that cannot be served.
    #[error("the policy cannot be served: {0}")]
    Policy(String),
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program uses this port; choose one with `--port`".to_owned(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need special rights; choose one with `--port`".to_owned(),
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have the address; choose one with `--host`".to_owned()
        }
        _ => error.to_string(),
    }
}
