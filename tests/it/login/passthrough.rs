//! `auth.mode = "passthrough"`: no users are configured, the server knows them.

use myriad::config::{AuthMode, Config};
use myriad::protocol::handshake::TlsWish;

use super::{ends_as_directly, logins, outcome, refusal};
use crate::support::{Login, Setup, Wire, on_both};

fn passthrough(config: &mut Config) {
    config.auth.mode = AuthMode::Passthrough;
    config.auth.users.clear();
}

/// As many connections as clients.
fn roomy(config: &mut Config) {
    passthrough(config);
    config.pool.max_connections = 8;
}

/// An account of the test's own, which changes its password.
struct Account<'a> {
    t: &'a Setup,
    name: &'static str,
}

impl<'a> Account<'a> {
    async fn new(t: &'a Setup, password: &str) -> Self {
        let name = t.schema.replace("tenant", "pass").leak();
        let mut admin = t.admin().await;
        for sql in [
            format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'"),
            format!("GRANT ALL ON `{}`.* TO '{name}'@'%'", t.schema),
        ] {
            admin.query(&sql).await.expect_ok();
        }
        Self { t, name }
    }

    fn login(&self, password: &'static str) -> Login {
        Login { user: self.name, password, ..self.t.app() }
    }

    async fn set_password(&self, password: &str) {
        let sql = format!("ALTER USER '{}'@'%' IDENTIFIED BY '{password}'", self.name);
        self.t.admin().await.query(&sql).await.expect_ok();
    }

    /// Kills every connection of the account.
    async fn kill_all(&self) {
        let mut admin = self.t.admin().await;
        let list = format!("SELECT id FROM information_schema.processlist WHERE user = '{}'", self.name);
        let all = admin.query(&list).await.rows();
        assert!(!all.is_empty(), "it has connections");
        for id in all.into_iter().flatten().flatten() {
            admin.query(&format!("KILL {id}")).await.expect_ok();
        }
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !admin.query(&list).await.rows().is_empty() {
            assert!(std::time::Instant::now() < limit, "they do not go");
        }
    }

    async fn drop(self) {
        self.t.admin().await.query(&format!("DROP USER '{}'@'%'", self.name)).await.expect_ok();
    }
}

fn opened(t: &Setup) -> f64 {
    t.metric("myriad_backend_opens_total", None)
}

on_both!(a_password_is_verified_once_and_remembered, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    let mut client = t.client_as(&account.login("first")).await;
    assert_eq!(client.one("SELECT CURRENT_USER()").await, format!("{}@%", account.name));
    drop(client);
    let before = opened(&t);
    for tls in [TlsWish::Off, TlsWish::Required, TlsWish::Off] {
        let mut client = t.client_as(&Login { tls, ..account.login("first") }).await;
        assert_eq!(client.one("SELECT 1").await, "1");
        drop(client);
        t.until("myriad_clients", None, 0.0).await;
    }
    assert_eq!(opened(&t), before, "nobody had to ask the server again");
    account.drop().await;
});

on_both!(a_first_login_inside_tls, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    let mut client = t.client_as(&Login { tls: TlsWish::Required, ..account.login("first") }).await;
    assert_eq!(client.one("SELECT CURRENT_USER()").await, format!("{}@%", account.name));
    drop(client);
    account.drop().await;
});

on_both!(whoever_is_refused_is_told_what_the_server_would_say, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    let good = account.login("first");
    for round in 0..2 {
        for login in [
            account.login("wrong"),
            account.login(""),
            Login { user: "nobody_of_this_name", ..account.login("first") },
            Login { user: "nopass", ..account.login("not empty") },
        ] {
            let refused = ends_as_directly(&t, &login).await;
            let using = if login.password.is_empty() { "NO" } else { "YES" };
            let words = format!("Access denied for user '{}'@'127.0.0.1' (using password: {using})", login.user);
            assert_eq!(refusal(refused), (1045, words), "round {round}");
        }
        ends_as_directly(&t, &good).await.expect("the right one still gets in");
    }
    assert_eq!(logins(&t, "denied"), 8.0);
    let nobody = Login { schema: Some("test_that_is_not_there".into()), ..good };
    assert_eq!(refusal(outcome(t.address, &nobody).await).0, 1044);
    account.drop().await;
});

on_both!(an_empty_password, passthrough, |t| async move {
    let login = Login { user: "nopass", password: "", ..t.app() };
    for _ in 0..2 {
        let mut client = t.client_as(&login).await;
        assert_eq!(client.one("SELECT CURRENT_USER()").await, "nopass@%");
    }
});

