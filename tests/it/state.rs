//! A session's state goes with its client, to whichever backend, and to nobody else.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Packets, Twin, Wire, on_both, one_backend, own_backends};

/// What a session has of its own, in one row.
const STATE: &str = "SELECT DATABASE(), @@sql_mode, @@time_zone, @@sql_safe_updates, @@timestamp < 1600000000, \
     @@autocommit, @@foreign_key_checks, @@unique_checks, @@sql_select_limit, @@group_concat_max_len, @@lc_time_names, \
     @@sort_buffer_size, @@max_execution_time_or_its_like, @@character_set_client, @@character_set_connection, \
     @@character_set_results, @@collation_connection, LAST_INSERT_ID()";

/// What a client may set, each with other values than any default.
const SETTINGS: [&str; 12] = [
    "SET sql_mode = ''",
    "SET time_zone = '+11:30'",
    "SET sql_safe_updates = 1",
    "SET TIMESTAMP = 1500000000.25",
    "SET autocommit = 0",
    "SET foreign_key_checks = 0, unique_checks = 0",
    "SET @@session.sql_select_limit = 7",
    "SET @@group_concat_max_len = 77777",
    "SET LOCAL lc_time_names = 'de_DE', sort_buffer_size = 131072",
    "SET NAMES latin1 COLLATE latin1_german2_ci",
    "SET character_set_results = NULL",
    "SET last_insert_id = 4711",
];

fn state(kind: Kind) -> String {
    let limit = if kind == Kind::MariaDb { "max_statement_time" } else { "max_execution_time" };
    STATE.replace("max_execution_time_or_its_like", limit)
}

/// A row, with NULL spelled out.
async fn row(client: &mut Wire, sql: &str) -> Vec<String> {
    let reply = client.query(sql).await;
    reply.expect_ok();
    reply.rows()[0].iter().map(|field| field.clone().unwrap_or_else(|| "NULL".into())).collect()
}

on_both!(what_one_sets_nobody_else_sees, one_backend, |t| async move {
    let state = state(t.kind);
    let mut bystander = t.client().await;
    let usual = row(&mut bystander, &state).await;
    for stays in [true, false] {
        for sql in SETTINGS {
            let mut client = t.client().await;
            client.query(sql).await.expect_ok();
            assert_eq!(row(&mut bystander, &state).await, usual, "after {sql}");
            let own = row(&mut client, &state).await;
            assert_ne!(own, usual, "{sql} is lost");
            assert_eq!(row(&mut bystander, &state).await, usual, "after {sql}, read back");
            if stays {
                assert_eq!(row(&mut client, &state).await, own, "{sql} did not last");
            } else {
                client.send(Command::Quit, b"").await;
                assert_eq!(row(&mut bystander, &state).await, usual, "after {sql} and a goodbye");
            }
        }
    }
});

on_both!(many_settings_together_are_carried_along, one_backend, |t| async move {
    let state = state(t.kind);
    let mut twin = Twin::new(&t, &t.app()).await;
    for sql in SETTINGS {
        twin.query(sql).await;
        // A statement of its own opens no transaction that would pin.
        twin.query(&state).await;
        if sql.contains("autocommit") {
            twin.query("SET autocommit = 1").await;
        }
    }
});

on_both!(safe_updates_are_safe_for_whoever_wants_them, one_backend, |t| async move {
    let (mut careful, mut careless) = (t.client().await, t.client().await);
    careful.query("CREATE TABLE t (n INT, m INT)").await.expect_ok();
    careful.query("INSERT INTO t VALUES (1, 1), (2, 2)").await.expect_ok();
    careful.query("SET sql_safe_updates = 1").await.expect_ok();
    for _ in 0..3 {
        careless.query("UPDATE t SET m = m + 1").await.expect_ok();
        careful.query("UPDATE t SET m = m + 1").await.expect_error(1175);
    }
    careful.send(Command::Quit, b"").await;
    careless.query("UPDATE t SET m = m + 1").await.expect_ok();
});

