//! Code that nobody sees: what stored functions and procedures do to a session, and whose it is.

use std::collections::BTreeSet;

use myriad::config::Config;
use myriad::protocol::command::Command;
use myriad::sql::{self, Flags, Mode};

use crate::support::{Kind, Login, Setup, Twin, Wire, on_both, one_backend};

/// Everything that the server calls a word, and everything that it calls a function.
async fn words(t: &Setup) -> BTreeSet<String> {
    let mut admin = t.admin().await;
    let sources: &[&str] = match t.kind {
        Kind::MariaDb => &[
            "SELECT word FROM information_schema.keywords",
            "SELECT function FROM information_schema.sql_functions",
            "SELECT name FROM mysql.help_topic",
        ],
        Kind::MySql => &["SELECT word FROM information_schema.keywords", "SELECT name FROM mysql.help_topic"],
    };
    let mut words = BTreeSet::from(["no_such_function".to_owned()]);
    for source in sources {
        let names = admin.query(source).await.rows().into_iter().flatten().flatten();
        let is_word = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        words.extend(names.filter(is_word).map(|name| name.to_ascii_lowercase()).filter(|name| !is_internal(name)));
    }
    assert!(words.len() > 500, "{words:?}");
    words
}

/// Functions that the server has for itself: nobody calls them, so they need not be known.
fn is_internal(name: &str) -> bool {
    let fronts = ["internal_", "get_dd_", "can_access_", "is_visible_dd_", "sql_tsi_"];
    fronts.iter().any(|front| name.starts_with(front)) || name.ends_with("_oracle")
}

/// "FUNCTION .. does not exist": a stored function is what the server was looking for.
async fn looks_for_a_function(direct: &mut Wire, text: &str) -> Option<bool> {
    let reply = direct.command(Command::StmtPrepare, text.as_bytes()).await;
    match reply.error().map(|(code, _)| code) {
        Some(1305 | 1630) => Some(true),
        Some(1064) => None,
        Some(_) => Some(false),
        None => {
            let id = reply.raw[0].1[1..5].to_vec();
            direct.send(Command::StmtClose, &id).await;
            Some(false)
        }
    }
}

