//! We are the client: logging in to a server.
//!
//! ```text
//!  Greeting --[SSLRequest]--> Tls --tls_done--> Verdict <--AuthSwitchRequest (3 at most)--+
//!      |                                          |  |                                    |
//!      +---------------- response --------------->+  +------------------------------------+
//!                        COM_CHANGE_USER -------->+
//!         AuthMoreData 4, or sha256_password: password inside TLS, or else PublicKey --> Verdict
//!                                                 |
//!                                                 +--> Done (OK) or a LoginError
//! ```

use std::mem;

use bytes::BytesMut;
use zeroize::Zeroizing;

use super::LoginError;
use crate::protocol::auth::caching_sha2::{self, FAST_AUTH_SUCCESS, FULL_AUTHENTICATION, REQUEST_PUBLIC_KEY};
use crate::protocol::auth::{Nonce, Plugin, Secret, native, rsa};
use crate::protocol::capability::{CapabilityFlags, StatusFlags, held};
use crate::protocol::frame::{packet_with, write_packet};
use crate::protocol::packet::PacketError;
use crate::protocol::packet::auth_switch::{AuthMoreData, AuthSwitch};
use crate::protocol::packet::change_user::ChangeUser;
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::packet::greeting::Greeting;
use crate::protocol::packet::handshake_response::{Attributes, HandshakeResponse, SslRequest, encode_attributes};
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::wire::WireError;

/// The largest packet we say we take: as much as MySQL can send.
const MAX_PACKET: u32 = 1 << 30;
/// AuthSwitchRequests that are followed. Servers send one.
const MAX_SWITCHES: u8 = 3;
/// By which `sha256_password` asks for the server's public key.
const SHA256_REQUEST_PUBLIC_KEY: u8 = 1;
/// Decided here and not by the caller's wishes.
const DECIDED_HERE: CapabilityFlags = CapabilityFlags::CLIENT_SSL
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA);

/// What MySQL's own clients ask for; the tests' clients ask for zstd, our backends never.
const DEFAULT_ZSTD_LEVEL: u8 = 3;

const TRUNCATED: LoginError = LoginError::Malformed(PacketError::Wire(WireError::Truncated));

/// How much TLS is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsWish {
    /// Never.
    #[default]
    Off,
    /// If the server offers it.
    Preferred,
    /// Or no login.
    Required,
}

/// Who logs in, and how.
#[derive(Clone, Debug)]
pub struct LoginSpec {
    /// The user at the server.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// The default schema.
    pub schema: Option<Vec<u8>>,
    /// The low byte of the collation's number.
    pub collation: u8,
    /// What is wanted, as far as the server offers it. TLS, schema and attributes follow from the other fields.
    pub capabilities: CapabilityFlags,
    /// What we say about ourselves.
    pub attributes: Vec<(String, String)>,
    /// How much TLS is wanted.
    pub tls: TlsWish,
}

/// What the server said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGreeting {
    /// Its version, as it words it.
    pub version: Vec<u8>,
    /// Its number for this connection, as in KILL.
    pub connection_id: u32,
    /// What the password is to be proved with.
    pub nonce: Nonce,
    /// What it can do.
    pub capabilities: CapabilityFlags,
    /// What MariaDB can do beyond that; 0 from others.
    pub extended: u32,
    /// The low byte of its default collation's number.
    pub collation: u8,
    /// The session's status.
    pub status: StatusFlags,
    /// The plugin that it starts with.
    pub plugin: Plugin,
}

impl ServerGreeting {
    /// Reads a greeting, or the ERR that came instead.
    ///
    /// # Errors
    /// [`LoginError::Server`], [`LoginError::Malformed`]
    pub fn parse(payload: &[u8]) -> Result<Self, LoginError> {
        if let Some(refusal) = refusal(payload)? {
            return Err(refusal);
        }
        let it = Greeting::parse(payload)?;
        Ok(Self {
            version: it.version.to_vec(),
            connection_id: it.connection_id,
            nonce: it.nonce,
            capabilities: it.capabilities,
            extended: it.extended,
            collation: it.collation,
            status: it.status,
            plugin: it.plugin.map_or(Plugin::Native, Plugin::from_name),
        })
    }

    /// All of MariaDB's 64 capability bits; the upper half is 0 for others.
    #[must_use]
    pub fn capabilities64(&self) -> u64 {
        u64::from(self.extended) << 32 | u64::from(self.capabilities.bits())
    }

    /// Its flags as they are [`held`] here.
    #[must_use]
    pub fn held(&self) -> CapabilityFlags {
        held(self.capabilities, self.extended)
    }

    /// Whether this is MariaDB, by its name or, if that is hidden, by the flag that it does not set.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        memchr::memmem::find(&self.version, b"MariaDB").is_some()
            || !self.capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD)
    }
}

