//! Users and passwords as configured: A1 and A2.

use myriad::config::Config;
use myriad::protocol::handshake::{LoginError, TlsWish};
use myriad::protocol::packet::err::ErrPacket;

use super::{ends_as_directly, logins, outcome, refusal};
use crate::support::{Login, Setup, Wire, on_both};

/// User, password, and whether they get in.
const LOGINS: [(&str, &str, bool); 9] = [
    ("app", "app-secret", true),
    ("app", "wrong", false),
    ("app", "", false),
    ("nobody", "app-secret", false),
    ("nobody", "", false),
    ("nopass", "", true),
    ("nopass", "app-secret", false),
    ("other", "other-secret", true),
    ("other", "app-secret", false),
];

/// Whoever came before, everybody gets the same answer each time, which is the server's.
async fn the_same_each_time(t: &Setup, tls: TlsWish) {
    for round in 0..3 {
        for at in 0..LOGINS.len() {
            // In another order each time.
            let (user, password, welcome) = LOGINS[(at * (round + 1) * 2 + round) % LOGINS.len()];
            let login = Login { user, password, tls, ..t.app() };
            let outcome = ends_as_directly(t, &login).await;
            assert_eq!(outcome.is_ok(), welcome, "{user} with {password:?}: {outcome:?}");
        }
    }
}

on_both!(everybody_gets_the_same_answer_each_time, |t| async move { the_same_each_time(&t, TlsWish::Off).await });
on_both!(everybody_gets_the_same_answer_each_time_inside_tls, |t| async move {
    the_same_each_time(&t, TlsWish::Required).await;
});

on_both!(a_refusal_names_the_user_and_where_it_comes_from, |t| async move {
    for (user, password, using) in [("app", "wrong", "YES"), ("nobody", "app-secret", "YES"), ("app", "", "NO")] {
        let refused = refusal(outcome(t.address, &Login { user, password, ..t.app() }).await);
        let wanted = format!("Access denied for user '{user}'@'127.0.0.1' (using password: {using})");
        assert_eq!(refused, (1045, wanted));
    }
    assert_eq!((logins(&t, "denied"), logins(&t, "ok")), (3.0, 0.0));
    t.client().await;
    t.until("myriad_client_logins_total", Some("ok"), 1.0).await;
});

on_both!(wrong_passwords_do_not_mark_the_server_down, |t| async move {
    let login = Login { password: "wrong", ..t.app() };
    let mut attempts = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (address, login) = (t.address, login.clone());
        attempts.spawn(async move { outcome(address, &login).await });
    }
    while let Some(attempt) = attempts.join_next().await {
        assert_eq!(refusal(attempt.expect("no panic")).0, 1045);
    }
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
    assert_eq!(logins(&t, "denied"), 50.0);
});

on_both!(a_schema_that_is_not_there_or_not_for_this_user, |t| async move {
    for (schema, code) in [("test_that_is_not_there", 1049), ("mysql_is_not_for_you", 1044), ("", 0)] {
        let outcome = ends_as_directly(&t, &Login { schema: Some(schema.to_owned()), ..t.app() }).await;
        if code == 0 {
            assert!(outcome.is_ok(), "an empty name is none: {outcome:?}");
        } else {
            assert_eq!(refusal(outcome).0, code);
        }
    }
    assert_eq!(logins(&t, "schema"), 2.0);
    assert_eq!(t.client().await.one("SELECT DATABASE()").await, t.schema, "the backend is as good as before");
    let none = Login { schema: None, ..t.app() };
    assert_eq!(t.client_as(&none).await.query("SELECT DATABASE()").await.rows(), [[None]]);
});

fn two_clients(config: &mut Config) {
    config.server.max_clients = 2;
}

/// One client too many is told so in the place of the greeting, and let in when another one has left.
async fn one_too_many(t: &Setup, limit: &str, words: &str) {
    let first = t.client().await;
    let mut second = t.client().await;
    for _ in 0..3 {
        let mut third = Wire::open(t.address).await;
        let (header, payload) = third.frame().await.expect("words");
        let error = ErrPacket::parse(&payload).expect("an error");
        assert_eq!((header.seq, error.code, error.state), (0, 1040, None), "before the greeting there are no states");
        assert_eq!(String::from_utf8_lossy(error.message), words);
        assert!(third.frame().await.is_err(), "and that is all");
    }
    assert_eq!(t.metric("myriad_refusals_total", Some(limit)), 3.0);
    drop(first);
    t.until("myriad_clients", None, 1.0).await;
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
    assert_eq!(second.one("SELECT 2").await, "2");
}

on_both!(one_client_too_many, two_clients, |t| async move {
    one_too_many(&t, "max_clients", "Too many connections: server.max_clients is 2").await;
});

on_both!(one_client_too_many_from_one_address, |config| config.server.max_clients_per_address = 2, |t| async move {
    let words = "Too many connections: server.max_clients_per_address is 2";
    one_too_many(&t, "max_clients_per_address", words).await;
});

on_both!(one_client_of_a_user_too_many, |config| config.auth.users[0].max_clients = 1, |t| async move {
    let first = t.client().await;
    let (code, words) = refusal(outcome(t.address, &t.app()).await);
    assert_eq!((code, &words[..]), (1040, "Too many connections: auth.users.max_clients is 1"));
    let other = Login { user: "other", password: "other-secret", ..t.app() };
    assert_eq!(t.client_as(&other).await.one("SELECT 1").await, "1");
    drop(first);
    t.until("myriad_clients", None, 0.0).await;
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
    // A refused password does not count as a client.
    for _ in 0..3 {
        assert!(matches!(
            outcome(t.address, &Login { password: "wrong", ..t.app() }).await,
            Err(LoginError::Server { code: 1045, .. })
        ));
    }
    t.until("myriad_clients", None, 0.0).await;
    assert_eq!(t.client().await.one("SELECT 2").await, "2");
});

// The name at the proxy, another one at the server.
on_both!(
    a_user_with_another_name_at_the_server,
    |config| {
        config.auth.users[0].name = "frontend".into();
        config.auth.users[0].backend_user = Some("app".into());
    },
    |t| async move {
        let login = Login { user: "frontend", ..t.app() };
        let mut client = t.client_as(&login).await;
        assert_eq!(client.one("SELECT CURRENT_USER()").await, "app@%");
        assert_eq!(refusal(outcome(t.address, &t.app()).await).0, 1045, "nobody of that name here");
    }
);
