//! Commands about prepared statements other than preparing and executing: long data, fetch, reset, close. Answered here
//! unless a backend's statement is held for the client's.

use std::io;
use std::ops::ControlFlow;

use bytes::BytesMut;

use super::execute::Serving;
use super::lend;
use super::packets;
use super::reply::{self, Fault};
use super::serve::{Client, goodbye_of};
use super::turn::{Next, Task};
use crate::backend::{Prefix, Wanted};
use crate::metrics::{CloseReason, Goodbye};
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::protocol::frame::{HEADER, Header};
use crate::relay::Traffic;
use crate::sql::Effects;

impl Client {
    /// The statement that the command at the buffer's front is about, if the client has it; else what to do next.
    pub(super) async fn known_statement(&mut self, command: Command) -> Result<u32, Next> {
        let Some(id) = self.argument_id() else { return Err(self.unknown_command_argument().await) };
        match self.session.statement_id(id) {
            Some(known) => Ok(known),
            None => Err(self.refuse_here(&self.unknown_statement(command, id)).await),
        }
    }

    /// The command is too short to name a statement.
    pub(super) async fn unknown_command_argument(&mut self) -> Next {
        let mariadb = self.session.options().mariadb;
        self.refuse_here(&Fault::Malformed { mariadb }).await
    }

    fn unknown_statement(&self, command: Command, id: u32) -> Fault {
        let asker = match command {
            _ if !self.session.options().mariadb => "mysql_stmt_precheck",
            Command::StmtFetch => "mysqld_stmt_fetch",
            Command::StmtReset => "mysqld_stmt_reset",
            _ => "mysqld_stmt_execute",
        };
        Fault::UnknownStatement { id, asker }
    }

    /// COM_STMT_BULK_EXECUTE: nobody was told that it could be used.
    pub(super) fn no_bulk_execute(&self) -> Fault {
        if self.session.options().mariadb { Fault::NoBulkExecute } else { Fault::UnknownCommand }
    }

    /// Answers the command at the buffer's front, however large it is, with an error of the server's words.
    pub(super) async fn refuse_here(&mut self, fault: &Fault) -> Next {
        if self.session.misses_list()
            && let Err(next) = Box::pin(self.save_last()).await
        {
            return next;
        }
        let seq = match self.skip_command().await {
            Ok(seq) => seq,
            Err(next) => return next,
        };
        self.door.metrics.session.local_answers.inc();
        let (code, state) = fault.code();
        self.session.observe_refused(code, state, &fault.to_string());
        self.door.metrics.relay.error(code);
        let mut out = BytesMut::new();
        fault.write(&mut out, seq.wrapping_add(1));
        self.send(&mut out).await
    }

    /// Saves what the backend alone knows of the last statement.
    pub(super) async fn save_last(&mut self) -> Result<(), Next> {
        // It may have been taken over already, and what it knew saved.
        let (mut lease, _) = self.restored(Command::StmtReset, None).await?;
        if !self.session.misses_list() && !self.session.misses_found_rows() {
            if self.is_pinned() {
                self.lease = Some(lease);
            } else {
                lend::give_back(lease, 0);
            }
            return Ok(());
        }
        if !self.pay(&mut lease).await {
            return Err(self.lost(lease).await);
        }
        let _ = self.session.moved();
        match self.let_go(lease, ControlFlow::Continue(())).await {
            ControlFlow::Continue(()) => Ok(()),
            gone => Err(gone),
        }
    }

    /// COM_STMT_SEND_LONG_DATA
    pub(super) async fn long_data(&mut self) -> Next {
        let id = self.argument_id().and_then(|id| self.session.statement_id(id));
        let statement = id.and_then(|id| self.session.statement(id)).filter(|statement| !statement.lost_data).cloned();
        let (Some(id), Some(statement)) = (id, statement) else {
            // Nobody waits for an answer.
            return self.skip_command().await.map_or_else(|next| next, |_| ControlFlow::Continue(()));
        };
        let no_text = Effects::default();
        let (mut lease, mut prefix) = match self.restored(Command::StmtSendLongData, Some(&no_text)).await {
            Ok(ready) => ready,
            // It was told why, where it does not expect an answer: nothing that follows would be understood.
            Err(ControlFlow::Continue(())) => return ControlFlow::Break(Goodbye::Limit),
            Err(gone) => return gone,
        };
        let wanted = Wanted::new(&statement, false);
        let there = match statement.held.or_else(|| Some(lease.prepared.find(&wanted)?.0)) {
            Some(there) => there,
            None => {
                let mut traffic = Traffic::default();
                let paid = Box::pin(self.part_from_last(&mut lease, None)).await;
                if !paid {
                    return self.lost(lease).await;
                }
                let asked = Box::pin(self.prepare_again(&mut lease, &mut prefix, &wanted, &mut traffic)).await;
                match asked {
                    Ok(there) => there,
                    Err(error) => return Box::pin(self.undelivered(lease, id, error)).await,
                }
            }
        };
        if statement.held.is_none() {
            lease.prepared.hold(there, &wanted);
        }
        self.put_statement_id(there);
        self.run_about(lease, prefix, Command::StmtSendLongData, Serving { id, there, wanted, decided: false }).await
    }

    async fn run_about(&mut self, lease: Lease<Server>, prefix: Prefix, command: Command, serving: Serving) -> Next {
        let mut task = Task::new(command, Some(Effects::default()));
        (task.prefix, task.statement) = (prefix, Some(serving));
        self.run(lease, &mut task).await
    }

