//! We are the server: a client logs in.
//!
//! ```text
//!  Greet --greet--> Response --SSLRequest--> Tls --tls_done--> Response
//!                       |
//!                  Step::Identify, then identified(who):
//!                       |                                    reply wrong, or not made for a plugin of ours
//!                       +--> Done (Granted, Denied) <---- Switched <-- AuthSwitchRequest --+
//!                       |                                    |
//!                       +------- AuthMoreData 4 -----> Password (key not sent, key sent) --> Done (AskServer)
//! ```
//!
//! What is known about the user decides: with a password at hand the reply proves it or not; without one
//! (passthrough) the client is asked for the password itself, by way of `caching_sha2_password`.

use std::mem;
use std::sync::{Arc, LazyLock};

use bytes::BytesMut;

use super::{HandshakeError, LoginRequest, MAX_PACKET};
use crate::protocol::auth::caching_sha2::{self, FAST_AUTH_SUCCESS, FULL_AUTHENTICATION, REQUEST_PUBLIC_KEY};
use crate::protocol::auth::rsa::Keys;
use crate::protocol::auth::{Nonce, Plugin, Secret, native};
use crate::protocol::capability::{CapabilityFlags, StatusFlags, on_wire};
use crate::protocol::frame::packet_with;
use crate::protocol::packet::auth_switch::{AuthMoreData, AuthSwitch};
use crate::protocol::packet::change_user::ChangeUser;
use crate::protocol::packet::handshake_response::{HandshakeResponse, SslRequest, capabilities};
use crate::protocol::packet::{PacketError, greeting};
use crate::protocol::wire::WireError;

/// Offered in every greeting: without these a login is not possible, or cannot carry what clients send in it.
const LOGIN_FLAGS: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS);

/// What the client is greeted with.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// The server's version; no zero byte in it.
    pub version: Vec<u8>,
    /// The number of this connection.
    pub connection_id: u32,
    /// What is offered. TLS and the flags of the login itself are this machine's business: whether they are in here makes
    /// no difference.
    pub capabilities: CapabilityFlags,
    /// The default collation, the low byte of its number.
    pub collation: u8,
    /// The session's status.
    pub status: StatusFlags,
    /// The plugin that clients start with; one that is not spoken here counts as `caching_sha2_password`.
    pub plugin: Plugin,
}

/// How this connection may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// TLS is offered.
    pub tls_offered: bool,
    /// A client that does not take it is refused (unless `local`).
    pub tls_required: bool,
    /// A Unix socket, which clients take to be as safe as TLS: they send their password in clear.
    pub local: bool,
}

/// What is known about the user.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// This is the password.
    Known(Secret),
    /// There is no such user. The client goes through what a wrong password goes through.
    Nobody,
    /// This was the password a while ago; if it is not, the server decides.
    Remembered(Secret),
    /// Only the server knows.
    Unknown,
}

/// What to do next. Bytes in `out` are to be written first, whatever the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the next packet and call [`ServerSide::receive`].
    Read,
    /// Start TLS, then call [`ServerSide::tls_done`] and read. Bytes that came behind this packet belong to TLS and must
    /// not be taken for a packet.
    StartTls,
    /// [`ServerSide::request`] is complete: look the user up and call [`ServerSide::identified`].
    Identify,
    /// The password is right, and this is it. Write an OK.
    Granted(Secret),
    /// Write a 1045; `using_password` is its "(using password: YES)".
    Denied {
        /// The client did send a password.
        using_password: bool,
    },
    /// Log in to the server with this password: if that succeeds write an OK, else the server's error.
    AskServer {
        /// The client's, not verified.
        password: Secret,
    },
}

/// Our side of one client's login.
#[derive(Debug)]
pub struct ServerSide {
    greeting: Greeting,
    salt: Nonce,
    keys: Arc<Keys>,
    policy: Policy,
    tls: bool,
    /// The number of the next packet in either direction.
    seq: u8,
    request: Option<LoginRequest>,
    state: State,
}

/// What the machine waits for.
#[derive(Debug)]
enum State {
    /// `greet` or `change_user`.
    Greet,
    /// The response to the greeting, or SSLRequest.
    Response,
    /// `tls_done`.
    Tls,
    /// `identified`; `again`: a reply that proves nothing is followed by an AuthSwitchRequest.
    Identify { reply: Vec<u8>, again: bool },
    /// The reply to an AuthSwitchRequest.
    Switched { plugin: Plugin, who: Credentials },
    /// The password in clear or encrypted, or (once) a request for our public key.
    Password { key_sent: bool },
    /// Nothing more.
    Done,
}