on_both!(
    a_session_outlives_its_backend,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        let state = state(t.kind);
        let mut client = t.client().await;
        client.query(&format!("CREATE DATABASE {}", t.tenant(1))).await.expect_ok();
        let mut other = t.client().await;
        for sql in SETTINGS.iter().filter(|sql| !sql.contains("autocommit")) {
            client.query(sql).await.expect_ok();
        }
        client.query(&format!("USE {}", t.tenant(1))).await.expect_ok();
        let own = row(&mut client, &state).await;
        let usual = row(&mut other, &state).await;
        for round in 1..=3 {
            t.kill_backends().await;
            assert_eq!(row(&mut client, &state).await, own, "round {round}");
            t.kill_backends().await;
            assert_eq!(row(&mut other, &state).await, usual, "round {round}");
        }
        assert_eq!(t.metric("myriad_backend_closes_total", Some("lost")), 6.0);
    }
);

on_both!(a_value_is_put_back_from_a_user_variable, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("SET time_zone = '-3:30'").await;
    for sql in ["SET @old = @@time_zone", "SET time_zone = '+1:00'", "SELECT @@time_zone, @old", "SET time_zone = @old"]
    {
        twin.query_and_keep(sql).await;
    }
    let reply = twin.query_and_keep("SELECT @@time_zone, @old").await;
    assert_eq!(reply.rows()[0][0].as_deref(), Some("-03:30"));
    twin.command(Command::ResetConnection, b"").await;
    twin.query("SELECT @@time_zone, @old").await;
});

on_both!(several_settings_in_one_statement, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let state = state(t.kind);
    for sql in [
        "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT', NAMES utf8mb4, time_zone = '+2:00'",
        "SET NAMES 'latin1', @@session.time_zone = 'SYSTEM', sql_mode = DEFAULT",
        "SET @@sql_mode = 'NO_BACKSLASH_ESCAPES', LOCAL sort_buffer_size = 262144",
        "SET CHARACTER SET utf8mb4",
        "SET character_set_connection = latin1",
        "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
        "SET sql_mode = ''",
    ] {
        twin.query(sql).await;
        twin.query(&state).await;
    }
});

