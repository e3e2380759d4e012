//! Which command is answered here, and which needs a backend.

use std::ops::ControlFlow;

use bytes::BytesMut;

use super::packets;
use super::reply::{self, Fault};
use super::serve::Client;
use super::turn::{Next, Task};
use crate::metrics::Goodbye;
use crate::protocol::command::{Command, ReplyKind};
use crate::protocol::packet::attributes;
use crate::sql::{self, Effects, Flags};

/// Attributes of a text that are longer than this are refused, in bytes.
const MAX_ATTRIBUTES: usize = 64 << 10;

impl Client {
    /// Does what the command at the buffer's front asks for.
    pub(super) async fn dispatch(&mut self, command: Command) -> Next {
        match command {
            Command::Quit => ControlFlow::Break(Goodbye::Quit),
            Command::Ping => self.ping().await,
            Command::ChangeUser => Box::pin(self.change_user()).await,
            Command::ResetConnection => self.reset().await,
            Command::ProcessKill => self.process_kill().await,
            Command::Query => self.query().await,
            Command::StmtPrepare => Box::pin(self.prepare()).await,
            Command::StmtExecute => self.execute(command).await,
            Command::StmtSendLongData => Box::pin(self.long_data()).await,
            Command::StmtFetch => Box::pin(self.fetch()).await,
            Command::StmtReset => Box::pin(self.reset_statement()).await,
            Command::StmtClose => self.close_statement().await,
            Command::StmtBulkExecute => self.bulk_execute().await,
            Command::Unknown(_)
            | Command::Sleep
            | Command::Connect
            | Command::Time
            | Command::DelayedInsert
            | Command::ConnectOut
            | Command::Daemon => self.refuse_here(&Fault::UnknownCommand).await,
            _ if command.reply() == ReplyKind::Stream => {
                self.answer_fault(&Fault::Unsupported { command: command.name() }).await
            }
            _ => self.turn(command, Some(&Effects::default())).await,
        }
    }

    /// A text: read before it is sent if it is all there, else as it goes.
    async fn query(&mut self) -> Next {
        if self.speaks_attributes() {
            match self.find_text().await {
                Ok(()) => {}
                Err(next) => return next,
            }
        }
        if !self.is_whole() {
            return self.turn(Command::Query, None).await;
        }
        let effects = sql::effects(self.text(), self.session.mode());
        if let Some(kill) = effects.kill {
            return Box::pin(self.kill(kill, effects)).await;
        }
        if effects.may(Flags::PREPARE | Flags::EXECUTE | Flags::DEALLOCATE) {
            return Box::pin(self.text_about_named(effects)).await;
        }
        if let Some(shown) = self.shown(&effects) {
            return Box::pin(self.echo(shown, effects)).await;
        }
        self.turn_of(Task::new(Command::Query, Some(effects))).await
    }

    /// Finds out where the text begins behind its attributes.
    async fn find_text(&mut self) -> Result<(), Next> {
        let mut found = attributes::len(self.argument());
        if found.is_none() && !self.is_whole() {
            self.read_front(MAX_ATTRIBUTES).await?;
            found = attributes::len(self.argument());
        }
        match found.and_then(|len| u32::try_from(len).ok()) {
            Some(len) => {
                self.text_at = len;
                Ok(())
            }
            None => Err(self.refuse_here(&Fault::Malformed { mariadb: false }).await),
        }
    }

    async fn ping(&mut self) -> Next {
        self.door.metrics.session.local_answers.inc();
        self.consume_command();
        self.session.pinged();
        // MySQL counts the warnings of the statement before.
        let warnings = if self.session.options().mariadb { 0 } else { self.session.memory().counted };
        self.answer_ok(warnings).await
    }

    /// Answers the command with a plain OK.
    pub(super) async fn answer_ok(&mut self, warnings: u16) -> Next {
        let mut out = BytesMut::new();
        reply::ok(&mut out, 1, self.status, warnings, self.tracks());
        self.send(&mut out).await
    }

    /// Refuses the command at the buffer's front, and goes on if it can be skipped.
    pub(super) async fn answer_fault(&mut self, fault: &Fault) -> Next {
        if !self.is_whole() {
            return ControlFlow::Break(self.last_words(1, fault, Goodbye::Limit).await);
        }
        self.consume_command();
        self.say(fault).await
    }

    /// An error as the answer to a command that has been dealt with.
    pub(super) async fn say(&mut self, fault: &Fault) -> Next {
        let mut out = BytesMut::new();
        fault.write(&mut out, 1);
        self.door.metrics.relay.error(fault.code().0);
        self.send(&mut out).await
    }

    pub(super) async fn send(&mut self, out: &mut BytesMut) -> Next {
        match packets::write(&mut self.stream, out).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(super::serve::goodbye_of(&error)),
        }
    }
}
