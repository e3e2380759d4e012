//! What clients say when they connect is answered from memory, once a server has shown what it does: with the same bytes,
//! and nothing that comes after it can tell.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Setup, Twin, Wire, on_both, one_backend};

/// What drivers and frameworks say.
const CHATTER: [&str; 9] = [
    "SET NAMES utf8mb4",
    "set autocommit=1",
    "SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ZERO_DATE', time_zone='+00:00';",
    "SET NAMES 'latin1' COLLATE 'latin1_german2_ci', @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147",
    "SET character_set_results = NULL",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET @@lc_time_names = de_DE",
    "SET autocommit=0",
    "SET CHARACTER SET utf8mb4",
];

const STATE: &str = "SELECT @@autocommit, @@sql_mode, @@time_zone, @@sql_auto_is_null, @@wait_timeout, @@lc_time_names, \
    @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection";

fn answered(t: &Setup, by: &str) -> f64 {
    t.metric("myriad_chatter_total", Some(by))
}

/// How many statements the only backend has run, this one included.
async fn questions(client: &mut Wire) -> u64 {
    let rows = client.query("SHOW SESSION STATUS LIKE 'Questions'").await.rows();
    rows[0][1].as_ref().expect("a number").parse().expect("a number")
}

fn dialects(t: &Setup) -> [Login; 5] {
    let login = t.app();
    let without = |flags| Login { capabilities: login.capabilities - flags, ..login.clone() };
    [
        login.clone(),
        login.clone().old(),
        without(CapabilityFlags::CLIENT_SESSION_TRACK),
        without(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        login.clone().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
    ]
}

on_both!(a_server_hears_it_once, one_backend, |t| async move {
    let mut probe = t.client().await;
    for login in dialects(&t) {
        let mut first = t.client_as(&login).await;
        let mut wanted = Vec::new();
        for sql in CHATTER {
            wanted.push(first.query(sql).await.raw);
        }
        let state = first.query(STATE).await.rows();
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(t.client_as(&login).await);
        }
        questions(&mut probe).await;
        let before = questions(&mut probe).await;
        let (heard, remembered) = (answered(&t, "server"), answered(&t, "memory"));
        for client in &mut clients {
            for (sql, wanted) in CHATTER.iter().zip(&wanted) {
                assert_eq!(client.query(sql).await.raw, *wanted, "{sql}");
            }
        }
        assert_eq!(answered(&t, "server"), heard);
        assert_eq!(answered(&t, "memory"), remembered + 20.0 * CHATTER.len() as f64);
        assert_eq!(questions(&mut probe).await, before + 1, "only the question itself");
        for client in &mut clients {
            assert_eq!(client.query(STATE).await.rows(), state);
        }
    }
    assert!(t.metric("myriad_chatter_entries", None) >= CHATTER.len() as f64);
});

/// Statements whose answers, and what is asked after them, must be the same with and without memory.
const AFTERWARDS: [&str; 15] = [
    "SELECT ROW_COUNT()",
    "SELECT ROW_COUNT() IS NULL, @@warning_count + 1",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT FOUND_ROWS()",
    "SELECT LAST_INSERT_ID()",
    "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
    "SELECT 'a' UNION SELECT 'b'",
    "INSERT INTO t (v) VALUES (1), (2), (3)",
    "UPDATE t SET v = v + 1",
    "SELECT CAST('x' AS SIGNED)",
    "SELECT nothing",
    "ROLLBACK",
    "DO 1",
];

