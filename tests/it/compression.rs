//! Compression between client and proxy: zlib on both servers, zstd on MySQL, offered as the server offers it.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::BytesMut;
use myriad::protocol::capability::{COMPRESSION, CapabilityFlags};
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;
use myriad::protocol::handshake::{LoginError, TlsWish};

use crate::prepared::{execute, long};
use crate::support::{Kind, Login, Setup, Wire, on_both, one_backend};

const ZLIB: CapabilityFlags = CapabilityFlags::CLIENT_COMPRESS;
const ZSTD: CapabilityFlags = CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM;

/// A login for each kind of compression that this server has.
fn logins(t: &Setup) -> Vec<Login> {
    let zstd = (t.kind == Kind::MySql).then(|| t.app().with(ZSTD));
    [t.app().with(ZLIB), t.app().old().with(ZLIB)].into_iter().chain(zstd).collect()
}

/// Commands as they are, in one write, and in frames of their own.
async fn ahead(client: &mut Wire, texts: &[&str]) {
    let mut together = Vec::new();
    for text in texts {
        let mut out = BytesMut::new();
        write_packet(&mut out, 0, &[&[Command::Query.byte()], text.as_bytes()].concat());
        let packed = client.packed.as_mut().expect("compression");
        packed.seq = 0;
        together.extend(packed.pack(&out));
    }
    client.try_write(&together).await.expect("the proxy listens");
}

on_both!(of_all_sizes, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&login).await;
        for size in [1, 10, 40, 50, 51, 1000, 16_000, 16_384, 70_000, 1_000_000] {
            let text = format!("SELECT LENGTH('{}')", "x".repeat(size));
            assert_eq!(client.one(&text).await, size.to_string());
            assert_eq!(client.one(&format!("SELECT REPEAT('y', {size})")).await, "y".repeat(size));
        }
        let packed = client.packed.as_ref().expect("compression was agreed on");
        assert!(packed.frames.1 > 50 && packed.received < 200_000, "{:?}, {}", packed.frames, packed.received);
        client.split = true;
        assert_eq!(client.one("SELECT 'byte by byte', 'and long enough to be compressed'").await, "byte by byte");
    }
});

on_both!(frames_are_those_of_the_server, |t| async move {
    for login in logins(&t) {
        let (mut client, mut direct) = (t.client_as(&login).await, t.direct(&login).await);
        for text in ["SELECT 1", "SELECT REPEAT('x', 100)", "SELECT REPEAT('x', 27)", "DO 1"] {
            assert_eq!(client.query(text).await.raw, direct.query(text).await.raw);
            let frames = |wire: &Wire| wire.packed.as_ref().expect("compression").frames;
            assert_eq!(frames(&client), frames(&direct), "{text}");
        }
    }
});

on_both!(twenty_megabytes_either_way, |t| async move {
    const SIZE: usize = 20_000_000;
    for login in logins(&t) {
        let mut client = t.client_as(&login).await;
        client.query("CREATE TABLE large (b LONGBLOB)").await.expect_ok();
        let mut text = String::with_capacity(SIZE + 200);
        text.push_str("INSERT INTO large VALUES ('");
        while text.len() < SIZE + 100 {
            let n = text.len();
            let _ = write!(text, "{n:x}-");
        }
        text.push_str("')");
        // A frame for each buffer of a client's, and as large as they may be.
        for most in [16_384, 0xff_ffff] {
            client.packed.as_mut().expect("compression").most = most;
            client.query(&text).await.expect_ok();
        }
        assert_eq!(client.one("SELECT COUNT(DISTINCT b) FROM large").await, "1");
        let parts = "SELECT SUBSTRING(b, 1 + n * 5000000, 5000000) FROM (SELECT b FROM large LIMIT 1) AS one, \
                     (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) AS n ORDER BY n";
        let rows = client.query(parts).await.rows();
        let blob: String = rows.into_iter().flatten().flatten().collect();
        assert!(blob.len() >= SIZE && text == format!("INSERT INTO large VALUES ('{blob}')"));
        client.query("DROP TABLE large").await.expect_ok();
    }
});

on_both!(many_rows, one_backend, |t| async move {
    let numbers = "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) ";
    for login in logins(&t) {
        let (mut client, mut plain) = (
            t.client_as(&login).await,
            t.client_as(&Login { capabilities: login.capabilities - COMPRESSION, ..login.clone() }).await,
        );
        let text = format!("{numbers} SELECT a.i, b.i, 'and so on' FROM n a, n b WHERE a.i < 50");
        assert_eq!(client.query(&text).await.raw, plain.query(&text).await.raw);
    }
});

on_both!(commands_sent_ahead, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&login).await;
        let texts = ["SELECT 'first'", "SELECT REPEAT('second', 10000)", "SELECT 'third'"];
        ahead(&mut client, &texts).await;
        for wanted in ["first".to_owned(), "second".repeat(10_000), "third".to_owned()] {
            // Each reply counts from its command.
            client.packed.as_mut().expect("compression").seq = 1;
            let reply = client.reply(Command::Query).await.expect("a reply");
            assert_eq!(reply.rows()[0][0].as_ref(), Some(&wanted));
        }
        assert_eq!(client.one("SELECT 'alone'").await, "alone");
    }
});

