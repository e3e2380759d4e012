//! The default schema: with one, without one, and when it is gone.

use std::sync::Arc;

use myriad::config::{BackendTlsMode, Config, User};
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Kind, Login, Setup, Twin, Wire, on_both};

fn one_backend(config: &mut Config) {
    config.pool.max_connections = 1;
}

/// The user's login into no schema.
fn nowhere() -> Login {
    Login { schema: None, ..Login::app() }
}

/// The schema that the server says a session is in; "" is none.
async fn whereabouts(client: &mut Wire) -> String {
    client.one("SELECT IFNULL(DATABASE(), '')").await
}

/// As many backends as this were opened, and none was closed for it.
fn assert_opened(t: &Setup, backends: f64) {
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), backends);
}

/// A schema beside the test's own, with a table of its own.
async fn another_schema(t: &Setup) -> String {
    let name = format!("{}_b", t.schema);
    let mut admin = t.admin().await;
    admin.query(&format!("CREATE DATABASE {name}")).await.expect_ok();
    admin.query(&format!("CREATE TABLE {name}.here (id INT PRIMARY KEY)")).await.expect_ok();
    name
}

async fn drop_schema(t: &Setup, name: &str) {
    t.admin().await.query(&format!("DROP DATABASE IF EXISTS {name}")).await.expect_ok();
}

async fn alternate(t: Arc<Setup>) {
    let (mut with, mut without) = (t.client().await, t.client_as(&nowhere()).await);
    with.query("CREATE TABLE mine (id INT PRIMARY KEY)").await.expect_ok();
    for round in 0..20 {
        assert_eq!(whereabouts(&mut without).await, "");
        without.query("SELECT * FROM mine").await.expect_error(1046);
        assert_eq!(whereabouts(&mut with).await, t.schema);
        with.query(&format!("INSERT INTO mine VALUES ({round})")).await.expect_ok();
    }
    assert_eq!(with.one("SELECT COUNT(*) FROM mine").await, "20");
    assert_opened(&t, 1.0);
    assert_eq!(t.metric("myriad_backend_closes_total", None), 0.0);
    assert!(t.metric("myriad_schema_exits_total", None) >= 20.0);
}

on_both!(clients_with_and_without_a_schema_share_one_backend, one_backend, |t| alternate(t));

on_both!(
    clients_with_and_without_a_schema_share_one_backend_inside_tls,
    |config| {
        one_backend(config);
        config.backend.tls.mode = BackendTlsMode::Required;
    },
    |t| alternate(t)
);

/// A server that has forgotten the password's hash wants the password itself: in clear inside TLS, else encrypted.
async fn forgotten(t: Arc<Setup>) {
    let (mut with, mut without, mut admin) = (t.client().await, t.client_as(&nowhere()).await, t.admin().await);
    for _ in 0..3 {
        assert_eq!(whereabouts(&mut with).await, t.schema);
        admin.query("FLUSH PRIVILEGES").await.expect_ok();
        assert_eq!(whereabouts(&mut without).await, "");
    }
    assert_opened(&t, 1.0);
}

on_both!(a_backend_leaves_its_schema_by_full_authentication, one_backend, |t| forgotten(t));

on_both!(
    a_backend_leaves_its_schema_by_full_authentication_inside_tls,
    |config| {
        one_backend(config);
        config.backend.tls.mode = BackendTlsMode::Required;
    },
    |t| forgotten(t)
);

on_both!(many_clients_without_a_schema_do_not_empty_the_pool, |t| async move {
    let mut tasks = Vec::new();
    for n in 0..12 {
        let t = Arc::clone(&t);
        tasks.push(tokio::spawn(async move {
            let (login, wanted) = if n % 2 == 0 { (t.app(), t.schema.as_str()) } else { (nowhere(), "") };
            let mut client = t.client_as(&login).await;
            for _ in 0..20 {
                assert_eq!(whereabouts(&mut client).await, wanted);
            }
        }));
    }
    for task in tasks {
        task.await.expect("a client is where it logged in");
    }
    assert!(t.metric("myriad_backend_opens_total", Some("ok")) <= 2.0);
});

