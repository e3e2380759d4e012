//! `myriad demo`: a server, a proxy and the load generator in one command, on a machine with nothing installed.
//!
//! The server is the one given, or a private instance of a `mariadbd` or `mysqld` on the PATH, or a small embedded one
//! (the only place that names `opensrv_mysql`). The load generator runs in a child process, so that what is measured
//! here is the proxy. Everything that was started ends with [`run`].

mod console;
mod embedded;
mod host;
mod private;
mod server;
mod show;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use self::console::Console;
use self::server::Server;
use self::show::Size;
use crate::app::{Proxy, StartError};
use crate::config::{self, Config, Endpoint, Listen};
use crate::load::RemoteError;
use crate::load::table::grouped;

/// Clients, if nothing says otherwise.
const CLIENTS: usize = 10_000;
/// Files this process opens besides one per client: connections to the server, listeners, pipes, the runtime's own.
const OTHER_FILES: usize = 200;
/// Time for the last clients when the demo ends.
const DRAIN: Duration = Duration::from_secs(3);

/// What the command line asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many clients; absent: 10,000, or what the open-file limit allows.
    pub clients: Option<usize>,
    /// How long the clients ask; 0 is as 1.
    pub seconds: u64,
    /// A server to use; absent: a private or an embedded one.
    pub backend: Option<Endpoint>,
    /// The account at that server.
    pub user: Option<String>,
    /// Its password; absent: none.
    pub password: Option<String>,
    /// End after the measurement instead of staying up.
    pub exit: bool,
}

/// Why the demo could not be shown. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// What the command line asks for does not go together.
    #[error("{0}")]
    Usage(String),
    /// Too few files.
    #[error(
        "this process may open only {0} files, too few for a single client; raise the limit, as with `ulimit -n 20000`"
    )]
    Files(u64),
    /// The given server is of no use.
    #[error("cannot use the server {server}: {reason}; check --backend, --user and --password")]
    Backend {
        /// The server.
        server: String,
        /// What it said.
        reason: String,
    },
    /// The embedded server found no port.
    #[error("the embedded server could not listen on 127.0.0.1: {0}; is the loopback interface up?")]
    Listen(#[source] io::Error),
    /// The proxy did not start.
    #[error("the proxy did not start: {0}")]
    Start(#[from] StartError),
    /// Nobody came through the proxy.
    #[error("no client could use the proxy: {0}; `myriad serve --log-level debug` tells more")]
    ThroughProxy(String),
    /// The load generator's process.
    #[error("{0}; the demo runs this program once more as its load generator, which must be possible")]
    Load(#[from] RemoteError),
    /// This program cannot find itself.
    #[error("cannot find this program's own file to run it as the load generator: {0}; start it by its full path")]
    Worker(#[source] io::Error),
    /// No signals.
    #[error("cannot wait for Ctrl-C: {0}")]
    Signals(#[source] io::Error),
}

/// The embedded server alone, on an address whose port other processes may share, as long as what is returned lives.
///
/// # Errors
/// If the address cannot be had.
pub(crate) async fn embedded(address: SocketAddr) -> io::Result<impl Sized> {
    embedded::Embedded::listen(address, true).await
}

/// Shows the demo: prints to standard output until it is over, or until Ctrl-C.
///
/// # Errors
/// If something is missing; the message says what to do about it.
pub async fn run(options: Options) -> Result<(), DemoError> {
    let console = Console::standard();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DemoError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DemoError::Signals)?;
    let mut stopped = pin!(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    // Ctrl-C drops the demo wherever it is, and with it everything it started.
    let stage = tokio::select! {
        shown = Box::pin(show_all(&options, &console)) => shown?,
        () = &mut stopped => {
            console.line("Stopped.");
            return Ok(());
        }
    };
    if !options.exit {
        console.line("");
        console
            .line(format!("The proxy stays up until Ctrl-C. Try: {}", connection_string(&stage.server, stage.address)));
        stopped.await;
    }
    stage.proxy.drain().await;
    Ok(())
}

/// What runs while the demo does. The proxy goes before the server.
struct Stage {
    proxy: Proxy,
    server: Server,
    address: SocketAddr,
}

async fn show_all(options: &Options, console: &Console) -> Result<Stage, DemoError> {
    if cfg!(debug_assertions) {
        console.line("This is a debug build, much slower than a release build: `cargo run --release -- demo`.");
    }
    let clients = clients(options.clients, console)?;
    let server = Server::choose(options, clients, console).await?;
    let proxy = Proxy::start(proxy_config(&server, clients)).await?;
    let address =
        proxy.addresses().first().copied().ok_or_else(|| DemoError::ThroughProxy("it listens nowhere".into()))?;
    console.line(format!("Proxy: on {address}, with at most {} connections to the server.", server.pool()));
    let size = Size { clients, duration: Duration::from_secs(options.seconds.max(1)) };
    Box::pin(show::show(&server, address, proxy.metrics(), size, console)).await?;
    Ok(Stage { proxy, server, address })
}

/// How many clients there will be; explains the number.
fn clients(wanted: Option<usize>, console: &Console) -> Result<usize, DemoError> {
    let files = host::open_files();
    let room = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES);
    if room == 0 {
        return Err(DemoError::Files(files));
    }
    if wanted == Some(0) {
        return Err(DemoError::Usage("--clients must be at least 1".into()));
    }
    let asked = wanted.unwrap_or(CLIENTS);
    let clients = asked.min(room);
    let shown = grouped(clients as u64);
    let why = if clients < asked {
        format!(
            "as many as the limit of {} open files allows: one each here and one in the load generator's process",
            grouped(files)
        )
    } else if wanted.is_some() {
        "as asked for".into()
    } else {
        "the demo's number; --clients changes it".into()
    };
    console.line(format!("Clients: {shown}, {why}."));
    Ok(clients)
}

fn proxy_config(server: &Server, clients: usize) -> Config {
    let defaults = Config::default();
    let address = server.address();
    let (user, password) = server.account();
    Config {
        server: config::Server {
            listen: vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))],
            // The demo's own, and those who try the connection string.
            max_clients: clients + OTHER_FILES / 2,
            drain_timeout: DRAIN,
            ..defaults.server
        },
        backend: config::Backend {
            servers: vec![Endpoint { host: address.ip().to_string(), port: address.port() }],
            ..defaults.backend
        },
        pool: config::Pool { max_connections: server.pool(), ..defaults.pool },
        auth: config::Auth {
            users: vec![config::User {
                name: user.into(),
                password: Zeroizing::new(password.into()),
                ..config::User::default()
            }],
            ..defaults.auth
        },
        log: config::Log { connections: false, ..defaults.log },
        ..defaults
    }
}

/// How to reach the proxy with the usual client. A password of the user's own is not shown.
fn connection_string(server: &Server, proxy: SocketAddr) -> String {
    let (user, password) = server.account();
    let password = match server {
        Server::Given { password, .. } if password.is_empty() => String::new(),
        Server::Given { .. } => " -p".into(),
        _ => format!(" -p{password}"),
    };
    let schema = server.schema().map(|schema| format!(" {schema}")).unwrap_or_default();
    format!("mysql -h {} -P {} -u {user}{password}{schema}", proxy.ip(), proxy.port())
}
