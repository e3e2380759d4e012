//! Whether a name before a parenthesis is the server's own: one look into a table that is made at compile time.

use super::Mode;
use super::names as of;

/// How a name stands before its parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `name(`
    Tight,
    /// `name (`
    Apart,
    /// `` `name`( ``
    Quoted,
}

/// What the name is on one of the two families of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Function,
    Keyword,
    Tight,
}

/// A name in one of the lists.
#[derive(Clone, Copy)]
struct Entry {
    /// Which list, counted from 1; 0: no entry.
    list: u8,
    at: u16,
    len: u8,
}

struct List {
    names: &'static str,
    kind: Kind,
    mariadb: bool,
    mysql: bool,
}

const fn list(names: &'static str, kind: Kind, mariadb: bool, mysql: bool) -> List {
    List { names, kind, mariadb, mysql }
}

const LISTS: [List; 10] = [
    list(of::FUNCTIONS, Kind::Function, true, true),
    list(of::FUNCTIONS_OF_MARIADB, Kind::Function, true, false),
    list(of::FUNCTIONS_OF_MYSQL, Kind::Function, false, true),
    list(of::KEYWORDS, Kind::Keyword, true, true),
    list(of::KEYWORDS_OF_MARIADB, Kind::Keyword, true, false),
    list(of::KEYWORDS_OF_MYSQL, Kind::Keyword, false, true),
    list(of::TIGHT, Kind::Tight, true, true),
    list(of::TIGHT_OF_MARIADB, Kind::Tight, true, false),
    list(of::TIGHT_OF_MYSQL, Kind::Tight, false, true),
    list(of::GONE_FROM_MYSQL, Kind::Function, false, true),
];

/// The last of [`LISTS`]: true of older servers only.
const GONE: u8 = LISTS.len() as u8;
const GONE_SINCE: u32 = 90_000;

const SLOTS: usize = 2048;
const LONGEST: usize = 48;

/// Where to begin looking for a name, in any case (FNV-1a over its letters).
const fn slot(name: &[u8], from: usize, len: usize) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = from;
    while at < from + len {
        hash = (hash ^ (name[at] | 0x20) as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ hash >> 15) as usize % SLOTS
}

static TABLE: [Entry; SLOTS] = {
    let mut table = [Entry { list: 0, at: 0, len: 0 }; SLOTS];
    let mut list = 0;
    while list < LISTS.len() {
        let names = LISTS[list].names.as_bytes();
        let mut from = 0;
        while from < names.len() {
            let mut to = from;
            while to < names.len() && names[to] != b' ' {
                to += 1;
            }
            let mut at = slot(names, from, to - from);
            while table[at].list != 0 {
                at = (at + 1) % SLOTS;
            }
            table[at] = Entry { list: list as u8 + 1, at: from as u16, len: (to - from) as u8 };
            from = to + 1;
        }
        list += 1;
    }
    table
};

/// Whether `name`, spelled like this before a parenthesis, never is a call of a stored or loadable function.
pub(super) fn is_builtin(name: &[u8], spelling: Spelling, mode: Mode) -> bool {
    if name.is_empty() || name.len() > LONGEST {
        return false;
    }
    let mut at = slot(name, 0, name.len());
    while let Some(entry) = TABLE.get(at).filter(|entry| entry.list > 0) {
        if let Some(list) = LISTS.get(usize::from(entry.list) - 1)
            && spelled(list, *entry).eq_ignore_ascii_case(name)
            && (if mode.mariadb { list.mariadb } else { list.mysql })
            && holds(list.kind, spelling)
        {
            return if entry.list == GONE {
                mode.version < GONE_SINCE && mode.version > 0
            } else {
                is_there(name, mode)
            };
        }
        at = (at + 1) % SLOTS;
    }
    false
}

fn spelled(list: &List, entry: Entry) -> &'static [u8] {
    let from = usize::from(entry.at);
    list.names.as_bytes().get(from..from + usize::from(entry.len)).unwrap_or_default()
}

fn holds(kind: Kind, spelling: Spelling) -> bool {
    match kind {
        Kind::Function => true,
        Kind::Keyword => spelling != Spelling::Quoted,
        Kind::Tight => spelling == Spelling::Tight,
    }
}

/// Whether a server of this version has the name already.
fn is_there(name: &[u8], mode: Mode) -> bool {
    let since = if mode.mariadb { of::SINCE_OF_MARIADB } else { of::SINCE_OF_MYSQL };
    let later = since.iter().filter(|(version, _)| *version > mode.version);
    !later.flat_map(|(_, names)| names.split(' ')).any(|later| later.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tests::{MARIA, MYSQL};

    #[test]
    fn every_name_is_found_where_it_belongs() {
        for list in &LISTS[..LISTS.len() - 1] {
            let names: Vec<_> = list.names.split(' ').collect();
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
            for name in names {
                assert!(name.len() <= LONGEST && !name.bytes().any(|b| b.is_ascii_lowercase()), "{name}");
                for (mode, wanted) in [(MARIA, list.mariadb), (MYSQL, list.mysql)] {
                    let is = |spelling| is_builtin(name.to_ascii_lowercase().as_bytes(), spelling, mode);
                    if wanted {
                        assert!(is(Spelling::Tight), "{name}");
                        assert_eq!(is(Spelling::Apart), list.kind != Kind::Tight, "{name}");
                        assert_eq!(is(Spelling::Quoted), list.kind == Kind::Function, "{name}");
                    }
                    assert!(!is_builtin(format!("{name}_").as_bytes(), Spelling::Tight, mode), "{name}_");
                }
            }
        }
    }

    #[test]
    fn what_is_younger_than_the_server_may_be_anybodys() {
        let is = |name: &str, mode| is_builtin(name.as_bytes(), Spelling::Tight, mode);
        let table = [
            ("json_overlaps", Mode { version: 80_016, ..MYSQL }, false),
            ("json_overlaps", Mode { version: 80_017, ..MYSQL }, true),
            ("json_overlaps", Mode { version: 100_817, ..MARIA }, false),
            ("json_overlaps", MARIA, true),
            ("md5", Mode { version: 80_400, ..MYSQL }, true),
            ("md5", MYSQL, false),
            ("md5", Mode { version: 0, ..MYSQL }, false),
            ("md5", MARIA, true),
            ("abs", Mode { version: 0, ..MYSQL }, true),
            ("hash", MYSQL, true),
            ("hash", MARIA, false),
            ("", MYSQL, false),
        ];
        for (name, mode, wanted) in table {
            assert_eq!(is(name, mode), wanted, "{name} on {}", mode.version);
        }
    }
}
