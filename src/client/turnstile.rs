//! The line of those who want to log in: TLS and passwords are costly, so only so many do at once.

use std::time::Duration;

use tokio::sync::SemaphorePermit;

use super::login::{Threshold, Turned, refuse};
use super::registry::Entry;
use super::reply::Fault;
use crate::metrics::{Limit, LoginResult};
use crate::net::Stream;

/// How long a client may wait for its turn to log in.
const LINE: Duration = Duration::from_secs(60);

/// Waits until it is this client's turn to log in: it is told if that takes too long, or nothing if it is to go.
pub(super) async fn turn<'d>(
    threshold: &Threshold<'d>,
    stream: &mut Stream,
    entry: &Entry,
) -> Result<SemaphorePermit<'d>, Turned> {
    let door = threshold.door;
    if let Ok(turn) = door.handshakes.try_acquire() {
        return Ok(turn);
    }
    door.metrics.client.in_line.inc();
    let turn = tokio::select! {
        turn = tokio::time::timeout(LINE, door.handshakes.acquire()) => turn.ok().and_then(Result::ok),
        _ = entry.summoned() => None,
    };
    door.metrics.client.in_line.dec();
    if let Some(turn) = turn {
        return Ok(turn);
    }
    let fault = match entry.summons() {
        Some(_) => Fault::Shutdown,
        None => {
            door.metrics.client.refusals.get(Limit::MaxHandshakes).inc();
            Fault::TooManyClients { limit: "server.max_handshakes", value: door.settings.max_handshakes }
        }
    };
    Err(refuse(threshold, stream, 2, &fault, LoginResult::Timeout).await)
}
