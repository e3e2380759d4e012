//! C4: bytes mean what the client's character set says, whoever else uses the backend.

use myriad::protocol::command::Command;
use myriad::protocol::response::Class;

use super::execute_one;
use crate::support::{Login, Setup, Twin, Wire, on_both, one_backend};

/// The collation numbers of the handshake: what a client that speaks it calls é, and its character set's name.
const LATIN1: (u8, &[u8], &str) = (8, b"\xe9", "latin1");
const UTF8MB4: (u8, &[u8], &str) = (45, "é".as_bytes(), "utf8mb4");
const CP850: (u8, &[u8], &str) = (4, b"\x82", "cp850");

async fn client(t: &Setup, collation: u8) -> Wire {
    t.client_as(&Login { collation, ..t.app() }).await
}

/// Sends é as the client writes it, by text and by execute, and reads it back.
async fn speaks(client: &mut Wire, e: &[u8]) {
    let text = [b"SELECT HEX(CONVERT('", e, b"' USING utf8mb4)), '", e, b"'"].concat();
    let reply = client.command(Command::Query, &text).await;
    let row = &reply.raw[reply.classes.iter().position(|class| *class == Class::Row).expect("a row")].1;
    let len = u8::try_from(e.len()).expect("a length");
    assert_eq!(row[..], [&b"\x04C3A9"[..], &[len], e].concat(), "é by text");

    let id = client.prepare("SELECT HEX(CONVERT(? USING utf8mb4))").await;
    let reply = client.command(Command::StmtExecute, &execute_one(id, 0xfd, e)).await;
    let row = &reply.raw[reply.classes.iter().position(|class| *class == Class::Row).expect("a row")].1;
    assert_eq!(row[..], b"\0\0\x04C3A9"[..], "é by execute");
    client.send(Command::StmtClose, &id.to_le_bytes()).await;
}

on_both!(the_handshake_names_the_character_set, one_backend, |t| async move {
    for (collation, e, name) in [LATIN1, UTF8MB4, CP850] {
        let mut client = client(&t, collation).await;
        assert_eq!(client.one("SELECT @@character_set_client").await, name);
        speaks(&mut client, e).await;
    }
});

on_both!(clients_with_different_character_sets_take_turns, one_backend, |t| async move {
    let mut clients = Vec::new();
    for (collation, e, name) in [LATIN1, UTF8MB4, CP850] {
        clients.push((client(&t, collation).await, e, name));
    }
    clients[0].0.query("CREATE TABLE words (v VARCHAR(10) CHARACTER SET utf8mb4, name VARCHAR(10))").await.expect_ok();
    for _ in 0..3 {
        for (client, e, name) in &mut clients {
            speaks(client, e).await;
            let sql = [b"INSERT INTO words VALUES ('", *e, b"', '", name.as_bytes(), b"')"].concat();
            client.command(Command::Query, &sql).await.expect_ok();
        }
    }
    for (client, e, name) in &mut clients {
        let all = client.one("SELECT COUNT(*) FROM words WHERE HEX(v) = 'C3A9'").await;
        assert_eq!(all, "9", "{name}");
        let found = client.command(Command::Query, &[b"SELECT v FROM words WHERE v = '", *e, b"'"].concat()).await;
        let rows = found.classes.iter().zip(&found.raw).filter(|(class, _)| **class == Class::Row);
        assert!(rows.clone().all(|(_, (_, row))| row[1..] == **e), "{name}: {found:?}");
        assert_eq!(rows.count(), 9, "{name}");
    }
});

