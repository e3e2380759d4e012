//! What clients do: single statements, prepared ones, or transactions of several.

use serde::{Deserialize, Serialize};

use super::statement::{Statement, StatementError};

/// What every client does, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// One of these, picked at random; none: the clients stay idle. [`Statement`] has the placeholders.
    Statements(Vec<String>),
    /// The same, prepared once by each client (or connection) and executed; placeholders become parameters.
    Prepared(Vec<String>),
    /// All of these, in this order. An error rolls back, and the next try is another transaction.
    Transaction(Vec<String>),
}

impl Default for Work {
    fn default() -> Self {
        Self::Statements(Vec::new())
    }
}

/// Work with its placeholders found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Any(Vec<Statement>),
    Prepared(Vec<Statement>),
    All(Vec<Statement>),
}

impl Work {
    /// A file of statements, each ending with a semicolon at the end of a line; what follows `--` or `#` at the start of a line
    /// is left out.
    #[must_use]
    pub fn transaction(text: &str) -> Self {
        let is_comment = |line: &&str| line.trim_start().starts_with("--") || line.trim_start().starts_with('#');
        let mut steps = vec![String::new()];
        for line in text.lines().filter(|line| !is_comment(line)) {
            let Some(step) = steps.last_mut() else { break };
            step.push_str(line);
            match step.trim_end().strip_suffix(';').map(str::to_owned) {
                Some(whole) => {
                    *step = whole;
                    steps.push(String::new());
                }
                None => step.push('\n'),
            }
        }
        steps.retain(|step| !step.trim().is_empty());
        Self::Transaction(steps.iter().map(|step| step.trim().to_owned()).collect())
    }

    /// Finds the placeholders.
    pub(super) fn parse(&self) -> Result<Script, StatementError> {
        let all = |texts: &[String]| texts.iter().map(|text| Statement::parse(text)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Self::Statements(texts) => Script::Any(all(texts)?),
            Self::Prepared(texts) => Script::Prepared(all(texts)?),
            Self::Transaction(texts) if texts.is_empty() => return Err(StatementError::Empty),
            Self::Transaction(texts) => Script::All(all(texts)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_statement_a_line_or_several_lines() {
        let text = "-- a transfer\nBEGIN;\n  UPDATE t SET n = n - 1\n  WHERE id = ?10;\n# done\nCOMMIT\n";
        let Work::Transaction(steps) = Work::transaction(text) else { panic!("a transaction") };
        assert_eq!(steps, ["BEGIN", "UPDATE t SET n = n - 1\n  WHERE id = ?10", "COMMIT"]);
        assert_eq!(Work::transaction("-- nothing\n;\n").parse(), Err(StatementError::Empty));
    }

    #[test]
    fn placeholders_are_checked_in_every_kind() {
        for work in [Work::Statements, Work::Prepared, Work::Transaction] {
            assert!(work(vec!["SELECT ?3".into()]).parse().is_ok());
            assert!(work(vec!["SELECT ?0".into()]).parse().is_err());
        }
        assert_eq!(Work::default().parse(), Ok(Script::Any(Vec::new())));
    }
}
