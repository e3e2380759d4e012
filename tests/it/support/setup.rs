//! A proxy in front of a real server, with a schema of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use myriad::app::Proxy;
use myriad::config::{Config, Endpoint, Listen, User};
use tokio::sync::Mutex;

use super::{Login, Wire};

/// Which server a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    MariaDb,
    MySql,
}

impl Kind {
    /// Where it listens; none if it was skipped on purpose.
    ///
    /// # Panics
    /// If nobody started it.
    fn address(self, apart: bool) -> Option<SocketAddr> {
        let name = match (self, apart) {
            (Self::MariaDb, false) => "MYRIAD_TEST_MARIADB",
            (Self::MariaDb, true) => "MYRIAD_TEST_MARIADB_APART",
            (Self::MySql, false) => "MYRIAD_TEST_MYSQL",
            (Self::MySql, true) => "MYRIAD_TEST_MYSQL_APART",
        };
        match std::env::var(name) {
            Ok(skipped) if skipped == "skip" => {
                eprintln!("SKIPPED: {self:?} cannot be had on this machine");
                None
            }
            Ok(address) => Some(address.parse().expect("an address and a port")),
            Err(_) => panic!("{name} is not set: run tests/run, or `tests/run --servers` for a shell of your own"),
        }
    }
}

/// A `backend_user` that stands for an account of the test's own, named as its schema.
const OWN: &str = "(an account of the test's own)";

/// A proxy in front of a real server, and a schema that only this test uses.
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) server: SocketAddr,
    pub(crate) address: SocketAddr,
    pub(crate) metrics_address: SocketAddr,
    pub(crate) metrics: Arc<myriad::metrics::Metrics>,
    pub(crate) schema: String,
    has_account: bool,
    proxy: Mutex<Option<Proxy>>,
}

impl Setup {
    /// Starts the proxy and makes the schema.
    pub(crate) async fn new(kind: Kind, configure: impl FnOnce(&mut Config)) -> Option<Arc<Self>> {
        Self::before(kind, kind.address(false)?, configure).await
    }

    /// The same on the server whose global variables a test may set as it likes, as long as it is [`Setup::master`].
    pub(crate) async fn apart(kind: Kind, configure: impl FnOnce(&mut Config)) -> Option<Arc<Self>> {
        Self::before(kind, kind.address(true)?, configure).await
    }

    async fn before(kind: Kind, server: SocketAddr, configure: impl FnOnce(&mut Config)) -> Option<Arc<Self>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("tenant_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut config = config(server);
        configure(&mut config);
        let has_account = own_account(server, &schema, &mut config).await;
        let proxy = Proxy::start(config).await.expect("the proxy starts");
        let setup = Self {
            kind,
            server,
            address: proxy.addresses()[0],
            metrics_address: proxy.metrics_address().expect("the metrics page is on"),
            metrics: Arc::clone(proxy.metrics()),
            schema,
            has_account,
            proxy: Mutex::new(Some(proxy)),
        };
        let mut direct = setup.direct(&Login { schema: None, ..Login::app() }).await;
        direct.query(&format!("CREATE DATABASE {}", setup.schema)).await.expect_ok();
        Some(Arc::new(setup))
    }

    /// Another proxy, on the same port and before the same server.
    pub(crate) async fn beside(&self, instance: u8) -> Proxy {
        let mut config = config(self.server);
        config.server.listen = vec![Listen::Tcp(self.address)];
        config.server.reuse_port = true;
        config.server.instance = instance;
        Proxy::start(config).await.expect("another proxy starts on the same port")
    }

    /// A login of the usual user into this test's schema.
    pub(crate) fn app(&self) -> Login {
        Login { schema: Some(self.schema.clone()), ..Login::app() }
    }

    /// A client of the proxy.
    pub(crate) async fn client(&self) -> Wire {
        Wire::connect(self.address, &self.app()).await.expect("the proxy lets us in")
    }

    /// A client of the proxy that logs in like this.
    pub(crate) async fn client_as(&self, login: &Login) -> Wire {
        Wire::connect(self.address, login).await.expect("the proxy lets us in")
    }

    /// A client of the server itself.
    pub(crate) async fn direct(&self, login: &Login) -> Wire {
        Wire::connect(self.server, login).await.expect("the server lets us in")
    }

    /// The administrator, at the server itself.
    pub(crate) async fn admin(&self) -> Wire {
        self.direct(&Login::admin()).await
    }

    /// The administrator, who alone may change global variables as long as this connection is open: other tests, other
    /// runs of the tests on the same server too, wait.
    pub(crate) async fn master(&self) -> Wire {
        let mut admin = self.admin().await;
        assert_eq!(admin.one("SELECT GET_LOCK('myriad.tests.globals', 120)").await, "1");
        admin
    }

    /// One gauge or counter of the proxy, as its page would show it; 0 if it was never touched.
    pub(crate) fn metric(&self, name: &str, label: Option<&str>) -> f64 {
        self.metrics
            .registry
            .gather()
            .iter()
            .filter(|family| family.name() == name)
            .flat_map(|family| family.get_metric().to_vec())
            .filter(|metric| label.is_none_or(|label| metric.get_label().iter().any(|pair| pair.value() == label)))
            .map(|metric| metric.get_gauge().get_value() + metric.get_counter().get_value())
            .sum()
    }

