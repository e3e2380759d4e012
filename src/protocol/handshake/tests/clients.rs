//! [`ServerSide`] against packets as clients send them: old ones, odd ones, and those that are no clients at all.

use super::super::{Fault, HandshakeError};
use super::*;
use crate::protocol::auth::{caching_sha2, native};
use crate::protocol::packet::handshake_response::{Attributes, HandshakeResponse, SslRequest};

const MODERN: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH);

fn known() -> Credentials {
    Credentials::Known(Secret::from("app-secret"))
}

fn native_reply() -> Vec<u8> {
    native::scramble(&Secret::from("app-secret"), &SALT).unwrap().to_vec()
}

fn sha2_reply() -> Vec<u8> {
    caching_sha2::scramble(&Secret::from("app-secret"), &SALT).unwrap().to_vec()
}

fn response(capabilities: CapabilityFlags, plugin: &str, reply: &[u8]) -> Vec<u8> {
    let head = SslRequest { capabilities, max_packet: 1 << 24, collation: 33 };
    let (plugin, attributes) = (Some(plugin.as_bytes()), Attributes::default());
    let mut out = BytesMut::new();
    HandshakeResponse { head, user: b"app", reply, schema: None, plugin, attributes, zstd_level: 0 }.encode(&mut out);
    out.to_vec()
}

fn greeted(plugin: Plugin, policy: Policy) -> ServerSide {
    let mut server = server(plugin, policy);
    server.greet(&mut BytesMut::new());
    server
}

/// Sends the response as the first packet and says who the user is.
fn answer(server: &mut ServerSide, response: &[u8], who: Credentials, out: &mut BytesMut) -> Step {
    assert_eq!(server.receive(1, response, out).unwrap(), Step::Identify);
    server.identified(who, out).unwrap()
}

#[test]
fn a_client_from_before_plugins_logs_in_by_native() {
    let old = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
    for greeting in [Plugin::Native, Plugin::CachingSha2] {
        let mut out = BytesMut::new();
        let mut server = greeted(greeting.clone(), Policy::default());
        let step = answer(&mut server, &response(old, "", &native_reply()), known(), &mut out);
        assert!(matches!(step, Step::Granted(_)), "{step:?}");
        assert!(out.is_empty());

        let mut server = greeted(greeting.clone(), Policy::default());
        let step = answer(&mut server, &response(old, "", b""), known(), &mut out);
        assert_eq!(step, Step::Denied { using_password: false });

        let mut server = greeted(greeting, Policy::default());
        server.receive(1, &response(old, "", &native_reply()), &mut out).unwrap();
        let error = server.identified(Credentials::Unknown, &mut out).unwrap_err();
        assert_eq!((&error, error.fault()), (&HandshakeError::NoPlugins, Fault::Setup));
    }
}

/// Another plugin than the greeting's: its reply counts if it can be one, else the client is asked.
#[test]
fn a_client_with_its_own_plugin_is_met() {
    let cases = [
        // greeting, the client's plugin, its reply, the plugin it is asked for
        (Plugin::CachingSha2, "mysql_native_password", native_reply(), None),
        (Plugin::Native, "caching_sha2_password", sha2_reply(), None),
        (Plugin::CachingSha2, "mysql_native_password", vec![], Some("mysql_native_password")),
        (Plugin::Native, "caching_sha2_password", vec![], Some("caching_sha2_password")),
        (Plugin::Native, "caching_sha2_password", vec![0], Some("caching_sha2_password")),
        (Plugin::CachingSha2, "mysql_native_password", sha2_reply(), Some("mysql_native_password")),
        (Plugin::Native, "client_ed25519", vec![1; 64], Some("mysql_native_password")),
        (Plugin::CachingSha2, "sha256_password", vec![1], Some("caching_sha2_password")),
        (Plugin::CachingSha2, "mysql_clear_password", b"app-secret\0".to_vec(), Some("caching_sha2_password")),
    ];
    for (greeting, plugin, reply, asked) in cases {
        let case = format!("{plugin} to {greeting}");
        let mut out = BytesMut::new();
        let mut server = greeted(greeting, Policy::default());
        let step = answer(&mut server, &response(MODERN, plugin, &reply), known(), &mut out);
        let Some(asked) = asked else {
            assert!(matches!(step, Step::Granted(_)), "{case}: {step:?}");
            continue;
        };
        assert_eq!(step, Step::Read, "{case}");
        let (seq, packet) = only(&mut out);
        assert_eq!((seq, packet), (2, [b"\xfe", asked.as_bytes(), b"\0", &SALT, b"\0"].concat()), "{case}");
        let (reply, seq) = match asked {
            "mysql_native_password" => (native_reply(), 4),
            _ => (sha2_reply(), 5),
        };
        assert!(matches!(server.receive(3, &reply, &mut out).unwrap(), Step::Granted(_)), "{case}");
        assert_eq!(server.next_seq(), seq, "{case}: the fast path has one packet more");
    }
}

