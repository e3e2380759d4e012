//! A client whose backend is used by somebody else between any two of its statements, and its private twin.

use std::collections::HashMap;

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::packet::session_track::changes;
use myriad::protocol::response::Class;

use super::{Login, Packets, Setup, Wire};

/// Two clients that do the same: one through the proxy, one at the server itself in a schema of its own. Whatever they
/// are answered must be the same, byte for byte. An intruder uses the proxied one's backend in between, so that nothing
/// is merely still there. To be used with a pool of one.
pub(crate) struct Twin {
    proxied: Wire,
    direct: Wire,
    intruder: Wire,
    schema: String,
    twin_schema: String,
    /// The direct connection's id of each prepared statement, by the proxied one's: MariaDB counts on where an earlier
    /// connection of the same thread ended.
    statements: HashMap<u32, u32>,
}

/// What the intruder does: whatever a statement may leave behind, in other numbers than any test expects.
const INTRUSION: [&str; 3] = [
    "INSERT INTO intruder VALUES (NULL, 1), (NULL, 2), (NULL, 3)",
    "SELECT n, CAST('seventeen' AS SIGNED) FROM intruder LIMIT 3",
    "DO CAST('no number' AS SIGNED)",
];

impl Twin {
    /// Both log in like this, each into its own schema.
    pub(crate) async fn new(t: &Setup, login: &Login) -> Self {
        let twin_schema = t.twin_schema();
        let mut intruder = t.client().await;
        intruder.query(&format!("CREATE DATABASE IF NOT EXISTS {twin_schema}")).await.expect_ok();
        let table =
            "CREATE TABLE IF NOT EXISTS intruder (n INT AUTO_INCREMENT PRIMARY KEY, m INT) AUTO_INCREMENT = 700000";
        intruder.query(table).await.expect_ok();
        let there = |schema: &str| Login { schema: Some(schema.to_owned()), ..login.clone() };
        let proxied = t.client_as(&there(&t.schema)).await;
        let direct = t.direct(&there(&twin_schema)).await;
        let mut twin =
            Self { proxied, direct, intruder, schema: t.schema.clone(), twin_schema, statements: HashMap::new() };
        twin.intrude().await;
        twin
    }

    /// Both run this statement, are answered the same, and then somebody else has the backend.
    pub(crate) async fn query(&mut self, sql: &str) -> Packets {
        let reply = self.query_and_keep(sql).await;
        self.intrude().await;
        reply
    }

    /// Both run this statement and are answered the same; nobody else comes near the backend, for it is pinned.
    pub(crate) async fn query_and_keep(&mut self, sql: &str) -> Packets {
        self.command(Command::Query, sql.as_bytes()).await
    }

    /// Both run these statements one after the other, with somebody else on the backend after each.
    pub(crate) async fn queries(&mut self, all: &[&str]) {
        for sql in all {
            self.query(sql).await;
        }
    }

    /// Both run this command and are answered the same.
    pub(crate) async fn command(&mut self, command: Command, argument: &[u8]) -> Packets {
        let (id, there) = self.named(command, argument);
        let direct = self.direct.command(command, &there).await;
        let proxied = self.proxied.command(command, argument).await;
        let argument = String::from_utf8_lossy(argument);
        if let (Some(one), Some(other)) = (prepared(&proxied), prepared(&direct)) {
            self.statements.insert(one, other);
        }
        let (mut wanted, got) = (self.comparable(&direct), self.comparable(&proxied));
        if let Some((id, there)) = id {
            wanted.iter_mut().for_each(|(_, text)| *text = text.replace(&format!("({there})"), &format!("({id})")));
        }
        for at in 0..wanted.len().max(got.len()) {
            assert_eq!(got.get(at), wanted.get(at), "packet {at} of the answer to {command:?} {argument}");
        }
        proxied
    }

    /// Both choose their own schema by COM_INIT_DB and are answered the same.
    pub(crate) async fn use_own_schema(&mut self) {
        let direct = self.direct.command(Command::InitDb, self.twin_schema.as_bytes()).await;
        let proxied = self.proxied.command(Command::InitDb, self.schema.as_bytes()).await;
        let (got, wanted) = (proxied.ok(), direct.ok());
        assert_eq!((got.warnings, got.status), (wanted.warnings, wanted.status), "COM_INIT_DB");
    }

    /// Both send this command, which is not answered.
    pub(crate) async fn send(&mut self, command: Command, argument: &[u8]) {
        let (_, there) = self.named(command, argument);
        self.direct.send(command, &there).await;
        self.proxied.send(command, argument).await;
    }

    /// The statement that a command names, by both its ids, and the argument for the direct connection.
    fn named(&self, command: Command, argument: &[u8]) -> (Option<(u32, u32)>, Vec<u8>) {
        let about = [
            Command::StmtExecute,
            Command::StmtBulkExecute,
            Command::StmtFetch,
            Command::StmtReset,
            Command::StmtClose,
            Command::StmtSendLongData,
        ];
        match argument.split_first_chunk::<4>() {
            Some((id, rest)) if about.contains(&command) => {
                let id = u32::from_le_bytes(*id);
                let there = self.statements.get(&id).copied().unwrap_or(id);
                (Some((id, there)), [&there.to_le_bytes()[..], rest].concat())
            }
            _ => (None, argument.to_vec()),
        }
    }

    /// Somebody else uses the backend.
    pub(crate) async fn intrude(&mut self) {
        for sql in INTRUSION {
            let reply = self.intruder.query(sql).await;
            assert_eq!(reply.error(), None, "is the backend pinned?");
        }
    }

    /// Every packet, with the name of the one schema in place of the other's, which is as long.
    fn comparable(&self, reply: &Packets) -> Vec<(u8, String)> {
        let tracks = self.direct.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        let packets = reply.raw.iter().zip(&reply.classes).map(|((seq, payload), class)| {
            let payload = &self.in_one_schema(payload);
            let text = match class {
                Class::Ok | Class::RowsEnd => ok(payload, tracks),
                Class::PrepareOk => payload[PrepareOk::ID_AT.end..].escape_ascii().to_string(),
                _ => payload.escape_ascii().to_string(),
            };
            (*seq, text)
        });
        packets.collect()
    }

    fn in_one_schema(&self, payload: &[u8]) -> Vec<u8> {
        let (mut payload, name) = (payload.to_vec(), self.schema.as_bytes());
        while let Some(at) = memchr::memmem::find(&payload, self.twin_schema.as_bytes()) {
            payload[at..at + name.len()].copy_from_slice(name);
        }
        payload
    }
}

/// The id of a statement that was prepared.
fn prepared(reply: &Packets) -> Option<u32> {
    reply.classes.first().filter(|class| **class == Class::PrepareOk)?;
    PrepareOk::parse(&reply.raw[0].1).ok().map(|ok| ok.statement_id)
}

/// An OK with its tracked changes in order: MariaDB lists them in the order of a hash table of all names that are tracked
/// on the connection, and the proxy tracks more than the client.
fn ok(payload: &[u8], tracks: bool) -> String {
    let ok = OkPacket::parse(payload, tracks).expect("an OK that can be read");
    let mut changes: Vec<_> = changes(ok.session_state).map(|change| format!("{change:?}")).collect();
    changes.sort_unstable();
    format!("{:?} {changes:?}", OkPacket { session_state: b"", ..ok })
}