    /// Waits, at most ten seconds, until a metric has this value.
    pub(crate) async fn until(&self, name: &str, label: Option<&str>, value: f64) {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.metric(name, label) != value {
            assert!(Instant::now() < limit, "{name} {label:?} is {} and not {value}", self.metric(name, label));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The server's ids of the connections of the test's own account, see [`own_backends`].
    ///
    /// # Panics
    /// If it has none.
    pub(crate) async fn threads(&self, admin: &mut Wire) -> Vec<u32> {
        assert!(self.has_account, "the test has no account of its own");
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let rows = admin.query("SHOW PROCESSLIST").await.rows();
        rows.iter()
            .filter(|row| row[1].as_ref() == Some(&self.schema))
            .map(|row| text(&row[0]).parse().expect("a number"))
            .collect()
    }

    /// Waits, at most ten seconds, until a statement with these words runs at the server, or none does.
    pub(crate) async fn until_runs(&self, words: &str, wanted: bool) {
        let mut admin = self.admin().await;
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let rows = admin.query("SHOW PROCESSLIST").await.rows();
            let runs = rows.iter().any(|row| row[7].as_ref().is_some_and(|statement| statement.contains(words)));
            if runs == wanted {
                return;
            }
            assert!(Instant::now() < limit, "{words}: still not {wanted}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The administrator kills every connection of the test's own account, and sees to it that they are gone.
    pub(crate) async fn kill_backends(&self) {
        let mut admin = self.admin().await;
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let threads = self.threads(&mut admin).await;
            if threads.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "still there: {threads:?}");
            for id in threads {
                // One that is gone by now is unknown.
                admin.query(&format!("KILL {id}")).await;
            }
        }
    }

    /// The name of another schema for this test, as long as the first one's.
    pub(crate) fn twin_schema(&self) -> String {
        let (front, number) = self.schema.rsplit_once('_').expect("tenant_PID_NUMBER");
        format!("{front}x{number}")
    }

    /// The name of one of many schemas for this test.
    pub(crate) fn tenant(&self, number: usize) -> String {
        format!("{}_{number}", self.schema)
    }

    /// Drains the proxy before the end of the test.
    pub(crate) async fn drain(&self) {
        let proxy = self.proxy.lock().await.take().expect("a proxy that was not drained yet");
        proxy.drain().await;
    }

    /// Nobody is left behind, and what was made for the test is gone.
    pub(crate) async fn finish(&self) {
        self.until("myriad_clients", None, 0.0).await;
        self.until("myriad_backend_connections", Some("leased"), 0.0).await;
        assert_eq!(self.metric("myriad_pool_waiting", None), 0.0);
        assert_eq!(self.metric("myriad_pinned_clients", None), 0.0);
        if let Some(proxy) = self.proxy.lock().await.take() {
            proxy.drain().await;
        }
        self.until("myriad_backend_connections", None, 0.0).await;
        let mut admin = self.admin().await;
        let tenants = admin.query(&format!("SHOW DATABASES LIKE '{}\\_%'", self.schema.replace('_', "\\_"))).await;
        let tenants = tenants.rows().into_iter().flatten().flatten();
        for schema in [self.schema.clone(), self.twin_schema()].into_iter().chain(tenants) {
            admin.query(&format!("DROP DATABASE IF EXISTS {schema}")).await.expect_ok();
        }
        if self.has_account {
            admin.query(&format!("DROP USER {}", self.schema)).await.expect_ok();
        }
    }
}

/// A pool that all clients of a test must share.
pub(crate) fn one_backend(config: &mut Config) {
    config.pool.max_connections = 1;
    config.scheduler.queue_timeout = Duration::from_secs(5);
}

/// The usual user has an account of the test's own at the server, which allows it as many connections as the pool may
/// have: one too many is refused with 1226.
pub(crate) fn own_backends(config: &mut Config) {
    config.auth.users[0].backend_user = Some(OWN.to_owned());
}

/// Makes the account that the configuration wants as the test's own.
async fn own_account(server: SocketAddr, name: &str, config: &mut Config) -> bool {
    let most = config.pool.max_connections;
    let mut wanted = config.auth.users.iter_mut().filter(|user| user.backend_user.as_deref() == Some(OWN));
    let Some(user) = wanted.next() else { return false };
    user.backend_user = Some(name.to_owned());
    let mut admin = Wire::connect(server, &Login::admin()).await.expect("the administrator gets in");
    let password = user.password.as_str();
    for sql in [
        format!("CREATE USER {name} IDENTIFIED BY '{password}' WITH MAX_USER_CONNECTIONS {most}"),
        format!("GRANT ALL ON `tenant\\_%`.* TO {name}"),
    ] {
        admin.query(&sql).await.expect_ok();
    }
    true
}

fn config(server: SocketAddr) -> Config {
    let mut config = Config::default();
    config.server.listen = vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))];
    config.server.drain_timeout = Duration::from_secs(5);
    config.backend.servers = vec![Endpoint { host: server.ip().to_string(), port: server.port() }];
    // Tests that change a global variable must not disturb the others.
    config.backend.globals_interval = Duration::ZERO;
    config.pool.max_connections = 2;
    config.metrics.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let user = |name: &str, password: &str| User {
        name: name.into(),
        password: password.to_owned().into(),
        ..User::default()
    };
    config.auth.users = vec![
        user("app", "app-secret"),
        user("other", "other-secret"),
        user("admin", "admin-secret"),
        user("nopass", ""),
    ];
    config
}
