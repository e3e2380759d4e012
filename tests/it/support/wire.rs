//! A client that sees every byte: it logs in, sends raw commands, and keeps raw replies.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use myriad::protocol::auth::Secret;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::{HEADER, Header, write_packet};
use myriad::protocol::handshake::{ClientSide, ClientStep, LoginError, LoginSpec, TlsWish};
use myriad::protocol::packet::column::text_row;
use myriad::protocol::packet::err::ErrPacket;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::response::{Class, Event, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// How to log in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) user: &'static str,
    pub(crate) password: &'static str,
    pub(crate) schema: Option<String>,
    pub(crate) capabilities: CapabilityFlags,
    pub(crate) collation: u8,
}

impl Login {
    /// The usual user, with what a modern driver asks for.
    pub(crate) fn app() -> Self {
        Self { user: "app", password: "app-secret", schema: Some("test".into()), capabilities: modern(), collation: 45 }
    }

    pub(crate) fn admin() -> Self {
        Self { user: "admin", password: "admin-secret", schema: None, ..Self::app() }
    }

    /// As drivers were before CLIENT_DEPRECATE_EOF and CLIENT_SESSION_TRACK.
    pub(crate) fn old(self) -> Self {
        let new = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_SESSION_TRACK;
        Self { capabilities: self.capabilities - new, ..self }
    }

    pub(crate) fn with(self, flags: CapabilityFlags) -> Self {
        Self { capabilities: self.capabilities | flags, ..self }
    }
}

fn modern() -> CapabilityFlags {
    CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_LOCAL_FILES
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_SESSION_TRACK
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    read: BytesMut,
    /// The id in the greeting.
    pub(crate) id: u32,
    /// The version in the greeting.
    pub(crate) version: Vec<u8>,
    pub(crate) capabilities: CapabilityFlags,
    /// Every byte travels in a segment of its own.
    pub(crate) split: bool,
}

/// A whole reply, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packets {
    /// Sequence number and payload of every packet.
    pub(crate) raw: Vec<(u8, Bytes)>,
    /// What each of them is.
    pub(crate) classes: Vec<Class>,
    capabilities: CapabilityFlags,
}

impl Wire {
    /// Connects and logs in.
    pub(crate) async fn connect(address: SocketAddr, login: &Login) -> Result<Self, LoginError> {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_nodelay(true).expect("no delay");
        let stream = socket.connect(address).await.expect("somebody listens");
        let mut wire = Self {
            stream,
            read: BytesMut::new(),
            id: 0,
            version: Vec::new(),
            capabilities: login.capabilities,
            split: false,
        };
        let mut conversation = ClientSide::new(LoginSpec {
            user: login.user.to_owned(),
            password: Secret::from(login.password),
            schema: login.schema.as_ref().map(|schema| schema.as_bytes().to_vec()),
            collation: login.collation,
            capabilities: login.capabilities,
            attributes: Vec::new(),
            tls: TlsWish::Off,
        });
        let mut out = BytesMut::new();
        loop {
            let (header, payload) = wire.frame().await.map_err(|_| LoginError::OutOfTurn)?;
            let step = conversation.receive(header.seq, &payload, &mut out);
            wire.stream.write_all(&out).await.expect("the other end listens");
            out.clear();
            match step? {
                ClientStep::Read => {}
                ClientStep::Done => break,
                ClientStep::StartTls => unreachable!("TLS is off"),
            }
        }
        let greeting = conversation.greeting().expect("a greeting");
        wire.id = greeting.connection_id;
        wire.version = greeting.version.clone();
        wire.capabilities = conversation.capabilities();
        Ok(wire)
    }

    /// Runs a statement by COM_QUERY.
    pub(crate) async fn query(&mut self, sql: &str) -> Packets {
        self.command(Command::Query, sql.as_bytes()).await
    }

    /// Runs one command.
    pub(crate) async fn command(&mut self, command: Command, argument: &[u8]) -> Packets {
        self.send(command, argument).await;
        self.reply(command).await.expect("a reply")
    }

