//! User variables go with their session, in every respect, and to nobody else.

use std::time::Duration;

use myriad::config::Config;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::session::Ask;

use crate::prepared::{execute, long};
use crate::support::{Kind, Login, Setup, Twin, on_both, one_backend, own_backends};

/// Values of every kind.
const VALUES: [&str; 84] = [
    "1",
    "-1",
    "0",
    "-9223372036854775808",
    "-(-9223372036854775807 - 1)",
    "18446744073709551615",
    "CAST(5 AS UNSIGNED)",
    "~0",
    "TRUE",
    "1 = 2",
    "1 DIV 1",
    "BIT_COUNT(5)",
    "1.50",
    "-0.0",
    "5.",
    "CAST(5 AS DECIMAL(10, 0))",
    "CAST(-7 AS DECIMAL(20, 5))",
    "99999999999999999999999999999999999999999999999999999999999999999",
    "0.000000000000000000000000000001",
    "12345678901234567890123456789012345.123456789012345678901234567890",
    "1 / 3",
    "1e308",
    "-1e-308",
    "4.9e-324",
    "-0e0",
    "1.5e0",
    "1e15",
    "1e16",
    "0.1e0",
    "1e0 / 3",
    "PI()",
    "CAST(1.5 AS FLOAT)",
    "ROUND(1.5e0, 1)",
    "'abc'",
    "''",
    "'it''s \\\\ \"quoted\"'",
    "'é😀'",
    "'a' COLLATE utf8mb4_unicode_ci",
    "_latin1 0xE9 COLLATE latin1_bin",
    "_latin1 ''",
    "CONVERT('a' USING ascii)",
    "CONVERT('é' USING cp1251)",
    "_swe7 0x5B",
    "_sjis 0x835C",
    "_cp932 0x835CB1",
    "_gbk 0xB0A1",
    "_big5 0xA440",
    "_ucs2 0x00410042",
    "_utf16 0xD83DDE00",
    "_utf8mb3 0xC3A9",
    "x'4142'",
    "0x00FF",
    "b'101'",
    "_binary 0xFF00",
    "UNHEX('FF')",
    "CAST('a' AS BINARY(5))",
    "INET6_ATON('::1')",
    "DATE'2020-01-01'",
    "TIMESTAMP'2020-01-01 00:00:00.123'",
    "CAST('11:12:13' AS TIME)",
    "YEAR('2020-01-01')",
    "JSON_OBJECT('a', 1)",
    "ST_GeomFromText('POINT(1 2)')",
    "ST_GeomFromText(NULL)",
    "NULL",
    "CAST(NULL AS SIGNED)",
    "CAST(NULL AS UNSIGNED)",
    "CAST(NULL AS DECIMAL(10, 2))",
    "CAST(NULL AS DOUBLE)",
    "CONVERT(NULL USING latin1)",
    "CONVERT(NULL USING utf8mb4) COLLATE utf8mb4_bin",
    "CAST(NULL AS BINARY)",
    "@never",
    "0 + @never",
    "CHAR(65)",
    "CHAR(65 USING latin1)",
    "CONCAT(1, 2)",
    "HEX(5)",
    "@@time_zone",
    "@@sql_mode",
    "CURRENT_USER()",
    "REPEAT('x', 1000)",
    "CAST(5 AS CHAR)",
    "UPPER('abc')",
];

/// Questions about @a that tell its type, its value and its character set.
const QUESTIONS: [&str; 6] = [
    "SELECT @a",
    "SELECT HEX(@a), COLLATION(@a), COERCIBILITY(@a), CONCAT(@a, 'x'), @a IS NULL",
    "SELECT @a UNION SELECT @a",
    "SELECT IF(1, @a, @a), CAST(@a AS BINARY)",
    "SELECT @a = 'abc', LENGTH(@a), @a + 0",
    "SET @a = @a",
];

fn several(t: &Setup) -> Login {
    t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
}

on_both!(every_value_is_carried_as_it_is, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for value in VALUES {
        twin.query(&format!("SET @a = {value}")).await;
        for question in QUESTIONS {
            twin.query(question).await;
        }
        // What it is set to next may keep the type.
        twin.query("SET @a = NULL").await;
        twin.query("SELECT @a, COLLATION(@a)").await;
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    assert!(t.metric("myriad_saves_total", None) > VALUES.len() as f64);
});

