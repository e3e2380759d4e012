//! The packets that the proxy itself sends to clients. The only place that words an error.

use bytes::{Bytes, BytesMut};

use crate::backend;
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::frame::{HEADER, Header, packet_with};
use crate::protocol::packet::column::{ColumnDefinition, put_binary_row, put_text_row};
use crate::protocol::packet::eof::EofPacket;
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::packet::session_track::Change;
use crate::protocol::wire::put_lenenc_int;

/// Everything that can be wrong, in the words that a client gets: who, what, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// `server.max_clients` and kin.
    #[error("Too many connections: {limit} is {value}")]
    TooManyClients {
        /// The setting's name.
        limit: &'static str,
        /// Its value.
        value: usize,
    },
    /// Wrong user or password.
    #[error("Access denied for user '{user}'@'{host}' (using password: {})", if *using_password { "YES" } else { "NO" })]
    Denied {
        /// As the client gave it.
        user: String,
        /// Where the client comes from.
        host: String,
        /// Did it send a password?
        using_password: bool,
    },
    /// A character set in the handshake that no client can speak.
    #[error("Variable 'character_set_client' can't be set to the value of '{charset}'")]
    Charset {
        /// Its name.
        charset: String,
    },
    /// Not logged in within `server.handshake_timeout`.
    #[error("The login was not finished within {seconds} s (server.handshake_timeout)")]
    HandshakeTimeout {
        /// The setting, in seconds.
        seconds: u64,
    },
    /// What the server said, in its own words.
    #[error("{message}")]
    Server {
        /// MySQL error code.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// The server's message.
        message: String,
    },
    /// The server cannot be reached.
    #[error("Can't connect to the MySQL server behind the proxy: {reason}")]
    Unreachable {
        /// What the connector says.
        reason: String,
    },
    /// No backend within `scheduler.queue_timeout`.
    #[error(
        "Too many connections: no backend connection became free within {waited_ms} ms (scheduler.queue_timeout is \
         {limit_ms} ms, pool.max_connections is {pool})"
    )]
    QueueTimeout {
        /// How long the client waited, in milliseconds.
        waited_ms: u128,
        /// The setting, in milliseconds.
        limit_ms: u128,
        /// `pool.max_connections`
        pool: usize,
    },
    /// `pool.mode` is `session`, and every connection has its client.
    #[error(
        "Too many connections: each client has a server connection of its own (pool.mode is \"session\"), and all {pool} \
         are taken (pool.max_connections)"
    )]
    NoRoom {
        /// `pool.max_connections`
        pool: usize,
    },
    /// No local port to connect from.
    #[error("Too many connections: {reason}")]
    NoPorts {
        /// What the connector says.
        reason: String,
    },
    /// As many wait as may: `scheduler.max_waiting` and kin.
    #[error("Too many connections: {limit} commands wait for a backend connection already ({setting})")]
    QueueFull {
        /// The setting's value.
        limit: usize,
        /// Its name.
        setting: &'static str,
    },
    /// The backend was lost in the middle of a turn.
    #[error("Lost connection to MySQL server during query: {reason}")]
    BackendLost {
        /// What the socket said.
        reason: String,
    },
    /// The session's state could not be brought to a backend.
    #[error("The session could not be continued on another server connection: {message}")]
    NotRestored {
        /// MySQL error code.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// The server's message.
        message: String,
    },
    /// The session has no schema, and every backend has one.
    #[error("No server connection without a default schema could be had; choose a schema at login or by USE")]
    NoPlainBackend,
    /// A command larger than `limits.max_packet`.
    #[error("Got a packet bigger than 'max_allowed_packet' bytes (the proxy's limits.max_packet is {limit})")]
    PacketTooLarge {
        /// The setting, in bytes.
        limit: usize,
    },
    /// Packets out of order.
    #[error("Got packets out of order")]
    PacketsOutOfOrder,
    /// A command that cannot be carried.
    #[error("{command} is not supported through a connection multiplexer; connect to the server itself")]
    Unsupported {
        /// The command's name.
        command: &'static str,
    },
    /// A command that nobody knows.
    #[error("Unknown command")]
    UnknownCommand,
    /// KILL of an id that is not a client's.
    #[error("Unknown thread id: {id}")]
    UnknownThread {
        /// As given.
        id: u64,
    },
    /// KILL of somebody else's session.
    #[error("You are not owner of thread {id}")]
    NotOwner {
        /// As given.
        id: u64,
    },
    /// A statement about the one before it, which ran on a backend that has been handed on.
    #[error(
        "This statement reads {what} of a statement that ran on another server connection, in a form that cannot be \
         answered there; send both in one text, or read it by a plain SELECT, SHOW WARNINGS or GET DIAGNOSTICS"
    )]
    DiagnosticsGone {
        /// ROW_COUNT() and kin.
        what: &'static str,
    },
    /// An id of a prepared statement that the client does not have.
    #[error("Unknown prepared statement handler ({id}) given to {asker}")]
    UnknownStatement {
        /// As given.
        id: u32,
        /// Which part of the server says so.
        asker: &'static str,
    },
    /// COM_STMT_FETCH of a statement that has no cursor.
    #[error("The statement ({id}) has no open cursor{}", if *mariadb { "" } else { "." })]
    NoCursor {
        /// As given.
        id: u32,
        /// MariaDB's words.
        mariadb: bool,
    },
    /// A command about a prepared statement that does not name one.
    #[error("Malformed communication packet{}", if *mariadb { "" } else { "." })]
    Malformed {
        /// MariaDB's words.
        mariadb: bool,
    },
    /// COM_STMT_BULK_EXECUTE, which no client was offered.
    #[error("This command is not supported in the prepared statement protocol yet")]
    NoBulkExecute,
    /// `limits.max_prepared_statements`, in the server's words.
    #[error("Can't create more than max_prepared_stmt_count statements (current value: {limit})")]
    TooManyStatements {
        /// The setting.
        limit: usize,
    },
    /// Long data could not be delivered.
    #[error("Incorrect arguments to mysqld_stmt_send_long_data")]
    LostLongData,
    /// A session killed its own statement.
    #[error("Query execution was interrupted")]
    Interrupted,
    /// A session killed itself, in MariaDB's words.
    #[error("Connection was killed")]
    Killed,
    /// The proxy is shutting down.
    #[error("Server shutdown in progress")]
    Shutdown,
    /// Idle for too long.
    #[error("The client was disconnected by the server because of inactivity (server.idle_timeout)")]
    IdleTimeout,
}

