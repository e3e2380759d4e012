//! Column definitions and text rows: for answers given by the proxy itself, and for results of its own statements.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html>.

use bytes::{BufMut, BytesMut};
use mysql_common::constants::{ColumnFlags, ColumnType};

use super::PacketError;
use crate::protocol::wire::{Reader, put_lenenc_bytes};

/// The number of collation `utf8mb4_general_ci`, which both servers know.
pub const UTF8MB4: u16 = 45;
/// The number of collation `binary`: numbers and dates.
pub const BINARY: u16 = 63;

/// A column definition (protocol 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Schema of the table.
    pub schema: &'a [u8],
    /// Table, as the statement calls it.
    pub table: &'a [u8],
    /// Table, as it is stored.
    pub org_table: &'a [u8],
    /// Column, as the statement calls it.
    pub name: &'a [u8],
    /// Column, as it is stored.
    pub org_name: &'a [u8],
    /// Number of the collation.
    pub charset: u16,
    /// Longest value, in bytes.
    pub length: u32,
    /// Type of the values (`mysql_common::constants::ColumnType`).
    pub kind: u8,
    /// `mysql_common::constants::ColumnFlags`.
    pub flags: u16,
    /// Digits after the point; 31 where that makes no sense for a number, 0 for text.
    pub decimals: u8,
}

impl<'a> ColumnDefinition<'a> {
    /// A column of text, of up to `chars` characters.
    pub fn text(name: &'a str, chars: u32) -> Self {
        let length = chars.saturating_mul(4);
        Self::of(name, UTF8MB4, length, ColumnType::MYSQL_TYPE_VAR_STRING, ColumnFlags::NOT_NULL_FLAG, 31)
    }

    /// A column of whole numbers.
    pub fn number(name: &'a str) -> Self {
        let flags = ColumnFlags::NOT_NULL_FLAG.union(ColumnFlags::BINARY_FLAG);
        Self::of(name, BINARY, 21, ColumnType::MYSQL_TYPE_LONGLONG, flags, 0)
    }

    fn of(name: &'a str, charset: u16, length: u32, kind: ColumnType, flags: ColumnFlags, decimals: u8) -> Self {
        let (name, none) = (name.as_bytes(), &b""[..]);
        Self {
            schema: none,
            table: none,
            org_table: none,
            name,
            org_name: none,
            charset,
            length,
            kind: kind as u8,
            flags: flags.bits(),
            decimals,
        }
    }

    /// The length of what follows the strings.
    const FIXED: usize = 12;

    /// Reads a payload. What COM_FIELD_LIST appends (a default value) is ignored, if it is short.
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        reader.lenenc_bytes()?; // the catalog, always "def"
        let schema = reader.lenenc_bytes()?;
        let table = reader.lenenc_bytes()?;
        let org_table = reader.lenenc_bytes()?;
        let name = reader.lenenc_bytes()?;
        let org_name = reader.lenenc_bytes()?;
        // What MariaDB's extended metadata says of the type stands before the rest, which has always the same length.
        let mut ahead = Reader::new(reader.rest());
        if ahead.lenenc_bytes().is_ok() && ahead.len() > Self::FIXED {
            reader.lenenc_bytes()?;
        }
        let mut fixed = Reader::new(reader.lenenc_bytes()?);
        let charset = fixed.u16()?;
        let length = fixed.u32()?;
        let kind = fixed.u8()?;
        let flags = fixed.u16()?;
        let decimals = fixed.u8()?;
        Ok(Self { schema, table, org_table, name, org_name, charset, length, kind, flags, decimals })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        put_lenenc_bytes(out, b"def");
        for string in [self.schema, self.table, self.org_table, self.name, self.org_name] {
            put_lenenc_bytes(out, string);
        }
        out.put_u8(12); // the length of what follows
        out.put_u16_le(self.charset);
        out.put_u32_le(self.length);
        out.put_u8(self.kind);
        out.put_u16_le(self.flags);
        out.put_u8(self.decimals);
        out.put_u16_le(0); // filler
    }
}

/// The fields of a text row, `None` for NULL. Ends early where the payload is malformed.
pub fn text_row(payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut reader = Reader::new(payload);
    std::iter::from_fn(move || if reader.is_empty() { None } else { reader.lenenc_nullable().ok() })
}

/// Appends the payload of a text row.
pub fn put_text_row<'f>(out: &mut BytesMut, fields: impl IntoIterator<Item = Option<&'f [u8]>>) {
    for field in fields {
        match field {
            Some(value) => put_lenenc_bytes(out, value),
            None => out.put_u8(0xFB),
        }
    }
}

