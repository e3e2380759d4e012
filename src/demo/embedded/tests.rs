//! The embedded server, seen through a real client library.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};

use super::*;

fn options(server: &Embedded) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(server.address().port())
        .user(Some(USER))
        .pass(Some(PASSWORD))
        .db_name(Some(SCHEMA))
        .prefer_socket(false)
}

async fn connect(server: &Embedded) -> Conn {
    Conn::new(Opts::from(options(server))).await.unwrap()
}

#[tokio::test]
async fn answers_text_and_binary() {
    let server = Embedded::start().await.unwrap();
    let mut conn = connect(&server).await;
    let row: Option<(String, i64)> = conn.query_first("SELECT name, price FROM items WHERE id = 42").await.unwrap();
    assert_eq!(row, Some((name(42), price(42))));
    let row: Option<(i64, String)> = conn.exec_first("SELECT id, name FROM items WHERE id = ?", (7,)).await.unwrap();
    assert_eq!(row, Some((7, name(7))));
    let text: Option<String> = conn.exec_first("SELECT ?", ("it's",)).await.unwrap();
    assert_eq!(text.as_deref(), Some("it's"));
    let all: Vec<i64> = conn.query("SELECT id FROM items").await.unwrap();
    assert_eq!(all, (1..=ROWS).collect::<Vec<_>>());
    conn.query_drop("SET @a = 5, autocommit = 0").await.unwrap();
    let set: Option<(i64, i64)> = conn.query_first("SELECT @a, @@autocommit").await.unwrap();
    assert_eq!(set, Some((5, 0)));
    conn.ping().await.unwrap();
    let tables: Vec<String> = conn.query("SHOW TABLES").await.unwrap();
    assert_eq!(tables, [TABLE]);
    conn.disconnect().await.unwrap();
}

#[tokio::test]
async fn an_error_leaves_the_connection_usable() {
    let server = Embedded::start().await.unwrap();
    let mut conn = connect(&server).await;
    for sql in ["DROP TABLE items", "SELECT nothing FROM items"] {
        let error = conn.query_drop(sql).await.unwrap_err();
        assert!(matches!(error, Error::Server(_)), "{sql}: {error}");
    }
    let one: Option<i64> = conn.query_first("SELECT 1").await.unwrap();
    assert_eq!(one, Some(1));
}

#[tokio::test]
async fn only_its_account_comes_in() {
    let server = Embedded::start().await.unwrap();
    let refused = |options: OptsBuilder| async { Conn::new(Opts::from(options)).await.unwrap_err() };
    assert!(matches!(refused(options(&server).pass(Some("wrong"))).await, Error::Server(_)));
    assert!(matches!(refused(options(&server).pass(None::<String>)).await, Error::Server(_)));
    assert!(matches!(refused(options(&server).user(Some("root"))).await, Error::Server(_)));
    assert!(matches!(refused(options(&server).db_name(Some("mysql"))).await, Error::Server(_)));
}
