//! A role is its session's alone. COM_RESET_CONNECTION leaves it as it is, on both servers; so a connection that has one is never
//! anybody else's.

use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Setup, Wire, on_both, own_backends};

/// Two roles that the test's own account may take on. (They go with the test.)
struct Roles {
    admin: Wire,
    names: [String; 2],
}

impl Roles {
    async fn new(t: &Setup) -> Self {
        let names = ["a", "b"].map(|end| format!("{}_{end}", t.schema));
        let mut admin = t.admin().await;
        for role in &names {
            admin.query(&format!("CREATE ROLE {role}")).await.expect_ok();
            admin.query(&format!("GRANT {role} TO {}", t.schema)).await.expect_ok();
        }
        Self { admin, names }
    }

    async fn gone(mut self) {
        for role in &self.names {
            self.admin.query(&format!("DROP ROLE {role}")).await.expect_ok();
        }
    }
}

/// The active role, as the server names it.
async fn role(client: &mut Wire) -> String {
    let reply = client.query("SELECT CURRENT_ROLE()").await;
    let name = reply.rows()[0][0].clone().unwrap_or_else(|| "NONE".into());
    name.replace('`', "").replace("@%", "")
}

on_both!(nobody_has_anothers_role, own_backends, |t| async move {
    let roles = Roles::new(&t).await;
    let [a, b] = &roles.names;
    let mut client = t.client().await;
    let mut other = t.client().await;
    for reset in [false, true] {
        client.query(&format!("SET ROLE {a}")).await.expect_ok();
        t.until("myriad_pinned_clients", Some("role"), 1.0).await;
        for _ in 0..3 {
            assert_eq!(role(&mut other).await, "NONE");
            assert_eq!(role(&mut client).await, *a);
        }
        client.query("SET ROLE nobody_has_this").await.error().expect("there is no such role");
        client.query(&format!("SET ROLE {b}")).await.expect_ok();
        if reset {
            client.command(Command::ResetConnection, b"").await.expect_ok();
            t.until("myriad_pinned_clients", Some("role"), 1.0).await;
        }
        assert_eq!(role(&mut client).await, *b, "as on a connection of its own");
        assert_eq!(role(&mut other).await, "NONE");
        client.query("SET ROLE NONE").await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
        assert_eq!(role(&mut client).await, "NONE");
    }
    if t.kind == Kind::MySql {
        for (sql, pinned) in
            [("SET ROLE ALL", true), ("SET ROLE DEFAULT", false), (&*format!("SET ROLE ALL EXCEPT {a}"), true)]
        {
            client.query(sql).await.expect_ok();
            t.until("myriad_pinned_clients", Some("role"), f64::from(u8::from(pinned))).await;
        }
    }
    // Whoever leaves with one, leaves none behind.
    for _ in 0..3 {
        client.query(&format!("SET ROLE {a}")).await.expect_ok();
        client.send(Command::Quit, b"").await;
        t.until("myriad_pinned_clients", None, 0.0).await;
        client = t.client().await;
        assert_eq!((role(&mut client).await, role(&mut other).await), ("NONE".into(), "NONE".into()));
        client.query(&format!("SET ROLE {b}")).await.expect_ok();
        client.change_user(&t.app()).await.expect("the same user");
        assert_eq!(role(&mut client).await, "NONE");
    }
    drop((client, other));
    t.until("myriad_clients", None, 0.0).await;
    roles.gone().await;
});

on_both!(a_role_that_a_procedure_has_set, own_backends, |t| async move {
    let roles = Roles::new(&t).await;
    let a = roles.names[0].clone();
    let (mut client, mut other) = (t.client().await, t.client().await);
    let takes = format!("CREATE PROCEDURE takes() SQL SECURITY INVOKER SET ROLE {a}");
    client.query(&takes).await.expect_ok();
    for prepared in [false, true] {
        let called = if prepared {
            let id = client.prepare("CALL takes()").await.to_le_bytes();
            client.command(Command::StmtExecute, &[&id[..], &[0, 1, 0, 0, 0]].concat()).await
        } else {
            client.query("CALL takes()").await
        };
        called.expect_ok();
        t.until("myriad_pinned_clients", Some("call"), 1.0).await;
        assert_eq!((role(&mut client).await, role(&mut other).await), (a.clone(), "NONE".into()));
        client.command(Command::ResetConnection, b"").await.expect_ok();
        t.until("myriad_pinned_clients", Some("role"), 1.0).await;
        assert_eq!((role(&mut client).await, role(&mut other).await), (a.clone(), "NONE".into()));
        client.query("SET ROLE NONE").await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
    }
    client.query("CALL takes()").await.expect_ok();
    client.send(Command::Quit, b"").await;
    t.until("myriad_clients", None, 1.0).await;
    t.until("myriad_pinned_clients", None, 0.0).await;
    let mut client = t.client().await;
    for _ in 0..3 {
        assert_eq!((role(&mut client).await, role(&mut other).await), ("NONE".into(), "NONE".into()));
    }
    drop((client, other));
    t.until("myriad_clients", None, 0.0).await;
    roles.gone().await;
});

