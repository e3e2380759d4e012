//! COM_CHANGE_USER: the same machine, entered in the middle.

use bytes::BufMut;

use super::super::HandshakeError;
use super::*;
use crate::protocol::auth::native;
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
