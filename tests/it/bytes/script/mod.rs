//! What is run: statements from text files of one statement a line, and commands.

mod binary;
mod commands;
mod text;

use std::fmt;

use myriad::protocol::command::Command;

/// One command, and what of its reply is compared.
#[derive(Clone, Debug)]
pub(in crate::bytes) struct Step {
    pub(in crate::bytes) act: Act,
    /// The rows tell of the moment and are not compared.
    pub(in crate::bytes) shape: bool,
    /// The result is larger than the relay's buffer.
    pub(in crate::bytes) large: bool,
    /// It reads the server's dictionary, by an index or not as the server sees fit just now.
    pub(in crate::bytes) dictionary: bool,
}

/// What to send.
#[derive(Clone, Debug)]
pub(in crate::bytes) enum Act {
    /// A command and its argument.
    Command(Command, Vec<u8>),
    /// A statement that asks for a file, and the file.
    Local(&'static str, Vec<u8>),
    /// COM_STMT_PREPARE; the statement is called like this from here on.
    Prepare(&'static str, &'static str),
    /// A command about a prepared statement, and what follows its id.
    Statement(Command, &'static str, Vec<u8>),
}

/// A COM_QUERY.
pub(in crate::bytes) fn query(sql: impl AsRef<[u8]>) -> Step {
    command(Command::Query, sql)
}

/// COM_RESET_CONNECTION
pub(in crate::bytes) fn reset() -> Step {
    command(Command::ResetConnection, "")
}

fn command(command: Command, argument: impl AsRef<[u8]>) -> Step {
    let argument = argument.as_ref();
    let text = String::from_utf8_lossy(argument);
    let dictionary = text.starts_with("SHOW") || text.starts_with("DESC") || text.contains("information_schema");
    Step { dictionary, ..Act::Command(command, argument.to_vec()).into() }
}

impl From<Act> for Step {
    fn from(act: Act) -> Self {
        Self { act, shape: false, large: false, dictionary: false }
    }
}

impl Step {
    fn shape(self) -> Self {
        Self { shape: true, ..self }
    }

    fn large(self) -> Self {
        Self { large: true, ..self }
    }
}

/// The whole script, for a connection in this schema.
pub(in crate::bytes) fn all(schema: &str) -> Vec<Step> {
    [text::steps(schema), binary::steps(), commands::steps(schema)].concat()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(150)]).into_owned();
        match &self.act {
            Act::Command(Command::Query, sql) => write!(f, "{}", shown(sql)),
            Act::Command(command, argument) => write!(f, "{} {}", command.name(), argument.escape_ascii()),
            Act::Local(sql, file) => write!(f, "{sql} -- with {} bytes", file.len()),
            Act::Prepare(name, sql) => write!(f, "COM_STMT_PREPARE {name}: {sql}"),
            Act::Statement(command, name, rest) => write!(f, "{} {name} {}", command.name(), rest.escape_ascii()),
        }
    }
}