on_both!(the_file_of_load_data, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&login.with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
        client.query("CREATE TABLE loaded (n INT, s VARCHAR(40))").await.expect_ok();
        let file: String = (0..50_000).map(|n| format!("{n}\tline {n}\n")).collect();
        for (text, parts) in [("", 0), ("SELECT 1, 2; ", 1)] {
            client.packed.as_mut().expect("compression").most = 4000;
            let text = format!("{text}LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded");
            client.send(Command::Query, text.as_bytes()).await;
            let reply = client.reply_with(Command::Query, file.as_bytes()).await.expect("a reply");
            reply.expect_ok();
            assert_eq!(reply.rows().len(), parts);
        }
        assert_eq!(client.one("SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM loaded").await, "100000 2499950000");
        client.query("DROP TABLE loaded").await.expect_ok();
    }
});

on_both!(prepared_statements, one_backend, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&login).await;
        let id = client.prepare("SELECT REPEAT('z', ?), 'of a prepared statement'").await;
        for size in [1, 30, 3000] {
            let reply = execute(&mut client, id, &[long(size)]).await;
            reply.expect_ok();
            // Somebody else's turn on the same backend.
            assert_eq!(t.client().await.one("SELECT 'other'").await, "other");
        }
    }
});

on_both!(a_change_of_users_goes_on_compressed, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&login).await;
        let other = Login { user: "other", password: "other-secret", schema: None, ..login.clone() };
        client.change_user(&other).await.expect("the other user");
        assert!(client.one("SELECT CURRENT_USER(), REPEAT('x', 100)").await.starts_with("other@"));
        client.command(Command::ResetConnection, b"").await.expect_ok();
        client.change_user(&login).await.expect("the first user");
        assert!(client.one("SELECT CURRENT_USER(), REPEAT('x', 100)").await.starts_with("app@"));
    }
});

on_both!(inside_tls, |t| async move {
    for login in logins(&t) {
        let mut client = t.client_as(&Login { tls: TlsWish::Required, ..login }).await;
        for size in [1, 1000, 300_000] {
            assert_eq!(client.one(&format!("SELECT REPEAT('y', {size})")).await, "y".repeat(size));
        }
        let other = Login { user: "other", password: "other-secret", schema: None, ..t.app() };
        client.change_user(&other).await.expect("the other user");
        assert!(client.one("SELECT CURRENT_USER(), REPEAT('x', 100)").await.starts_with("other@"));
    }
});

on_both!(of_both_kinds_zlib_is_taken, |t| async move {
    for wire in [t.client_as(&t.app().with(COMPRESSION)).await, t.direct(&t.app().with(COMPRESSION)).await] {
        let mut wire = wire;
        assert_eq!(wire.one("SELECT REPEAT('y', 1000)").await, "y".repeat(1000));
    }
});

on_both!(off, |config| config.server.compression = false, |t| async move {
    let mut client = t.client_as(&t.app().with(COMPRESSION)).await;
    assert!(client.packed.is_none());
    assert_eq!(client.one("SELECT REPEAT('y', 1000)").await, "y".repeat(1000));
});

on_both!(a_refused_login_is_told_plainly, |t| async move {
    for login in logins(&t) {
        let wrong = Login { password: "wrong", ..login };
        let refused = Wire::connect(t.address, &wrong).await.map(|_| ());
        assert!(matches!(refused, Err(LoginError::Server { code: 1045, .. })), "{refused:?}");
    }
});

on_both!(
    an_idle_client_is_told_why_it_goes,
    |config| config.server.idle_timeout = Duration::from_secs(1),
    |t| async move {
        for login in logins(&t) {
            let mut client = t.client_as(&login).await;
            assert_eq!(client.one("SELECT REPEAT('y', 200000)").await.len(), 200_000);
            // As a client reads it that has just sent a command.
            client.packed.as_mut().expect("compression").seq = 1;
            let (_, payload) = client.frame().await.expect("an error");
            assert_eq!(payload[0], 0xff);
            assert!(client.frame().await.is_err());
        }
    }
);

on_both!(frames_out_of_order_end_the_connection, |t| async move {
    for login in logins(&t) {
        for wire in [t.client_as(&login).await, t.direct(&login).await] {
            let mut client = wire;
            let packed = client.packed.as_mut().expect("compression");
            packed.seq = 7;
            let frame = packed.pack(b"\x01\0\0\0\x0e");
            client.try_write(&frame).await.expect("somebody listens");
            while client.read_some().await > 0 {}
        }
        // Nor does garbage do more than that.
        let mut client = t.client_as(&login).await;
        client.try_write(b"\x40\0\0\0\xff\xff\xff").await.expect("the proxy listens");
        client.try_write(&[0x55; 64]).await.expect("the proxy listens");
        while client.read_some().await > 0 {}
    }
});
