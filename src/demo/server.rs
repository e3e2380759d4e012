//! The server behind the proxy: the one given, a private one, or the embedded one.

use std::io;
use std::net::SocketAddr;

use super::console::Console;
use super::embedded::{Embedded, PASSWORD, ROWS, SCHEMA, TABLE, USER, WORK_BYTES};
use super::private::{Private, Program};
use super::{DemoError, Options, host};
use crate::config::Endpoint;
use crate::load::table::grouped;
use crate::load::{Plan, first_row};

/// Connections a private server takes beyond the clients of the direct run: the proxy's, and some room.
const SPARE_CONNECTIONS: usize = 100;
/// A connection of its own costs a server about this much memory: a thread's stack and buffers (measured: 100 to 300 KiB).
const SERVER_CONNECTION_BYTES: u64 = 400 << 10;

/// The server behind the proxy. Dropping it ends what was started.
#[derive(Debug)]
pub(super) enum Server {
    /// One that runs already.
    Given { address: SocketAddr, user: String, password: String },
    /// A private one.
    Private(Private),
    /// The embedded one.
    Embedded(Embedded),
}

impl Server {
    /// The best server to be had, with room for `clients` of its own if it is a private one. Says which it is.
    pub(super) async fn choose(options: &Options, clients: usize, console: &Console) -> Result<Self, DemoError> {
        if let Some(endpoint) = &options.backend {
            let server = Self::given(endpoint, options).await?;
            console.line(format!("Server: {}:{}, as given.", endpoint.host, endpoint.port));
            return Ok(server);
        }
        if options.user.is_some() || options.password.is_some() {
            return Err(DemoError::Usage("--user and --password need --backend HOST:PORT".into()));
        }
        if let Some(program) = Program::find() {
            console.line(format!("Starting a private server: {}, {} ...", program.path().display(), program.version()));
            match Private::start(&program, clients + SPARE_CONNECTIONS).await {
                Ok(private) => {
                    console.line(format!(
                        "Server: the private one, on {}, for the length of the demo.",
                        private.address()
                    ));
                    return Ok(Self::Private(private));
                }
                Err(error) => console.line(format!("That did not work, so the embedded server steps in: {error}.")),
            }
        } else {
            console.line("No mariadbd or mysqld is on the PATH, so the embedded server steps in.");
        }
        let embedded = Embedded::start().await.map_err(DemoError::Listen)?;
        console.line(format!(
            "Server: a small one embedded in this process, on {}: {} fixed rows; as its work, each SELECT computes a \
             checksum over {} bytes.",
            embedded.address(),
            grouped(ROWS.unsigned_abs()),
            grouped(WORK_BYTES as u64)
        ));
        Ok(Self::Embedded(embedded))
    }

