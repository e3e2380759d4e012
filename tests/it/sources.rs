//! `backend.source_addresses`: connections come from several addresses, and it is said when their ports run out.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

use myriad::config::{Config, PoolMode, PortRange, SourceAddresses};
use myriad::protocol::command::Command;
use myriad::protocol::handshake::LoginError;

use crate::support::{Wire, on_both};

/// So many addresses of this host, in a network that hardly anybody else uses.
fn addresses(count: u8) -> SourceAddresses {
    let [second, third] = [0; 2].map(|_: u8| rand::random_range(1..=254));
    let address = |last| IpAddr::V4(Ipv4Addr::new(127, second, third, last));
    SourceAddresses { first: address(1), last: address(count) }
}

/// So many ports in a row that nobody listens on.
fn ports(count: u16) -> PortRange {
    let free = |first: &u16| (*first..*first + count).all(|port| TcpListener::bind(("0.0.0.0", port)).is_ok());
    let first = std::iter::repeat_with(|| rand::random_range(10_240..30_000)).find(free).expect("free ports");
    PortRange { first, last: first + count - 1 }
}

fn session_mode(config: &mut Config) {
    config.pool.mode = PoolMode::Session;
    config.pool.max_connections = 20;
    config.scheduler.queue_timeout = Duration::from_millis(300);
}

/// Where the server sees a client come from.
const FROM: &str =
    "SELECT SUBSTRING_INDEX(host, ':', 1) FROM information_schema.processlist WHERE id = CONNECTION_ID()";

on_both!(
    connections_come_from_all_addresses_in_turn,
    |config| {
        session_mode(config);
        config.backend.source_addresses = Some(vec![addresses(4)]);
    },
    |t| async move {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(t.client().await);
        }
        let mut from = Vec::new();
        for client in &mut clients {
            from.push(client.one(FROM).await);
        }
        let distinct: BTreeSet<_> = from.iter().collect();
        assert_eq!(distinct.len(), 4, "{from:?}");
        for address in distinct {
            assert_eq!(from.iter().filter(|other| *other == address).count(), 2, "{from:?}");
            assert_eq!(t.metric("myriad_source_ports_used", Some(address)), 2.0);
        }
        drop(clients);
        t.until("myriad_source_ports_used", None, 0.0).await;
    }
);

on_both!(
    without_a_port_clients_are_told_so_and_the_server_is_not_down,
    |config| {
        session_mode(config);
        config.backend.source_addresses = Some(vec![addresses(2)]);
        config.backend.source_ports = Some(ports(2));
    },
    |t| async move {
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(t.client().await);
        }
        match Wire::connect(t.address, &t.app()).await.err() {
            Some(LoginError::Server { code: 1040, message, .. }) => {
                for part in
                    ["backend.source_addresses has 2 addresses with 2 ports each", "4 are in use", "source_ports"]
                {
                    assert!(message.contains(part), "{message}");
                }
            }
            other => panic!("{other:?}"),
        }
        assert!(t.metric("myriad_source_exhaustions_total", None) >= 1.0);
        assert_eq!(t.metric("myriad_source_ports_left", None), 0.0);
        assert_eq!(t.metric("myriad_backend_opens_total", Some("refused")), 0.0);
        // Those that are here work, a KILL finds no port either, and who comes when one has left gets its port.
        let id = clients[0].one("SELECT CONNECTION_ID()").await;
        assert!(clients[1].query(&format!("KILL QUERY {id}")).await.error().is_none_or(|(code, _)| code == 1040));
        assert_eq!(clients[0].one("SELECT 1").await, "1");
        let from = clients[2].one(FROM).await;
        clients.remove(2).send(Command::Quit, b"").await;
        t.until("myriad_source_ports_left", None, 1.0).await;
        let mut limit = 100;
        let mut next = loop {
            match Wire::connect(t.address, &t.app()).await {
                Ok(client) => break client,
                Err(error) => assert!(limit > 0, "{error}"),
            }
            limit -= 1;
        };
        assert_eq!(next.one(FROM).await, from);
    }
);

on_both!(where_the_system_picks_it_is_counted, session_mode, |t| async move {
    let clients = [t.client().await, t.client().await];
    assert_eq!(t.metric("myriad_source_ports_used", Some("any")), 2.0);
    assert!(t.metric("myriad_source_ports_left", Some("any")) > 100.0);
    drop(clients);
    t.until("myriad_source_ports_used", Some("any"), 0.0).await;
});
