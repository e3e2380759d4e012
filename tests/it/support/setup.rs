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
    fn address(self) -> Option<SocketAddr> {
        let name = match self {
            Self::MariaDb => "MYRIAD_TEST_MARIADB",
            Self::MySql => "MYRIAD_TEST_MYSQL",
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

/// A proxy in front of a real server, and a schema that only this test uses.
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) server: SocketAddr,
    pub(crate) address: SocketAddr,
    pub(crate) metrics_address: SocketAddr,
    pub(crate) metrics: Arc<myriad::metrics::Metrics>,
    pub(crate) schema: String,
    proxy: Mutex<Option<Proxy>>,
}

impl Setup {
    /// Starts the proxy and makes the schema.
    pub(crate) async fn new(kind: Kind, configure: fn(&mut Config)) -> Option<Arc<Self>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = kind.address()?;
        let schema = format!("tenant_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut config = config(server);
        configure(&mut config);
        let proxy = Proxy::start(config).await.expect("the proxy starts");
        let setup = Self {
            kind,
            server,
            address: proxy.addresses()[0],
            metrics_address: proxy.metrics_address().expect("the metrics page is on"),
            metrics: Arc::clone(proxy.metrics()),
            schema,
            proxy: Mutex::new(Some(proxy)),
        };
        let mut direct = setup.direct(&Login { schema: None, ..Login::app() }).await;
        direct.query(&format!("CREATE DATABASE {}", setup.schema)).await.expect_ok();
        Some(Arc::new(setup))
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
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Nobody is left behind, and the schema is gone.
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
        admin.query(&format!("DROP DATABASE {}", self.schema)).await.expect_ok();
    }
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
        max_clients: 0,
        backend_user: None,
    };
    config.auth.users = vec![
        user("app", "app-secret"),
        user("other", "other-secret"),
        user("admin", "admin-secret"),
        user("nopass", ""),
    ];
    config
}
