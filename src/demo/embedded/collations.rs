//! `information_schema.COLLATIONS`, as far as clients use it: what the numbers in handshakes mean.

use super::answer::{Answer, Value};
use super::tokens::{Kind, Token};

/// Number, character set, name.
const COLLATIONS: &[(i64, &str, &str)] = &[
    (8, "latin1", "latin1_swedish_ci"),
    (33, "utf8mb3", "utf8mb3_general_ci"),
    (45, "utf8mb4", "utf8mb4_general_ci"),
    (46, "utf8mb4", "utf8mb4_bin"),
    (63, "binary", "binary"),
    (83, "utf8mb3", "utf8mb3_bin"),
    (224, "utf8mb4", "utf8mb4_unicode_ci"),
    (255, "utf8mb4", "utf8mb4_0900_ai_ci"),
];
const COLUMNS: [&str; 3] = ["ID", "CHARACTER_SET_NAME", "COLLATION_NAME"];

/// Answers a SELECT of these three columns from that table; nothing if it is another statement.
pub(super) fn select(tokens: &[Token<'_>]) -> Option<Answer> {
    let words: Option<Vec<&str>> = tokens
        .iter()
        .filter(|token| !matches!(token.kind, Kind::Sign(',' | '.')))
        .map(|token| if let Kind::Word(word) = token.kind { Some(word) } else { None })
        .collect();
    let [_, list @ .., from, schema, table] = words.as_deref()? else { return None };
    let right = list.iter().map(|word| word.to_ascii_uppercase()).eq(COLUMNS)
        && from.eq_ignore_ascii_case("FROM")
        && schema.eq_ignore_ascii_case("information_schema")
        && table.eq_ignore_ascii_case("COLLATIONS");
    right.then(|| {
        let [id, charset, name] = COLUMNS;
        let columns = vec![
            Value::Int(0).column(id, "COLLATIONS"),
            Value::Fixed("").column(charset, "COLLATIONS"),
            Value::Fixed("").column(name, "COLLATIONS"),
        ];
        let row = |(id, charset, name): &(i64, &'static str, &'static str)| {
            vec![Value::Int(*id), Value::Fixed(charset), Value::Fixed(name)]
        };
        Answer::Rows { columns, rows: COLLATIONS.iter().map(row).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn only_this_statement_is_answered() {
        let sql = "SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS";
        let Some(Answer::Rows { columns, rows }) = select(&tokens(sql).unwrap()) else { panic!("no rows") };
        assert_eq!((columns.len(), rows.len()), (3, COLLATIONS.len()));
        for sql in ["SELECT 1", "SELECT", "SELECT ID FROM information_schema.COLLATIONS", "SELECT id FROM items"] {
            assert!(select(&tokens(sql).unwrap()).is_none(), "{sql}");
        }
    }
}
