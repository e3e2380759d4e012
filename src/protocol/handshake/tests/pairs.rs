//! [`ServerSide`] against [`ClientSide`], in every combination.

use super::*;

/// What our side towards the client decided.
#[derive(Debug, PartialEq)]
enum Outcome {
    Granted,
    Denied { using_password: bool },
    Asked { right: bool },
}

#[derive(Debug, PartialEq)]
struct Run {
    outcome: Outcome,
    client: Result<ClientStep, LoginError>,
    /// What both ends wrote outside TLS.
    plain: Vec<u8>,
    /// Packets, the last one included.
    packets: u8,
}

const PASSWORD: &str = "app-secret";

fn run(mut server: ServerSide, spec: LoginSpec, who: Credentials, right: &str) -> Run {
    let mut client = ClientSide::new(spec);
    let (mut to_client, mut to_server) = (BytesMut::new(), BytesMut::new());
    let (mut plain, mut tls) = (Vec::new(), false);
    let mut outcome = None;
    server.greet(&mut to_client);
    for _ in 0..10 {
        if !tls {
            plain.extend_from_slice(&to_client);
        }
        let mut last = Ok(ClientStep::Read);
        while let Some(packet) = take_packet(&mut to_client, usize::MAX).unwrap() {
            assert_eq!(last, Ok(ClientStep::Read), "nothing follows the end");
            last = client.receive(packet.seq, &packet.payload, &mut to_server);
        }
        if last != Ok(ClientStep::Read) && last != Ok(ClientStep::StartTls) {
            let outcome = outcome.expect("the client stops only when told");
            return Run { outcome, client: last, plain, packets: server.next_seq() + 1 };
        }
        if !tls {
            plain.extend_from_slice(&to_server);
        }
        if to_server.is_empty() {
            continue;
        }
        let (seq, payload) = only(&mut to_server);
        let mut step = server.receive(seq, &payload, &mut to_client).unwrap();
        if step == Step::Identify {
            step = server.identified(who.clone(), &mut to_client).unwrap();
        }
        let success = match step {
            Step::Read => continue,
            Step::StartTls => {
                assert!(to_client.is_empty() && last == Ok(ClientStep::StartTls));
                server.tls_done();
                client.tls_done(&mut to_server);
                tls = true;
                let (seq, payload) = only(&mut to_server);
                assert_eq!(server.receive(seq, &payload, &mut to_client).unwrap(), Step::Identify);
                match server.identified(who.clone(), &mut to_client).unwrap() {
                    Step::Read => continue,
                    step => decide(step, right, &mut outcome),
                }
            }
            step => decide(step, right, &mut outcome),
        };
        if success {
            write_packet(&mut to_client, server.next_seq(), OK);
        } else {
            let error = ErrPacket { code: 1045, state: Some(*b"28000"), message: b"Access denied" };
            packet_with(&mut to_client, server.next_seq(), |out| error.encode(out));
        }
    }
    panic!("the login does not end");
}

/// What a caller does with the last step.
fn decide(step: Step, right: &str, outcome: &mut Option<Outcome>) -> bool {
    let (this, success) = match step {
        Step::Granted(password) => {
            assert!(password == Secret::from(right), "the proxy logs in with what it granted");
            (Outcome::Granted, true)
        }
        Step::Denied { using_password } => (Outcome::Denied { using_password }, false),
        Step::AskServer { password } => {
            let right = password == Secret::from(right);
            (Outcome::Asked { right }, right)
        }
        Step::Read | Step::StartTls | Step::Identify => panic!("not an end: {step:?}"),
    };
    *outcome = Some(this);
    success
}

/// What must come of it.
fn expected(who: &Credentials, sent: &str, right: &str) -> Outcome {
    let using_password = !sent.is_empty();
    match who {
        Credentials::Known(_) if sent == right => Outcome::Granted,
        Credentials::Known(_) | Credentials::Nobody => Outcome::Denied { using_password },
        Credentials::Remembered(password) if *password == Secret::from(sent) => Outcome::Granted,
        Credentials::Remembered(_) | Credentials::Unknown => Outcome::Asked { right: sent == right },
    }
}