on_both!(a_new_password_replaces_the_old_one, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    let mut client = t.client_as(&account.login("first")).await;
    account.set_password("second").await;
    assert_eq!(client.one("SELECT 'still here'").await, "still here", "as on a connection of its own");
    ends_as_directly(&t, &account.login("second")).await.expect("the new one gets in");
    assert_eq!(refusal(ends_as_directly(&t, &account.login("first")).await).0, 1045);
    ends_as_directly(&t, &account.login("second")).await.expect("the new one is the one remembered");
    drop(client);
    account.drop().await;
});

// The old password is remembered, so it opens the door; but as soon as it must open a backend it is found out.
on_both!(an_old_password_is_forgotten_when_the_server_refuses_it, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    drop(t.client_as(&account.login("first")).await);
    t.until("myriad_clients", None, 0.0).await;
    account.set_password("second").await;
    account.kill_all().await;
    for _ in 0..2 {
        let words = format!("Access denied for user '{}'@'127.0.0.1' (using password: YES)", account.name);
        assert_eq!(refusal(outcome(t.address, &account.login("first")).await), (1045, words));
    }
    let mut client = t.client_as(&account.login("second")).await;
    assert_eq!(client.one("SELECT 1").await, "1");
    drop(client);
    account.drop().await;
});

on_both!(a_user_changes_into_another, passthrough, |t| async move {
    let account = Account::new(&t, "first").await;
    let mut client = Wire::connect(t.address, &account.login("first")).await.expect("welcome");
    let other = Login { user: "other", password: "other-secret", ..t.app() };
    client.change_user(&other).await.expect("welcome");
    assert_eq!(client.one("SELECT CURRENT_USER()").await, "other@%");
    client.change_user(&Login { password: "wrong", ..other }).await.expect_err("refused");
    account.drop().await;
});

on_both!(
    /// Each proves its password by a login of its own, and then all share what there is.
    clients_that_come_together,
    |config| {
        passthrough(config);
        config.pool.max_connections = 3;
    },
    |t| async move {
        let mut arriving = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let t = std::sync::Arc::clone(&t);
            arriving.spawn(async move { t.client().await });
        }
        let mut clients = arriving.join_all().await;
        let opened = t.metric("myriad_backend_opens_total", Some("ok"));
        for _ in 0..3 {
            for client in &mut clients {
                assert_eq!(client.one("SELECT 'mine'").await, "mine");
            }
        }
        let more = t.metric("myriad_backend_opens_total", Some("ok")) - opened;
        assert!(more <= 3.0, "{more} connections were opened for statements");
    }
);

// Rights that are given on everything are those of the login, for as long as the connection lasts.
on_both!(a_change_of_accounts_is_for_those_who_come_after_it, roomy, |t| async move {
    let account = Account::new(&t, "first").await;
    let mut admin = t.client_as(&Login::admin()).await;
    let mut early = t.client_as(&account.login("first")).await;
    let sees = "SELECT COUNT(*) > 0 FROM mysql.db";
    early.query(sees).await.expect_error(1142);
    admin.query(&format!("GRANT SELECT ON *.* TO '{}'@'%'", account.name)).await.expect_ok();
    let mut late = t.client_as(&account.login("first")).await;
    assert_eq!(late.one(sees).await, "1");
    early.query(sees).await.expect_error(1142);
    admin.query(&format!("ALTER USER '{}'@'%' ACCOUNT LOCK", account.name)).await.expect_ok();
    ends_as_directly(&t, &account.login("first")).await.expect_err("locked");
    for client in [&mut early, &mut late] {
        assert_eq!(client.one("SELECT 'still here'").await, "still here", "as on a connection of its own");
    }
    admin.query(&format!("DROP USER '{}'@'%'", account.name)).await.expect_ok();
    ends_as_directly(&t, &account.login("first")).await.expect_err("gone");
    assert_eq!(early.one("SELECT 'still here'").await, "still here");
    let again = format!("CREATE USER '{}'@'%' IDENTIFIED BY 'first'", account.name);
    admin.query(&again).await.expect_ok();
    // It may not use the schema any more.
    ends_as_directly(&t, &account.login("first")).await.expect_err("no schema");
    let mut last = t.client_as(&Login { schema: None, ..account.login("first") }).await;
    last.query(&format!("USE {}", t.schema)).await.expect_error(1044);
    drop((early, late, last));
    account.drop().await;
});
