//! Logging in again on the same connection: the one way out of a schema that does not lead into another.

use bytes::BytesMut;

use super::connector::{flush, login_error, login_spec, query_error, read_packet};
use super::{Account, Backend, OpenError};
use crate::metrics::OpenResult;
use crate::protocol::handshake::{ClientSide, ClientStep, TlsWish};
use crate::session::{Interner, StateSpec};

impl Backend {
    /// Makes the connection as good as new and without a default schema: COM_CHANGE_USER to the account it has.
    ///
    /// As measured on MariaDB 10.11 and MySQL 9.7, the connection keeps its number, CLIENT_FOUND_ROWS and its kin, and
    /// what COM_SET_OPTION said of several statements in one text. [`Connector::change_user`](super::Connector::change_user)
    /// does this within a time limit.
    ///
    /// # Errors
    /// If the server refuses or is lost. The connection is then of no further use.
    pub async fn change_user(&mut self, account: &Account, interner: &Interner) -> Result<(), OpenError> {
        debug_assert!(self.buffer.is_empty(), "a reply left over from another turn");
        let (mut payload, mut out) = (Vec::new(), BytesMut::new());
        let spec = login_spec(account, self.capabilities, TlsWish::Off);
        let conversation = ClientSide::change_user(spec, self.capabilities, self.stream.is_tls(), &mut out);
        let mut conversation = conversation.map_err(login_error)?;
        loop {
            flush(&mut self.stream, &mut out).await?;
            let seq = read_packet(&mut self.stream, &mut payload).await?;
            match conversation.receive(seq, &payload, &mut out).map_err(login_error)? {
                ClientStep::Read => {}
                ClientStep::Done => break,
                ClientStep::StartTls => {
                    return Err(OpenError::ours(OpenResult::Protocol, "TLS in the middle of a login"));
                }
            }
        }
        self.revive(interner).await.map_err(query_error)?;
        self.role.logged_in(account);
        if self.is_misfit() {
            return Err(OpenError::ours(OpenResult::Protocol, "the account has another role by default now"));
        }
        let spec = StateSpec { schema: None, ..self.state.state.spec().clone() };
        self.state.state = interner.intern(spec);
        Ok(())
    }
}
