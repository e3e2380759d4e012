//! One of the two worlds in which a script is played: the server itself, or what is in front of it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use myriad::protocol::command::{Command, ReplyKind};
use myriad::protocol::handshake::LoginError;
use myriad::protocol::packet::prepare::PrepareOk;
use tokio::time::timeout;

use super::script::{Act, Names, Profile, SLOTS, Step};
use crate::support::{Packets, Wire};

/// The id of a statement that was never prepared.
const NEVER_PREPARED: u32 = 3_999_999_999;

/// No step takes that long.
const PATIENCE: Duration = Duration::from_secs(8);

/// A server or a proxy, and its clients.
pub(super) struct World {
    pub(super) address: SocketAddr,
    pub(super) names: Names,
    seats: Vec<Option<Seat>>,
}

/// A client's place.
struct Seat {
    wire: Wire,
    statements: [Option<u32>; SLOTS],
}

/// What came back.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Packets, and the id of the statement that they are about.
    Reply(Packets, Option<u32>),
    /// The last packet of a login.
    Welcome(Bytes),
    /// A login was refused.
    Refused(u16, Option<[u8; 5]>, String),
    /// Nothing, as it should be.
    Silence,
    /// The connection is gone.
    Lost,
    /// Nothing came for too long.
    Late,
}

impl World {
    pub(super) fn new(address: SocketAddr, names: Names, clients: usize) -> Self {
        Self { address, names, seats: (0..clients).map(|_| None).collect() }
    }

    /// The server's id of a client's connection, as the greeting said.
    pub(super) fn id(&self, client: usize) -> Option<u32> {
        self.seats[client].as_ref().map(|seat| seat.wire.id)
    }

    pub(super) fn capabilities(&self, client: usize) -> myriad::protocol::capability::CapabilityFlags {
        self.seats[client].as_ref().map(|seat| seat.wire.capabilities).unwrap_or_default()
    }

    /// A client comes in.
    pub(super) async fn enter(&mut self, client: usize, profile: &Profile) -> Outcome {
        let login = profile.login(&self.names);
        match timeout(PATIENCE, Wire::connect(self.address, &login)).await {
            Err(_) => Outcome::Late,
            Ok(Err(error)) => refused(error),
            Ok(Ok(wire)) => {
                let welcome = wire.welcome.1.clone();
                self.seats[client] = Some(Seat { wire, statements: [None; SLOTS] });
                Outcome::Welcome(welcome)
            }
        }
    }

    /// A client leaves; its connection is closed when this returns, though perhaps not yet cleaned up.
    pub(super) async fn leave(&mut self, client: usize, politely: bool) {
        let Some(mut seat) = self.seats[client].take() else { return };
        if politely && seat.wire.try_send(Command::Quit, b"").await.is_ok() {
            let _ = timeout(PATIENCE, seat.wire.read_some()).await;
        }
    }

    /// Plays one step.
    pub(super) async fn play(&mut self, step: &Step) -> Outcome {
        let Step { client, act } = step;
        if let Act::Reconnect(profile, _) = act {
            return self.enter(*client, profile).await;
        }
        let Some(seat) = &mut self.seats[*client] else { return Outcome::Lost };
        let (command, argument, file) = match act {
            Act::Command(command, argument) => (*command, self.names.fill(argument), &b""[..]),
            Act::Local(sql, file) => (Command::Query, self.names.fill(sql.as_bytes()), &file[..]),
            Act::Prepare(_, sql) => (Command::StmtPrepare, self.names.fill(sql.as_bytes()), &b""[..]),
            Act::Statement(command, slot, rest) => {
                let id = seat.statements[*slot].unwrap_or(NEVER_PREPARED);
                (*command, [&id.to_le_bytes()[..], rest].concat(), &b""[..])
            }
            Act::ChangeUser(profile) => {
                let login = profile.login(&self.names);
                return match timeout(PATIENCE, seat.wire.change_user(&login)).await {
                    Err(_) => Outcome::Late,
                    Ok(Err(error)) => refused(error),
                    Ok(Ok(())) => Outcome::Welcome(seat.wire.welcome.1.clone()),
                };
            }
            Act::Reconnect(..) => unreachable!("nobody sits there"),
        };
        if seat.wire.try_send(command, &argument).await.is_err() {
            return Outcome::Lost;
        }
        if command.reply() == ReplyKind::None {
            return Outcome::Silence;
        }
        let reply = match timeout(PATIENCE, seat.wire.reply_with(command, file)).await {
            Err(_) => return Outcome::Late,
            Ok(Err(_)) => return Outcome::Lost,
            Ok(Ok(reply)) => reply,
        };
        let statement = match act {
            Act::Prepare(slot, _) => {
                if let Ok(prepared) = PrepareOk::parse(&reply.raw[0].1) {
                    seat.statements[*slot] = Some(prepared.statement_id);
                }
                seat.statements[*slot]
            }
            Act::Statement(_, slot, _) => seat.statements[*slot],
            _ => None,
        };
        Outcome::Reply(reply, statement)
    }
}

fn refused(error: LoginError) -> Outcome {
    match error {
        LoginError::Server { code, state, message } => Outcome::Refused(code, state, message),
        _ => Outcome::Lost,
    }
}
