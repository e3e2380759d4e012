//! Binary prepared statements: they are nobody's and everybody's, and no client can tell.
//!
//! Where a [`Twin`] is used, every packet is compared with a direct connection, and somebody else uses the only backend
//! in between.

mod bulk;
mod held;
mod lost;
mod many;
mod meaning;
mod memory;
mod questions;
mod types;

use myriad::protocol::command::Command;
use myriad::protocol::packet::prepare::PrepareOk;

use crate::support::{Packets, Twin, Wire};

/// A parameter: its type, and its bytes (none: NULL).
pub(crate) type Param = (u16, Option<Vec<u8>>);

pub(crate) const LONG: u16 = 0x03;
pub(crate) const NULL: u16 = 0x06;
pub(crate) const DOUBLE: u16 = 0x05;
pub(crate) const DATE: u16 = 0x0a;
pub(crate) const BLOB: u16 = 0xfc;
pub(crate) const STRING: u16 = 0xfd;

pub(crate) fn text(text: &str) -> Param {
    let len = u8::try_from(text.len()).expect("a short text");
    (STRING, Some([&[len], text.as_bytes()].concat()))
}

pub(crate) fn long(value: i32) -> Param {
    (LONG, Some(value.to_le_bytes().to_vec()))
}

/// COM_STMT_EXECUTE's argument, with types or without.
pub(crate) fn execution(id: u32, cursor: bool, params: &[Param], types: bool) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend([u8::from(cursor), 1, 0, 0, 0]);
    if !params.is_empty() {
        let mut nulls = vec![0; params.len().div_ceil(8)];
        for (at, (_, value)) in params.iter().enumerate() {
            nulls[at / 8] |= u8::from(value.is_none()) << (at % 8);
        }
        out.extend(nulls);
        out.push(u8::from(types));
        if types {
            out.extend(params.iter().flat_map(|(kind, _)| kind.to_le_bytes()));
        }
        out.extend(params.iter().flat_map(|(_, value)| value.clone().unwrap_or_default()));
    }
    out
}

pub(crate) async fn execute(client: &mut Wire, id: u32, params: &[Param]) -> Packets {
    client.command(Command::StmtExecute, &execution(id, false, params, true)).await
}

/// The first field of the only row of an execute, as the bytes behind the row's header.
pub(crate) fn field(reply: &Packets) -> Vec<u8> {
    assert_eq!(reply.error(), None);
    let at = reply.classes.iter().position(|class| *class == myriad::protocol::response::Class::Row).expect("a row");
    reply.raw[at].1[2..].to_vec()
}

/// Executes a statement that returns one text without parameters or with some.
pub(crate) async fn one(client: &mut Wire, id: u32, params: &[Param]) -> String {
    let field = field(&execute(client, id, params).await);
    String::from_utf8_lossy(&field[1..]).into_owned()
}

impl Twin {
    /// Both prepare it and are answered the same; then somebody else has the backend.
    pub(crate) async fn prepare(&mut self, sql: &str) -> u32 {
        let reply = self.command(Command::StmtPrepare, sql.as_bytes()).await;
        reply.expect_ok();
        self.intrude().await;
        PrepareOk::parse(&reply.raw[0].1).expect("a prepared statement").statement_id
    }

    /// Both execute it and are answered the same; then somebody else has the backend.
    pub(crate) async fn execute(&mut self, id: u32, params: &[Param]) -> Packets {
        self.execute_with(id, params, true).await
    }

    pub(crate) async fn execute_with(&mut self, id: u32, params: &[Param], types: bool) -> Packets {
        let reply = self.command(Command::StmtExecute, &execution(id, false, params, types)).await;
        self.intrude().await;
        reply
    }
}
