//! Puts a session behind `opensrv_mysql`'s trait.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;

use async_trait::async_trait;
use opensrv_mysql::{
    AsyncMysqlShim, Column, ColumnFlags, ColumnType, ErrorKind, InitWriter, OkResponse, ParamParser, QueryResultWriter,
    StatementMetaWriter, StatusFlags, ValueInner,
};
use rand::Rng;
use sha1::{Digest, Sha1};
use tokio::io::AsyncWrite;

use super::answer::Answer;
use super::session::Session;
use super::tokens::{Kind, tokens};
use super::{PASSWORD, USER, variables};

const NONCE: usize = 20;

/// One connection.
pub(super) struct Shim {
    session: Session,
    nonce: [u8; NONCE],
    prepared: HashMap<u32, String>,
    last_prepared: u32,
}

impl Shim {
    pub(super) fn new(id: u32) -> Self {
        // A nonce must not hold a zero, which would end it early.
        let nonce = std::array::from_fn(|_| rand::rng().random_range(1..=127));
        Self { session: Session::new(id), nonce, prepared: HashMap::new(), last_prepared: 0 }
    }
}

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> AsyncMysqlShim<W> for Shim {
    type Error = io::Error;

    fn version(&self) -> String {
        variables::VERSION.into()
    }

    fn connect_id(&self) -> u32 {
        self.session.id
    }

    fn salt(&self) -> [u8; NONCE] {
        self.nonce
    }

    async fn authenticate(&self, _: &str, user: &[u8], nonce: &[u8], reply: &[u8]) -> bool {
        user == USER.as_bytes() && reply == native_reply(PASSWORD, nonce)
    }

    async fn on_prepare<'a>(&'a mut self, sql: &'a str, writer: StatementMetaWriter<'a, W>) -> io::Result<()> {
        let Some(places) = placeholders(sql) else {
            return writer.error(ErrorKind::ER_PARSE_ERROR, b"a string or a comment does not end").await;
        };
        // Only what changes nothing may be tried out to see its columns.
        let read_only = tokens(sql).is_some_and(|t| t.first().is_some_and(|t| t.is("SELECT") || t.is("SHOW")));
        let columns = if read_only {
            match self.session.answer(&filled(sql, &places, |_| "0".into())) {
                Answer::Rows { columns, .. } => columns,
                Answer::Refused(kind, text) => return writer.error(kind, text.as_bytes()).await,
                Answer::Done => Vec::new(),
            }
        } else {
            Vec::new()
        };
        self.last_prepared = self.last_prepared.wrapping_add(1);
        self.prepared.insert(self.last_prepared, sql.into());
        let params: Vec<_> = places.iter().map(|_| param()).collect();
        writer.reply(self.last_prepared, &params, &columns).await
    }

    async fn on_execute<'a>(
        &'a mut self,
        id: u32,
        params: ParamParser<'a>,
        writer: QueryResultWriter<'a, W>,
    ) -> io::Result<()> {
        let Some(sql) = self.prepared.get(&id) else {
            return writer.error(ErrorKind::ER_UNKNOWN_STMT_HANDLER, b"no such statement").await;
        };
        let values: Vec<String> = params.into_iter().map(|param| sql_literal(param.value.into_inner())).collect();
        let places = placeholders(sql).unwrap_or_default();
        let sql = filled(sql, &places, |place| values.get(place).cloned().unwrap_or_else(|| "NULL".into()));
        let answer = self.session.answer(&sql);
        send(answer, writer).await
    }

    async fn on_close<'a>(&'a mut self, id: u32)
    where
        W: 'async_trait,
    {
        self.prepared.remove(&id);
    }

    async fn on_query<'a>(&'a mut self, sql: &'a str, writer: QueryResultWriter<'a, W>) -> io::Result<()> {
        let answer = self.session.answer(sql);
        send(answer, writer).await
    }

    async fn on_init<'a>(&'a mut self, schema: &'a str, writer: InitWriter<'a, W>) -> io::Result<()> {
        match self.session.enter(schema) {
            Answer::Refused(kind, text) => writer.error(kind, text.as_bytes()).await,
            _ => writer.ok().await,
        }
    }
}

async fn send<W: AsyncWrite + Send + Unpin>(answer: Answer, writer: QueryResultWriter<'_, W>) -> io::Result<()> {
    match answer {
        Answer::Done => {
            let status_flags = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
            writer.completed(OkResponse { status_flags, ..OkResponse::default() }).await
        }
        Answer::Refused(kind, text) => writer.error(kind, text.as_bytes()).await,
        Answer::Rows { columns, rows } => {
            let mut writer = writer.start(&columns).await?;
            for row in rows {
                writer.write_row(row).await?;
            }
            writer.finish().await
        }
    }
}

/// What `mysql_native_password` answers: SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
fn native_reply(password: &str, nonce: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// Where the statement has its `?`; nothing if it cannot be read.
fn placeholders(sql: &str) -> Option<Vec<usize>> {
    let tokens = tokens(sql)?;
    Some(tokens.into_iter().filter(|token| token.kind == Kind::Sign('?')).map(|token| token.span.start).collect())
}

/// The statement with `value(n)` in the n-th place.
fn filled(sql: &str, places: &[usize], value: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut from = 0;
    for (place, at) in places.iter().enumerate() {
        text.push_str(sql.get(from..*at).unwrap_or_default());
        text.push_str(&value(place));
        from = at + 1;
    }
    text.push_str(sql.get(from..).unwrap_or_default());
    text
}

/// A value as it would stand in a statement.
fn sql_literal(value: ValueInner<'_>) -> String {
    match value {
        ValueInner::Int(number) => number.to_string(),
        ValueInner::UInt(number) => number.to_string(),
        ValueInner::Double(number) => number.to_string(),
        ValueInner::Bytes(bytes) => {
            let mut text = String::from("'");
            for c in String::from_utf8_lossy(bytes).chars() {
                if matches!(c, '\'' | '\\') {
                    text.push('\\');
                }
                // Writing to a string cannot fail.
                let _ = text.write_char(c);
            }
            text + "'"
        }
        ValueInner::NULL | ValueInner::Date(_) | ValueInner::Time(_) | ValueInner::Datetime(_) => "NULL".into(),
    }
}

fn param() -> Column {
    Column {
        table: String::new(),
        column: "?".into(),
        coltype: ColumnType::MYSQL_TYPE_VAR_STRING,
        colflags: ColumnFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_find_their_places() {
        let sql = "SELECT '?', ? FROM t WHERE id = ?";
        let places = placeholders(sql).unwrap();
        assert_eq!(filled(sql, &places, |n| n.to_string()), "SELECT '?', 0 FROM t WHERE id = 1");
        assert_eq!(placeholders("SELECT '"), None);
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(sql_literal(ValueInner::Bytes(br"it's \ x")), r"'it\'s \\ x'");
        assert_eq!(sql_literal(ValueInner::Int(-3)), "-3");
    }
}
