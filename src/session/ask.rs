//! Questions: what a session must ask the server about itself.
//!
//! Asked on the session's own backend, after its turn or before somebody else takes the backend over. A question is a
//! statement too: it changes `ROW_COUNT()` and (on MySQL) clears the warnings, so the session remembers those first.

use std::fmt::Write;

use bytes::Bytes;

use super::unseen::Target;
use super::user_variables;
use crate::protocol::packet::column::text_row;

/// The rows of an answer: values as text, `None` for NULL.
pub type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// One question, to be put as a COM_QUERY to the session's own backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The values of these session variables, in one row. The names are checked ones.
    Variables(Vec<Box<str>>),
    /// The list of warnings: rows of level, code, message.
    Warnings,
    /// The same, to see whether a mark is still there.
    Mark,
    /// The default schema, in UTF-8 and hexadecimal.
    Schema,
    /// `FOUND_ROWS()`: more than there were rows, after `SQL_CALC_FOUND_ROWS`.
    FoundRows,
    /// The names of all user variables, in hexadecimal (MariaDB), a row each.
    UserVariableNames,
    /// The values of these user variables, a row each: type, collation, value.
    UserVariables {
        /// Checked names, in lower case.
        names: Vec<Box<str>>,
        /// How many bytes of values the session may keep. With more, its backend must stay its own.
        room: usize,
    },
    /// The active role, in hexadecimal. To be answered by a 1 if it is that of the login.
    Role,
    /// What stored routines do.
    Routines(Vec<Target>),
}

impl Ask {
    /// The statement to send. ASCII, and read alike under every `sql_mode` and character set.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Warnings | Self::Mark => "SHOW WARNINGS".to_owned(),
            Self::Schema => "SELECT HEX(CONVERT(DATABASE() USING utf8mb4)) LIMIT 1".to_owned(),
            Self::Role => "SELECT HEX(CONVERT(CURRENT_ROLE() USING utf8mb4)) LIMIT 1".to_owned(),
            Self::FoundRows => "SELECT FOUND_ROWS() LIMIT 1".to_owned(),
            Self::UserVariableNames => user_variables::list(),
            Self::UserVariables { names, room } => user_variables::question(names, *room),
            Self::Routines(targets) => super::unseen::question(targets),
            Self::Variables(names) => {
                let mut text = "SELECT ".to_owned();
                for (n, name) in names.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    let _ = write!(text, "{comma}@@session.{}", quoted(name));
                }
                // Overrides the session's `sql_select_limit`, which may be 0. (SHOW WARNINGS does not obey that.)
                text.push_str(" LIMIT 1");
                text
            }
        }
    }

    /// The answer, from the column definitions and rows that the server sent.
    #[must_use]
    pub fn answer(&self, columns: &[Bytes], rows: &[Bytes]) -> Rows {
        let fields = |row: &Bytes| text_row(row).map(|field| field.map(<[u8]>::to_vec)).collect::<Vec<_>>();
        let rows: Rows = rows.iter().map(fields).collect();
        match self {
            Self::Variables(_)
            | Self::Warnings
            | Self::Mark
            | Self::Schema
            | Self::FoundRows
            | Self::Role
            | Self::UserVariableNames
            | Self::Routines(_) => rows,
            Self::UserVariables { .. } => {
                user_variables::describe(columns, rows.into_iter().next().unwrap_or_default())
            }
        }
    }

    /// Whether the answer may be more than the session can keep.
    #[must_use]
    pub fn may_bind(&self) -> bool {
        matches!(self, Self::UserVariables { .. })
    }

    /// Whether the session cannot keep what was answered, so that the backend must stay its own.
    #[must_use]
    pub fn binds(&self, rows: &Rows) -> bool {
        match self {
            Self::Variables(_)
            | Self::Warnings
            | Self::Mark
            | Self::Schema
            | Self::FoundRows
            | Self::Role
            | Self::UserVariableNames
            | Self::Routines(_) => false,
            Self::UserVariables { names, room } => user_variables::read(names, *room, rows).is_none(),
        }
    }
}

/// What the end of a turn calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followup {
    /// Nothing: let go of the backend, if nothing pins.
    None,
    /// Put this question, hand the answer to `Session::answer`, then call `Session::end` again.
    Ask(Ask),
}

/// A variable's name as SQL: each part in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('.', "`.`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(Ask::Warnings.text(), "SHOW WARNINGS");
        let names = Ask::Variables(vec!["time_zone".into(), "plug.name".into()]);
        assert_eq!(names.text(), "SELECT @@session.`time_zone`, @@session.`plug`.`name` LIMIT 1");
    }
}
