//! The schemas that a script finds when it starts: the same in both worlds, but for their names.

use std::time::{Duration, Instant};

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use tokio::task::JoinSet;

use super::script::Names;
use crate::support::{Login, Setup, Wire};

/// Read by everybody, changed only while nobody has anything open.
const SHARED: &[&str] = &[
    "CREATE TABLE {o}.here (v VARCHAR(20), n INT)",
    "INSERT INTO {o}.here VALUES ('the other schema', 2)",
    "CREATE TABLE here (v VARCHAR(20), n INT)",
    "INSERT INTO here VALUES ('the schema', 1)",
    "CREATE TABLE shared (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4, n INT, d DATETIME, t TIMESTAMP NULL)",
    "INSERT INTO shared VALUES (1, 'one', 10, '2020-02-29 12:00:00', FROM_UNIXTIME(1000000000)), \
     (2, 'two', 20, NULL, FROM_UNIXTIME(1100000000)), (3, 'dr\u{e9}i', 30, '2021-01-01', NULL), (4, NULL, NULL, NULL, NULL), \
     (5, 'five', 50, '1999-12-31 23:59:59', FROM_UNIXTIME(1200000000)), (6, 'SIX', 60, NULL, NULL)",
    "CREATE TABLE altered (id INT PRIMARY KEY, v VARCHAR(20))",
    "INSERT INTO altered VALUES (1, 'a'), (2, 'b')",
    "CREATE PROCEDURE p_many() BEGIN SELECT 1 AS a; SELECT id, v FROM {s}.shared WHERE id < 3 ORDER BY id; END",
    "CREATE PROCEDURE p_none() BEGIN END",
    "CREATE PROCEDURE p_mode() BEGIN SET sql_mode = 'ANSI'; SET @p = 5; END",
    "CREATE PROCEDURE p_zone() SET time_zone = '+07:00'",
    "CREATE PROCEDURE p_temp() BEGIN DROP TEMPORARY TABLE IF EXISTS tmp; CREATE TEMPORARY TABLE tmp (id INT); INSERT INTO tmp VALUES (77); END",
    "CREATE PROCEDURE p_lock() DO GET_LOCK('{s}.p', 0)",
    "CREATE PROCEDURE p_open() BEGIN START TRANSACTION; SELECT COUNT(*) FROM {s}.shared; END",
    "CREATE PROCEDURE p_fail() BEGIN SELECT 1 AS a; SET @p = 'failed'; SELECT * FROM nowhere; END",
    "CREATE PROCEDURE p_warn() SELECT CAST('p' AS SIGNED), CAST('q' AS SIGNED)",
    "CREATE PROCEDURE p_out(INOUT a INT, OUT b VARCHAR(20)) BEGIN SET a = a + 1; SET b = 'out'; END",
    "CREATE PROCEDURE p_id(k INT) DO LAST_INSERT_ID(k)",
    "CREATE FUNCTION f_pure(x INT) RETURNS INT DETERMINISTIC RETURN 2 * x",
    "CREATE FUNCTION f_var(x INT) RETURNS INT DETERMINISTIC BEGIN SET @by_function = x; RETURN x; END",
    "CREATE FUNCTION f_lock(x INT) RETURNS INT DETERMINISTIC RETURN GET_LOCK(CONCAT('{s}.f', x), 0)",
];

/// What one client alone uses.
const OWN: &[&str] = &[
    "CREATE TABLE t{c} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20) UNIQUE, n INT NOT NULL DEFAULT 7)",
    "INSERT INTO t{c} (v, n) VALUES ('a', 1), ('b', 2), ('c', 3)",
    "CREATE TABLE g{c} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))",
    "CREATE TRIGGER trigger_{c} BEFORE INSERT ON g{c} FOR EACH ROW SET @by_trigger = NEW.v",
];

/// The names of the proxied world, and of the direct one.
pub(super) fn names(t: &Setup) -> (Names, Names) {
    let twin = t.twin_schema();
    let other = format!("{twin}_1");
    (Names { schema: t.schema.clone(), other: t.tenant(1) }, Names { schema: twin, other })
}

/// Makes everything, for clients of these numbers.
pub(super) async fn build(t: &Setup, clients: &[usize]) {
    let (proxied, direct) = names(t);
    let mut admin = t.direct(&Login::admin().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    let more = format!(
        "CREATE DATABASE {}; CREATE DATABASE {}; CREATE DATABASE {}",
        proxied.other, direct.schema, direct.other
    );
    admin.query(&more).await.expect_ok();
    let mut work = JoinSet::new();
    for names in [proxied, direct] {
        let login = Login { schema: Some(names.schema.clone()), ..Login::app() };
        let shared = SHARED.iter().map(|sql| names.fill(sql.as_bytes())).collect();
        work.spawn(run(t.direct(&login).await, shared));
        for clients in clients.chunks(clients.len().div_ceil(4).max(1)) {
            let own = clients.iter().flat_map(|client| OWN.iter().map(|sql| sql.replace("{c}", &client.to_string())));
            work.spawn(run(t.direct(&login).await, own.map(String::into_bytes).collect()));
        }
    }
    while let Some(done) = work.join_next().await {
        done.expect("the stage is built");
    }
}

async fn run(mut app: Wire, statements: Vec<Vec<u8>>) {
    // FROM_UNIXTIME() must not depend on where the server is.
    app.query("SET time_zone = '+00:00'").await.expect_ok();
    for sql in statements {
        app.command(Command::Query, &sql).await.expect_ok();
    }
}

/// Takes away what the setup does not know of.
pub(super) async fn clear(t: &Setup) {
    let (proxied, direct) = names(t);
    let mut admin = t.admin().await;
    // What is prepared belongs to nobody only once its connection is gone.
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        let prepared = admin.query("XA RECOVER").await.rows();
        let ids = prepared.into_iter().filter_map(|row| row.get(3).cloned().flatten());
        let ours: Vec<_> = ids.filter(|id| [&proxied, &direct].iter().any(|it| id.starts_with(&it.schema))).collect();
        if ours.is_empty() || Instant::now() > limit {
            break;
        }
        for id in ours {
            admin.query(&format!("XA ROLLBACK '{id}'")).await;
        }
    }
    for schema in [direct.other, direct.schema] {
        admin.query(&format!("DROP DATABASE IF EXISTS {schema}")).await.expect_ok();
    }
}