on_both!(a_backend_that_left_its_schema_has_nothing_of_its_last_session, one_backend, |t| async move {
    let (mut with, mut without) = (t.client().await, t.client_as(&nowhere()).await);
    for _ in 0..3 {
        with.query("SET SESSION sort_buffer_size=1048576, sql_mode='ANSI_QUOTES', time_zone='+03:00'")
            .await
            .expect_ok();
        with.query("SET NAMES latin1").await.expect_ok();
        let own = "SELECT CONCAT_WS(' ', @@sort_buffer_size, @@sql_mode, @@time_zone, @@character_set_client)";
        assert_eq!(with.one(own).await, "1048576 ANSI_QUOTES +03:00 latin1");
        let others = "SELECT CONCAT_WS(' ', @@sort_buffer_size <> 1048576, @@sql_mode <> 'ANSI_QUOTES', @@time_zone, \
                      @@character_set_client, @@character_set_results)";
        assert_eq!(without.one(others).await, "1 1 SYSTEM utf8mb4 utf8mb4");
        // The trackers are on again: what is set now is carried on.
        without.query("SET SESSION div_precision_increment=7").await.expect_ok();
        assert_eq!(with.one("SELECT @@div_precision_increment").await, "4");
        assert_eq!(without.one("SELECT @@div_precision_increment").await, "7");
        without.query("SET SESSION div_precision_increment=DEFAULT").await.expect_ok();
    }
    assert_opened(&t, 1.0);
});

on_both!(
    /// What a connection was opened for outlives the change: its flags, and what COM_SET_OPTION said.
    a_backend_that_left_its_schema_is_of_its_class_still,
    one_backend,
    |t| async move {
        let flags = CapabilityFlags::CLIENT_FOUND_ROWS
            | CapabilityFlags::CLIENT_IGNORE_SPACE
            | CapabilityFlags::CLIENT_MULTI_STATEMENTS;
        let (mut with, mut without) = (t.client_as(&t.app().with(flags)).await, t.client_as(&nowhere().with(flags)).await);
        with.query("CREATE TABLE mine (id INT PRIMARY KEY, n INT)").await.expect_ok();
        with.query("INSERT INTO mine VALUES (1, 7)").await.expect_ok();
        let update = format!("UPDATE {}.mine SET n=7", t.schema);
        for _ in 0..3 {
            for client in [&mut with, &mut without] {
                assert_eq!(client.query(&update).await.ok().affected_rows, 1, "found, though not changed");
                assert_eq!(client.one("SELECT FIND_IN_SET('IGNORE_SPACE', @@sql_mode) > 0").await, "1");
                assert_eq!(client.query("SELECT 1; SELECT 2").await.rows().len(), 2);
                client.command(Command::SetOption, &[1, 0]).await.expect_ok();
                client.query("SELECT 1; SELECT 2").await.expect_error(1064);
                client.command(Command::SetOption, &[0, 0]).await.expect_ok();
            }
            // Off for one, on for the other.
            with.command(Command::SetOption, &[1, 0]).await.expect_ok();
            assert_eq!(without.query("SELECT 1; SELECT 2").await.rows().len(), 2);
            with.query("SELECT 1; SELECT 2").await.expect_error(1064);
            with.command(Command::SetOption, &[0, 0]).await.expect_ok();
        }
        assert_opened(&t, 1.0);
    }
);

on_both!(a_backend_that_was_reset_is_of_its_class_still, one_backend, |t| async move {
    let flags = CapabilityFlags::CLIENT_IGNORE_SPACE;
    let mut client = t.client_as(&t.app().with(flags)).await;
    client.query("CREATE TEMPORARY TABLE pinned (n INT)").await.expect_ok();
    drop(client);
    t.until("myriad_resets_total", None, 1.0).await;
    let mut client = t.client_as(&t.app().with(flags)).await;
    assert_eq!(client.one("SELECT FIND_IN_SET('IGNORE_SPACE', @@sql_mode) > 0").await, "1");
    assert_opened(&t, 1.0);
});

