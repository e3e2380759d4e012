//! COM_CHANGE_USER: the same machines, entered in the middle.

use bytes::BufMut;

use super::super::HandshakeError;
use super::*;
use crate::protocol::auth::{caching_sha2, native};
use crate::protocol::wire::put_nul_bytes;

const MODERN: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH);

fn known() -> Credentials {
    Credentials::Known(Secret::from("app-secret"))
}

fn reply(password: &str) -> Vec<u8> {
    native::scramble(&Secret::from(password), &SALT).unwrap().to_vec()
}

fn command(reply: &[u8], plugin: &str) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_u8(0x11);
    put_nul_bytes(&mut out, b"app");
    out.put_u8(reply.len() as u8);
    out.put_slice(reply);
    put_nul_bytes(&mut out, b"test");
    out.put_u16_le(0x0102);
    put_nul_bytes(&mut out, plugin.as_bytes());
    out.to_vec()
}

#[test]
fn a_right_reply_to_the_old_nonce_counts() {
    let mut server = server(Plugin::Native, Policy::default());
    let mut out = BytesMut::new();
    let payload = command(&reply("app-secret"), "mysql_native_password");
    assert_eq!(server.change_user(&payload, MODERN, false, 0).unwrap(), Step::Identify);
    let request = server.request().unwrap();
    assert_eq!((request.user.as_str(), request.collation, request.capabilities), ("app", 0x0102, MODERN));
    assert_eq!(request.schema.as_deref(), Some(&b"test"[..]));
    assert!(matches!(server.identified(known(), &mut out).unwrap(), Step::Granted(_)));
    assert_eq!((server.next_seq(), out.len()), (1, 0));
}

/// Clients disagree about what to send first, so whatever proves nothing is asked for again, once.
#[test]
fn anything_else_is_asked_for_again_once() {
    let plugins = [("mysql_native_password", "mysql_native_password"), ("client_ed25519", "mysql_native_password")];
    for (plugin, asked) in plugins {
        for first in [vec![], reply("wrong"), vec![1; 64]] {
            for (who, second, granted) in
                [(known(), "app-secret", true), (known(), "wrong", false), (Credentials::Nobody, "app-secret", false)]
            {
                let mut server = server(Plugin::Native, Policy::default());
                let mut out = BytesMut::new();
                server.change_user(&command(&first, plugin), MODERN, false, 0).unwrap();
                assert_eq!(server.identified(who, &mut out).unwrap(), Step::Read);
                let (seq, packet) = only(&mut out);
                assert_eq!((seq, packet), (1, [b"\xfe", asked.as_bytes(), b"\0", &SALT, b"\0"].concat()));
                let step = server.receive(2, &reply(second), &mut out).unwrap();
                assert_eq!(matches!(step, Step::Granted(_)), granted);
                assert_eq!(granted, step != Step::Denied { using_password: true });
                assert_eq!(server.next_seq(), 3);
            }
        }
    }
}

#[test]
fn the_password_itself_is_obtained_inside_tls() {
    let mut server = server(Plugin::CachingSha2, Policy::default());
    let mut out = BytesMut::new();
    server.change_user(&command(b"", "caching_sha2_password"), MODERN, true, 0).unwrap();
    assert_eq!(server.identified(Credentials::Unknown, &mut out).unwrap(), Step::Read);
    only(&mut out);
    assert_eq!(server.receive(2, &[7; 32], &mut out).unwrap(), Step::Read);
    assert_eq!(only(&mut out), (3, vec![1, 4]));
    let step = server.receive(4, b"app-secret\0", &mut out).unwrap();
    assert_eq!(step, Step::AskServer { password: Secret::from("app-secret") });
}

#[test]
fn a_client_without_plugins_is_judged_by_what_it_sent() {
    let old = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
    for (first, granted) in [(reply("app-secret"), true), (reply("wrong"), false), (vec![], false)] {
        let mut server = server(Plugin::CachingSha2, Policy::default());
        let mut out = BytesMut::new();
        server.change_user(&command(&first, ""), old, false, 0).unwrap();
        let step = server.identified(known(), &mut out).unwrap();
        assert_eq!(matches!(step, Step::Granted(_)), granted);
        assert!(granted || step == Step::Denied { using_password: !first.is_empty() });
        assert!(out.is_empty());
    }
}

#[test]
fn a_command_that_is_cut_short_is_malformed() {
    let mut server = server(Plugin::Native, Policy::default());
    for payload in [&b""[..], b"\x11", b"\x11app", b"\x11app\0\x14short"] {
        let error = server.change_user(payload, MODERN, false, 0).unwrap_err();
        assert!(matches!(error, HandshakeError::Malformed(_)));
    }
}

/// What both agreed on before.
const AGREED: CapabilityFlags = MODERN.union(CapabilityFlags::CLIENT_CONNECT_ATTRS);

fn blank(password: &str) -> LoginSpec {
    LoginSpec { schema: None, ..spec(password, TlsWish::Off) }
}

