//! What pins, and what ends a pin.

use super::*;

/// Texts that pin at once, though the server reports nothing (or only "something changed"), until a reset.
#[test]
fn until_a_reset() {
    let silent = [
        ("SELECT 1 INTO @`\u{e9}`", "user_variables"),
        ("SELECT GET_LOCK('a', 1) FROM t", "user_lock"),
        ("CALL p()", "call"),
        ("EXECUTE s", "call"),
        ("SELECT f()", "call"),
        ("UPDATE t SET a = db.f(1)", "call"),
        ("BEGIN NOT ATOMIC SELECT 1; END", "call"),
        ("SET ROLE r; SELECT 1", "role"),
        ("SELECT PREVIOUS VALUE FOR s", "sequence"),
        ("BINLOG 'x'", "write_only_variable"),
        ("SELECT 1 /*!99999 ' */, 2 -- '", "unexplained"),
        ("CREATE TEMPORARY TABLE db.t (a INT)", "temporary_table"),
        ("PREPARE s FROM 'x'; SELECT 1", "text_prepare"),
        ("HANDLER t OPEN; SELECT 1", "handler"),
    ];
    for (text, label) in silent {
        for mut stage in Stage::both() {
            stage.query(text, &[ok()]).pinned(&[label]);
            stage.query("SELECT 1", &[rows(1)]).pinned(&[label]);
            let state = Arc::clone(stage.session.state());
            stage.session.reset(state);
            stage.pinned(&[]);
        }
    }
}

#[test]
fn state_changes_that_are_explained_do_not_pin_for_themselves() {
    let reported = [
        ("SET @a = 1", &[][..]),
        ("CREATE TEMPORARY TABLE t (a INT)", &["temporary_table"]),
        ("DROP TEMPORARY TABLE IF EXISTS nosuch", &[]),
        ("PREPARE s FROM 'SELECT 1'", &[]),
        ("PREPARE s FROM @a", &["text_prepare"]),
        ("CALL p()", &["call"]),
        ("ALTER TABLE t ADD b INT", &["unexplained"]),
        ("SELECT f()", &["call"]),
        ("SELECT a FROM v", &["unexplained"]),
        ("INSERT INTO t VALUES (1)", &["unexplained"]),
    ];
    for (text, labels) in reported {
        for mut stage in Stage::both() {
            stage.query(text, &[ok().state()]).pinned(labels);
        }
    }
    for mut stage in Stage::both() {
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.query("ALTER TABLE t ADD b INT", &[ok().state()]).pinned(&["temporary_table"]);
        stage.query("DROP TABLE t", &[ok()]).pinned(&["temporary_table"]);
    }
}

#[test]
fn transactions() {
    for mut stage in Stage::both() {
        stage.query("BEGIN", &[ok().in_trans().trx("T_______").chars("START TRANSACTION;")]).pinned(&["transaction"]);
        stage.query("SELECT 1 FROM t", &[rows(1).in_trans().trx("T_R__sS_")]).pinned(&["transaction"]);
        stage.query("SELECT nope", &[err(1054)]).pinned(&["transaction"]);
        stage.query("COMMIT AND CHAIN", &[ok().in_trans().chars("START TRANSACTION;")]).pinned(&["transaction"]);
        stage.query("COMMIT", &[ok().trx("________").chars("")]).pinned(&[]);
        let read_only = StatusFlags::SERVER_STATUS_IN_TRANS_READONLY;
        stage.query("START TRANSACTION READ ONLY", &[ok().status(read_only)]).pinned(&["transaction"]);
        // An implicit commit.
        stage.query("CREATE TABLE x (a INT)", &[ok().trx("________").chars("")]).pinned(&[]);
    }
}

#[test]
fn autocommit_off_pins_only_with_a_savepoint_or_a_table() {
    for mut stage in Stage::both() {
        stage.query("SET autocommit=0", &[ok().manual().set("autocommit", "OFF")]).pinned(&[]);
        stage.variables(&[("autocommit", "OFF")]);
        stage.query("SAVEPOINT s", &[ok().manual()]).pinned(&["autocommit_savepoint"]);
        stage.query("SELECT 1", &[rows(1).manual()]).pinned(&["autocommit_savepoint"]);
        stage.query("ROLLBACK TO s", &[ok().manual()]).pinned(&["autocommit_savepoint"]);
        stage.query("ROLLBACK", &[ok().manual()]).pinned(&[]);
        stage.query("SAVEPOINT s", &[ok().manual()]);
        stage.query("SELECT 1 FROM t", &[rows(1).manual().in_trans().trx("I_R__sS_")]);
        stage.pinned(&["transaction", "autocommit_savepoint"]);
        stage.query("COMMIT", &[ok().manual().trx("________")]).pinned(&[]);
        stage.query("SET autocommit=1", &[ok().set("autocommit", "ON")]);
        stage.query("SAVEPOINT s", &[ok()]).pinned(&[]);
    }
}

