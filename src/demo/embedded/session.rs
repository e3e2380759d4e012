//! One session of the embedded server: what it has set, and which statement goes where.

use std::collections::HashMap;

use opensrv_mysql::ErrorKind;

use super::answer::{Answer, Value};
use super::collations;
use super::select;
use super::tokens::{Kind, Token, tokens};
use super::variables;

/// The only schema there is.
pub(crate) const SCHEMA: &str = "demo";

/// What the server can do, for those who ask for more.
const LIMITS: &str = "the demo's embedded server reads its table `items` and knows little more than SELECT, SET and SHOW; \
    run the demo with --backend HOST:PORT, or with mariadbd or mysqld on the PATH, for a real server";

/// What a session has set.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u32,
    pub(super) schema: Option<String>,
    /// By name, in lower case; a user variable's with its `@`.
    set: HashMap<String, Value>,
}

impl Session {
    pub(super) fn new(id: u32) -> Self {
        Self { id, schema: None, set: HashMap::new() }
    }

    /// Answers a statement.
    pub(super) fn answer(&mut self, sql: &str) -> Answer {
        let Some(tokens) = tokens(sql) else {
            return Answer::Refused(ErrorKind::ER_PARSE_ERROR, "a string or a comment does not end".into());
        };
        let Some(first) = tokens.first() else { return Answer::Done };
        let Kind::Word(word) = first.kind else { return refuse() };
        match word.to_ascii_uppercase().as_str() {
            "SELECT" if tokens.iter().any(|token| token.is("CURRENT_ROLE")) => no_role(),
            "SELECT" => collations::select(&tokens).unwrap_or_else(|| select::select(sql, &tokens, self)),
            "SHOW" => show(&tokens),
            "SET" => self.set(&tokens),
            "USE" => tokens.get(1).map_or_else(refuse, |name| match name.kind {
                Kind::Word(name) => self.enter(name),
                _ => refuse(),
            }),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "DO" => Answer::Done,
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "CREATE" | "DROP" | "ALTER" | "TRUNCATE" => {
                Answer::Refused(ErrorKind::ER_OPTION_PREVENTS_STATEMENT, LIMITS.into())
            }
            _ => refuse(),
        }
    }

    /// Makes `name` the default schema.
    pub(super) fn enter(&mut self, name: &str) -> Answer {
        if !name.eq_ignore_ascii_case(SCHEMA) {
            return Answer::Refused(ErrorKind::ER_BAD_DB_ERROR, format!("Unknown database '{name}'"));
        }
        self.schema = Some(SCHEMA.into());
        Answer::Done
    }

    /// The value of `@@name`.
    pub(super) fn system(&self, name: &str) -> Option<Value> {
        let set = self.set.get(&name.to_ascii_lowercase()).cloned();
        variables::initial(name).map(|initial| set.unwrap_or(initial))
    }

    /// The value of `@name`.
    pub(super) fn user(&self, name: &str) -> Value {
        self.set.get(&format!("@{}", name.to_ascii_lowercase())).cloned().unwrap_or(Value::Null)
    }

