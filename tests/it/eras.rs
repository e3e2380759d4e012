//! Sessions that run while a global variable is changed: they keep what they began with, as on connections of their own.
//!
//! On the servers apart, since defaults are for everybody; one test after the other.

use std::time::Duration;

use myriad::config::Config;
use myriad::protocol::capability::{COMPRESSION, CapabilityFlags};
use myriad::protocol::command::Command;
use myriad::protocol::handshake::ServerGreeting;

use crate::support::{Kind, Login, Setup, Wire, on_both, one_backend};

/// Variables of many kinds: flags, words, lists, numbers small and large, names.
const NAMES: [&str; 14] = [
    "autocommit",
    "default_storage_engine",
    "default_week_format",
    "foreign_key_checks",
    "group_concat_max_len",
    "interactive_timeout",
    "lc_time_names",
    "long_query_time",
    "max_join_size",
    "optimizer_switch",
    "sql_select_limit",
    "time_zone",
    "unique_checks",
    "wait_timeout",
];

/// Changes in every form that `SET` has for them.
const CHANGES: [&str; 8] = [
    "SET GLOBAL default_week_format = 5",
    "SET @@global.time_zone = '+03:00', GLOBAL lc_time_names = 'de_DE'",
    "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION div_precision_increment = 7, GLOBAL group_concat_max_len = 2000, long_query_time = 7.5",
    "SET GLOBAL autocommit = OFF, GLOBAL foreign_key_checks = 0, @@global.unique_checks = OFF",
    "SET GLOBAL optimizer_switch = 'index_merge=off', GLOBAL sql_select_limit = 1000, GLOBAL max_join_size = 1000000",
    "SET GLOBAL wait_timeout = 1111, GLOBAL interactive_timeout = 2222",
    "SET GLOBAL default_storage_engine = MyISAM, GLOBAL default_week_format = 6",
];

/// All of that, and the isolation, whose name depends on the server.
fn look(t: &Setup) -> String {
    let isolation = match t.kind {
        Kind::MariaDb => ["tx_isolation", "tx_read_only"],
        Kind::MySql => ["transaction_isolation", "transaction_read_only"],
    };
    let names = NAMES.iter().chain(&isolation).map(|name| format!("@@{name}")).collect::<Vec<_>>();
    format!("SELECT CONCAT_WS('|', {})", names.join(", "))
}

/// Puts everything back.
async fn set_back(mut direct: Wire, t: &Setup) {
    for name in NAMES {
        direct.query(&format!("SET GLOBAL {name} = DEFAULT")).await.expect_ok();
    }
    direct
        .query("SET GLOBAL foreign_key_checks = 1, GLOBAL unique_checks = 1, GLOBAL autocommit = 1")
        .await
        .expect_ok();
    direct.query("SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ").await.expect_ok();
    let mut fresh = t.direct(&t.app()).await;
    assert_eq!(fresh.one("SELECT @@autocommit").await, "1");
}

fn two_backends(config: &mut Config) {
    config.pool.max_connections = 2;
    config.scheduler.queue_timeout = Duration::from_secs(5);
}

fn interactive(t: &Setup) -> Login {
    t.app().with(CapabilityFlags::CLIENT_INTERACTIVE)
}

/// Whatever is changed, everybody sees what somebody sees who came at the same time on a connection of its own.
async fn all_agree(t: &Setup) {
    let direct = t.master().await;
    let mut admin = t.client_as(&Login::admin()).await;
    let look = look(t);
    let mut pairs = Vec::new();
    for change in ["DO 1"].iter().chain(&CHANGES).chain(&CHANGES[..2]) {
        admin.query(change).await.expect_ok();
        for login in [t.app(), interactive(t), Login::admin()] {
            pairs.push((t.client_as(&login).await, t.direct(&login).await));
        }
        for (at, (proxied, private)) in pairs.iter_mut().enumerate() {
            assert_eq!(proxied.one(&look).await, private.one(&look).await, "client {at} after {change}");
        }
    }
    t.until("myriad_pinned_clients", None, 0.0).await;
    // Whoever begins anew has what is so now, and so has who asks for it.
    for (proxied, private) in &mut pairs[..6] {
        for sql in ["SET lc_time_names = DEFAULT, SESSION default_week_format = DEFAULT", &look] {
            assert_eq!(proxied.query(sql).await.raw, private.query(sql).await.raw, "{sql}");
        }
        for client in [&mut *proxied, private] {
            client.command(Command::ResetConnection, b"").await.expect_ok();
        }
        assert_eq!(proxied.one("SELECT @@time_zone").await, "+03:00");
    }
    for (proxied, private) in &mut pairs[..6] {
        for client in [proxied, private] {
            client.change_user(&t.app()).await.expect("welcome");
            assert_eq!(client.one("SELECT @@default_week_format").await, "5");
        }
    }
    drop(pairs);
    set_back(direct, t).await;
}