impl ServerSide {
    /// A login that has not begun. `salt` is random and has no zero bytes.
    #[must_use]
    pub fn new(mut greeting: Greeting, salt: Nonce, keys: Arc<Keys>, policy: Policy) -> Self {
        if !speaks(&greeting.plugin) {
            greeting.plugin = Plugin::CachingSha2;
        }
        Self { greeting, salt, keys, policy, tls: false, seq: 0, request: None, state: State::Greet }
    }

    /// Begins with the greeting.
    pub fn greet(&mut self, out: &mut BytesMut) {
        let (capabilities, extended) = on_wire(self.offered());
        let packet = greeting::Greeting {
            version: &self.greeting.version,
            connection_id: self.greeting.connection_id,
            nonce: self.salt,
            capabilities,
            extended,
            collation: self.greeting.collation,
            status: self.greeting.status,
            plugin: Some(self.greeting.plugin.name()),
        };
        self.seq = packet_with(out, 0, |out| packet.encode(out));
        self.state = State::Response;
    }

    /// Begins with a COM_CHANGE_USER (the whole payload) instead, on a connection that was greeted with the same
    /// greeting and salt, whose client agreed to `client` and which is in `tls` or not.
    ///
    /// # Errors
    /// If the command makes no sense.
    pub fn change_user(
        &mut self,
        payload: &[u8],
        client: CapabilityFlags,
        tls: bool,
        seq: u8,
    ) -> Result<Step, HandshakeError> {
        let change = ChangeUser::parse(payload, client)?;
        self.tls = tls;
        self.seq = seq.wrapping_add(1);
        self.request = Some(LoginRequest::from_change(&change, client, &self.greeting.plugin, self.greeting.collation));
        self.state = State::Identify { reply: change.reply.to_vec(), again: true };
        Ok(Step::Identify)
    }