    /// Remembers what is set to a plain value; everything else (NAMES, TRANSACTION, expressions) is taken as done.
    fn set(&mut self, tokens: &[Token<'_>]) -> Answer {
        for assignment in tokens.split(|token| token.kind == Kind::Sign(',')) {
            let Some(equals) = assignment.iter().position(|token| token.kind == Kind::Sign('=')) else { continue };
            let (left, right) = assignment.split_at(equals);
            let name = match left.iter().rev().find(|token| token.kind != Kind::Sign(':')).map(|token| &token.kind) {
                Some(Kind::Word(name) | Kind::System(name)) => name.to_ascii_lowercase(),
                Some(Kind::User(name)) => format!("@{}", name.to_ascii_lowercase()),
                _ => return refuse(),
            };
            let value = match right {
                [_, only] => literal(only),
                _ => None,
            };
            if let Some(value) = value {
                self.set.insert(name, value);
            }
        }
        Answer::Done
    }
}

/// The value of a literal.
pub(super) fn literal(token: &Token<'_>) -> Option<Value> {
    match &token.kind {
        Kind::Number(digits) => digits.parse().ok().map(Value::Int),
        Kind::Text(text) => Some(Value::Text(text.clone().into_owned())),
        Kind::Word(_) if token.is("NULL") => Some(Value::Null),
        Kind::Word(_) if token.is("ON") || token.is("TRUE") => Some(Value::Int(1)),
        Kind::Word(_) if token.is("OFF") || token.is("FALSE") => Some(Value::Int(0)),
        _ => None,
    }
}

/// Nobody has a role here.
fn no_role() -> Answer {
    Answer::Rows { columns: vec![Value::Null.column("CURRENT_ROLE()", "")], rows: vec![vec![Value::Null]] }
}

/// The answer to what the server does not know.
pub(super) fn refuse() -> Answer {
    Answer::Refused(ErrorKind::ER_NOT_SUPPORTED_YET, LIMITS.into())
}

fn show(tokens: &[Token<'_>]) -> Answer {
    let mut rest = tokens.get(1..).unwrap_or_default();
    while let [scope, tail @ ..] = rest {
        if !(scope.is("SESSION") || scope.is("GLOBAL")) {
            break;
        }
        rest = tail;
    }
    let column = |name: &str| Value::Fixed("").column(name, "");
    match rest {
        [what] if what.is("DATABASES") || what.is("SCHEMAS") => {
            Answer::Rows { columns: vec![column("Database")], rows: vec![vec![Value::Fixed(SCHEMA)]] }
        }
        [what, ..] if what.is("TABLES") => {
            let name = format!("Tables_in_{SCHEMA}");
            Answer::Rows { columns: vec![column(&name)], rows: vec![vec![Value::Fixed(select::TABLE)]] }
        }
        [what, like @ ..] if what.is("VARIABLES") => {
            let pattern = match like {
                [word, Token { kind: Kind::Text(pattern), .. }] if word.is("LIKE") => pattern.as_ref(),
                [] => "%",
                _ => return refuse(),
            };
            let rows = variables::like(pattern).map(|(name, value)| vec![Value::Fixed(name), value]).collect();
            // The column is text, so numbers go out as text.
            let rows = text_rows(rows);
            Answer::Rows { columns: vec![column("Variable_name"), column("Value")], rows }
        }
        [what, ..] if what.is("STATUS") => {
            Answer::Rows { columns: vec![column("Variable_name"), column("Value")], rows: Vec::new() }
        }
        [what, ..] if what.is("WARNINGS") => {
            let columns = vec![column("Level"), Value::Int(0).column("Code", ""), column("Message")];
            Answer::Rows { columns, rows: Vec::new() }
        }
        _ => refuse(),
    }
}

fn text_rows(rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let text = |value| match value {
        Value::Int(number) => Value::Text(number.to_string()),
        other => other,
    };
    rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_value(session: &mut Session, sql: &str) -> Value {
        match session.answer(sql) {
            Answer::Rows { mut rows, .. } => rows.remove(0).remove(0),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn what_is_set_is_remembered() {
        let mut session = Session::new(1);
        let script = "SET @a = 5, @@session.autocommit=0, sql_mode='ANSI'|SET NAMES utf8mb4|SET @b := 'x'|BEGIN";
        for sql in script.split('|') {
            assert!(matches!(session.answer(sql), Answer::Done), "{sql}");
        }
        assert_eq!(only_value(&mut session, "SELECT @A"), Value::Int(5));
        assert_eq!(only_value(&mut session, "SELECT @b"), Value::Text("x".into()));
        assert_eq!(only_value(&mut session, "SELECT @never"), Value::Null);
        assert_eq!(only_value(&mut session, "SELECT @@autocommit"), Value::Int(0));
        assert_eq!(only_value(&mut session, "select @@SESSION.sql_mode"), Value::Text("ANSI".into()));
        assert_eq!(only_value(&mut Session::new(2), "SELECT @@autocommit"), Value::Int(1));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (sql, kind) in [
            ("INSERT INTO items VALUES (1)", ErrorKind::ER_OPTION_PREVENTS_STATEMENT),
            ("USE mysql", ErrorKind::ER_BAD_DB_ERROR),
            ("USE 5", ErrorKind::ER_NOT_SUPPORTED_YET),
            ("EXPLAIN SELECT 1", ErrorKind::ER_NOT_SUPPORTED_YET),
            ("5", ErrorKind::ER_NOT_SUPPORTED_YET),
            ("SELECT @@nothing", ErrorKind::ER_UNKNOWN_SYSTEM_VARIABLE),
            ("SELECT 'x", ErrorKind::ER_PARSE_ERROR),
        ] {
            let answer = Session::new(1).answer(sql);
            assert!(matches!(&answer, Answer::Refused(found, _) if *found == kind), "{sql}: {answer:?}");
        }
    }

    #[test]
    fn shows() {
        let mut session = Session::new(1);
        assert_eq!(only_value(&mut session, "SHOW DATABASES;"), Value::Fixed("demo"));
        assert_eq!(only_value(&mut session, "show tables from demo"), Value::Fixed("items"));
        assert_eq!(only_value(&mut session, "SHOW SESSION VARIABLES LIKE 'wait%'"), Value::Fixed("wait_timeout"));
        assert!(matches!(session.answer("SHOW WARNINGS"), Answer::Rows { rows, .. } if rows.is_empty()));
    }
}