/// An ERR says nothing of the transaction, and the statement may have read a table before it failed.
#[test]
fn what_fails_without_autocommit_may_have_opened_a_transaction() {
    for code in [1062, 1064] {
        for mut stage in Stage::both() {
            // No status yet.
            stage.query("SELECT a FROM t", &[err(code)]).pinned(&[]);
            stage.query("DO 1", &[ok()]).query("SELECT a FROM t", &[err(code)]).pinned(&[]);
            stage.query("SET autocommit=0", &[ok().manual().set("autocommit", "OFF")]).pinned(&[]);
            stage.query("INSERT INTO t VALUES (1), (1)", &[err(code)]).pinned(&["transaction"]);
            stage.query("ROLLBACK", &[ok().manual()]).pinned(&[]);
            stage.prepare("SELECT a FROM t", 1).execute(1, &[err(code)]);
            stage.session.end();
            stage.pinned(&["transaction"]);
            // Off without having been set: only the status says so.
            stage.query("SET autocommit=1", &[ok().set("autocommit", "ON")]).query("DO 1", &[ok().manual()]);
            stage.query("DO ABS(a)", &[err(code)]).pinned(&["transaction"]);
            stage.query("DO 1", &[ok()]).pinned(&[]);
            stage.query("INSERT INTO t VALUES (1), (1)", &[err(code)]).pinned(&[]);
        }
    }
}

#[test]
fn where_autocommit_is_off_by_default_the_first_error_counts() {
    for options in [MYSQL, MARIA] {
        let mut stage = Stage::new(Options { autocommit_off: true, ..options });
        stage.query("INSERT INTO t VALUES (1), (1)", &[err(1062)]).pinned(&["transaction"]);
        stage.query("ROLLBACK", &[ok().manual()]).pinned(&[]);
    }
}

/// Bytes that another character set reads otherwise, and escapes, make no name that could be recognized later.
#[test]
fn a_name_that_may_change_its_meaning_ends_nothing() {
    let table = [
        ("PREPARE é FROM 'x'", "text_prepare", "DEALLOCATE PREPARE é"),
        ("CREATE TEMPORARY TABLE `é` (a INT)", "temporary_table", "DROP TABLE `é`"),
        ("CREATE TEMPORARY TABLE `a[` (a INT)", "temporary_table", "DROP TABLE `a[`"),
        ("SELECT GET_LOCK('é', 1)", "user_lock", "DO RELEASE_LOCK('é')"),
        ("SELECT GET_LOCK('\\a', 1)", "user_lock", "DO RELEASE_LOCK('\\b')"),
    ];
    for (begin, label, end) in table {
        for mut stage in Stage::both() {
            stage.query(begin, &[ok()]).query(end, &[ok()]).pinned(&[label]);
        }
    }
}

#[test]
fn one_shot_transactions() {
    for mut stage in Stage::both() {
        let text = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;";
        stage.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", &[ok().chars(text)]);
        stage.pinned(&["one_shot_transaction"]);
        stage.query("SELECT 1", &[rows(1)]).pinned(&["one_shot_transaction"]);
        stage.query("SELECT 1 FROM t", &[rows(1).chars("")]).pinned(&[]);
        stage.query("SET TRANSACTION READ ONLY", &[ok().chars("SET TRANSACTION READ ONLY;")]);
        stage.query("BEGIN", &[ok().in_trans().trx("T_______").chars("START TRANSACTION READ ONLY;")]);
        stage.query("COMMIT", &[ok().trx("________").chars("")]).pinned(&[]);
        stage.variables(&[]);
    }
}

