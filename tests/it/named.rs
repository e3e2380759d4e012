//! Statements that have a name, prepared as text: they go with their session to whichever backend, and to nobody else.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Kind, Setup, Twin, Wire, on_both, one_backend, own_backends};

/// A twin, and somebody who takes the names from its backend after each statement.
struct Stage {
    twin: Twin,
    thief: Wire,
}

/// Every name that a test uses.
const NAMES: [&str; 5] = ["p", "q", "s", "i", "w"];

impl Stage {
    /// With a table.
    async fn new(t: &Setup) -> Self {
        let mut stage = Self { twin: Twin::new(t, &t.app()).await, thief: t.client().await };
        stage
            .play(&[
                "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, v VARCHAR(20))",
                "INSERT INTO t (n, v) VALUES (1, 'one'), (2, 'two'), (3, NULL)",
            ])
            .await;
        stage
    }

    async fn play(&mut self, all: &[&str]) {
        for sql in all {
            self.twin.query(sql).await;
            for name in NAMES {
                self.thief.query(&format!("DEALLOCATE PREPARE {name}")).await.expect_error(1243);
            }
        }
    }
}

on_both!(they_are_carried, one_backend, |t| async move {
    let mut stage = Stage::new(&t).await;
    stage
        .play(&[
            "PREPARE p FROM 'SELECT ? + 1 AS x, ?'",
            "PREPARE Q FROM 'SELECT * FROM t WHERE n > ? ORDER BY n'",
            "PREPARE i FROM \"INSERT INTO t (n, v) VALUES (?, 'it''s')\"",
            "SET @a = 5, @b = 'text', @c = 1.5",
            "EXECUTE p USING @a, @b",
            "EXECUTE P USING @a, @b",
            "EXECUTE q USING @a",
            "EXECUTE `Q` USING @c",
            "EXECUTE i USING @a",
            "SELECT ROW_COUNT(), LAST_INSERT_ID()",
            "EXECUTE q USING @c",
            "SELECT FOUND_ROWS()",
            "EXECUTE p USING @a",
            "EXECUTE p",
            "SHOW WARNINGS",
            "EXECUTE nobody",
            "SHOW WARNINGS",
            "SELECT CAST('x' AS SIGNED)",
            "DEALLOCATE PREPARE p",
            "SHOW WARNINGS",
            "SELECT ROW_COUNT()",
            "EXECUTE p USING @a, @b",
            "DEALLOCATE PREPARE p",
            "DROP PREPARE q",
            "EXECUTE q USING @a",
            "EXECUTE i USING @a",
            "SELECT * FROM t",
            "SELECT CAST('x' AS SIGNED)",
            "PREPARE p FROM 'SELECT 1'",
            "SELECT @@warning_count",
            "EXECUTE p",
            "SHOW WARNINGS",
            "PREPARE p FROM 'SELECT * FROM t'",
            "SHOW WARNINGS",
        ])
        .await;
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    assert!(t.metric("myriad_named_prepares_total", None) >= 8.0);
});

on_both!(old_clients_have_them_too, one_backend, |t| async move {
    for login in [t.app().old(), t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)] {
        let mut stage = Stage { twin: Twin::new(&t, &login).await, thief: t.client().await };
        stage
            .play(&[
                "PREPARE p FROM 'SELECT ? AS x, CAST(? AS SIGNED)'",
                "SET @a = 'x', @b = '5y'",
                "EXECUTE p USING @a, @b",
                "SHOW WARNINGS",
                "EXECUTE p USING @a",
                "DEALLOCATE PREPARE p",
                "EXECUTE p",
            ])
            .await;
    }
    // What is one of several statements may be anything from then on.
    let mut client = t.client_as(&t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    client.query("PREPARE p FROM 'SELECT 1'").await.expect_ok();
    client.query("PREPARE p FROM 'SELECT 2'; EXECUTE p").await.expect_ok();
    t.until("myriad_pinned_clients", Some("text_prepare"), 1.0).await;
    assert_eq!(client.one("EXECUTE p").await, "2");
    client.command(Command::ResetConnection, b"").await.expect_ok();
    t.until("myriad_pinned_clients", None, 0.0).await;
});

on_both!(in_a_transaction_too, one_backend, |t| async move {
    let mut stage = Stage::new(&t).await;
    stage
        .play(&[
            "PREPARE p FROM 'SELECT COUNT(*), MAX(n) FROM t'",
            "PREPARE i FROM 'INSERT INTO t (n) VALUES (?)'",
            "SET @a = 5",
        ])
        .await;
    for sql in ["BEGIN", "SELECT CAST('x' AS SIGNED)", "EXECUTE p", "SHOW WARNINGS", "EXECUTE i USING @a"] {
        stage.twin.query_and_keep(sql).await;
    }
    for sql in ["SELECT ROW_COUNT(), LAST_INSERT_ID()", "EXECUTE p", "SELECT FOUND_ROWS()"] {
        stage.twin.query_and_keep(sql).await;
    }
    stage.play(&["ROLLBACK", "EXECUTE p"]).await;
});