    /// Whether a packet that starts with this header can be part of a login. To be asked before waiting for the rest, of
    /// which there may be 16 MiB.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_header(&self, len: usize, seq: u8) -> Result<(), HandshakeError> {
        let [a, b, c, _] = (len as u32).to_le_bytes();
        Err(match [a, b, c, seq] {
            // A TLS record: handshake, version 3.1 to 3.4, length. As a length, 64 KiB or more.
            [0x16, 0x03, 0x01..=0x04, _] => HandshakeError::NotMySql("TLS without asking for it first"),
            _ if seq == self.seq && len <= MAX_PACKET => return Ok(()),
            [b'G', b'E', b'T', b' ']
            | [b'P', b'O' | b'U', ..]
            | [b'H', b'E', b'A', b'D']
            | [b'O', b'P', b'T', b'I'] => HandshakeError::NotMySql("HTTP"),
            [b'S', b'S', b'H', b'-'] => HandshakeError::NotMySql("SSH"),
            _ if seq != self.seq => HandshakeError::OutOfOrder { got: seq, expected: self.seq },
            _ => HandshakeError::TooLarge(len),
        })
    }

    /// One whole packet from the client.
    ///
    /// # Errors
    /// If it cannot be part of a login: tell the client [`HandshakeError::answer`] and close.
    pub fn receive(&mut self, seq: u8, payload: &[u8], out: &mut BytesMut) -> Result<Step, HandshakeError> {
        self.check_header(payload.len(), seq)?;
        self.seq = seq.wrapping_add(1);
        match mem::replace(&mut self.state, State::Done) {
            State::Response => self.response(payload),
            State::Switched { plugin, who } => self.judge(&plugin, payload, who, false, out),
            State::Password { key_sent } => self.password(payload, key_sent, out),
            State::Greet | State::Tls | State::Identify { .. } | State::Done => Err(HandshakeError::OutOfTurn),
        }
    }

    /// After [`Step::StartTls`]: the stream is TLS from here on.
    pub fn tls_done(&mut self) {
        debug_assert!(matches!(self.state, State::Tls), "the client asked for TLS");
        self.tls = true;
        self.state = State::Response;
    }

    /// After [`Step::Identify`]: this is known about the user.
    ///
    /// # Errors
    /// If the client cannot do what would be needed.
    pub fn identified(&mut self, who: Credentials, out: &mut BytesMut) -> Result<Step, HandshakeError> {
        let State::Identify { reply, again } = mem::replace(&mut self.state, State::Done) else {
            return Err(HandshakeError::OutOfTurn);
        };
        let plugin = self.request.as_ref().map_or(Plugin::Native, |request| request.plugin.clone());
        if self.can_switch() && !self.counts(&plugin, &reply, again) {
            let plugin = if speaks(&plugin) { plugin } else { self.greeting.plugin.clone() };
            return Ok(self.switch(plugin, who, out));
        }
        self.judge(&plugin, &reply, who, again, out)
    }

    /// The number of the packet that ends the login, an OK or ERR that the caller writes.
    #[must_use]
    pub fn next_seq(&self) -> u8 {
        self.seq
    }

    /// What the client asked for; there from [`Step::Identify`] on.
    #[must_use]
    pub fn request(&self) -> Option<&LoginRequest> {
        self.request.as_ref()
    }

    /// The same, for keeping.
    #[must_use]
    pub fn into_request(self) -> Option<LoginRequest> {
        self.request
    }

    /// Whether the password is safe on this connection as it is.
    fn is_secure(&self) -> bool {
        self.tls || self.policy.local
    }

    fn offered(&self) -> CapabilityFlags {
        let mut offered = self.greeting.capabilities | LOGIN_FLAGS;
        offered.set(CapabilityFlags::CLIENT_SSL, self.policy.tls_offered);
        offered
    }

    fn can_switch(&self) -> bool {
        self.request.as_ref().is_some_and(|it| it.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH))
    }

    /// Whether the client's first reply is one at all. If it used another plugin than the greeting's (or in COM_CHANGE_USER),
    /// an empty reply is no empty password: libmysqlclient then sends nothing and waits to be asked.
    fn counts(&self, plugin: &Plugin, reply: &[u8], change: bool) -> bool {
        let asked = *plugin == self.greeting.plugin && !change;
        asked || matches!((plugin, reply.len()), (Plugin::Native, 20) | (Plugin::CachingSha2, 32))
    }

    /// The response to the greeting.
    fn response(&mut self, payload: &[u8]) -> Result<Step, HandshakeError> {
        let client = capabilities(payload).ok_or(PacketError::Wire(WireError::Truncated))?;
        if !client.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
            return Err(HandshakeError::TooOld);
        }
        if payload.len() == SslRequest::LEN && client.contains(CapabilityFlags::CLIENT_SSL) && !self.tls {
            if !self.policy.tls_offered {
                return Err(HandshakeError::TlsNotOffered);
            }
            self.state = State::Tls;
            return Ok(Step::StartTls);
        }
        if self.policy.tls_required && !self.is_secure() {
            return Err(HandshakeError::TlsRequired);
        }
        let response = HandshakeResponse::parse(payload)?;
        if !client.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) && response.plugin.is_none() {
            // Its reply is the one of mysql_old_password.
            return Err(HandshakeError::TooOld);
        }
        let request = LoginRequest::from_response(&response, self.offered(), &self.greeting.plugin);
        self.request = Some(request.map_err(|_| HandshakeError::ZstdLevel(response.zstd_level))?);
        self.state = State::Identify { reply: response.reply.to_vec(), again: false };
        Ok(Step::Identify)
    }

    /// A reply has come, made by `plugin`; `again`: a wrong one gets a second chance.
    fn judge(
        &mut self,
        plugin: &Plugin,
        reply: &[u8],
        who: Credentials,
        again: bool,
        out: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        let empty = says_empty(plugin, reply);
        match who {
            Credentials::Known(password) | Credentials::Remembered(password)
                if proves(plugin, &password, &self.salt, reply) =>
            {
                Ok(self.grant(plugin, password, out))
            }
            Credentials::Remembered(_) | Credentials::Unknown if empty => {
                Ok(Step::AskServer { password: Secret::default() })
            }
            Credentials::Remembered(_) | Credentials::Unknown => self.obtain(plugin, out),
            Credentials::Known(_) | Credentials::Nobody if again && self.can_switch() => {
                Ok(self.switch(plugin.clone(), who, out))
            }
            Credentials::Known(_) => Ok(Step::Denied { using_password: !empty }),
            Credentials::Nobody => {
                // As much work as for somebody, so that the time taken does not tell who exists.
                let _ = proves(plugin, &Secret::from("nobody"), &self.salt, reply);
                Ok(Step::Denied { using_password: !empty })
            }
        }
    }

    /// The right password. Clients of `caching_sha2_password` are told so before the OK.
    fn grant(&mut self, plugin: &Plugin, password: Secret, out: &mut BytesMut) -> Step {
        if *plugin == Plugin::CachingSha2 && !password.is_empty() {
            self.more_data(&[FAST_AUTH_SUCCESS], out);
        }
        Step::Granted(password)
    }

    /// Gets the password itself, by the one plugin that can.
    fn obtain(&mut self, plugin: &Plugin, out: &mut BytesMut) -> Result<Step, HandshakeError> {
        if *plugin == Plugin::CachingSha2 {
            self.more_data(&[FULL_AUTHENTICATION], out);
            self.state = State::Password { key_sent: false };
            return Ok(Step::Read);
        }
        if !self.can_switch() {
            return Err(HandshakeError::NoPlugins);
        }
        Ok(self.switch(Plugin::CachingSha2, Credentials::Unknown, out))
    }

    fn switch(&mut self, plugin: Plugin, who: Credentials, out: &mut BytesMut) -> Step {
        let packet = AuthSwitch { plugin: plugin.name(), data: &self.salt };
        self.seq = packet_with(out, self.seq, |out| packet.encode(out));
        self.state = State::Switched { plugin, who };
        Step::Read
    }

    /// The password in clear or encrypted, or the wish to encrypt it.
    fn password(&mut self, payload: &[u8], key_sent: bool, out: &mut BytesMut) -> Result<Step, HandshakeError> {
        if !key_sent && payload == [REQUEST_PUBLIC_KEY] {
            let keys = Arc::clone(&self.keys);
            let pair = keys.get().map_err(HandshakeError::Rsa)?;
            self.more_data(pair.public_key_pem().as_bytes(), out);
            self.state = State::Password { key_sent: true };
            return Ok(Step::Read);
        }
        if !key_sent && self.is_secure() {
            let password = payload.strip_suffix(&[0]).unwrap_or(payload);
            return Ok(Step::AskServer { password: Secret::from(password) });
        }
        let pair = self.keys.get().map_err(HandshakeError::Rsa)?;
        Ok(match pair.decrypt(payload, &self.salt) {
            Ok(password) => Step::AskServer { password },
            Err(_) => Step::Denied { using_password: true },
        })
    }

    fn more_data(&mut self, data: &[u8], out: &mut BytesMut) {
        self.seq = packet_with(out, self.seq, |out| AuthMoreData { data }.encode(out));
    }
}

