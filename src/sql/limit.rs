//! Texts that do nothing at all under `sql_select_limit=0`.

use super::rules::Kind;
use super::tape::Tape;
use super::{Flags, Mode, Word};

/// What may matter all the same: the text is not all ours to see, or asks for something besides its rows.
const ODD: Flags = Flags::RUNS_UNSEEN
    .and(Flags::GET_LOCK)
    .and(Flags::RELEASE_LOCK)
    .and(Flags::RELEASE_ALL_LOCKS)
    .and(Flags::SERVICE_LOCK)
    .and(Flags::SETS_LAST_INSERT_ID)
    .and(Flags::READS_SEQUENCE)
    .and(Flags::EXECUTABLE_COMMENT)
    .and(Flags::OPAQUE);

/// Words with which a `SELECT` has a limit of its own, more than one part, or locks.
const OTHERS: &[&str] =
    &["LIMIT", "INTO", "UNION", "EXCEPT", "INTERSECT", "WITH", "FOR", "LOCK", "PROCEDURE", "SLEEP", "BENCHMARK"];

/// Whether the server reads no row for this text, and evaluates nothing, with `sql_select_limit=0`: a plain `SELECT`.
#[must_use]
pub fn obeys_select_limit(text: &[u8], mode: Mode) -> bool {
    let (effects, lexemes) = Tape::of(text, mode);
    let is_plain = effects.first == Word::Select && effects.statements == 1 && !effects.may(ODD);
    is_plain && !lexemes.iter().any(|lexeme| lexeme.kind == Kind::Word && lexeme.is_any(text, OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tests::MYSQL;

    #[test]
    fn only_a_plain_select_does() {
        for (text, obeys) in [
            ("SELECT ?", true),
            ("SELECT @b := ?, n FROM t WHERE n IN (SELECT n FROM u WHERE id = ?)", true),
            ("SELECT ? LIMIT 1", false),
            ("SELECT n FROM t WHERE id = ? FOR UPDATE", false),
            ("SELECT ? UNION SELECT ?", false),
            ("SELECT ? INTO @a", false),
            ("SELECT GET_LOCK(?, 1)", false),
            ("SELECT LAST_INSERT_ID(?)", false),
            ("SELECT anybodys(?)", false),
            ("SELECT sleep(?)", false),
            ("(SELECT ?)", true),
            ("SET @a = ?", false),
            ("INSERT INTO t VALUES (?)", false),
        ] {
            assert_eq!(obeys_select_limit(text.as_bytes(), MYSQL), obeys, "{text}");
        }
    }
}