on_both!(apart on_one_backend_everybody_keeps_what_they_began_with, one_backend, |t| async move { all_agree(&t).await });

on_both!(apart on_two_backends_everybody_keeps_what_they_began_with, two_backends, |t| async move { all_agree(&t).await });

on_both!(
    apart on_many_backends_everybody_keeps_what_they_began_with,
    |config| config.pool.max_connections = 40,
    |t| async move { all_agree(&t).await }
);

on_both!(
    apart
    /// A `DEFAULT` on a connection of before would be that of today.
    a_value_that_another_session_has_set_there_is_not_in_the_way,
    two_backends,
    |t| async move {
        let direct = t.master().await;
        let mut admin = t.client_as(&Login::admin()).await;
        let (mut sets, mut keeps) = (t.client().await, t.client().await);
        let look = "SELECT @@default_week_format";
        assert_eq!(keeps.one(look).await, "0");
        sets.query("SET default_week_format = 3").await.expect_ok();
        admin.query("SET GLOBAL default_week_format = 5").await.expect_ok();
        for _ in 0..3 {
            assert_eq!((sets.one(look).await.as_str(), keeps.one(look).await.as_str()), ("3", "0"));
        }
        // Nor is a reset, which a variable that nobody may find calls for, or a way out of a schema.
        sets.query("SELECT @nobody := 1").await.rows();
        assert_eq!(keeps.one("SELECT CONCAT_WS('|', @nobody, @@default_week_format)").await, "0");
        let mut nowhere = t.client_as(&Login { schema: None, ..t.app() }).await;
        assert_eq!(nowhere.one(look).await, "5");
        admin.query("SET GLOBAL default_week_format = 6").await.expect_ok();
        sets.query("DO 1").await.expect_ok();
        assert_eq!(nowhere.one(look).await, "5");
        assert_eq!(keeps.one(look).await, "0");
        set_back(direct, &t).await;
    }
);

on_both!(
    apart
    /// What no session can set keeps as long as its connection is there, and is never in the way.
    what_cannot_be_set_is_kept_while_a_connection_is,
    |config| config.pool.max_connections = 3,
    |t| async move {
        let direct = t.master().await;
        let (name, privileged) = ("max_allowed_packet", "binlog_row_image");
        let mut admin = t.client_as(&Login::admin()).await;
        let mut early = t.client().await;
        let look = format!("SELECT CONCAT_WS('|', @@session.{name}, @@session.{privileged})");
        let before = early.one(&look).await;
        let (kept, _) = before.split_once('|').expect("two values");
        admin.query(&format!("SET GLOBAL {name} = 2097152, GLOBAL {privileged} = MINIMAL")).await.expect_ok();
        let mut late = t.client().await;
        assert_eq!(late.one(&look).await, "2097152|MINIMAL");
        assert_eq!(early.one(&look).await, before);
        assert_eq!(admin.one(&look).await, before);
        // Its last connection is gone.
        let mut busy = Vec::new();
        for _ in 0..3 {
            let mut client = t.client().await;
            client.query("BEGIN").await.expect_ok();
            busy.push(client);
        }
        drop(busy);
        t.until("myriad_pinned_clients", None, 0.0).await;
        assert_eq!(early.one(&look).await, "2097152|MINIMAL");
        assert_eq!(admin.one(&look).await, "2097152|FULL", "who may set it keeps it");
        let mut direct = direct;
        direct.query(&format!("SET GLOBAL {name} = {kept}, GLOBAL {privileged} = DEFAULT")).await.expect_ok();
    }
);

