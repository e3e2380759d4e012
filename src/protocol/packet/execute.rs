//! The front of COM_STMT_EXECUTE, and of MariaDB's COM_STMT_BULK_EXECUTE: everything before the parameters' values.
//!
//! ```text
//!  id 4 | flags 1 | iterations 4 | NULL bitmap (n + 7) / 8 | types follow? 1 | types 2 n | values
//!                                 `------------ only with n > 0 parameters -----------'
//!  id 4 | flags 2, 128: types follow | types 2 n | rows of values, each behind a byte that tells NULL and such
//! ```
//! With CLIENT_QUERY_ATTRIBUTES the number of parameters stands in front of the bitmap, which may be larger than the
//! statement's, since attributes come behind its parameters; and behind each type its name.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html> and
//! <https://mariadb.com/kb/en/com_stmt_bulk_execute/>.

use std::borrow::Cow;
use std::ops::Range;

use bytes::BytesMut;

use crate::protocol::wire::{Reader, put_lenenc_int};

/// Where the NULL bitmap starts, behind the command's code.
const BITMAP_AT: usize = 9;

/// Where a bulk execute's flags are, and how long its front is without types.
const BULK_FLAGS_AT: usize = 4;
const BULK_FRONT: usize = 6;

/// STMT_BULK_FLAG_CLIENT_SEND_TYPES
const BULK_TYPES: u8 = 128;

/// The front of an execute, behind the command's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The statement's id.
    pub id: u32,
    /// A cursor is wanted.
    pub cursor: bool,
    /// What it says about the parameters' types.
    pub types: Types<'a>,
}

/// What an execute says about the types of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types<'a> {
    /// There are no parameters.
    None,
    /// As sent before. The front ends here, behind the byte that says so.
    Kept {
        /// The front's length.
        front: usize,
    },
    /// Two bytes for each parameter.
    Sent(Cow<'a, [u8]>),
    /// The packet is too short: the server will say so.
    Malformed,
}

impl<'a> Execute<'a> {
    /// Where the id stands, behind the command's code.
    pub const ID_AT: Range<usize> = 0..4;

    /// Reads the front of an execute of a statement with so many parameters; `None` if not even the id is there.
    /// `attributes`: it is laid out for CLIENT_QUERY_ATTRIBUTES.
    pub fn parse(argument: &'a [u8], params: u16, attributes: bool) -> Option<Self> {
        let id = u32::from_le_bytes(*argument.first_chunk()?);
        let flags = argument.get(4).copied().unwrap_or_default();
        let types = match attributes && params > 0 {
            true => Self::named_types(argument, params.into()).unwrap_or(Types::Malformed),
            false => Self::types(argument, params),
        };
        Some(Self { id, cursor: flags & 1 != 0, types })
    }

    /// An execute of our own, behind the command's code: NULLs, types and values.
    #[must_use]
    pub fn rehearsed(id: u32, (nulls, types, values): (&[u8], &[u8], &[u8]), attributes: bool) -> Vec<u8> {
        let mut out = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
        if attributes {
            let mut count = BytesMut::new();
            put_lenenc_int(&mut count, types.len() as u64 / 2);
            out.extend_from_slice(&count);
        }
        [&out, nulls, &[1], &Self::laid_out(types, attributes), values].concat()
    }

