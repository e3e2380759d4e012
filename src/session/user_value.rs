//! The value of a user variable: as the server tells it, and as SQL that sets it again.
//!
//! What is written here is read under any `sql_mode` and any character set, as in `restore`. A string is written as bytes
//! behind the name of its character set, which the server checks; so one that is not well formed (a client can write
//! such) cannot be carried, nor one of a character set whose rules are not known here.

use std::fmt::Write;

use crate::protocol::packet::column::{BINARY, ColumnDefinition};
use crate::sql::Multibyte;

/// A value, NULL too: that has a type as well.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UserValue {
    kind: Kind,
    bytes: Option<Box<[u8]>>,
}

/// What a user variable can be. Dates and JSON become text, bits become numbers or binary strings.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Decimal,
    Double,
    /// MariaDB. (On MySQL it becomes a binary string.)
    Geometry,
    /// The collation, whose name begins with that of the character set; or `binary`.
    Text(Box<str>),
    /// A number that is NULL: its type, and a collation that MySQL has it keep from what it was before.
    Null(&'static str, Box<str>),
}

/// A geometry without points: any will do in front of a NULL.
const EMPTY_GEOMETRY: &[u8] = &[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0];

impl UserValue {
    /// What an answer says, in the words of [`kind`]; `None`: it cannot be set elsewhere as it is.
    pub(super) fn of(kind: &[u8], collation: &[u8], bytes: Option<&[u8]>) -> Option<Self> {
        let (kind, is_number) = match kind {
            b"signed" => (Kind::Signed, true),
            b"unsigned" => (Kind::Unsigned, true),
            b"decimal" => (Kind::Decimal, true),
            b"double" => (Kind::Double, true),
            b"geometry" => (Kind::Geometry, false),
            b"text" => (Kind::Text(std::str::from_utf8(collation).ok()?.into()), false),
            _ => return None,
        };
        let kind = match (kind, bytes) {
            (Kind::Signed, None) => Kind::Null("SIGNED", str::from_utf8(collation).ok()?.into()),
            (Kind::Decimal, None) => Kind::Null("DECIMAL", str::from_utf8(collation).ok()?.into()),
            (Kind::Double, None) => Kind::Null("DOUBLE", str::from_utf8(collation).ok()?.into()),
            (kind, _) => kind,
        };
        let bytes = match bytes {
            // Under character_set_connection=utf16, MySQL writes numbers in that.
            Some(bytes) if is_number => Some(bytes.iter().copied().filter(|byte| *byte != 0).collect()),
            other => other.map(Into::into),
        };
        let value = Self { kind, bytes };
        value.is_lasting().then_some(value)
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// What gives the variable `name` this value, as in a `SET`.
    pub(super) fn assignment(&self, name: &str) -> String {
        let mut text = format!("@`{name}`=");
        let bytes = self.bytes.as_deref();
        // Only an unsigned one may be NULL.
        let digits = String::from_utf8_lossy(bytes.unwrap_or(b"0"));
        let _ = match &self.kind {
            Kind::Signed => write!(text, "CAST('{}' AS SIGNED)", digits),
            Kind::Unsigned => write!(text, "CAST('{}' AS UNSIGNED)", digits),
            Kind::Decimal => {
                // With a point it is a decimal, without an exponent.
                let point = if digits.contains('.') { "" } else { "." };
                write!(text, "{digits}{point}")
            }
            Kind::Double => {
                let exponent = if digits.contains('e') { "" } else { "e0" };
                write!(text, "{digits}{exponent}")
            }
            Kind::Geometry => {
                let (srid, wkb) = bytes.unwrap_or(EMPTY_GEOMETRY).split_first_chunk().unwrap_or((&[0; 4], &[]));
                write!(text, "ST_GeomFromWKB({}, {})", hex(wkb), u32::from_le_bytes(*srid))
            }
            Kind::Text(collation) => write!(text, "{}", string(collation, bytes.unwrap_or_default())),
            Kind::Null(number, collation) => {
                write!(text, "{}, @`{name}`=CAST(NULL AS {number})", string(collation, b""))
            }
        };
        if bytes.is_none() && !matches!(self.kind, Kind::Null(..)) {
            // NULL alone would leave the type that the variable had.
            let _ = write!(text, ", @`{name}`=NULL");
        }
        text
    }

    /// Whether setting it may leave a warning: MySQL calls some character sets old, and checks others.
    pub(super) fn may_warn(&self) -> bool {
        match &self.kind {
            Kind::Text(collation) | Kind::Null(_, collation) => {
                !matches!(charset(collation), "utf8mb4" | "latin1" | "binary")
            }
            _ => false,
        }
    }

    /// Whether it can be set again as it is.
    fn is_lasting(&self) -> bool {
        if let Kind::Text(collation) | Kind::Null(_, collation) = &self.kind
            && !is_name(collation)
        {
            return false;
        }
        let Some(bytes) = self.bytes.as_deref() else { return true };
        let is_in = |allowed: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| allowed.contains(byte));
        match &self.kind {
            Kind::Signed | Kind::Unsigned => is_in(b"-0123456789"),
            Kind::Decimal => is_in(b"-.0123456789"),
            Kind::Double => is_in(b"-+.e0123456789"),
            Kind::Geometry => bytes.len() > 4,
            Kind::Text(collation) => is_well_formed(charset(collation), bytes),
            Kind::Null(..) => false,
        }
    }
}

