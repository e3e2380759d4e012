//! KILL of an expression, of a query by its number, and of a user.

use std::time::Duration;

use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Setup, Twin, Wire, on_both, one_backend, own_backends};

on_both!(
    /// Nobody has these numbers, so the answers are the same wherever they are given.
    what_is_killed_may_be_computed, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.queries(&[
            "CREATE TABLE t (n INT)",
            "CREATE FUNCTION f() RETURNS INT RETURN 900000001",
            "SET @id = 900000001",
            "KILL @id",
            "KILL QUERY @id + 1 -- one more",
            "KILL CONNECTION /* this one */ (@id + 1) ;",
            "KILL NULL",
            "KILL @unset",
            "KILL '900000001'",
            "KILL -1",
            "KILL 9e8",
            "KILL 99999999999999999999999",
            "KILL (SELECT 900000001)",
            "KILL (SELECT n FROM t)",
            "KILL ROW(1,2)",
            "KILL 1+",
            "KILL",
            "KILL 900000001 LIMIT 1",
            "KILL no_such_column",
            "KILL ID 5",
            "KILL QUERY @written := 900000001",
            "SELECT @written",
            "KILL QUERY CONNECTION_ID()",
            "SHOW ERRORS",
            "SELECT @id",
        ])
        .await;
        // A call that fails keeps its backend.
        twin.query_and_keep("KILL f()").await;
        twin.query_and_keep("KILL @id + f()").await;
    }
);

on_both!(clients_by_expressions, |t| async move {
    let (mut killer, mut victim) = (t.client().await, t.client().await);
    killer.query(&format!("SET @victim = {}", victim.id)).await.expect_ok();
    for form in ["QUERY @victim", "QUERY @victim + 0", "QUERY @again := @victim", "QUERY @again", "@again"] {
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        killer.query(&format!("KILL {form}")).await.expect_ok();
        t.until_runs(&sleep(&t), false).await;
        if form == "@again" {
            assert!(hears_nothing(&mut victim).await);
        } else {
            victim.reply(Command::Query).await.unwrap();
            assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        }
    }
    assert_eq!(killer.one("SELECT @again = @victim").await, "1");
    let mut own = t.client().await;
    let mut direct = t.direct(&t.app()).await;
    let [through, wanted] = [&mut own, &mut direct];
    assert_eq!(through.query("KILL CONNECTION_ID()").await.raw, wanted.query("KILL CONNECTION_ID()").await.raw);
    assert!(hears_nothing(&mut own).await);
    // Who does nothing hears nothing either.
    let mut idle = t.client().await;
    killer.query(&format!("KILL {} + 0", idle.id)).await.expect_ok();
    assert!(hears_nothing(&mut idle).await);
});

on_both!(
    /// Neither the statement's result nor a word: its connection to the server is gone, as a private one would be.
    a_statement_ends_with_its_connection, |t| async move {
        let mut killer = t.client().await;
        for statement in ["SELECT SLEEP(100)", "SELECT BENCHMARK(100000000000, 1 + 1)", "DO SLEEP(100)"] {
            for direct in [true, false] {
                let login = t.app();
                let (mut victim, mut other) = match direct {
                    true => (t.direct(&login).await, Some(t.direct(&login).await)),
                    false => (t.client().await, None),
                };
                let text = format!("{statement} /* {} */", t.schema);
                victim.send(Command::Query, text.as_bytes()).await;
                t.until_runs(&text, true).await;
                let kill = format!("KILL {}", victim.id);
                other.as_mut().unwrap_or(&mut killer).query(&kill).await.expect_ok();
                assert!(hears_nothing(&mut victim).await, "{statement} {direct}");
                t.until_runs(&text, false).await;
            }
        }
    }
);

on_both!(
    /// A transaction that is killed in the middle of a statement is gone.
    what_was_open_is_rolled_back, |t| async move {
        let (mut killer, mut victim) = (t.client().await, t.client().await);
        victim.query("CREATE TABLE t (n INT) ENGINE = InnoDB").await.expect_ok();
        victim.query("BEGIN").await.expect_ok();
        victim.query("INSERT INTO t VALUES (1)").await.expect_ok();
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        killer.query(&format!("KILL {}", victim.id)).await.expect_ok();
        assert!(hears_nothing(&mut victim).await);
        t.until_runs(&sleep(&t), false).await;
        assert_eq!(killer.one("SELECT COUNT(*) FROM t").await, "0");
    }
);

