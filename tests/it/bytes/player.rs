//! Plays a script on one connection and keeps what comes back.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use myriad::protocol::command::{Command, ReplyKind};
use myriad::protocol::packet::prepare::PrepareOk;
use tokio::time::timeout;

use super::normal::{Normal, Terms};
use super::script::{Act, Step};
use crate::support::{Kind, Wire};

/// The id of a statement that the server refused to prepare.
const NEVER_PREPARED: u32 = 3_999_999_999;

/// No step takes that long.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came back for one step, in normal form.
#[derive(PartialEq, Eq)]
pub(super) struct Recording {
    pub(super) packets: Vec<(u8, Bytes)>,
}

/// One connection, and the statements prepared on it.
pub(super) struct Player {
    wire: Wire,
    normal: Normal,
    /// The id of each statement by the name that the script gives it.
    statements: HashMap<&'static str, u32>,
}

impl Player {
    pub(super) fn new(wire: Wire, kind: Kind, terms: Terms) -> Self {
        let normal = Normal::new(kind, wire.capabilities, terms);
        Self { wire, normal, statements: HashMap::new() }
    }

    pub(super) async fn play(&mut self, step: &Step) -> Recording {
        let (command, argument, file) = match &step.act {
            Act::Command(command, argument) => (*command, argument.clone(), &b""[..]),
            Act::Local(sql, file) => (Command::Query, sql.as_bytes().to_vec(), &file[..]),
            Act::Prepare(_, sql) => (Command::StmtPrepare, sql.as_bytes().to_vec(), &b""[..]),
            Act::Statement(command, name, rest) => {
                let id = self.statements.get(name).copied().unwrap_or(NEVER_PREPARED);
                (*command, [&id.to_le_bytes()[..], rest].concat(), &b""[..])
            }
        };
        self.wire.send(command, &argument).await;
        if command.reply() == ReplyKind::None {
            return Recording { packets: Vec::new() };
        }
        let reply = timeout(PATIENCE, self.wire.reply_with(command, file)).await;
        let reply = reply.unwrap_or_else(|_| panic!("no answer to {step}"));
        let reply = reply.unwrap_or_else(|error| panic!("the connection was lost at {step}: {error}"));
        if let Act::Prepare(name, _) = step.act {
            match PrepareOk::parse(&reply.raw[0].1) {
                Ok(prepared) => self.statements.insert(name, prepared.statement_id),
                Err(_) => self.statements.remove(name),
            };
        }
        let argument = self.statement_in(step);
        Recording { packets: self.normal.reply(step, argument, &reply) }
    }

    fn statement_in(&self, step: &Step) -> Option<u32> {
        match &step.act {
            Act::Prepare(name, _) | Act::Statement(_, name, _) => self.statements.get(name).copied(),
            _ => None,
        }
    }
}

impl Recording {
    /// Did MySQL fail to put another session's text, which is no text in its character set, into the list of processes?
    pub(super) fn is_of_the_moment(&self) -> bool {
        const CANNOT_CONVERT: u16 = 3854;
        let last = self.packets.last().and_then(|(_, payload)| payload.get(..3));
        last.is_some_and(|it| it[0] == 0xff && u16::from_le_bytes([it[1], it[2]]) == CANNOT_CONVERT)
    }

    /// The packets that are not the same, for people.
    pub(super) fn differs_from(&self, proxied: &Self) -> String {
        let packets = self.packets.len().max(proxied.packets.len());
        let differ = (0..packets).filter(|at| self.packets.get(*at) != proxied.packets.get(*at)).take(3);
        differ.map(|at| format!("    direct: {}\n   proxied: {}\n", self.shown(at), proxied.shown(at))).collect()
    }

    fn shown(&self, at: usize) -> String {
        let Some((seq, payload)) = self.packets.get(at) else { return "no more packets".into() };
        format!("packet {seq} of {} bytes: {}", payload.len(), payload[..payload.len().min(200)].escape_ascii())
    }
}
