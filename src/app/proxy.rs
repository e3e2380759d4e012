//! One proxy: its listeners, its pool, its page; started, drained, gone. Several fit in one process.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

use super::globals;
use crate::backend::Connector;
use crate::client::listener::{Listener, accept};
use crate::client::registry::{Registry, Summons};
use crate::client::users::Users;
use crate::client::{Chatter, Door, Openings, Pace, Proofs, Proven, Remembered, Routines, Schemas, Settings};
use crate::config::{self, Config, Listen, ServerTlsMode};
use crate::metrics::{Metrics, http};
use crate::net::{tcp, tls};
use crate::pool::{Pool, Server};
use crate::protocol::auth::rsa::{KeyPair, Keys};
use crate::session::{Interner, Texts};

/// Why a proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error} (see {setting})")]
    Listen {
        /// As configured.
        address: String,
        /// The setting to change.
        setting: &'static str,
        /// What the kernel says.
        error: io::Error,
    },
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// `auth.private_key` cannot be used.
    #[error("auth.private_key: {}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no server to connect to.
    #[error("backend.servers is empty")]
    NoServer,
}

/// A running proxy.
pub struct Proxy {
    door: Arc<Door>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
    metrics_address: Option<SocketAddr>,
    ready: Arc<AtomicBool>,
    stop_accepting: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
    drain_timeout: Duration,
}