on_both!(a_session_whose_schema_was_dropped_by_another_can_go_on, one_backend, |t| async move {
    let schema = another_schema(&t).await;
    let login = Login { schema: Some(schema.clone()), ..Login::app() };
    let mut lost = [t.client_as(&login).await, t.client_as(&login).await, t.client_as(&login).await];
    let mut other = t.client().await;
    other.query("CREATE TABLE mine (id INT PRIMARY KEY)").await.expect_ok();
    for client in &mut lost {
        assert_eq!(whereabouts(client).await, schema);
    }
    other.query(&format!("DROP DATABASE {schema}")).await.expect_ok();
    for client in &mut lost {
        for _ in 0..3 {
            assert_eq!(whereabouts(&mut other).await, t.schema);
            client.query("SELECT * FROM mine").await.expect_error(1049);
            client.query("INSERT INTO mine VALUES (1)").await.expect_error(1049);
        }
    }
    let [by_text, by_command, to_nowhere] = &mut lost;
    by_text.query(&format!("USE {schema}_nowhere")).await.expect_error(1049);
    by_text.query("SELECT * FROM mine").await.expect_error(1049);
    by_text.query(&format!("USE {}", t.schema)).await.expect_ok();
    by_command.command(Command::InitDb, format!("{schema}_nowhere").as_bytes()).await.expect_error(1049);
    by_command.query("SELECT * FROM mine").await.expect_error(1049);
    by_command.command(Command::InitDb, t.schema.as_bytes()).await.expect_ok();
    for client in [by_text, by_command] {
        assert_eq!(whereabouts(client).await, t.schema);
        client.query("SELECT * FROM mine").await.expect_ok();
        to_nowhere.query("SELECT * FROM mine").await.expect_error(1049);
        assert_eq!(whereabouts(client).await, t.schema);
    }
    assert_eq!(other.one("SELECT COUNT(*) FROM mine").await, "0");
});

on_both!(
    /// Whoever polls in vain costs nobody a connection.
    a_session_whose_schema_is_gone_does_not_empty_the_pool,
    one_backend,
    |t| async move {
        let schema = another_schema(&t).await;
        let mut lost = t.client_as(&Login { schema: Some(schema.clone()), ..Login::app() }).await;
        let mut other = t.client().await;
        drop_schema(&t, &schema).await;
        for _ in 0..20 {
            assert_eq!(whereabouts(&mut other).await, t.schema);
            lost.query("SELECT 1").await.expect_error(1049);
        }
        assert_opened(&t, 1.0);
    }
);

on_both!(who_drops_its_own_schema_is_in_none, one_backend, |t| async move {
    let schema = another_schema(&t).await;
    let mut client = t.client_as(&Login { schema: Some(schema.clone()), ..Login::app() }).await;
    let mut other = t.client().await;
    client.query(&format!("DROP DATABASE {schema}")).await.expect_ok();
    for _ in 0..3 {
        assert_eq!(whereabouts(&mut client).await, "");
        client.query("SELECT * FROM here").await.expect_error(1046);
        assert_eq!(whereabouts(&mut other).await, t.schema);
    }
    client.query(&format!("USE {}", t.schema)).await.expect_ok();
    assert_eq!(whereabouts(&mut client).await, t.schema);
    assert_opened(&t, 1.0);
});

/// The account that the next test gives another password: one for each process, since the servers may be shared.
fn turncoat() -> String {
    format!("turncoat{}", std::process::id())
}

on_both!(
    /// A backend that cannot leave its schema is not used, whatever the reason.
    nobody_is_let_into_a_schema_because_a_password_changed,
    |config| {
        one_backend(config);
        let password = "first".to_owned().into();
        config.auth.users.push(User { name: turncoat(), password, ..User::default() });
    },
    |t| async move {
        let (mut admin, user) = (t.admin().await, turncoat());
        admin.query(&format!("CREATE USER {user} IDENTIFIED BY 'first'")).await.expect_ok();
        admin.query(&format!("GRANT ALL ON {}.* TO {user}", t.schema)).await.expect_ok();
        let login = Login { user: user.clone().leak(), password: "first", ..t.app() };
        let mut with = t.client_as(&login).await;
        let mut without = t.client_as(&Login { schema: None, ..login.clone() }).await;
        assert_eq!(whereabouts(&mut without).await, "");
        assert_eq!(whereabouts(&mut with).await, t.schema);
        admin.query(&format!("ALTER USER {user} IDENTIFIED BY 'second'")).await.expect_ok();
        for _ in 0..3 {
            without.query("SELECT DATABASE()").await.expect_error(1045);
        }
        admin.query(&format!("ALTER USER {user} IDENTIFIED BY 'first'")).await.expect_ok();
        assert_eq!(whereabouts(&mut without).await, "");
        assert_eq!(whereabouts(&mut with).await, t.schema);
        admin.query(&format!("DROP USER {user}")).await.expect_ok();
    }
);

