//! COM_CHANGE_USER: another login on the same connection.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::handshake::{LoginError, TlsWish};

use super::logins;
use crate::support::{Kind, Login, Packets, Setup, Wire, on_both, one_backend};

fn other(t: &Setup) -> Login {
    Login { user: "other", password: "other-secret", schema: Some("test2".into()), ..t.app() }
}

/// What a statement answers, or its error's number.
async fn answer(client: &mut Wire, sql: &str) -> Result<Vec<Vec<Option<String>>>, u16> {
    let reply = client.query(sql).await;
    match reply.error() {
        None => Ok(reply.rows()),
        Some((code, _)) => Err(code),
    }
}

/// Everything that must not outlive a change of users.
async fn leaves_nothing(t: &Setup, client: &mut Wire) -> Vec<Result<Vec<Vec<Option<String>>>, u16>> {
    client.query("CREATE TABLE IF NOT EXISTS kept (id INT PRIMARY KEY)").await.expect_ok();
    for sql in [
        "SET @a = 5, sql_mode = 'ANSI_QUOTES', time_zone = '+07:00'",
        "CREATE TEMPORARY TABLE kept_for_a_while (id INT)",
        "PREPARE p FROM 'SELECT 1'",
        "SELECT LAST_INSERT_ID(77)",
        "SELECT CAST('x' AS SIGNED)",
        "BEGIN",
        "INSERT INTO kept VALUES (1)",
    ] {
        client.query(sql).await.expect_ok();
    }
    let id = client.prepare("SELECT 2").await;
    client.change_user(&Login { collation: 8, ..other(t) }).await.expect("welcome");
    let mut seen = Vec::new();
    for sql in [
        "SHOW WARNINGS",
        "SELECT CURRENT_USER(), DATABASE()",
        "SELECT @a, @@sql_mode, @@time_zone, LAST_INSERT_ID()",
        "SELECT @@character_set_client, @@character_set_results, @@collation_connection",
        "SELECT * FROM kept_for_a_while",
        "EXECUTE p",
    ] {
        seen.push(answer(client, sql).await);
    }
    let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    seen.push(Err(client.command(Command::StmtExecute, &execute).await.error().expect("unknown").0));
    seen.push(answer(client, &format!("SELECT COUNT(*) FROM {}.kept", t.schema)).await);
    seen
}

// On MariaDB the flag counts at the login alone.
on_both!(ignore_space_after_a_change_of_users, one_backend, |t| async move {
    let login = t.app().with(CapabilityFlags::CLIENT_IGNORE_SPACE);
    let mut answers = Vec::new();
    for mut client in [t.client_as(&login).await, t.direct(&login).await] {
        let mut seen = vec![client.one("SELECT @@sql_mode").await, client.one("SELECT COUNT (*)").await];
        client.query("SELECT 1 UNION SELECT 2").await;
        client.change_user(&login).await.expect("welcome");
        for sql in ["SELECT FOUND_ROWS()", "SELECT @@sql_mode"] {
            seen.push(client.one(sql).await);
        }
        seen.push(format!("{:?}", client.query("SELECT COUNT (*)").await.error()));
        client.command(Command::ResetConnection, b"").await.expect_ok();
        seen.push(client.one("SELECT @@sql_mode").await);
        answers.push(seen);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0][3].contains("IGNORE_SPACE"), t.kind == Kind::MySql);
});

on_both!(nothing_of_the_old_user_is_left, |t| async move {
    let direct = leaves_nothing(&t, &mut t.direct(&t.app()).await).await;
    let mut client = t.client().await;
    assert_eq!(leaves_nothing(&t, &mut client).await, direct);
    assert_eq!(direct.last(), Some(&Ok(vec![vec![Some("0".to_owned())]])), "the transaction was rolled back");
    // And back again.
    client.change_user(&t.app()).await.expect("welcome");
    let who = client.query("SELECT CURRENT_USER(), DATABASE(), @a").await.rows();
    assert_eq!(who, [[Some("app@%".into()), Some(t.schema.clone()), None]]);
    assert_eq!(logins(&t, "ok"), 3.0);
});

/// Changes of users that are refused, and how.
fn refused(t: &Setup) -> [(Login, u16); 5] {
    [
        (Login { password: "wrong", ..other(t) }, 1045),
        (Login { password: "", ..other(t) }, 1045),
        (Login { user: "nobody", ..other(t) }, 1045),
        (Login { schema: Some("test_that_is_not_there".into()), ..other(t) }, 1049),
        (Login { schema: Some("mysql_is_not_for_you".into()), ..other(t) }, 1044),
    ]
}

// MySQL closes the connection behind the error, MariaDB goes on with the old user.
on_both!(a_refused_change_is_refused_in_the_servers_words, |t| async move {
    for (login, code) in refused(&t) {
        let (mut client, mut direct) = (t.client().await, t.direct(&t.app()).await);
        let proxied = client.change_user(&login).await.expect_err("refused");
        assert_eq!(proxied, direct.change_user(&login).await.expect_err("refused"), "{login:?}");
        assert!(matches!(&proxied, LoginError::Server { code: it, .. } if *it == code), "{proxied:?}");
        if t.kind == Kind::MySql {
            assert!(client.frame().await.is_err(), "the connection ends");
        } else {
            assert_eq!(client.one("SELECT CURRENT_USER()").await, "app@%");
        }
    }
    assert_eq!((logins(&t, "denied"), logins(&t, "schema")), (3.0, 2.0));
    t.until("myriad_clients", None, 0.0).await;
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
});

