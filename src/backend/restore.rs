//! Carrying out what a session needs done to a backend.

use bytes::BytesMut;

use super::{Backend, QueryError, Served};
use crate::protocol::command::Command;
use crate::protocol::frame::{HEADER, Header};
use crate::session::{BackendState, Interner, Restore, StateSpec};

/// Packets to go out in front of a client's command, and how many answers they will get.
#[derive(Debug, Default)]
pub struct Prefix {
    /// Whole packets.
    pub bytes: BytesMut,
    /// How many there are.
    pub replies: usize,
}

impl Prefix {
    /// All of a restore, to go out to this backend with the client's command in one write. Only for what is certain to
    /// succeed.
    #[must_use]
    pub fn of(restore: &Restore, backend: &Backend) -> Self {
        let mut prefix = Self::default();
        for payload in restore.commands() {
            if let Some((code, argument)) = payload.split_first() {
                backend.append(&mut prefix.bytes, Command::from_byte(*code), argument);
                prefix.replies += 1;
            }
        }
        prefix
    }

    /// One more statement, behind the others.
    pub fn append(&mut self, sql: &str, backend: &Backend) {
        backend.append(&mut self.bytes, Command::Query, sql.as_bytes());
        self.replies += 1;
    }

    /// One statement that is certain to succeed.
    #[must_use]
    pub fn statement(sql: &str, backend: &Backend) -> Self {
        let mut prefix = Self { bytes: BytesMut::new(), replies: 1 };
        backend.append(&mut prefix.bytes, Command::Query, sql.as_bytes());
        prefix
    }
}

impl Backend {
    /// Carries a restore out and waits for every answer.
    ///
    /// # Errors
    /// As [`Backend::query`]. After `Refused` the backend is in neither state and must be closed.
    pub async fn restore(&mut self, restore: &Restore) -> Result<(), QueryError> {
        for payload in restore.commands() {
            if let Some((code, argument)) = payload.split_first() {
                self.command(Command::from_byte(*code), argument).await?;
            }
        }
        Ok(())
    }

    /// Sends a prefix ahead of what needs it, and waits for every answer.
    ///
    /// # Errors
    /// As [`Backend::query`]; a refusal means that the backend is in no known state.
    pub async fn prepare_way(&mut self, prefix: &Prefix) -> Result<(), QueryError> {
        let mut rest = prefix.bytes.as_ref();
        while let Some(header) = Header::parse(rest) {
            let payload = rest.get(HEADER..HEADER + header.len).unwrap_or_default();
            rest = rest.get(HEADER + header.len..).unwrap_or_default();
            if let Some((code, argument)) = payload.split_first() {
                let command = Command::from_byte(*code);
                let argument = argument.strip_prefix(self.attributes(command)).unwrap_or(argument);
                self.command(command, argument).await?;
            }
        }
        Ok(())
    }

    /// Makes the connection as good as new: COM_RESET_CONNECTION, our trackers, and a look at what it has now.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn reset(&mut self, interner: &Interner) -> Result<(), QueryError> {
        self.command(Command::ResetConnection, b"").await?;
        self.enter_again(interner).await?;
        self.revive(interner).await
    }

    /// A reset leaves the connection in its schema, but without that schema's character set.
    async fn enter_again(&mut self, interner: &Interner) -> Result<(), QueryError> {
        let Some(schema) = self.state.state.schema().map(<[u8]>::to_vec) else { return Ok(()) };
        if !schema.is_ascii() {
            self.query("SET NAMES utf8mb4").await?;
        }
        match self.command(Command::InitDb, &schema).await {
            // It is gone: whoever comes next chooses one, or none.
            Err(QueryError::Refused { .. }) => {
                let gone = |spec: &mut StateSpec| spec.schema = Some(Box::default());
                self.state.state = interner.changed(&self.state.state, gone);
                Ok(())
            }
            entered => entered.map(drop),
        }
    }

    /// After the server has reset its session: what every connection of ours needs, and a look at what it has now.
    pub(super) async fn revive(&mut self, interner: &Interner) -> Result<(), QueryError> {
        let initial = self.begin().await?;
        self.forget(interner, initial);
        Ok(())
    }

    /// The server's session was reset: it has this, the schema it had, and nothing else.
    fn forget(&mut self, interner: &Interner, initial: StateSpec) {
        let schema = self.state.state.spec().schema.clone();
        let state = interner.intern(StateSpec { schema, ..initial });
        self.state = BackendState::fresh(state, self.state.multi_statements);
        self.loan = None;
        self.served = Served::Nobody;
        self.erased.clear();
        self.prepared.clear();
        self.names.clear();
    }
}
