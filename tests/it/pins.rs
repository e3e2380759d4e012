//! Every reason to keep a backend: what begins it, that nobody else gets the backend meanwhile, and what ends it.

use std::collections::BTreeSet;

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::session::PinReason;

use crate::support::{Kind, Login, Setup, Wire, on_both, one_backend};

/// Statements that begin a pin, and what ends it. `{s}` is the name of the test's schema.
struct Case {
    reason: PinReason,
    /// On which server; none: both.
    only: Option<Kind>,
    /// Needs the administrator's rights.
    admin: bool,
    begin: &'static [&'static str],
    end: End,
}

enum End {
    By(&'static [&'static str]),
    Reset,
    /// Only with its client.
    Never,
}

const fn by(reason: PinReason, begin: &'static [&'static str], end: &'static [&'static str]) -> Case {
    Case { reason, only: None, admin: false, begin, end: End::By(end) }
}

const fn reset(reason: PinReason, begin: &'static [&'static str]) -> Case {
    Case { reason, only: None, admin: false, begin, end: End::Reset }
}

const CASES: &[Case] = &[
    by(PinReason::Transaction, &["BEGIN"], &["COMMIT"]),
    by(PinReason::Transaction, &["START TRANSACTION READ ONLY", "SELECT * FROM t"], &["ROLLBACK"]),
    by(PinReason::Transaction, &["SET autocommit = 0", "SELECT * FROM t"], &["COMMIT"]),
    by(PinReason::Transaction, &["SET autocommit = 0", "INSERT INTO t VALUES (1)"], &["SET autocommit = 1"]),
    by(PinReason::Transaction, &["BEGIN", "COMMIT AND CHAIN"], &["ROLLBACK"]),
    by(PinReason::Transaction, &["BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a"], &["COMMIT"]),
    by(PinReason::Transaction, &["BEGIN", "SELEKT"], &["CREATE TABLE commits_it (n INT)"]),
    by(PinReason::AutocommitSavepoint, &["SET autocommit = 0", "SAVEPOINT a"], &["ROLLBACK"]),
    by(PinReason::Locks, &["LOCK TABLES t READ"], &["UNLOCK TABLES"]),
    by(PinReason::Locks, &["LOCK TABLES t WRITE, t AS u READ", "SELECT * FROM t"], &["unlock tables"]),
    by(PinReason::UserLock, &["SELECT GET_LOCK('{s}', 1)"], &["SELECT RELEASE_ALL_LOCKS()"]),
    by(PinReason::UserLock, &["DO GET_LOCK('{s}', 1)"], &["DO RELEASE_LOCK('{s}')"]),
    by(
        PinReason::UserLock,
        &["SELECT GET_LOCK('{s}', 1)", "SELECT GET_LOCK('{s}', 1)", "SELECT RELEASE_LOCK('{s}')"],
        &["SELECT RELEASE_LOCK('{s}')"],
    ),
    by(
        PinReason::TemporaryTable,
        &["CREATE TEMPORARY TABLE own (n INT)", "INSERT INTO own VALUES (1)"],
        &["DROP TEMPORARY TABLE own"],
    ),
    by(
        PinReason::TemporaryTable,
        &[
            "create /* of my own */\ttemporary\n table own (n int)",
            "CREATE TEMPORARY TABLE too (n INT)",
            "DROP TABLE own",
        ],
        &["DROP TABLE IF EXISTS too"],
    ),
    by(PinReason::Handler, &["HANDLER t OPEN"], &["HANDLER t CLOSE"]),
    by(PinReason::TextPrepare, &["SET @text = 'SELECT 1'", "PREPARE p FROM @text"], &["DEALLOCATE PREPARE P"]),
    by(
        PinReason::TextPrepare,
        &[
            "PREPARE p FROM 'SELECT ROW_COUNT()'",
            "PREPARE q FROM 'SELECT FOUND_ROWS()'",
            "SELECT * FROM t",
            "EXECUTE q",
            "PREPARE p FROM 'SELECT 3'",
        ],
        &["DROP PREPARE q"],
    ),
    by(PinReason::OneShotTransaction, &["SET TRANSACTION READ ONLY"], &["BEGIN", "COMMIT"]),
    by(PinReason::OneShotTransaction, &["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"], &["SELECT * FROM t"]),
    by(PinReason::Xa, &["XA START '{s}'", "XA END '{s}'"], &["XA ROLLBACK '{s}'"]),
    by(
        PinReason::Xa,
        &["XA START '{s}'", "INSERT INTO t VALUES (7)", "XA END '{s}'", "XA PREPARE '{s}'"],
        &["XA COMMIT '{s}'"],
    ),
    reset(PinReason::UserVariables, &["SET @`\u{e4}` = 1"]),
    reset(PinReason::UserVariables, &["SELECT @`a,b` := n FROM t"]),
    reset(PinReason::UserVariables, &["SELECT 1, 2 INTO @a, @'a '"]),
    reset(PinReason::TemporaryTable, &["CREATE TEMPORARY TABLE own SELECT 1 AS n"]),
    reset(PinReason::Call, &["CALL nothing()"]),
    reset(PinReason::Call, &["SET @text = 'SELECT 1'", "PREPARE p FROM @text", "EXECUTE p", "DEALLOCATE PREPARE p"]),
    reset(PinReason::Call, &["PREPARE p FROM 'CALL nothing()'", "EXECUTE p", "DEALLOCATE PREPARE p"]),
    reset(PinReason::Trace, &["SET profiling = 1"]),
    Case { only: Some(Kind::MySql), ..reset(PinReason::Trace, &["SET optimizer_trace = 'enabled=on'"]) },
    Case { only: Some(Kind::MariaDb), ..reset(PinReason::WriteOnlyVariable, &["SET rand_seed1 = 5"]) },
    Case { admin: true, only: Some(Kind::MySql), ..reset(PinReason::WriteOnlyVariable, &["SET rand_seed1 = 5"]) },
    Case {
        only: Some(Kind::MariaDb),
        ..reset(PinReason::Sequence, &["CREATE SEQUENCE IF NOT EXISTS s", "SELECT NEXTVAL(s)", "SELECT LASTVAL(s)"])
    },
    Case {
        admin: true,
        ..by(PinReason::OneShotVariable, &["SET insert_id = 100"], &["INSERT INTO ids VALUES (NULL)"])
    },
    reset(
        PinReason::ServiceLock,
        &[
            "CREATE FUNCTION IF NOT EXISTS service_get_read_locks() RETURNS INT DETERMINISTIC RETURN 1",
            "SELECT service_get_read_locks()",
        ],
    ),
    Case { admin: true, ..reset(PinReason::StatusCounters, &["FLUSH STATUS"]) },
    Case { admin: true, ..by(PinReason::GlobalReadLock, &["FLUSH TABLES t WITH READ LOCK"], &["UNLOCK TABLES"]) },
    Case {
        admin: true,
        only: Some(Kind::MySql),
        ..by(PinReason::InstanceLock, &["LOCK INSTANCE FOR BACKUP"], &["UNLOCK INSTANCE"])
    },
    Case {
        admin: true,
        only: Some(Kind::MariaDb),
        ..by(PinReason::BackupStage, &["BACKUP LOCK t"], &["BACKUP UNLOCK"])
    },
    Case {
        admin: true,
        only: Some(Kind::MySql),
        end: End::Never,
        ..reset(PinReason::ResourceGroup, &["SET RESOURCE GROUP USR_default"])
    },
    reset(PinReason::Unexplained, &["SET sql_mode = 'ANSI_QUOTES'; SELECT \"t\".n FROM t"]),
];