on_both!(every_way_to_write_one_is_seen, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &several(&t)).await;
    twin.query("CREATE TABLE t (n INT, s VARCHAR(20))").await;
    twin.query("INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    for sql in [
        "SELECT @a := 5",
        "SELECT @a",
        "SELECT n, s FROM t WHERE n = 2 INTO @a, @b",
        "SELECT @a, @b",
        "SELECT @n := @n + n FROM t, (SELECT @n := 10) AS start",
        "SELECT @n, @A, @`B`, @'n'",
        "UPDATE t SET n = (@n := n + 5)",
        "SELECT @n",
        "SET @`my var` = 1, @'it''s' = 2, @`x-y` = 3, @my.dot$ = 4",
        "SELECT @`my var`, @`it's`, @'x-y', @MY.DOT$",
        "SET @x = 'x'; SELECT 1 INTO @y; SELECT @z := 3",
        "SELECT @x, @y, @z",
        "DO @x := 9",
        "SELECT @x",
        "SELECT 1 FROM t WHERE (@x := n) > 100",
        "SELECT @x",
        "DELETE FROM t WHERE (@x := n) > 100",
        "SELECT @x",
        "INSERT INTO t VALUES (@x := 77, 'x')",
        "SELECT @x",
        "SET @x = 1, @y = @nosuch, @z = (SELECT 1 FROM nosuch)",
        "SELECT @x, @y, @z",
        "SET @x = 5, sql_mode = 'ANSI_QUOTES', @y = @@sql_mode, NAMES latin1, @z = 'x'",
        "SELECT @x, @y, @z, COLLATION(@z)",
        "SET @\"a b\" = 1",
        "SELECT @`a b`, @'a b'",
        "BEGIN",
        "SET @x = 'in a transaction'",
        "COMMIT",
        "SELECT @x",
    ] {
        if sql == "SET @x = 'in a transaction'" || sql == "BEGIN" {
            twin.query_and_keep(sql).await;
        } else {
            twin.query(sql).await;
        }
    }
    twin.command(Command::ResetConnection, b"").await;
    twin.query("SELECT @x, @y, @z, @a, @`my var`").await;
});

on_both!(what_was_never_set_is_as_ever, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut others = t.client().await;
    for _ in 0..3 {
        others.query("SET @a = 'secret', @b = 18446744073709551615, @c = 1.5").await.expect_ok();
        twin.query("SELECT @a, @b, @c, COLLATION(@a)").await;
        twin.query("SELECT @a UNION SELECT 1").await;
        others.query("SELECT @a, @b").await.expect_ok();
        twin.query("SET @b = NULL").await;
        twin.query("SELECT @b").await;
        twin.query("SELECT @a IS NULL, @c").await;
    }
    assert_eq!(
        others.query("SELECT @a, @b, @c").await.rows(),
        [["secret", "18446744073709551615", "1.5"].map(|v| Some(v.to_owned()))]
    );
});

/// A trigger, a function and a procedure that write and read variables which no text shows.
async fn unseen(t: &Setup) {
    let mut admin = t.admin().await;
    admin.query(&format!("USE {}", t.schema)).await.expect_ok();
    for sql in [
        "CREATE TABLE t (n INT)",
        "CREATE TABLE u (n INT)",
        "CREATE TRIGGER set_by_t BEFORE INSERT ON t FOR EACH ROW SET @leak = 'x'",
        "CREATE TRIGGER into_by_u BEFORE INSERT ON u FOR EACH ROW BEGIN SELECT 'x' INTO @leak; END",
        "CREATE FUNCTION reads_it() RETURNS VARCHAR(20) DETERMINISTIC RETURN @a",
        "CREATE VIEW v AS SELECT reads_it() AS a",
        "CREATE TABLE log (a VARCHAR(20))",
        "CREATE TRIGGER reads_a BEFORE INSERT ON log FOR EACH ROW SET NEW.a = CONCAT('by ', @a)",
    ] {
        admin.query(sql).await.expect_ok();
    }
}

