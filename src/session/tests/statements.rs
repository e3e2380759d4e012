//! Prepared statements: what they do when executed, which ids there are, and when they pin.

use super::*;

#[test]
fn a_prepared_statement_does_what_its_text_does_and_pins_nothing_itself() {
    for mut stage in Stage::both() {
        stage.prepare("SELECT GET_LOCK(?, 1)", 1).prepare("SELECT 1", 2).pinned(&[]);
        stage.execute(2, &[rows(1)]).pinned(&[]);
        stage.session.end();
        stage.execute(1, &[rows(1)]).pinned(&["user_lock"]);
        stage.session.end();
        assert!(stage.session.close_statement(1).is_some() && stage.session.close_statement(7).is_none());
        stage.pinned(&["user_lock"]);
    }
    for mut stage in Stage::both() {
        // Preparing does nothing yet, whatever it fails with.
        let effects = stage.effects("SELECT 1 INTO @a");
        stage.command(Command::StmtPrepare, effects, &[err(1064)]);
        assert_eq!(stage.session.end(), Followup::None);
        stage.pinned(&[]);
    }
}

#[test]
fn a_prepared_statement_ends_pins_as_its_text_does() {
    for mut stage in Stage::both() {
        for (begin, reason, end, reply) in [
            ("CREATE TEMPORARY TABLE t (a INT)", "temporary_table", "DROP TEMPORARY TABLE t", ok().state()),
            ("SELECT GET_LOCK('a', 1)", "user_lock", "DO RELEASE_LOCK('a')", ok()),
        ] {
            stage.prepare(begin, 1).prepare(end, 2);
            stage.execute(1, std::slice::from_ref(&reply));
            stage.session.end();
            stage.pinned(&[reason]);
            stage.execute(2, std::slice::from_ref(&reply));
            stage.session.end();
            stage.pinned(&[]);
        }
    }
    for mut stage in Stage::both() {
        // The name means something else in another schema.
        stage.prepare("DROP TABLE t", 1).query("USE other", &[ok().schema("other")]);
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.execute(1, &[ok()]);
        stage.session.end();
        stage.pinned(&["temporary_table"]);
    }
}

#[test]
fn a_statement_pins_as_long_as_a_backends_is_held_for_it() {
    let mut stage = Stage::new(MYSQL);
    stage.prepare("SELECT ?", 1).prepare("SELECT ?", 2);
    stage.session.change_statement(1, |statement| statement.long_data = true);
    stage.session.change_statement(2, |statement| statement.cursor = true);
    stage.pinned(&["long_data", "cursor"]);
    stage.session.change_statement(1, |statement| (statement.long_data, statement.private) = (false, true));
    stage.pinned(&["prepared_statement", "cursor"]);
    assert!(stage.session.close_statement(2).is_some());
    stage.pinned(&["prepared_statement"]);
    assert!(stage.session.close_statement(1).is_some());
    stage.pinned(&[]);
}

#[test]
fn what_the_server_says_of_a_cursor() {
    for mut stage in Stage::both() {
        stage.prepare("SELECT 1", 1);
        let opened = rows(0).status(StatusFlags::SERVER_STATUS_CURSOR_EXISTS);
        let last = rows(1).status(StatusFlags::SERVER_STATUS_LAST_ROW_SENT);
        for (reply, saw) in [(rows(1), None), (opened, Some(true)), (last, Some(false))] {
            stage.execute(1, &[reply]);
            assert_eq!(stage.session.saw_cursor(), saw);
            stage.session.end();
        }
    }
}

#[test]
fn ids_are_counted_and_never_given_twice() {
    let mut stage = Stage::new(MARIA);
    assert_eq!([stage.session.next_statement_id(), stage.session.next_statement_id()], [1, 2]);
    assert_eq!((stage.session.statement_id(1), stage.session.statement_id(u32::MAX)), (None, None));
    stage.prepare("SELECT 1", 2);
    assert_eq!((stage.session.statement_id(2), stage.session.statement_id(u32::MAX)), (Some(2), Some(2)));
    assert_eq!(stage.session.next_statement_id(), 3);
    assert_eq!(stage.session.statement_id(u32::MAX), None, "the last one failed");
    let state = Arc::clone(stage.session.state());
    stage.session.reset(state);
    assert_eq!((stage.session.statement_id(2), stage.session.next_statement_id()), (None, 4));
    let mut mysql = Stage::new(MYSQL);
    mysql.prepare("SELECT 1", 1);
    assert_eq!(mysql.session.statement_id(u32::MAX), None);
}

