//! TLS with clients, and with the server.

use std::path::PathBuf;

use myriad::config::{BackendTls, BackendTlsMode, Config, ServerTlsMode};
use myriad::protocol::handshake::{LoginError, TlsWish};

use super::{logins, outcome, refusal};
use crate::support::{Login, Setup, Wire, on_both};

fn inside(t: &Setup) -> Login {
    Login { tls: TlsWish::Required, ..t.app() }
}

on_both!(offered_and_taken, |t| async move {
    let mut client = t.client_as(&inside(&t)).await;
    for size in [1, 100, 16_000, 16_384, 33_000, 200_000] {
        let text = format!("SELECT LENGTH('{}')", "x".repeat(size));
        assert_eq!(client.one(&text).await, size.to_string());
        assert_eq!(client.one(&format!("SELECT REPEAT('y', {size})")).await, "y".repeat(size));
    }
    client.split = true;
    assert_eq!(client.one("SELECT 'byte by byte'").await, "byte by byte");
    assert_eq!(t.client().await.one("SELECT 'not taken'").await, "not taken");
    let mut old = t.client_as(&Login { tls: TlsWish::Preferred, ..t.app().old() }).await;
    assert_eq!(old.one("SELECT 1").await, "1");
});

on_both!(off, |config| config.server.tls.mode = ServerTlsMode::Off, |t| async move {
    assert_eq!(outcome(t.address, &inside(&t)).await, Err(LoginError::TlsNotOffered));
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
});

on_both!(required, |config| config.server.tls.mode = ServerTlsMode::Required, |t| async move {
    let (code, words) = refusal(outcome(t.address, &t.app()).await);
    assert_eq!(code, 3159, "{words}");
    assert!(words.starts_with("Connections using insecure transport are prohibited"), "{words}");
    assert_eq!(logins(&t, "denied"), 1.0);
    assert_eq!(t.client_as(&inside(&t)).await.one("SELECT 1").await, "1");
});

on_both!(garbage_where_tls_should_start, |t| async move {
    t.client().await;
    let mut stranger = Wire::open(t.address).await;
    stranger.frame().await.expect("a greeting");
    // An SSLRequest (CLIENT_PROTOCOL_41, CLIENT_SSL and others), and then no TLS.
    stranger.write(b"\x20\0\0\x01\x85\xae\xff\x01\0\0\0\x01\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").await;
    stranger.write(b"SELECT 1 without any TLS").await;
    while stranger.read_some().await > 0 {}
    t.until("myriad_client_logins_total", Some("garbage"), 1.0).await;
});

/// The authority of the servers' certificates.
fn authority() -> PathBuf {
    std::env::var_os("MYRIAD_TEST_CA").expect("MYRIAD_TEST_CA is set as the servers are").into()
}

/// An authority that has signed nothing.
fn stranger() -> PathBuf {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = std::env::temp_dir().join(format!("myriad-stranger-{}.pem", std::process::id()));
    std::fs::write(&file, made.cert.pem()).expect("a file");
    file
}

fn to_server(config: &mut Config, mode: BackendTlsMode, ca: Option<PathBuf>, server_name: Option<&str>) {
    config.backend.tls = BackendTls { mode, ca, server_name: server_name.map(str::to_owned) };
}

/// The cipher that the server sees; empty without TLS.
async fn cipher(t: &Setup) -> String {
    t.client().await.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.rows()[0][1].clone().expect("a value")
}

on_both!(
    with_a_server_that_is_verified,
    |config| to_server(config, BackendTlsMode::Required, Some(authority()), None),
    |t| async move {
        let cipher = cipher(&t).await;
        assert!(cipher.contains("AES") || cipher.contains("CHACHA"), "{cipher:?}");
        let mut client = t.client_as(&inside(&t)).await;
        assert_eq!(client.one("SELECT REPEAT('z', 100000)").await, "z".repeat(100_000));
    }
);

on_both!(
    with_a_server_that_is_not_verified,
    |config| to_server(config, BackendTlsMode::Preferred, None, None),
    |t| async move { assert_ne!(cipher(&t).await, "") }
);

on_both!(with_a_server_in_clear, |t| async move { assert_eq!(cipher(&t).await, "") });

/// Nobody gets in, and everybody is told where to look.
async fn nobody_gets_in(t: &Setup) {
    for _ in 0..2 {
        let (code, words) = refusal(outcome(t.address, &t.app()).await);
        assert_eq!(code, 1160, "{words}");
        assert!(words.contains("TLS with 127.0.0.1") && words.contains("backend.tls"), "{words}");
    }
    assert!(t.metric("myriad_backend_opens_total", Some("tls")) >= 2.0);
    assert_eq!((logins(t, "backend"), t.metric("myriad_backend_opens_total", Some("ok"))), (2.0, 0.0));
}

on_both!(
    with_a_server_of_another_authority,
    |config| to_server(config, BackendTlsMode::Required, Some(stranger()), None),
    |t| async move { nobody_gets_in(&t).await }
);

on_both!(
    with_a_server_of_another_name,
    |config| to_server(config, BackendTlsMode::Required, Some(authority()), Some("db.example.org")),
    |t| async move { nobody_gets_in(&t).await }
);
