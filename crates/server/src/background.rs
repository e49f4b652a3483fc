//! A server on threads of its own, for programs that do something else meanwhile.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::config::Config;
use crate::error::ServerError;
use crate::policy::Policy;
use crate::run::{Notice, Server, runtime};

/// A server that listens until it is dropped or [stopped](Background::stop). Unlike [`serve`](crate::serve) it does not
/// listen for signals.
pub struct Background {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Returns once the address is bound.
    ///
    /// # Errors
    /// If the address cannot be bound, or threads cannot be started.
    pub fn start(
        policy: Box<dyn Policy>,
        config: Config,
        observer: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Background, ServerError> {
        let runtime = runtime()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, binding) = mpsc::channel();
        let work = move || {
            runtime.block_on(async {
                match Server::bind(policy, config, observer).await {
                    Err(error) => drop(bound.send(Err(error))),
                    Ok(server) => {
                        let _ = bound.send(Ok(server.address()));
                        let stop = async {
                            // A sender that is gone stops it as well.
                            let _ = stopped.await;
                        };
                        server.run(stop).await;
                    }
                }
            });
        };
        let thread = thread::Builder::new().name("server".to_owned()).spawn(work).map_err(ServerError::Start)?;
        let ended = |_| ServerError::Policy("its thread has ended".to_owned());
        let address = binding.recv().map_err(ended)??;
        Ok(Background { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Finishes work in progress and waits for the end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}