#[test]
fn every_combination_ends_as_it_must() {
    let tls_policies = [
        (false, false, TlsWish::Off),
        (true, false, TlsWish::Off),
        (false, false, TlsWish::Preferred),
        (true, false, TlsWish::Preferred),
        (true, true, TlsWish::Required),
    ];
    let mut count = 0;
    for plugin in [Plugin::Native, Plugin::CachingSha2, Plugin::Other(b"sha256_password"[..].into())] {
        for (tls_offered, tls_required, wish) in tls_policies {
            for (sent, right) in [(PASSWORD, PASSWORD), ("wrong", PASSWORD), ("", PASSWORD), ("", ""), ("wrong", "")] {
                for who in [
                    Credentials::Known(Secret::from(right)),
                    Credentials::Nobody,
                    Credentials::Remembered(Secret::from(right)),
                    Credentials::Remembered(Secret::from("stale")),
                    Credentials::Unknown,
                ] {
                    let case = format!("{plugin} tls {tls_offered} {wish:?}, {sent:?} for {right:?}, {who:?}");
                    let policy = Policy { tls_offered, tls_required, local: false };
                    let it = run(server(plugin.clone(), policy), spec(sent, wish), who.clone(), right);
                    assert_eq!(it.outcome, expected(&who, sent, right), "{case}");
                    let in_tls = tls_offered && wish != TlsWish::Off;
                    let success = matches!(it.outcome, Outcome::Granted | Outcome::Asked { right: true });
                    assert_eq!(it.client.is_ok(), success, "{case}: {:?}", it.client);
                    for secret in [PASSWORD, "wrong"] {
                        assert!(memchr::memmem::find(&it.plain, secret.as_bytes()).is_none(), "{case}: shown");
                    }
                    // In TLS not even the user's name is shown.
                    assert_eq!(memchr::memmem::find(&it.plain, b"app\0").is_none(), in_tls, "{case}");
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, 3 * 5 * 5 * 5);
}

/// Packets of a login, greeting and verdict included: nobody pays a round trip that is not needed.
#[test]
fn logins_take_the_packets_they_must() {
    let known = || Credentials::Known(Secret::from(PASSWORD));
    let tls = Policy { tls_offered: true, ..Policy::default() };
    let plain = Policy::default();
    for (plugin, policy, who, packets) in [
        (Plugin::Native, plain, known(), 3),
        (Plugin::Native, tls, known(), 4),
        // One more: the fast path says so.
        (Plugin::CachingSha2, plain, known(), 4),
        // Please (4), key, cipher; inside TLS: SSLRequest, please, password.
        (Plugin::CachingSha2, plain, Credentials::Unknown, 7),
        (Plugin::CachingSha2, tls, Credentials::Unknown, 6),
        // And a switch with its reply.
        (Plugin::Native, plain, Credentials::Unknown, 9),
        (Plugin::Native, tls, Credentials::Unknown, 8),
    ] {
        let case = format!("{plugin} {policy:?} {who:?}");
        let it = run(server(plugin, policy), spec(PASSWORD, TlsWish::Preferred), who, PASSWORD);
        assert_eq!(it.packets, packets, "{case}");
    }
}

#[test]
fn an_unknown_user_sees_what_a_wrong_password_sees() {
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        for sent in ["wrong", ""] {
            let go = |who| run(server(plugin.clone(), Policy::default()), spec(sent, TlsWish::Off), who, PASSWORD);
            let (wrong, nobody) = (go(Credentials::Known(Secret::from(PASSWORD))), go(Credentials::Nobody));
            assert_eq!(wrong, nobody, "byte for byte, in the same number of packets");
        }
    }
}

#[test]
fn both_ends_agree_on_what_was_asked_for() {
    let policy = Policy { tls_offered: true, ..Policy::default() };
    let mut server = server(Plugin::Native, policy);
    let mut client = ClientSide::new(spec(PASSWORD, TlsWish::Off));
    let mut out = BytesMut::new();
    server.greet(&mut out);
    let (seq, greeting) = only(&mut out);
    client.receive(seq, &greeting, &mut out).unwrap();
    let (seq, response) = only(&mut out);
    assert_eq!(server.receive(seq, &response, &mut out).unwrap(), Step::Identify);

    let request = server.request().unwrap();
    assert_eq!(request.user, "app");
    assert_eq!(request.schema.as_deref(), Some(&b"test"[..]));
    assert_eq!(request.collation, 45);
    assert_eq!(request.attributes, spec("", TlsWish::Off).attributes);
    assert_eq!(request.capabilities, client.capabilities());
    assert!(request.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB));
    assert!(!request.capabilities.contains(CapabilityFlags::CLIENT_FOUND_ROWS), "wanted, but not offered");
    assert!(!request.capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS), "offered, but not wanted");
    let greeting = client.greeting().unwrap();
    assert_eq!((greeting.version.as_slice(), greeting.connection_id), (&b"8.4.0"[..], 0x0102_0304));
    assert_eq!((greeting.nonce, &greeting.plugin), (SALT, &Plugin::Native));
    assert!(!greeting.is_mariadb());
}
