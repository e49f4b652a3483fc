//! Serves a policy over the websocket protocol of openpi, with a live page.
//!
//! ```text
//! client ──websocket──► connection ──Request──► inference thread ──► Policy
//!        ◄──msgpack───              ◄──Reply───  (batches of all clients)
//!                            └──► Hub ──► GET / and GET /live      Metrics ──► GET /metrics
//! ```
//! [`Policy`] is what is served; this crate knows no model. [`serve`] runs until it is asked to stop, [`Background`] on threads of its own. A connection is a task
//! that reads one request, waits for its reply, writes it and reads the next: **a slow client delays nobody but itself**.
//! Inference runs on a thread of its own, so no socket waits for a matrix product.
//!
//! **Everything that a client sends is data**: [`message`] decodes msgpack within limits of depth and length and without
//! copying images, and [`request`] checks names, shapes, types and numbers before a policy sees them. There is no pickle, and
//! nothing is evaluated. Any violation is a message for the client, who is then disconnected with code 1011, as openpi does.
//!
//! Nothing here prints: what happens is reported as a [`Notice`].

mod auth;
mod background;
pub mod client;
pub mod config;
mod connection;
mod error;
mod handshake;
mod http;
mod inference;
mod live;
pub mod message;
mod metrics;
mod names;
pub mod policy;
pub mod reply;
pub mod request;
mod run;

pub use background::Background;
pub use config::Config;
pub use error::ServerError;
pub use policy::{Metadata, Picture, Policy, PolicyError, Reply, Request, Status, Task};
pub use run::{Notice, Server, serve};