/// Whether we can check this plugin's replies.
fn speaks(plugin: &Plugin) -> bool {
    matches!(plugin, Plugin::Native | Plugin::CachingSha2)
}

fn says_empty(plugin: &Plugin, reply: &[u8]) -> bool {
    match plugin {
        Plugin::CachingSha2 => caching_sha2::says_empty(reply),
        _ => reply.is_empty(),
    }
}

fn proves(plugin: &Plugin, password: &Secret, salt: &Nonce, reply: &[u8]) -> bool {
    match plugin {
        Plugin::Native => native::verify(password, salt, reply),
        Plugin::CachingSha2 => caching_sha2::verify(password, salt, reply),
        Plugin::Sha256 | Plugin::ClearPassword | Plugin::Other(_) => false,
    }
}

/// Drives a login with arbitrary packets. The first byte chooses the setting, the rest is cut into packets.
#[doc(hidden)]
pub fn fuzz_as_server(data: &[u8]) {
    // One key pair for all runs: making one takes longer than a thousand logins.
    static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(Arc::default);
    let Some((&setting, mut rest)) = data.split_first() else { return };
    let bit = |n: u8| setting & (1 << n) != 0;
    let greeting = Greeting {
        version: b"8.4.0".to_vec(),
        connection_id: 7,
        capabilities: CapabilityFlags::empty(),
        collation: 255,
        status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        plugin: if bit(0) { Plugin::Native } else { Plugin::CachingSha2 },
    };
    let policy = Policy { tls_offered: bit(1), tls_required: bit(2), local: bit(3) };
    let mut server = ServerSide::new(greeting, [7; 20], Arc::clone(&KEYS), policy);
    let mut out = BytesMut::new();
    server.greet(&mut out);
    while let Some((&len, tail)) = rest.split_first() {
        let (payload, tail) = tail.split_at(tail.len().min(len.into()));
        rest = tail;
        let seq = server.next_seq();
        let mut step = server.receive(seq, payload, &mut out);
        if let Ok(Step::Identify) = step {
            let who = match setting >> 4 & 3 {
                0 => Credentials::Known(Secret::from("secret")),
                1 => Credentials::Nobody,
                2 => Credentials::Remembered(Secret::from("secret")),
                _ => Credentials::Unknown,
            };
            step = server.identified(who, &mut out);
        }
        match step {
            Ok(Step::Read) => {}
            Ok(Step::StartTls) => server.tls_done(),
            Ok(Step::Granted(_)) => assert!(setting >> 4 & 1 == 0, "nobody who proved nothing is let in"),
            Ok(Step::Identify) => unreachable!("answered above"),
            Ok(Step::Denied { .. } | Step::AskServer { .. }) | Err(_) => return,
        }
    }
}
