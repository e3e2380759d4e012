//! Differences that are known limits of the proxy: counted, not reported. The shorter this file, the better.

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
        (case.is_refused(), "a prepared question about the statement before, refused by 1235"),
        (case.asks_about_a_command(), "what a command that is no statement leaves for questions about it"),
        (case.ran_unseen_code(), "a function or a trigger changed what nobody has seen"),
        (case.is_about_types_before(), "MySQL remembers what a parameter was in executions before the last"),
        (case.is_about_unset_variables(), "on a backend that it keeps, a variable that was never set may be NULL"),
        (case.is_about_collations(), "the collation of character_set_results, which a restore does not keep"),
        (case.is_a_flag_of_an_old_client(), "MariaDB tells old clients in an EOF that the session's state changed"),
        (
            case.was_told_with_a_question(),
            "the schema after a CALL that failed: the proxy has asked for it and was told",
        ),
        (case.asks_for_trackers(), "what the trackers are set to after a reset"),
    ];
    limits.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

impl Case<'_> {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    fn is_refused(&self) -> bool {
        let Outcome::Reply(reply, _) = self.proxied.1 else { return false };
        matches!(self.step.act, Act::Statement(Command::StmtExecute, ..))
            && reply.error().is_some_and(|(code, _)| code == 1235)
    }

    fn asks_about_a_command(&self) -> bool {
        let asks = |text: &str| {
            let words =
                ["ROW_COUNT", "FOUND_ROWS", "WARNINGS", "ERRORS", "warning_count", "error_count", "DIAGNOSTICS"];
            words.iter().any(|word| text.contains(word))
        };
        let text_of = |act: &Act| match act {
            Act::Command(Command::Query, sql) => String::from_utf8_lossy(sql).into_owned(),
            _ => String::new(),
        };
        let is_other = |act: &Act| match act {
            Act::Command(Command::Query | Command::ResetConnection, _) => false,
            Act::Command(..) => true,
            Act::Statement(..) => true,
            _ => false,
        };
        // MariaDB keeps the list over a SELECT without a table, and over nothing.
        let leaves = |act: &Act| {
            let text = text_of(act);
            let empty = text.trim_start_matches(';').is_empty() || text.starts_with("/* nothing");
            let tableless = empty || text.starts_with("SELECT") && !text.contains("FROM");
            let is_query = matches!(act, Act::Command(Command::Query, _));
            matches!(act, Act::Prepare(..)) || is_query && self.kind == Kind::MariaDb && tableless
        };
        let mut lately = self.before.iter().take_while(|act| is_other(act) || leaves(act) || asks(&text_of(act)));
        asks(self.text) && lately.any(is_other)
    }

    fn ran_unseen_code(&self) -> bool {
        self.says(&["f_lock", "f_var", "@by_trigger", "@by_function", ".f1'"])
    }

    /// Nothing but two bytes of some columns differ.
    fn is_about_collations(&self) -> bool {
        self.differ_only(|class, a, b| {
            class == Class::Column && a.len() == b.len() && a.iter().zip(b).filter(|(a, b)| a != b).count() <= 2
        })
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

    fn is_a_flag_of_an_old_client(&self) -> bool {
        self.kind == Kind::MariaDb
            && self.differ_only(|class, a, b| class == Class::Eof && a[..4] == b[..4] && a[4] ^ b[4] == 0x40)
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

    fn asks_for_trackers(&self) -> bool {
        self.says(&["@@session_track"])
    }

    fn differ_only(&self, allowed: fn(Class, &[u8], &[u8]) -> bool) -> bool {
        let (Form::Packets(wanted), Form::Packets(got)) = (self.direct.0, self.proxied.0) else { return false };
        let (Outcome::Reply(one, _), Outcome::Reply(other, _)) = (self.direct.1, self.proxied.1) else { return false };
        wanted.len() == got.len()
            && one.classes == other.classes
            && wanted.iter().zip(got).zip(&one.classes).all(|((a, b), class)| a == b || allowed(*class, &a.1, &b.1))
    }
}
