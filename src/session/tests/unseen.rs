//! Calls of stored routines, and what their bodies tell.

use super::*;
use crate::sql::Routine;

const MODE: &str = "STRICT_TRANS_TABLES";

fn hex(text: &str) -> Option<Vec<u8>> {
    Some(text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>().into_bytes())
}

/// A routine as the server describes it.
fn found(kind: &str, schema: &str, name: &str, body: Option<&str>, mode: &str) -> Vec<Option<Vec<u8>>> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    vec![text(kind), hex(schema), hex(name), body.and_then(hex), text(mode), text("SQL"), text("SQL")]
}

impl Stage {
    /// Plays a text that calls something, and answers each question about routines by those of `routines` that it names.
    fn call(&mut self, text: &str, replies: &[Reply], routines: &[Vec<Option<Vec<u8>>>]) -> usize {
        let effects = self.effects(text);
        let calls = sql::code(text.as_bytes(), self.session.mode()).calls.expect("plain names");
        let targets = calls.iter().map(|routine: &Routine| self.session.target(routine)).collect::<Option<Vec<_>>>();
        if let Some(targets) = targets {
            self.session.expect_calls(targets);
        }
        self.command(Command::Query, effects, replies);
        let mut asked = 0;
        while let Followup::Ask(ask) = self.session.end() {
            let rows = match &ask {
                Ask::Routines(targets) => {
                    asked += 1;
                    let is = |row: &&Vec<Option<Vec<u8>>>| targets.iter().any(|target| row[2] == hex(&target.name));
                    Some(routines.iter().filter(is).cloned().collect())
                }
                Ask::Warnings | Ask::Mark | Ask::UserVariables { .. } | Ask::UserVariableNames => Some(vec![]),
                Ask::Schema => Some(vec![vec![hex("d")]]),
                Ask::Role => None,
                Ask::FoundRows => Some(vec![vec![Some(b"1".to_vec())]]),
                Ask::Variables(names) => Some(vec![vec![Some(b"utf8mb4_bin".to_vec()); names.len()]]),
            };
            self.session.answer(&ask, rows);
            assert!(asked < 10);
        }
        asked
    }
}

fn stages() -> [Stage; 2] {
    Stage::both().map(|mut stage| {
        stage.query("USE d", &[ok().schema("d")]);
        stage
    })
}

#[test]
fn a_call_of_what_leaves_nothing_pins_nobody() {
    let p = found("PROCEDURE", "d", "p", Some("BEGIN SET x = 1; SELECT f(2); CALL q(3); END"), MODE);
    let f = found("FUNCTION", "d", "f", Some("RETURN other.g(1)"), MODE);
    let g = found("FUNCTION", "other", "g", Some("RETURN f(1)"), MODE);
    let q = found("PROCEDURE", "d", "q", Some("INSERT INTO t VALUES (1)"), MODE);
    let own = found("FUNCTION", "other", "f", Some("RETURN 1"), MODE);
    let all = [p, f, g, q, own];
    for mut stage in stages() {
        assert_eq!(stage.call("CALL p()", &[rows(1), ok()], &all), 4);
        stage.pinned(&[]);
        assert_eq!(stage.session.cleared().len(), 5);
        assert_eq!(stage.session.cleared(), []);
        assert_eq!(stage.call("SELECT D.F(1)", &[rows(1)], &all), 3);
        stage.pinned(&[]);
        // What is known already is not asked for.
        let effects = stage.effects("CALL p()");
        stage.session.expect_calls(Vec::new());
        stage.command(Command::Query, effects, &[ok()]);
        assert_eq!(stage.session.end(), Followup::None);
        stage.pinned(&[]);
        stage.session.cleared();
        stage.query("DO 1", &[ok()]);
        assert!(stage.session.rare.is_none());
    }
}