on_both!(the_role_of_the_login_pins_nobody, own_backends, |t| async move {
    let mut roles = Roles::new(&t).await;
    let [a, b] = roles.names.clone();
    let to = if t.kind == Kind::MariaDb { "FOR" } else { "TO" };
    roles.admin.query(&format!("SET DEFAULT ROLE {a} {to} {}", t.schema)).await.expect_ok();
    let mut client = t.client().await;
    // Connections that were opened before the default was set keep what they had.
    t.kill_backends().await;
    let first = role(&mut client).await;
    assert_eq!(first, a);
    client.query(&format!("SET ROLE {b}")).await.expect_ok();
    t.until("myriad_pinned_clients", Some("role"), 1.0).await;
    client.query("SET ROLE NONE").await.expect_ok();
    t.until("myriad_pinned_clients", Some("role"), 1.0).await;
    client.query(&format!("SET ROLE {a}")).await.expect_ok();
    t.until("myriad_pinned_clients", None, 0.0).await;
    drop(client);
    t.until("myriad_clients", None, 0.0).await;
    roles.gone().await;
});

// Whoever changed it, and wherever: the proxy learns it from the first connection that comes with another one.
on_both!(a_new_default_role_is_for_those_who_come_after_it, own_backends, |t| async move {
    let mut roles = Roles::new(&t).await;
    let [a, b] = roles.names.clone();
    let to = if t.kind == Kind::MariaDb { "FOR" } else { "TO" };
    let mut early = t.client().await;
    assert_eq!(role(&mut early).await, "NONE");
    roles.admin.query(&format!("SET DEFAULT ROLE {a} {to} {}", t.schema)).await.expect_ok();
    // It keeps the only connection that there is, so the next one needs another.
    early.query("BEGIN").await.expect_ok();
    let mut late = t.client().await;
    assert_eq!(role(&mut late).await, a);
    early.query("COMMIT").await.expect_ok();
    let mut last = t.client().await;
    for _ in 0..3 {
        assert_eq!((role(&mut late).await, role(&mut last).await), (a.clone(), a.clone()));
    }
    assert_eq!(early.one("SELECT 1").await, "1");
    // Past whoever is here, and through the proxy: at once.
    let mut through = t.client_as(&Login::admin()).await;
    through.query(&format!("SET DEFAULT ROLE {b} {to} {}", t.schema)).await.expect_ok();
    drop(through);
    let mut new = t.client().await;
    assert_eq!(role(&mut new).await, b);
    // Out of a schema, a connection logs in again.
    roles.admin.query(&format!("SET DEFAULT ROLE {a} {to} {}", t.schema)).await.expect_ok();
    let mut nowhere = t.client_as(&Login { schema: None, ..t.app() }).await;
    assert_eq!(nowhere.one("SELECT DATABASE() IS NULL").await, "1");
    let mut newest = t.client().await;
    for _ in 0..3 {
        assert_eq!((role(&mut nowhere).await, role(&mut newest).await), (a.clone(), a.clone()));
    }
    drop((early, late, last, new, nowhere, newest));
    t.until("myriad_clients", None, 0.0).await;
    roles.gone().await;
});

// MySQL reports nothing of it: see the limits in docs/ARCHITECTURE.md.
on_both!(a_role_that_a_trigger_has_set, own_backends, |t| async move {
    if t.kind == Kind::MySql {
        return;
    }
    let roles = Roles::new(&t).await;
    let a = roles.names[0].clone();
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    client.query(&format!("CREATE TRIGGER takes BEFORE INSERT ON t FOR EACH ROW SET ROLE {a}")).await.expect_ok();
    client.query("INSERT INTO t VALUES (1)").await.expect_ok();
    t.until("myriad_pinned_clients", Some("unexplained"), 1.0).await;
    for _ in 0..3 {
        assert_eq!((role(&mut client).await, role(&mut other).await), (a.clone(), "NONE".into()));
    }
    client.send(Command::Quit, b"").await;
    t.until("myriad_pinned_clients", None, 0.0).await;
    for _ in 0..3 {
        assert_eq!(role(&mut other).await, "NONE");
    }
    drop(other);
    t.until("myriad_clients", None, 0.0).await;
    roles.gone().await;
});
