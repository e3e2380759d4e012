//! Every socket option of the proxy, and the listening sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// How long a client may be silent before it is asked whether it is still there.
const CLIENT_KEEPALIVE: Duration = Duration::from_secs(120);

/// A socket that listens on `address`. What it accepts has the options that clients' sockets have, since Linux passes
/// them on: no delay, and keep-alive so that a vanished client is noticed. That saves five calls for each client.
///
/// `reuse_port` lets several processes share the port (SO_REUSEPORT); `backlog` is capped by net.core.somaxconn.
///
/// # Errors
/// What the kernel says: the address is in use, not ours, or its port is privileged.
pub fn listen(address: SocketAddr, backlog: u32, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.set_nodelay(true)?;
    keepalive(&socket, CLIENT_KEEPALIVE)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// A connection that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The local address or port cannot be had.
    #[error("{0}")]
    Bind(io::Error),
    /// The server does not answer, or the system finds no way to ask.
    #[error("{0}")]
    Connect(io::Error),
}

/// Connects to a server with the options that a backend connection has, `from` an address and port of this host if they are given.
///
/// Such a port is shared (SO_REUSEADDR): with connections to other servers, with those from other addresses, and with what
/// closed connections leave behind. Whether there is one like it already shows at connect.
///
/// # Errors
/// What the kernel says: refused, unreachable, no source port left.
pub async fn connect(
    address: SocketAddr,
    from: Option<SocketAddr>,
    keepalive_after: Duration,
) -> Result<TcpStream, ConnectError> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.map_err(ConnectError::Connect)?;
    socket.set_nodelay(true).map_err(ConnectError::Connect)?;
    if let Some(from) = from {
        socket.set_reuseaddr(true).and_then(|()| socket.bind(from)).map_err(ConnectError::Bind)?;
    }
    let stream = socket.connect(address).await.map_err(ConnectError::Connect)?;
    if !keepalive_after.is_zero() {
        keepalive(&stream, keepalive_after).map_err(ConnectError::Connect)?;
    }
    Ok(stream)
}

/// Can connections come from this address? Takes no port.
///
/// # Errors
/// What the kernel says: that this host does not have it, most likely.
pub fn try_source(address: IpAddr) -> io::Result<()> {
    let socket = Socket::new(if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 }, Type::STREAM, None)?;
    setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
    socket.bind(&SocketAddr::new(address, 0).into())
}

fn keepalive(socket: &impl AsFd, after: Duration) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(after).with_interval(Duration::from_secs(10)).with_retries(3);
    SockRef::from(socket).set_tcp_keepalive(&probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_accepted_has_the_options_of_its_listener() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 1, false).unwrap();
        let _client = connect(listener.local_addr().unwrap(), None, Duration::ZERO).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), CLIENT_KEEPALIVE);
        assert_eq!(
            (socket.tcp_keepalive_interval().unwrap().as_secs(), socket.tcp_keepalive_retries().unwrap()),
            (10, 3)
        );
    }
}
