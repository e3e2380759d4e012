//! C3: LOAD DATA LOCAL: the file travels from the client to the server, whatever its name.

use bytes::BytesMut;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;

use crate::support::{Kind, Login, Setup, Wire, on_both, one_backend};

const LOAD: &str = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE loaded";

/// Numbered lines of 100 bytes each.
fn lines(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| format!("{i:08}\t{i:090}\n").into_bytes()).collect()
}

async fn table(client: &mut Wire) {
    client.query("CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(100))").await.expect_ok();
}

/// Runs a statement that asks for files; each is this one.
async fn load(client: &mut Wire, sql: &str, file: &[u8]) -> crate::support::Packets {
    client.send(Command::Query, sql.as_bytes()).await;
    client.reply_with(Command::Query, file).await.expect("a reply")
}

async fn count(client: &mut Wire) -> String {
    client.one("SELECT COUNT(*) FROM loaded WHERE id = v").await
}

async fn several_megabytes(t: &Setup, login: Login) {
    let mut client = t.client_as(&login).await;
    table(&mut client).await;
    let reply = load(&mut client, LOAD, &lines(40_000)).await;
    reply.expect_ok();
    assert_eq!(reply.ok().affected_rows, 40_000);
    assert_eq!(reply.ok().info, b"Records: 40000  Deleted: 0  Skipped: 0  Warnings: 0");
    assert_eq!(count(&mut client).await, "40000");
}

on_both!(a_file_of_several_megabytes, |t| async move { several_megabytes(&t, t.app()).await });
on_both!(a_file_of_several_megabytes_of_an_old_client, |t| async move { several_megabytes(&t, t.app().old()).await });

on_both!(no_file_or_half_a_file, |t| async move {
    let mut client = t.client().await;
    table(&mut client).await;
    // A driver that cannot or will not read its file sends an empty packet, at once or half way.
    let reply = load(&mut client, LOAD, b"").await;
    assert_eq!(reply.ok().affected_rows, 0);
    let reply = load(&mut client, LOAD, &lines(10)[..555]).await;
    assert_eq!((reply.ok().affected_rows, reply.raw.len()), (6, 2));
    assert_eq!(client.one("SELECT COUNT(*) FROM loaded").await, "6");
});

on_both!(a_server_that_does_not_like_the_file, |t| async move {
    let mut client = t.client().await;
    table(&mut client).await;
    load(&mut client, "LOAD DATA LOCAL INFILE 'x' INTO TABLE nowhere", &lines(3)).await.expect_error(1146);
    let twice = [lines(2000), lines(1)].concat();
    let reply = load(&mut client, LOAD, &twice).await;
    assert_eq!((reply.ok().affected_rows, reply.ok().warnings), (2000, 1), "LOCAL means IGNORE");
    client.query("ALTER TABLE loaded ADD CONSTRAINT small CHECK (id < 100)").await.expect_error(expected_check(&t));
    assert_eq!(client.one("SELECT 'still here'").await, "still here");
});

/// How the server words that existing rows violate a new CHECK.
fn expected_check(t: &Setup) -> u16 {
    match t.kind {
        Kind::MariaDb => 4025,
        Kind::MySql => 3819,
    }
}

// What an old client is sent has more packets than what the server sends: the numbers of its file's packets must be
// put right, and so must those of the replies behind it.
on_both!(a_file_behind_a_result, |t| async move {
    for login in [t.app(), t.app().old()] {
        let login = login.with(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
        let sql = format!("SELECT 1, 2; SELECT * FROM loaded; {LOAD}; SELECT COUNT(*) FROM loaded; {LOAD}; DO 1");
        let mut replies = Vec::new();
        for mut client in [t.direct(&login).await, t.client_as(&login).await] {
            table(&mut client).await;
            let file = lines(300);
            let reply = load(&mut client, &sql, &file).await;
            reply.expect_ok();
            assert_eq!(reply.rows().last(), Some(&vec![Some("300".to_owned())]));
            assert_eq!(count(&mut client).await, "300");
            client.query("DROP TABLE loaded").await.expect_ok();
            replies.push(reply.raw);
        }
        assert_eq!(replies[0], replies[1]);
    }
});

// MariaDB alone prepares it.
on_both!(a_file_for_a_prepared_statement, one_backend, |t| async move {
    let mut client = t.client().await;
    table(&mut client).await;
    let by_name = client.query(&format!("PREPARE l FROM '{}'", LOAD.replace('\'', "''"))).await.error();
    let reply = client.command(Command::StmtPrepare, LOAD.as_bytes()).await;
    if t.kind == Kind::MySql {
        assert_eq!((by_name.map(|it| it.0), reply.error().map(|it| it.0)), (Some(1295), Some(1295)));
        return;
    }
    let id = reply.raw[0].1[1..5].to_vec();
    client.send(Command::StmtExecute, &[&id[..], &[0, 1, 0, 0, 0]].concat()).await;
    client.reply_with(Command::StmtExecute, &lines(300)).await.expect("a reply").expect_ok();
    assert_eq!(count(&mut client).await, "300");
    client.query("DELETE FROM loaded").await.expect_ok();
    load(&mut client, "EXECUTE l", &lines(200)).await.expect_ok();
    assert_eq!(count(&mut client).await, "200");
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
});

// Without CLIENT_LOCAL_FILES nobody may ask for a file.
on_both!(a_client_without_files, |t| async move {
    let login = Login { capabilities: t.app().capabilities - CapabilityFlags::CLIENT_LOCAL_FILES, ..t.app() };
    let (mut direct, mut client) = (t.direct(&login).await, t.client_as(&login).await);
    table(&mut client).await;
    let refused = client.query(LOAD).await;
    assert!(refused.error().is_some(), "{refused:?}");
    assert_eq!(refused.raw, direct.query(LOAD).await.raw);
});

// The answer to a LOAD does not say which ids it has generated.
on_both!(ids_of_a_file, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE loaded (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60))").await.expect_ok();
    client.query("INSERT INTO loaded VALUES (70, 'first')").await.expect_ok();
    assert_eq!(other.one("SELECT LAST_INSERT_ID()").await, "0");
    load(&mut client, &format!("{LOAD} (v)"), b"second\nthird\n").await.expect_ok();
    for _ in 0..2 {
        assert_eq!(other.one("SELECT LAST_INSERT_ID()").await, "0");
        assert_eq!(client.one("SELECT LAST_INSERT_ID()").await, "71");
    }
});

// The client goes away in the middle of its file: nothing is loaded, and the backend's place is free again.
on_both!(a_client_that_is_lost_half_way, |t| async move {
    let mut watcher = t.client().await;
    table(&mut watcher).await;
    let mut client = t.client().await;
    client.send(Command::Query, LOAD.as_bytes()).await;
    let (header, request) = client.frame().await.expect("a request for the file");
    assert_eq!((header.seq, &request[..]), (1, &b"\xfb/etc/passwd"[..]));
    let mut out = BytesMut::new();
    write_packet(&mut out, 2, &lines(500));
    client.write(&out).await;
    drop(client);
    t.until("myriad_clients", None, 1.0).await;
    t.until("myriad_backend_connections", Some("leased"), 0.0).await;
    assert_eq!(watcher.one("SELECT COUNT(*) FROM loaded").await, "0");
});
