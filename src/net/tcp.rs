//! Every socket option of the proxy, and the listening sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A socket that listens on `address`.
///
/// `reuse_port` lets several processes share the port (SO_REUSEPORT); `backlog` is capped by net.core.somaxconn.
///
/// # Errors
/// What the kernel says: the address is in use, not ours, or its port is privileged.
pub fn listen(address: SocketAddr, backlog: u32, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Options of a client's socket: no delay, and keep-alive so that a vanished client is noticed.
///
/// # Errors
/// What the kernel says; the connection is then already gone.
pub fn configure_client(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    keepalive(stream, Duration::from_secs(120))
}

/// Connects to a server with the options that a backend connection has.
///
/// # Errors
/// What the kernel says: refused, unreachable, no source port left.
pub async fn connect(address: SocketAddr, keepalive_after: Duration) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    let stream = socket.connect(address).await?;
    if !keepalive_after.is_zero() {
        keepalive(&stream, keepalive_after)?;
    }
    Ok(stream)
}

fn keepalive(stream: &TcpStream, after: Duration) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(after).with_interval(Duration::from_secs(10)).with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}