/// What to do next. Bytes in `out` are to be written first, whatever the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Read the next packet and call [`ClientSide::receive`].
    Read,
    /// Write `out`, start TLS, call [`ClientSide::tls_done`], write what that wrote, read.
    StartTls,
    /// Logged in: the packet was the server's OK.
    Done,
}

/// Our side of one login to a server.
#[derive(Debug)]
pub struct ClientSide {
    spec: LoginSpec,
    greeting: Option<ServerGreeting>,
    agreed: CapabilityFlags,
    tls: bool,
    switches: u8,
    /// The number of the next packet in either direction.
    seq: u8,
    state: State,
}

/// What the machine waits for.
#[derive(Debug)]
enum State {
    /// The greeting.
    Greeting,
    /// `tls_done`.
    Tls,
    /// OK, ERR, AuthSwitchRequest or AuthMoreData, after a reply by this plugin to this nonce.
    Verdict { plugin: Plugin, nonce: Nonce },
    /// The server's public key.
    PublicKey { plugin: Plugin, nonce: Nonce },
    /// Nothing more.
    Done,
}

impl ClientSide {
    /// A login that has not begun: the server speaks first.
    #[must_use]
    pub fn new(spec: LoginSpec) -> Self {
        let agreed = CapabilityFlags::empty();
        Self { spec, greeting: None, agreed, tls: false, switches: 0, seq: 0, state: State::Greeting }
    }

    /// Begins with a COM_CHANGE_USER instead, on a connection that agreed on these capabilities and is in `tls` or not.
    /// Nothing else of its greeting is needed: no proof is sent ahead, since servers that know plugins never look at it
    /// but ask again (MariaDB 10.11, MySQL 9.7: always, whatever was sent).
    ///
    /// # Errors
    /// If a name cannot be sent.
    pub fn change_user(
        spec: LoginSpec,
        agreed: CapabilityFlags,
        tls: bool,
        out: &mut BytesMut,
    ) -> Result<Self, LoginError> {
        check_names(&spec)?;
        let attributes = encode_attributes(&spec.attributes);
        let command = ChangeUser {
            user: spec.user.as_bytes(),
            reply: b"",
            schema: spec.schema.as_deref(),
            collation: Some(spec.collation.into()),
            plugin: Some(Plugin::Native.name()),
            attributes: Attributes::new(&attributes),
        };
        let seq = packet_with(out, 0, |out| command.encode(agreed, out));
        let state = State::Verdict { plugin: Plugin::Native, nonce: Nonce::default() };
        Ok(Self { spec, greeting: None, agreed, tls, switches: 0, seq, state })
    }

    /// One whole packet from the server.
    ///
    /// # Errors
    /// If the login has failed: close the connection.
    pub fn receive(&mut self, seq: u8, payload: &[u8], out: &mut BytesMut) -> Result<ClientStep, LoginError> {
        // An ERR ends it whatever its number: a server that is full counts from 0 or from 1.
        if let Some(refusal) = refusal(payload)? {
            self.state = State::Done;
            return Err(refusal);
        }
        if seq != self.seq {
            return Err(LoginError::OutOfOrder { got: seq, expected: self.seq });
        }
        self.seq = seq.wrapping_add(1);
        match mem::replace(&mut self.state, State::Done) {
            State::Greeting => self.greeted(ServerGreeting::parse(payload)?, out),
            State::Verdict { plugin, nonce } => self.verdict(payload, plugin, nonce, out),
            State::PublicKey { plugin, nonce } => {
                let pem = AuthMoreData::parse(payload)?.data;
                self.say(&rsa::encrypt(pem, &self.spec.password, &nonce)?, out);
                self.state = State::Verdict { plugin, nonce };
                Ok(ClientStep::Read)
            }
            State::Tls | State::Done => Err(LoginError::OutOfTurn),
        }
    }

    /// After [`ClientStep::StartTls`]: the stream is TLS, and what is now in `out` goes inside it.
    pub fn tls_done(&mut self, out: &mut BytesMut) {
        debug_assert!(matches!(self.state, State::Tls), "TLS was asked for");
        self.tls = true;
        self.respond(out);
    }

    /// What the server said of itself, once it has.
    #[must_use]
    pub fn greeting(&self) -> Option<&ServerGreeting> {
        self.greeting.as_ref()
    }

    /// What both sides can do.
    #[must_use]
    pub fn capabilities(&self) -> CapabilityFlags {
        self.agreed
    }

    /// Whether the connection is inside TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The greeting has come: agree on capabilities, then TLS or the response.
    fn greeted(&mut self, greeting: ServerGreeting, out: &mut BytesMut) -> Result<ClientStep, LoginError> {
        self.agreed = agree(&self.spec, greeting.held())?;
        self.greeting = Some(greeting);
        if !self.agreed.contains(CapabilityFlags::CLIENT_SSL) {
            self.respond(out);
            return Ok(ClientStep::Read);
        }
        let request = self.head();
        self.seq = packet_with(out, self.seq, |out| request.encode(out));
        self.state = State::Tls;
        Ok(ClientStep::StartTls)
    }