#[test]
fn what_leaves_something_or_cannot_be_read_pins() {
    let table = [
        found("PROCEDURE", "d", "p", Some("SET @@a = 1"), MODE),
        found("PROCEDURE", "d", "p", Some("SET @`\u{e9}` = 1"), MODE),
        found("PROCEDURE", "d", "p", Some("DO GET_LOCK('a', 1)"), MODE),
        found("PROCEDURE", "d", "p", Some("CALL nowhere()"), MODE),
        found("PROCEDURE", "d", "p", Some("SELECT udf(1)"), MODE),
        found("PROCEDURE", "d", "p", Some("DO 1"), "PIPES_AS_CONCAT,ORACLE"),
        found("PROCEDURE", "d", "p", Some("DO 1"), "NO_BACKSLASH_ESCAPES"),
        found("PROCEDURE", "d", "p", None, MODE),
        found("FUNCTION", "d", "p", Some("RETURN 1"), MODE),
        found("PROCEDURE", "other", "p", Some("DO 1"), MODE),
        found("PACKAGE", "d", "p", Some("DO 1"), MODE),
    ];
    for routine in table {
        for mut stage in stages() {
            stage.call("CALL p()", &[ok()], std::slice::from_ref(&routine));
            stage.pinned(&["call"]);
            assert_eq!(stage.session.cleared(), []);
            // It stays, whatever comes.
            let harmless = found("PROCEDURE", "d", "q", Some("DO 1"), MODE);
            stage.call("CALL q()", &[ok()], &[harmless]);
            stage.pinned(&["call"]);
        }
    }
    // One that is spelled almost alike, on a server where that is another.
    for mut stage in stages() {
        let both =
            [found("PROCEDURE", "D", "p", Some("DO 1"), MODE), found("PROCEDURE", "d", "p", Some("SET ROLE a"), MODE)];
        stage.call("CALL p()", &[ok()], &both);
        stage.pinned(&["call"]);
    }
}

#[test]
fn what_speaks_against_it() {
    let harmless = [found("PROCEDURE", "d", "p", Some("SELECT 1"), MODE)];
    for mut stage in stages() {
        // Nobody knows what it had set before.
        assert_eq!(stage.call("CALL p()", &[err(1146)], &harmless), 0);
        stage.pinned(&["call"]);
    }
    for mut stage in stages() {
        // Something changed, and the body does not say what: perhaps a trigger.
        assert_eq!(stage.call("CALL p()", &[ok().state()], &harmless), 0);
        stage.pinned(&["call"]);
    }
    for mut stage in stages() {
        // More than names.
        stage.query("EXECUTE s", &[ok()]);
        assert_eq!(stage.call("CALL p()", &[ok()], &harmless), 0);
        stage.pinned(&["call"]);
    }
    for mut stage in stages() {
        // Without expectations, as for a prepared text.
        stage.query("CALL p()", &[ok()]).pinned(&["call"]);
    }
    for mut stage in Stage::both() {
        // No schema.
        assert_eq!(stage.call("CALL p()", &[ok()], &harmless), 0);
        stage.pinned(&["call"]);
    }
}

#[test]
fn what_does_not_exist_has_not_run() {
    let f = [found("FUNCTION", "d", "f", Some("RETURN nosuch(1)"), MODE)];
    for code in [1305, 1630] {
        for mut stage in stages() {
            stage.call("SELECT nosuch(1)", &[err(code)], &f);
            stage.pinned(&[]);
            stage.call("SELECT f(1), nosuch(1)", &[err(code)], &f);
            stage.pinned(&["call"]);
        }
    }
}

/// A question may be the first to read, and would fix what the transaction sees.
#[test]
fn nothing_is_asked_in_a_transaction() {
    let harmless = [found("PROCEDURE", "d", "p", Some("SELECT 1"), MODE)];
    for mut stage in stages() {
        stage.query("BEGIN", &[ok().in_trans()]);
        assert_eq!(stage.call("CALL p()", &[ok().in_trans()], &harmless), 0);
        assert_eq!(stage.call("CALL p()", &[ok().in_trans()], &harmless), 0);
        assert_eq!(stage.session.cleared(), []);
        stage.query("SELECT 1", &[rows(1).in_trans()]).pinned(&["transaction", "call"]);
        assert_eq!(stage.call("COMMIT", &[ok()], &harmless), 1);
        stage.pinned(&[]);
    }
    for mut stage in stages() {
        stage.query("BEGIN", &[ok().in_trans()]);
        assert_eq!(stage.call("CALL p()", &[ok().in_trans()], &harmless), 0);
        stage.query("EXECUTE s", &[ok().in_trans()]);
        stage.query("COMMIT", &[ok()]).pinned(&["call"]);
    }
}

#[test]
fn the_variables_that_a_body_names_are_its_callers() {
    let outer = found("PROCEDURE", "d", "outer_one", Some("BEGIN CALL p(); SET x = @b; END"), MODE);
    let p = found("PROCEDURE", "d", "p", Some("SELECT n INTO @a FROM t"), MODE);
    let all = [outer, p];
    for mut stage in stages() {
        for asked in [2, 2] {
            // What is left is different each time: nobody may take it for nothing.
            assert_eq!(stage.call("CALL outer_one()", &[ok()], &all), asked);
            stage.pinned(&[]);
            assert_eq!(stage.session.cleared(), []);
        }
        let known = stage.session.held().user_variables.expect("they have been noted");
        assert_eq!(known.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(matches!(stage.session.owes().last(), Some(Ask::UserVariables { .. })));
    }
}
