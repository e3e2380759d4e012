//! The proxy introduces itself as its server does.

use myriad::protocol::capability::{CapabilityFlags, NEVER_OFFERED};
use myriad::protocol::handshake::ServerGreeting;

use crate::support::{Kind, Login, Wire, on_both};

async fn greeting(address: std::net::SocketAddr) -> ServerGreeting {
    let (header, payload) = Wire::open(address).await.frame().await.expect("a greeting");
    assert_eq!(header.seq, 0);
    ServerGreeting::parse(&payload).expect("a greeting that can be read")
}

on_both!(as_the_server_does, |t| async move {
    let (server, proxy) = (greeting(t.server).await, greeting(t.address).await);
    assert_eq!(proxy.version, server.version);
    assert_eq!(proxy.collation, server.collation);
    assert_eq!(proxy.status, server.status);
    assert_eq!(proxy.plugin, server.plugin);
    // MariaDB says by a missing CLIENT_LONG_PASSWORD that it has extended capabilities: bulk operations and extended
    // metadata are carried.
    let library = CapabilityFlags::CLIENT_SSL_VERIFY_SERVER_CERT | CapabilityFlags::CLIENT_REMEMBER_OPTIONS;
    let wanted = server.capabilities - NEVER_OFFERED - library;
    assert_eq!(proxy.capabilities, wanted, "{:?}", proxy.capabilities ^ wanted);
    assert_eq!(proxy.extended, if t.kind == Kind::MariaDb { 0b1100 } else { 0 });
    assert_eq!(proxy.extended & server.extended, proxy.extended);
});

on_both!(every_time_anew, |t| async move {
    let mut seen = Vec::new();
    for _ in 0..20 {
        let greeting = greeting(t.address).await;
        assert!(!greeting.nonce.contains(&0), "drivers take the nonce for a string");
        assert!(!seen.contains(&(greeting.connection_id, greeting.nonce)));
        assert!(seen.iter().all(|(id, nonce)| *id != greeting.connection_id && *nonce != greeting.nonce));
        seen.push((greeting.connection_id, greeting.nonce));
    }
});

on_both!(the_last_packet_of_a_login_is_the_servers, |t| async move {
    let track = CapabilityFlags::CLIENT_SESSION_TRACK;
    for login in [
        t.app(),
        t.app().old(),
        Login { schema: None, ..t.app() },
        Login { capabilities: t.app().capabilities - track, ..t.app() },
        Login { collation: 8, ..t.app() },
    ] {
        // Numbers differ with the number of packets that the password took.
        let (direct, proxied) = (t.direct(&login).await.welcome.1, t.client_as(&login).await.welcome.1);
        assert_eq!(proxied, direct, "{login:?}");
    }
});
