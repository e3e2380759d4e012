//! Differences that servers make by themselves (a leftover of another connection's), and known limits of the proxy: counted,
//! not reported. The shorter this file, the better.

use myriad::protocol::capability::StatusFlags;
use myriad::protocol::command::Command;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::session_track::{Change, changes};
use myriad::protocol::response::Class;

use super::normal::Form;
use super::script::{Act, Step};
use super::world::Outcome;
use crate::support::Kind;

/// What a difference looks like.
pub(super) struct Case<'a> {
    pub(super) kind: Kind,
    pub(super) step: &'a Step,
    pub(super) direct: (&'a Form, &'a Outcome),
    pub(super) proxied: (&'a Form, &'a Outcome),
    /// The text of the statement, also of a prepared one.
    pub(super) text: &'a str,
    /// What the client did before, last first.
    pub(super) before: &'a [Act],
}

/// Why this difference is no news, if it is not.
pub(super) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let limits = [
        (case.ran_unseen_code(), "a function or a trigger changed what nobody has seen"),
        (case.is_about_types_before(), "MySQL remembers what a parameter was in executions before the last"),
        (case.is_about_unset_variables(), "on a backend that it keeps, a variable that was never set may be NULL"),
        (case.is_a_row_that_nobody_counts(), "MariaDB's errors in a CALL name a row, left by the connection's past"),
        (case.found_nothing_yet(), "MariaDB's FOUND_ROWS() is that of another connection until one has found any"),
        (
            case.was_told_with_a_question(),
            "the schema after a CALL that failed: the proxy has asked for it and was told",
        ),
    ];
    limits.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

impl Case<'_> {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    /// The last error of a CALL is "at row 0" on one connection, and "at row 1" on one that has run other statements.
    fn is_a_row_that_nobody_counts(&self) -> bool {
        let text = |form: &Form| format!("{form:?}").replace("at row 0", "at row 1");
        self.kind == Kind::MariaDb && self.text.contains("CALL") && text(self.direct.0) == text(self.proxied.0)
    }

    /// MariaDB keeps the number in a thread's memory, which the next connection gets as it is.
    fn found_nothing_yet(&self) -> bool {
        let finds = |act: &Act| match act {
            Act::Command(Command::Query, sql) => {
                !sql.is_empty() && !sql.starts_with(b"SET") && !sql.starts_with(b"USE")
            }
            Act::Statement(Command::StmtExecute, ..) => true,
            _ => false,
        };
        let fresh = self.before.iter().take_while(|act| !matches!(act, Act::Reconnect(..))).all(|act| !finds(act));
        self.kind == Kind::MariaDb && self.text.contains("FOUND_ROWS") && fresh
    }

    fn ran_unseen_code(&self) -> bool {
        self.says(&["f_lock", "f_var", "@by_function", ".f1'"])
    }

    fn is_about_types_before(&self) -> bool {
        let Act::Statement(Command::StmtExecute, slot, rest) = &self.step.act else { return false };
        let same = |act: &Act| matches!(act, Act::Statement(Command::StmtExecute, other, _) if other == slot);
        let mut since = self.before.iter().take_while(|act| !matches!(act, Act::Prepare(other, _) if other == slot));
        // Some are without parameters: flags and a count of five bytes are all they have.
        self.kind == Kind::MySql && rest.len() > 5 && since.any(same)
    }

    /// The columns of user variables differ in what is said of NULL.
    fn is_about_unset_variables(&self) -> bool {
        self.differ_only(|class, a, b| {
            class == Class::Column
                && a.len() == b.len()
                && a.starts_with(b"\x03def\x00\x00\x00")
                && a.get(8) == Some(&b'@')
        })
    }

    fn was_told_with_a_question(&self) -> bool {
        self.differ_only(|class, a, b| {
            let (Ok(mut told), Ok(other)) = (OkPacket::parse(a, true), OkPacket::parse(b, true)) else { return false };
            let all: Vec<_> = changes(told.session_state).collect();
            told.status -= StatusFlags::SERVER_SESSION_STATE_CHANGED;
            let only_schema = matches!(all[..], [Ok(Change::Schema(_))]);
            told.session_state = b"";
            matches!(class, Class::Ok | Class::RowsEnd) && only_schema && told == other
        })
    }

    fn differ_only(&self, allowed: fn(Class, &[u8], &[u8]) -> bool) -> bool {
        let (Form::Packets(wanted), Form::Packets(got)) = (self.direct.0, self.proxied.0) else { return false };
        let (Outcome::Reply(one, _), Outcome::Reply(other, _)) = (self.direct.1, self.proxied.1) else { return false };
        wanted.len() == got.len()
            && one.classes == other.classes
            && wanted.iter().zip(got).zip(&one.classes).all(|((a, b), class)| a == b || allowed(*class, &a.1, &b.1))
    }
}
