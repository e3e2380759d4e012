//! A small MySQL-speaking server inside this process, for machines that have none.
//!
//! It shows *that* the proxy works: 1,000 rows that never change, point selects, SET and SHOW. One account, one schema.
//! The only place that names `opensrv_mysql`. What it measures like means nothing for a real server, and the demo says so.

mod answer;
mod collations;
mod packets;
mod select;
mod session;
mod shim;
#[cfg(test)]
mod tests;
mod tokens;
mod variables;
mod work;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use opensrv_mysql::{AsyncMysqlIntermediary, IntermediaryOptions};
use tokio::io::BufWriter;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::net::tcp;

pub(crate) use select::{ROWS, TABLE, name, price};
pub(crate) use session::SCHEMA;
pub(crate) use work::BYTES as WORK_BYTES;

/// Connections that may wait to be accepted, as far as the system allows.
const BACKLOG: u32 = 4096;
/// What is written to a connection at once. There may be tens of thousands of them, and replies are short.
const OUTPUT: usize = 1024;

/// The account that it knows.
pub(crate) const USER: &str = "demo";
/// Its password.
pub(crate) const PASSWORD: &str = "demo";

/// A running server; ends when dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    address: SocketAddr,
    /// Holds the accepting task, which holds the connections.
    _tasks: JoinSet<()>,
}

impl Embedded {
    /// Starts it on a free port of this machine.
    ///
    /// # Errors
    /// If there is no port to be had.
    pub(crate) async fn start() -> io::Result<Self> {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), false).await
    }

    /// Starts it here, on a port that other processes may share.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) async fn listen(address: SocketAddr, shared: bool) -> io::Result<Self> {
        let listener = tcp::listen(address, BACKLOG, shared)?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener));
        Ok(Self { address, _tasks: tasks })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener) {
    let mut connections = JoinSet::new();
    for id in 1.. {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, id));
            }
            // Out of descriptors, most likely: wait for some to come back.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves one connection. Its errors are its peer's business, who sees the connection close.
async fn serve(stream: TcpStream, id: u32) {
    let (input, output) = stream.into_split();
    let options = IntermediaryOptions::default();
    let shim = shim::Shim::new(id);
    let served = AsyncMysqlIntermediary::run_with_options(
        shim,
        packets::Packets::new(input),
        BufWriter::with_capacity(OUTPUT, output),
        &options,
    );
    let _ = Box::pin(served).await;
}