on_both!(whatever_the_server_takes_for_a_stored_function_is_one, |t| async move {
    let mut direct = t.direct(&t.app()).await;
    let version = direct.one("SELECT VERSION()").await;
    let numbers: Vec<u32> = version.split(['.', '-']).filter_map(|part| part.parse().ok()).collect();
    let version = numbers[0] * 10_000 + numbers[1] * 100 + numbers[2];
    let words = words(&t).await;
    for ignore_space in [false, true] {
        if ignore_space {
            direct.query("SET sql_mode = CONCAT(@@sql_mode, ',IGNORE_SPACE')").await.expect_ok();
        }
        let mode = Mode { ignore_space, mariadb: t.kind == Kind::MariaDb, version, ..Mode::default() };
        let mut odd: Vec<String> = Vec::new();
        for word in &words {
            for name in [word.clone(), format!("{word} "), format!("`{word}`"), format!("{word}/**/")] {
                for arguments in ["", "1", "1, 2", "'a', 2, 3"] {
                    let text = format!("SELECT {name}({arguments})");
                    let found = sql::effects(text.as_bytes(), mode).may(Flags::CALLS_FUNCTION);
                    match looks_for_a_function(&mut direct, &text).await {
                        // With one number of arguments this is the server's own, with others not.
                        Some(true) if t.kind == Kind::MySql || word != "point" => assert!(found, "{text}"),
                        Some(false) if word != "point" && found => odd.push(text),
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(odd, Vec::<String>::new(), "the server's own");
    }
});

// Where the lexer does not look for calls, the server allows none.
on_both!(no_table_is_made_by_a_stored_function, |t| async move {
    let mut direct = t.direct(&t.app()).await;
    direct.query("CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC RETURN n").await.expect_ok();
    direct.query("CREATE TABLE t (n INT)").await.expect_ok();
    for text in [
        "CREATE TABLE u (n INT DEFAULT (f(1)))",
        "CREATE TABLE u (n INT, m INT AS (f(n)))",
        "CREATE TABLE u (n INT, CHECK (f(n)))",
        "CREATE TABLE u (n INT, KEY k ((f(n))))",
        "CREATE TABLE u (n INT) PARTITION BY HASH (f(n))",
        "CREATE TABLE u (n INT) PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN (f(1)))",
        "ALTER TABLE t ADD COLUMN m INT DEFAULT (f(1))",
        "ALTER TABLE t ADD CHECK (f(n))",
        "ALTER TABLE t PARTITION BY LIST (n) (PARTITION p VALUES IN (f(1)))",
        "CREATE INDEX i ON t ((f(n)))",
        "CREATE EVENT e ON SCHEDULE AT f(1) DO DELETE FROM t",
        "CREATE EVENT e ON SCHEDULE EVERY f(1) DAY DO DELETE FROM t",
        "CREATE SEQUENCE s START WITH f(1)",
        "INSERT INTO t PARTITION (f(1)) VALUES (1)",
        "INSERT INTO t (f(1)) VALUES (1)",
        "CREATE VIEW v (f(1)) AS SELECT 1",
        // Nor where another value stands in front, or what makes the next word a name.
        "SELECT 'a' f(1)",
        "SELECT 1 f(1)",
        "SELECT (1) f(1)",
        "SELECT n f(1) FROM t",
        "SELECT 1 AS f(1)",
        "SELECT .f(1)",
        "SELECT f(SELECT 1)",
        "SELECT f(*)",
        "SET f(1) = 1",
        "SELECT 1 INTO f(1)",
        "TABLE f(1)",
        "WITH f(1) SELECT 1",
    ] {
        let reply = direct.query(text).await;
        assert!(reply.error().is_some(), "{text}: {reply:?}");
    }
});

/// A function that leaves things behind: a variable, a lock, and a temporary table.
async fn careless(t: &Setup) {
    let mut client = t.direct(&t.app()).await;
    let lock = format!("{}.f", t.schema);
    for sql in [
        "CREATE TABLE t (n INT)".to_owned(),
        "INSERT INTO t VALUES (1)".to_owned(),
        format!(
            "CREATE FUNCTION f() RETURNS INT NOT DETERMINISTIC READS SQL DATA BEGIN \
             SELECT 7 INTO @left; SET @locked = GET_LOCK('{lock}', 5); SET time_zone = '+7:00'; \
             CREATE TEMPORARY TABLE own (n INT); RETURN 1; END"
        ),
        format!(
            "CREATE PROCEDURE p() BEGIN SET sql_mode = 'ANSI'; SELECT 7 INTO @left; SET time_zone = '+7:00'; \
             SET @locked = GET_LOCK('{lock}', 5); CREATE TEMPORARY TABLE own (n INT); END"
        ),
    ] {
        client.query(&sql).await.expect_ok();
    }
}

/// What the session has of what the function or procedure left.
async fn left(t: &Setup, client: &mut Wire) -> Vec<Option<String>> {
    let lock = format!("{}.f", t.schema);
    let sql = format!("SELECT @left, @@time_zone, @@sql_mode = 'ANSI', IS_USED_LOCK('{lock}') IS NOT NULL");
    let mut found = client.query(&sql).await.rows().remove(0);
    found.push(Some(client.query("SELECT * FROM own").await.error().is_none().to_string()));
    found
}

on_both!(what_unseen_code_leaves_is_its_callers, |t| async move {
    careless(&t).await;
    for (n, text) in ["SELECT f()", "DO f()", "UPDATE t SET n = f()", "INSERT INTO t (n) VALUES (f())", "CALL p()"]
        .into_iter()
        .enumerate()
    {
        let (mut client, mut other, mut direct) = (t.client().await, t.client().await, t.direct(&t.app()).await);
        let nothing = left(&t, &mut other).await;
        let wanted = direct.query(text).await;
        assert_eq!(wanted.error(), None, "{text}");
        let had = left(&t, &mut direct).await;
        assert_eq!(had[0].as_deref(), Some("7"), "{text}");
        drop(direct);
        while other.one(&format!("SELECT IS_FREE_LOCK('{}.f')", t.schema)).await != "1" {}
        // By text, and prepared.
        if n % 2 == 0 {
            client.query(text).await.expect_ok();
        } else {
            let id = client.prepare(text).await.to_le_bytes();
            client.command(Command::StmtExecute, &[&id[..], &[0, 1, 0, 0, 0]].concat()).await.expect_ok();
            client.send(Command::StmtClose, &id).await;
        }
        t.until("myriad_pinned_clients", Some("call"), 1.0).await;
        for _ in 0..3 {
            let mut others = left(&t, &mut other).await;
            others[3] = nothing[3].clone(); // whether somebody has the lock
            assert_eq!(others, nothing, "{text}");
        }
        assert_eq!(left(&t, &mut client).await, had, "{text}");
        client.command(Command::ResetConnection, b"").await.expect_ok();
        assert_eq!(left(&t, &mut client).await, nothing, "{text}");
        t.until("myriad_pinned_clients", None, 0.0).await;
    }
});

on_both!(what_the_server_does_itself_pins_nobody, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT PRIMARY KEY, KEY k (n))").await.expect_ok();
    for sql in [
        "INSERT INTO t (n) VALUES (1), (ABS(-2)), (LENGTH('abc'))",
        "SELECT COUNT(*), MAX(n), IF(n > 1, CONCAT('a', n), CAST(n AS CHAR(10))) FROM t USE INDEX (k) GROUP BY n",
        "WITH x (a) AS (SELECT 1), y (b) AS (SELECT 2) SELECT * FROM x JOIN y ON (a < b) WHERE a IN (1, 2)",
        "SELECT n, ROW_NUMBER() OVER (ORDER BY n) FROM t WHERE n = ANY (SELECT n FROM t)",
        "UPDATE t SET n = n + (10) WHERE n NOT IN (2)",
    ] {
        client.query(sql).await.expect_ok();
        assert_eq!(other.one("SELECT 1").await, "1", "{sql}");
    }
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
});

/// Routines that leave nothing, or only what the server reports.
async fn careful(client: &mut Wire) {
    for sql in [
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
        "CREATE PROCEDURE fill(a INT) BEGIN DECLARE x INT DEFAULT double_of(a); \
         INSERT INTO t (n) VALUES (x), (x + 1); SELECT COUNT(*) FROM t WHERE n >= x; END",
        "CREATE FUNCTION double_of(a INT) RETURNS INT DETERMINISTIC RETURN a * 2",
        "CREATE FUNCTION touch() RETURNS INT NOT DETERMINISTIC MODIFIES SQL DATA BEGIN \
         INSERT INTO t (n) VALUES (77); RETURN LAST_INSERT_ID(); END",
        "CREATE PROCEDURE zone(z VARCHAR(10)) SET time_zone = z",
        "CREATE PROCEDURE counts() SELECT COUNT(*), MAX(n) INTO @n, @max FROM t",
        "CREATE PROCEDURE tells() SELECT @n + 1 AS n, @max, @nobody",
        "CREATE PROCEDURE warn() SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)",
        "CREATE PROCEDURE fails() INSERT INTO t (id, n) VALUES (1, 1), (1, 1)",
        "CREATE PROCEDURE outer_one(a INT) CALL fill(double_of(a))",
    ] {
        client.query(sql).await.expect_ok();
    }
}

on_both!(what_a_body_shows_to_leave_nothing_pins_nobody, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for (login, schema) in [(t.app(), t.schema.clone()), (t.app(), t.twin_schema())] {
        let mut direct = t.direct(&Login { schema: Some(schema), ..login }).await;
        careful(&mut direct).await;
    }
    let (id, count, warnings) = ("SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()", "SHOW WARNINGS");
    for round in 0..2 {
        println!("round {round}");
        twin.queries(&[
            "SELECT double_of(4)",
            id,
            "CALL fill(3)",
            id,
            "CALL fill(3)",
            count,
            "CALL warn()",
            warnings,
            "CALL counts()",
            "SELECT @n, @max",
            "CALL tells()",
            "SET @n = 'text'",
            "CALL counts()",
            "CALL tells()",
            "SELECT touch()",
            id,
            count,
            "UPDATE t SET n = double_of(n) WHERE n < 50",
            count,
            "CALL outer_one(double_of(5))",
            warnings,
            id,
            "CALL zone('+03:00')",
            "SELECT @@time_zone",
            "SET time_zone = DEFAULT",
            "SELECT no_such_function(1)",
            warnings,
            "DO double_of(1)",
        ])
        .await;
    }
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
    // In a transaction the question waits for its end.
    twin.query_and_keep("BEGIN").await;
    twin.query_and_keep("CALL fill(9)").await;
    twin.query_and_keep("SELECT double_of(1)").await;
    twin.query("ROLLBACK").await;
    twin.query("SELECT COUNT(*) FROM t").await;
    // Of what fails nobody knows what it did before.
    twin.query_and_keep("CALL fails()").await;
    t.until("myriad_pinned_clients", Some("call"), 1.0).await;
});

// MariaDB takes back the sql_mode that a procedure has set, but its status says ANSI_QUOTES until the next SET.
on_both!(the_mode_of_a_procedure_is_nobody_elses, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut other = Twin::new(&t, &t.app()).await;
    for schema in [t.schema.clone(), t.twin_schema()] {
        let mut direct = t.direct(&Login { schema: Some(schema), ..t.app() }).await;
        direct.query("CREATE PROCEDURE ansi() SET sql_mode = 'ANSI'").await.expect_ok();
    }
    for _ in 0..2 {
        twin.query_and_keep("CALL ansi()").await;
        twin.query_and_keep("SELECT @@sql_mode").await;
        twin.command(Command::ResetConnection, b"").await;
        other.query("SELECT @@sql_mode").await;
        other.query("PREPARE p FROM 'SELECT 1'").await;
    }
});