impl Proxy {
    /// Starts a proxy inside the current runtime. It accepts clients when this returns, whether or not its server is
    /// there yet.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::of(config.server.instance));
        let door = Arc::new(build(&config, &metrics)?);
        let Sockets { listeners, addresses, paths } = listen(&config)?;
        let page = match config.metrics.listen {
            None => None,
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| StartError::Listen {
                address: address.to_string(),
                setting: "metrics.listen",
                error,
            })?),
        };
        let metrics_address = page.as_ref().and_then(|page| page.local_addr().ok());
        let proxy = Self {
            addresses,
            paths,
            metrics_address,
            ready: Arc::new(AtomicBool::new(true)),
            stop_accepting: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            drain_timeout: config.server.drain_timeout,
            door,
        };
        proxy.spawn(listeners, page, &config);
        Ok(proxy)
    }

    fn spawn(&self, listeners: Vec<Listener>, page: Option<TcpListener>, config: &Config) {
        let door = &self.door;
        for address in &self.addresses {
            tracing::info!(%address, "listening");
        }
        for path in &self.paths {
            tracing::info!(path = %path.display(), "listening");
        }
        for listener in listeners {
            self.tasks.spawn(accept(listener, Arc::clone(door), self.stop_accepting.clone()));
        }
        if let Some(page) = page {
            let ready = Arc::clone(&self.ready);
            let served = http::serve(page, Arc::clone(&door.metrics), move || ready.load(Ordering::Relaxed));
            self.spawn_until_stop(served);
        }
        self.spawn_until_stop(Arc::clone(&door.registry).sweep(config.server.idle_timeout));
        self.tasks.spawn(Arc::clone(&door.pool).keeper(self.stop.clone()));
        self.spawn_until_stop(meet(Arc::clone(&door.connector)));
        if !config.backend.globals_interval.is_zero() {
            self.spawn_until_stop(globals::watch(Arc::clone(door), config.backend.globals_interval));
        }
    }

    fn spawn_until_stop(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Where it listens, ports resolved.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where its metrics page is, port resolved.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Its numbers.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.door.metrics
    }

    /// Stops accepting, lets clients finish what they have open for at most `server.drain_timeout`, and closes.
    pub async fn drain(self) {
        self.ready.store(false, Ordering::Relaxed);
        self.stop_accepting.cancel();
        self.door.registry.summon_all(Summons::Drain);
        self.door.tasks.close();
        if tokio::time::timeout(self.drain_timeout, self.door.tasks.wait()).await.is_err() {
            let left = self.door.registry.len();
            tracing::warn!(clients = left, "server.drain_timeout ran out; cutting off the clients that are left");
            self.door.registry.summon_all(Summons::CutOff);
            let _ = tokio::time::timeout(Duration::from_secs(1), self.door.tasks.wait()).await;
        }
        self.door.pool.close(Duration::from_secs(1)).await;
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        for socket in &self.paths {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// The key that hides passwords of clients without TLS.
fn keys(auth: &config::Auth) -> Result<Keys, StartError> {
    let Some(path) = &auth.private_key else { return Ok(Keys::default()) };
    let bad = |why: String| StartError::Key { path: path.clone(), why };
    let pem = Zeroizing::new(std::fs::read(path).map_err(|error| bad(error.to_string()))?);
    KeyPair::from_pem(&pem).map(Keys::of).map_err(|error| bad(error.to_string()))
}

/// Builds every room.
fn build(config: &Config, metrics: &Arc<Metrics>) -> Result<Door, StartError> {
    let interner = Arc::new(Interner::new());
    let server = config.backend.servers.first().cloned().ok_or(StartError::NoServer)?;
    let connector = Arc::new(Connector::new(
        server,
        &config.backend,
        config.limits.buffer,
        config.pool.prepared_statements,
        Arc::clone(&interner),
        Arc::clone(metrics),
    )?);
    let pool = Pool::new(
        Server(Arc::clone(&connector)),
        &config.pool,
        &config.scheduler,
        &config.limits.schemas,
        Arc::clone(metrics),
    );
    let tls = match config.server.tls.mode {
        ServerTlsMode::Off => None,
        ServerTlsMode::Optional | ServerTlsMode::Required => {
            Some(TlsAcceptor::from(tls::server_config(&config.server.tls)?))
        }
    };
    Ok(Door {
        users: Users::new(&config.auth),
        schemas: Schemas::new(&config.limits.schemas),
        registry: Registry::new(
            config.server.max_clients,
            config.server.max_clients_per_address,
            config.server.instance,
        ),
        pool,
        connector,
        interner,
        texts: Texts::default(),
        named_texts: Texts::default(),
        remembered: Remembered::default(),
        chatter: Chatter::default(),
        proven: Proven::default(),
        openings: Openings::default(),
        metrics: Arc::clone(metrics),
        tls,
        tls_required: config.server.tls.mode == ServerTlsMode::Required,
        keys: Arc::new(keys(&config.auth)?),
        handshakes: Semaphore::new(config.server.max_handshakes),
        pace: Pace::new(config.server.connect_rate, config.server.connect_rate_per_address),
        proofs: Proofs::default(),
        killing: Arc::new(Semaphore::new(config.pool.kill_connections)),
        routines: Routines::new(config.session.harmless_routines.as_deref().unwrap_or_default()),
        tasks: TaskTracker::new(),
        settings: Settings::new(config),
    })
}

/// What a proxy listens on.
#[derive(Default)]
struct Sockets {
    listeners: Vec<Listener>,
    /// Of TCP, ports resolved.
    addresses: Vec<SocketAddr>,
    /// Of Unix sockets, to be removed at the end.
    paths: Vec<PathBuf>,
}

/// Opens every listening socket.
fn listen(config: &Config) -> Result<Sockets, StartError> {
    let mut sockets = Sockets::default();
    for listen in &config.server.listen {
        match listen {
            Listen::Tcp(address) => {
                let failed =
                    |error| StartError::Listen { address: address.to_string(), setting: "server.listen", error };
                let socket = tcp::listen(*address, config.server.backlog, config.server.reuse_port).map_err(failed)?;
                sockets.addresses.push(socket.local_addr().map_err(failed)?);
                sockets.listeners.push(Listener::Tcp(socket));
            }
            Listen::Unix(path) => {
                let failed = |error| StartError::Listen {
                    address: format!("unix:{}", path.display()),
                    setting: "server.listen",
                    error,
                };
                remove_stale(path).map_err(failed)?;
                sockets.listeners.push(Listener::Unix(UnixListener::bind(path).map_err(failed)?));
                sockets.paths.push(path.clone());
            }
        }
    }
    Ok(sockets)
}

/// A socket that a proxy before us left behind; one that somebody still listens on stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of that name that is not a socket"));
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    std::fs::remove_file(path)
}

/// Gets to know the server before the first client asks, trying again as long as it is not there.
async fn meet(connector: Arc<Connector>) {
    let mut pause = Duration::from_millis(100);
    while connector.facts().is_none() {
        match connector.meet().await {
            Ok(()) => tracing::info!(server = %connector.endpoint(), "the server is there"),
            Err(error) => {
                tracing::warn!(server = %connector.endpoint(), %error, "the server is not there yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
        }
    }
}