/// Appends the payload of a binary row of columns of these types, from values as text. Whole numbers and text only.
///
/// See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>.
pub fn put_binary_row<'f>(out: &mut BytesMut, kinds: &[u8], fields: impl Iterator<Item = Option<&'f [u8]>>) {
    let mut values = BytesMut::new();
    // The first two bits are not used.
    let mut nulls = vec![0_u8; (kinds.len() + 9) / 8];
    for (at, (kind, field)) in kinds.iter().zip(fields).enumerate() {
        let Some(text) = field else {
            if let Some(byte) = nulls.get_mut((at + 2) / 8) {
                *byte |= 1 << ((at + 2) % 8);
            }
            continue;
        };
        let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        match *kind {
            kind if kind == ColumnType::MYSQL_TYPE_LONG as u8 => values.put_i32_le(number() as i32),
            kind if kind == ColumnType::MYSQL_TYPE_LONGLONG as u8 => values.put_i64_le(number()),
            _ => put_lenenc_bytes(&mut values, text),
        }
    }
    out.put_u8(0);
    out.extend_from_slice(&nulls);
    out.extend_from_slice(&values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_definitions() {
        // `SELECT * FROM cap_t`, its column `id`, from MySQL; then the same from COM_FIELD_LIST.
        let bytes = b"\x03def\x04test\x05cap_t\x05cap_t\x02id\x02id\x0C\x3F\0\x0B\0\0\0\x03\x03\x42\0\0\0";
        let column = ColumnDefinition::parse(bytes).unwrap();
        let expected = ColumnDefinition {
            schema: b"test",
            table: b"cap_t",
            org_table: b"cap_t",
            name: b"id",
            org_name: b"id",
            charset: BINARY,
            length: 11,
            kind: ColumnType::MYSQL_TYPE_LONG as u8,
            flags: 0x4203,
            decimals: 0,
        };
        assert_eq!(column, expected);
        let mut out = BytesMut::new();
        column.encode(&mut out);
        assert_eq!(out, bytes[..]);
        assert_eq!(ColumnDefinition::parse(&[bytes, &b"\x010"[..]].concat()), Ok(expected));
        for len in 0..bytes.len() {
            assert!(ColumnDefinition::parse(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn extended_definitions() {
        // `SELECT j, ls FROM t` from MariaDB: a JSON column, and one whose extension is as long as the fixed part.
        let end = b"\x0C\x3F\0\xFF\xFF\xFF\xFF\xFF\x90\0\0\0\0";
        for (name, extension) in [("j", &b"\x06\x01\x04json"[..]), ("ls", b"\x0C\x00\x0Alinestring"), ("n", b"\0")] {
            let mut bytes = b"\x03def\x04test\x01t\x01t".to_vec();
            for _ in 0..2 {
                bytes.push(name.len() as u8);
                bytes.extend_from_slice(name.as_bytes());
            }
            let plain = [&bytes[..], end].concat();
            bytes.extend_from_slice(extension);
            bytes.extend_from_slice(end);
            assert_eq!(ColumnDefinition::parse(&bytes), ColumnDefinition::parse(&plain), "{name}");
            assert_eq!(ColumnDefinition::parse(&bytes).unwrap().kind, 0xFF);
        }
    }

    #[test]
    fn own_definitions() {
        for column in [ColumnDefinition::text("Variable_name", 64), ColumnDefinition::number("Value")] {
            let mut out = BytesMut::new();
            column.encode(&mut out);
            assert_eq!(ColumnDefinition::parse(&out), Ok(column));
        }
        assert_eq!(ColumnDefinition::text("a", 64).length, 256);
    }

    #[test]
    fn binary_rows() {
        let kinds = [0xFD, 3, 8, 3, 0xFD, 0xFD, 0xFD];
        let fields = [Some(&b"ab"[..]), Some(b"1292"), Some(b"-2"), None, None, None, Some(b"")];
        let mut out = BytesMut::new();
        put_binary_row(&mut out, &kinds, fields.into_iter());
        assert_eq!(out, b"\0\xE0\0\x02ab\x0C\x05\0\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0"[..]);
    }

    #[test]
    fn text_rows() {
        let fields = [Some(&b"ab"[..]), None, Some(b""), Some(&[b'x'; 300])];
        let mut out = BytesMut::new();
        put_text_row(&mut out, fields);
        assert_eq!(out[..8], b"\x02ab\xFB\0\xFC\x2C\x01"[..]);
        assert!(text_row(&out).eq(fields));
        assert_eq!(text_row(b"").count(), 0);
        let cut: Vec<_> = text_row(b"\x01a\x05b").collect();
        assert_eq!(cut, [Some(&b"a"[..])]);
        assert_eq!(text_row(b"\xFF\x01a").count(), 0);
    }
}