on_both!(
    apart
    /// A thousand changes, and an idle client that slept through them all.
    many_changes_are_one,
    one_backend,
    |t| async move {
        let direct = t.master().await;
        let mut admin = t.client_as(&Login::admin()).await;
        let mut early = t.client().await;
        assert_eq!(early.one("SELECT @@group_concat_max_len = @@global.group_concat_max_len").await, "1");
        let before = early.one("SELECT @@group_concat_max_len").await;
        for value in 5000..5300 {
            admin.query(&format!("SET GLOBAL group_concat_max_len = {value}")).await.expect_ok();
        }
        assert_eq!(early.one("SELECT @@group_concat_max_len").await, before);
        assert_eq!(t.client().await.one("SELECT @@group_concat_max_len").await, "5299");
        assert_eq!(early.one("SELECT @@group_concat_max_len").await, before);
        set_back(direct, &t).await;
    }
);

on_both!(
    apart
    /// While clients come and work, somebody changes a default: whoever is there before keeps the old one, whoever comes
    /// after it was answered has the new one.
    in_the_middle_of_work,
    |config| config.pool.max_connections = 4,
    |t| async move {
        let direct = t.master().await;
        let mut admin = t.client_as(&Login::admin()).await;
        for round in 0..20 {
            let value = (round + 1) % 7;
            let old = round % 7;
            let mut early = Vec::new();
            for _ in 0..6 {
                let mut client = t.client().await;
                assert_eq!(client.one("SELECT @@default_week_format").await, old.to_string());
                early.push(client);
            }
            let work = early.into_iter().map(|mut client| {
                let task = async move {
                    for _ in 0..10 {
                        client.query("SELECT 1").await.rows();
                        assert_eq!(client.one("SELECT @@default_week_format").await, old.to_string(), "round {round}");
                    }
                };
                tokio::spawn(task)
            });
            let work = work.collect::<Vec<_>>();
            admin.query(&format!("SET GLOBAL default_week_format = {value}")).await.expect_ok();
            for _ in 0..3 {
                assert_eq!(t.client().await.one("SELECT @@default_week_format").await, value.to_string());
            }
            for task in work {
                task.await.expect("it is as it was");
            }
        }
        set_back(direct, &t).await;
    }
);

on_both!(
    apart
    /// What is reported unasked, and what `session_track_..` shows, are as on a connection of one's own.
    trackers_of_new_sessions_are_as_the_server_has_them,
    two_backends,
    |t| async move {
        let mut direct = t.master().await;
        let names = ["schema", "state_change", "system_variables", "transaction_info"];
        let look = names.map(|name| format!("@@session_track_{name}")).join(", ");
        let look = format!("SELECT CONCAT_WS('|', {look})");
        let mut admin = t.client_as(&Login::admin()).await;
        let mut pairs = Vec::new();
        for change in [
            "DO 1",
            "SET GLOBAL session_track_schema = OFF, GLOBAL session_track_state_change = ON",
            "SET GLOBAL session_track_system_variables = 'lc_time_names'",
        ] {
            admin.query(change).await.expect_ok();
            pairs.push((t.client_as(&t.app()).await, t.direct(&t.app()).await));
            let now = pairs.len() - 1;
            for (proxied, private) in &mut pairs[now..] {
                assert_eq!(proxied.one(&look).await, private.one(&look).await, "{change}");
                for client in [&mut *proxied, &mut *private] {
                    client.query("DO 1").await.expect_ok();
                    client.query("SET @a = 1").await.expect_ok();
                }
                let sql = "SET lc_time_names = 'de_DE'";
                assert_eq!(proxied.query(sql).await.raw, private.query(sql).await.raw, "{change}");
                let id = proxied.prepare(&look).await;
                let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
                let shown = private.one(&look).await;
                let answer = proxied.command(Command::StmtExecute, &execute).await;
                assert!(answer.raw.iter().any(|(_, row)| row.ends_with(shown.as_bytes())), "{shown}");
            }
        }
        assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
        for name in names {
            direct.query(&format!("SET GLOBAL session_track_{name} = DEFAULT")).await.expect_ok();
        }
    }
);