#[test]
fn lock_tables_follow_the_tracker() {
    for mut stage in Stage::both() {
        stage.query("LOCK TABLES t READ", &[ok().trx("_______L")]).pinned(&["locks"]);
        // Locking again reports nothing.
        stage.query("LOCK TABLES u READ", &[ok()]).pinned(&["locks"]);
        stage.query("BEGIN", &[ok().in_trans().trx("T_______").chars("START TRANSACTION;")]).pinned(&["transaction"]);
        stage.query("ROLLBACK", &[ok().trx("________").chars("")]).pinned(&[]);
        stage.query("LOCK TABLES t READ", &[ok().trx("_______L")]);
        stage.query("UNLOCK TABLES", &[ok().trx("________")]).pinned(&[]);
        stage.query("LOCK TABLES nosuch READ", &[err(1146)]).pinned(&[]);
    }
}

#[test]
fn what_the_same_kind_of_statement_ends() {
    let table = [
        ("FLUSH TABLES WITH READ LOCK", "global_read_lock", "UNLOCK TABLES"),
        ("FLUSH TABLES t FOR EXPORT", "global_read_lock", "UNLOCK TABLES"),
        ("LOCK INSTANCE FOR BACKUP", "instance_lock", "UNLOCK INSTANCE"),
        ("BACKUP STAGE START", "backup_stage", "BACKUP STAGE END"),
        ("BACKUP LOCK t", "backup_stage", "BACKUP UNLOCK"),
        ("HANDLER t OPEN", "handler", "HANDLER t CLOSE"),
        ("CREATE TEMPORARY TABLE t (a INT)", "temporary_table", "DROP TABLE t"),
        ("CREATE TEMPORARY TABLE t (a INT)", "temporary_table", "DROP TEMPORARY TABLE IF EXISTS t"),
        ("SELECT GET_LOCK('a', 1)", "user_lock", "DO RELEASE_LOCK('a')"),
        ("SELECT GET_LOCK('a', 1)", "user_lock", "SELECT RELEASE_ALL_LOCKS()"),
        ("SELECT GET_LOCK('a', 1) FROM t", "user_lock", "SELECT RELEASE_ALL_LOCKS()"),
    ];
    for (begin, label, end) in table {
        for mut stage in Stage::both() {
            stage.query(begin, &[ok()]).pinned(&[label]);
            stage.query("SELECT 1", &[rows(1)]).pinned(&[label]);
            // An end that fails, or might not have run, ends nothing.
            stage.query(end, &[err(1234)]).pinned(&[label]);
            if label != "temporary_table" {
                // (Of a text with several statements any might rename a table.)
                stage.query(&format!("{end}; SELECT 1"), &[ok(), err(1234)]).pinned(&[label]);
            }
            stage.query(&format!("/*!99999 {end} */"), &[ok()]).pinned(&[label]);
            stage.query(end, &[ok()]).pinned(&[]);
        }
    }
}

#[test]
fn no_backend_is_reset_with_something_prepared_in_xa() {
    for options in [MARIA, MYSQL] {
        let may = |texts: &[&str], open: bool| {
            let mut stage = Stage::new(options);
            for text in texts {
                stage.query(text, &[if open { ok().in_trans() } else { ok() }]);
            }
            stage.session.bears_reset()
        };
        assert!(!may(&["XA START 'x'", "XA END 'x'", "XA PREPARE 'x'"], true));
        assert!(!may(&["CALL p()"], true));
        assert!(may(&["CALL p()"], false));
        assert!(may(&["BEGIN", "INSERT INTO t VALUES (1)"], true));
    }
}