on_both!(users_are_killed_by_name, own_backends, |t| async move {
    if t.kind == Kind::MySql {
        return t.client().await.query("KILL USER app").await.expect_error(1064);
    }
    let (mut killer, mut victim) = (t.client().await, t.client().await);
    let other = Login { user: "other", password: "other-secret", ..t.app() };
    let mut stranger = t.client_as(&other).await;
    let own: &'static str = Box::leak(t.schema.clone().into_boxed_str());
    let more = format!("ALTER USER {own} WITH MAX_USER_CONNECTIONS 5");
    t.admin().await.query(&more).await.expect_ok();
    let mut beside = t.direct(&Login { user: own, ..t.app() }).await;
    // What nobody may kill is left alone, and nobody is told.
    for (form, hit) in [("USER other", 0), ("USER nobody", 0), ("USER app@nowhere", 0), ("USER 'app'@'no where'", 0)] {
        assert_eq!(killer.query(&format!("KILL {form}")).await.ok().affected_rows, hit, "{form}");
    }
    killer.query("KILL USER 'a''b'").await.expect_error(1235);
    killer.query("KILL USER app app").await.expect_error(1235);
    victim.send(Command::Query, sleep(&t).as_bytes()).await;
    t.until_runs(&sleep(&t), true).await;
    // Those are the two clients; the third one is at the server by another name.
    assert_eq!(killer.query("KILL SOFT QUERY USER app").await.ok().affected_rows, 2);
    assert_eq!(killer.one("SELECT ROW_COUNT()").await, "2");
    victim.reply(Command::Query).await.unwrap();
    assert_eq!(victim.one("SELECT 'mine'").await, "mine");
    assert_eq!(beside.one("SELECT 'mine'").await, "mine");
    victim.send(Command::Query, sleep(&t).as_bytes()).await;
    t.until_runs(&sleep(&t), true).await;
    assert_eq!(killer.query(&format!("KILL USER {own}")).await.ok().affected_rows, 3);
    assert!(hears_nothing(&mut victim).await);
    assert!(hears_the_end(&mut killer).await);
    assert!(hears_the_end(&mut beside).await);
    assert_eq!(stranger.one("SELECT 'mine'").await, "mine");
});

on_both!(queries_are_killed_by_number, |t| async move {
    if t.kind == Kind::MySql {
        return t.client().await.query("KILL QUERY ID 5").await.expect_error(1064);
    }
    let (mut killer, mut victim) = (t.client().await, t.client().await);
    victim.send(Command::Query, sleep(&t).as_bytes()).await;
    t.until_runs(&sleep(&t), true).await;
    let text = sleep(&t);
    let find = format!("SELECT @q := QUERY_ID FROM information_schema.PROCESSLIST WHERE INFO = \"{text}\"");
    let number = killer.query(&find).await.rows()[0][0].clone().unwrap();
    let mut stranger = t.client_as(&Login { user: "other", password: "other-secret", ..t.app() }).await;
    stranger.query(&format!("KILL QUERY ID {number}")).await.expect_error(1979);
    killer.query("KILL QUERY ID @q").await.expect_ok();
    victim.reply(Command::Query).await.unwrap();
    assert_eq!(victim.one("SELECT 'mine'").await, "mine");
    // Threads that have run nothing yet have 0.
    killer.query("KILL QUERY ID 9223372036854775807").await.expect_error(1957);
    killer.query("KILL QUERY ID USER 'foo'").await.expect_error(1054);
});

/// A statement that only a kill ends, and that no other test runs.
fn sleep(t: &Setup) -> String {
    format!("SELECT SLEEP(100), /* {} */ 'mine'", t.schema)
}

/// The connection ends without a word.
async fn hears_nothing(client: &mut Wire) -> bool {
    tokio::time::timeout(Duration::from_secs(5), client.frame()).await.is_ok_and(|end| end.is_err())
}

/// The connection ends, with an error or without.
async fn hears_the_end(client: &mut Wire) -> bool {
    let listen = async {
        while let Ok((_, payload)) = client.frame().await {
            assert_eq!(payload[0], 0xff, "{payload:?}");
        }
    };
    tokio::time::timeout(Duration::from_secs(5), listen).await.is_ok()
}

on_both!(
    /// Computing whom it kills may take long: nobody has to wait for that if the client is gone, or was killed.
    who_goes_away_while_it_is_computed_keeps_no_backend, one_backend, |t| async move {
        let mut other = t.client().await;
let sleeps = format!("SLEEP(100) + 0 * LENGTH('{}')", t.schema);
        let kill = format!("KILL {sleeps}");
        let mut client = t.client().await;
        client.send(Command::Query, kill.as_bytes()).await;
        t.until_runs(&sleeps, true).await;
        drop(client);
        t.until_runs(&sleeps, false).await;
        assert_eq!(other.one("SELECT 7").await, "7");
        let mut client = t.client().await;
        client.send(Command::Query, kill.as_bytes()).await;
        t.until_runs(&sleeps, true).await;
        other.query(&format!("KILL {}", client.id)).await.expect_ok();
        assert!(hears_nothing(&mut client).await);
        t.until_runs(&sleeps, false).await;
        assert_eq!(other.one("SELECT 7").await, "7");
    }
);
