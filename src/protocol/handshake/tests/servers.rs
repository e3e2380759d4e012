//! [`ClientSide`] against packets as servers send them.

use super::super::{Fault, ServerGreeting};
use super::*;
use crate::protocol::auth::rsa::RsaError;
use crate::protocol::packet::handshake_response::HandshakeResponse;

/// MariaDB 10.11.19, recorded. It leaves CLIENT_LONG_PASSWORD out and fills in its extended capabilities.
const MARIADB: &[u8] = b"\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\xf4\x06\0\0$o'nz8HB\0\xfe\xff-\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\x1d\0\0\0RS+yF.Q-.@5+\0mysql_native_password\0";
/// MySQL 9.7.4, recorded.
const MYSQL: &[u8] = b"\x0a9.7.4-2\0p\x1c\0\0G\x11MQy\x15\x1fp\0\xff\xff\xff\x02\0\xff\xdf\x15\
    \0\0\0\0\0\0\0\0\0\0eTCRVhgu\x1a%bl\0caching_sha2_password\0";

#[test]
fn recorded_greetings_are_read() {
    let maria = ServerGreeting::parse(MARIADB).unwrap();
    assert_eq!(maria.version, b"5.5.5-10.11.19-MariaDB-0+deb12u1");
    assert_eq!((maria.connection_id, maria.collation), (0x6f4, 45));
    assert_eq!(maria.nonce, *b"$o'nz8HBRS+yF.Q-.@5+");
    assert_eq!(maria.capabilities64(), 0x1d_81ff_fffe);
    assert_eq!((maria.status, &maria.plugin), (StatusFlags::SERVER_STATUS_AUTOCOMMIT, &Plugin::Native));
    assert!(maria.is_mariadb());

    let mysql = ServerGreeting::parse(MYSQL).unwrap();
    assert_eq!((mysql.version.as_slice(), mysql.connection_id, mysql.collation), (&b"9.7.4-2"[..], 0x1c70, 255));
    assert_eq!(mysql.nonce, *b"G\x11MQy\x15\x1fpeTCRVhgu\x1a%bl");
    assert_eq!(mysql.capabilities64(), 0xdfff_ffff);
    assert_eq!(mysql.plugin, Plugin::CachingSha2);
    assert!(!mysql.is_mariadb());
}

#[test]
fn a_hidden_mariadb_is_recognised() {
    let mut disguised = MARIADB.to_vec();
    let at = memchr::memmem::find(&disguised, b"MariaDB").unwrap();
    disguised[at..at + 7].copy_from_slice(b"FancyDB");
    assert!(ServerGreeting::parse(&disguised).unwrap().is_mariadb());
}

