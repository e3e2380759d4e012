//! Stepping one end against the other, and each against what others send.

mod change_user;
mod clients;
mod pairs;
mod servers;

use std::sync::{Arc, LazyLock};

use bytes::BytesMut;
use proptest::prelude::*;

use super::{ClientSide, ClientStep, Credentials, Greeting, LoginError, LoginSpec, Policy, ServerSide, Step, TlsWish};
use crate::protocol::auth::rsa::Keys;
use crate::protocol::auth::{Nonce, Plugin, Secret};
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::frame::{packet_with, take_packet, write_packet};
use crate::protocol::packet::err::ErrPacket;

const SALT: Nonce = *b"\x4e\x52\x33\x48\x50\x3a\x71\x49\x59\x61\x5f\x39\x3d\x64\x62\x3f\x53\x64\x7b\x60";
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// Made once: it takes longer than all tests together.
static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(Arc::default);

fn server(plugin: Plugin, policy: Policy) -> ServerSide {
    let greeting = Greeting {
        version: b"8.4.0".to_vec(),
        connection_id: 0x0102_0304,
        capabilities: CapabilityFlags::CLIENT_LONG_PASSWORD | CapabilityFlags::CLIENT_MULTI_STATEMENTS,
        collation: 255,
        status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        plugin,
    };
    ServerSide::new(greeting, SALT, Arc::clone(&KEYS), policy)
}

fn spec(password: &str, tls: TlsWish) -> LoginSpec {
    LoginSpec {
        user: "app".into(),
        password: Secret::from(password),
        schema: Some(b"test".to_vec()),
        collation: 45,
        capabilities: CapabilityFlags::CLIENT_LONG_PASSWORD | CapabilityFlags::CLIENT_FOUND_ROWS,
        attributes: vec![("_client_name".into(), "myriad".into()), ("_pid".into(), "7".into())],
        tls,
    }
}

/// The only packet in `bytes`: its number and payload.
fn only(bytes: &mut BytesMut) -> (u8, Vec<u8>) {
    let packet = take_packet(bytes, usize::MAX).unwrap().expect("a packet");
    assert!(bytes.is_empty(), "one packet only, but then {bytes:?}");
    (packet.seq, packet.payload.to_vec())
}

proptest! {
    #[test]
    fn arbitrary_packets_harm_neither_end(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        super::fuzz_as_server(&data);
        super::fuzz_as_client(&data);
    }

    /// A valid login with one byte changed, so that the fuzz gets past the first field.
    #[test]
    fn damaged_packets_harm_neither_end(setting in any::<u8>(), at in 0..120usize, byte in any::<u8>()) {
        let mut client = ClientSide::new(spec("secret", TlsWish::Off));
        let mut out = BytesMut::new();
        server(Plugin::CachingSha2, Policy::default()).greet(&mut out);
        let (_, mut greeting) = only(&mut out);
        client.receive(0, &greeting, &mut out).unwrap();
        let (_, mut response) = only(&mut out);
        for payload in [&mut greeting, &mut response] {
            let at = at % payload.len();
            payload[at] = byte;
        }
        let packet = |setting: u8, payload: &[u8]| {
            let mut data = vec![setting, u8::try_from(payload.len()).unwrap()];
            data.extend_from_slice(payload);
            data.extend_from_slice(&[1, 2, 5, b's', b'e', b'c', b'r', 0, 20]);
            data
        };
        super::fuzz_as_server(&packet(setting, &response));
        super::fuzz_as_client(&packet(setting, &greeting));
    }
}