on_both!(what_they_do_is_what_their_text_does, one_backend, |t| async move {
    let mut stage = Stage::new(&t).await;
    for (text, then) in [
        ("SET @x = 7", "SELECT @x"),
        ("SELECT n, v INTO @n, @v FROM t LIMIT 1", "SELECT @n, @v"),
        ("SET time_zone = ''+04:00''", "SELECT @@time_zone"),
        ("SET sql_mode = ''ANSI_QUOTES''", "SELECT \"n\" FROM t"),
        ("SET NAMES latin1", "SELECT @@character_set_client, ''\u{e9}''"),
        ("INSERT INTO t (n) VALUES (4), (5)", "SELECT ROW_COUNT(), LAST_INSERT_ID()"),
        ("UPDATE t SET n = n + 1 WHERE n > 1", "SELECT ROW_COUNT(), FOUND_ROWS()"),
        ("SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1", "SELECT FOUND_ROWS()"),
        ("SELECT CAST(''x'' AS SIGNED)", "SHOW WARNINGS"),
        ("SELECT CAST(v AS SIGNED) FROM t", "SELECT @@warning_count"),
        ("CREATE TABLE IF NOT EXISTS t (n INT)", "SHOW WARNINGS"),
        ("DO LAST_INSERT_ID(77)", "SELECT LAST_INSERT_ID()"),
        ("SELECT * FROM t WHERE n = (SELECT n FROM t)", "SHOW WARNINGS"),
    ] {
        stage.play(&[&format!("PREPARE p FROM '{text}'"), "EXECUTE p"]).await;
        stage.play(&[&then.replace("''", "'")]).await;
        stage.play(&["EXECUTE p", "DEALLOCATE PREPARE p", "SET sql_mode = DEFAULT, NAMES utf8mb4"]).await;
    }
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

on_both!(what_they_begin_pins_until_it_ends, one_backend, |t| async move {
    let _stays = Stage::new(&t).await;
    let mut client = t.client().await;
    for (text, reason, end) in [
        ("DO GET_LOCK(''{s}'', 1)", "user_lock", "SELECT RELEASE_LOCK('{s}')"),
        ("CREATE TEMPORARY TABLE own (n INT)", "temporary_table", "DROP TEMPORARY TABLE own"),
        ("SET TRANSACTION READ ONLY", "one_shot_transaction", "SELECT COUNT(*) FROM t"),
        ("SET autocommit = 0", "transaction", "COMMIT"),
    ] {
        let text = text.replace("{s}", &t.schema);
        client.query(&format!("PREPARE p FROM '{text}'")).await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
        client.query("EXECUTE p").await.expect_ok();
        if reason == "transaction" {
            client.query("SELECT COUNT(*) FROM t").await.expect_ok();
        }
        t.until("myriad_pinned_clients", Some(reason), 1.0).await;
        client.query(&end.replace("{s}", &t.schema)).await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
        client.query("SET autocommit = 1").await.expect_ok();
    }
    if t.kind == Kind::MariaDb {
        for (text, reason, end) in [
            ("BEGIN", "transaction", "COMMIT"),
            ("LOCK TABLES t READ", "locks", "UNLOCK TABLES"),
            ("HANDLER t OPEN", "handler", "HANDLER t CLOSE"),
        ] {
            client.query(&format!("EXECUTE IMMEDIATE '{text}'")).await.expect_ok();
            t.until("myriad_pinned_clients", Some(reason), 1.0).await;
            client.query(end).await.expect_ok();
            t.until("myriad_pinned_clients", None, 0.0).await;
        }
    }
    assert_eq!(t.metric("myriad_pins_total", Some("call")), 0.0);
    assert_eq!(t.metric("myriad_pins_total", Some("text_prepare")), 0.0);
});

on_both!(nobody_finds_anothers, one_backend, |t| async move {
    let (mut one, mut other) = (t.client().await, t.client().await);
    one.query("PREPARE p FROM 'SELECT 1'").await.expect_ok();
    other.query("EXECUTE p").await.expect_error(1243);
    other.query("DEALLOCATE PREPARE p").await.expect_error(1243);
    assert_eq!(one.one("EXECUTE p").await, "1");
    other.query("PREPARE p FROM 'SELECT 2'").await.expect_ok();
    assert_eq!(one.one("EXECUTE p").await, "1");
    assert_eq!(other.one("EXECUTE p").await, "2");
    other.query("PREPARE p FROM 'SELEKT'").await.expect_error(1064);
    assert_eq!(one.one("EXECUTE p").await, "1");
    other.query("EXECUTE p").await.expect_error(1243);
    one.query("DEALLOCATE PREPARE p").await.expect_ok();
    one.query("EXECUTE p").await.expect_error(1243);
    one.query("PREPARE p FROM 'SELECT 3'").await.expect_ok();
    one.command(Command::ResetConnection, b"").await.expect_ok();
    one.query("EXECUTE p").await.expect_error(1243);
    one.query("PREPARE p FROM 'SELECT 4'").await.expect_ok();
    one.change_user(&t.app()).await.expect("the same user");
    one.query("EXECUTE p").await.expect_error(1243);
    t.until("myriad_pinned_clients", None, 0.0).await;
});

on_both!(nobodys_code_finds_anothers, one_backend, |t| async move {
    let (mut one, mut other) = (t.client().await, t.client().await);
    one.query("CREATE PROCEDURE ex() EXECUTE p").await.expect_ok();
    one.query("PREPARE p FROM 'SELECT 1'").await.expect_ok();
    other.query("CALL ex()").await.expect_error(1243);
    other.command(Command::ResetConnection, b"").await.expect_ok();
    assert_eq!(one.one("CALL ex()").await, "1");
    assert_eq!(one.one("EXECUTE p").await, "1");
});

on_both!(definitions_change_under_them, one_backend, |t| async move {
    let mut stage = Stage::new(&t).await;
    stage
        .play(&[
            "CREATE TABLE u (n INT)",
            "PREPARE s FROM 'SELECT * FROM u'",
            "PREPARE i FROM 'INSERT INTO u VALUES (5)'",
            "PREPARE w FROM 'SELECT n FROM u WHERE n = ?'",
            "SET @n = 5",
            "EXECUTE i",
            "ALTER TABLE u ADD COLUMN m INT DEFAULT 3",
            "EXECUTE s",
            "EXECUTE i",
            "SHOW WARNINGS",
            "SELECT @@error_count, ROW_COUNT()",
            "ALTER TABLE u DROP COLUMN n",
            "EXECUTE s",
            "EXECUTE w USING @n",
            "SHOW WARNINGS",
            "EXECUTE i",
            "DROP TABLE u",
            "EXECUTE s",
            "SHOW WARNINGS",
            "EXECUTE i",
            "SELECT ROW_COUNT()",
            "EXECUTE w USING @n",
            "DEALLOCATE PREPARE w",
            "CREATE TABLE u (n INT)",
            "EXECUTE s",
            "EXECUTE i",
            "EXECUTE w USING @n",
        ])
        .await;
});

on_both!(they_mean_what_they_meant, one_backend, |t| async move {
    let mut stage = Stage::new(&t).await;
    stage
        .play(&[
            "SET sql_mode = 'ANSI_QUOTES'",
            "PREPARE q FROM 'SELECT \"n\" FROM t'",
            "SET sql_mode = ''",
            "PREPARE s FROM 'SELECT \"n\" FROM t'",
            "EXECUTE q",
            "EXECUTE s",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "PREPARE p FROM 'SELECT ''a\\b'''",
            "SET sql_mode = DEFAULT",
            "EXECUTE p",
            "PREPARE w FROM 'SELECT ''\u{e9}'', ''\u{1f600}'''",
            "SET NAMES latin1",
            "EXECUTE w",
            "SET NAMES utf8mb4",
            "EXECUTE w",
        ])
        .await;
});

on_both!(
    they_outlive_their_backend,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        let mut client = t.client().await;
        client.query("PREPARE p FROM 'SELECT 1 + 1'").await.expect_ok();
        let mut other = t.client().await;
        other.query("SELECT 1").await.expect_ok();
        for n in 0..60 {
            client.query(&format!("PREPARE p{n} FROM 'SELECT {n}'")).await.expect_ok();
        }
        for n in [0, 59, 30] {
            t.kill_backends().await;
            assert_eq!(client.one(&format!("EXECUTE p{n}")).await, n.to_string());
            assert_eq!(client.one("EXECUTE p").await, "2");
            other.query("EXECUTE p").await.expect_error(1243);
        }
    }
);

on_both!(what_cannot_be_carried_keeps_its_backend, one_backend, |t| async move {
    let mut client = t.client().await;
    let mut cases = vec![
        ("PREPARE p FROM @text".to_owned(), "DEALLOCATE PREPARE p"),
        ("PREPARE p FROM 'SELECT ROW_COUNT()'".to_owned(), "DEALLOCATE PREPARE P"),
        ("PREPARE p FROM CONCAT('SELECT ', 1)".to_owned(), "DROP PREPARE p"),
        ("PREPARE p FROM 'SELECT @@warning_count'".to_owned(), "DROP PREPARE `P`"),
    ];
    if t.kind == Kind::MySql {
        cases.push(("PREPARE p FROM 'SELECT @a + 1'".to_owned(), "DEALLOCATE PREPARE p"));
    }
    for (prepare, deallocate) in cases {
        client.query("SET @text = 'SELECT 7', @a = 1").await.expect_ok();
        if client.query(&prepare).await.error().is_some() {
            assert_eq!(t.metric("myriad_pinned_clients", None), 0.0, "{prepare}");
            continue;
        }
        t.until("myriad_pinned_clients", Some("text_prepare"), 1.0).await;
        client.query(deallocate).await.expect_ok();
        let begin = &prepare[..20];
        assert_eq!(t.metric("myriad_pinned_clients", None), 0.0, "{begin}");
    }
    // One by an odd name may be any, and so are all others from then on.
    client.query("PREPARE e FROM 'SELECT 1'").await.expect_ok();
    client.query("PREPARE `\u{e9}` FROM 'SELECT 2'").await.expect_ok();
    t.until("myriad_pinned_clients", Some("text_prepare"), 1.0).await;
    let wanted = if t.kind == Kind::MySql { "2" } else { "1" };
    assert_eq!(client.one("EXECUTE e").await, wanted);
    client.query("DEALLOCATE PREPARE e").await.expect_ok();
    assert_eq!(t.metric("myriad_pinned_clients", Some("text_prepare")), 1.0);
});

on_both!(ones_own_number_and_questions, one_backend, |t| async move {
    let mut client = t.client().await;
    let mut other = t.client().await;
    let id = client.one("SELECT CONNECTION_ID()").await;
    client.query("PREPARE p FROM 'SELECT CONNECTION_ID(), ''it''''s'''").await.expect_ok();
    for _ in 0..2 {
        assert_eq!(client.one("EXECUTE p").await, id);
        other.query("DO 1").await.expect_ok();
    }
    if t.kind == Kind::MariaDb {
        client.query("INSERT INTO mysql.nothing VALUES (1)").await;
        for (sql, wanted) in [
            ("EXECUTE IMMEDIATE 'SELECT ROW_COUNT()'", "-1".to_owned()),
            ("EXECUTE IMMEDIATE 'SELECT CONNECTION_ID()'", id),
            ("EXECUTE IMMEDIATE 'SELECT ? + 1' USING 5", "6".to_owned()),
        ] {
            other.query("DO 1").await.expect_ok();
            assert_eq!(client.one(sql).await, wanted, "{sql}");
        }
    }
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
});

on_both!(a_kill_by_name_is_a_kill, |t| async move {
    let (mut one, mut other) = (t.client().await, t.client().await);
    let id = other.one("SELECT CONNECTION_ID()").await;
    one.query(&format!("PREPARE k FROM 'KILL {id}'")).await.expect_ok();
    one.query("EXECUTE k").await.expect_ok();
    t.until("myriad_clients", None, 1.0).await;
    one.query("EXECUTE k").await.expect_error(1094);
});

on_both!(what_the_server_cannot_read_leaves_the_name_alone, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    for unread in ["PREPARE p FROM 'SELECT", "PREPARE p FROM 'SELECT 2' nonsense", "PREPARE p FROM 5, 6"] {
        client.query("PREPARE p FROM 'SELECT 1'").await.expect_ok();
        assert_eq!(other.one("SELECT 7").await, "7");
        client.query(unread).await.expect_error(1064);
        assert_eq!(client.one("EXECUTE p").await, "1", "{unread}");
        client.query("DEALLOCATE PREPARE p").await.expect_ok();
        client.query("EXECUTE p").await.expect_error(1243);
        client.command(Command::ResetConnection, b"").await.expect_ok();
        other.query("EXECUTE p").await.expect_error(1243);
    }
    t.until("myriad_pinned_clients", None, 0.0).await;
});

on_both!(a_name_with_and_without_quotes, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for failing in ["PREPARE p FROM @text", "PREPARE p FROM 'SELEC'", "PREPARE p FROM 'SELECT nothing'"] {
        twin.query("PREPARE `P` FROM 'SELECT 5'").await;
        // Whose fault a syntax error is, nobody knows.
        twin.query_and_keep(failing).await;
        twin.query_and_keep("EXECUTE p USING @x").await;
        twin.query_and_keep("DEALLOCATE PREPARE p").await;
        twin.command(Command::ResetConnection, b"").await;
    }
    // A word that is no name without quotes.
    twin.query("PREPARE `select` FROM 'SELECT 5'").await;
    twin.query_and_keep("PREPARE select FROM 'SELECT 6'").await;
    twin.query_and_keep("EXECUTE `select`").await;
});
