//! C5: commands that come together, and commands that come in pieces.

use bytes::BytesMut;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;

use super::execute_one;
use crate::support::{Login, Packets, Setup, Wire, on_both, one_backend};

/// Commands as one segment.
fn together(commands: &[(Command, &[u8])]) -> BytesMut {
    let mut out = BytesMut::new();
    for (command, argument) in commands {
        write_packet(&mut out, 0, &[&[command.byte()], *argument].concat());
    }
    out
}

const QUERY: Command = Command::Query;

/// Sends everything at once, then reads every reply.
async fn pipeline(client: &mut Wire, commands: &[(Command, &[u8])]) -> Vec<Packets> {
    client.write(&together(commands)).await;
    let mut replies = Vec::new();
    for (command, argument) in commands {
        let reply = client.reply(*command).await;
        replies.push(reply.unwrap_or_else(|error| panic!("no reply to {}: {error}", argument.escape_ascii())));
    }
    replies
}

async fn same_as_direct(t: &Setup, login: &Login) {
    let commands: [(Command, &[u8]); 14] = [
        (QUERY, b"SELECT 1"),
        (Command::Ping, b""),
        (QUERY, b"SET @a = 5"),
        (QUERY, b"SELECT @a, REPEAT('x', 40000)"),
        (QUERY, b"SELECT nothing"),
        (QUERY, b"SHOW WARNINGS"),
        (Command::InitDb, b"test2"),
        (QUERY, b"SELECT DATABASE()"),
        (Command::StmtPrepare, b"SELECT ?, ?"),
        (Command::Unknown(0x77), b"x"),
        (QUERY, b"BEGIN"),
        (QUERY, b"COMMIT"),
        (Command::ResetConnection, b""),
        (QUERY, b"SELECT @a"),
    ];
    let direct = pipeline(&mut t.direct(login).await, &commands).await;
    for split in [false, true] {
        let mut client = t.client_as(login).await;
        client.split = split;
        let proxied = pipeline(&mut client, &commands).await;
        for (((command, argument), direct), proxied) in commands.iter().zip(&direct).zip(&proxied) {
            if *command != Command::StmtPrepare {
                assert_eq!(proxied.raw, direct.raw, "split: {split}, {command:?} {}", argument.escape_ascii());
            }
        }
    }
}

on_both!(commands_in_one_segment_or_byte_by_byte, |t| async move { same_as_direct(&t, &t.app()).await });
on_both!(commands_of_an_old_client, |t| async move { same_as_direct(&t, &t.app().old()).await });

on_both!(more_commands_than_a_buffer_holds, |t| async move {
    let mut client = t.client().await;
    let texts: Vec<String> = (0..500).map(|n| format!("SELECT {n} /* {} */", "x".repeat(n % 300))).collect();
    let mut commands: Vec<(Command, &[u8])> = texts.iter().map(|text| (QUERY, text.as_bytes())).collect();
    commands.push((Command::Ping, b""));
    let bytes = together(&commands);
    assert!(bytes.len() > 60_000, "more than a few buffers");
    client.write(&bytes).await;
    for n in 0..500 {
        assert_eq!(client.reply(QUERY).await.expect("a reply").rows(), [[Some(n.to_string())]]);
    }
    client.reply(Command::Ping).await.expect("a reply").expect_ok();
});

on_both!(a_pipeline_that_waits_in_line, one_backend, |t| async move {
    let mut owner = t.client().await;
    owner.query("BEGIN").await.expect_ok();
    let mut client = t.client_as(&Login { schema: None, ..t.app() }).await;
    client.write(&together(&[(QUERY, b"SELECT 'a'"), (QUERY, b"SELECT 'b'"), (Command::Quit, b"")])).await;
    t.until("myriad_pool_waiting", None, 1.0).await;
    owner.query("COMMIT").await.expect_ok();
    for wanted in ["a", "b"] {
        assert_eq!(client.reply(QUERY).await.expect("a reply").rows(), [[Some(wanted.to_owned())]]);
    }
    assert!(client.frame().await.is_err(), "goodbye");
    t.until("myriad_client_goodbyes_total", Some("quit"), 1.0).await;
});

/// The statement, its file, and what comes next, all at once or byte by byte.
async fn behind_a_file(t: &Setup, login: &Login) {
    let mut client = t.client_as(login).await;
    for split in [false, true] {
        client.query("CREATE TABLE loaded (id INT, v VARCHAR(10))").await.expect_ok();
        let mut out = together(&[(QUERY, b"LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded")]);
        let mut seq = 2;
        for part in [&b"1\ta\n2"[..], b"\tb\n", b"3\tc\n", b""] {
            seq = write_packet(&mut out, seq, part);
        }
        out.extend_from_slice(&together(&[(QUERY, b"SELECT SUM(id) FROM loaded"), (QUERY, b"DROP TABLE loaded")]));
        client.split = split;
        client.write(&out).await;
        client.split = false;
        let (header, request) = client.frame().await.expect("a request");
        assert_eq!((header.seq, &request[..]), (1, &b"\xfbx"[..]));
        let (header, ok) = client.frame().await.expect("an OK");
        assert_eq!((header.seq, &ok[..2]), (6, &b"\0\x03"[..]), "{ok:?}");
        assert_eq!(client.reply(QUERY).await.expect("a reply").rows(), [[Some("6".to_owned())]]);
        client.reply(QUERY).await.expect("a reply").expect_ok();
    }
}

on_both!(commands_behind_a_file, |t| async move {
    behind_a_file(&t, &t.app()).await;
    behind_a_file(&t, &t.app().old()).await;
});

on_both!(everything_byte_by_byte, |t| async move {
    for login in [t.app(), t.app().old()] {
        let login = login.with(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
        let mut client = Wire::open(t.address).await;
        client.split = true;
        client.log_in(&login).await.expect("the proxy lets us in");
        let reply = client.query("SELECT 1; SELECT * FROM nowhere; SELECT 2").await;
        reply.expect_error(1146);
        assert_eq!(reply.rows(), [[Some("1".to_owned())]]);
        let id = client.prepare("SELECT CONCAT(?, '!')").await;
        let reply = client.command(Command::StmtExecute, &execute_one(id, 0xfd, b"hello")).await;
        assert!(reply.raw.iter().any(|(_, payload)| payload[..] == b"\0\0\x06hello!"[..]), "{reply:?}");
        let long = format!("SELECT LENGTH('{}')", "y".repeat(20_000));
        assert_eq!(client.one(&long).await, "20000");
    }
});

// A command that does not begin at number 0, and one without content: errors as on a server, and the end.
on_both!(packets_out_of_order, |t| async move {
    for (bytes, code) in [(&b"\x09\0\0\x05\x03SELECT 1"[..], 1156), (b"\0\0\0\0", 1047)] {
        let mut client = t.client().await;
        client.write(bytes).await;
        let (header, error) = client.frame().await.expect("an error");
        assert_eq!((header.seq, error[0], u16::from_le_bytes([error[1], error[2]])), (1, 0xff, code));
        assert!(client.frame().await.is_err(), "the connection is closed");
    }
});
