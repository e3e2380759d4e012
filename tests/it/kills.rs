//! KILL: hits whoever it is aimed at, by the id that the greeting showed, and nobody else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use myriad::protocol::command::Command;
use tokio::task::JoinSet;

use crate::prepared::{Param, execute, execution, long, text};
use crate::support::{Kind, Login, Packets, Setup, Wire, on_both, one_backend, own_backends};

/// How often a kill races with the end of a statement.
const ROUNDS: u64 = 250;

on_both!(a_late_kill_never_hits_the_next_client, |t| async move {
    let mut killer = t.client().await;
    // With a backend of its own it need not wait; everybody else takes turns on the other one.
    killer.query("BEGIN").await.expect_ok();
    let mut victim = t.client().await;
    let id = victim.id;
    // In every other round it executes a prepared statement.
    let prepared = victim.prepare("SELECT SLEEP(0.0009), 'mine'").await;
    let bystanders = bystanders(&t, 3);
    let mut interrupted = 0;
    // On a busy machine a kill takes longer than that to arrive.
    let mut seconds = 0.0003;
    for round in 0..ROUNDS {
        if round % 50 == 49 && interrupted == 0 {
            seconds *= 3.0;
        }
        let statement = async {
            let reply = if round % 2 == 0 {
                victim.query(&format!("SELECT SLEEP({seconds}), 'mine'")).await
            } else {
                execute(&mut victim, prepared, &[]).await
            };
            let again = victim.query("SELECT 'mine'").await;
            (reply, again)
        };
        // From at once to later than the statement's end; finer than the runtime's timer.
        let delay = Duration::from_micros((round * 37) % 2_000);
        let kill = async {
            let begin = Instant::now();
            while begin.elapsed() < delay {
                tokio::task::yield_now().await;
            }
            killer.query(&format!("KILL QUERY {id}")).await.expect_ok();
        };
        let ((reply, again), ()) = tokio::join!(statement, kill);
        if round % 2 == 0 {
            interrupted += u64::from(was_interrupted(&reply, "mine"));
        } else {
            assert!(reply.error().is_none_or(|(code, _)| code == 1317), "{reply:?}");
            interrupted += u64::from(reply.error().is_some());
        }
        interrupted += u64::from(was_interrupted(&again, "mine"));
    }
    end(bystanders).await;
    println!("{:?}: {interrupted} of {ROUNDS} kills hit their statement", t.kind);
    assert!(interrupted > 0, "no kill ever hit anything");
    assert!(interrupted < ROUNDS, "no kill ever came too late");
    // And the victim's own next one was not hit either.
    assert_eq!(victim.one("SELECT 'mine'").await, "mine");
});

on_both!(the_id_is_the_one_in_the_greeting, |t| async move {
    let mut victim = t.client().await;
    let mut killer = t.client().await;
    let id = victim.id;
    assert_eq!(victim.one("SELECT CONNECTION_ID()").await, id.to_string());
    victim.send(Command::Query, sleep(&t).as_bytes()).await;
    t.until_runs(&sleep(&t), true).await;
    killer.query(&format!("KILL QUERY {id}")).await.expect_ok();
    assert!(was_interrupted(&victim.reply(Command::Query).await.unwrap(), "mine"));
    assert_eq!(victim.one("SELECT 'mine'").await, "mine");
    // One that has nothing to do is not hit later.
    killer.query(&format!("KILL QUERY {id}")).await.expect_ok();
    assert_eq!(victim.one("SELECT 'mine'").await, "mine");
    killer.query(&format!("KILL QUERY {}", killer.id)).await.expect_error(1317);
    assert_eq!(killer.one("SELECT 1").await, "1");
});

