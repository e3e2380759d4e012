//! What a statement means was decided when it was prepared, wherever it is executed; what it does is done as by text.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use super::{execute, execution, field, long, one, text};
use crate::support::{Login, Twin, on_both, one_backend, own_backends};

on_both!(definitions_change, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"]).await;
    twin.prepare("SELECT * FROM t").await;
    twin.execute(1, &[]).await;
    twin.query("ALTER TABLE t ADD COLUMN b INT DEFAULT 2").await;
    twin.execute(1, &[]).await;
    twin.query("DROP TABLE t").await;
    twin.execute(1, &[]).await.expect_error(1146);
    twin.query("CREATE TABLE t (c VARCHAR(9))").await;
    twin.execute(1, &[]).await;
    twin.send(Command::StmtClose, &1_u32.to_le_bytes()).await;
    twin.intrude().await;
});

on_both!(ids_that_nobody_has, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (n INT)").await;
    let last = u32::MAX;
    for id in [7, 4_000_000_000, last] {
        twin.query("INSERT INTO t VALUES (5), (6)").await;
        twin.execute(id, &[]).await.expect_error(1243);
        twin.query("SHOW WARNINGS").await;
        twin.command(Command::StmtFetch, &[id.to_le_bytes(), 1_u32.to_le_bytes()].concat()).await.expect_error(1243);
        twin.query("SELECT ROW_COUNT()").await;
        twin.command(Command::StmtReset, &id.to_le_bytes()).await.expect_error(1243);
        twin.query("SELECT 1 FROM t LIMIT 1").await;
        twin.send(Command::StmtSendLongData, &[&id.to_le_bytes()[..], &[0, 0, b'x']].concat()).await;
        twin.send(Command::StmtClose, &id.to_le_bytes()).await;
        twin.query("SELECT 1 FROM t LIMIT 1").await;
    }
    twin.prepare("SELECT 'the last'").await;
    twin.execute(last, &[]).await;
    twin.command(Command::StmtPrepare, b"SELEC").await.expect_error(1064);
    twin.execute(last, &[]).await.expect_error(1243);
    twin.prepare("SELECT 'one'").await;
    twin.prepare("SELECT 'two'").await;
    twin.send(Command::StmtClose, &3_u32.to_le_bytes()).await;
    twin.execute(3, &[]).await.expect_error(1243);
    twin.execute(last, &[]).await;
    twin.command(Command::StmtReset, &4_u32.to_le_bytes()).await;
    twin.send(Command::StmtClose, &last.to_le_bytes()).await;
    twin.execute(4, &[]).await;
    twin.prepare("SELECT 'in vain'").await;
    twin.command(Command::ResetConnection, b"").await;
    twin.intrude().await;
    twin.execute(5, &[]).await.expect_error(1243);
    twin.prepare("SELECT 'anew'").await;
    twin.execute(6, &[]).await;
});

on_both!(a_change_of_user_forgets_them, one_backend, |t| async move {
    let mut client = t.client().await;
    let id = client.prepare("SELECT 1").await;
    client.change_user(&t.app()).await.expect("it is the same user");
    execute(&mut client, id, &[]).await.expect_error(1243);
    let other = client.prepare("SELECT 2").await;
    assert_ne!(id, other);
    execute(&mut client, other, &[]).await.expect_ok();
});

on_both!(it_is_prepared_again_in_the_state_it_was_prepared_in, own_backends, |t| async move {
    let mut client = t.client().await;
    for sql in [
        "CREATE TABLE t (v VARCHAR(20))",
        "INSERT INTO t VALUES ('first schema')",
        &format!("CREATE DATABASE {}", t.twin_schema()),
        &format!("CREATE TABLE {}.t (v VARCHAR(20))", t.twin_schema()),
        &format!("INSERT INTO {}.t VALUES ('second schema')", t.twin_schema()),
        "SET sql_mode = 'ANSI_QUOTES'",
    ] {
        client.query(sql).await.expect_ok();
    }
    let quoted = client.prepare("SELECT \"v\" FROM t").await;
    client.query("SET autocommit = 0, sql_mode = '', time_zone = '+03:00'").await.expect_ok();
    client.query(&format!("USE {}", t.twin_schema())).await.expect_ok();
    let here = client.prepare("SELECT CONCAT(v, @@sql_mode, @@time_zone) FROM t").await;
    client.query("COMMIT").await.expect_ok();
    for _ in 0..2 {
        assert_eq!(one(&mut client, quoted, &[]).await, "first schema");
        client.query("INSERT INTO t VALUES ('to be lost')").await.expect_ok();
        assert_eq!(one(&mut client, quoted, &[]).await, "first schema");
        assert_eq!(one(&mut client, here, &[]).await, "second schema+03:00");
        client.query("ROLLBACK").await.expect_ok();
        assert_eq!(
            client.one("SELECT CONCAT(DATABASE(), COUNT(*), @@sql_mode) FROM t").await,
            format!("{}1", t.twin_schema())
        );
        client.query("COMMIT").await.expect_ok();
        t.kill_backends().await;
    }
    client.query("SET autocommit = 1").await.expect_ok();
    client.query(&format!("DROP DATABASE {}", t.schema)).await.expect_ok();
    client.query("SELECT 1").await.expect_ok();
    t.kill_backends().await;
    execute(&mut client, quoted, &[]).await.expect_error(1049);
    assert_eq!(client.one("SELECT 1").await, "1");
    assert_eq!(one(&mut client, here, &[]).await, "second schema+03:00");
});

