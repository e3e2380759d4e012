//! Types of parameters: sent once, kept by the server, put in where another backend does not know them.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::MAX_PAYLOAD;

use super::{BLOB, DATE, DOUBLE, LONG, NULL, STRING, execute, execution, field, long, text};
use crate::support::{Kind, Login, Twin, Wire, on_both, one_backend, own_backends};

on_both!(types_sent_once_are_known_wherever_it_is_executed, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.prepare("SELECT ? AS a, ? AS b").await;
    twin.execute_with(1, &[long(1), text("never bound")], false).await.expect_error(1210);
    twin.execute(1, &[long(1), (STRING, None)]).await;
    twin.execute_with(1, &[long(2), text("x")], false).await;
    twin.execute_with(1, &[(LONG, None), text("y")], false).await;
    twin.execute(1, &[(NULL, None), text("z")]).await;
    twin.execute_with(1, &[(LONG, None), (STRING, None)], false).await;
    twin.command(Command::StmtReset, &1_u32.to_le_bytes()).await;
    twin.execute_with(1, &[long(3), text("after a reset")], false).await;
    // Cut short: the server's error, and what follows is not disturbed.
    let whole = execution(1, false, &[long(4), text("cut")], true);
    for len in [4, 9, 10, 11, 13, 15, 17] {
        twin.command(Command::StmtExecute, &whole[..len]).await;
        twin.intrude().await;
    }
    twin.execute(1, &[long(5), text("as before")]).await;
});

on_both!(types_sent_once_are_known_to_a_new_backend, own_backends, |t| async move {
    let mut client = t.client().await;
    let id = client.prepare("SELECT CONCAT(?, '/', ?)").await;
    let params = |n: i32, s: &str| [long(n), text(s)];
    assert_eq!(field(&execute(&mut client, id, &params(1, "a")).await), b"\x031/a");
    for round in 0..3 {
        t.kill_backends().await;
        let again = execution(id, false, &params(round, "b"), false);
        let reply = client.command(Command::StmtExecute, &again).await;
        assert_eq!(field(&reply), format!("\x03{round}/b").as_bytes());
    }
});

// What one client binds must not show in what another gets: MySQL makes up its mind by the first types.
on_both!(what_others_bind_does_not_matter, one_backend, |t| async move {
    let date = || (DATE, Some(vec![4, 0xe8, 0x07, 2, 29]));
    let double = || (DOUBLE, Some(1.5_f64.to_le_bytes().to_vec()));
    for sql in ["SELECT ? AS a", "SELECT ? + 1 AS a", "SELECT CONCAT(?, 'x') AS a", "SELECT COALESCE(?, 'y') AS a"] {
        let all = [date(), double(), long(7), text("12 monkeys"), (NULL, None), (BLOB, Some(b"\x0242".to_vec()))];
        let mut first = t.client().await;
        let id = first.prepare(sql).await;
        for mine in &all {
            for theirs in &all {
                execute(&mut first, id, std::slice::from_ref(theirs)).await;
                let (mut proxied, mut direct) = (t.client().await, t.direct(&t.app()).await);
                let mut replies = Vec::new();
                for wire in [&mut proxied, &mut direct] {
                    let id = wire.prepare(sql).await;
                    replies.push(execute(wire, id, std::slice::from_ref(mine)).await.raw);
                }
                assert_eq!(replies[0], replies[1], "{sql} with {mine:?} after {theirs:?}");
            }
        }
    }
});

on_both!(an_execute_finds_what_earlier_ones_have_decided, one_backend, |t| async move {
    let date = || (DATE, Some(vec![4, 0xe8, 0x07, 2, 29]));
    let double = || (DOUBLE, Some(1.5_f64.to_le_bytes().to_vec()));
    let blob = || (BLOB, Some(b"\x04blob".to_vec()));
    let mut twin = Twin::new(&t, &t.app()).await;
    for sql in ["SELECT ? AS a, ? AS b", "SELECT @a := ?, COLLATION(?) AS c", "SELECT 1 AS one FROM DUAL WHERE ? = ?"] {
        if sql.contains(":=") && t.kind == Kind::MariaDb {
            // There an assigned NULL has the collation of what was bound before.
            continue;
        }
        for all in [
            vec![[double(), long(1)], [long(2), (LONG, None)], [(NULL, None), text("x")]],
            vec![[date(), blob()], [(DATE, None), (BLOB, None)], [date(), text("x")]],
            vec![[long(1), text("x")], [double(), text("x")], [long(2), long(3)], [(NULL, None), (NULL, None)]],
            vec![[(LONG, None), (LONG, None)], [long(5), (STRING, None)], [(LONG, None), double()]],
            vec![[text("x"), text("y")], [(NULL, None), text("z")], [blob(), text("z")]],
        ] {
            let id = twin.prepare(sql).await;
            for params in all {
                twin.execute(id, &params).await;
                twin.execute_with(id, &params, false).await;
            }
        }
    }
    twin.query("SELECT @a").await;
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
    // One that fails leaves what the statement before had found.
    if t.kind == Kind::MariaDb {
        return;
    }
    let id = twin.prepare("SELECT ? AS a, CAST(? AS JSON) AS b").await;
    twin.execute(id, &[double(), text("1")]).await;
    twin.query_and_keep("SELECT 1 AS n UNION SELECT 2 UNION SELECT 3").await;
    twin.execute(id, &[long(1), text("{")]).await;
    twin.query("SELECT FOUND_ROWS() AS f").await;
});

