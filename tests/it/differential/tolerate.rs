//! Differences that are known limits of the proxy: counted, not reported. The shorter this file, the better.

use myriad::protocol::command::Command;
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
}

/// Why this difference is no news, if it is not.
pub(super) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let limits = [
        (case.is_refused(), "a question about the statement before, refused by 1235"),
        (case.asks_about_the_one_before(), "an answer about the statement before, from memory"),
        (case.ran_unseen_code(), "a function or a trigger changed what nobody has seen"),
        (case.is_about_unset_variables(), "on a backend that it keeps, a variable that was never set may be NULL"),
        (case.is_about_collations(), "the collation of character_set_results, which a restore does not keep"),
        (case.is_a_flag_of_an_old_client(), "MariaDB tells old clients in an EOF that the session's state changed"),
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
        let asks = matches!(self.step.act, Act::Command(Command::Query, _) | Act::Statement(Command::StmtExecute, ..));
        asks && reply.error().is_some_and(|(code, _)| code == 1235)
    }

    fn asks_about_the_one_before(&self) -> bool {
        // MySQL counts the warnings of the statement before in the answers to these.
        let counts = matches!(self.step.act, Act::Command(Command::Ping | Command::SetOption | Command::InitDb, _));
        let words = ["ROW_COUNT", "FOUND_ROWS", "WARNINGS", "ERRORS", "warning_count", "error_count", "DIAGNOSTICS"];
        counts && self.kind == Kind::MySql || self.says(&words)
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
