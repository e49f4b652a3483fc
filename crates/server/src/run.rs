//! The server as a whole: binds, accepts, and stops in order.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::auth::ApiKey;
use crate::config::Config;
use crate::error::ServerError;
use crate::http::router;
use crate::inference::{self, Batching, Ended, Order};
use crate::live::Hub;
use crate::metrics::Metrics;
use crate::policy::{ClientId, Metadata, Policy};
use crate::request::Expected;

/// HTTP connections beyond those of clients: pages, health checks, scrapers.
const OTHERS: usize = 64;

/// Connections at once, whatever the settings say.
const MOST_CONNECTIONS: usize = 1 << 16;

/// What happens, for whoever wants to tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A client has connected.
    Joined {
        /// Which.
        client: ClientId,
        /// From where.
        address: String,
    },
    /// A client is gone.
    Left {
        /// Which.
        client: ClientId,
        /// From where.
        address: String,
        /// Why.
        why: String,
    },
    /// The server stops and waits for work in progress.
    Stopping {
        /// Clients that are connected.
        clients: usize,
    },
    /// The server ends although the policy is still at work: its time was over.
    Unfinished {
        /// How long it waited.
        waited: Duration,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Joined { client, address } => write!(f, "client {} connected from {address}", client.0),
            Notice::Left { client, why, .. } => write!(f, "client {} disconnected: {why}", client.0),
            Notice::Stopping { clients } => write!(f, "stopping; {clients} clients are connected"),
            Notice::Unfinished { waited } => write!(f, "stopped; a request was not answered within {waited:?}"),
        }
    }
}

/// A server that has bound its address.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    inference: Ended,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) metadata: Metadata,
    pub(crate) expected: Expected,
    pub(crate) key: Option<ApiKey>,
    pub(crate) orders: Sender<Order>,
    pub(crate) hub: Hub,
    pub(crate) metrics: Arc<Metrics>,
    /// True once the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    /// Connected clients.
    clients: Arc<AtomicUsize>,
    /// The number of the next client.
    next: AtomicU64,
    /// One reference for each open page, and this one.
    pages: Arc<()>,
    observer: Box<dyn Fn(Notice) + Send + Sync>,
}

/// A client's place among those that are allowed.
pub(crate) struct Seat {
    client: ClientId,
    clients: Arc<AtomicUsize>,
}

impl Seat {
    pub(crate) fn client(&self) -> ClientId {
        self.client
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The address of the other side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Connected<Peer> for Peer {
    fn connect_info(peer: Peer) -> Peer {
        peer
    }
}

impl Shared {
    /// A place for a client, if there is one.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let free = |clients: usize| (clients < self.config.max_clients).then_some(clients + 1);
        self.clients.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        let client = ClientId(self.next.fetch_add(1, Ordering::Relaxed));
        Some(Seat { client, clients: self.clients.clone() })
    }

    /// A place for a page, if fewer than `most` are open.
    pub(crate) fn page(&self, most: usize) -> Option<Arc<()>> {
        (Arc::strong_count(&self.pages) <= most).then(|| self.pages.clone())
    }

    pub(crate) fn joined(&self, client: ClientId, address: String) {
        self.metrics.connected();
        self.hub.joined(client, address.clone());
        self.notice(Notice::Joined { client, address });
    }

    pub(crate) fn left(&self, client: ClientId) {
        self.metrics.disconnected();
        self.hub.left(client);
        let _ = self.orders.send(Order::Forget(client));
    }

    pub(crate) fn notice(&self, notice: Notice) {
        (self.observer)(notice);
    }
}

/// Serves a policy until `stop` is ready; then finishes work in progress and returns. `ready` is called with the address.
///
/// # Errors
/// If the address cannot be bound, or threads cannot be started.
pub fn serve(
    policy: Box<dyn Policy>,
    config: Config,
    observer: impl Fn(Notice) + Send + Sync + 'static,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServerError> {
    runtime()?.block_on(async {
        let server = Server::bind(policy, config, observer).await?;
        ready(server.address());
        server.run(asked_to_stop()).await;
        Ok(())
    })
}

/// The threads of sockets.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(ServerError::Start)
}

/// Ready when the user or the system asks the process to end.
async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

impl Server {
    /// Binds the address and starts the policy's thread.
    ///
    /// # Errors
    /// If the address cannot be bound, or the thread cannot be started.
    pub async fn bind(
        policy: Box<dyn Policy>,
        config: Config,
        observer: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Server, ServerError> {
        let wanted = SocketAddr::new(config.host, config.port);
        let listener =
            TcpListener::bind(wanted).await.map_err(|source| ServerError::Bind { address: wanted, source })?;
        let address = listener.local_addr().map_err(ServerError::Start)?;
        let metadata = policy.metadata();
        if metadata.action_horizon == 0 || metadata.action_dim == 0 {
            return Err(ServerError::Policy("it returns no actions".to_owned()));
        }
        let (clients, metrics) = (Arc::new(AtomicUsize::new(0)), Arc::new(Metrics::new()));
        let batching =
            Batching { window: config.batch_window, most: config.max_batch.max(1), clients: clients.clone() };
        let (orders, inference) = inference::start(policy, batching, metrics.clone())?;
        let shared = Arc::new(Shared {
            expected: Expected::new(&metadata, config.limits),
            key: config.api_key.as_deref().map(ApiKey::new),
            metadata,
            orders,
            hub: Hub::new(),
            metrics,
            stopping: watch::Sender::new(false),
            clients,
            next: AtomicU64::new(0),
            pages: Arc::new(()),
            observer: Box::new(observer),
            config,
        });
        Ok(Server { listener, address, shared, inference })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready, then finishes work in progress, for no longer than [`Config::shutdown`].
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Server { listener, shared, inference, .. } = self;
        let most = shared.config.max_clients.saturating_add(OTHERS).min(MOST_CONNECTIONS);
        let places = Arc::new(Semaphore::new(most));
        let router = router(shared.clone());
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(shared.config.head_timeout);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                // Such as too many open files: others may close some.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(place) = places.clone().try_acquire_owned() else { continue };
            let _ = stream.set_nodelay(true);
            let connection = serve_http(&builder, stream, peer, router.clone(), shared.stopping.subscribe());
            tokio::spawn(async move {
                connection.await;
                drop(place);
            });
        }
        drop(listener);
        let clients = shared.clients.load(Ordering::Relaxed);
        shared.notice(Notice::Stopping { clients });
        shared.stopping.send_replace(true);
        let waited = shared.config.shutdown;
        let end = Instant::now() + waited;
        let _ = timeout_at(end, async {
            let _ = places.acquire_many(most as u32).await;
            while shared.clients.load(Ordering::Relaxed) > 0 {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let _ = shared.orders.send(Order::Stop);
        // The thread is not joined: nothing can interrupt a policy, and the process is to end.
        if timeout_at(end, inference).await.is_err() {
            shared.notice(Notice::Unfinished { waited });
        }
    }
}

/// One HTTP connection, until it ends or becomes a websocket. When the server stops, a response in progress is completed.
fn serve_http(
    builder: &http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    router: axum::Router,
    mut stopping: watch::Receiver<bool>,
) -> impl Future<Output = ()> + use<> {
    let router = router.layer(axum::Extension(axum::extract::ConnectInfo(Peer(peer))));
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).with_upgrades();
    async move {
        tokio::pin!(connection);
        // What goes wrong with one connection is of no interest to others.
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}