/// Those that only the binary protocol knows, tested below, and roles, which are in `roles`.
const ELSEWHERE: [PinReason; 4] =
    [PinReason::PreparedStatement, PinReason::LongData, PinReason::Cursor, PinReason::Role];

#[test]
fn every_reason_has_its_case() {
    let labels = |reasons: &[PinReason]| reasons.iter().map(|reason| reason.label()).collect::<BTreeSet<_>>();
    let tested: Vec<_> = CASES.iter().map(|case| case.reason).chain(ELSEWHERE).collect();
    assert_eq!(labels(&tested), labels(PinReason::ALL));
}

impl Case {
    fn applies(&self, t: &Setup) -> bool {
        self.only.is_none_or(|kind| kind == t.kind)
    }

    fn login(&self, t: &Setup) -> Login {
        let login = if self.admin { Login { schema: Some(t.schema.clone()), ..Login::admin() } } else { t.app() };
        login.with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    }

    /// A client in whom the pin has begun; none if the server does not allow it.
    async fn pinned(&self, t: &Setup) -> Option<Wire> {
        let mut client = t.client_as(&self.login(t)).await;
        for sql in self.begin {
            let reply = client.query(&sql.replace("{s}", &t.schema)).await;
            if reply.error().is_some_and(|(code, _)| code != 1064) {
                // Resource groups need a capability of the process that containers rarely give.
                assert_eq!(self.reason, PinReason::ResourceGroup, "{sql}: {reply:?}");
                t.until("myriad_pinned_clients", None, 0.0).await;
                return None;
            }
        }
        t.until("myriad_pinned_clients", Some(self.reason.label()), 1.0).await;
        Some(client)
    }
}

