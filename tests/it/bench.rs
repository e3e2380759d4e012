//! The load generator against real servers, through the proxy: every kind of work, told apart and counted.

use std::time::Duration;

use myriad::load::{self, FailureKind, Plan, Report, Work};

use crate::support::{Setup, on_both};

fn plan(t: &Setup, work: Work) -> Plan {
    Plan {
        clients: 8,
        duration: Duration::from_millis(400),
        work,
        ..Plan::single(t.address, "app", "app-secret", Some(&t.schema))
    }
}

async fn measured(plan: Plan) -> Report {
    let report = load::run(plan, |_| ()).await.expect("a plan that makes sense");
    assert_eq!(report.clients, 8, "{:?}", report.errors);
    report
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

on_both!(every_kind_of_work_is_done, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB").await.expect_ok();
    client.query("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)").await.expect_ok();
    let select = "SELECT n FROM t WHERE id = ?3";
    for work in [Work::Statements(texts(&[select, "DO 1"])), Work::Prepared(texts(&[select, "DO ?9"]))] {
        let report = measured(plan(&t, work)).await;
        assert!(report.errors.is_empty() && report.work > 8, "{report:?}");
        assert_eq!((report.statements, report.latency.counts.iter().map(|it| it.1).sum()), (report.work, report.work));
        assert_eq!(report.logins.counts.iter().map(|it| it.1).sum::<u64>(), 8);
    }
    let transfer = Work::transaction("BEGIN;\nUPDATE t SET n = n + 1 WHERE id = 1;\nCOMMIT;\n");
    let report = measured(plan(&t, transfer)).await;
    assert!(report.errors.is_empty(), "{report:?}");
    assert_eq!(report.statements, 3 * report.work);
    let counted = client.one("SELECT n FROM t WHERE id = 1").await;
    assert_eq!(counted, report.work.to_string(), "every transaction that was begun before the end was finished");
});

on_both!(a_transaction_that_fails_is_rolled_back_and_counted, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB").await.expect_ok();
    let broken = Work::Transaction(texts(&["BEGIN", "INSERT INTO t VALUES (?1000000)", "SELECT nowhere", "COMMIT"]));
    let report = measured(plan(&t, broken)).await;
    assert_eq!((report.work, report.errors[0].kind), (0, FailureKind::Server(1054)), "{report:?}");
    t.until("myriad_pinned_clients", Some("transaction"), 0.0).await;
    assert_eq!(client.one("SELECT COUNT(*) FROM t").await, "0");
});

on_both!(clients_come_and_go, |t| async move {
    let report = measured(Plan { churn: true, ..plan(&t, Work::Statements(texts(&["DO 1"]))) }).await;
    assert!(report.errors.is_empty() && report.work > 0, "{report:?}");
    // Each logs in once before the run, and once for each piece of work.
    assert_eq!(report.logins.counts.iter().map(|it| it.1).sum::<u64>(), report.work + 8);
});

on_both!(a_fixed_rate_is_kept, |t| async move {
    let wanted = Plan { rate: 200.0, duration: Duration::from_secs(1), ..plan(&t, Work::Statements(texts(&["DO 1"]))) };
    let report = measured(wanted).await;
    assert!(report.errors.is_empty(), "{report:?}");
    // Every client begins at some point of its period, which is 40 ms.
    assert!((184..=208).contains(&report.work), "{report:?}");
    assert_eq!(report.ideal(), None);
});