    /// The backend's statement that this one holds, and the backend.
    fn held(&mut self, id: u32) -> Option<(Lease<Server>, Serving)> {
        let statement = self.session.statement(id)?;
        let (there, wanted) = (statement.held?, Wanted::new(statement, false));
        Some((self.lease.take()?, Serving { id, there, wanted, decided: false }))
    }

    /// COM_STMT_FETCH
    pub(super) async fn fetch(&mut self) -> Next {
        let named = self.argument_id().unwrap_or_default();
        let id = match self.known_statement(Command::StmtFetch).await {
            Ok(id) => id,
            Err(next) => return next,
        };
        let has_cursor = self.session.statement(id).is_some_and(|statement| statement.cursor);
        match if has_cursor { self.held(id) } else { None } {
            Some((lease, serving)) => {
                let lease = match self.resumed(lease).await {
                    Ok(lease) => lease,
                    Err(next) => return next,
                };
                self.put_statement_id(serving.there);
                self.run_about(lease, Prefix::default(), Command::StmtFetch, serving).await
            }
            None => {
                let mariadb = self.session.options().mariadb;
                self.refuse_here(&Fault::NoCursor { id: named, mariadb }).await
            }
        }
    }

    /// COM_STMT_RESET
    pub(super) async fn reset_statement(&mut self) -> Next {
        let id = match self.known_statement(Command::StmtReset).await {
            Ok(id) => id,
            Err(next) => return next,
        };
        self.session.change_statement(id, |statement| statement.lost_data = false);
        if let Some((lease, serving)) = self.held(id) {
            self.put_statement_id(serving.there);
            return self.run_about(lease, Prefix::default(), Command::StmtReset, serving).await;
        }
        if let Err(next) = self.skip_command().await {
            return next;
        }
        self.door.metrics.session.local_answers.inc();
        self.session.observe_reset_statement();
        let mut out = BytesMut::new();
        reply::ok(&mut out, 1, self.status, 0, self.tracks());
        self.send(&mut out).await
    }

    /// COM_STMT_CLOSE
    pub(super) async fn close_statement(&mut self) -> Next {
        let Some(id) = self.argument_id() else {
            let mariadb = self.session.options().mariadb;
            if !mariadb {
                return self.refuse_here(&Fault::Malformed { mariadb }).await;
            }
            self.consume_command();
            return ControlFlow::Continue(());
        };
        if let Err(next) = self.skip_command().await {
            return next;
        }
        let closed = self.session.statement_id(id).and_then(|id| self.session.close_statement(id));
        self.show_statements();
        let Some(there) = closed.and_then(|closed| closed.held) else { return ControlFlow::Continue(()) };
        match self.lease.take() {
            Some(lease) => Box::pin(self.close_there(lease, there)).await,
            None => ControlFlow::Continue(()),
        }
    }

    /// Closes a backend's statement that was held for a client's, and lets go if nothing else pins.
    async fn close_there(&mut self, mut lease: Lease<Server>, there: u32) -> Next {
        lease.prepared.close_held(there);
        let mut bytes = lease.prepared.closes();
        if packets::write(&mut lease.stream, &mut bytes).await.is_err() {
            return self.lost(lease).await;
        }
        self.let_go(lease, ControlFlow::Continue(())).await
    }

    /// The backend was lost between two commands of a turn.
    pub(super) async fn lost(&mut self, lease: Lease<Server>) -> Next {
        lease.discard(CloseReason::Lost);
        let fault = Fault::BackendLost { reason: "the server closed the connection".into() };
        ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await)
    }

    /// Reads on until the command at the buffer's front is there as a whole, or the first `n` bytes behind its code are.
    /// More than that stays where it is.
    pub(super) async fn read_front(&mut self, n: usize) -> Result<(), Next> {
        let Some(header) = Header::parse(self.buffer.data()) else { return Ok(()) };
        let wanted = HEADER + header.len.min(1 + n);
        if self.buffer.len() < wanted {
            self.buffer.reserve(wanted);
        }
        while self.buffer.len() < wanted {
            self.read_on().await?;
        }
        Ok(())
    }

    /// Drops the command at the buffer's front, however large it is; the number of its last frame.
    pub(super) async fn skip_command(&mut self) -> Result<u8, Next> {
        loop {
            let Some(header) = Header::parse(self.buffer.data()) else {
                self.read_on().await?;
                continue;
            };
            self.buffer.consume(HEADER);
            let mut left = header.len;
            loop {
                let n = left.min(self.buffer.len());
                self.buffer.consume(n);
                left -= n;
                if left == 0 {
                    break;
                }
                self.read_on().await?;
            }
            if !header.is_full() {
                return Ok(header.seq);
            }
        }
    }

    /// Reads more of a command from the client, who may be silent for `limits.stall_timeout`.
    async fn read_on(&mut self) -> Result<(), Next> {
        let reading = self.buffer.fill(&mut self.stream);
        let read = tokio::time::timeout(self.door.settings.stall_timeout, reading).await;
        match read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(0) => Err(ControlFlow::Break(Goodbye::Closed)),
            Ok(n) => {
                self.count_from_client(n);
                Ok(())
            }
            Err(error) => Err(ControlFlow::Break(goodbye_of(&error))),
        }
    }
}