    fn head(&self) -> SslRequest {
        SslRequest { capabilities: self.agreed, max_packet: MAX_PACKET, collation: self.spec.collation }
    }

    /// Writes the response to the greeting.
    fn respond(&mut self, out: &mut BytesMut) {
        let Some(greeting) = &self.greeting else { return };
        let nonce = greeting.nonce;
        // With a plugin that is not spoken here, an empty reply by one that is makes the server name the account's.
        let plugin = match greeting.plugin {
            Plugin::CachingSha2 => Plugin::CachingSha2,
            _ => Plugin::Native,
        };
        let reply = match greeting.plugin {
            Plugin::Native | Plugin::CachingSha2 => reply(&plugin, &self.spec.password, &nonce),
            _ => Vec::new(),
        };
        let attributes = encode_attributes(&self.spec.attributes);
        let response = HandshakeResponse {
            head: self.head(),
            user: self.spec.user.as_bytes(),
            reply: &reply,
            schema: self.spec.schema.as_deref(),
            plugin: Some(plugin.name()),
            attributes: Attributes::new(&attributes),
            zstd_level: DEFAULT_ZSTD_LEVEL,
        };
        self.seq = packet_with(out, self.seq, |out| response.encode(out));
        self.state = State::Verdict { plugin, nonce };
    }

    /// The server's answer to a reply.
    fn verdict(
        &mut self,
        payload: &[u8],
        plugin: Plugin,
        nonce: Nonce,
        out: &mut BytesMut,
    ) -> Result<ClientStep, LoginError> {
        match payload.first().copied() {
            Some(OkPacket::OK) => Ok(ClientStep::Done),
            Some(AuthSwitch::HEADER) => self.switch(&AuthSwitch::parse(payload)?, out),
            Some(AuthMoreData::HEADER) if plugin == Plugin::CachingSha2 => {
                let data = AuthMoreData::parse(payload)?.data;
                self.more(data, plugin, nonce, out)
            }
            Some(first) => Err(LoginError::Unexpected(first)),
            None => Err(TRUNCATED),
        }
    }

    /// Starts again with the plugin the server names.
    fn switch(&mut self, request: &AuthSwitch<'_>, out: &mut BytesMut) -> Result<ClientStep, LoginError> {
        self.switches += 1;
        if self.switches > MAX_SWITCHES {
            return Err(LoginError::TooManySwitches(MAX_SWITCHES));
        }
        let plugin = Plugin::from_name(request.plugin);
        let nonce = match plugin {
            Plugin::Other(_) => return Err(LoginError::UnsupportedPlugin(plugin)),
            Plugin::ClearPassword if !self.tls => return Err(LoginError::ClearWithoutTls),
            Plugin::ClearPassword => Nonce::default(),
            Plugin::Native | Plugin::CachingSha2 | Plugin::Sha256 => *request.data.first_chunk().ok_or(TRUNCATED)?,
        };
        match plugin {
            Plugin::Sha256 if !self.spec.password.is_empty() => {
                self.tell_password(SHA256_REQUEST_PUBLIC_KEY, plugin, nonce, out);
                return Ok(ClientStep::Read);
            }
            Plugin::Sha256 => self.say(&[0], out),
            Plugin::ClearPassword => self.say_password(out),
            _ => self.say(&reply(&plugin, &self.spec.password, &nonce), out),
        }
        self.state = State::Verdict { plugin, nonce };
        Ok(ClientStep::Read)
    }

    /// `caching_sha2_password` has something to say.
    fn more(
        &mut self,
        data: &[u8],
        plugin: Plugin,
        nonce: Nonce,
        out: &mut BytesMut,
    ) -> Result<ClientStep, LoginError> {
        match data {
            [FAST_AUTH_SUCCESS] => self.state = State::Verdict { plugin, nonce },
            [FULL_AUTHENTICATION] => self.tell_password(REQUEST_PUBLIC_KEY, plugin, nonce, out),
            _ => return Err(LoginError::Unexpected(AuthMoreData::HEADER)),
        }
        Ok(ClientStep::Read)
    }

    /// The server wants the password itself: in clear inside TLS, else encrypted, for which its key is asked for first.
    fn tell_password(&mut self, ask_key: u8, plugin: Plugin, nonce: Nonce, out: &mut BytesMut) {
        self.state = if self.tls {
            self.say_password(out);
            State::Verdict { plugin, nonce }
        } else {
            self.say(&[ask_key], out);
            State::PublicKey { plugin, nonce }
        };
    }

