//! Questions about the statement before that are prepared statements.

use super::{LONG, NULL, long, text};
use crate::support::{Kind, Twin, on_both, one_backend};

/// Statements that leave something to ask about; `t` has three rows.
const CAUSES: &[&str] = &[
    "INSERT INTO t VALUES (4), (5)",
    "SELECT n, CAST('x' AS SIGNED) FROM t LIMIT 2",
    "SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1",
    "SELECT * FROM no_such_table",
    "DO 1",
];

/// Both servers prepare these.
const QUESTIONS: &[&str] = &[
    "SELECT ROW_COUNT()",
    "SELECT ROW_COUNT() AS n, FOUND_ROWS()",
    "SELECT LAST_INSERT_ID(), ROW_COUNT()",
    "SELECT FOUND_ROWS()",
    "SELECT n, ROW_COUNT() FROM t WHERE n > ROW_COUNT() ORDER BY n LIMIT 2",
    "INSERT INTO log VALUES (ROW_COUNT(), FOUND_ROWS())",
    "UPDATE log SET a = ROW_COUNT() + 7",
    "DO ROW_COUNT()",
];

/// Of these MySQL says that it cannot prepare them.
const LISTS: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW WARNINGS LIMIT 1",
    "SHOW ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW COUNT(*) ERRORS",
    "SELECT @@warning_count",
    "SELECT @@error_count AS e, ROW_COUNT()",
    "GET DIAGNOSTICS @a = NUMBER, @b = ROW_COUNT",
    "GET DIAGNOSTICS CONDITION 1 @a = MYSQL_ERRNO, @b = MESSAGE_TEXT",
];

async fn tables(twin: &mut Twin) {
    twin.queries(&[
        "CREATE TABLE IF NOT EXISTS t (n INT)",
        "CREATE TABLE IF NOT EXISTS log (a BIGINT, b BIGINT)",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1), (2), (3)",
        "SELECT n FROM t",
    ])
    .await;
}

on_both!(prepared_questions_are_answered, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    tables(&mut twin).await;
    let lists = if t.kind == Kind::MariaDb { LISTS } else { &[] };
    for question in QUESTIONS.iter().chain(lists) {
        let id = twin.prepare(question).await;
        for cause in CAUSES {
            twin.query(cause).await;
            twin.execute(id, &[]).await;
            twin.query("SELECT ROW_COUNT(), FOUND_ROWS()").await;
            twin.query(cause).await;
            twin.execute(id, &[]).await;
            twin.query("SHOW WARNINGS").await;
            twin.query(cause).await;
            twin.execute(id, &[]).await;
            twin.execute(id, &[]).await;
        }
        twin.queries(&["SELECT a, b FROM log", "SELECT @a, @b"]).await;
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});

on_both!(old_clients_prepare_the_same, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app().old()).await;
    tables(&mut twin).await;
    let lists = if t.kind == Kind::MariaDb { &LISTS[..6] } else { &[] };
    for question in QUESTIONS[..1].iter().chain(lists) {
        let id = twin.prepare(question).await;
        for cause in CAUSES.iter().filter(|cause| !cause.contains("SQL_CALC_FOUND_ROWS")) {
            twin.query(cause).await;
            twin.execute(id, &[]).await;
        }
    }
});

on_both!(prepared_questions_may_have_parameters, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    tables(&mut twin).await;
    for question in [
        "SELECT ROW_COUNT(), ?",
        "SELECT ? AS p, ROW_COUNT() + 1 AS n, FOUND_ROWS()",
        "SELECT n FROM t WHERE n > ROW_COUNT() AND n <> ? ORDER BY n",
        "INSERT INTO log VALUES (ROW_COUNT(), ?)",
    ] {
        let id = twin.prepare(question).await;
        for cause in CAUSES {
            for param in [long(7), (LONG, None), (NULL, None), text("8")] {
                twin.query(cause).await;
                twin.execute(id, std::slice::from_ref(&param)).await;
                twin.query("SELECT ROW_COUNT(), FOUND_ROWS()").await;
                // The types that came once hold on.
                twin.query(cause).await;
                twin.execute_with(id, &[param], false).await;
                twin.query("SHOW WARNINGS").await;
            }
        }
        twin.query("SELECT a, b FROM log").await;
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});
