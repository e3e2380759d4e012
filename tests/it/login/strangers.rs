//! A4: whoever comes and does not log in.

use std::time::{Duration, Instant};

use myriad::config::Config;
use myriad::protocol::packet::err::ErrPacket;

use super::logins;
use crate::support::{Setup, Wire, on_both};

const LIMIT: Duration = Duration::from_millis(300);

fn impatient(config: &mut Config) {
    config.server.handshake_timeout = LIMIT;
}

on_both!(a_silent_client_is_dropped_in_time, impatient, |t| async move {
    t.client().await;
    let started = Instant::now();
    let mut silent = Wire::open(t.address).await;
    silent.frame().await.expect("a greeting");
    assert!(silent.frame().await.is_err(), "closed");
    let waited = started.elapsed();
    assert!(waited >= LIMIT, "after {waited:?}");
    t.until("myriad_client_logins_total", Some("timeout"), 1.0).await;
});

on_both!(a_client_that_dawdles_is_dropped_as_well, impatient, |t| async move {
    t.client().await;
    let mut slow = Wire::open(t.address).await;
    slow.frame().await.expect("a greeting");
    let started = Instant::now();
    // The header of a response of 100 bytes, then a byte at a time: each is progress, but the end never comes.
    slow.write(&[100, 0, 0, 1]).await;
    let dropped = async {
        loop {
            tokio::time::sleep(LIMIT / 20).await;
            if slow.try_write(b"x").await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), dropped).await.expect("the connection is closed");
    assert!(started.elapsed() >= LIMIT);
    t.until("myriad_client_logins_total", Some("timeout"), 1.0).await;
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
});

/// The code and the words of an error, if there was one.
type Answer = Option<(u16, String)>;

/// Sends this in answer to the greeting. What comes back before the end, if anything.
async fn say(t: &Setup, bytes: &[u8]) -> Answer {
    let mut stranger = Wire::open(t.address).await;
    stranger.frame().await.expect("a greeting");
    stranger.write(bytes).await;
    let (_, payload) = stranger.frame().await.ok()?;
    let error = ErrPacket::parse(&payload).expect("an error, if anything");
    assert!(stranger.frame().await.is_err(), "and that is all");
    Some((error.code, String::from_utf8_lossy(error.message).into_owned()))
}

on_both!(strangers_are_refused_and_counted, |t| async move {
    t.client().await;
    t.until("myriad_clients", None, 0.0).await;
    let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 and some random bytes";
    let many = [&[0xff, 0xff, 0xff, 1][..], &[b'x'; 100]].concat();
    let bad = Some((1043, "Bad handshake".to_owned()));
    let order = Some((1156, "Got packets out of order".to_owned()));
    let cases: [(&str, &[u8], Answer); 8] = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", None),
        ("HTTP", b"POST /x HTTP/1.1\r\n\r\n", None),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", None),
        ("a TLS hello", hello, None),
        ("a packet that is too large for a login", &many, bad.clone()),
        ("a packet out of order", b"\x20\0\0\x07 and so on, as long as it takes", order),
        ("an empty response", b"\0\0\0\x01", bad.clone()),
        ("a response cut short", b"\x08\0\0\x01\x85\xa6\xff\x01\0\0\0\x01", bad),
    ];
    let count = cases.len() as f64;
    for (what, bytes, wanted) in cases {
        assert_eq!(say(&t, bytes).await, wanted, "{what}");
    }
    t.until("myriad_client_logins_total", Some("garbage"), count).await;
    // Those that only look in, as a load balancer's health check does.
    for _ in 0..3 {
        drop(Wire::open(t.address).await);
    }
    t.until("myriad_client_logins_total", Some("gone"), 3.0).await;
    assert_eq!(logins(&t, "ok"), 1.0);
    t.until("myriad_clients", None, 0.0).await;
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
});