on_both!(a_routine_that_is_replaced_is_read_again, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE PROCEDURE p() SELECT 1").await.expect_ok();
    for _ in 0..3 {
        client.query("CALL p()").await.expect_ok();
    }
    assert_eq!(t.metric("myriad_pins_total", Some("call")), 0.0);
    other.query("DROP PROCEDURE p").await.expect_ok();
    other.query("CREATE PROCEDURE p() SET @a = 1").await.expect_ok();
    client.query("CALL p()").await.expect_ok();
    t.until("myriad_pinned_clients", Some("call"), 1.0).await;
    assert_eq!(client.one("SELECT @a").await, "1");
});

/// The operator knows this one.
fn vouched(config: &mut Config) {
    config.session.harmless_routines = Some(vec!["Known".into(), "nowhere.unknown".into()]);
}

on_both!(whom_the_operator_vouches_for_pins_nobody, vouched, |t| async move {
    let mut admin = t.direct(&Login { schema: Some(t.schema.clone()), ..Login::admin() }).await;
    for name in ["known", "unknown"] {
        admin.query(&format!("CREATE PROCEDURE {name}() SELECT 1")).await.expect_ok();
    }
    let mut other = t.client_as(&Login { user: "other", password: "other-secret", ..t.app() }).await;
    // Whose body one may not read.
    other.query("CALL known()").await.expect_ok();
    other.query("CALL known()").await.expect_ok();
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
    other.query("CALL unknown()").await.expect_ok();
    t.until("myriad_pinned_clients", Some("call"), 1.0).await;
});
