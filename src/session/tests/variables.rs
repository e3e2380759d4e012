//! Variables, schema and trackers, as the servers report them.

use super::*;

#[test]
fn variables_are_carried() {
    for mut stage in Stage::both() {
        stage.query("SET sql_mode='ANSI'", &[ok().set("sql_mode", "REAL_AS_FLOAT,ANSI_QUOTES,ANSI")]);
        stage.query("SET a=1, b='x'", &[ok().var("A", "1").set("b", "x")]);
        stage.query("SET a=2", &[ok().set("a", "2")]).pinned(&[]);
        stage.variables(&[("a", "2"), ("b", "x"), ("sql_mode", "REAL_AS_FLOAT,ANSI_QUOTES,ANSI")]);
        assert!(stage.session.mode().ansi_quotes);
        // Set by a prepared statement: S11.
        stage.prepare("SET time_zone=?", 1);
        stage.execute(1, &[ok().set("time_zone", "+01:00")]);
        assert_eq!(stage.session.end(), Followup::None);
        assert_eq!(stage.session.state().variable("time_zone"), Some(&b"+01:00"[..]));
    }
}

#[test]
fn the_schema_follows_the_tracker() {
    for mut stage in Stage::both() {
        stage.query("USE test", &[ok().schema("test")]).pinned(&[]);
        assert_eq!(stage.session.state().schema(), Some(&b"test"[..]));
        stage.command(Command::InitDb, Effects::default(), &[ok().schema("sé")]);
        assert_eq!(stage.session.end(), Followup::None);
        assert_eq!(stage.session.state().schema(), Some("sé".as_bytes()));
        stage.query("DROP DATABASE `sé`", &[ok().with(Change::Schema(b""))]).pinned(&[]);
        assert_eq!(stage.session.state().schema(), None);
    }
}

/// MySQL 9 adds it to every report.
#[test]
fn the_statement_id_is_ignored() {
    let mut stage = Stage::new(MYSQL);
    let before = Arc::clone(stage.session.state());
    stage.query("SELECT 1", &[rows(1).var("statement_id", "77")]).pinned(&[]);
    assert!(Arc::ptr_eq(&before, stage.session.state()));
    stage.query("SELECT a FROM v", &[rows(1).var("statement_id", "78").state()]).pinned(&["unexplained"]);
}

#[test]
fn what_cannot_be_set_as_reported_pins() {
    let table = [
        ("SET rand_seed1=5", ("rand_seed1", "0"), "write_only_variable"),
        ("SET pseudo_thread_id=5", ("pseudo_thread_id", "5"), "write_only_variable"),
        ("SET gtid_next='ANONYMOUS'", ("gtid_next", "ANONYMOUS"), "write_only_variable"),
        ("SET collation_database=latin1_bin", ("collation_database", "latin1_bin"), "write_only_variable"),
        ("SET insert_id=5", ("insert_id", "5"), "one_shot_variable"),
        ("SET timestamp=5-5", ("timestamp", "1796055184.747678"), "write_only_variable"),
        ("EXECUTE s", ("a`b", "5"), "unexplained"),
    ];
    for (text, (name, value), label) in table {
        for mut stage in Stage::both() {
            stage.query(text, &[ok().set(name, value)]).variables(&[]);
            assert!(stage.session.pins().iter().any(|pin| pin.label() == label), "{text}");
        }
    }
    for mut stage in Stage::both() {
        let long = "x".repeat(100_000);
        stage.query("SET a=REPEAT('x', 100000)", &[ok().set("a", &long)]).variables(&[]).pinned(&["unexplained"]);
    }
}