impl Fault {
    /// The MySQL error code and SQLSTATE.
    #[must_use]
    pub fn code(&self) -> (u16, [u8; 5]) {
        match self {
            Self::TooManyClients { .. }
            | Self::QueueTimeout { .. }
            | Self::QueueFull { .. }
            | Self::NoPorts { .. }
            | Self::NoRoom { .. } => (1040, *b"08004"),
            Self::Denied { .. } => (1045, *b"28000"),
            Self::Charset { .. } => (1231, *b"42000"),
            Self::HandshakeTimeout { .. } => (1159, *b"08S01"),
            Self::Server { code, state, .. } | Self::NotRestored { code, state, .. } => (*code, *state),
            // From 2000 on, numbers belong to client libraries, which do not expect them of a server: ER_NET_ERROR_ON_WRITE,
            // for nothing was sent, and ER_NET_READ_ERROR.
            Self::Unreachable { .. } => (1160, *b"08S01"),
            Self::BackendLost { .. } => (1158, *b"08S01"),
            Self::PacketTooLarge { .. } => (1153, *b"08S01"),
            Self::PacketsOutOfOrder => (1156, *b"08S01"),
            Self::Unsupported { .. } | Self::DiagnosticsGone { .. } | Self::NoPlainBackend => (1235, *b"42000"),
            Self::UnknownCommand => (1047, *b"08S01"),
            Self::UnknownThread { .. } => (1094, *b"HY000"),
            Self::NotOwner { .. } => (1095, *b"HY000"),
            Self::UnknownStatement { .. } => (1243, *b"HY000"),
            Self::NoCursor { .. } => (1421, *b"HY000"),
            Self::Malformed { .. } => (1835, *b"HY000"),
            Self::NoBulkExecute => (1295, *b"HY000"),
            Self::TooManyStatements { .. } => (1461, *b"42000"),
            Self::LostLongData => (1210, *b"HY000"),
            Self::Interrupted => (1317, *b"70100"),
            Self::Killed => (1927, *b"70100"),
            Self::Shutdown => (1053, *b"08S01"),
            Self::IdleTimeout => (4031, *b"HY000"),
        }
    }

    /// Appends the error as a packet.
    pub fn write(&self, out: &mut BytesMut, seq: u8) {
        let (code, state) = self.code();
        let message = self.to_string();
        // Before the greeting a client does not know of SQLSTATEs: servers leave them out there.
        let state = (seq > 0).then_some(state);
        packet_with(out, seq, |out| ErrPacket { code, state, message: message.as_bytes() }.encode(out));
    }
}

