//! Regressions: ways in which one session could once see another's, or hold on to what is everybody's.

use std::time::Duration;

use myriad::config::Config;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;

use crate::support::{Login, Wire, on_both, one_backend, own_backends};

/// One backend, and little time for those who stop half way.
fn impatient(config: &mut Config) {
    one_backend(config);
    config.limits.stall_timeout = Duration::from_secs(1);
}

on_both!(a_refused_option_leaves_several_statements_off, one_backend, |t| async move {
    let mut with = t.client_as(&t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    let mut without = t.client().await;
    with.command(Command::SetOption, &[7, 0]).await.expect_error(1047);
    assert_eq!(with.one("SELECT 1").await, "1");
    without.query("SELECT 1; SELECT 2").await.expect_error(1064);
});

on_both!(the_error_of_a_login_is_nobody_elses_warning, one_backend, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (a INT)").await.expect_ok();
    client.query("INSERT INTO t VALUES (1)").await.expect_ok();
    let lost = Login { schema: Some(format!("{}_is_nowhere", t.schema)), ..t.app() };
    assert!(Wire::connect(t.address, &lost).await.is_err());
    assert_eq!(client.query("SHOW WARNINGS LIMIT 5").await.rows().len(), 0);
});

on_both!(what_was_counted_for_another_is_shown_in_no_form, one_backend, |t| async move {
    let mut client = t.client_as(&t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    let mut other = t.client().await;
    let three = "SELECT 1 UNION SELECT 2 UNION SELECT 3";
    for (sql, wanted) in [
        ("SELECT FOUND_ROWS() + 0", "1"),
        ("SELECT FOUND_ROWS(); SELECT 2", "1"),
        ("SELECT ROW_COUNT(); SELECT 2", "-1"),
    ] {
        client.query("SELECT 1").await.expect_ok();
        other.query(three).await.expect_ok();
        assert_eq!(client.query(sql).await.rows()[0][0].as_deref(), Some(wanted));
    }
    let large = format!("SELECT FOUND_ROWS() /* {} */", "x".repeat(200_000));
    client.query("SELECT 1").await.expect_ok();
    other.query(three).await.expect_ok();
    assert_eq!(client.one(&large).await, "1");
    client.query("SELECT 1").await.expect_ok();
    other.query(three).await.expect_ok();
    let id = client.prepare("SELECT FOUND_ROWS()").await;
    let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    for _ in 0..2 {
        assert_eq!(client.command(Command::StmtExecute, &execute).await.raw[2].1[..3], [0, 0, 1]);
    }
});

on_both!(an_insert_id_that_was_lost_with_its_backend_is_not_made_up, own_backends, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)").await.expect_ok();
    client.query("INSERT INTO t (v) VALUES (1)").await.expect_ok();
    t.kill_backends().await;
    client.query("SELECT LAST_INSERT_ID()").await.expect_error(1158);
});

on_both!(a_client_that_stops_half_way_does_not_hold_its_backend_for_ever, impatient, |t| async move {
    let (mut stalled, mut other) = (t.client().await, t.client().await);
    let mut out = bytes::BytesMut::new();
    write_packet(&mut out, 0, &[&[Command::Query.byte()][..], "x".repeat(1_000_000).as_bytes()].concat());
    stalled.write(&out[..70_000]).await;
    t.until("myriad_backend_connections", Some("leased"), 1.0).await;
    other.query("SELECT 1").await.expect_ok();
    let mut reader = t.client().await;
    // Far more than the sockets' own buffers hold.
    reader.send(Command::Query, b"SELECT REPEAT('x', 60000000)").await;
    t.until("myriad_backend_connections", Some("leased"), 1.0).await;
    other.query("SELECT 1").await.expect_ok();
});

on_both!(
    /// Of the way back from a procedure's schema nothing is reported if the procedure fails.
    a_failed_procedure_chooses_no_schema, one_backend, |t| async move {
        let mut direct = t.direct(&t.app()).await;
        direct.query("CREATE PROCEDURE fails() BEGIN SELECT 1; SELECT * FROM nowhere; END").await.expect_ok();
        let (mut plain, mut other) = (t.client_as(&Login { schema: None, ..t.app() }).await, t.client().await);
        for _ in 0..2 {
            plain.query(&format!("CALL {}.fails()", t.schema)).await;
            plain.command(Command::ResetConnection, b"").await.expect_ok();
            assert_eq!(other.one("SELECT DATABASE()").await, t.schema);
            plain.query("DROP TEMPORARY TABLE IF EXISTS none").await.expect_error(1046);
            assert_eq!(plain.query("SELECT DATABASE()").await.rows(), [[None]]);
        }
    }
);