on_both!(set_names_in_every_spelling, one_backend, |t| async move {
    let mut other = client(&t, CP850.0).await;
    let mut client = t.client().await;
    let variables = "SELECT CONCAT_WS(' ', @@character_set_client, @@character_set_connection, \
                     @@character_set_results, @@collation_connection)";
    for (set, wanted) in [
        ("SET NAMES 'latin1' COLLATE 'latin1_german1_ci'", "latin1 latin1 latin1 latin1_german1_ci"),
        ("SET NAMES \"utf8mb4\" COLLATE \"utf8mb4_bin\"", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_bin"),
        ("set/**/names`latin1`collate`latin1_bin`", "latin1 latin1 latin1 latin1_bin"),
        (
            "SET NAMES latin2, @@session.collation_connection = utf8mb4_unicode_ci",
            "latin2 utf8mb4 latin2 utf8mb4_unicode_ci",
        ),
        ("SET character_set_client = cp850, character_set_results = latin1", "cp850 utf8mb4 latin1 utf8mb4_unicode_ci"),
        ("SET character_set_connection = latin1", "cp850 latin1 latin1 latin1_swedish_ci"),
        ("SET NAMES utf8mb4", ""),
        ("SET collation_connection = utf8mb4_bin", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_bin"),
    ] {
        let reply = client.query(set).await;
        reply.expect_ok();
        assert_eq!(other.one("SELECT @@character_set_client").await, "cp850");
        let got = client.one(variables).await;
        if wanted.is_empty() {
            assert!(got.starts_with("utf8mb4 utf8mb4 utf8mb4 utf8mb4_"), "{set}: {got}");
        } else {
            assert_eq!(got, wanted, "{set}");
        }
    }
    client.query("SET NAMES 'latin1' COLLATE 'utf8mb4_bin'").await.expect_error(1253);
    assert_eq!(client.one("SELECT @@collation_connection").await, "utf8mb4_bin", "a refused SET changes nothing");
});

// Character sets whose second byte may look like a quote's escape, and those that no client may speak.
on_both!(odd_character_sets, one_backend, |t| async move {
    let mut other = t.client().await;
    let mut client = t.client().await;
    client.query("SET NAMES gbk").await.expect_ok();
    assert_eq!(other.one("SELECT 1").await, "1");
    let reply = client.command(Command::Query, b"SELECT HEX('\xbf\x5c'), 1").await;
    assert_eq!(reply.rows(), [[Some("BF5C".to_owned()), Some("1".to_owned())]]);
    // Here the quote does not end, for the backslash escapes it: an error, and not two statements.
    let reply = client.command(Command::Query, b"SELECT HEX('\xbf\x5c\x5c'), 1").await;
    reply.expect_error(1064);
    assert_eq!(other.one("SELECT 2").await, "2");
    client.query("SET NAMES utf16").await.expect_error(1231);
    assert_eq!(client.one("SELECT @@character_set_client").await, "gbk");
});

// A collation that the server does not know gets the server's default; one that no client may speak is refused.
on_both!(a_handshake_with_an_unusable_collation, one_backend, |t| async move {
    let variables = "SELECT CONCAT_WS(' ', @@character_set_client, @@character_set_connection, \
                     @@character_set_results, @@collation_connection)";
    // 0: none, 255: utf8mb4_0900_ai_ci or nothing, 35: ucs2_general_ci, 63: binary, 250: nobody's.
    for collation in [0, 255, 35, 54, 60, 63, 250, 33, 46, 192, 247] {
        let login = Login { collation, ..t.app() };
        let direct = match Wire::connect(t.server, &login).await {
            Ok(mut direct) => Ok(direct.one(variables).await),
            Err(error) => Err(error),
        };
        let proxied = match Wire::connect(t.address, &login).await {
            Ok(mut proxied) => Ok(proxied.one(variables).await),
            Err(error) => Err(error),
        };
        assert_eq!(proxied, direct, "collation {collation}");
    }
});

on_both!(
    /// Which no variable shows.
    results_have_the_collation_that_they_are_said_to_have, one_backend, |t| async move {
        for collation in [45, 83, 33, 8, 47] {
            let mut twin = Twin::new(&t, &Login { collation, ..t.app() }).await;
            let statements = [
                "SELECT 'x'",
                "SET collation_connection = utf8mb4_bin",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET collation_connection = utf8mb4_bin",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET character_set_results = utf8mb4",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET NAMES latin1",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET character_set_client = utf8mb4",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET character_set_results = NULL",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET character_set_results = utf8mb3",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
                "SET CHARACTER SET latin2",
                "SELECT MONTHNAME('2020-03-01'), 'x'",
            ];
            twin.queries(&statements).await;
        }
    }
);