#[test]
fn refusals_of_our_own_are_remembered() {
    let texts = |session: &Session| {
        let list = session.memory().list.as_deref().cloned().unwrap_or_default();
        list.into_iter().map(|row| String::from_utf8(row[2].clone().unwrap()).unwrap()).collect::<Vec<_>>()
    };
    for (options, wanted) in [(MARIA, &["b"][..]), (MYSQL, &["a", "b"])] {
        let mut stage = Stage::new(options);
        stage.query("UPDATE t SET n = 1", &[ok().affected(3)]);
        stage.session.observe_refused(1243, *b"HY000", "a");
        stage.session.observe_refused(1243, *b"HY000", "b");
        assert_eq!(texts(&stage.session), wanted);
        assert_eq!((stage.session.memory().row_count, stage.session.owes()), (-1, vec![]));
        stage.query("UPDATE t SET n = 1", &[ok().affected(3)]);
        stage.session.observe_reset_statement();
        assert_eq!((stage.session.memory().row_count, stage.session.memory().warnings), (0, 0));
    }
}

#[test]
fn refusals_are_added_to_a_list_that_must_be_there() {
    for (options, misses) in [(MARIA, false), (MYSQL, true)] {
        let mut stage = Stage::new(options);
        stage.query("SELECT CAST('x' AS SIGNED) FROM t", &[rows(1).warned(2)]);
        assert_eq!((stage.session.misses_list(), stage.session.counted_warnings()), (misses, None));
        let asked = stage.session.owes();
        let row = |code: &str| vec![Some(b"Warning".to_vec()), Some(code.as_bytes().to_vec()), Some(b"x".to_vec())];
        if misses {
            stage.session.answer(&asked[0], Some(vec![row("1292"), row("1292")]));
        }
        stage.session.observe_refused(1047, *b"08S01", "Unknown command");
        assert_eq!(stage.session.counted_warnings(), misses.then_some(3));
        assert_eq!(stage.session.memory().warnings, if misses { 3 } else { 1 });
        // An answer that comes late is no news.
        stage.session.answer(&asked[0], Some(vec![row("1292"), row("1292")]));
        let list = stage.session.memory().list.as_deref().cloned().unwrap_or_default();
        assert_eq!((list.len(), list.last().unwrap()[1].as_deref()), (if misses { 3 } else { 1 }, Some(&b"1047"[..])));
        // MySQL begins to count anew.
        stage.session.observe_refused(1243, *b"HY000", "a");
        assert_eq!(stage.session.counted_warnings(), misses.then_some(1));
        stage.session.observe_kill(0);
        assert_eq!((stage.session.memory().warnings, stage.session.memory().row_count), (u64::from(!misses), 0));
    }
}

#[test]
fn memory_prepares_only_where_nobody_can_tell() {
    for mut stage in Stage::both() {
        assert!(stage.session.may_prepare_from_memory());
        stage.query("START TRANSACTION", &[ok().in_trans()]);
        assert!(stage.session.may_prepare_from_memory());
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().in_trans().state()]);
        assert!(!stage.session.may_prepare_from_memory() && !stage.session.is_plain());
    }
    for mut stage in Stage::both() {
        stage.query("SELECT CAST('x' AS SIGNED) FROM t", &[rows(1).warned(1)]);
        // A real preparation empties MySQL's list, and MariaDB's only if the text names a table.
        let mariadb = stage.session.options().mariadb;
        assert!(stage.session.is_plain() && stage.session.may_prepare_from_memory() != mariadb);
        stage.session.observe_remembered_preparation();
        assert_eq!(stage.session.memory().warnings, u64::from(mariadb));
        assert_eq!(stage.session.owes().is_empty(), !mariadb, "nobody asks for a list that does not count");
    }
}

#[test]
fn what_a_statement_means_is_a_part_of_the_state() {
    let mut stage = Stage::new(MYSQL);
    let plain = Arc::clone(stage.session.state());
    assert!(Arc::ptr_eq(&meaning(&stage.interner, &plain), &plain));
    stage.query("SET autocommit=0", &[ok().manual().set("autocommit", "OFF")]);
    let manual = Arc::clone(stage.session.state());
    assert!(Arc::ptr_eq(&meaning(&stage.interner, &manual), &plain));
    stage.query("SET sql_mode=''", &[ok().manual().set("sql_mode", "")]);
    let other = meaning(&stage.interner, stage.session.state());
    assert!(!Arc::ptr_eq(&other, &plain));
    // Prepared then: everything as it was, but for what must not be touched.
    assert!(Arc::ptr_eq(&to_prepare_in(&stage.interner, &plain, stage.session.state()), &manual));
    let there = to_prepare_in(&stage.interner, &other, &plain);
    assert_eq!((there.variable("sql_mode"), there.variable("autocommit")), (Some(&b""[..]), None));
}