on_both!(nobody_sees_what_a_trigger_left, one_backend, |t| async move {
    unseen(&t).await;
    let (mut one, mut other) = (t.client().await, t.client().await);
    // Not reported by any tracker.
    one.query("INSERT INTO u VALUES (1)").await.expect_ok();
    assert_eq!(other.query("SELECT @leak").await.rows(), [[None]]);
    one.query("INSERT INTO u VALUES (1)").await.expect_ok();
    let long = format!("SELECT @leak, '{}'", "x".repeat(100_000));
    assert_eq!(other.query(&long).await.rows()[0][0], None);
    one.query("INSERT INTO u VALUES (1)").await.expect_ok();
    let id = other.prepare("SELECT @leak").await;
    let reply = other.command(Command::StmtExecute, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat()).await;
    assert_eq!(reply.raw[reply.raw.len() - 2].1[..], [0, 4], "one NULL");
    other.command(Command::ResetConnection, b"").await.expect_ok();
    // Where the backend cannot be left, and where it is the session's own again.
    for (before, after) in [("BEGIN", "COMMIT"), ("SELECT 1", "SELECT 2")] {
        one.query("INSERT INTO u VALUES (1)").await.expect_ok();
        other.query(before).await.expect_ok();
        assert_eq!(other.query("SELECT @leak").await.rows(), [[None]], "after {before}");
        other.query(after).await.expect_ok();
    }
    // A SET is reported, and pins.
    one.query("INSERT INTO t VALUES (1)").await.expect_ok();
    assert_eq!(one.one("SELECT @leak").await, "x");
    drop(one);
    assert_eq!(other.query("SELECT @leak").await.rows(), [[None]]);
    // Also where the trigger comes back to another schema than its own.
    let mut far = t.client_as(&Login { schema: Some("information_schema".to_owned()), ..t.app() }).await;
    far.query(&format!("INSERT INTO {}.t VALUES (1)", t.schema)).await.expect_ok();
    assert_eq!(far.one("SELECT @leak").await, "x");
    drop(far);
    assert_eq!(other.query("SELECT @leak").await.rows(), [[None]]);
});

on_both!(what_was_never_set_is_no_statement_of_its_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2)"]).await;
    // It cannot leave its backend, where others have been.
    twin.query_and_keep("BEGIN").await;
    for question in [
        "SELECT ROW_COUNT(), @nobody IS NULL",
        "SELECT @@warning_count AS w, @nobody IS NULL",
        "SELECT FOUND_ROWS() AS f, ROW_COUNT() AS r, @nobody IS NULL",
        "EXECUTE IMMEDIATE 'SELECT ROW_COUNT() AS r, ? IS NULL' USING @nobody",
    ] {
        if question.starts_with("EXECUTE") && t.kind == Kind::MySql {
            continue;
        }
        for cause in ["UPDATE t SET n = n + 1", "SELECT n, CAST('x' AS SIGNED) FROM t", "SELECT nothing FROM t"] {
            twin.query_and_keep(cause).await;
            twin.query_and_keep(question).await;
            twin.query_and_keep("SHOW WARNINGS").await;
        }
    }
});

on_both!(unseen_code_reads_its_own_sessions_variables, one_backend, |t| async move {
    unseen(&t).await;
    let (mut one, mut other, mut third) = (t.client().await, t.client().await, t.client().await);
    one.query("SET @a = 'one'").await.expect_ok();
    other.query("SET @a = 'other'").await.expect_ok();
    for _ in 0..3 {
        assert_eq!(one.one("SELECT a FROM v").await, "one");
        assert_eq!(other.one("SELECT a FROM v").await, "other");
        assert_eq!(third.query("SELECT a FROM v").await.rows(), [[None]]);
        one.query("INSERT INTO log VALUES ('')").await.expect_ok();
        other.query("INSERT INTO log VALUES ('')").await.expect_ok();
    }
    assert_eq!(third.one("SELECT COUNT(*) FROM log WHERE a = 'by one'").await, "3");
    assert_eq!(third.one("SELECT COUNT(*) FROM log WHERE a = 'by other'").await, "3");
});

on_both!(what_is_not_a_variable_survives_the_question, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)").await;
    for sql in [
        "INSERT INTO t (v) VALUES (@v := 1), (2), (3)",
        "SELECT ROW_COUNT()",
        "SELECT LAST_INSERT_ID()",
        "SELECT @v",
        "SELECT @v := CAST('x' AS SIGNED)",
        "SHOW WARNINGS",
        "SELECT @@warning_count",
        "SELECT @v := id FROM t",
        "SELECT FOUND_ROWS()",
        "SELECT @v, LAST_INSERT_ID()",
        "SET @w = _utf8mb3'x'",
        "SHOW WARNINGS",
        "SELECT @w",
        "SHOW COUNT(*) WARNINGS",
    ] {
        twin.query(sql).await;
    }
});

on_both!(mariadb_tells_every_account_the_names_of_its_own_variables, |t| async move {
    let mut client = t.direct(&t.app()).await;
    client.query("SET @a = 1, @`B c` = NULL, NAMES latin1, character_set_results = utf16").await.expect_ok();
    let reply = client.query(&Ask::UserVariableNames.text()).await;
    match t.kind {
        Kind::MariaDb => assert_eq!(reply.raw.len(), 5, "a column, two rows, an end: {reply:?}"),
        Kind::MySql => reply.expect_error(1109),
    }
});