    async fn given(endpoint: &Endpoint, options: &Options) -> Result<Self, DemoError> {
        let unusable =
            |reason: String| DemoError::Backend { server: format!("{}:{}", endpoint.host, endpoint.port), reason };
        let found = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port)).await;
        let nobody = || io::Error::other("the name has no address");
        let address = found.and_then(|mut all| all.next().ok_or_else(nobody)).map_err(|e| unusable(e.to_string()))?;
        let Some(user) = options.user.clone() else {
            return Err(DemoError::Usage("--backend needs --user (and --password) of an account there".into()));
        };
        let password = options.password.clone().unwrap_or_default();
        let server = Self::Given { address, user, password };
        first_row(&server.plan(), "SELECT 1").await.map_err(|error| unusable(error.text))?;
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Given { address, .. } => *address,
            Self::Private(private) => private.address(),
            Self::Embedded(embedded) => embedded.address(),
        }
    }

    /// The account that everybody uses: name and password.
    pub(super) fn account(&self) -> (&str, &str) {
        match self {
            Self::Given { user, password, .. } => (user, password),
            Self::Private(_) | Self::Embedded(_) => (USER, PASSWORD),
        }
    }

    /// The schema with the demo's table, if there is one.
    pub(super) fn schema(&self) -> Option<&'static str> {
        match self {
            Self::Given { .. } => None,
            Self::Private(_) | Self::Embedded(_) => Some(SCHEMA),
        }
    }

    /// What the clients ask. On somebody's own server nothing is made, read or changed.
    pub(super) fn statement(&self) -> String {
        match self {
            Self::Given { .. } => "SELECT ?1000 * 2".into(),
            Self::Private(_) | Self::Embedded(_) => format!("SELECT name, price FROM {TABLE} WHERE id = ?1000"),
        }
    }

    /// How many connections the proxy may have.
    pub(super) fn pool(&self) -> usize {
        match self {
            Self::Given { .. } | Self::Private(_) => 32,
            Self::Embedded(_) => 16,
        }
    }

    /// A plan with its account, directly to it.
    pub(super) fn plan(&self) -> Plan {
        let (user, password) = self.account();
        Plan::single(self.address(), user, password, self.schema())
    }

    /// Memory of the server, in bytes, where it is ours to look at.
    pub(super) fn resident(&self) -> Option<u64> {
        match self {
            Self::Private(private) => private.resident(),
            Self::Given { .. } | Self::Embedded(_) => None,
        }
    }

    /// How many clients can be connected directly for a comparison, and what sets that number if it is fewer.
    pub(super) async fn direct_clients(&self, clients: usize) -> Result<(usize, Option<String>), DemoError> {
        let number = |row: Vec<Option<String>>, at: usize| -> usize {
            row.get(at).and_then(Option::as_deref).and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let plan = self.plan();
        let failed = |error: crate::load::ProbeError| DemoError::Backend {
            server: self.address().to_string(),
            reason: error.text,
        };
        let most = number(first_row(&plan, "SELECT @@max_connections").await.map_err(failed)?, 0);
        let status = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
        let used = number(first_row(&plan, status).await.map_err(failed)?, 1);
        let free = most.saturating_sub(used);
        // A tenth is left to others where the server is somebody's.
        let by_server = if matches!(self, Self::Private(_)) { free } else { free / 10 * 9 };
        let by_memory = match self {
            Self::Private(_) => {
                host::available().map_or(usize::MAX, |bytes| to_usize(bytes / 2 / SERVER_CONNECTION_BYTES))
            }
            _ => usize::MAX,
        };
        let direct = clients.min(by_server).min(by_memory);
        let why = (direct < clients).then(|| {
            if by_server <= by_memory {
                format!("its max_connections is {} and {} are in use", grouped(most as u64), grouped(used as u64))
            } else {
                "this machine has no memory for a server thread per client".into()
            }
        });
        Ok((direct, why))
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(options: Options) -> String {
        Server::choose(&options, 1, &Console::silent()).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn options_must_go_together() {
        let alone = Options { user: Some("u".into()), ..Options::default() };
        assert!(refused(alone).await.contains("--backend"));
        // Taken, and nobody listens on it.
        let deaf = tokio::net::TcpSocket::new_v4().unwrap();
        deaf.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = deaf.local_addr().unwrap().port();
        let nobody = Endpoint { host: "127.0.0.1".into(), port };
        let options = Options { backend: Some(nobody.clone()), ..Options::default() };
        assert!(refused(options).await.contains("--user"));
        let options = Options { backend: Some(nobody), user: Some("u".into()), ..Options::default() };
        let text = refused(options).await;
        assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("--backend"), "{text}");
    }

    #[tokio::test]
    async fn the_embedded_server_answers_its_own_statement() {
        let server = Server::Embedded(Embedded::start().await.unwrap());
        let row = first_row(&server.plan(), &server.statement().replace("?1000", "3")).await.unwrap();
        assert_eq!(row, [Some("item 3".into()), Some("211".into())]);
    }
}