#[test]
fn what_failed_began_nothing() {
    let table = [
        "FLUSH TABLES WITH READ LOCK",
        "LOCK INSTANCE FOR BACKUP",
        "HANDLER t OPEN",
        "PREPARE s FROM 'x'",
        "CREATE TEMPORARY TABLE t (a INT)",
        "SET ROLE r",
        "SET RESOURCE GROUP r",
        "XA START 'x'",
    ];
    for text in table {
        for code in [1227, 1064] {
            for mut stage in Stage::both() {
                stage.query("DO 1", &[ok()]).query(text, &[err(code)]).pinned(&[]);
            }
        }
    }
    for mut stage in Stage::both() {
        stage.query("DO 1", &[ok()]).query("HANDLER t OPEN; SELEKT", &[err(1064)]).pinned(&[]);
        stage.query("DO 1; SET @a = = 1", &[ok(), err(1064)]).pinned(&[]);
    }
    // A function or a trigger may raise the code of a text that does not parse: by then something may have run.
    let by_expressions = [
        ("SELECT GET_LOCK('a',1), a FROM v", "user_lock"),
        ("SELECT GET_LOCK('a',1)", "user_lock"),
        ("SET @`\u{e9}` = 1, @b = (SELECT a FROM v)", "user_variables"),
        ("CALL p()", "call"),
        ("SELECT PREVIOUS VALUE FOR s, a FROM v", "sequence"),
    ];
    for (text, label) in by_expressions {
        for mut stage in Stage::both() {
            stage.query("HANDLER t OPEN", &[ok()]).query(text, &[err(1064)]);
            stage.query("HANDLER t CLOSE", &[ok()]).pinned(&[label]);
        }
    }
    for mut stage in Stage::both() {
        stage.query("DO 1", &[ok()]);
        stage.query("SELECT GET_LOCK('a',1)", &[err(1317)]).pinned(&["user_lock"]);
    }
}

#[test]
fn several_things_of_one_kind() {
    for mut stage in Stage::both() {
        // Locks are counted, also of one name.
        stage.query("SELECT GET_LOCK('a',1)", &[rows(1)]).query("SELECT GET_LOCK('a',1)", &[rows(1)]);
        stage.query("SELECT GET_LOCK('b',1)", &[rows(1)]).query("SELECT RELEASE_LOCK('a')", &[rows(1)]);
        stage.query("SELECT RELEASE_LOCK('b')", &[rows(1)]).pinned(&["user_lock"]);
        stage.query("SELECT RELEASE_LOCK('a')", &[rows(1)]).pinned(&[]);
        // A name prepared twice is one.
        stage.query("PREPARE a FROM @x", &[ok()]).query("PREPARE a FROM @y", &[ok()]);
        stage.query("PREPARE b FROM @x", &[ok()]).query("DEALLOCATE PREPARE a", &[ok()]).pinned(&["text_prepare"]);
        stage.query("DEALLOCATE PREPARE b", &[ok()]).pinned(&[]);
        // Tables are of a schema.
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.query("USE other", &[ok().schema("other")]);
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.query("DROP TABLE t", &[ok()]).pinned(&["temporary_table"]);
        stage.query("DROP TABLE t", &[ok()]).pinned(&["temporary_table"]);
    }
}

#[test]
fn a_renamed_table_or_a_reread_name_is_not_counted_any_more() {
    for mut stage in Stage::both() {
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.query("ALTER TABLE t RENAME TO u", &[ok()]);
        stage.query("DROP TABLE t", &[ok()]).pinned(&["temporary_table"]);
    }
    for mut stage in Stage::both() {
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.prepare("INSERT INTO t VALUES (?)", 1).execute(1, &[ok()]);
        stage.session.end();
        stage.query("DROP TABLE t", &[ok()]).pinned(&[]);
        stage.query("CREATE TEMPORARY TABLE t (a INT)", &[ok().state()]);
        stage.query("DO 1; ALTER TABLE t RENAME TO u", &[ok(), ok()]);
        stage.query("DROP TABLE t", &[ok()]).pinned(&["temporary_table"]);
    }
    for mut stage in Stage::both() {
        stage.query("SELECT GET_LOCK('\\\\',1)", &[rows(1)]);
        stage.query("SET sql_mode='NO_BACKSLASH_ESCAPES'", &[ok().set("sql_mode", "NO_BACKSLASH_ESCAPES")]);
        stage.query("SELECT RELEASE_LOCK('\\\\')", &[rows(1)]).pinned(&["user_lock"]);
    }
}

