//! Differences that servers make by themselves (a leftover of another connection's), and known limits of the proxy: counted,
//! not reported. The shorter this file, the better.

use super::normal::Form;
use crate::support::Kind;

/// What a difference looks like.
pub(super) struct Case<'a> {
    pub(super) kind: Kind,
    pub(super) direct: &'a Form,
    pub(super) proxied: &'a Form,
    /// The text of the statement, also of a prepared one.
    pub(super) text: &'a str,
}

/// Why this difference is no news, if it is not.
pub(super) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let limits = [
        (case.ran_unseen_code(), "a function or a trigger changed what nobody has seen"),
        (case.is_a_row_that_nobody_counts(), "MariaDB's errors in a CALL name a row, left by the connection's past"),
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
        self.kind == Kind::MariaDb && self.text.contains("CALL") && text(self.direct) == text(self.proxied)
    }

    fn ran_unseen_code(&self) -> bool {
        self.says(&["f_lock", "f_var", "@by_function", ".f1'"])
    }
}