/// Somebody else, who asked for the backend and waits for it.
async fn waiter(t: &Setup) -> Wire {
    let mut other = t.client_as(&Login { schema: None, ..t.app() }).await;
    other.send(Command::Query, b"SELECT 7").await;
    t.until("myriad_pool_waiting", None, 1.0).await;
    other
}

/// The waiting one has got it.
async fn served(t: &Setup, other: &mut Wire, what: &str) {
    let reply = other.reply(Command::Query).await.expect("a reply");
    assert_eq!(reply.error(), None, "{what}");
    assert_eq!(reply.rows()[0][0].as_deref(), Some("7"), "{what}");
    t.until("myriad_pinned_clients", None, 0.0).await;
}

/// What the cases need, made by a client that stays: as long as there is one, nobody's login needs the backend.
async fn tables(t: &Setup) -> Wire {
    let mut client = t.client().await;
    for sql in [
        "CREATE TABLE t (n INT)",
        "CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY)",
        "CREATE PROCEDURE nothing() SELECT @@version",
    ] {
        client.query(sql).await.expect_ok();
    }
    client
}

on_both!(a_pin_ends_when_its_cause_ends, one_backend, |t| async move {
    let _stays = tables(&t).await;
    for case in CASES.iter().filter(|case| case.applies(&t)) {
        let Some(mut client) = case.pinned(&t).await else { continue };
        let mut other = waiter(&t).await;
        match case.end {
            End::By(all) => {
                for sql in all {
                    client.query(&sql.replace("{s}", &t.schema)).await.expect_ok();
                }
            }
            End::Reset => client.command(Command::ResetConnection, b"").await.expect_ok(),
            End::Never => {
                client.command(Command::ResetConnection, b"").await.expect_ok();
                assert_eq!(t.metric("myriad_pinned_clients", Some(case.reason.label())), 1.0);
                client.send(Command::Quit, b"").await;
                served(&t, &mut other, case.begin[0]).await;
                continue;
            }
        }
        served(&t, &mut other, case.begin[0]).await;
        client.query("DROP TABLE IF EXISTS commits_it").await.expect_ok();
    }
});