/// Two implementations read the same, so neither misreads alone.
#[test]
fn our_own_greeting_is_what_another_implementation_reads() {
    use mysql_common::packets::HandshakePacket;
    use mysql_common::proto::MyDeserialize;
    let mut out = BytesMut::new();
    server(Plugin::CachingSha2, Policy { tls_offered: true, ..Policy::default() }).greet(&mut out);
    let (seq, payload) = only(&mut out);
    assert_eq!(seq, 0);
    let read = HandshakePacket::deserialize((), &mut mysql_common::io::ParseBuf(&payload)).unwrap();
    assert_eq!((read.protocol_version(), read.server_version_ref()), (10, &b"8.4.0"[..]));
    assert_eq!((read.connection_id(), read.nonce(), read.default_collation()), (0x0102_0304, SALT.to_vec(), 255));
    assert_eq!(read.auth_plugin_name_ref(), Some(&b"caching_sha2_password"[..]));
    assert_eq!(read.status_flags(), StatusFlags::SERVER_STATUS_AUTOCOMMIT);
    let ours = ServerGreeting::parse(&payload).unwrap();
    assert_eq!(read.capabilities(), ours.capabilities);
    assert!(ours.capabilities.contains(CapabilityFlags::CLIENT_SSL | CapabilityFlags::CLIENT_PROTOCOL_41));
    // The zeros after the nonce and the plugin may be missing, the rest not.
    for end in 0..payload.len() - 23 {
        assert!(ServerGreeting::parse(&payload[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn our_own_response_is_what_another_implementation_reads() {
    use mysql_common::packets::HandshakeResponse;
    use mysql_common::proto::MyDeserialize;
    let mut out = BytesMut::new();
    ClientSide::new(spec("x", TlsWish::Off)).receive(0, MYSQL, &mut out).unwrap();
    let (seq, payload) = only(&mut out);
    assert_eq!(seq, 1);
    let read = HandshakeResponse::deserialize((), &mut mysql_common::io::ParseBuf(&payload)).unwrap();
    assert_eq!((read.user(), read.db_name(), read.collation()), (&b"app"[..], Some(&b"test"[..]), 45));
    assert_eq!(read.scramble_buf().len(), 32);
    assert_eq!(read.auth_plugin().unwrap().as_bytes(), b"caching_sha2_password");
    assert_eq!(read.connect_attributes().unwrap(), spec("", TlsWish::Off).attributes.into_iter().collect());
}

fn refused(result: Result<ClientStep, LoginError>) -> (u16, Option<[u8; 5]>, String) {
    match result {
        Err(LoginError::Server { code, state, message }) => (code, state, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_err_ends_it_wherever_it_comes() {
    let mut out = BytesMut::new();
    // Instead of the greeting there is no SQLSTATE from MariaDB.
    let full = ClientSide::new(spec("x", TlsWish::Off)).receive(0, b"\xff\x10\x04Too many connections", &mut out);
    assert_eq!(refused(full), (1040, None, "Too many connections".into()));
    let full = ClientSide::new(spec("x", TlsWish::Off)).receive(0, b"\xff\x10\x04#08004Too many", &mut out);
    assert_eq!(refused(full), (1040, Some(*b"08004"), "Too many".into()));
    assert!(out.is_empty());

    let mut client = ClientSide::new(spec("x", TlsWish::Off));
    client.receive(0, MYSQL, &mut out).unwrap();
    let denied = client.receive(2, b"\xff\x15\x04#28000Access denied", &mut out);
    assert_eq!(refused(denied), (1045, Some(*b"28000"), "Access denied".into()));
    assert_eq!(client.receive(2, OK, &mut out), Err(LoginError::OutOfTurn));
}

/// A client that has answered the greeting of MySQL.
fn answered(password: &str) -> ClientSide {
    let mut client = ClientSide::new(spec(password, TlsWish::Off));
    client.receive(0, MYSQL, &mut BytesMut::new()).unwrap();
    client
}

#[test]
fn plugins_that_are_not_spoken_are_named() {
    for (packet, name) in [
        (&b"\xfeclient_ed25519\0abcdefghijklmnopqrstuvwxyz012345\0"[..], "client_ed25519"),
        (b"\xfeparsec\0\x01", "parsec"),
        (b"\xfe", "mysql_old_password"),
    ] {
        let mut out = BytesMut::new();
        let error = answered("x").receive(2, packet, &mut out).unwrap_err();
        assert_eq!(error, LoginError::UnsupportedPlugin(Plugin::from_name(name.as_bytes())));
        assert!(error.to_string().contains(name));
        assert_eq!(error.fault(), Fault::Setup);
        assert!(out.is_empty());
    }
}

#[test]
fn a_password_is_shown_inside_tls_only() {
    let ask = b"\xfemysql_clear_password\0";
    let mut out = BytesMut::new();
    assert_eq!(answered("x").receive(2, ask, &mut out), Err(LoginError::ClearWithoutTls));
    assert!(out.is_empty());

    let mut client = ClientSide::new(spec("app-secret", TlsWish::Required));
    assert_eq!(client.receive(0, MYSQL, &mut out), Ok(ClientStep::StartTls));
    let (seq, request) = only(&mut out);
    assert_eq!((seq, request.len()), (1, 32));
    client.tls_done(&mut out);
    assert_eq!(only(&mut out).0, 2);
    assert_eq!(client.receive(3, ask, &mut out), Ok(ClientStep::Read));
    assert_eq!(only(&mut out), (4, b"app-secret\0".to_vec()));
    assert_eq!(client.receive(5, OK, &mut out), Ok(ClientStep::Done));
}

/// What MySQL 9 does with a user that does not exist: a plugin is made up, and the refusal comes after it.
#[test]
fn sha256_password_is_followed_to_the_refusal() {
    let ask = b"\xfesha256_password\x0012345678901234567890\0";
    let nonce = *b"12345678901234567890";
    let mut out = BytesMut::new();
    let mut client = answered("app-secret");
    assert_eq!(client.receive(2, ask, &mut out), Ok(ClientStep::Read));
    assert_eq!(only(&mut out), (3, vec![1]));
    let pair = KEYS.get().unwrap();
    let key = [b"\x01", pair.public_key_pem().as_bytes()].concat();
    assert_eq!(client.receive(4, &key, &mut out), Ok(ClientStep::Read));
    let (seq, cipher) = only(&mut out);
    assert_eq!((seq, pair.decrypt(&cipher, &nonce)), (5, Ok(Secret::from("app-secret"))));
    assert_eq!(refused(client.receive(6, b"\xff\x15\x04#28000Access denied", &mut out)).0, 1045);

    assert_eq!(answered("").receive(2, ask, &mut out), Ok(ClientStep::Read));
    assert_eq!(only(&mut out), (3, vec![0]));

    let mut client = ClientSide::new(spec("app-secret", TlsWish::Preferred));
    client.receive(0, MYSQL, &mut out).unwrap();
    client.tls_done(&mut out);
    out.clear();
    client.receive(3, ask, &mut out).unwrap();
    assert_eq!(only(&mut out), (4, b"app-secret\0".to_vec()));
}

#[test]
fn tls_that_is_required_is_not_done_without() {
    let mut plain = MYSQL.to_vec();
    // CLIENT_SSL is 0x08 in the second byte of the capabilities.
    let at = 1 + b"9.7.4-2\0".len() + 4 + 8 + 1 + 1;
    plain[at] &= !0x08;
    let mut out = BytesMut::new();
    let error = ClientSide::new(spec("x", TlsWish::Required)).receive(0, &plain, &mut out).unwrap_err();
    assert_eq!((&error, error.fault()), (&LoginError::TlsNotOffered, Fault::Setup));
    assert!(out.is_empty());
    assert_eq!(ClientSide::new(spec("x", TlsWish::Preferred)).receive(0, &plain, &mut out), Ok(ClientStep::Read));
}

#[test]
fn a_greeting_for_a_foreign_plugin_gets_an_empty_reply() {
    let mut foreign = MYSQL[..MYSQL.len() - 22].to_vec();
    foreign.extend_from_slice(b"client_ed25519\0");
    let mut client = ClientSide::new(spec("x", TlsWish::Off));
    let mut out = BytesMut::new();
    client.receive(0, &foreign, &mut out).unwrap();
    let (_, response) = only(&mut out);
    let response = HandshakeResponse::parse(&response).unwrap();
    assert_eq!((response.plugin, response.reply), (Some(&b"mysql_native_password"[..]), &b""[..]));
    let switch = b"\xfecaching_sha2_password\x0012345678901234567890\0";
    assert_eq!(client.receive(2, switch, &mut out), Ok(ClientStep::Read));
    assert_eq!(only(&mut out).1.len(), 32);
}

#[test]
fn switches_are_followed_but_not_for_ever() {
    let mut client = answered("x");
    let mut out = BytesMut::new();
    let switch = b"\xfemysql_native_password\x0012345678901234567890\0";
    for seq in [2, 4, 6] {
        assert_eq!(client.receive(seq, switch, &mut out), Ok(ClientStep::Read));
        let (seq_out, reply) = only(&mut out);
        assert_eq!((seq_out, reply.len()), (seq + 1, 20));
    }
    assert_eq!(client.receive(8, switch, &mut out), Err(LoginError::TooManySwitches(3)));
}

#[test]
fn nonsense_is_refused() {
    let go = |seq, packet: &[u8]| answered("x").receive(seq, packet, &mut BytesMut::new()).unwrap_err();
    assert_eq!(go(3, OK), LoginError::OutOfOrder { got: 3, expected: 2 });
    assert_eq!(go(2, b"\x05"), LoginError::Unexpected(5));
    assert_eq!(go(2, b"\x01\x09"), LoginError::Unexpected(1));
    assert!(matches!(go(2, b""), LoginError::Malformed(_)));
    assert!(matches!(go(2, b"\xfemysql_native_password\0short\0"), LoginError::Malformed(_)));
    assert_eq!(go(2, b"\xff"), LoginError::Malformed(crate::protocol::wire::WireError::Truncated.into()));

    let mut client = answered("x");
    let mut out = BytesMut::new();
    client.receive(2, b"\x01\x04", &mut out).unwrap();
    assert_eq!(only(&mut out), (3, vec![2]));
    let no_key = client.receive(4, b"\x01-----BEGIN NOTHING-----", &mut out).unwrap_err();
    assert_eq!((&no_key, no_key.fault()), (&LoginError::Rsa(RsaError::BadKey), Fault::Peer));

    for (greeting, zero) in [(b"\x09old\0".to_vec(), false), (vec![], false), (MYSQL.to_vec(), true)] {
        let spec = LoginSpec { schema: zero.then(|| b"a\0b".to_vec()), ..spec("x", TlsWish::Off) };
        let error = ClientSide::new(spec).receive(0, &greeting, &mut BytesMut::new()).unwrap_err();
        assert_eq!(matches!(error, LoginError::ZeroByte("schema")), zero, "{error}");
    }
}
