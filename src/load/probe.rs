//! One question to a server, before or after a run: is it ready, how many connections does it take?

use std::time::Duration;

use bytes::BytesMut;
use tokio::time::timeout;

use super::client;
use super::login;
use super::plan::Plan;
use super::report::FailureKind;
use super::turn::{Connection, Failure};
use crate::protocol::command::{Command, ReplyKind};
use crate::protocol::frame::Header;
use crate::protocol::packet::column::text_row;
use crate::protocol::response::{Body, Class, Event, Reply};

/// How long connection, login and answer may take together.
const LIMIT: Duration = Duration::from_secs(10);
/// The largest packet of an answer.
const LONGEST: usize = 1 << 20;

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProbeError {
    /// What kind of failure it was.
    pub kind: FailureKind,
    /// What happened.
    pub text: String,
}

/// Asks the target of `plan` and returns the first row's fields as text (nothing for NULL).
///
/// # Errors
/// If the server cannot be reached, does not accept the login, or answers with an error.
pub async fn first_row(plan: &Plan, sql: &str) -> Result<Vec<Option<String>>, ProbeError> {
    let asked = async {
        let mut connection = client::connect(plan, 0).await?;
        let row = ask(&mut connection, sql).await?;
        connection.quit().await;
        Ok(row)
    };
    match timeout(LIMIT, asked).await {
        Ok(Ok(row)) => Ok(row),
        Ok(Err(Failure { kind, text })) => Err(ProbeError { kind, text }),
        Err(_) => {
            let text = format!("{} did not answer within {} s", plan.target(0), LIMIT.as_secs());
            Err(ProbeError { kind: FailureKind::Connect, text })
        }
    }
}

async fn ask(connection: &mut Connection, sql: &str) -> Result<Vec<Option<String>>, Failure> {
    connection
        .send(Command::Query, |out| out.extend_from_slice(sql.as_bytes()))
        .await
        .map_err(|error| Failure::new(FailureKind::Lost, error))?;
    let mut reply = Reply::new(ReplyKind::Query, connection.deprecate_eof, connection.session_track);
    let mut input = BytesMut::new();
    let mut row = None;
    while !reply.is_done() {
        let packet = login::receive(&mut connection.stream, &mut input, LONGEST).await?;
        let header = Header { len: packet.payload.len(), seq: packet.seq };
        let class = reply.classify(header, packet.payload.first().copied()).map_err(Failure::protocol)?;
        if class == Class::Row && row.is_none() {
            let text = |field: Option<&[u8]>| field.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            row = Some(text_row(&packet.payload).map(text).collect());
        }
        if let Event::End(end) = reply.accept(class, header, &packet.payload).map_err(Failure::protocol)?
            && let Body::Err(error) = end.body
        {
            return Err(Failure::new(FailureKind::Server(error.code), String::from_utf8_lossy(error.message)));
        }
    }
    Ok(row.unwrap_or_default())
}