on_both!(sixty_statements_and_a_new_backend, own_backends, |t| async move {
    let mut client = t.client().await;
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(client.prepare(&format!("SELECT 'number {n}', ?")).await);
    }
    let twice = [client.prepare("SELECT 'number 0', ?").await, client.prepare("SELECT 'twice'").await];
    client.send(Command::StmtClose, &twice[0].to_le_bytes()).await;
    t.kill_backends().await;
    for (n, id) in ids.iter().enumerate() {
        let row = field(&execute(&mut client, *id, &[long(5)]).await);
        assert!(row[1..].starts_with(format!("number {n}").as_bytes()), "{row:?}");
    }
    execute(&mut client, twice[0], &[long(5)]).await.expect_error(1243);
    assert_eq!(one(&mut client, twice[1], &[]).await, "twice");
});

on_both!(temporary_tables_and_locks, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for sql in ["CREATE TEMPORARY TABLE own (n INT)", "INSERT INTO own VALUES (?)", "DROP TEMPORARY TABLE own"] {
        let reply = twin.command(Command::StmtPrepare, sql.as_bytes()).await;
        assert_eq!(reply.error().map(|(code, _)| code), sql.starts_with("INSERT").then_some(1146), "{sql}");
        twin.intrude().await;
    }
    let run = |id| execution(id, false, &[], true);
    twin.command(Command::StmtExecute, &run(1)).await.expect_ok();
    twin.command(Command::StmtPrepare, b"INSERT INTO own VALUES (?)").await.expect_ok();
    twin.command(Command::StmtExecute, &execution(4, false, &[long(7)], true)).await.expect_ok();
    twin.query_and_keep("SELECT * FROM own").await;
    twin.command(Command::StmtExecute, &run(3)).await.expect_ok();
    twin.intrude().await;
    twin.command(Command::StmtExecute, &execution(4, false, &[long(7)], true)).await.expect_error(1146);
    let mut client = t.client().await;
    let take = client.prepare(&format!("SELECT GET_LOCK('{}', 1)", t.schema)).await;
    let release = client.prepare(&format!("SELECT RELEASE_LOCK('{}')", t.schema)).await;
    execute(&mut client, take, &[]).await.expect_ok();
    assert_eq!(t.metric("myriad_pinned_clients", Some("user_lock")), 1.0);
    execute(&mut client, release, &[]).await.expect_ok();
    twin.intrude().await;
});

on_both!(what_a_statement_leaves_behind, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9))").await;
    twin.prepare("INSERT INTO t (v) VALUES (?), (?)").await;
    twin.execute(1, &[text("a"), text("b")]).await;
    twin.query("SELECT LAST_INSERT_ID() AS x").await;
    twin.prepare("SELECT LAST_INSERT_ID() AS x").await;
    twin.execute(2, &[]).await;
    twin.execute(1, &[text("c"), text("d")]).await;
    twin.execute(2, &[]).await;
    twin.query("SELECT ROW_COUNT()").await;
    twin.prepare("SET time_zone = ?").await;
    twin.execute(3, &[text("+05:00")]).await;
    twin.query("SELECT @@time_zone").await;
    twin.prepare("SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1").await;
    twin.command(Command::StmtExecute, &execution(4, false, &[], true)).await.expect_ok();
    twin.query_and_keep("SELECT FOUND_ROWS()").await;
    twin.intrude().await;
    twin.prepare("SELECT CAST(? AS SIGNED) FROM t LIMIT 1").await;
    twin.execute(5, &[text("12x")]).await;
    twin.query("SHOW WARNINGS").await;
});