on_both!(a_setting_that_fails_changes_nothing_and_pins_nothing, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let state = state(t.kind);
    for (sql, code) in [
        ("SET nobody_has_heard_of_this = 1", 1193),
        ("SET SESSION nobody_has_heard_of_this = 1, sql_mode = ''", 1193),
        ("SET sql_mode = 'NO_SUCH_MODE'", 1231),
        ("SET time_zone = 'Nowhere/Land'", 1298),
        ("SET NAMES klingon", 1115),
        ("SET @@session.max_connections = 1", 1229),
        ("SET GLOBAL max_connections = 1", 1227),
        ("SET time_zone = '+1:00', sql_mode = 'NO_SUCH_MODE'", 1231),
    ] {
        twin.query(sql).await.expect_error(code);
        twin.query(&state).await;
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

on_both!(an_isolation_level_for_one_transaction_is_for_one_transaction_of_one_client, |t| async move {
    let (mut client, mut writer) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    // With both backends in use, the writer never gets the client's.
    let count = "SELECT COUNT(*) FROM t";
    let mut rows = 0;
    for (level, sees_commits) in [("READ COMMITTED", true), ("REPEATABLE READ", false), ("READ COMMITTED", true)] {
        client.query(&format!("SET TRANSACTION ISOLATION LEVEL {level}")).await.expect_ok();
        writer.query("SELECT 1").await.expect_ok();
        for seen in [sees_commits, false] {
            client.query("START TRANSACTION").await.expect_ok();
            assert_eq!(client.one(count).await, rows.to_string());
            writer.query("INSERT INTO t VALUES (1)").await.expect_ok();
            rows += 1;
            let now = if seen { rows } else { rows - 1 };
            assert_eq!(client.one(count).await, now.to_string(), "{level}");
            client.query("COMMIT").await.expect_ok();
        }
    }
});

on_both!(a_transaction_announced_read_only_hits_nobody_else, one_backend, |t| async move {
    let mut other = t.client().await;
    other.query("CREATE TABLE t (n INT)").await.expect_ok();
    let mut client = t.client().await;
    client.query("SET TRANSACTION READ ONLY").await.expect_ok();
    client.send(Command::Quit, b"").await;
    other.query("INSERT INTO t VALUES (1)").await.expect_ok();
    let mut client = t.client().await;
    client.query("SET TRANSACTION READ ONLY").await.expect_ok();
    client.query("INSERT INTO t VALUES (2)").await.expect_error(1792);
    // It is still announced: that was no transaction.
    for sql in ["BEGIN", "COMMIT", "INSERT INTO t VALUES (3)"] {
        client.query(sql).await.expect_ok();
    }
    other.query("INSERT INTO t VALUES (4)").await.expect_ok();
});

on_both!(a_reset_leaves_what_a_direct_one_leaves, one_backend, |t| async move {
    let state = state(t.kind);
    for collation in [45, 8, 33, 47] {
        let mut twin = Twin::new(&t, &Login { collation, ..t.app() }).await;
        twin.query("CREATE TABLE IF NOT EXISTS t (n INT PRIMARY KEY)").await;
        for sql in SETTINGS.iter().filter(|sql| !sql.contains("autocommit")) {
            twin.query(sql).await;
        }
        twin.query(&state).await;
        twin.command(Command::ResetConnection, b"").await;
        twin.intrude().await;
        twin.query(&state).await;
        for sql in ["SET @a = 1", "CREATE TEMPORARY TABLE own (n INT)", "SET autocommit = 0", "SET NAMES latin1"] {
            twin.query_and_keep(sql).await;
        }
        twin.query_and_keep("INSERT INTO t VALUES (1)").await;
        twin.command(Command::ResetConnection, b"").await;
        twin.query("SELECT ROW_COUNT()").await;
        twin.command(Command::ResetConnection, b"").await;
        twin.intrude().await;
        for sql in ["SELECT ROW_COUNT()", "SELECT @a", "SELECT * FROM own", "SELECT * FROM t", &state] {
            twin.query(sql).await;
        }
        t.until("myriad_pinned_clients", None, 0.0).await;
    }
});

// MariaDB then writes its OK packets in another way.
on_both!(a_schema_of_wide_characters, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (n INT)").await;
    for charset in ["ucs2", "utf16", "utf32", "utf8mb4"] {
        twin.query(&format!("ALTER DATABASE CHARACTER SET {charset}")).await;
        for sql in ["SET time_zone = '+01:00'", "INSERT INTO t VALUES (1), (2)", "SET autocommit = 1"] {
            twin.query(sql).await;
        }
        for sql in ["SET TRANSACTION READ ONLY", "BEGIN"] {
            twin.query_and_keep(sql).await;
        }
        twin.query_and_keep("INSERT INTO t VALUES (3)").await.expect_error(1792);
        twin.query_and_keep("COMMIT").await;
        twin.intrude().await;
        twin.query("SELECT @@time_zone, COUNT(*) FROM t").await;
    }
});

// The tracker reports NULL as nothing, and nothing is refused.
on_both!(a_variable_that_is_null_by_default_is_carried, one_backend, |t| async move {
    let own: &[&str] = match t.kind {
        Kind::MariaDb => &["enforce_storage_engine", "innodb_tmpdir", "default_tmp_storage_engine"],
        Kind::MySql => &["innodb_tmpdir", "innodb_ft_user_stopword_table"],
    };
    let (mut client, mut other) = (t.client_as(&Login::admin()).await, t.client_as(&Login::admin()).await);
    for name in own {
        client.query(&format!("SET SESSION {name} = NULL")).await.expect_ok();
        other.query("SELECT CAST('x' AS SIGNED)").await.expect_ok();
        assert_eq!(row(&mut client, &format!("SELECT IFNULL(@@{name}, 'none')")).await, ["none"], "{name}");
    }
});

// A regression: what Connector/J for MariaDB sets at once kept the backend for good.
on_both!(a_client_may_track_its_schema_and_share, one_backend, |t| async move {
    let login = t.app().with(CapabilityFlags::CLIENT_SESSION_TRACK);
    let mut twin = Twin::new(&t, &login).await;
    let schema = t.schema.clone();
    let twins = t.twin_schema();
    twin.queries(&[
        "SET autocommit=1, session_track_schema=1",
        "SET session_track_schema=0, time_zone='+2:00'",
        "SELECT @@time_zone",
        "SET @@session_track_schema=1",
        "SET SESSION session_track_schema=DEFAULT, sql_mode='', autocommit=0",
        "SET autocommit=1",
        "SELECT @@sql_mode, @@autocommit",
        "SET session_track_schema=0, no_such_variable=1",
        "SELECT 1",
    ])
    .await;
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    let mut client = t.client_as(&login).await;
    let entry = |reply: &Packets| reply.ok().session_state.windows(schema.len()).any(|part| part == schema.as_bytes());
    for (on, told) in [("0", false), ("1", true)] {
        client.query(&format!("SET autocommit=1, session_track_schema={on}")).await.expect_ok();
        client.query(&format!("USE {twins}")).await.expect_ok();
        assert_eq!(entry(&client.query(&format!("USE {schema}")).await), told);
        assert_eq!(client.one("SELECT DATABASE()").await, schema);
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

on_both!(a_client_reads_its_own_trackers, one_backend, |t| async move {
    let questions = [
        "SELECT @@session_track_system_variables, @@session_track_schema, @@session.session_track_state_change AS s",
        "SELECT @@session_track_transaction_info",
        "SET @a = @@session_track_state_change",
        "SELECT @a",
    ];
    for login in [t.app(), t.app().with(CapabilityFlags::CLIENT_SESSION_TRACK)] {
        let mut twin = Twin::new(&t, &login).await;
        for change in ["SELECT 1", "SET session_track_schema = 0", "SET session_track_system_variables = 'sql_mode,x'"]
        {
            twin.query(change).await;
            twin.queries(&questions).await;
            twin.query("SET sql_mode = 'ANSI'").await;
            twin.command(Command::ResetConnection, b"").await;
            twin.queries(&questions).await;
        }
        let mut all = [t.client_as(&login).await, t.direct(&login).await];
        let mut rows = Vec::new();
        for client in &mut all {
            client.query("SET session_track_schema = 0").await.expect_ok();
            let shown = client.query("SHOW VARIABLES").await.rows();
            let ours =
                shown.into_iter().filter(|row| row[0].as_ref().is_some_and(|name| name.starts_with("session_track")));
            rows.push(ours.collect::<Vec<_>>());
        }
        assert!(rows[0].len() > 3 && rows[0] == rows[1], "{rows:?}");
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

// An id that the client chose itself does not use up `insert_id`.
on_both!(an_insert_id_waits_for_its_own_insert, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, n INT)").await.expect_ok();
    client.query("SET insert_id = 5000").await.expect_ok();
    assert_eq!(client.query("INSERT INTO ids VALUES (1, 1)").await.ok().insert_id, 1);
    // Nobody else can have the backend before it is used up.
    t.until("myriad_pinned_clients", Some("one_shot_variable"), 1.0).await;
    assert_eq!(client.query("INSERT INTO ids VALUES (NULL, 1)").await.ok().insert_id, 5000);
    assert_eq!(other.query("INSERT INTO ids VALUES (NULL, 1)").await.ok().insert_id, 5001);
    assert_eq!(client.query("INSERT INTO ids VALUES (NULL, 1)").await.ok().insert_id, 5002);
});

on_both!(a_session_that_is_released_is_over, |t| async move {
    for (first, last, released) in [
        ("SELECT 1", "COMMIT RELEASE", true),
        ("SELECT 1", "rollback and no chain /* now */ release", true),
        ("SET completion_type = 2", "COMMIT", true),
        ("SET completion_type = 'RELEASE'", "COMMIT NO RELEASE", false),
        ("SELECT 1", "COMMIT NO RELEASE", false),
    ] {
        for client in [&mut t.client().await, &mut t.direct(&t.app()).await] {
            for sql in [first, "BEGIN", last] {
                client.query(sql).await.expect_ok();
            }
            if released {
                assert!(client.frame().await.is_err(), "{first}; {last}: the connection ends");
            } else {
                assert_eq!(client.one("SELECT 'still here'").await, "still here", "{first}; {last}");
            }
        }
    }
});
