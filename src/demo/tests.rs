//! The demo's decisions, and the load generator against the embedded server.

use super::embedded::{Embedded, PASSWORD, SCHEMA, USER};
use super::*;
use crate::config::PoolMode;
use crate::load::{self, FailureKind, Phase, Plan, Work};

#[test]
fn the_number_of_clients_is_explained() {
    let console = Console::silent();
    assert_eq!(clients(Some(3), &console).unwrap(), 3);
    assert!(matches!(clients(Some(0), &console), Err(DemoError::Usage(_))));
    assert!(clients(Some(usize::MAX), &console).unwrap() < usize::MAX);
}

#[test]
fn somebodys_password_is_not_shown() {
    let address = SocketAddr::from(([127, 0, 0, 1], 3306));
    let given = |password: &str| Server::Given { address, user: "u".into(), password: password.into() };
    assert_eq!(connection_string(&given("secret"), address), "mysql -h 127.0.0.1 -P 3306 -u u -p");
    assert_eq!(connection_string(&given(""), address), "mysql -h 127.0.0.1 -P 3306 -u u");
}

#[test]
fn the_proxy_gets_the_servers_account() {
    let address = SocketAddr::from(([127, 0, 0, 1], 3306));
    let config = proxy_config(&Server::Given { address, user: "u".into(), password: "p".into() }, 5);
    assert_eq!(config.auth.users[0].name, "u");
    assert_eq!(config.backend.servers[0].port, 3306);
    assert_eq!(config.pool.max_connections, 32);
    assert!(config.server.max_clients > 5);
}

fn plan(server: &Embedded, clients: usize) -> Plan {
    Plan {
        clients,
        duration: Duration::from_secs(1),
        work: Work::Statements(vec![
            "SELECT name, price FROM items WHERE id = ?1000".into(),
            "SELECT * FROM items LIMIT 50".into(),
        ]),
        ..Plan::single(server.address(), USER, PASSWORD, Some(SCHEMA))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_ask_for_a_second() {
    let server = Embedded::start().await.unwrap();
    let seen = std::cell::RefCell::new(Vec::new());
    let report = load::run(plan(&server, 50), |snapshot| seen.borrow_mut().push(*snapshot)).await.unwrap();
    assert_eq!(report.errors, []);
    assert_eq!(report.clients, 50);
    assert!(report.statements > 0 && report.rate > 0.0);
    let latency = report.latency;
    assert!(0 < latency.p50 && latency.p50 <= latency.p95 && latency.p95 <= latency.p99 && latency.p99 <= latency.max);
    let seen = seen.into_inner();
    assert!(seen.iter().any(|snapshot| snapshot.phase == Phase::Idle && snapshot.connected == 50));
    assert!(seen.iter().any(|snapshot| snapshot.phase == Phase::Running && snapshot.statements > 0));
}

#[tokio::test]
async fn a_pause_slows_the_clients_down() {
    let server = Embedded::start().await.unwrap();
    let think = Duration::from_secs(100);
    let report = load::run(Plan { think, ..plan(&server, 3) }, |_| ()).await.unwrap();
    // One second out of hundreds: each asks once at most, and mostly not at all.
    assert_eq!((report.clients, report.error_count()), (3, 0));
    assert!(report.statements <= 3);
}

#[tokio::test]
async fn errors_are_counted_by_kind() {
    let server = Embedded::start().await.unwrap();
    let good = plan(&server, 2);
    let wrong = Plan { password: "wrong".into(), ..good.clone() };
    let report = load::run(wrong, |_| ()).await.unwrap();
    assert_eq!((report.clients, report.statements), (0, 0));
    assert_eq!((report.errors[0].kind, report.errors[0].count), (FailureKind::Login, 2));

    let refused = Plan {
        work: Work::Statements(vec!["DROP TABLE items".into()]),
        think: Duration::from_millis(20),
        ..good.clone()
    };
    let report = load::run(refused, |_| ()).await.unwrap();
    assert_eq!((report.clients, report.statements), (2, 0));
    assert_eq!(report.errors[0].kind, FailureKind::Server(1290));
    assert!(report.errors[0].first.contains("--backend"));

    drop(server);
    let report = load::run(good, |_| ()).await.unwrap();
    assert_eq!(report.errors[0].kind, FailureKind::Connect);
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed_while_idle() {
    let server = Embedded::start().await.unwrap();
    let fleet = load::Fleet::connect(plan(&server, 4), |_| ()).await.unwrap();
    assert_eq!(fleet.connected(), 4);
    drop(server);
    let report = fleet.drive(|_| ()).await;
    assert_eq!((report.clients, report.errors[0].kind, report.errors[0].count), (4, FailureKind::Lost, 4));
}

#[tokio::test]
async fn every_source_address_is_used() {
    let server = Embedded::start().await.unwrap();
    let sources = vec!["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()];
    let report = load::run(Plan { sources, ..plan(&server, 4) }, |_| ()).await.unwrap();
    assert_eq!((report.clients, report.error_count()), (4, 0));
    // An address of nobody's.
    let sources = vec!["192.0.2.1".parse().unwrap()];
    let report = load::run(Plan { sources, ..plan(&server, 1) }, |_| ()).await.unwrap();
    assert_eq!(report.errors[0].kind, FailureKind::Connect);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_gets_along_with_the_embedded_server() {
    for mode in [PoolMode::Transaction, PoolMode::Session] {
        let server = Embedded::start().await.unwrap();
        let given = Server::Given { address: server.address(), user: USER.into(), password: PASSWORD.into() };
        let mut config = proxy_config(&given, 20);
        config.pool.mode = mode;
        let proxy = Proxy::start(config).await.unwrap();
        let report =
            load::run(Plan { targets: proxy.addresses().to_vec(), ..plan(&server, 20) }, |_| ()).await.unwrap();
        assert_eq!((report.errors, report.clients), (vec![], 20));
        proxy.drain().await;
    }
}
