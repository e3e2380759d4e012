//! What is played: steps, each of one client, as values that can be printed, dropped and played again.

use std::fmt;

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::Login;

/// How many prepared statements a client tells apart.
pub(super) const SLOTS: usize = 4;

/// The names of one world; those of the other are as long.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// `{s}`: where everything is.
    pub(super) schema: String,
    /// `{o}`: where other tables of the same names are.
    pub(super) other: String,
}

impl Names {
    /// A text in which the names of this world stand for `{s}` and `{o}`.
    pub(super) fn fill(&self, text: &[u8]) -> Vec<u8> {
        if memchr::memmem::find(text, b"{").is_none() {
            return text.to_vec();
        }
        let filled = replace(text, b"{s}", self.schema.as_bytes());
        replace(&filled, b"{o}", self.other.as_bytes())
    }
}

/// Every `from` replaced.
pub(super) fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = 0;
    for at in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(&text[rest..at]);
        out.extend_from_slice(to);
        rest = at + from.len();
    }
    out.extend_from_slice(&text[rest..]);
    out
}

/// How a client logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) user: &'static str,
    pub(super) password: &'static str,
    /// `{s}`, `{o}` or none.
    pub(super) schema: Option<&'static str>,
    pub(super) collation: u8,
    pub(super) more: CapabilityFlags,
    pub(super) less: CapabilityFlags,
}

impl Profile {
    pub(super) fn login(&self, names: &Names) -> Login {
        let usual = Login::app();
        Login {
            user: self.user,
            password: self.password,
            schema: self.schema.map(|schema| String::from_utf8(names.fill(schema.as_bytes())).expect("a name")),
            collation: self.collation,
            capabilities: (usual.capabilities | self.more) - self.less,
            ..usual
        }
    }
}

/// What one client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A command and its argument, in which `{s}` and `{o}` stand for names.
    Command(Command, Vec<u8>),
    /// A statement that asks for a file, and the file.
    Local(String, Vec<u8>),
    /// COM_STMT_PREPARE; the statement has this number from here on.
    Prepare(usize, String),
    /// A command about a prepared statement, and what follows its id.
    Statement(Command, usize, Vec<u8>),
    /// COM_CHANGE_USER
    ChangeUser(Profile),
    /// Hangs up (politely: with COM_QUIT), and comes again.
    Reconnect(Profile, bool),
}

/// One client's act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) client: usize,
    pub(super) act: Act,
}

/// Who plays, and what.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) profiles: Vec<Profile>,
    pub(super) steps: Vec<Step>,
}

impl Act {
    /// COM_QUERY
    pub(super) fn query(sql: impl AsRef<[u8]>) -> Self {
        Self::Command(Command::Query, sql.as_ref().to_vec())
    }

    /// COM_RESET_CONNECTION
    pub(super) fn reset() -> Self {
        Self::Command(Command::ResetConnection, Vec::new())
    }

    /// Whether nothing comes back.
    pub(super) fn is_silent(&self) -> bool {
        let command = match self {
            Self::Command(command, _) | Self::Statement(command, ..) => command,
            _ => return false,
        };
        matches!(command, Command::StmtClose | Command::StmtSendLongData)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.escape_ascii().to_string(),
        };
        match self {
            Self::Command(Command::Query, sql) => write!(f, "{}", shown(sql)),
            Self::Command(command, argument) => write!(f, "{} {}", command.name(), argument.escape_ascii()),
            Self::Local(sql, file) => write!(f, "{sql} -- with {} bytes", file.len()),
            Self::Prepare(slot, sql) => write!(f, "COM_STMT_PREPARE #{slot}: {sql}"),
            Self::Statement(command, slot, rest) => write!(f, "{} #{slot} {}", command.name(), rest.escape_ascii()),
            Self::ChangeUser(profile) => write!(f, "COM_CHANGE_USER {profile}"),
            Self::Reconnect(profile, true) => write!(f, "COM_QUIT, and in again: {profile}"),
            Self::Reconnect(profile, false) => write!(f, "gone without a word, and in again: {profile}"),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, schema, collation, more, less, .. } = self;
        write!(f, "{user}, schema {}, collation {collation}", schema.unwrap_or("none"))?;
        for (word, flags) in [("with", more), ("without", less)] {
            if !flags.is_empty() {
                write!(f, ", {word} {flags:?}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {:2}: {}", self.client, self.act)
    }
}