on_both!(
    /// A connection that was reset is in the schema that it was in, and has what goes with it.
    the_schema_has_its_character_set_after_a_reset,
    one_backend,
    |t| async move {
        let name = format!("{}_b", t.schema);
        let mut admin = t.admin().await;
        admin.query(&format!("CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_german2_ci")).await.expect_ok();
        let there = Login { schema: Some(name.clone()), ..Login::app() };
        let look = "SELECT CONCAT(DATABASE(), ' ', @@collation_database)";
        let wanted = format!("{name} latin1_german2_ci");
        let (mut leaves, mut stays) = (t.client_as(&there).await, t.client_as(&there).await);
        leaves.query("CREATE TEMPORARY TABLE mine (n INT)").await.expect_ok();
        drop(leaves);
        t.until("myriad_resets_total", None, 1.0).await;
        assert_eq!(stays.one(look).await, wanted);
        stays.query("CREATE FUNCTION f() RETURNS VARCHAR(9) RETURN 'x'").await.expect_ok();
        assert_eq!(stays.one("SELECT COLLATION(f())").await, "latin1_german2_ci");
        // If it is gone meanwhile, others are not held up by that.
        let mut leaves = t.client_as(&there).await;
        leaves.query("CREATE TEMPORARY TABLE mine (n INT)").await.expect_ok();
        drop_schema(&t, &name).await;
        drop(leaves);
        t.until("myriad_resets_total", None, 2.0).await;
        assert_eq!(whereabouts(&mut t.client().await).await, t.schema);
        assert_eq!(whereabouts(&mut t.client_as(&nowhere()).await).await, "");
    }
);

on_both!(the_way_back_from_a_procedure_that_failed_is_told, one_backend, |t| async move {
    let there = another_schema(&t).await;
    let mut admin = t.admin().await;
    for sql in [
        format!("CREATE PROCEDURE {there}.fails() BEGIN SELECT 1 AS a; SELECT * FROM nowhere; END"),
        format!("CREATE PROCEDURE {there}.gives(OUT a INT) SET a = 1"),
    ] {
        admin.query(&sql).await.expect_ok();
    }
    let mut twin = Twin::new(&t, &t.app()).await;
    for call in [format!("CALL {there}.fails()"), format!("CALL {there}.gives(1)")] {
        for next in ["SELECT 1", "SET sql_warnings = 0", "COMMIT", "SET time_zone = '+01:00'", "SELECT * FROM nowhere"]
        {
            twin.query_and_keep(&call).await;
            twin.query_and_keep(next).await;
            for sql in ["SELECT 2", "SET autocommit = 1", "SELECT 3"] {
                twin.query_and_keep(sql).await;
            }
            twin.command(Command::ResetConnection, b"").await;
        }
    }
    drop_schema(&t, &there).await;
});

on_both!(an_execute_tells_its_way_back_from_the_schema_of_its_preparation, one_backend, |t| async move {
    let there = another_schema(&t).await;
    let texts = ["COMMIT", "SELECT 1", "SHOW WARNINGS", "SELECT DATABASE()", "DO 1"];
    let mut twin = Twin::new(&t, &t.app()).await;
    let mut ids = Vec::new();
    // (MySQL prepares no SHOW WARNINGS.)
    for text in texts.into_iter().filter(|text| t.kind == Kind::MariaDb || !text.starts_with("SHOW")) {
        ids.push(twin.prepare(text).await);
    }
    twin.query(&format!("USE {there}")).await;
    for id in &ids {
        twin.execute(*id, &[]).await;
        twin.query("SELECT CAST('x' AS SIGNED)").await;
    }
    for id in &ids {
        twin.execute(*id, &[]).await;
    }
    drop_schema(&t, &there).await;
});
