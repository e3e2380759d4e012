//! Accepting clients, within the limits.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::reply::Fault;
use super::{Door, serve};
use crate::metrics::Limit;
use crate::net::Stream;

/// A socket that clients connect to.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// Unix.
    Unix(UnixListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Stream::Tcp(stream), Some(address.ip())))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), None))
            }
        }
    }
}

/// Accepts until `stop`; each client gets a task of its own.
pub async fn accept(listener: Listener, door: Arc<Door>, stop: CancellationToken) {
    loop {
        if let Some(wait) = door.pace.wait(Instant::now()) {
            door.metrics.client.delays.inc();
            tokio::select! {
                () = tokio::time::sleep(wait) => continue,
                () = stop.cancelled() => return,
            }
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, address)) => admit(&door, stream, address),
            Err(error) => pause(&door, &error).await,
        }
    }
}

/// Takes the client in, or tells it which limit says no.
fn admit(door: &Arc<Door>, stream: Stream, address: Option<IpAddr>) {
    door.metrics.client.accepted.inc();
    let in_time = address.is_none_or(|address| door.pace.admits(address.to_canonical(), Instant::now()));
    let entered = if in_time { door.registry.enter(address) } else { Err(Limit::ConnectRatePerAddress) };
    match entered {
        Ok(registered) => {
            let door = Arc::clone(door);
            door.tasks.clone().spawn(serve::welcome(door, stream, registered, address));
        }
        Err(limit) => {
            door.metrics.client.refusals.get(limit).inc();
            let fault = match limit {
                Limit::MaxClientsPerAddress => Fault::TooManyClients {
                    limit: "server.max_clients_per_address",
                    value: door.settings.max_clients_per_address,
                },
                Limit::ConnectRatePerAddress => Fault::TooManyClients {
                    limit: "server.connect_rate_per_address",
                    value: door.settings.connect_rate_per_address as usize,
                },
                _ => Fault::TooManyClients { limit: "server.max_clients", value: door.settings.max_clients },
            };
            door.metrics.relay.error(fault.code().0);
            door.tasks.spawn(turn_away(stream, fault));
        }
    }
}

/// One error packet instead of a greeting; a client that does not take it at once does without.
async fn turn_away(mut stream: Stream, fault: Fault) {
    let mut out = BytesMut::new();
    fault.write(&mut out, 0);
    let said = async {
        stream.write_all(&out).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), said).await;
}

/// Accepting failed: out of descriptors or memory is waited out, not spun on; anything else was one client's trouble.
async fn pause(door: &Door, error: &io::Error) {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM
    if matches!(error.raw_os_error(), Some(24 | 23 | 105 | 12)) {
        door.metrics.client.refusals.get(Limit::OpenFiles).inc();
        tracing::warn!(%error, "cannot accept clients; trying again in 100 ms");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
