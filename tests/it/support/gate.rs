//! A gate between the proxy and its server, that can be shut: the server is then as good as down.

use std::net::SocketAddr;
use std::sync::Mutex;

use myriad::config::Endpoint;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Passes connections on while it is open. Shut, it refuses them as a port does where nobody listens.
pub(crate) struct Gate {
    server: SocketAddr,
    address: SocketAddr,
    /// Bound and never listening: keeps the port ours while the gate is shut.
    _port: TcpSocket,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    /// An open gate in front of this server.
    pub(crate) fn new(server: SocketAddr) -> Self {
        let port = socket(SocketAddr::from(([127, 0, 0, 1], 0)));
        let address = port.local_addr().expect("an address");
        let gate = Self { server, address, _port: port, keeper: Mutex::default() };
        gate.open();
        gate
    }

    /// Where the proxy finds its server.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint { host: self.address.ip().to_string(), port: self.address.port() }
    }

    /// Lets connections pass.
    pub(crate) fn open(&self) {
        let listener = socket(self.address).listen(1024).expect("a listener");
        let keeper = tokio::spawn(keep(listener, self.server));
        assert!(self.keeper.lock().expect("no panic").replace(keeper).is_none(), "it is open");
    }

    /// Cuts every connection and refuses new ones.
    pub(crate) async fn shut(&self) {
        let keeper = self.keeper.lock().expect("no panic").take().expect("it is shut");
        keeper.abort();
        // When this returns, everything that the task held is dropped.
        let _ = keeper.await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.lock().expect("no panic").take() {
            keeper.abort();
        }
    }
}

fn socket(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option");
    socket.bind(address).expect("a free port");
    socket
}

async fn keep(listener: TcpListener, server: SocketAddr) {
    // Dropped with the task, and with it every connection.
    let mut connections = JoinSet::new();
    while let Ok((mut near, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut far = TcpStream::connect(server).await?;
            near.set_nodelay(true)?;
            far.set_nodelay(true)?;
            copy_bidirectional(&mut near, &mut far).await
        });
        while connections.try_join_next().is_some() {}
    }
}
