//! The HTTP side: the page, its events, health, metrics, and the way to websockets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connection::attend;
use crate::handshake::{accept, is_foreign, is_misnamed, is_upgrade, refusal, text};
use crate::policy::ClientId;
use crate::reply::metadata_json;
use crate::run::{Notice, Peer, Shared};

/// The page, with all that it needs.
const PAGE: &str = include_str!("page.html");

/// What the page may do: nothing is loaded from anywhere but this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The least time between two events of a page.
const REST: Duration = Duration::from_millis(100);

/// Pages that are served events at once.
const MAX_PAGES: usize = 16;

/// All routes.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .fallback(get(other))
        .layer(from_fn_with_state(shared.clone(), refuse_other_names))
        .with_state(shared)
}

/// Nothing is served under the name of another site.
async fn refuse_other_names(State(shared): State<Arc<Shared>>, request: Request<Body>, next: Next) -> Response<Body> {
    match is_misnamed(request.headers(), shared.config.host) {
        true => refusal(StatusCode::MISDIRECTED_REQUEST, "call this server by its address or as `localhost`"),
        false => next.run(request).await,
    }
}

/// What a page may say in its address.
#[derive(Deserialize)]
struct Asked {
    key: Option<String>,
    client: Option<u64>,
}

async fn health() -> &'static str {
    "OK\n"
}

/// The page, or a websocket: clients connect to `/` as well.
async fn root(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Query(asked): Query<Asked>,
    request: Request<Body>,
) -> Response<Body> {
    if is_upgrade(request.headers()) {
        return websocket(shared, peer, request);
    }
    if !may_see(&shared, request.headers(), &asked) {
        return refusal(StatusCode::UNAUTHORIZED, "this server has an API key; open the page as `/?key=KEY`");
    }
    ([(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-store")], Html(PAGE)).into_response()
}

/// openpi's server takes websockets at any path.
async fn other(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request<Body>,
) -> Response<Body> {
    match is_upgrade(request.headers()) {
        true => websocket(shared, peer, request),
        false => {
            refusal(StatusCode::NOT_FOUND, "there are `/`, `/healthz`, `/metrics`, `/live`, and websockets at any path")
        }
    }
}

async fn metrics(State(shared): State<Arc<Shared>>, Query(asked): Query<Asked>, headers: HeaderMap) -> Response<Body> {
    if !may_see(&shared, &headers, &asked) {
        return refusal(StatusCode::UNAUTHORIZED, "this server has an API key; send `Authorization: Api-Key KEY`");
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], shared.metrics.text()).into_response()
}

fn websocket(shared: Arc<Shared>, peer: Peer, mut request: Request<Body>) -> Response<Body> {
    if is_foreign(request.headers()) {
        return refusal(StatusCode::FORBIDDEN, "pages of other sites may not use this server");
    }
    if shared.key.as_ref().is_some_and(|key| !key.is_in(text(request.headers(), AUTHORIZATION))) {
        shared.metrics.error("key");
        return refusal(StatusCode::UNAUTHORIZED, "this server has an API key; send `Authorization: Api-Key KEY`");
    }
    if *shared.stopping.borrow() {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
    }
    let Some(seat) = shared.seat() else {
        shared.metrics.error("clients");
        let most = shared.config.max_clients;
        return refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("there are {most} clients already; `--max-clients` allows more"),
        );
    };
    let (upgrade, response) = match accept(&mut request) {
        Ok(accepted) => accepted,
        Err(refused) => return *refused,
    };
    tokio::spawn(async move {
        let Ok(Ok(stream)) = tokio::time::timeout(shared.config.head_timeout, upgrade).await else { return };
        let client = seat.client();
        let address = peer.0.to_string();
        shared.joined(client, address.clone());
        let end = attend(stream, &shared, client).await;
        shared.left(client);
        shared.notice(Notice::Left { client, address, why: end.to_string() });
        drop(seat);
    });
    response
}

/// Events for a page: the list of clients, and the one that it shows.
async fn live(State(shared): State<Arc<Shared>>, Query(asked): Query<Asked>, headers: HeaderMap) -> Response<Body> {
    if !may_see(&shared, &headers, &asked) {
        return refusal(StatusCode::UNAUTHORIZED, "this server has an API key; open the page as `/?key=KEY`");
    }
    if is_foreign(&headers) {
        return refusal(StatusCode::FORBIDDEN, "pages of other sites may not use this server");
    }
    let Some(page) = shared.page(MAX_PAGES) else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    };
    let watching = Watching {
        changes: shared.hub.changes(),
        stopping: shared.stopping.subscribe(),
        client: asked.client.map(ClientId),
        first: true,
        shared,
        _page: page,
    };
    let events = stream::unfold(watching, |watching| async move {
        let (event, watching) = watching.next().await?;
        Some((Ok::<Event, Infallible>(event), watching))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

struct Watching {
    shared: Arc<Shared>,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    client: Option<ClientId>,
    first: bool,
    /// Counts the page while it is open.
    _page: Arc<()>,
}

impl Watching {
    /// Waits for the next change; `None` when the server stops.
    async fn next(mut self) -> Option<(Event, Watching)> {
        if !self.first {
            let changed = async {
                sleep(REST).await;
                self.changes.changed().await
            };
            tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                changed = changed => changed.ok()?,
            }
        }
        self.first = false;
        let (shared, chosen) = (self.shared.clone(), self.client);
        // JPEGs are made where sockets do not wait for them.
        let data = tokio::task::spawn_blocking(move || {
            let hub = &shared.hub;
            let shown = chosen.or_else(|| hub.newest()).and_then(|client| hub.shown(client, &shared.metadata));
            json!({ "server": metadata_json(&shared.metadata), "list": hub.list(), "shown": shown })
        });
        let data = data.await.ok()?;
        Some((Event::default().data(data.to_string()), self))
    }
}

/// Whether a request for something to look at presents the key, in its header or in its address.
fn may_see(shared: &Shared, headers: &HeaderMap, asked: &Asked) -> bool {
    shared.key.as_ref().is_none_or(|key| {
        key.is_in(text(headers, AUTHORIZATION)) || asked.key.as_deref().is_some_and(|presented| key.is(presented))
    })
}
