//! What the embedded server answers, and how values go out.

use std::io::{self, Write};

use opensrv_mysql::{Column, ColumnFlags, ColumnType, ErrorKind, ToMysqlValue};

/// The answer to a statement.
#[derive(Debug)]
pub(super) enum Answer {
    /// Done, nothing to show.
    Done,
    /// A result set.
    Rows {
        /// Its columns.
        columns: Vec<Column>,
        /// Its rows, each as long as `columns`.
        rows: Vec<Vec<Value>>,
    },
    /// No.
    Refused(ErrorKind, String),
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// NULL
    Null,
    /// A whole number.
    Int(i64),
    /// Text that is always the same.
    Fixed(&'static str),
    /// Text.
    Text(String),
}

impl Value {
    /// A column of this name that fits the value.
    pub(super) fn column(&self, name: &str, table: &str) -> Column {
        Column {
            table: table.into(),
            column: name.into(),
            coltype: match self {
                Self::Int(_) => ColumnType::MYSQL_TYPE_LONGLONG,
                Self::Null | Self::Fixed(_) | Self::Text(_) => ColumnType::MYSQL_TYPE_VAR_STRING,
            },
            colflags: ColumnFlags::empty(),
        }
    }
}

impl ToMysqlValue for Value {
    fn to_mysql_text<W: Write>(&self, w: &mut W) -> io::Result<()> {
        match self {
            Self::Null => None::<i64>.to_mysql_text(w),
            Self::Int(number) => number.to_mysql_text(w),
            Self::Fixed(text) => text.to_mysql_text(w),
            Self::Text(text) => text.to_mysql_text(w),
        }
    }

    fn to_mysql_bin<W: Write>(&self, w: &mut W, column: &Column) -> io::Result<()> {
        match self {
            // NULL has its bit in the row's bitmap.
            Self::Null => Ok(()),
            Self::Int(number) => number.to_mysql_bin(w, column),
            Self::Fixed(text) => text.to_mysql_bin(w, column),
            Self::Text(text) => text.to_mysql_bin(w, column),
        }
    }

    fn is_null(&self) -> bool {
        *self == Self::Null
    }
}