#[test]
fn libmysqlclient_says_empty_by_a_zero() {
    let response = response(MODERN, "caching_sha2_password", &[0]);
    for (who, expected) in [
        (Credentials::Known(Secret::default()), Step::Granted(Secret::default())),
        (known(), Step::Denied { using_password: false }),
        (Credentials::Nobody, Step::Denied { using_password: false }),
        (Credentials::Unknown, Step::AskServer { password: Secret::default() }),
    ] {
        let mut out = BytesMut::new();
        let mut server = greeted(Plugin::CachingSha2, Policy::default());
        assert_eq!(answer(&mut server, &response, who, &mut out), expected);
        assert!(out.is_empty(), "nothing before the verdict");
    }
}

#[test]
fn on_a_local_socket_the_password_comes_in_clear() {
    let policy = Policy { local: true, tls_required: true, tls_offered: true };
    let mut server = greeted(Plugin::CachingSha2, policy);
    let mut out = BytesMut::new();
    let response = response(MODERN, "caching_sha2_password", &sha2_reply());
    assert_eq!(answer(&mut server, &response, Credentials::Unknown, &mut out), Step::Read);
    assert_eq!(only(&mut out), (2, vec![1, 4]));
    let step = server.receive(3, b"app-secret\0", &mut out).unwrap();
    assert_eq!(step, Step::AskServer { password: Secret::from("app-secret") });
    assert_eq!(server.next_seq(), 4);
}

#[test]
fn a_password_that_is_not_encrypted_for_us_is_denied() {
    for packet in [&b"app-secret\0"[..], b"", &[9; 256], &[0; 255]] {
        for ask_first in [false, true] {
            let mut server = greeted(Plugin::CachingSha2, Policy::default());
            let mut out = BytesMut::new();
            let response = response(MODERN, "caching_sha2_password", &sha2_reply());
            answer(&mut server, &response, Credentials::Unknown, &mut out);
            let mut seq = 3;
            if ask_first {
                assert_eq!(server.receive(seq, &[2], &mut out).unwrap(), Step::Read);
                seq += 2;
            }
            let step = server.receive(seq, packet, &mut out).unwrap();
            assert_eq!(step, Step::Denied { using_password: true }, "{packet:?}");
        }
    }
}