on_both!(a_prepared_kill_means_a_client, |t| async move {
    let mut killer = t.client().await;
    let mut parameter = 0;
    let mut forms = vec!["literal"];
    if t.kind == Kind::MariaDb {
        parameter = killer.prepare("KILL QUERY ?").await;
        forms.extend(["number", "text", "types sent before"]);
    } else {
        killer.command(Command::StmtPrepare, b"KILL QUERY ?").await.expect_error(6413);
    }
    for form in forms {
        let mut victim = t.client().await;
        let id = victim.id.to_string();
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        match form {
            "literal" => {
                let literal = killer.prepare(&format!("KILL QUERY {id}")).await;
                execute(&mut killer, literal, &[]).await
            }
            "number" => execute(&mut killer, parameter, &[number(victim.id)]).await,
            "text" => execute(&mut killer, parameter, &[text(&id)]).await,
            _ => killer.command(Command::StmtExecute, &execution(parameter, false, &[text(&id)], false)).await,
        }
        .expect_ok();
        let reply = victim.reply(Command::Query).await.expect("a reply");
        assert!(was_interrupted(&reply, "mine"), "{reply:?}");
        victim.query("SELECT 1").await.expect_ok();
    }
    let victim = t.client().await;
    let connection = killer.prepare(&format!("KILL {}", victim.id)).await;
    execute(&mut killer, connection, &[]).await.expect_ok();
    t.until("myriad_clients", None, 1.0).await;
    execute(&mut killer, connection, &[]).await.expect_error(1094);
});

fn number(id: u32) -> Param {
    long(i32::try_from(id).expect("a small number"))
}

on_both!(a_killed_statement_leaves_its_warnings, |t| async move {
    let (mut victim, mut killer) = (t.client().await, t.client().await);
    let (mut direct, mut executioner) = (t.direct(&t.app()).await, t.direct(&t.app()).await);
    let id = victim.id;
    let counts = "SELECT ROW_COUNT() AS n, @@error_count, @@warning_count";
    for question in ["SHOW WARNINGS", "SHOW ERRORS LIMIT 1", counts, "SHOW COUNT(*) WARNINGS"] {
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        killer.query(&format!("KILL QUERY {id}")).await.expect_ok();
        let killed = victim.reply(Command::Query).await.unwrap();
        direct.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        executioner.query(&format!("KILL QUERY {}", direct.id)).await.expect_ok();
        assert_eq!(killed.raw, direct.reply(Command::Query).await.unwrap().raw);
        assert_eq!(victim.query(question).await.raw, direct.query(question).await.raw, "{question}");
    }
});

on_both!(a_killed_connection_is_gone, |t| async move {
    let mut killer = t.client().await;
    for form in ["KILL", "kill connection", "/* now */ KILL /* this */ CONNECTION", "COM_PROCESS_KILL"] {
        for busy in [false, true] {
            let mut victim = t.client().await;
            if busy {
                victim.send(Command::Query, sleep(&t).as_bytes()).await;
                t.until_runs(&sleep(&t), true).await;
            }
            let reply = match form {
                "COM_PROCESS_KILL" => killer.command(Command::ProcessKill, &victim.id.to_le_bytes()).await,
                _ => killer.query(&format!("{form} {}", victim.id)).await,
            };
            reply.expect_ok();
            assert!(hears_the_end(&mut victim).await, "{form}");
            if busy {
                t.until_runs(&sleep(&t), false).await;
            }
            // It may take a moment until the id is unknown.
            t.until("myriad_clients", None, 1.0).await;
            killer.query(&format!("KILL {}", victim.id)).await.expect_error(1094);
        }
    }
    let mut own = t.client().await;
    let code = if t.kind == Kind::MariaDb { 1927 } else { 1317 };
    own.query(&format!("KILL {}", own.id)).await.expect_error(code);
    assert!(hears_the_end(&mut own).await);
});

on_both!(a_killed_transaction_is_rolled_back, one_backend, |t| async move {
    let mut victim = t.client().await;
    victim.query("CREATE TABLE t (n INT)").await.expect_ok();
    victim.query("BEGIN").await.expect_ok();
    victim.query("INSERT INTO t VALUES (1)").await.expect_ok();
    let mut killer = t.client_as(&Login { schema: None, ..t.app() }).await;
    killer.query(&format!("KILL {}", victim.id)).await.expect_ok();
    assert!(hears_the_end(&mut victim).await);
    assert_eq!(killer.one(&format!("SELECT COUNT(*) FROM {}.t", t.schema)).await, "0");
});