on_both!(
    apart
    /// Global character sets count for clients that name none, or on MySQL the one that is the server's own.
    character_sets_of_new_sessions_are_as_the_server_has_them,
    two_backends,
    |t| async move {
        let mut direct = t.master().await;
        let names = ["character_set_client", "character_set_connection", "character_set_results", "collation_connection"];
        let look = format!("SELECT CONCAT_WS('|', {})", names.map(|name| format!("@@{name}")).join(", "));
        let mut admin = t.client_as(&Login::admin()).await;
        for change in [
            "DO 1",
            "SET GLOBAL collation_connection = latin2_general_ci",
            "SET GLOBAL character_set_results = latin1, GLOBAL collation_connection = utf8mb4_bin",
            "SET GLOBAL character_set_client = latin1",
        ] {
            admin.query(change).await.expect_ok();
            for collation in [45, 46, 255, 8, 47, 33] {
                let login = Login { collation, ..t.app() };
                let (mut proxied, mut private) = (t.client_as(&login).await, t.direct(&login).await);
                assert_eq!(proxied.one(&look).await, private.one(&look).await, "{collation} after {change}");
            }
        }
        for name in names {
            direct.query(&format!("SET GLOBAL {name} = DEFAULT")).await.expect_ok();
        }
    }
);

on_both!(
    apart
    /// MySQL 9.7 would fall over in a reset.
    what_is_prepared_in_xa_outlives_its_client,
    two_backends,
    |t| async move {
        let mut direct = t.master().await;
        let mut client = t.client_as(&Login { schema: Some(t.schema.clone()), ..Login::admin() }).await;
        client.query("CREATE TABLE t (n INT PRIMARY KEY)").await.expect_ok();
        if t.kind == Kind::MySql {
            client.query("SET SESSION xa_detach_on_prepare = OFF").await.expect_ok();
        }
        for sql in ["XA START 'kept'", "INSERT INTO t VALUES (1)", "XA END 'kept'", "XA PREPARE 'kept'"] {
            client.query(sql).await.expect_ok();
        }
        drop(client);
        t.until("myriad_clients", None, 0.0).await;
        t.until("myriad_backend_connections", Some("leased"), 0.0).await;
        let limit = std::time::Instant::now() + Duration::from_secs(10);
        while direct.query("XA COMMIT 'kept'").await.error().is_some() {
            assert!(std::time::Instant::now() < limit, "it is not there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(direct.one(&format!("SELECT COUNT(*) FROM {}.t", t.schema)).await, "1");
    }
);

/// What depends on global variables in the greeting at this address.
async fn greeted(address: std::net::SocketAddr) -> (u8, CapabilityFlags) {
    let (_, payload) = Wire::open(address).await.frame().await.expect("a greeting");
    let greeting = ServerGreeting::parse(&payload).expect("a greeting that can be read");
    (greeting.collation, greeting.held() & COMPRESSION)
}

on_both!(
    apart
    /// A greeting is as the global variables are when it is sent, whether or not somebody has logged in since.
    greetings_are_as_the_server_gives_them,
    two_backends,
    |t| async move {
        let mut direct = t.master().await;
        let was = direct.one("SELECT @@global.collation_server").await;
        let mut admin = t.client_as(&Login::admin()).await;
        let first = greeted(t.address).await;
        let collation = "SET GLOBAL collation_server = latin2_general_ci";
        let compression = "SET GLOBAL protocol_compression_algorithms = 'uncompressed'";
        for change in [collation, compression].iter().take(if t.kind == Kind::MySql { 2 } else { 1 }) {
            admin.query(change).await.expect_ok();
            let (one, other) = tokio::join!(greeted(t.address), greeted(t.address));
            let server = greeted(t.server).await;
            assert_eq!((one, other), (server, server), "{change}");
        }
        admin.query(&format!("SET GLOBAL collation_server = {was}")).await.expect_ok();
        if t.kind == Kind::MySql {
            admin.query("SET GLOBAL protocol_compression_algorithms = DEFAULT").await.expect_ok();
        }
        assert_eq!((greeted(t.address).await, greeted(t.server).await), (first, first));
    }
);