/// Appends a plain OK.
pub fn ok(out: &mut BytesMut, seq: u8, status: StatusFlags, warnings: u16, client_tracks: bool) {
    let ok = OkPacket { header: 0, affected_rows: 0, insert_id: 0, status, warnings, info: b"", session_state: b"" };
    packet_with(out, seq, |out| ok.encode(out, client_tracks));
}

/// Appends an OK as a server gave it to somebody else.
pub fn shown(out: &mut BytesMut, ok: OkPacket<'_>, client_tracks: bool) {
    packet_with(out, 1, |out| ok.encode(out, client_tracks));
}

/// Appends an OK that counts affected rows.
pub fn changed(out: &mut BytesMut, seq: u8, (status, client_tracks): (StatusFlags, bool), affected_rows: u64) {
    let ok = OkPacket { header: 0, affected_rows, insert_id: 0, status, warnings: 0, info: b"", session_state: b"" };
    packet_with(out, seq, |out| ok.encode(out, client_tracks));
}

/// Appends the OK that ends a login, which names the schema that was chosen.
pub fn welcome(out: &mut BytesMut, seq: u8, status: StatusFlags, schema: Option<&[u8]>, client_tracks: bool) {
    let mut change = BytesMut::new();
    if let Some(schema) = schema {
        Change::Schema(schema).encode(&mut change);
    }
    let ok = OkPacket { header: 0, affected_rows: 0, insert_id: 0, status, warnings: 0, info: b"", session_state: b"" };
    packet_with(out, seq, |out| ok.with_changes(schema.is_some(), &change).encode(out, client_tracks));
}

/// Appends the answer to COM_STMT_PREPARE: as the server wrote it (in the new dialect), with another id.
pub fn prepared(out: &mut BytesMut, raw: &[u8], id: u32, client: CapabilityFlags, status: StatusFlags) {
    let mut rest = raw;
    let (mut seq, mut first, mut blocks) = (1, true, [0_u16; 2]);
    let old = !client.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    while let Some(header) = Header::parse(rest) {
        let payload = rest.get(HEADER..HEADER + header.len).unwrap_or_default();
        rest = rest.get(HEADER + header.len..).unwrap_or_default();
        if std::mem::take(&mut first) {
            let Ok(ok) = PrepareOk::parse(payload) else { return };
            blocks = [ok.params, ok.columns];
            let at = out.len() + HEADER;
            seq = packet_with(out, seq, |out| out.extend_from_slice(payload));
            if let Some(place) = out.get_mut(at..).and_then(|payload| payload.get_mut(PrepareOk::ID_AT)) {
                place.copy_from_slice(&id.to_le_bytes());
            }
            continue;
        }
        seq = packet_with(out, seq, |out| out.extend_from_slice(payload));
        let Some(left) = blocks.iter_mut().find(|left| **left > 0) else { return };
        *left -= 1;
        if *left == 0 && old {
            seq = packet_with(out, seq, |out| EofPacket { warnings: 0, status }.encode(out));
        }
    }
}

/// Appends a result set, in text or binary: as the server answered, with other rows.
pub fn rows(
    out: &mut BytesMut,
    answer: &backend::Rows,
    (rows, binary): (&[Vec<Option<Vec<u8>>>], bool),
    changes: &[u8],
    client: CapabilityFlags,
) {
    let old = !client.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    let status = answer.status - StatusFlags::SERVER_SESSION_STATE_CHANGED;
    let eof = EofPacket { warnings: answer.warnings, status };
    let mut seq = packet_with(out, 1, |out| put_lenenc_int(out, answer.columns.len() as u64));
    for column in &answer.columns {
        seq = packet_with(out, seq, |out| out.extend_from_slice(column));
    }
    if old {
        seq = packet_with(out, seq, |out| eof.encode(out));
    }
    let kind = |column: &Bytes| ColumnDefinition::parse(column).map_or(0, |column| column.kind);
    let kinds: Vec<_> = answer.columns.iter().map(kind).collect();
    for row in rows {
        let fields = row.iter().map(Option::as_deref);
        seq = packet_with(out, seq, |out| match binary {
            true => put_binary_row(out, &kinds, fields),
            false => put_text_row(out, fields),
        });
    }
    if old {
        packet_with(out, seq, |out| eof.encode(out));
    } else {
        let header = OkPacket::END;
        let EofPacket { warnings, status } = eof;
        let end = OkPacket { header, affected_rows: 0, insert_id: 0, status, warnings, info: b"", session_state: b"" };
        let tracks = client.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        packet_with(out, seq, |out| end.with_changes(!changes.is_empty(), changes).encode(out, tracks));
    }
}