/// Measured: a SELECT between the two does not use it up.
#[test]
fn insert_id_is_used_up_by_an_insert() {
    for mut stage in Stage::both() {
        stage.query("SET insert_id=50", &[ok().set("insert_id", "50")]);
        stage.query("SET timestamp=5", &[ok().set("timestamp", "5.000000")]);
        stage.query("SELECT 1", &[rows(1)]).pinned(&["one_shot_variable"]);
        // Nor does an id that the client chose itself: the server is asked.
        let asked = ["SELECT @@session.`insert_id` LIMIT 1"];
        assert_eq!(stage.asked("INSERT INTO t VALUES (9)", &[ok().id(9)], &[("insert_id", Some("50"))]), asked);
        stage.pinned(&["one_shot_variable"]);
        assert_eq!(stage.asked("INSERT INTO t VALUES ()", &[ok().id(50)], &[("insert_id", Some("0"))]), asked);
        stage.pinned(&[]);
        assert!(stage.asked("INSERT INTO t VALUES ()", &[ok().id(51)], &[]).is_empty());
    }
}

/// The report is the statement's time in each case.
#[test]
fn timestamp_is_carried_only_where_the_text_says_that_it_lasts() {
    for mut stage in Stage::both() {
        stage.query("SET timestamp=1700000000.5", &[ok().set("timestamp", "1700000000.500000")]).pinned(&[]);
        stage.variables(&[("timestamp", "1700000000.500000")]);
        stage.query("SET timestamp=DEFAULT", &[ok().set("timestamp", "1700000000.500000")]).pinned(&[]).variables(&[]);
        stage.query("SET timestamp=0", &[ok().set("timestamp", "1796055184.747678")]).pinned(&[]).variables(&[]);
        stage.query(
            "SET timestamp=5; SET timestamp=0",
            &[ok().set("timestamp", "5.0"), ok().set("timestamp", "1796055184.747678")],
        );
        stage.pinned(&["write_only_variable"]);
    }
}

#[test]
fn a_server_that_keeps_statements_pins() {
    for mut stage in Stage::both() {
        stage.query("SET profiling=1", &[ok().set("profiling", "ON")]).pinned(&["trace"]);
        stage.query("SET profiling=0", &[ok().set("profiling", "OFF")]).pinned(&["trace"]);
    }
}

/// A procedure that sets and restores, a hint that sets for its statement: the value reported is the one that stays.
#[test]
fn restored_values_are_believed() {
    let mut stage = Stage::new(MYSQL);
    let text = "SELECT /*+ SET_VAR(sort_buffer_size=100000) */ 1";
    stage.query(text, &[rows(1).set("sort_buffer_size", "262144")]).pinned(&[]);
    stage.variables(&[("sort_buffer_size", "262144")]);
}

/// What Connector/J sets at once: the trackers that do not hide anything hide nothing.
#[test]
fn a_tracker_that_hides_nothing_does_not_pin() {
    for mut stage in Stage::both() {
        let text = "SET autocommit=1, session_track_schema=1";
        let reply = ok().set("autocommit", "ON").set("session_track_schema", "ON").state();
        stage.query(text, &[reply]).pinned(&[]).variables(&[("autocommit", "ON")]);
        assert!(stage.session.rearm_trackers());
        let before = stage.session.wishes().clone();
        stage.query("SET session_track_schema=0", &[ok().set("session_track_schema", "OFF").state()]).pinned(&[]);
        assert_ne!(*stage.session.wishes(), before);
        stage.query("SET session_track_gtids=OWN_GTID", &[ok().set("session_track_gtids", "OWN_GTID")]).pinned(&[]);
        stage.variables(&[("autocommit", "ON"), ("session_track_gtids", "OWN_GTID")]);
    }
}

