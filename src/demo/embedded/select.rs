//! SELECT: a list of expressions, perhaps from the table, perhaps of some ids.

use std::ops::RangeInclusive;

use opensrv_mysql::{Column, ErrorKind};

use super::answer::{Answer, Value};
use super::session::{SCHEMA, Session, literal, refuse};
use super::tokens::{Kind, Token};
use super::variables::VERSION;
use super::work;

/// The only table there is.
pub(crate) const TABLE: &str = "items";
/// Its rows, with ids from 1 on.
pub(crate) const ROWS: i64 = 1000;
const COLUMNS: [&str; 3] = ["id", "name", "price"];

/// An expression of the list.
enum Item {
    /// The same in every row.
    Same(Value),
    /// A column of the table.
    Column(usize),
    /// `COUNT(*)`
    Count,
}

/// Answers `SELECT`; `tokens` are those of `sql`.
pub(super) fn select(sql: &str, tokens: &[Token<'_>], session: &Session) -> Answer {
    try_select(sql, tokens.get(1..).unwrap_or_default(), session).unwrap_or_else(|refused| refused)
}

fn try_select(sql: &str, tokens: &[Token<'_>], session: &Session) -> Result<Answer, Answer> {
    let is_end = |token: &Token<'_>| token.is("FROM") || token.is("LIMIT");
    let (list, tail) = tokens.split_at(tokens.iter().position(is_end).unwrap_or(tokens.len()));
    let mut items = Vec::new();
    let mut names = Vec::new();
    for item in list_items(list) {
        if let [Token { kind: Kind::Sign('*'), .. }] = item {
            items.extend((0..COLUMNS.len()).map(Item::Column));
            names.extend(COLUMNS.iter().map(|name| (*name).to_owned()));
            continue;
        }
        let (expression, name) = named(sql, item)?;
        items.push(expression_item(expression, session)?);
        names.push(name);
    }
    if items.is_empty() {
        return Err(Answer::Refused(ErrorKind::ER_PARSE_ERROR, "SELECT of nothing".into()));
    }
    let from_table = tail.first().is_some_and(|token| token.is("FROM"));
    let tail = if from_table { after_table(tail.get(1..).unwrap_or_default(), session)? } else { tail };
    if !from_table && items.iter().any(|item| !matches!(item, Item::Same(_))) {
        return Err(Answer::Refused(ErrorKind::ER_BAD_FIELD_ERROR, "a column without its table".into()));
    }
    let (ids, limit) = conditions(tail)?;
    Ok(rows(&items, &names, if from_table { ids } else { 0..=0 }, limit))
}

/// Splits at commas that are not inside parentheses.
fn list_items<'t, 'a>(list: &'t [Token<'a>]) -> impl Iterator<Item = &'t [Token<'a>]> {
    let mut depth = 0_usize;
    list.split(move |token| {
        match token.kind {
            Kind::Sign('(') => depth += 1,
            Kind::Sign(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.kind == Kind::Sign(',')
    })
}

/// The expression without its alias, and the name of its column.
fn named<'t, 'a>(sql: &str, item: &'t [Token<'a>]) -> Result<(&'t [Token<'a>], String), Answer> {
    if let [expression @ .., word, alias] = item
        && word.is("AS")
        && let Kind::Word(alias) = alias.kind
    {
        return Ok((expression, alias.into()));
    }
    let (Some(first), Some(last)) = (item.first(), item.last()) else { return Err(refuse()) };
    let text = sql.get(first.span.start..last.span.end).unwrap_or_default();
    Ok((item, text.trim_matches(['`', '\'', '"']).into()))
}

