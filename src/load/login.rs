//! Logging in, as an ordinary client without TLS does.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::plan::Plan;
use super::report::FailureKind;
use super::turn::{Connection, Failure};
use crate::protocol::auth::Secret;
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::frame::{self, Packet};
use crate::protocol::handshake::{ClientSide, ClientStep, LoginSpec, MAX_PACKET, TlsWish};

/// What the clients can do: what most drivers ask for.
const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);
/// `utf8mb4_general_ci`
const COLLATION: u8 = 45;

/// Logs in with the plan's account.
///
/// # Errors
/// [`FailureKind::Login`], with the server's words if it had any.
pub(super) async fn log_in(mut stream: TcpStream, plan: &Plan) -> Result<Connection, Failure> {
    let failed = |error: &dyn ToString| Failure::new(FailureKind::Login, error.to_string());
    let mut login = ClientSide::new(LoginSpec {
        user: plan.user.clone(),
        password: Secret::from(plan.password.as_str()),
        schema: plan.schema.as_ref().map(|schema| schema.clone().into_bytes()),
        collation: COLLATION,
        capabilities: CAPABILITIES,
        attributes: vec![("program_name".into(), "myriad load".into())],
        tls: TlsWish::Off,
    });
    let mut input = BytesMut::new();
    let mut output = BytesMut::new();
    loop {
        let packet = receive(&mut stream, &mut input, MAX_PACKET).await.map_err(|failure| failed(&failure.text))?;
        let step = login.receive(packet.seq, &packet.payload, &mut output).map_err(|error| failed(&error))?;
        stream.write_all(&output).await.map_err(|error| failed(&error))?;
        output.clear();
        match step {
            ClientStep::Read => {}
            ClientStep::StartTls => return Err(failed(&"TLS was not asked for")),
            ClientStep::Done => break,
        }
    }
    let agreed = login.capabilities();
    Ok(Connection {
        stream,
        deprecate_eof: agreed.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        session_track: agreed.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
    })
}

/// Reads the next whole packet; what was read beyond it stays in `input`.
///
/// # Errors
/// [`FailureKind::Lost`], [`FailureKind::Protocol`]
pub(super) async fn receive(stream: &mut TcpStream, input: &mut BytesMut, limit: usize) -> Result<Packet, Failure> {
    loop {
        let packet = frame::take_packet(input, limit).map_err(|error| Failure::new(FailureKind::Protocol, error))?;
        if let Some(packet) = packet {
            return Ok(packet);
        }
        match stream.read_buf(input).await {
            Ok(0) => return Err(Failure::new(FailureKind::Lost, "the server closed the connection")),
            Ok(_) => {}
            Err(error) => return Err(Failure::new(FailureKind::Lost, error)),
        }
    }
}