on_both!(nobody_can_tell, one_backend, |t| async move {
    // (What an EOF behind columns counts of a deprecated function's warnings is another matter.)
    let new = |login: &Login| login.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    for login in dialects(&t).into_iter().filter(new) {
        let mut twin = Twin::new(&t, &login).await;
        twin.query("DROP PROCEDURE IF EXISTS after_set").await;
        twin.query("CREATE PROCEDURE after_set() SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count").await;
        twin.query("CREATE TABLE IF NOT EXISTS t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)").await;
        twin.query("DELETE FROM t").await;
        twin.query("ALTER TABLE t AUTO_INCREMENT = 1").await;
        let before = answered(&t, "memory");
        for round in 0..3 {
            for (n, afterwards) in AFTERWARDS.iter().enumerate() {
                // What is still to be asked about, somebody else on the backend or not.
                let left = ["SELECT 1 UNION SELECT 2", "INSERT INTO t (v) VALUES (7)", "SELECT CAST('y' AS SIGNED)"];
                let left = if n % 4 == 3 { "SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1" } else { left[n % 3] };
                twin.query_and_keep(left).await;
                for sql in [CHATTER[n % CHATTER.len()], "SET autocommit=1", "SET NAMES utf8mb4"] {
                    twin.query_and_keep(sql).await;
                }
                if round == 1 {
                    twin.intrude().await;
                }
                twin.query_and_keep(afterwards).await;
                twin.query_and_keep(STATE).await;
                twin.query_and_keep("ROLLBACK").await;
            }
            twin.intrude().await;
        }
        twin.query("SELECT @n, @r").await;
        for sql in
            ["SET NAMES utf8mb4", "SET autocommit=1", "SET NAMES utf8mb4", "SET autocommit=1", "CALL after_set()"]
        {
            twin.query_and_keep(sql).await;
        }
        assert!(answered(&t, "memory") > before + 20.0, "{} by memory", answered(&t, "memory") - before);
        twin.query_and_keep("DROP TABLE t").await;
    }
});

on_both!(commands_that_are_no_statements_follow, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for round in 0..4 {
        let left = if round % 2 == 0 { "SELECT CAST('x' AS SIGNED)" } else { "SELECT 1 FROM (SELECT 1) d" };
        for command in [Command::Ping, Command::SetOption, Command::InitDb] {
            twin.query_and_keep(left).await;
            twin.query_and_keep("SET SESSION sql_mode='ANSI_QUOTES'").await;
            match command {
                Command::InitDb => twin.use_own_schema().await,
                Command::SetOption => drop(twin.command(command, &[1, 0]).await),
                _ => drop(twin.command(command, b"").await),
            }
            twin.query_and_keep("SHOW WARNINGS").await;
            twin.query_and_keep("SELECT ROW_COUNT()").await;
            twin.query_and_keep("SET SESSION sql_mode=''").await;
        }
        // Prepared before and executed after, and the other way round.
        let id = {
            let reply = twin.command(Command::StmtPrepare, b"SELECT \"x\", ROW_COUNT() AS n").await;
            u32::from_le_bytes(reply.raw[0].1[1..5].try_into().expect("four bytes"))
        };
        twin.query_and_keep("SET SESSION sql_mode='ANSI_QUOTES'").await;
        let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
        twin.command(Command::StmtExecute, &execute).await;
        twin.query_and_keep("SELECT \"id\"").await;
        twin.query_and_keep("SET SESSION sql_mode=''").await;
        twin.send(Command::StmtClose, &id.to_le_bytes()).await;
    }
    assert!(answered(&t, "memory") > 5.0);
});

on_both!(a_server_is_asked_where_it_makes_a_difference, one_backend, |t| async move {
    let set = "SET SESSION wait_timeout=1234";
    let (mut client, mut other) = (t.client().await, t.client().await);
    for _ in 0..2 {
        client.query(set).await.expect_ok();
    }
    client.query(set).await.expect_ok();
    other.query(set).await.expect_ok();
    let mut known = answered(&t, "memory");
    assert_eq!(known, 2.0, "from the state that it leads to, twice");
    // While something pins.
    client.query("BEGIN").await.expect_ok();
    client.query(set).await.expect_ok();
    client.query("ROLLBACK").await.expect_ok();
    assert_eq!(answered(&t, "memory"), known);
    client.query(set).await.expect_ok();
    known += 1.0;
    assert_eq!(answered(&t, "memory"), known);
    // What is no literal, for the server, or of the next statement only.
    for sql in [
        "SET SESSION wait_timeout=1000+234",
        "SET SESSION wait_timeout=DEFAULT",
        "SET last_insert_id=5",
        "SET timestamp=5",
        "SET timestamp=DEFAULT",
        "SET @a=5",
        "SET TRANSACTION READ ONLY",
        "BEGIN",
        "COMMIT",
    ] {
        for _ in 0..2 {
            client.query(sql).await.expect_ok();
        }
        assert_eq!(answered(&t, "memory"), known, "{sql}");
    }
    // What fails.
    for _ in 0..2 {
        other.query("SET time_zone='Mars/Olympus'").await.expect_error(1298);
        other.query("SET time_zone='+00:00', sql_mode='NOTHING'").await.expect_error(1231);
    }
    assert_eq!(answered(&t, "memory"), known);
    // Another account, and other flags.
    let mut admin = t.client_as(&Login { schema: Some(t.schema.clone()), ..Login::admin() }).await;
    admin.query(set).await.expect_ok();
    let mut found = t.client_as(&t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS)).await;
    found.query(set).await.expect_ok();
    assert_eq!(answered(&t, "memory"), known);
});

