//! Query attributes: what a client that speaks CLIENT_QUERY_ATTRIBUTES puts in front of a text.
//!
//! ```text
//!  count | sets (1) | NULL bitmap (n + 7) / 8 | types follow? 1 | n times: type 2, name | n values | text
//!                    `----------- only with n > 0 attributes, as in COM_STMT_EXECUTE ----------'
//! ```
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query.html>.

use crate::protocol::wire::{Reader, WireError};

/// What stands in front of a text that has no attributes.
pub const NONE: [u8; 2] = [0, 1];

/// More than this are not looked at: the server has a limit of 65,535 parameters.
const MOST: u64 = 65_535;

/// How long the attributes in front of a text are, behind the command's code; `None` if they are not all there, or nothing
/// that a server understands.
#[must_use]
pub fn len(argument: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(argument);
    skip(&mut reader).ok()??;
    Some(argument.len() - reader.len())
}

fn skip(reader: &mut Reader<'_>) -> Result<Option<()>, WireError> {
    let count = reader.lenenc_int()?;
    let sets = reader.lenenc_int()?;
    if sets != 1 || count > MOST {
        return Ok(None);
    }
    if count == 0 {
        return Ok(Some(()));
    }
    let count = count as usize;
    let nulls = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? == 0 {
        return Ok(None);
    }
    let mut types = Vec::new();
    for _ in 0..count {
        let [kind, _] = reader.array()?;
        reader.lenenc_bytes()?;
        types.push(kind);
    }
    for (at, kind) in types.into_iter().enumerate() {
        let is_null = nulls.get(at / 8).is_some_and(|bits| bits & (1 << (at % 8)) != 0);
        if !is_null && !skip_value(reader, kind)? {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// Skips a value of this type; false if there is no such type, or none that clients send: the server reads NULL, INT24 and
/// YEAR as strings, and where a text begins must not be a matter of opinion.
fn skip_value(reader: &mut Reader<'_>, kind: u8) -> Result<bool, WireError> {
    let fixed = match kind {
        // TINY
        1 => 1,
        // SHORT
        2 => 2,
        // LONG, FLOAT
        3 | 4 => 4,
        // DOUBLE, LONGLONG
        5 | 8 => 8,
        // DECIMAL, TIMESTAMP, DATE, TIME, DATETIME, VARCHAR, BIT, vectors, JSON, NEWDECIMAL, ENUM, SET, blobs, strings, geometry
        0 | 7 | 10 | 11 | 12 | 15 | 16 | 242 | 245..=255 => {
            reader.lenenc_bytes()?;
            return Ok(true);
        }
        _ => return Ok(false),
    };
    reader.bytes(fixed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_begins_behind_the_attributes() {
        let table: &[(&[u8], Option<usize>)] = &[
            (b"\0\x01SELECT 1", Some(2)),
            (b"\0\x01", Some(2)),
            (b"\x01\x01\0\x01\xfe\0\x01n\x03abcSELECT 1", Some(12)),
            // NULL has no value; names may be empty.
            (b"\x01\x01\x01\x01\xfe\0\0SELECT 1", Some(7)),
            (b"\x02\x01\x02\x01\x08\x80\x01a\xfd\0\x01b12345678SELECT 1", Some(20)),
            (b"\x03\x01\0\x01\x0b\0\0\x07\0\0\x01\0\0\x08abcdefgh\x04abcd1DO 1", Some(28)),
            (b"\0\x02SELECT 1", None),
            (b"\0", None),
            (b"", None),
            (b"SELECT 1", None),
            // Without types there is nothing to read values by.
            (b"\x01\x01\0\0", None),
            (b"\x01\x01\0\x01\x63\0\0SELECT 1", None),
            // To the server each of these is a string.
            (b"\x01\x01\0\x01\x06\0\0\x01ASELECT 1", None),
            (b"\x01\x01\0\x01\x09\0\0\0/* SELECT 1 -- */ DO 1", None),
            (b"\x01\x01\0\x01\x0d\0\0\x01ASELECT 1", None),
            (b"\x01\x01\x01\x01\x06\0\0SELECT 1", Some(7)),
            (b"\x01\x01\0\x01\x0c\0\0\xfc\x04\0abcdSELECT 1", Some(14)),
            (b"\x01\x01\0\x01\xfe\0\x01n\x09abc", None),
            (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", None),
        ];
        for (argument, wanted) in table {
            assert_eq!(len(argument), *wanted, "{argument:?}");
        }
    }

    #[test]
    fn however_it_is_cut_short_nothing_is_made_up() {
        let whole = b"\x02\x01\0\x01\x08\x80\x01a\xfd\0\x01b12345678\x05hello";
        for cut in 0..whole.len() {
            assert_eq!(len(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(len(whole), Some(whole.len()));
    }
}