#[test]
fn xa() {
    // MySQL detaches the transaction when it is prepared (by default): that cannot be told from the reply alone.
    let mut stage = Stage::new(MYSQL);
    stage
        .query("XA START 'x'", &[ok().in_trans().trx("T_______").chars("XA START 'x';")])
        .pinned(&["transaction", "xa"]);
    stage.query("XA END 'x'", &[ok().in_trans()]).pinned(&["transaction", "xa"]);
    stage.query("XA PREPARE 'x'", &[ok().trx("________").chars("")]).pinned(&["xa"]);
    stage.query("SELECT 1", &[rows(1)]).pinned(&["xa"]);
    stage.query("XA COMMIT 'x'", &[ok()]).pinned(&[]);
    stage.query("XA START 'x'", &[ok().in_trans()]).query("XA END 'x'", &[ok().in_trans()]);
    stage.query("XA PREPARE 'x'", &[ok()]).query("BEGIN", &[ok().in_trans()]).pinned(&["transaction"]);
    // MariaDB keeps it.
    let mut stage = Stage::new(MARIA);
    stage.query("XA START 'x'", &[ok().in_trans().trx("T_______").chars("XA START 'x';")]);
    stage.query("XA END 'x'", &[ok().in_trans()]).query("XA PREPARE 'x'", &[ok().in_trans()]);
    stage.query("SELECT 1", &[rows(1).in_trans()]).pinned(&["transaction", "xa"]);
    stage.query("XA ROLLBACK 'x'", &[err(1400)]).pinned(&["transaction", "xa"]);
    stage.query("XA ROLLBACK 'x'", &[ok().trx("________").chars("")]).pinned(&[]);
}

#[test]
fn refresh_may_lock() {
    for mut stage in Stage::both() {
        stage.command(Command::Refresh, Effects::default(), &[ok()]);
        stage.session.end();
        stage.pinned(&["global_read_lock"]);
        stage.query("UNLOCK TABLES", &[ok()]).pinned(&[]);
    }
}

#[test]
fn effects_may_come_late() {
    for mut stage in Stage::both() {
        stage.session.begin(Command::Query, &Effects::default());
        let effects = stage.effects("SELECT 'long', GET_LOCK('a', 1)");
        stage.session.late_effects(effects);
        stage.replies(&[ok()]);
        assert_eq!(stage.session.end(), Followup::None);
        stage.pinned(&["user_lock"]);
    }
}

#[test]
fn malformed_trackers_pin() {
    for mut stage in Stage::both() {
        let mut reply = ok();
        reply.changes = BytesMut::from(&[0, 200, 1][..]);
        stage.query("SELECT 1", &[reply]).pinned(&["unexplained"]);
    }
}

#[test]
fn a_resource_group_pins_over_a_reset() {
    for mut stage in Stage::both() {
        stage.query("SET RESOURCE GROUP g", &[ok()]).pinned(&["resource_group"]);
        let state = Arc::clone(stage.session.state());
        stage.session.reset(state);
        stage.pinned(&["resource_group"]);
    }
}

#[test]
fn a_role_pins_unless_it_is_that_of_the_login() {
    for mut stage in Stage::both() {
        for (role, pinned) in [("r", true), ("other", true), ("own", false)] {
            let effects = stage.effects(&format!("SET ROLE {role}"));
            stage.command(Command::Query, effects, &[ok().state()]);
            assert_eq!(stage.session.end(), Followup::Ask(Ask::Role));
            stage.session.answer(&Ask::Role, (!pinned).then(|| vec![vec![Some(b"1".to_vec())]]));
            assert_eq!(stage.session.end(), Followup::None);
            stage.pinned(if pinned { &["role"] } else { &[] });
        }
        stage.query("SET ROLE nobody", &[err(1959)]).pinned(&[]);
        // A reset leaves it.
        let state = Arc::clone(stage.session.state());
        stage.session.reset(state);
        stage.session.keep_role();
        stage.pinned(&["role"]);
    }
}

#[test]
fn to_come_back_to_the_schema_explains_nothing_else() {
    for mut stage in Stage::both() {
        stage.query("USE own", &[ok().schema("own")]);
        assert!(!stage.session.is_pinned());
        stage.query("INSERT INTO other.t VALUES (1)", &[ok().schema("own")]);
        assert!(stage.session.pins().contains(PinReason::Unexplained));
    }
}

#[test]
fn a_temporary_table_does_not_explain_what_a_trigger_sets() {
    for mut stage in Stage::both() {
        stage.query("CREATE TEMPORARY TABLE t (n INT)", &[ok().state()]);
        stage.query("ALTER TABLE t ADD COLUMN m INT", &[ok().state()]).pinned(&["temporary_table"]);
        stage.query("INSERT INTO t VALUES (1)", &[ok().affected(1)]).pinned(&["temporary_table"]);
        stage
            .query("INSERT INTO u VALUES (1)", &[ok().affected(1).state()])
            .pinned(&["temporary_table", "unexplained"]);
    }
}