/// A session before and after changes of users that fail, and what becomes of it in the end.
async fn after_refusals(t: &Setup, client: &mut Wire) -> Vec<Result<Vec<Vec<Option<String>>>, u16>> {
    let code = |outcome| match outcome {
        Ok(()) => Err(0),
        Err(LoginError::Server { code, .. }) => Err(code),
        Err(_) => Err(u16::MAX),
    };
    let mut seen = Vec::new();
    for login in refused(t).into_iter().map(|(login, _)| login).chain([t.app(), other(t)]) {
        for sql in ["SET @a = 5, sql_mode = '', NAMES latin1", "CREATE TEMPORARY TABLE own (id INT)"] {
            seen.push(answer(client, sql).await);
        }
        seen.push(code(client.change_user(&login).await));
        for sql in [
            "SELECT CURRENT_USER(), DATABASE(), @a, @@sql_mode",
            "SELECT @@character_set_client, @@character_set_results, @@collation_connection",
            "SELECT * FROM own",
        ] {
            seen.push(answer(client, sql).await);
        }
    }
    seen
}

on_both!(whoever_is_refused_stays_where_he_was, |t| async move {
    if t.kind == Kind::MySql {
        return;
    }
    // Both wait a second for each refusal.
    let (mut direct, mut client) = (t.direct(&t.app()).await, t.client().await);
    let (direct, proxied) = tokio::join!(after_refusals(&t, &mut direct), after_refusals(&t, &mut client));
    assert_eq!(proxied, direct);
    assert_eq!(direct.iter().filter(|it| **it == Err(1047)).count(), 4, "after three refusals no change is tried");
});

on_both!(the_last_packet_of_a_change_is_the_servers, |t| async move {
    for login in [other(&t), Login { schema: None, ..other(&t) }, t.app()] {
        let (mut direct, mut client) = (t.direct(&t.app()).await, t.client().await);
        direct.change_user(&login).await.expect("welcome");
        client.change_user(&login).await.expect("welcome");
        // Numbers differ with the number of packets that the password took.
        assert_eq!(client.welcome.1, direct.welcome.1, "{login:?}");
    }
});

on_both!(to_a_user_without_a_password_and_inside_tls, |t| async move {
    let mut client = t.client_as(&Login { tls: TlsWish::Required, ..t.app() }).await;
    for (user, password) in [("nopass", ""), ("other", "other-secret"), ("app", "app-secret"), ("nopass", "")] {
        client.change_user(&Login { user, password, ..t.app() }).await.expect("welcome");
        assert_eq!(client.one("SELECT CURRENT_USER()").await, format!("{user}@%"));
    }
});

on_both!(to_no_schema, |t| async move {
    let mut client = t.client().await;
    client.change_user(&Login { schema: None, ..other(&t) }).await.expect("welcome");
    assert_eq!(client.query("SELECT DATABASE()").await.rows(), [[None]]);
});

// What a user may not have more of is counted anew.
on_both!(a_change_counts_as_a_client_of_the_new_user, |config| config.auth.users[1].max_clients = 1, |t| async move {
    let mut first = t.client().await;
    first.change_user(&other(&t)).await.expect("welcome");
    let error = t.client().await.change_user(&other(&t)).await.expect_err("one too many");
    assert!(matches!(error, LoginError::Server { code: 1040, .. }), "{error:?}");
    first.change_user(&t.app()).await.expect("welcome");
    t.client().await.change_user(&other(&t)).await.expect("the place is free again");
});

/// What a trigger and a few statements leave to be seen by what follows, behind a change to the same user.
async fn left_to_the_same_user(t: &Setup, client: &mut Wire, login: &Login) -> Vec<Packets> {
    for sql in [
        "CREATE TABLE sprung (n INT)",
        "CREATE TRIGGER springs BEFORE INSERT ON sprung FOR EACH ROW SET @left_by_it = 7",
        "SET @seen = 5",
        "INSERT INTO sprung VALUES (1), (2), (3)",
    ] {
        client.query(sql).await.expect_ok();
    }
    client.change_user(login).await.expect("welcome");
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
    let mut seen = Vec::new();
    for sql in ["SELECT ROW_COUNT() AS n", "SELECT @left_by_it AS a", "SELECT @seen AS b"] {
        seen.push(client.query(sql).await);
    }
    seen
}

on_both!(the_same_user_again_is_another, one_backend, |t| async move {
    let mut direct = t.direct(&t.app()).await;
    let wanted = left_to_the_same_user(&t, &mut direct, &t.app()).await;
    direct.query("DROP TABLE sprung").await.expect_ok();
    let mut client = t.client().await;
    let seen = left_to_the_same_user(&t, &mut client, &t.app()).await;
    for (seen, wanted) in seen.iter().zip(&wanted) {
        assert_eq!(seen.raw, wanted.raw);
    }
});

/// Whether several statements in one text are allowed, as logged in and after each change of it and of the user.
async fn several_statements(t: &Setup, client: &mut Wire) -> Vec<bool> {
    let mut seen = Vec::new();
    for option in [None, Some(0), Some(1)] {
        if let Some(option) = option {
            client.command(Command::SetOption, &[option, 0]).await.expect_ok();
        }
        client.change_user(&other(t)).await.expect("welcome");
        seen.push(answer(client, "DO 1; SELECT 2").await.is_ok());
    }
    seen
}

on_both!(whether_several_statements_are_allowed_stays, one_backend, |t| async move {
    let without = Login { capabilities: t.app().capabilities - CapabilityFlags::CLIENT_MULTI_STATEMENTS, ..t.app() };
    let with = Login { capabilities: without.capabilities | CapabilityFlags::CLIENT_MULTI_STATEMENTS, ..t.app() };
    for login in [&without, &with] {
        let direct = several_statements(&t, &mut t.direct(login).await).await;
        assert_eq!(several_statements(&t, &mut t.client_as(login).await).await, direct);
        assert_eq!(direct[1..], [true, false]);
    }
});