fn expression_item(expression: &[Token<'_>], session: &Session) -> Result<Item, Answer> {
    use Kind::{Sign, System, User, Word};
    let value = match expression {
        [Token { kind: Word(name), .. }] if column(name).is_some() => {
            return column(name).map(Item::Column).ok_or_else(refuse);
        }
        [one] if literal(one).is_some() => literal(one),
        [Token { kind: Sign('-'), .. }, Token { kind: Kind::Number(digits), .. }] => {
            format!("-{digits}").parse().ok().map(Value::Int)
        }
        [Token { kind: System(name), .. }] => {
            let unknown =
                || Answer::Refused(ErrorKind::ER_UNKNOWN_SYSTEM_VARIABLE, format!("Unknown system variable '{name}'"));
            Some(session.system(name).ok_or_else(unknown)?)
        }
        [Token { kind: User(name), .. }] => Some(session.user(name)),
        // A table's name in front of a column.
        [.., Token { kind: Sign('.'), .. }, Token { kind: Word(name), .. }] => {
            return column(name).map(Item::Column).ok_or_else(refuse);
        }
        [name, Token { kind: Sign('('), .. }, Token { kind: Sign('*'), .. }, Token { kind: Sign(')'), .. }]
            if name.is("COUNT") =>
        {
            return Ok(Item::Count);
        }
        [Token { kind: Word(name), .. }, Token { kind: Sign('('), .. }, Token { kind: Sign(')'), .. }] => {
            function(name, session)
        }
        _ => None,
    };
    value.map(Item::Same).ok_or_else(refuse)
}

fn column(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.eq_ignore_ascii_case(name))
}

fn function(name: &str, session: &Session) -> Option<Value> {
    Some(match name.to_ascii_uppercase().as_str() {
        "VERSION" => Value::Fixed(VERSION),
        "DATABASE" | "SCHEMA" => session.schema.clone().map_or(Value::Null, Value::Text),
        "CONNECTION_ID" => Value::Int(session.id.into()),
        "USER" | "CURRENT_USER" => Value::Fixed("demo@localhost"),
        "LAST_INSERT_ID" => Value::Int(0),
        _ => return None,
    })
}

/// What follows the table's name.
fn after_table<'t, 'a>(tail: &'t [Token<'a>], session: &Session) -> Result<&'t [Token<'a>], Answer> {
    let no_such = |name: &str| Answer::Refused(ErrorKind::ER_NO_SUCH_TABLE, format!("Table '{name}' doesn't exist"));
    let (schema, table, rest) = match tail {
        [
            Token { kind: Kind::Word(schema), .. },
            Token { kind: Kind::Sign('.'), .. },
            Token { kind: Kind::Word(table), .. },
            rest @ ..,
        ] => (Some(*schema), *table, rest),
        [Token { kind: Kind::Word(table), .. }, rest @ ..] => (session.schema.as_deref(), *table, rest),
        _ => return Err(refuse()),
    };
    let Some(schema) = schema else {
        return Err(Answer::Refused(ErrorKind::ER_NO_DB_ERROR, "No database selected".into()));
    };
    if !schema.eq_ignore_ascii_case(SCHEMA) || !table.eq_ignore_ascii_case(TABLE) {
        return Err(no_such(&format!("{schema}.{table}")));
    }
    Ok(rest)
}

/// Reads `[WHERE id = N | WHERE id BETWEEN A AND B] [LIMIT N]`.
fn conditions(tail: &[Token<'_>]) -> Result<(RangeInclusive<i64>, usize), Answer> {
    let number = |token: &Token<'_>| match token.kind {
        Kind::Number(digits) => digits.parse::<i64>().map_err(|_| refuse()),
        _ => Err(refuse()),
    };
    let all = 1..=ROWS;
    let (ids, tail) = match tail {
        [wher, id, Token { kind: Kind::Sign('='), .. }, n, rest @ ..] if wher.is("WHERE") && id.is("id") => {
            let n = number(n)?;
            (n..=n, rest)
        }
        [wher, id, between, low, and, high, rest @ ..]
            if wher.is("WHERE") && id.is("id") && between.is("BETWEEN") && and.is("AND") =>
        {
            (number(low)?..=number(high)?, rest)
        }
        rest => (all.clone(), rest),
    };
    let limit = match tail {
        [] => usize::MAX,
        [word, n] if word.is("LIMIT") => usize::try_from(number(n)?).map_err(|_| refuse())?,
        _ => return Err(refuse()),
    };
    Ok(((*ids.start()).max(*all.start())..=(*ids.end()).min(*all.end()), limit))
}

