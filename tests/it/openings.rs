//! What every session begins with: the server's `init_connect` and the operator's `backend.init_sql`.
//!
//! On the servers apart, since `init_connect` is for everybody; one test after the other.

use std::time::{Duration, Instant};

use myriad::protocol::command::Command;

use crate::support::{Login, Setup, Wire, on_both};

/// What a session of these tests could have been told.
const LOOK: &str = "SELECT @@time_zone, @@lc_time_names, @@sql_safe_updates, @@group_concat_max_len, \
    @@character_set_client, @@collation_connection, @@character_set_results, @@autocommit";

/// `init_connect` is this until the end of the test.
async fn with_init_connect(t: &Setup, text: &str) -> Wire {
    let mut admin = t.master().await;
    admin.query(&format!("SET GLOBAL init_connect = \"{text}\"")).await.expect_ok();
    admin
}

async fn without(mut admin: Wire) {
    admin.query("SET GLOBAL init_connect = ''").await.expect_ok();
}

/// What a session sees at first, and after each way to begin anew.
async fn seen(mut client: Wire) -> Vec<Vec<Option<String>>> {
    let mut seen = client.query(LOOK).await.rows();
    client.query("SET time_zone = '-01:00', sql_safe_updates = 1, NAMES latin1").await.expect_ok();
    client.command(Command::ResetConnection, b"").await.expect_ok();
    seen.extend(client.query(LOOK).await.rows());
    seen
}

const TEXT: &str = "SET time_zone = '+03:00'; SET NAMES utf8mb3, lc_time_names = 'de_DE'";

on_both!(
    apart what_init_connect_sets,
    |config| config.pool.max_connections = 1,
    |t| async move {
        let admin = with_init_connect(&t, TEXT).await;
        let logins = [
            t.app(),
            Login { schema: None, ..t.app() },
            Login { collation: 8, ..t.app() },
            // It is not run for those who may connect in an emergency.
            Login { schema: None, ..Login::admin() },
        ];
        for login in &logins {
            let direct = seen(t.direct(login).await).await;
            for _ in 0..2 {
                assert_eq!(seen(t.client_as(login).await).await, direct, "{login:?}");
            }
        }
        // In turns on one connection: everybody has his own all the time.
        let mut clients = Vec::new();
        for login in &logins {
            let wanted = t.direct(login).await.query(LOOK).await.rows();
            clients.push((t.client_as(login).await, wanted));
        }
        for _ in 0..3 {
            for (client, wanted) in &mut clients {
                assert_eq!(client.query(LOOK).await.rows(), *wanted);
            }
        }
        assert_eq!(clients[0].1[0][..2], [Some("+03:00".to_owned()), Some("de_DE".to_owned())]);
        assert_ne!(clients[0].1, clients[3].1);
        drop(clients);
        without(admin).await;
    }
);

on_both!(
    apart init_connect_changes,
    |config| {
        config.pool.max_connections = 2;
        config.backend.globals_interval = Duration::from_millis(20);
    },
    |t| async move {
        let mut admin = with_init_connect(&t, "SET time_zone = '+03:00'").await;
        assert_eq!(t.client().await.one("SELECT @@time_zone").await, "+03:00");
        // Seen by the proxy when it looks next, if it has looked before.
        let limit = Instant::now() + Duration::from_secs(10);
        while t.metric("myriad_global_looks_total", None) < 1.0 {
            assert!(Instant::now() < limit, "nobody looks");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        admin.query("SET GLOBAL init_connect = \"SET time_zone = '+05:00'\"").await.expect_ok();
        while t.client().await.one("SELECT @@time_zone").await != "+05:00" {
            assert!(Instant::now() < limit, "new sessions begin as before");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        without(admin).await;
    }
);

on_both!(
    apart what_the_operator_sets,
    |config| {
        config.pool.max_connections = 1;
        config.backend.init_sql =
            Some(vec!["SET SESSION group_concat_max_len = 4321".into(), "SET time_zone = '+07:00'".into()]);
    },
    |t| async move {
        let admin = with_init_connect(&t, "SET time_zone = '+03:00', lc_time_names = 'de_DE'").await;
        let mut first = t.client().await;
        let look = "SELECT @@time_zone, @@lc_time_names, @@group_concat_max_len";
        assert_eq!(row(&mut first, look).await, ["+07:00", "de_DE", "4321"]);
        first.query("SET group_concat_max_len = 1111").await.expect_ok();
        let mut second = t.client_as(&Login { schema: None, ..Login::admin() }).await;
        assert_eq!(row(&mut second, look).await, ["+07:00", "en_US", "4321"]);
        assert_eq!(row(&mut first, look).await, ["+07:00", "de_DE", "1111"]);
        // A reset takes back what the server set, and not what the operator did.
        first.command(Command::ResetConnection, b"").await.expect_ok();
        assert_eq!(row(&mut first, look).await, ["+07:00", "en_US", "4321"]);
        // A pinned session that leaves: its connection is reset for the next one.
        first.query("CREATE TEMPORARY TABLE own (n INT)").await.expect_ok();
        drop(first);
        assert_eq!(row(&mut t.client().await, look).await, ["+07:00", "de_DE", "4321"]);
        without(admin).await;
    }
);

on_both!(
    apart statements_of_the_operator_that_fail,
    |config| config.backend.init_sql = Some(vec!["SET no_such_variable = 1".into()]),
    |t| async move {
        let _turn = t.master().await;
        let error = Wire::connect(t.address, &t.app()).await.err().expect("no session can begin");
        assert!(error.to_string().contains("backend.init_sql"), "{error}");
    }
);

async fn row(client: &mut Wire, sql: &str) -> Vec<String> {
    client.query(sql).await.rows().remove(0).into_iter().map(Option::unwrap_or_default).collect()
}