on_both!(nobody_kills_what_is_not_there_or_not_his, |t| async move {
    let mut client = t.client().await;
    let mut other = t.client_as(&Login { user: "other", password: "other-secret", ..t.app() }).await;
    let unknown = client.id + 100_000;
    for form in ["KILL", "KILL QUERY"] {
        client.query(&format!("{form} {unknown}")).await.expect_error(1094);
        client.query(&format!("{form} {}", u32::MAX >> 3)).await.expect_error(1094);
        client.query(&format!("{form} {}", u64::MAX)).await.expect_error(1094);
        client.query(&format!("{form} {}", other.id)).await.expect_error(1095);
    }
    client.command(Command::ProcessKill, &unknown.to_le_bytes()).await.expect_error(1094);
    client.command(Command::ProcessKill, &other.id.to_le_bytes()).await.expect_error(1095);
    assert_eq!(other.one("SELECT 1").await, "1");
});

on_both!(
    /// By the ids in SHOW PROCESSLIST.
    threads_of_the_server, own_backends, |t| async move {
        let (mut killer, mut victim) = (t.client().await, t.client().await);
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        let list = killer.query("SHOW PROCESSLIST").await.rows();
        let runs = |row: &&Vec<Option<String>>| row[7].as_ref().is_some_and(|text| *text == sleep(&t));
        let thread = list.iter().find(runs).expect("it is shown")[0].clone().unwrap();
        // What works for a client is the client.
        killer.query(&format!("KILL QUERY {thread}")).await.expect_ok();
        assert!(was_interrupted(&victim.reply(Command::Query).await.unwrap(), "mine"));
        // What is nobody's runs nothing.
        killer.query(&format!("KILL QUERY {thread}")).await.expect_ok();
        assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        // A connection of the pool can be killed; whoever needs one gets another. (As long as the proxy is busy with the end of a
        // statement, it is the client's.)
        let mut admin = t.admin().await;
        t.until("myriad_clients", Some("running"), 0.0).await;
        for thread in t.threads(&mut admin).await {
            killer.query(&format!("KILL {thread}")).await.expect_ok();
        }
        assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        assert_eq!(killer.one("SELECT 'mine'").await, "mine");
        // Connections that are none of ours are the server's affair.
        let strange = t.direct(&Login { schema: None, ..Login::app() }).await;
        for form in ["KILL", "KILL QUERY"] {
            killer.query(&format!("{form} {}", strange.id)).await.expect_error(1095);
        }
    }
);

on_both!(
    /// As on the server: with CONNECTION_ADMIN, or MariaDB's CONNECTION ADMIN.
    whoever_may_kill_others, |t| async move {
        let mut admin = t.client_as(&Login { schema: None, ..Login::admin() }).await;
        for busy in [true, false] {
            let mut victim = t.client().await;
            if busy {
                victim.send(Command::Query, sleep(&t).as_bytes()).await;
                t.until_runs(&sleep(&t), true).await;
                admin.query(&format!("KILL QUERY {}", victim.id)).await.expect_ok();
                assert!(was_interrupted(&victim.reply(Command::Query).await.unwrap(), "mine"));
            }
            admin.query(&format!("KILL {}", victim.id)).await.expect_ok();
            assert!(hears_the_end(&mut victim).await);
        }
        let mut strange = t.direct(&Login { schema: None, ..Login::app() }).await;
        admin.query(&format!("KILL {}", strange.id)).await.expect_ok();
        assert!(hears_the_end(&mut strange).await);
    }
);

on_both!(
    a_kill_gets_through_when_every_backend_is_busy,
    |config| {
        one_backend(config);
        config.scheduler.queue_timeout = Duration::from_secs(30);
    },
    |t| async move {
        let (mut victim, mut killer) = (t.client().await, t.client().await);
        victim.send(Command::Query, b"SELECT SLEEP(60), 'mine'").await;
        t.until("myriad_clients", Some("running"), 1.0).await;
        killer.query(&format!("KILL QUERY {}", victim.id)).await.expect_ok();
        assert!(was_interrupted(&victim.reply(Command::Query).await.unwrap(), "mine"));
        assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        assert_eq!(t.metric("myriad_kill_connections_total", None), 1.0);
    }
);