fn rows(items: &[Item], names: &[String], ids: RangeInclusive<i64>, limit: usize) -> Answer {
    let columns: Vec<Column> = items.iter().zip(names).map(|(item, name)| item.column(name)).collect();
    let rows = if items.iter().any(|item| matches!(item, Item::Count)) {
        let count = i64::try_from(ids.clone().count()).unwrap_or(i64::MAX);
        std::iter::once(row(items, *ids.start(), count)).take(limit).collect()
    } else {
        ids.take(limit).map(|id| row(items, id, 0)).collect()
    };
    work::work();
    Answer::Rows { columns, rows }
}

fn row(items: &[Item], id: i64, count: i64) -> Vec<Value> {
    items
        .iter()
        .map(|item| match item {
            Item::Same(value) => value.clone(),
            Item::Count => Value::Int(count),
            Item::Column(0) => Value::Int(id),
            Item::Column(1) => Value::Text(name(id)),
            Item::Column(_) => Value::Int(price(id)),
        })
        .collect()
}

/// The name in row `id`.
pub(crate) fn name(id: i64) -> String {
    format!("item {id}")
}

/// The price in row `id`.
pub(crate) fn price(id: i64) -> i64 {
    100 + id * 37 % 900
}

impl Item {
    fn column(&self, name: &str) -> Column {
        match self {
            Self::Same(value) => value.column(name, ""),
            Self::Column(1) => Value::Fixed("").column(name, TABLE),
            Self::Column(_) => Value::Int(0).column(name, TABLE),
            Self::Count => Value::Int(0).column(name, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> Vec<String> {
        let mut session = Session::new(7);
        session.enter(SCHEMA);
        match session.answer(sql) {
            Answer::Rows { columns, rows } => {
                let mut shown = vec![columns.into_iter().map(|c| c.column).collect::<Vec<_>>().join(",")];
                shown.extend(rows.into_iter().map(|row| {
                    let row = row.into_iter().map(|value| match value {
                        Value::Null => "NULL".into(),
                        Value::Int(number) => number.to_string(),
                        Value::Fixed(text) => text.into(),
                        Value::Text(text) => text,
                    });
                    row.collect::<Vec<_>>().join(",")
                }));
                shown
            }
            other => vec![format!("{other:?}")],
        }
    }

    #[test]
    fn selects() {
        let table: &[(&str, &[&str])] = &[
            ("SELECT 1", &["1", "1"]),
            ("select -5 as n, 'x', NULL", &["n,x,NULL", "-5,x,NULL"]),
            ("SELECT name, price FROM items WHERE id = 3", &["name,price", "item 3,211"]),
            (
                "SELECT * FROM demo.items WHERE id BETWEEN 999 AND 5000",
                &["id,name,price", "999,item 999,163", "1000,item 1000,200"],
            ),
            ("SELECT i.id FROM items WHERE id = 0", &["i.id"]),
            ("SELECT COUNT(*) FROM items", &["COUNT(*)", "1000"]),
            ("SELECT `id` FROM `items` LIMIT 2", &["id", "1", "2"]),
            ("select @@version_comment limit 1", &["@@version_comment", "the embedded server of Myriad's demo"]),
            ("SELECT DATABASE(), CONNECTION_ID()", &["DATABASE(),CONNECTION_ID()", "demo,7"]),
        ];
        for (sql, expected) in table {
            assert_eq!(shown(sql), *expected, "{sql}");
        }
    }

    #[test]
    fn refuses() {
        for sql in [
            "SELECT",
            "SELECT id",
            "SELECT x FROM items",
            "SELECT 1 FROM other",
            "SELECT id FROM items WHERE price = 1",
            "SELECT id FROM items GROUP BY id",
            "SELECT id FROM items WHERE id = 99999999999999999999",
            "SELECT 1,",
            "SELECT SLEEP(1)",
        ] {
            assert!(shown(sql)[0].starts_with("Refused"), "{sql}: {:?}", shown(sql));
        }
    }
}