    /// The NULL bitmap of an execute, which parameters have no value.
    #[must_use]
    pub fn nulls(argument: &'a [u8], params: u16, attributes: bool) -> &'a [u8] {
        let mut reader = Reader::new(argument.get(BITMAP_AT..).unwrap_or_default());
        let count = match attributes && params > 0 {
            true => reader.lenenc_int().ok().and_then(|count| usize::try_from(count).ok()).unwrap_or_default(),
            false => params.into(),
        };
        reader.bytes(count.div_ceil(8)).unwrap_or_default()
    }

    /// The types of the statement's own parameters, without their names.
    fn named_types(argument: &'a [u8], params: usize) -> Option<Types<'a>> {
        let mut reader = Reader::new(argument.get(BITMAP_AT..)?);
        let count = usize::try_from(reader.lenenc_int().ok()?).ok()?;
        reader.bytes(count.div_ceil(8)).ok()?;
        if count < params {
            return None;
        }
        if reader.u8().ok()? == 0 {
            return (count == params).then(|| Types::Kept { front: argument.len() - reader.len() });
        }
        let mut types = Vec::with_capacity(2 * params);
        for at in 0..count {
            let code = reader.bytes(2).ok()?;
            reader.lenenc_bytes().ok()?;
            if at < params {
                types.extend_from_slice(code);
            }
        }
        Some(Types::Sent(Cow::Owned(types)))
    }

    /// The same of a bulk execute.
    pub fn parse_bulk(argument: &'a [u8], params: u16) -> Option<Self> {
        let id = u32::from_le_bytes(*argument.first_chunk()?);
        let types = match argument.get(BULK_FLAGS_AT) {
            None => Types::Malformed,
            Some(_) if argument.len() < BULK_FRONT => Types::Malformed,
            Some(flags) if flags & BULK_TYPES == 0 => Types::Kept { front: BULK_FRONT },
            Some(_) => {
                let types = argument.get(BULK_FRONT..BULK_FRONT + 2 * usize::from(params));
                types.map_or(Types::Malformed, |types| Types::Sent(Cow::Borrowed(types)))
            }
        };
        let types = if params == 0 { Types::None } else { types };
        Some(Self { id, cursor: false, types })
    }

    /// Says at the end of a front without types, behind the command's code, that they follow.
    pub fn announce_types(front: &mut [u8], bulk: bool) {
        if bulk {
            if let Some(flags) = front.get_mut(BULK_FLAGS_AT) {
                *flags |= BULK_TYPES;
            }
        } else if let Some(last) = front.last_mut() {
            *last = 1;
        }
    }

    fn types(argument: &'a [u8], params: u16) -> Types<'a> {
        if params == 0 {
            return Types::None;
        }
        let params = usize::from(params);
        let at = BITMAP_AT + params.div_ceil(8);
        match argument.get(at) {
            None => Types::Malformed,
            Some(0) => Types::Kept { front: at + 1 },
            Some(_) => argument
                .get(at + 1..at + 1 + 2 * params)
                .map_or(Types::Malformed, |types| Types::Sent(Cow::Borrowed(types))),
        }
    }

    /// The only parameter of an execute that is all there, if it is a number (or text that is one). `types`: as sent
    /// before, where they are not sent again.
    #[must_use]
    pub fn only_number(argument: &'a [u8], types: Option<&'a [u8]>) -> Option<u64> {
        let (types, at) = match Self::types(argument, 1) {
            Types::Sent(types) => (types, BITMAP_AT + 4),
            Types::Kept { front } => (Cow::Borrowed(types?), front),
            Types::None | Types::Malformed => return None,
        };
        let (kind, unsigned) = (*types.first()?, types.get(1)? & 0x80 != 0);
        let value = argument.get(at..).filter(|_| argument.get(BITMAP_AT).is_some_and(|nulls| nulls & 1 == 0))?;
        let number = match kind {
            1 if unsigned => u64::from(*value.first()?),
            1 => u64::try_from(i8::from_le_bytes(*value.first_chunk()?)).ok()?,
            2 if unsigned => u64::from(u16::from_le_bytes(*value.first_chunk()?)),
            2 => u64::try_from(i16::from_le_bytes(*value.first_chunk()?)).ok()?,
            3 | 9 if unsigned => u64::from(u32::from_le_bytes(*value.first_chunk()?)),
            3 | 9 => u64::try_from(i32::from_le_bytes(*value.first_chunk()?)).ok()?,
            8 if unsigned => u64::from_le_bytes(*value.first_chunk()?),
            8 => u64::try_from(i64::from_le_bytes(*value.first_chunk()?)).ok()?,
            15 | 0xfc..=0xfe => {
                let (len, text) = value.split_first()?;
                str::from_utf8(text.get(..usize::from(*len))?).ok()?.parse().ok()?
            }
            _ => return None,
        };
        Some(number)
    }

    /// An execute of one parameter and no attributes, laid out for CLIENT_QUERY_ATTRIBUTES, as it is without.
    #[must_use]
    pub fn of_one(argument: &[u8]) -> Option<Vec<u8>> {
        let (front, mut reader) = (argument.get(..BITMAP_AT)?, Reader::new(argument.get(BITMAP_AT..)?));
        if reader.lenenc_int().ok()? != 1 {
            return None;
        }
        let mut plain = [front, reader.bytes(2).ok()?].concat();
        if plain.last() != Some(&0) {
            plain.extend_from_slice(reader.bytes(2).ok()?);
            reader.lenenc_bytes().ok()?;
        }
        plain.extend_from_slice(reader.rest());
        Some(plain)
    }

    /// How long the front is at most; for CLIENT_QUERY_ATTRIBUTES, if there are no attributes.
    #[must_use]
    pub fn longest_front(params: u16) -> usize {
        let params = usize::from(params);
        BITMAP_AT + 3 + params.div_ceil(8) + 1 + 3 * params
    }

    /// These types as they stand in an execute.
    #[must_use]
    pub fn laid_out(types: &[u8], attributes: bool) -> Cow<'_, [u8]> {
        if !attributes {
            return Cow::Borrowed(types);
        }
        // Parameters have no names.
        types.chunks(2).flat_map(|code| code.iter().copied().chain([0])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_parameter_as_a_number() {
        let with = |rest: &[u8]| [FIXED, rest].concat();
        for (rest, types, wanted) in [
            (&b"\0\x01\x03\0\x05\0\0\0"[..], None, Some(5)),
            (b"\0\x01\x03\0\xff\xff\xff\xff", None, None),
            (b"\0\x01\x03\x80\xff\xff\xff\xff", None, Some(4_294_967_295)),
            (b"\0\x01\x01\0\x07", None, Some(7)),
            (b"\0\x01\x02\x80\x01\x01", None, Some(257)),
            (b"\0\x01\x08\0\x01\0\0\0\x01\0\0\0", None, Some(4_294_967_297)),
            (b"\0\x01\x08\0\x01\0\0\0\x01\0\0", None, None),
            (b"\0\x01\xfd\0\x0242", None, Some(42)),
            (b"\0\x01\xfd\0\x0342", None, None),
            (b"\0\x01\xfd\0\x024x", None, None),
            (b"\x01\x01\x06\0", None, None),
            (b"\0\x01\x05\0\0\0\0\0\0\0\0\0", None, None),
            (b"\0\0\x05\0\0\0", Some(&b"\x03\0"[..]), Some(5)),
            (b"\0\0\x05\0\0\0", None, None),
            (b"", None, None),
        ] {
            assert_eq!(Execute::only_number(&with(rest), types), wanted, "{rest:?}");
        }
    }

    const FIXED: &[u8] = b"\x07\0\0\0\x01\x01\0\0\0";

    #[test]
    fn types_are_sent_kept_or_cut_short() {
        let with = |rest: &[u8]| [FIXED, rest].concat();
        for (params, rest, wanted) in [
            (0, &b""[..], Types::None),
            (0, b"\0\x01", Types::None),
            (2, b"\0\x01\xfd\0\x03\x80values", Types::Sent(Cow::Borrowed(b"\xfd\0\x03\x80"))),
            (2, b"\0\x01\xfd\0\x03", Types::Malformed),
            (2, b"\0\0values", Types::Kept { front: 11 }),
            (8, b"\0\0", Types::Kept { front: 11 }),
            (9, b"\0\0\0", Types::Kept { front: 12 }),
            (9, b"\0\0", Types::Malformed),
            (2, b"", Types::Malformed),
        ] {
            let bytes = with(rest);
            let execute = Execute::parse(&bytes, params, false).unwrap();
            assert_eq!(execute, Execute { id: 7, cursor: true, types: wanted }, "{params} {rest:?}");
            assert!(bytes.len() <= Execute::longest_front(params) + 6);
        }
        let bulk = |rest: &'static [u8], params| Execute::parse_bulk(rest, params).map(|it| it.types);
        assert_eq!(bulk(b"\x07\0\0\0\x80\0\x03\0\xfd\0\0row", 2), Some(Types::Sent(Cow::Borrowed(b"\x03\0\xfd\0"))));
        assert_eq!(bulk(b"\x07\0\0\0\x80\0\x03\0\xfd", 2), Some(Types::Malformed));
        assert_eq!(bulk(b"\x07\0\0\0\0\0row", 2), Some(Types::Kept { front: 6 }));
        assert_eq!((bulk(b"\x07\0\0\0\0", 1), bulk(b"\x07\0\0", 1)), (Some(Types::Malformed), None));
        assert_eq!(Execute::parse(b"\x01\0\0", 0, false), None);
        let short = Execute::parse(b"\x01\0\0\0", 0, false).unwrap();
        assert_eq!(short, Execute { id: 1, cursor: false, types: Types::None });
    }

    #[test]
    fn types_of_parameters_stand_between_their_names_and_in_front_of_attributes() {
        for (params, rest, wanted) in [
            (0, &b"\x01\0\x01\xfe\0\x01nvalue"[..], Types::None),
            (2, b"\x02\0\x01\xfd\0\0\x03\x80\0values", Types::Sent(Cow::Borrowed(&b"\xfd\0\x03\x80"[..]))),
            (1, b"\x02\0\x01\xfd\0\0\x03\x80\x01nvalues", Types::Sent(Cow::Borrowed(b"\xfd\0"))),
            (2, b"\x02\0\0values", Types::Kept { front: 12 }),
            (1, b"\x02\0\0values", Types::Malformed),
            (3, b"\x02\0\x01\xfd\0\0\x03\x80\0values", Types::Malformed),
            (2, b"\x02\0\x01\xfd\0\0\x03", Types::Malformed),
            (2, b"", Types::Malformed),
        ] {
            let bytes = [FIXED, rest].concat();
            let execute = Execute::parse(&bytes, params, true).unwrap();
            assert_eq!(execute, Execute { id: 7, cursor: true, types: wanted }, "{params} {rest:?}");
        }
        let one = [FIXED, b"\x01\0\x01\x08\0\0abcdefgh"].concat();
        assert_eq!(Execute::of_one(&one).as_deref(), Some(&*[FIXED, b"\0\x01\x08\0abcdefgh"].concat()));
        let kept = [FIXED, b"\x01\0\0abcdefgh"].concat();
        assert_eq!(Execute::of_one(&kept).as_deref(), Some(&*[FIXED, b"\0\0abcdefgh"].concat()));
        assert_eq!(Execute::of_one(&[FIXED, b"\x02\0\x01"].concat()), None);
        assert_eq!(*Execute::laid_out(b"\xfd\0\x03\x80", true), *b"\xfd\0\0\x03\x80\0");
        assert_eq!(*Execute::laid_out(b"\xfd\0\x03\x80", false), *b"\xfd\0\x03\x80");
    }
}