// User variables in prepared statements.
on_both!(user_variables, one_backend, |t| async move {
    let mut client = t.client().await;
    let mut direct = t.direct(&t.app()).await;
    let mut replies = Vec::new();
    for wire in [&mut client, &mut direct] {
        wire.query("SET @a = 'text'").await.expect_ok();
        let id = wire.prepare("SELECT @a").await;
        let first = execute(wire, id, &[]).await.raw;
        wire.query("SET @a = 5").await.expect_ok();
        replies.push((first, execute(wire, id, &[]).await.raw));
    }
    assert_eq!(replies[0], replies[1]);
});

on_both!(to_clients_of_both_dialects, one_backend, |t| async move {
    let mut modern = Twin::new(&t, &t.app()).await;
    modern.query("CREATE TABLE t (id INT, v VARCHAR(9))").await;
    for sql in ["SELECT * FROM t WHERE id = ? AND v = ?", "SELECT * FROM t", "INSERT INTO t VALUES (?, ?)", "DO 1"] {
        modern.prepare(sql).await;
    }
    drop(modern);
    let mut old = Twin::new(&t, &t.app().old()).await;
    let mut more = Twin::new(&t, &Login { ..t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS) }).await;
    for twin in [&mut old, &mut more] {
        for sql in ["SELECT * FROM t WHERE id = ? AND v = ?", "SELECT * FROM t", "INSERT INTO t VALUES (?, ?)", "DO 1"]
        {
            twin.prepare(sql).await;
            twin.prepare(sql).await;
        }
        twin.execute(1, &[long(1), text("a")]).await;
        twin.execute(6, &[long(1), text("a")]).await;
    }
    assert!(t.metric("myriad_remembered_prepares_total", None) > 0.0);
});

on_both!(closing_one_ends_no_pin_of_another_kind, one_backend, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    let id = client.prepare("INSERT INTO t VALUES (?)").await;
    client.query("BEGIN").await.expect_ok();
    execute(&mut client, id, &[long(1)]).await.expect_ok();
    client.send(Command::StmtClose, &id.to_le_bytes()).await;
    assert_eq!(client.one("SELECT COUNT(*) FROM t").await, "1");
    assert_eq!(t.metric("myriad_pinned_clients", Some("transaction")), 1.0);
    client.query("COMMIT").await.expect_ok();
    assert_eq!(client.one("SELECT COUNT(*) FROM t").await, "1");
});

on_both!(questions_are_read_as_they_were_when_prepared, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (n INT)").await;
    twin.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").await;
    twin.prepare(r"SELECT '\' AS a, ROW_COUNT() AS n, '' AS b").await;
    twin.query("SET sql_mode = ''").await;
    twin.query("INSERT INTO t VALUES (1), (2)").await;
    twin.execute(1, &[]).await;
});

on_both!(user_variables_of_other_types, one_backend, |t| async move {
    let values = ["1", "-1.50", "'text'", "NULL"];
    let expressions = ["@a", "IFNULL(@a, 0)", "ROUND(@a, 1)"];
    for expression in expressions {
        let sql = format!("SELECT {expression} AS a");
        for mine in values {
            for theirs in values {
                let mut first = t.client().await;
                let (mut proxied, mut direct) = (t.client().await, t.direct(&t.app()).await);
                first.query(&format!("SET @a = {theirs}")).await.expect_ok();
                let id = first.prepare(&sql).await;
                execute(&mut first, id, &[]).await.expect_ok();
                first.send(Command::StmtClose, &id.to_le_bytes()).await;
                let mut replies = Vec::new();
                for wire in [&mut proxied, &mut direct] {
                    wire.query(&format!("SET @a = {mine}")).await.expect_ok();
                    let reply = wire.command(Command::StmtPrepare, sql.as_bytes()).await.raw;
                    let id = u32::from_le_bytes(reply[0].1[1..5].try_into().unwrap());
                    let answer = execute(wire, id, &[]).await.raw;
                    wire.send(Command::StmtClose, &id.to_le_bytes()).await;
                    replies.push((reply[1..].to_vec(), answer));
                }
                assert_eq!(replies[0], replies[1], "{sql} with {mine} after {theirs}");
            }
        }
    }
});
