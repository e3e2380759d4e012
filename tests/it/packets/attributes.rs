//! CLIENT_QUERY_ATTRIBUTES: texts with something in front of them, and executes in another layout. (MariaDB does not have
//! it: there the same tests run without.)

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Setup, Twin, Wire, on_both, one_backend};

fn login(t: &Setup) -> Login {
    t.app().with(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
}

/// An execute of a statement with these parameters, all texts, and attributes.
fn execute(t: &Setup, id: u32, values: &[&str], with_types: bool, attributes: &[(&str, &str)]) -> Vec<u8> {
    let named = t.kind == Kind::MySql;
    let attributes = if named { attributes } else { &[] };
    let short = |text: &str| u8::try_from(text.len()).expect("a short text");
    let count = values.len() + attributes.len();
    let mut packet = [&id.to_le_bytes()[..], &[if named { 8 } else { 0 }, 1, 0, 0, 0]].concat();
    if count == 0 && !named {
        return packet;
    }
    if named {
        packet.push(u8::try_from(count).expect("few"));
    }
    packet.extend(vec![0; count.div_ceil(8)]);
    packet.push(u8::from(with_types));
    let names = values.iter().map(|_| "").chain(attributes.iter().map(|(name, _)| *name));
    for name in names.filter(|_| with_types) {
        packet.extend([0xfd, 0]);
        if named {
            packet.push(short(name));
            packet.extend(name.as_bytes());
        }
    }
    for value in values.iter().copied().chain(attributes.iter().map(|(_, value)| *value)) {
        packet.push(short(value));
        packet.extend(value.as_bytes());
    }
    packet
}

on_both!(offered_as_by_the_server, |t| async move {
    let (proxied, direct) = (t.client_as(&login(&t)).await, t.direct(&login(&t)).await);
    for client in [proxied, direct] {
        let has = client.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
        assert_eq!(has, t.kind == Kind::MySql);
    }
});

on_both!(
    /// With somebody else on the backend after each: restores, saves and answers from memory go in front and in place.
    texts_are_found_behind_their_attributes,
    one_backend,
    |t| async move {
        let mut twin = Twin::new(&t, &login(&t)).await;
        twin.queries(&[
            "SET time_zone = '+02:00', sql_mode = 'ANSI_QUOTES'",
            "SELECT @@time_zone, \"a\" FROM (SELECT 1 AS a) t",
            "SELECT CAST('x' AS SIGNED)",
            "SHOW WARNINGS",
            "SELECT 1 UNION SELECT 2",
            "SELECT FOUND_ROWS(), ROW_COUNT()",
            "SET @a = 'mine'",
            "SELECT @a",
            "CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)",
            "INSERT INTO kept (v) VALUES ('x'), ('y')",
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "SELECT nothing",
            "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT",
            "SELECT @m",
            "BEGIN_THIS_IS_NOT",
            "",
        ])
        .await;
        assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
    }
);

on_both!(
    /// A text that is read as it passes.
    long_texts_are_found_too,
    one_backend,
    |t| async move {
        let mut twin = Twin::new(&t, &login(&t)).await;
        let long = "x".repeat(300_000);
        twin.query(&format!("SET /* {long} */ @a = 5, time_zone = '+03:00'")).await;
        twin.query(&format!("SELECT @a, @@time_zone /* {long} */")).await;
        twin.query(&format!("SELECT LENGTH('{}')", "y".repeat(17 << 20))).await;
        twin.query("SELECT @a, @@time_zone").await;
    }
);

async fn executes(t: &Setup) {
    let mut twin = Twin::new(t, &login(t)).await;
    let mut ids = Vec::new();
    for sql in ["SELECT ?, ?", "SELECT CONCAT(?, '!')", "SELECT 1", "SELECT ROW_COUNT(), ?"] {
        ids.push(twin.prepare(sql).await);
        twin.intrude().await;
    }
    let attributes = [("traced", "yes"), ("a", "")];
    for round in 0..3 {
        // Types are sent once, and put in where the backend does not know them.
        let with_types = round == 0;
        for (packet, some) in [
            (execute(t, ids[0], &["one", "two"], with_types, &[]), false),
            (execute(t, ids[1], &["hello"], with_types, &[]), false),
            (execute(t, ids[2], &[], true, &[]), false),
            (execute(t, ids[3], &["hello"], with_types, &[]), false),
            (execute(t, ids[0], &["", "more"], true, &attributes), true),
            (execute(t, ids[2], &[], true, &attributes), true),
        ] {
            let reply = twin.command(Command::StmtExecute, &packet).await;
            assert_eq!(reply.error(), None, "{round} {some}");
            twin.intrude().await;
        }
    }
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
}

on_both!(executes_are_carried, one_backend, |t| async move { executes(&t).await });

on_both!(
    apart
    /// What a text is told, a function reads; and whoever comes next is told nothing.
    attributes_arrive,
    |config| config.pool.max_connections = 3,
    |t| async move {
        let mut direct = t.master().await;
        if t.kind == Kind::MySql {
            // It may have been left there.
            direct.query("INSTALL COMPONENT 'file://component_query_attributes'").await;
        }
        let (mut client, mut other) = (t.client_as(&login(&t)).await, t.client_as(&login(&t)).await);
        let look = match t.kind {
            Kind::MySql => "SELECT mysql_query_attribute_string('who')",
            Kind::MariaDb => "SELECT 'me'",
        };
        let told = client.query_with("who", "me", look).await;
        assert_eq!(told.rows(), [[Some("me".to_owned())]]);
        if t.kind == Kind::MySql {
            assert_eq!(other.query(look).await.rows(), [[None]]);
            assert_eq!(client.query(look).await.rows(), [[None]]);
            let id = client.prepare("SELECT mysql_query_attribute_string('who'), ?").await;
            let packet = execute(&t, id, &["x"], true, &[("who", "you")]);
            let answer = client.command(Command::StmtExecute, &packet).await;
            assert!(answer.raw.iter().any(|(_, payload)| payload.ends_with(b"\x03you\x01x")), "{answer:?}");
        }
        drop((client, other));
        if t.kind == Kind::MySql {
            t.until("myriad_backend_connections", Some("leased"), 0.0).await;
            t.drain().await;
            direct.query("UNINSTALL COMPONENT 'file://component_query_attributes'").await.expect_ok();
        }
    }
);

on_both!(
    /// Nothing that a text could begin behind.
    what_is_malformed_is_refused_as_by_the_server,
    |t| async move {
        let answers = async |mut wire: Wire| {
            let mut answers = Vec::new();
            for front in [&b"\x05\x01"[..], b"\x02\x01\0\x01\xfe"] {
                let mut packet = vec![0, 0, 0, 0, Command::Query.byte()];
                packet.extend(front);
                packet[0] = u8::try_from(packet.len() - 4).expect("short");
                wire.write(&packet).await;
                answers.push(wire.reply(Command::Query).await.expect("a reply").error().map(|(code, _)| code));
            }
            answers
        };
        if t.kind == Kind::MySql {
            let wanted = answers(t.direct(&login(&t)).await).await;
            assert_eq!(answers(t.client_as(&login(&t)).await).await, wanted);
        }
    }
);

on_both!(
    /// The server reads these as strings, whatever their type's size is: in front of `SELECT` it sees a comment begin, behind
    /// which the rest is hidden from whoever counts another number of bytes.
    no_text_hides_behind_a_type_of_another_size,
    one_backend,
    |t| async move {
        if t.kind != Kind::MySql {
            return;
        }
        let (mut client, mut thief) = (t.client_as(&login(&t)).await, t.client_as(&login(&t)).await);
        client.query("PREPARE p FROM 'SELECT ''mine'''").await.expect_ok();
        for (kind, front) in [(6, &b""[..]), (9, b"/* "), (13, b"-"), (244, b"")] {
            assert_eq!(client.one("EXECUTE p").await, "mine");
            let attribute = [&[1, 1, 0, 1, kind, 0, 1, b'n', 0], front].concat();
            let packet = [&[Command::Query.byte()], &*attribute, b"SELECT 1 -- */ EXECUTE p"].concat();
            let header = [u8::try_from(packet.len()).expect("short"), 0, 0, 0];
            thief.write(&[&header[..], &packet].concat()).await;
            thief.reply(Command::Query).await.expect("a reply").expect_error(1835);
        }
        assert_eq!(client.one("EXECUTE p").await, "mine");
    }
);
