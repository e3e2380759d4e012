//! `KILL` of what must be found out first: an expression, a query by its number, a user's threads.

use super::tape::{Lexeme, Tape};
use super::{Mode, Word};

/// Whom a `KILL` that names no number means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The thread whose number this expression is.
    Thread(Vec<u8>),
    /// `QUERY ID ..` (MariaDB): the thread that runs the query whose number this expression is.
    Query(Vec<u8>),
    /// `USER name[@host]` (MariaDB): all threads of this user. A host of `%` is none.
    User {
        /// The user's name; none for `CURRENT_USER`.
        name: Option<Vec<u8>>,
        /// Where the user comes from.
        host: Option<Vec<u8>>,
    },
    /// A form that is not understood.
    Unclear,
}

/// Reads a text that is one `KILL` ([`Effects::kill`](super::Effects::kill)).
#[must_use]
pub fn kill_whom(text: &[u8], mode: Mode) -> Whom {
    let (_, mut lexemes) = Tape::of(text, mode);
    let end = lexemes.iter().find(|lexeme| lexeme.is_sign(b';')).map_or(text.len(), |lexeme| lexeme.start);
    lexemes.retain(|lexeme| lexeme.start < end);
    let [kill, rest @ ..] = lexemes.as_slice() else { return Whom::Unclear };
    if kill.word != Word::Kill {
        return Whom::Unclear;
    }
    let rest = match rest {
        [how, rest @ ..] if mode.mariadb && matches!(how.word, Word::Hard | Word::Soft) => rest,
        _ => rest,
    };
    let (query, rest) = match rest {
        [what, rest @ ..] if matches!(what.word, Word::Query | Word::Connection) => (what.word == Word::Query, rest),
        _ => (false, rest),
    };
    let from = |rest: &[Lexeme]| rest.first().and_then(|first| text.get(first.start..end)).map(<[u8]>::to_vec);
    match rest {
        [id, rest @ ..] if mode.mariadb && query && id.is(text, "ID") && !rest.is_empty() => {
            from(rest).map_or(Whom::Unclear, Whom::Query)
        }
        [user, rest @ ..] if mode.mariadb && user.is(text, "USER") => {
            from(rest).map_or(Whom::Unclear, |it| of_user(&it))
        }
        rest => Whom::Thread(from(rest).unwrap_or_default()),
    }
}

/// `name`, `name@host` or `CURRENT_USER`, each part in quotes or not.
fn of_user(text: &[u8]) -> Whom {
    let text = text.trim_ascii();
    let folded = text.to_ascii_uppercase();
    if matches!(folded.as_slice(), b"CURRENT_USER" | b"CURRENT_USER()") {
        return Whom::User { name: None, host: None };
    }
    let Some((name, rest)) = part(text) else { return Whom::Unclear };
    let host = match rest.trim_ascii_start() {
        [] => None,
        [b'@', host @ ..] => match part(host.trim_ascii_start()) {
            Some((host, [])) => Some(host),
            _ => return Whom::Unclear,
        },
        _ => return Whom::Unclear,
    };
    let host = host.filter(|host| host != b"%");
    Whom::User { name: Some(name), host }
}

/// A name at the front, and what follows it. One with an escaped character is not understood.
fn part(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (quote, rest) = text.split_first()?;
    if matches!(quote, b'\'' | b'"' | b'`') {
        let len = rest.iter().position(|byte| byte == quote)?;
        let (name, behind) = (rest.get(..len)?, rest.get(len + 1..)?);
        let plain = !name.contains(&b'\\') && behind.first() != Some(quote);
        return plain.then(|| (name.to_vec(), behind));
    }
    let belongs =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-') || *byte >= 0x80;
    let len = text.iter().position(|byte| !belongs(byte)).unwrap_or(text.len());
    let (name, behind) = text.split_at_checked(len)?;
    (len > 0).then(|| (name.to_vec(), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whom(text: &str) -> Whom {
        kill_whom(text.as_bytes(), Mode { mariadb: true, ..Mode::default() })
    }

    #[test]
    fn expressions_queries_and_users_are_told_apart() {
        let thread = |text: &str| Whom::Thread(text.into());
        assert_eq!(whom("KILL @id"), thread("@id"));
        assert_eq!(whom("kill /* this */ QUERY (SELECT 1) + 2 ; "), thread("(SELECT 1) + 2 "));
        assert_eq!(whom("KILL HARD CONNECTION CONNECTION_ID()"), thread("CONNECTION_ID()"));
        assert_eq!(whom("KILL ID 5"), thread("ID 5"));
        assert_eq!(whom("KILL QUERY ID"), thread("ID"));
        assert_eq!(whom("KILL SOFT QUERY ID @q -- now"), Whom::Query("@q -- now".into()));
        assert_eq!(whom("KILL"), thread(""));
        assert_eq!(whom("SELECT 1"), Whom::Unclear);
        let mysql = |text: &str| kill_whom(text.as_bytes(), Mode::default());
        assert_eq!(mysql("KILL USER()"), thread("USER()"));
        assert_eq!(mysql("KILL QUERY ID 5"), thread("ID 5"));
    }

    #[test]
    fn users_are_named_in_many_ways() {
        let user = |name: &str, host: Option<&str>| Whom::User { name: Some(name.into()), host: host.map(Into::into) };
        assert_eq!(whom("KILL USER app"), user("app", None));
        assert_eq!(whom("KILL HARD QUERY USER 'the app'@'%';"), user("the app", None));
        assert_eq!(whom("KILL USER `app`@localhost"), user("app", Some("localhost")));
        assert_eq!(whom("KILL USER \"app\" @ 10.0.0.1"), user("app", Some("10.0.0.1")));
        assert_eq!(whom("KILL USER CURRENT_USER"), Whom::User { name: None, host: None });
        for odd in ["KILL USER 'a''b'", "KILL USER 'a\\'b'", "KILL USER app x", "KILL USER @a", "KILL USER app@"] {
            assert_eq!(whom(odd), Whom::Unclear, "{odd}");
        }
    }
}