    /// Sends one command without reading its reply.
    pub(crate) async fn send(&mut self, command: Command, argument: &[u8]) {
        let mut out = BytesMut::new();
        write_packet(&mut out, 0, &[&[command.byte()], argument].concat());
        self.write(&out).await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        if self.split {
            for byte in bytes {
                self.stream.write_all(&[*byte]).await.expect("the other end listens");
                tokio::task::yield_now().await;
            }
        } else {
            self.stream.write_all(bytes).await.expect("the other end listens");
        }
    }

    /// Reads the reply to a command.
    pub(crate) async fn reply(&mut self, command: Command) -> io::Result<Packets> {
        self.reply_with(command, b"").await
    }

    /// Reads the reply to a command; `file` is sent when the server asks for one.
    pub(crate) async fn reply_with(&mut self, command: Command, file: &[u8]) -> io::Result<Packets> {
        let eof = self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        let track = self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        let mut reply = Reply::new(command.reply(), eof, track);
        let mut packets = Packets { raw: Vec::new(), classes: Vec::new(), capabilities: self.capabilities };
        while !reply.is_done() {
            let (header, payload) = self.frame().await?;
            let class = reply.classify(header, payload.first().copied()).expect("a packet that belongs here");
            if reply.accept(class, header, &payload).expect("a packet that can be read") == Event::LocalInfile {
                let mut out = BytesMut::new();
                let mut seq = header.seq.wrapping_add(1);
                for chunk in file.chunks(10_000) {
                    seq = write_packet(&mut out, seq, chunk);
                }
                write_packet(&mut out, seq, b"");
                self.write(&out).await;
                reply.infile_sent();
            }
            packets.raw.push((header.seq, payload));
            packets.classes.push(class);
        }
        Ok(packets)
    }

    /// One frame.
    pub(crate) async fn frame(&mut self) -> io::Result<(Header, Bytes)> {
        loop {
            if let Some(header) = Header::parse(&self.read)
                && self.read.len() >= HEADER + header.len
            {
                let payload = self.read.split_to(HEADER + header.len).freeze().slice(HEADER..);
                return Ok((header, payload));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The first field of the first row of a statement's result, as text.
    pub(crate) async fn one(&mut self, sql: &str) -> String {
        let packets = self.query(sql).await;
        packets.rows().first().and_then(|row| row.first().cloned().flatten()).unwrap_or_else(|| format!("{packets:?}"))
    }

    /// Prepares a statement; its id.
    pub(crate) async fn prepare(&mut self, sql: &str) -> u32 {
        let packets = self.command(Command::StmtPrepare, sql.as_bytes()).await;
        PrepareOk::parse(&packets.raw[0].1).unwrap_or_else(|_| panic!("not prepared: {packets:?}")).statement_id
    }
}

impl Packets {
    /// The text rows.
    pub(crate) fn rows(&self) -> Vec<Vec<Option<String>>> {
        let text = |field: Option<&[u8]>| field.map(|field| String::from_utf8_lossy(field).into_owned());
        self.raw
            .iter()
            .zip(&self.classes)
            .filter(|(_, class)| **class == Class::Row)
            .map(|((_, payload), _)| text_row(payload).map(text).collect())
            .collect()
    }

    /// The error it ended with, if it did.
    pub(crate) fn error(&self) -> Option<(u16, String)> {
        let (_, payload) = self.raw.last()?;
        if self.classes.last() != Some(&Class::Err) {
            return None;
        }
        let err = ErrPacket::parse(payload).expect("an error that can be read");
        Some((err.code, String::from_utf8_lossy(err.message).into_owned()))
    }

    /// # Panics
    /// If it ended with an error.
    pub(crate) fn expect_ok(&self) {
        assert_eq!(self.error(), None);
    }

    /// # Panics
    /// If it did not end with this error.
    pub(crate) fn expect_error(&self, code: u16) {
        assert_eq!(self.error().map(|(code, _)| code), Some(code), "{self:?}");
    }

    /// The OK it ended with.
    ///
    /// # Panics
    /// If it ended otherwise.
    pub(crate) fn ok(&self) -> OkPacket<'_> {
        let track = self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        let (_, payload) = self.raw.last().expect("a packet");
        OkPacket::parse(payload, track).unwrap_or_else(|_| panic!("not an OK: {self:?}"))
    }
}