on_both!(a_pin_ends_with_its_client, one_backend, |t| async move {
    let _stays = tables(&t).await;
    for (n, case) in CASES.iter().filter(|case| case.applies(&t)).enumerate() {
        // What was prepared for a later commit stays with the server.
        if case.begin.iter().any(|sql| sql.starts_with("XA PREPARE")) {
            continue;
        }
        let Some(mut client) = case.pinned(&t).await else { continue };
        let mut other = waiter(&t).await;
        if n % 2 == 0 {
            client.send(Command::Quit, b"").await;
        }
        drop(client);
        served(&t, &mut other, case.begin[0]).await;
        for (sql, wanted) in [
            ("SELECT @a", None),
            ("SELECT @@autocommit", Some("1")),
            (&*format!("SELECT IS_FREE_LOCK('{}')", t.schema), Some("1")),
        ] {
            assert_eq!(other.query(sql).await.rows()[0][0].as_deref(), wanted, "{sql} after {}", case.begin[0]);
        }
        let own = format!("SELECT * FROM {}.own", t.schema);
        other.query(&own).await.expect_error(1146);
        other.query("EXECUTE p").await.expect_error(1243);
        other.command(Command::ResetConnection, b"").await.expect_ok();
    }
});

on_both!(only_a_statement_too_long_to_keep_pins_until_it_is_closed, one_backend, |t| async move {
    let mut client = t.client().await;
    client.prepare("SELECT 1").await;
    client.prepare("SELECT ?").await;
    let mut other = t.client().await;
    other.query("SELECT 7").await.expect_ok();
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
    let long = client.prepare(&format!("SELECT 1 /* {} */", "x".repeat(70_000))).await;
    t.until("myriad_pinned_clients", Some("prepared_statement"), 1.0).await;
    let mut other = waiter(&t).await;
    let reply = client.command(Command::StmtExecute, &[&long.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat()).await;
    assert_eq!(reply.raw[2].1[2], 1, "{reply:?}");
    assert_eq!(t.metric("myriad_pool_waiting", None), 1.0, "it is still open");
    client.send(Command::StmtClose, &long.to_le_bytes()).await;
    served(&t, &mut other, "COM_STMT_CLOSE").await;
});

on_both!(long_data_pins_until_it_is_used, one_backend, |t| async move {
    let mut client = t.client().await;
    let id = client.prepare("SELECT LENGTH(?)").await.to_le_bytes();
    let execute = [&id[..], &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat();
    for (end, with) in [(Command::StmtExecute, &execute[..]), (Command::StmtReset, &id), (Command::StmtClose, &id)] {
        client.send(Command::StmtSendLongData, &[&id[..], &[0, 0], b"some text"].concat()).await;
        t.until("myriad_pinned_clients", Some("long_data"), 1.0).await;
        let mut other = waiter(&t).await;
        client.send(end, with).await;
        if end != Command::StmtClose {
            let reply = client.reply(end).await.expect("a reply");
            reply.expect_ok();
            assert!(end != Command::StmtExecute || reply.raw[2].1[2] == 9, "{reply:?}");
        }
        served(&t, &mut other, "long data").await;
    }
});

on_both!(a_cursor_pins_until_its_last_row, one_backend, |t| async move {
    let mut client = t.client().await;
    let id = client.prepare("SELECT 1 UNION SELECT 2 UNION SELECT 3").await.to_le_bytes();
    let fetch = [&id[..], &2_u32.to_le_bytes()].concat();
    for (end, with) in [(Command::StmtFetch, &fetch[..]), (Command::StmtReset, &id), (Command::StmtClose, &id)] {
        client.command(Command::StmtExecute, &[&id[..], &[1, 1, 0, 0, 0]].concat()).await.expect_ok();
        t.until("myriad_pinned_clients", Some("cursor"), 1.0).await;
        client.command(Command::StmtFetch, &fetch).await.expect_ok();
        let mut other = waiter(&t).await;
        client.send(end, with).await;
        if end != Command::StmtClose {
            client.reply(end).await.expect("a reply").expect_ok();
        }
        served(&t, &mut other, "a cursor").await;
    }
});
