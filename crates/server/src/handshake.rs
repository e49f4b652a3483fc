//! From an HTTP request to a websocket.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, HOST, HeaderName, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Whether a request wants a websocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    has(headers, CONNECTION, "upgrade") && has(headers, UPGRADE, "websocket")
}

/// Accepts a request for a websocket.
///
/// # Errors
/// A response, if the request is not one that RFC 6455 allows.
pub(crate) fn accept(request: &mut Request<Body>) -> Result<(OnUpgrade, Response<Body>), Box<Response<Body>>> {
    let headers = request.headers();
    if text(headers, SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(Box::new(refusal(StatusCode::UPGRADE_REQUIRED, "expected version 13 of the websocket protocol")));
    }
    let Some(key) = text(headers, SEC_WEBSOCKET_KEY) else {
        return Err(Box::new(refusal(StatusCode::BAD_REQUEST, "the request has no `Sec-WebSocket-Key`")));
    };
    let accepted = derive_accept_key(key.as_bytes());
    let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return Err(Box::new(refusal(StatusCode::BAD_REQUEST, "this connection cannot become a websocket")));
    };
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accepted)
        .body(Body::empty());
    match response {
        Ok(response) => Ok((upgrade, response)),
        Err(_) => Err(Box::new(refusal(StatusCode::BAD_REQUEST, "bad `Sec-WebSocket-Key`"))),
    }
}

/// Whether the page of another site sent the request. Browsers let any page open a websocket to this machine and say where the
/// page is from; robots say nothing.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = text(headers, ORIGIN) else { return false };
    let origin = origin.split_once("://").map_or(origin, |(_, host)| host);
    text(headers, HOST).is_none_or(|host| !host.eq_ignore_ascii_case(origin))
}

/// Whether a request to a server of this machine alone calls it by a name that is not this machine's. A page of another site
/// could have its own name point here, and would then count as ours.
pub(crate) fn is_misnamed(headers: &HeaderMap, host: IpAddr) -> bool {
    let Some(named) = text(headers, HOST).filter(|_| host.is_loopback()) else { return false };
    let name = match named.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => named,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    !name.eq_ignore_ascii_case("localhost") && name.parse::<IpAddr>().is_err()
}

/// A response with a line of text.
pub(crate) fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{reason}\n")));
    *response.status_mut() = status;
    response
}

/// The value of a header.
pub(crate) fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn has(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(HeaderName, &str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn upgrades_are_recognised() {
        assert!(is_upgrade(&headers(&[(CONNECTION, "keep-alive, Upgrade"), (UPGRADE, "WebSocket")])));
        assert!(!is_upgrade(&headers(&[(CONNECTION, "keep-alive"), (UPGRADE, "websocket")])));
        assert!(!is_upgrade(&headers(&[])));
    }

    #[test]
    fn names_that_are_not_this_machine_s_are_refused() {
        let misnamed = |host: &str, bound: &str| is_misnamed(&headers(&[(HOST, host)]), bound.parse().unwrap());
        for own in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "0.0.0.0:8000", "[::1]:8000", "192.168.1.5"] {
            assert!(!misnamed(own, "127.0.0.1"), "{own}");
        }
        assert!(misnamed("example.org:8000", "127.0.0.1") && misnamed("localhost.example.org", "::1"));
        assert!(!misnamed("robot-lab:8000", "0.0.0.0"), "a server for others has any name");
        assert!(!is_misnamed(&headers(&[]), "127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        assert!(!is_foreign(&headers(&[(HOST, "localhost:8000")])));
        assert!(!is_foreign(&headers(&[(HOST, "localhost:8000"), (ORIGIN, "http://localhost:8000")])));
        assert!(is_foreign(&headers(&[(HOST, "localhost:8000"), (ORIGIN, "https://example.org")])));
        assert!(is_foreign(&headers(&[(HOST, "localhost:8000"), (ORIGIN, "null")])));
    }
}