    fn say(&mut self, payload: &[u8], out: &mut BytesMut) {
        self.seq = write_packet(out, self.seq, payload);
    }

    /// The password in clear. Only ever called inside TLS.
    fn say_password(&mut self, out: &mut BytesMut) {
        debug_assert!(self.tls, "a password is not shown to the network");
        let mut clear = Zeroizing::new(Vec::with_capacity(self.spec.password.expose().len() + 1));
        clear.extend_from_slice(self.spec.password.expose());
        clear.push(0);
        self.say(&clear, out);
    }
}

/// A zero byte would end the name, and what follows it would be read as something else.
fn check_names(spec: &LoginSpec) -> Result<(), LoginError> {
    let names = [("user", spec.user.as_bytes()), ("schema", spec.schema.as_deref().unwrap_or_default())];
    match names.into_iter().find(|(_, name)| name.contains(&0)) {
        Some((what, _)) => Err(LoginError::ZeroByte(what)),
        None => Ok(()),
    }
}

/// What both sides can do, given what the server offers.
fn agree(spec: &LoginSpec, offered: CapabilityFlags) -> Result<CapabilityFlags, LoginError> {
    let needed = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
    if !offered.contains(needed) {
        return Err(LoginError::TooOld("the protocol of MySQL 4.1"));
    }
    check_names(spec)?;
    let mut agreed = (spec.capabilities - DECIDED_HERE) | needed | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    agreed |= CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
    agreed.set(CapabilityFlags::CLIENT_CONNECT_ATTRS, !spec.attributes.is_empty());
    if spec.schema.is_some() {
        if !offered.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
            return Err(LoginError::TooOld("a schema in the handshake"));
        }
        agreed |= CapabilityFlags::CLIENT_CONNECT_WITH_DB;
    }
    let tls = spec.tls != TlsWish::Off;
    if spec.tls == TlsWish::Required && !offered.contains(CapabilityFlags::CLIENT_SSL) {
        return Err(LoginError::TlsNotOffered);
    }
    agreed.set(CapabilityFlags::CLIENT_SSL, tls);
    Ok(agreed & offered)
}

/// The reply to a nonce; empty for the empty password.
fn reply(plugin: &Plugin, password: &Secret, nonce: &Nonce) -> Vec<u8> {
    match plugin {
        Plugin::Native => native::scramble(password, nonce).map(Vec::from),
        Plugin::CachingSha2 => caching_sha2::scramble(password, nonce).map(Vec::from),
        Plugin::Sha256 | Plugin::ClearPassword | Plugin::Other(_) => None,
    }
    .unwrap_or_default()
}

/// The server's ERR, if that is what the packet is.
fn refusal(payload: &[u8]) -> Result<Option<LoginError>, PacketError> {
    if payload.first() != Some(&ErrPacket::HEADER) {
        return Ok(None);
    }
    let it = ErrPacket::parse(payload)?;
    let message = String::from_utf8_lossy(it.message).into_owned();
    Ok(Some(LoginError::Server { code: it.code, state: it.state, message }))
}

/// Logs in to a server that sends arbitrary packets. The first byte chooses the setting, the rest is cut into packets.
#[doc(hidden)]
pub fn fuzz_as_client(data: &[u8]) {
    let Some((&setting, mut rest)) = data.split_first() else { return };
    let spec = LoginSpec {
        user: "app".into(),
        password: Secret::from(if setting & 1 == 0 { "" } else { "fuzz-secret" }),
        schema: (setting & 2 != 0).then(|| b"test".to_vec()),
        collation: 255,
        capabilities: CapabilityFlags::all(),
        attributes: vec![("_pid".into(), "7".into())],
        tls: match setting >> 2 & 3 {
            0 => TlsWish::Off,
            1 => TlsWish::Required,
            _ => TlsWish::Preferred,
        },
    };
    let (agreed, in_tls) = (spec.capabilities, spec.tls == TlsWish::Required);
    let begun = match setting & 16 {
        0 => Ok(ClientSide::new(spec)),
        _ => ClientSide::change_user(spec, agreed, in_tls, &mut BytesMut::new()),
    };
    let Ok(mut client) = begun else { return };
    while let Some((&len, tail)) = rest.split_first() {
        let (payload, tail) = tail.split_at(tail.len().min(len.into()));
        rest = tail;
        let mut out = BytesMut::new();
        let step = client.receive(client.seq, payload, &mut out);
        if !client.tls {
            assert!(memchr::memmem::find(&out, b"fuzz-secret").is_none(), "the password is shown inside TLS only");
        }
        match step {
            Ok(ClientStep::Read) => {}
            Ok(ClientStep::StartTls) => client.tls_done(&mut out),
            Ok(ClientStep::Done) | Err(_) => return,
        }
    }
}