fn two_backends(config: &mut Config) {
    config.pool.max_connections = 2;
    config.scheduler.queue_timeout = Duration::from_secs(30);
}

on_both!(a_hundred_clients_with_variables_take_no_hundred_backends, two_backends, |t| async move {
    let mut clients = Vec::new();
    for n in 0..100 {
        let mut client = t.client().await;
        client.query(&format!("SELECT @a := {n}")).await.expect_ok();
        clients.push(client);
    }
    for (n, client) in clients.iter_mut().enumerate().rev() {
        assert_eq!(client.one("SELECT @a").await, n.to_string());
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

on_both!(a_hundred_clients_with_prepared_variables_take_no_hundred_backends, two_backends, |t| async move {
    let mut clients = Vec::new();
    for n in 0..100 {
        let mut client = t.client().await;
        let id = client.prepare("SELECT @a := ?").await;
        execute(&mut client, id, &[long(n)]).await.expect_ok();
        clients.push((client, id));
    }
    // What only assigns one is anybody's on MySQL, too.
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    for (n, (client, id)) in clients.iter_mut().enumerate().rev() {
        assert_eq!(client.one("SELECT @a").await, n.to_string());
        execute(client, *id, &[long(-1)]).await.expect_ok();
        assert_eq!(client.one("SELECT @a").await, "-1");
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

on_both!(
    names_go_with_a_session_that_left,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        for stays in [true, false] {
            let mut one = t.client().await;
            one.query("SET @secret = 'x'").await.expect_ok();
            if !stays {
                one.send(Command::Quit, b"").await;
                t.until("myriad_clients", None, 0.0).await;
            }
            let mut next = t.client().await;
            assert_eq!(next.query("SELECT @secret").await.rows(), [[None]]);
        }
    }
);

on_both!(what_is_too_much_keeps_its_backend, one_backend, |t| async move {
    let mut other = t.client().await;
    for sql in ["SET @a = REPEAT('x', 1000000)", "SET @`\u{e9}` = REPEAT('x', 1000000)", "SET @a = _ujis 0xA4A2"] {
        let mut client = t.client().await;
        client.query(sql).await.expect_ok();
        // Whoever would have the backend must wait for it.
        other.send(Command::Query, b"SELECT 1").await;
        t.until("myriad_pinned_clients", Some("user_variables"), 1.0).await;
        let own = sql.split(['=', ' ']).nth(1).expect("a name");
        let length = if sql.contains("1000000") { "1000000" } else { "2" };
        assert_eq!(client.one(&format!("SELECT LENGTH({own})")).await, length);
        client.command(Command::ResetConnection, b"").await.expect_ok();
        other.reply(Command::Query).await.expect("a reply").expect_ok();
    }
});

on_both!(
    what_may_be_much_is_carried_if_it_may,
    |config| {
        one_backend(config);
        config.limits.user_variables = 1 << 20;
    },
    |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.query("SET @a = REPEAT('x', 1000000)").await;
        twin.query("SELECT @a").await;
        assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    }
);

/// A random number generator, good enough to choose statements.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// A statement that writes or reads a few of a few variables.
    fn statement(&mut self) -> String {
        const NAMES: [&str; 5] = ["@a", "@B", "@`c d`", "@e", "@'f'"];
        let (one, other) = (self.of(&NAMES), self.of(&NAMES));
        let value = self.of(&VALUES);
        match self.below(9) {
            0..=2 => format!("SET {one} = {value}"),
            3 => format!("SET {one} = {value}, {other} = {}", self.of(&VALUES)),
            4 => format!("SELECT {one} := {value}"),
            5 => format!("SELECT {value} INTO {one}"),
            6 => format!("SELECT {one}, {other}, COLLATION({one}), HEX({other})"),
            7 => format!("SELECT 1, {one} IS NULL"),
            _ => format!("SET {one} = NULL"),
        }
    }
}

on_both!(random_ones_are_those_of_a_private_connection, two_backends, |t| async move {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_nanos() as u64;
    println!("seed {seed}");
    let mut tasks = Vec::new();
    for n in 0..20 {
        let t = std::sync::Arc::clone(&t);
        tasks.push(tokio::spawn(async move {
            let mut dice = Dice(seed.wrapping_add(n));
            let mut twin = Twin::new(&t, &t.app()).await;
            for _ in 0..40 {
                let sql = dice.statement();
                println!("{n}: {sql}");
                twin.query_and_keep(&sql).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a twin");
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});