#[test]
fn tls_is_given_if_offered_and_insisted_on_if_required() {
    let ask = |capabilities| {
        let mut out = BytesMut::new();
        SslRequest { capabilities, max_packet: 1 << 24, collation: 33 }.encode(&mut out);
        out
    };
    let tls = ask(MODERN | CapabilityFlags::CLIENT_SSL);
    let mut out = BytesMut::new();
    let mut plain = greeted(Plugin::Native, Policy::default());
    assert_eq!(plain.receive(1, &tls, &mut out).unwrap_err(), HandshakeError::TlsNotOffered);

    let policy = Policy { tls_offered: true, tls_required: true, local: false };
    let mut server = greeted(Plugin::Native, policy);
    assert_eq!(server.receive(1, &tls, &mut out).unwrap(), Step::StartTls);
    server.tls_done();
    let inside = response(MODERN | CapabilityFlags::CLIENT_SSL, "mysql_native_password", &native_reply());
    assert_eq!(server.receive(2, &inside, &mut out).unwrap(), Step::Identify);
    assert!(server.request().unwrap().capabilities.contains(CapabilityFlags::CLIENT_SSL));

    let outside = response(MODERN, "mysql_native_password", &native_reply());
    let error = greeted(Plugin::Native, policy).receive(1, &outside, &mut out).unwrap_err();
    assert_eq!((&error, error.fault()), (&HandshakeError::TlsRequired, Fault::Setup));
    let answer = error.answer().unwrap();
    assert_eq!((answer.code, &answer.state), (3159, b"HY000"));
    assert!(out.is_empty());
}

#[test]
fn strangers_are_known_by_their_first_four_bytes() {
    let server = greeted(Plugin::Native, Policy::default());
    for (bytes, expected) in [
        (*b"GET ", HandshakeError::NotMySql("HTTP")),
        (*b"POST", HandshakeError::NotMySql("HTTP")),
        (*b"SSH-", HandshakeError::NotMySql("SSH")),
        // TLS records: ClientHellos of 517 and 300 bytes.
        (*b"\x16\x03\x01\x02", HandshakeError::NotMySql("TLS without asking for it first")),
        (*b"\x16\x03\x01\x01", HandshakeError::NotMySql("TLS without asking for it first")),
        (*b"\x20\0\0\x03", HandshakeError::OutOfOrder { got: 3, expected: 1 }),
        (*b"\0\0\x10\x01", HandshakeError::TooLarge(1 << 20)),
    ] {
        let len = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
        let error = server.check_header(len, bytes[3]).unwrap_err();
        assert_eq!(error, expected);
        assert_eq!(error.fault(), Fault::Peer);
    }
    assert_eq!(server.check_header(200, 1), Ok(()));
}

#[test]
fn what_is_no_response_is_refused() {
    let go = |payload: &[u8]| {
        greeted(Plugin::Native, Policy::default()).receive(1, payload, &mut BytesMut::new()).unwrap_err()
    };
    // HandshakeResponse320: two bytes of capabilities, three of the largest packet.
    assert_eq!(go(b"\x05\x20\0\0\0app\0NDBXLUJT\0"), HandshakeError::TooOld);
    assert_eq!(go(&response(CapabilityFlags::CLIENT_PROTOCOL_41, "", b"12345678\0")), HandshakeError::TooOld);
    assert!(matches!(go(b""), HandshakeError::Malformed(_)));
    assert!(matches!(go(b"\x05\x20"), HandshakeError::Malformed(_)));
    let whole = response(MODERN, "mysql_native_password", &native_reply());
    for end in 0..whole.len() - 22 {
        assert!(matches!(go(&whole[..end]), HandshakeError::Malformed(_) | HandshakeError::TooOld), "cut at {end}");
    }
}

#[test]
fn out_of_turn_is_our_own_fault() {
    let mut out = BytesMut::new();
    let mut server = greeted(Plugin::Native, Policy::default());
    let error = server.identified(known(), &mut out).unwrap_err();
    assert_eq!((&error, error.fault()), (&HandshakeError::OutOfTurn, Fault::Us));
    let mut server = greeted(Plugin::Native, Policy::default());
    let response = response(MODERN, "mysql_native_password", &native_reply());
    assert!(matches!(answer(&mut server, &response, known(), &mut out), Step::Granted(_)));
    assert_eq!(server.receive(2, &response, &mut out).unwrap_err(), HandshakeError::OutOfTurn);
}