on_both!(one_client_may_change_its_mind, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    // Where the result does not tell how a parameter's length is counted.
    twin.query("CREATE TABLE t (n INT, m INT)").await;
    twin.prepare("SELECT 1 FROM t WHERE n = ? OR m = ? LIMIT 1").await;
    let double = (DOUBLE, Some(1.5_f64.to_le_bytes().to_vec()));
    for params in [[long(1), long(2)], [text("x"), long(1)], [double, text("y")], [(NULL, None), text("1")]] {
        twin.execute(1, &params).await;
        twin.execute_with(1, &params, false).await;
    }
});

// The packet grows by the types that are put in, over the boundaries of frames too: the reply is numbered as the client
// counts.
on_both!(
    types_are_put_into_packets_of_any_size,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        for login in [t.app(), t.app().old()] {
            around_the_boundary(&t, &login).await;
        }
    }
);

async fn around_the_boundary(t: &crate::support::Setup, login: &Login) {
    let mut client = t.client_as(login).await;
    let id = client.prepare("SELECT LENGTH(?), LENGTH(?)").await;
    let kinds = |n: usize| {
        let len = u32::try_from(n).expect("short enough");
        let prefix =
            if n < 1 << 24 { vec![0xfd, len as u8, (len >> 8) as u8, (len >> 16) as u8] } else { long_length(n) };
        (BLOB, Some([prefix, vec![b'x'; n]].concat()))
    };
    execute(&mut client, id, &[kinds(1 << 16), text("x")]).await.expect_ok();
    let front = 1 + 9 + 1 + 1;
    for size in
        [70_000, MAX_PAYLOAD - 5, MAX_PAYLOAD - 4, MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD - 4]
    {
        let header = if size - front - 6 < 1 << 24 { 4 } else { 9 };
        let len = size - front - header - 2;
        t.kill_backends().await;
        let packet = execution(id, false, &[kinds(len), text("x")], false);
        assert_eq!(1 + packet.len(), size);
        let reply = client.command(Command::StmtExecute, &packet).await;
        reply.expect_ok();
        let first = u8::try_from((1 + packet.len()) / MAX_PAYLOAD + 1).expect("few frames");
        assert_eq!(reply.raw.iter().map(|(seq, _)| *seq).next(), Some(first), "{size}");
        let wide = t.kind == Kind::MySql;
        let value = field(&reply);
        let got = if wide {
            u64::from_le_bytes(value[..8].try_into().unwrap())
        } else {
            u64::from(u32::from_le_bytes(value[..4].try_into().unwrap()))
        };
        assert_eq!(got, len as u64, "{size}");
    }
    assert!(!login.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) || client.one("SELECT 1").await == "1");
}

fn long_length(n: usize) -> Vec<u8> {
    [&[0xfe][..], &(n as u64).to_le_bytes()].concat()
}

on_both!(statements_of_many_parameters, one_backend, |t| async move {
    let mut other = t.client_as(&Login { schema: None, ..t.app() }).await;
    let mut client = t.client().await;
    let count = 20_000;
    let id = client.prepare(&format!("SELECT COALESCE({}?)", "?,".repeat(count - 1))).await;
    let values = |last: &str| {
        let mut params = vec![(STRING, None); count];
        params[count - 1] = text(last);
        params
    };
    let mut check = async |client: &mut Wire, last: &str, types| {
        let reply = client.command(Command::StmtExecute, &execution(id, false, &values(last), types)).await;
        assert_eq!(field(&reply)[1..], *last.as_bytes());
        other.query("SELECT 1").await.expect_ok();
    };
    check(&mut client, "with types", true).await;
    check(&mut client, "without", false).await;
});

on_both!(strings_are_bound_in_the_collation_of_their_types, one_backend, |t| async move {
    let sql = "SELECT COLLATION(?) AS c, HEX(?) AS h";
    let mut other = t.client().await;
    let theirs = other.prepare(sql).await;
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.prepare(sql).await;
    let params = || [text("a"), text("\u{e9}")];
    for collation in ["utf8mb4_bin", "utf8mb4_general_ci", "latin1_swedish_ci"] {
        twin.query(&format!("SET collation_connection = {collation}")).await;
        twin.execute(1, &params()).await;
        execute(&mut other, theirs, &params()).await.expect_ok();
        twin.execute_with(1, &params(), false).await;
    }
});