on_both!(
    without_room_of_its_own_a_kill_waits_in_line,
    |config| {
        one_backend(config);
        config.pool.kill_connections = 0;
        config.scheduler.queue_timeout = Duration::from_secs(1);
    },
    |t| async move {
        let (mut victim, mut killer) = (t.client().await, t.client().await);
        victim.send(Command::Query, b"SELECT SLEEP(3), 'mine'").await;
        t.until("myriad_clients", Some("running"), 1.0).await;
        killer.query(&format!("KILL QUERY {}", victim.id)).await.expect_error(1040);
        assert!(!was_interrupted(&victim.reply(Command::Query).await.unwrap(), "mine"));
        // The line moves on, and so does a kill in it.
        killer.query(&format!("KILL QUERY {}", victim.id)).await.expect_ok();
        assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        assert_eq!(t.metric("myriad_kill_connections_total", None), 0.0);
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 1.0);
    }
);

on_both!(
    a_client_in_line_can_be_killed,
    |config| {
        one_backend(config);
        config.scheduler.queue_timeout = Duration::from_secs(30);
    },
    |t| async move {
        let (mut first, mut killer) = (t.client().await, t.client().await);
        let mut victim = t.client().await;
        first.query("BEGIN").await.expect_ok();
        first.query("CREATE TEMPORARY TABLE own (n INT)").await.expect_ok();
        victim.send(Command::Query, b"SELECT 1").await;
        t.until("myriad_pool_waiting", None, 1.0).await;
        killer.query(&format!("KILL {}", victim.id)).await.expect_ok();
        assert!(hears_the_end(&mut victim).await);
        t.until("myriad_pool_waiting", None, 0.0).await;
        first.query("COMMIT").await.expect_ok();
    }
);

/// A statement that only a kill ends, and that no other test runs.
pub(crate) fn sleep(t: &Setup) -> String {
    format!("SELECT SLEEP(100), /* {} */ 'mine'", t.schema)
}

/// Whether this statement was killed; else it must have returned this. (SLEEP returns 1 if it is interrupted early.)
pub(crate) fn was_interrupted(reply: &Packets, wanted: &str) -> bool {
    match reply.error() {
        Some((1317, _)) => true,
        Some(error) => panic!("{error:?}"),
        None => {
            let row = &reply.rows()[0];
            assert_eq!(row.last().unwrap().as_deref(), Some(wanted));
            row.len() > 1 && row[0].as_deref() == Some("1")
        }
    }
}

/// The proxy says why and hangs up, or merely hangs up.
async fn hears_the_end(client: &mut Wire) -> bool {
    let listen = async {
        while let Ok((_, payload)) = client.frame().await {
            assert_eq!(payload[0], 0xff, "{payload:?}");
        }
    };
    tokio::time::timeout(Duration::from_secs(5), listen).await.is_ok()
}

/// Clients whose statements nobody may interrupt.
fn bystanders(t: &Arc<Setup>, clients: usize) -> (JoinSet<()>, tokio::sync::watch::Sender<bool>) {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut all = JoinSet::new();
    for number in 0..clients {
        let (t, stopped) = (Arc::clone(t), stopped.clone());
        all.spawn(async move {
            let mut client = t.client().await;
            while !*stopped.borrow() {
                let reply = client.query(&format!("SELECT SLEEP(0.0003), '{number}'")).await;
                assert!(!was_interrupted(&reply, &number.to_string()), "hit by a kill for somebody else");
            }
        });
    }
    (all, stop)
}

async fn end((all, stop): (JoinSet<()>, tokio::sync::watch::Sender<bool>)) {
    stop.send_replace(true);
    all.join_all().await;
}

// A regression: the question that follows a SET was hit instead of that, and as its answer was missing, the session kept
// its backend for good.
on_both!(a_kill_that_hits_a_question_of_ours_pins_nobody, |t| async move {
    let (mut killer, mut victim) = (t.client().await, t.client().await);
    killer.query("BEGIN").await.expect_ok();
    let id = victim.id;
    for round in 0..ROUNDS {
        let statement = victim.query("SET NAMES latin1");
        let delay = Duration::from_micros((round * 7) % 500);
        let kill = async {
            let begin = Instant::now();
            while begin.elapsed() < delay {
                tokio::task::yield_now().await;
            }
            killer.query(&format!("KILL QUERY {id}")).await.expect_ok();
        };
        let _ = tokio::join!(statement, kill);
        assert_eq!(t.metric("myriad_pins_total", Some("unexplained")), 0.0, "in round {round}");
    }
    victim.query("SET NAMES latin1").await.expect_ok();
    assert_eq!(victim.one("SELECT @@collation_connection").await, "latin1_swedish_ci");
});
