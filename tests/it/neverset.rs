//! User variables that a session never set, where others have been on its backend.

use myriad::protocol::command::Command;

use crate::support::{Twin, on_both, one_backend};

on_both!(what_was_never_set_stays_so_where_a_session_stays, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut others = t.client().await;
    twin.queries(&["CREATE TABLE t (n INT, s VARCHAR(20))", "INSERT INTO t VALUES (1, 'one'), (2, 'two')"]).await;
    // With variables of others on the backend, and without any that are known.
    for setting in ["SET @a = 18446744073709551615, @b = 'secret', @c = 1.5, @d = x'00'", "SELECT 1"] {
        for (begins, ends) in [
            ("BEGIN", "COMMIT"),
            ("CREATE TEMPORARY TABLE tmp (n INT)", "DROP TEMPORARY TABLE tmp"),
            ("DO GET_LOCK('never set', 0)", "DO RELEASE_ALL_LOCKS()"),
            ("SET TRANSACTION READ ONLY", "SELECT COUNT(*) FROM t"),
        ] {
            others.query("SELECT 1").await.expect_ok();
            others.query(setting).await.expect_ok();
            twin.query_and_keep(begins).await;
            for sql in [
                "SELECT @a, @b, @c, @d",
                "SELECT @A, @`b`, @'c', @a AS x, @b y, @a + 1",
                "SELECT @a + 0, CONCAT(@b, '!'), @c * 2, HEX(@d), COLLATION(@b), COERCIBILITY(@d)",
                "SELECT (SELECT @a), IF(@b, @c, @d) AS z UNION SELECT @a, @b",
                "SELECT n, CONCAT(s, @b), ROW_COUNT() FROM t WHERE n = 1 OR s = @b ORDER BY @a",
                "SELECT @e := @a, @f := 5, @a",
                "SET @g = @a, @h = CONCAT(@b, 'x')",
                "SELECT @e, @f, @g, @h",
                "SELECT @c IS NULL AS it",
                "SET @d = CONCAT(@d, 'x'), @i = @d",
                "SELECT @d, @i, COLLATION(@d)",
                "SELECT s INTO @b FROM t WHERE n = @a",
                "SELECT @b, COLLATION(@b)",
            ] {
                twin.query_and_keep(sql).await;
            }
            twin.query_and_keep(ends).await;
            twin.command(Command::ResetConnection, b"").await;
        }
    }
});

on_both!(what_a_preparation_creates_is_there, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut others = t.client().await;
    for (a, b, c, d) in [("a", "b", "c", "d"), ("e", "f", "g", "h")] {
        // Prepared by others too, so the answer may be remembered.
        others.prepare(&format!("SET @{a} = ?")).await;
        twin.prepare(&format!("SET @{a} = ?")).await;
        twin.prepare(&format!("SELECT @{b} := _latin1'x'")).await;
        twin.query(&format!("PREPARE p FROM 'SET @{c} = 5'")).await;
        twin.prepare(&format!("SELECT 5 INTO @{d}")).await;
        for name in [a, b, c, d] {
            twin.query(&format!("SELECT @{name}, COLLATION(@{name}), COERCIBILITY(@{name})")).await;
        }
    }
});

on_both!(what_was_never_set_stays_so_behind_a_trigger, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut others = t.client().await;
    twin.queries(&["CREATE TABLE t (n INT)", "CREATE TABLE u (n INT)"]).await;
    for sql in [
        "CREATE TRIGGER sets BEFORE INSERT ON t FOR EACH ROW SET @by_trigger = NEW.n",
        "CREATE TRIGGER sets_a BEFORE INSERT ON u FOR EACH ROW SET @a = NEW.n",
    ] {
        twin.query(sql).await;
    }
    for table in ["t", "u"] {
        others.query("SET @a = 18446744073709551615, @b = 'secret'").await.expect_ok();
        // That the trigger sets one is reported, and pins.
        twin.query_and_keep(&format!("INSERT INTO {table} VALUES (5), (6)")).await;
        twin.query_and_keep("SELECT ROW_COUNT(), @b").await;
        twin.query_and_keep("SELECT @a, @b, @c, @by_trigger").await;
        twin.query_and_keep("SELECT FOUND_ROWS() AS f, COLLATION(@b)").await;
        twin.query_and_keep("SELECT CAST('x' AS SIGNED)").await;
        twin.query_and_keep("SELECT @b").await;
        twin.query_and_keep("SHOW WARNINGS").await;
        twin.command(Command::ResetConnection, b"").await;
    }
});
