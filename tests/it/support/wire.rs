//! A client that sees every byte: it logs in, sends raw commands, and keeps raw replies.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use myriad::config::BackendTls;
use myriad::net::{Stream, tls};
use myriad::protocol::auth::{Nonce, Plugin, Secret, caching_sha2, native, rsa};
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::frame::{HEADER, Header, MAX_PAYLOAD, write_packet};
use myriad::protocol::handshake::{ClientSide, ClientStep, LoginError, LoginSpec, ServerGreeting, TlsWish};
use myriad::protocol::packet::auth_switch::{AuthMoreData, AuthSwitch};
use myriad::protocol::packet::column::text_row;
use myriad::protocol::packet::err::ErrPacket;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::response::{Class, Event, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::packed::Packed;

/// How to log in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) user: &'static str,
    pub(crate) password: &'static str,
    pub(crate) schema: Option<String>,
    pub(crate) capabilities: CapabilityFlags,
    pub(crate) collation: u8,
    pub(crate) tls: TlsWish,
}

impl Login {
    /// The usual user, with what a modern driver asks for.
    pub(crate) fn app() -> Self {
        Self {
            user: "app",
            password: "app-secret",
            schema: Some("test".into()),
            capabilities: modern(),
            collation: 45,
            tls: TlsWish::Off,
        }
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
    stream: Stream,
    read: BytesMut,
    /// The id in the greeting.
    pub(crate) id: u32,
    /// The version in the greeting.
    pub(crate) version: Vec<u8>,
    /// The greeting itself, once it has come.
    pub(crate) greeting: Option<ServerGreeting>,
    /// The packet that ended the login.
    pub(crate) welcome: (u8, Bytes),
    pub(crate) capabilities: CapabilityFlags,
    /// The number of the last command's last frame: the reply counts on from there.
    last_seq: u8,
    /// Every byte travels in a segment of its own.
    pub(crate) split: bool,
    /// Compressed frames, from the end of the login on.
    pub(crate) packed: Option<Packed>,
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
        let mut wire = Self::open(address).await;
        Box::pin(wire.log_in(login)).await?;
        Ok(wire)
    }