#[test]
fn a_client_may_change_the_trackers() {
    let answers = [
        ("session_track_system_variables", Some("*")),
        ("session_track_schema", Some("1")),
        ("session_track_state_change", Some("1")),
        ("session_track_transaction_info", Some("OFF")),
    ];
    for mut stage in Stage::both() {
        stage.session.options.tracks = true;
        let before = stage.session.wishes().clone();
        let reply = ok().set("session_track_state_change", "ON");
        let asked = stage.asked("SET session_track_state_change=1", &[reply], &answers);
        assert_eq!(asked.len(), 1);
        assert!(asked[0].contains("@@session.`session_track_schema`"), "{asked:?}");
        assert!(stage.session.rearm_trackers());
        assert!(!stage.session.rearm_trackers());
        assert_ne!(*stage.session.wishes(), before);
        stage.pinned(&[]).variables(&[]);
        // The client is told what it asked for, and only that.
        let reply = ok().var("some_variable", "5").trx("T_______");
        let mut told = BytesMut::new();
        assert!(stage.session.filter(&reply.changes, &mut told));
        assert_eq!(told, ok().var("some_variable", "5").changes);
        // Whatever else the text sets may not be reported.
        stage.asked("SET session_track_transaction_info=OFF, sql_mode=''", &[ok().state()], &answers);
        stage.pinned(&["unexplained"]);
    }
    for mut stage in Stage::both() {
        let mut told = BytesMut::new();
        assert!(!stage.session.filter(&ok().schema("x").changes, &mut told), "it did not ask for CLIENT_SESSION_TRACK");
    }
}

/// Only its name is known to MariaDB's own default, and the server's own sql_mode may differ from ours.
#[test]
fn the_servers_sql_mode_counts_until_the_session_sets_its_own() {
    let mut stage = Stage::new(Options { ansi_quotes: true, no_backslash_escapes: true, ..MARIA });
    let mode = stage.session.mode();
    assert!(mode.ansi_quotes && mode.no_backslash_escapes && mode.mariadb);
    stage.query("SET sql_mode=''", &[ok().set("sql_mode", "")]);
    let mode = stage.session.mode();
    assert!(!mode.ansi_quotes && !mode.no_backslash_escapes && mode.mariadb);
}

proptest::proptest! {
    /// Whatever a server sends: no panic, and what is carried can be put into SQL.
    #[test]
    fn any_report_is_survived(
        raw in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
        status in proptest::prelude::any::<u16>(),
        kind in 0..6_u8,
    ) {
        let mut stage = Stage::new(MARIA);
        let mut framed = vec![kind, raw.len() as u8];
        framed.extend_from_slice(&raw);
        for changes in [raw, framed] {
            let mut reply = ok().status(StatusFlags::from_bits_retain(status));
            reply.changes = BytesMut::from(&changes[..]);
            let effects = stage.effects("SELECT 1");
            stage.command(Command::Query, effects, &[reply]);
            stage.answer(&[]);
        }
        let fresh = BackendState::fresh(stage.interner.intern(base()), false);
        if let Plan::Restore(Restore { set: Some(text), .. }) = plan(&fresh, &stage.session.held()) {
            proptest::prop_assert!(text.is_ascii());
        }
    }
}

#[test]
fn what_changes_for_others_is_kept_as_if_it_had_been_set() {
    for mut stage in Stage::both() {
        stage.query("SET a=1, tx_isolation='SERIALIZABLE'", &[ok().set("a", "1").set("tx_isolation", "SERIALIZABLE")]);
        let values = [("a", "5"), ("b", "6"), ("transaction_isolation", "READ-COMMITTED"), ("tx_read_only", "OFF")];
        let values = values.map(|(name, value)| (Box::from(name), Value::from(value)));
        stage.session.inherit(&values);
        let kept = [("a", "1"), ("b", "6"), ("tx_isolation", "SERIALIZABLE"), ("tx_read_only", "OFF")];
        stage.variables(&kept).pinned(&[]);
        let before = Arc::clone(stage.session.state());
        stage.session.inherit(&[("b".into(), Value::from("7"))]);
        assert!(Arc::ptr_eq(stage.session.state(), &before), "what came first counts");
    }
}

#[test]
fn what_can_be_given_to_a_session_that_has_not_set_it() {
    for (name, value, can) in [
        ("time_zone", "SYSTEM", true),
        ("autocommit", "OFF", true),
        ("wait_timeout", "28800", true),
        ("sql_mode", "ANSI", false),
        ("character_set_client", "latin1", false),
        ("character_set_database", "latin1", false),
        ("session_track_schema", "ON", false),
        ("timestamp", "1", false),
        ("profiling", "ON", false),
        ("innodb_tmpdir", "", false),
    ] {
        assert_eq!(is_inheritable(name, value.as_bytes()), can, "{name}");
    }
}