/// What makes NULL of a variable, as in a `SET`, as if it had never been anything else.
pub(super) fn erasure(name: &str) -> String {
    format!("@`{name}`=_binary '', @`{name}`=NULL")
}

/// A variable that was never set, among the words of [`kind`].
pub(super) const NEVER: &str = "never";

/// What a variable is, in one word: by the column that has its type, and whether it is NULL.
pub(super) fn kind(column: &ColumnDefinition<'_>, is_null: bool) -> &'static str {
    const UNSIGNED: u16 = 32;
    match column.kind {
        1..=3 | 8 | 9 if column.flags & UNSIGNED != 0 => "unsigned",
        1..=3 | 8 | 9 => "signed",
        4 | 5 => "double",
        0 | 246 => "decimal",
        255 => "geometry",
        // MySQL says VARCHAR, MariaDB a byte more than any value may have.
        253 if is_null && column.charset == BINARY => NEVER,
        249..=252 if is_null && column.charset == BINARY && column.length == 1 << 24 => NEVER,
        15 | 249..=254 => "text",
        _ => "odd",
    }
}

fn charset(collation: &str) -> &str {
    collation.split('_').next().unwrap_or_default()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn string(collation: &str, bytes: &[u8]) -> String {
    let charset = charset(collation);
    let literal = if bytes.is_empty() { "''".to_owned() } else { hex(bytes) };
    match collation {
        "binary" => format!("_binary {literal}"),
        _ => format!("_{charset} {literal} COLLATE {collation}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02X}");
    }
    text
}

/// Whether the server takes these bytes for a string of this character set. Where in doubt, no.
fn is_well_formed(charset: &str, bytes: &[u8]) -> bool {
    match charset {
        "binary" | "latin1" | "latin2" | "latin5" | "latin7" | "cp850" | "cp852" | "cp866" | "cp1250" | "cp1251"
        | "cp1256" | "cp1257" | "koi8r" | "koi8u" | "greek" | "hebrew" | "macce" | "macroman" | "dec8" | "hp8"
        | "armscii8" | "geostd8" | "keybcs2" | "ascii" | "swe7" | "tis620" => true,
        "utf8mb4" => std::str::from_utf8(bytes).is_ok(),
        "utf8" | "utf8mb3" => std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(|c| c.len_utf8() < 4)),
        "ucs2" | "utf16" => utf16(bytes, u16::from_be_bytes, charset == "ucs2"),
        "utf16le" => utf16(bytes, u16::from_le_bytes, false),
        "sjis" | "cp932" => pairs(bytes, Multibyte::Sjis, |byte| matches!(byte, 0xa1..=0xdf)),
        "big5" => pairs(bytes, Multibyte::Big5, |_| false),
        "gbk" => pairs(bytes, Multibyte::Gbk, |_| false),
        "utf32" => bytes.is_empty(),
        _ => bytes.is_ascii(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, alone: bool) -> bool {
    let (units, rest) = bytes.as_chunks::<2>();
    let mut units = units.iter().map(|pair| unit(*pair));
    rest.is_empty()
        && if alone {
            units.all(|unit| !matches!(unit, 0xd800..=0xdfff))
        } else {
            char::decode_utf16(units).all(|c| c.is_ok())
        }
}

/// Characters of one byte below 0x80 or as `single` says, and of two.
fn pairs(bytes: &[u8], rule: Multibyte, single: impl Fn(u8) -> bool) -> bool {
    let mut bytes = bytes.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte < 0x80 || single(byte) {
            continue;
        }
        if !rule.leads(byte) || !bytes.next().is_some_and(|byte| rule.trails(byte)) {
            return false;
        }
    }
    true
}

impl std::fmt::Debug for UserValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} ", self.kind)?;
        match &self.bytes {
            Some(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            None => f.write_str("NULL"),
        }
    }
}