on_both!(trackers_tell_what_their_client_wants, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for wish in [
        "SET SESSION session_track_system_variables='sql_mode, WAIT_TIMEOUT'",
        "SET SESSION session_track_state_change=ON",
        "SET SESSION session_track_system_variables=''",
        "SET SESSION session_track_transaction_info='CHARACTERISTICS'",
        "SET SESSION session_track_system_variables='statement_id'",
        "SET SESSION session_track_system_variables='*'",
    ] {
        if wish.contains("statement_id") && t.kind == Kind::MariaDb {
            continue;
        }
        // To list all is to be told of each statement's number.
        let numbers = wish.contains('*') || wish.contains("statement_id");
        let mut twin_ok = async |sql: &str| {
            if numbers && t.kind == Kind::MySql { twin.intrude().await } else { drop(twin.query(sql).await) }
        };
        twin_ok(wish).await;
        for _ in 0..2 {
            for sql in CHATTER {
                twin_ok(sql).await;
            }
        }
    }
    assert!(answered(&t, "memory") > 50.0);
    if t.kind == Kind::MySql {
        let mut client = t.client().await;
        client.query("SET SESSION session_track_system_variables='*'").await.expect_ok();
        let known = answered(&t, "memory");
        let told = [client.query("SET NAMES utf8mb4").await.raw, client.query("SET NAMES utf8mb4").await.raw];
        assert_ne!(told[0], told[1], "another number");
        assert_eq!(answered(&t, "memory"), known);
    }
});

on_both!(what_it_warns_of_is_told_to_all, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let warns = "SET SESSION div_precision_increment=1000";
    for _ in 0..2 {
        for asks in ["SHOW WARNINGS", "SELECT @@warning_count, ROW_COUNT() AS n", "SHOW COUNT(*) WARNINGS", "DO 1"] {
            twin.query_and_keep(warns).await;
            twin.query_and_keep(asks).await;
            twin.query_and_keep("SELECT 1 FROM (SELECT 1) t").await;
            twin.query_and_keep(warns).await;
            twin.intrude().await;
            twin.query_and_keep(asks).await;
            twin.query_and_keep("SELECT 1 FROM (SELECT 1) t").await;
        }
    }
    assert!(answered(&t, "memory") > 10.0);
});

on_both!(user_variables_that_bind_are_found_again, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    for sql in ["SET sql_mode='ANSI_QUOTES'", "SET sql_mode=''"] {
        other.query(sql).await.expect_ok();
        client.query(sql).await.expect_ok();
    }
    client.query("SET sql_mode='ANSI_QUOTES'").await.expect_ok();
    client.query("SET sql_mode=''").await.expect_ok();
    // Too much to be carried, as whoever takes the backend over finds out.
    client.query("SELECT REPEAT('x', 300000) INTO @much").await.expect_ok();
    client.query("SET sql_mode='ANSI_QUOTES'").await.expect_ok();
    let asking = tokio::spawn(async move {
        let reply = other.query("SELECT 1").await;
        (other, reply)
    });
    t.until("myriad_pool_waiting", None, 1.0).await;
    assert_eq!(client.query("SELECT LENGTH(@much), @@sql_mode").await.rows()[0][0].as_deref(), Some("300000"));
    assert_eq!(client.one("SELECT @@sql_mode").await, "ANSI_QUOTES");
    assert_eq!(client.one("SELECT COUNT(*) AS \"n\" FROM DUAL").await, "1");
    drop(client);
    let (_, reply) = asking.await.expect("no panic");
    reply.expect_ok();
});