    /// Connects, and leaves the rest to the caller.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_nodelay(true).expect("no delay");
        Self::over(Stream::Tcp(socket.connect(address).await.expect("somebody listens")))
    }

    /// The other end of a connection that somebody else has opened.
    pub(crate) fn accepted(socket: TcpStream) -> Self {
        Self::over(Stream::Tcp(socket))
    }

    /// Connects by a Unix socket, and leaves the rest to the caller.
    pub(crate) async fn open_unix(path: &Path) -> Self {
        Self::over(Stream::Unix(UnixStream::connect(path).await.expect("somebody listens")))
    }

    fn over(stream: Stream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            id: 0,
            version: Vec::new(),
            greeting: None,
            welcome: (0, Bytes::new()),
            capabilities: CapabilityFlags::empty(),
            last_seq: 0,
            split: false,
            packed: None,
        }
    }

    /// Logs in on a connection that was only opened.
    pub(crate) async fn log_in(&mut self, login: &Login) -> Result<(), LoginError> {
        let mut conversation = ClientSide::new(LoginSpec {
            user: login.user.to_owned(),
            password: Secret::from(login.password),
            schema: login.schema.as_ref().map(|schema| schema.as_bytes().to_vec()),
            collation: login.collation,
            capabilities: login.capabilities,
            attributes: Vec::new(),
            tls: login.tls,
        });
        let mut out = BytesMut::new();
        loop {
            let (header, payload) = self.frame().await.map_err(|_| LoginError::OutOfTurn)?;
            let step = conversation.receive(header.seq, &payload, &mut out);
            self.write(&out).await;
            out.clear();
            match step? {
                ClientStep::Read => {}
                ClientStep::Done => {
                    self.welcome = (header.seq, payload);
                    break;
                }
                ClientStep::StartTls => {
                    Box::pin(self.start_tls()).await;
                    conversation.tls_done(&mut out);
                    self.write(&out).await;
                    out.clear();
                }
            }
        }
        let greeting = conversation.greeting().expect("a greeting");
        self.id = greeting.connection_id;
        self.version = greeting.version.clone();
        self.greeting = Some(greeting.clone());
        self.capabilities = conversation.capabilities();
        self.packed = Packed::agreed(self.capabilities);
        Ok(())
    }

    /// TLS from here on; whoever answers is believed.
    async fn start_tls(&mut self) {
        let settings = BackendTls::default();
        let connector = TlsConnector::from(tls::client_config(&settings).expect("TLS without a CA"));
        let name = tls::server_name(&settings, "localhost").expect("a name");
        let plain = std::mem::replace(&mut self.stream, Stream::Lost);
        self.stream = plain.connect_tls(&connector, name).await.expect("the other end speaks TLS");
    }

    /// Runs COM_CHANGE_USER; what the login asks for beyond user, password, schema and collation stays as it was.
    pub(crate) async fn change_user(&mut self, login: &Login) -> Result<(), LoginError> {
        let greeting = self.greeting.as_ref().expect("a greeting");
        let (plugin, nonce) = (greeting.plugin.clone(), greeting.nonce);
        let reply = scramble(&plugin, login.password, &nonce);
        let mut packet = vec![Command::ChangeUser.byte()];
        packet.extend_from_slice(login.user.as_bytes());
        packet.extend_from_slice(&[0, u8::try_from(reply.len()).expect("a short reply")]);
        packet.extend_from_slice(&reply);
        packet.extend_from_slice(login.schema.as_deref().unwrap_or_default().as_bytes());
        packet.extend_from_slice(&[0, login.collation, 0]);
        packet.extend_from_slice(plugin.name());
        packet.push(0);
        let mut out = BytesMut::new();
        write_packet(&mut out, 0, &packet);
        self.begin();
        let mut nonce = nonce;
        loop {
            self.write(&out).await;
            out.clear();
            let (header, payload) = self.frame().await.map_err(|_| LoginError::OutOfTurn)?;
            let answer = match payload[0] {
                0x00 => {
                    self.welcome = (header.seq, payload);
                    return Ok(());
                }
                0xff => {
                    let err = ErrPacket::parse(&payload).expect("an error that can be read");
                    let message = String::from_utf8_lossy(err.message).into_owned();
                    return Err(LoginError::Server { code: err.code, state: err.state, message });
                }
                0xfe => {
                    let switch = AuthSwitch::parse(&payload).expect("an AuthSwitchRequest");
                    nonce = *switch.data.first_chunk().expect("a nonce");
                    scramble(&Plugin::from_name(switch.plugin), login.password, &nonce)
                }
                _ => match AuthMoreData::parse(&payload).expect("AuthMoreData").data {
                    [caching_sha2::FAST_AUTH_SUCCESS] => continue,
                    [caching_sha2::FULL_AUTHENTICATION] if self.stream.is_tls() => {
                        [login.password.as_bytes(), b"\0"].concat()
                    }
                    [caching_sha2::FULL_AUTHENTICATION] => vec![caching_sha2::REQUEST_PUBLIC_KEY],
                    pem => rsa::encrypt(pem, &Secret::from(login.password), &nonce).expect("a key"),
                },
            };
            write_packet(&mut out, header.seq.wrapping_add(1), &answer);
        }
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

    /// A text without attributes says so, if it may have some.
    fn before(&self, command: Command) -> &'static [u8] {
        let may_have = self.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
        if may_have && command == Command::Query { &[0, 1] } else { &[] }
    }

    /// Runs a text with an attribute; without one where the server knows no such thing.
    pub(crate) async fn query_with(&mut self, name: &str, value: &str, sql: &str) -> Packets {
        if self.before(Command::Query).is_empty() {
            return self.query(sql).await;
        }
        let short = |text: &str| u8::try_from(text.len()).expect("a short text");
        let front = [&[1, 1, 0, 1, 0xfe, 0, short(name)], name.as_bytes(), &[short(value)], value.as_bytes()].concat();
        let mut out = BytesMut::new();
        let next = write_packet(&mut out, 0, &[&[Command::Query.byte()], &*front, sql.as_bytes()].concat());
        self.last_seq = next - 1;
        self.begin();
        self.write(&out).await;
        self.reply(Command::Query).await.expect("a reply")
    }

    /// Sends one command without reading its reply.
    pub(crate) async fn send(&mut self, command: Command, argument: &[u8]) {
        let mut out = BytesMut::new();
        let next = write_packet(&mut out, 0, &[&[command.byte()], self.before(command), argument].concat());
        self.last_seq = next - 1;
        self.begin();
        if self.packed.is_some() && next > 1 {
            // As MariaDB's client library has it in compressed frames.
            out[HEADER + MAX_PAYLOAD + HEADER - 1] = 0;
        }
        self.write(&out).await;
    }

    /// Sends one command, to somebody who may be gone.
    pub(crate) async fn try_send(&mut self, command: Command, argument: &[u8]) -> io::Result<()> {
        let mut out = BytesMut::new();
        let next = write_packet(&mut out, 0, &[&[command.byte()], self.before(command), argument].concat());
        self.last_seq = next - 1;
        self.begin();
        self.stream.write_all(&out).await?;
        self.stream.flush().await
    }

    /// A command begins.
    fn begin(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.begin();
        }
    }

    /// Sends bytes as they are, or in compressed frames if that was agreed.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let packed = self.packed.as_mut().map(|packed| packed.pack(bytes));
        let bytes = packed.as_deref().unwrap_or(bytes);
        if self.split {
            for byte in bytes {
                self.stream.write_all(&[*byte]).await.expect("the other end listens");
                tokio::task::yield_now().await;
            }
        } else {
            self.stream.write_all(bytes).await.expect("the other end listens");
        }
        self.stream.flush().await.expect("the other end listens");
    }

    /// Sends bytes to somebody who may be gone.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads bytes that are no packets, and forgets them; 0 is the end, in whatever way it comes.
    pub(crate) async fn read_some(&mut self) -> usize {
        self.read.clear();
        self.stream.read_buf(&mut self.read).await.unwrap_or(0)
    }

    /// Reads the reply to a command.
    pub(crate) async fn reply(&mut self, command: Command) -> io::Result<Packets> {
        self.reply_with(command, b"").await
    }

    /// Reads the reply to a command; `file` is sent when the server asks for one.
    pub(crate) async fn reply_with(&mut self, command: Command, file: &[u8]) -> io::Result<Packets> {
        let eof = self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        let track = self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        let mut reply = Reply::new(command.reply(), eof, track).to_frame(self.last_seq);
        if command != Command::StmtExecute {
            reply = reply.without_cursor();
        }
        let mut packets = Packets { raw: Vec::new(), classes: Vec::new(), capabilities: self.capabilities };
        while !reply.is_done() {
            let (header, payload) = self.frame().await?;
            let class = reply.classify(header, payload.first().copied()).expect("a packet that belongs here");
            if reply.accept(class, header, &payload).expect("a packet that can be read") == Event::LocalInfile {
                let mut out = BytesMut::new();
                // With compression, client libraries take the frames' number for the packet's.
                let mut seq = self.packed.as_ref().map_or(header.seq.wrapping_add(1), |packed| packed.seq);
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
            if let Some(packed) = &mut self.packed {
                packed.read(&mut self.stream, &mut self.read).await?;
                continue;
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

/// The proof of a password.
fn scramble(plugin: &Plugin, password: &str, nonce: &Nonce) -> Vec<u8> {
    let password = Secret::from(password);
    let reply = match plugin {
        Plugin::Native => native::scramble(&password, nonce).map(Vec::from),
        Plugin::CachingSha2 => caching_sha2::scramble(&password, nonce).map(Vec::from),
        // What MySQL asks of users that it does not know: for its key, or the empty password.
        Plugin::Sha256 => Some(vec![u8::from(!password.is_empty())]),
        other => panic!("a login by {other:?}"),
    };
    reply.unwrap_or_default()
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