/// Steps our two ends against each other, from our command to the server's verdict.
fn run(plugin: Plugin, tls: bool, password: &str, who: Credentials) -> (Step, Result<ClientStep, LoginError>, u8) {
    let mut server = server(plugin, Policy::default());
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    let mut client = ClientSide::change_user(blank(password), AGREED, tls, &mut to_server).unwrap();
    let (seq, command) = only(&mut to_server);
    assert_eq!(seq, 0);
    assert_eq!(server.change_user(&command, AGREED, tls, seq).unwrap(), Step::Identify);
    let request = server.request().unwrap().clone();
    assert_eq!((request.user.as_str(), request.schema.as_deref(), request.collation), ("app", None, 45));
    assert_eq!(request.attributes, blank("").attributes);
    let mut step = server.identified(who, &mut to_client).unwrap();
    let mut shown = Vec::new();
    while step == Step::Read {
        let (seq, packet) = only(&mut to_client);
        assert_eq!(client.receive(seq, &packet, &mut to_server), Ok(ClientStep::Read));
        shown.extend_from_slice(&to_server);
        let (seq, packet) = only(&mut to_server);
        step = server.receive(seq, &packet, &mut to_client).unwrap();
    }
    let seen = !password.is_empty() && memchr::memmem::find(&shown, password.as_bytes()).is_some();
    assert!(tls || !seen, "the password is shown inside TLS only");
    let error = ErrPacket { code: 1045, state: Some(*b"28000"), message: b"Access denied" };
    match step {
        Step::Denied { .. } => _ = packet_with(&mut to_client, server.next_seq(), |out| error.encode(out)),
        _ => _ = write_packet(&mut to_client, server.next_seq(), OK),
    }
    let mut last = Ok(ClientStep::Read);
    while let Some(packet) = take_packet(&mut to_client, usize::MAX).unwrap() {
        assert_eq!(last, Ok(ClientStep::Read), "nothing follows the end");
        last = client.receive(packet.seq, &packet.payload, &mut to_server);
    }
    assert!(to_server.is_empty() && client.is_tls() == tls && client.greeting().is_none());
    (step, last, server.next_seq())
}

/// The command, the switch and its reply; then "fast" or "the password, please", [the key and] the password.
#[test]
fn both_ends_change_the_user_by_every_way() {
    let password = || Secret::from("app-secret");
    for (plugin, tls, who, next_seq) in [
        (Plugin::Native, false, Credentials::Known(password()), 3),
        (Plugin::Native, true, Credentials::Known(password()), 3),
        (Plugin::CachingSha2, false, Credentials::Unknown, 9),
        (Plugin::CachingSha2, true, Credentials::Unknown, 7),
    ] {
        let (step, last, seq) = run(plugin.clone(), tls, "app-secret", who);
        let granted = matches!(&step, Step::Granted(it) | Step::AskServer { password: it } if *it == password());
        assert!(granted, "{plugin} {tls}: {step:?}");
        assert_eq!((last, seq), (Ok(ClientStep::Done), next_seq), "{plugin} {tls}");
    }
}

#[test]
fn a_password_that_is_no_longer_right_is_refused() {
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        let (step, last, _) = run(plugin, false, "stale", known());
        assert_eq!(step, Step::Denied { using_password: true });
        assert!(matches!(last, Err(LoginError::Server { code: 1045, .. })));
    }
}

#[test]
fn no_password_at_all() {
    let (step, last, _) = run(Plugin::Native, false, "", Credentials::Known(Secret::default()));
    assert!(matches!(step, Step::Granted(_)));
    assert_eq!(last, Ok(ClientStep::Done));
}

/// As MySQL 9.7 does it: the switch names a plugin with a fresh nonce, and the fast path is announced before the OK.
#[test]
fn a_server_that_switches_to_its_own_plugin_is_followed() {
    let mut out = BytesMut::new();
    let mut client = ClientSide::change_user(blank("app-secret"), AGREED, false, &mut out).unwrap();
    out.clear();
    let switch = [b"\xfecaching_sha2_password\0", &SALT[..], b"\0"].concat();
    assert_eq!(client.receive(1, &switch, &mut out), Ok(ClientStep::Read));
    let proof = caching_sha2::scramble(&Secret::from("app-secret"), &SALT).unwrap();
    assert_eq!(only(&mut out), (2, proof.to_vec()));
    assert_eq!(client.receive(3, &[1, 3], &mut out), Ok(ClientStep::Read));
    assert_eq!(client.receive(4, OK, &mut out), Ok(ClientStep::Done));
}

/// Without a nonce there is nothing that a password could be hidden behind.
#[test]
fn a_server_that_asks_for_the_password_at_once_does_not_get_it() {
    for packet in [&[1, 4][..], &[1, 3], b"\xfemysql_clear_password\0", b"\x0a", b""] {
        let mut out = BytesMut::new();
        let mut client = ClientSide::change_user(blank("app-secret"), AGREED, false, &mut out).unwrap();
        out.clear();
        assert!(client.receive(1, packet, &mut out).is_err(), "{packet:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn a_name_with_a_zero_byte_is_not_sent() {
    for spec in
        [LoginSpec { user: "a\0pp".into(), ..blank("") }, LoginSpec { schema: Some(b"a\0".to_vec()), ..blank("") }]
    {
        let mut out = BytesMut::new();
        assert!(matches!(ClientSide::change_user(spec, AGREED, false, &mut out), Err(LoginError::ZeroByte(_))));
        assert!(out.is_empty());
    }
}
