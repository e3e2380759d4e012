//! What a client is told of the changes that the server reports: what it asked for, and what a private connection would
//! have told it unasked.
//!
//! Every backend connection tracks everything (`session_track_system_variables='*'`, state changes, transaction
//! characteristics), so what any client may want is there; the rest is left out here. What the servers do was measured
//! on MySQL 9.7 and MariaDB 10.11; the tests are from their bytes. Not reproduced: the order in which MariaDB lists
//! several variables that one statement set (it follows a hash table of the tracked names).

use bytes::BytesMut;

use super::session_track::{Change, changes};

/// Which server's habits to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MySQL 8 and later: tells explicit transactions unasked, spells variables as the client's list does, and adds a
    /// variable called `statement_id` to everything when all are tracked.
    #[default]
    MySql,
    /// MariaDB: tells what is asked for.
    MariaDb,
}

/// What a client asked to be told: its session_track_... variables. The default is the servers' own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wishes {
    flavour: Flavour,
    variables: Variables,
    schema: bool,
    state_change: bool,
    transactions: Transactions,
    gtids: bool,
}

/// session_track_system_variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Variables {
    Default,
    All,
    /// Names separated by commas, as the client wrote them.
    Listed(Box<[u8]>),
}

const DEFAULT_VARIABLES: &[u8] =
    b"time_zone,autocommit,character_set_client,character_set_results,character_set_connection";

/// The variables that say what a client is told.
const SETTINGS: [&str; 5] = [
    "session_track_system_variables",
    "session_track_schema",
    "session_track_state_change",
    "session_track_gtids",
    "session_track_transaction_info",
];

/// session_track_transaction_info.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transactions {
    Off,
    State,
    Characteristics,
}

/// What a client believes about its transaction, as far as it was told unasked (MySQL only). Belongs to the session and
/// lasts as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Told {
    explicit: Explicit,
    /// SET TRANSACTION has prepared the next transaction.
    one_shot: bool,
}

/// The explicit transaction a client knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Explicit {
    #[default]
    None,
    Begun,
    /// WITH CONSISTENT SNAPSHOT.
    Snapshot,
}

impl Default for Wishes {
    fn default() -> Self {
        Self::new(Flavour::default())
    }
}

impl Wishes {
    /// Does the client want to hear nothing of transactions?
    #[must_use]
    pub fn ignore_transactions(&self) -> bool {
        self.transactions == Transactions::Off
    }

    /// Does the client want to hear of this variable?
    #[must_use]
    pub fn hears(&self, variable: &[u8]) -> bool {
        match &self.variables {
            Variables::All => true,
            Variables::Default => names(DEFAULT_VARIABLES).any(|name| name.eq_ignore_ascii_case(variable)),
            Variables::Listed(list) => names(list).any(|name| name.eq_ignore_ascii_case(variable)),
        }
    }

    /// The defaults of a server of this flavour: the schema, and five variables.
    pub fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            variables: Variables::Default,
            schema: true,
            state_change: false,
            transactions: Transactions::Off,
            gtids: false,
        }
    }

    /// What new sessions wish for whose server has these global values; what it does not have is as by default.
    pub fn of<'a>(flavour: Flavour, global: impl Fn(&str) -> Option<&'a [u8]>) -> Self {
        let mut wishes = Self::new(flavour);
        for variable in SETTINGS {
            if let Some(value) = global(variable) {
                wishes.set(variable.as_bytes(), value);
            }
        }
        if matches!(&wishes.variables, Variables::Listed(list) if sorted(list) == sorted(DEFAULT_VARIABLES)) {
            wishes.variables = Variables::Default;
        }
        wishes
    }

    /// Notes `SET session_track_...`: `variable` and `value` as the server reported them. Other variables are ignored.
    pub fn set(&mut self, variable: &[u8], value: &[u8]) {
        let is = |name: &str| variable.eq_ignore_ascii_case(name.as_bytes());
        if is("session_track_system_variables") {
            self.variables =
                if names(value).any(|name| name == b"*") { Variables::All } else { Variables::Listed(value.into()) };
        } else if is("session_track_schema") {
            self.schema = is_on(value);
        } else if is("session_track_state_change") {
            self.state_change = is_on(value);
        } else if is("session_track_gtids") {
            self.gtids = !value.eq_ignore_ascii_case(b"OFF");
        } else if is("session_track_transaction_info") {
            self.transactions = match value {
                v if v.eq_ignore_ascii_case(b"STATE") => Transactions::State,
                v if v.eq_ignore_ascii_case(b"CHARACTERISTICS") => Transactions::Characteristics,
                _ => Transactions::Off,
            };
        }
    }

    /// The statement that makes a connection tell what this client wants, and nothing else.
    #[must_use]
    pub fn statement(&self) -> String {
        let on = |on: bool| if on { "ON" } else { "OFF" };
        let variables = match &self.variables {
            Variables::Default => "DEFAULT".to_owned(),
            Variables::All => "'*'".to_owned(),
            // In hexadecimal a list reads alike under every sql_mode and character set.
            Variables::Listed(list) if list.is_empty() => "''".to_owned(),
            Variables::Listed(list) => list.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02X}")),
        };
        let transactions = match self.transactions {
            Transactions::Off => "OFF",
            Transactions::State => "STATE",
            Transactions::Characteristics => "CHARACTERISTICS",
        };
        format!(
            "SET SESSION session_track_schema={}, session_track_state_change={}, \
             session_track_transaction_info='{transactions}', session_track_system_variables={variables}",
            on(self.schema),
            on(self.state_change),
        )
    }

    /// Appends those entries of `raw` that the client wants. Is there anything to tell? That is what
    /// SERVER_SESSION_STATE_CHANGED must say then; it may be true without a single entry, since servers do that too.
    ///
    /// Must see the changes of every OK packet of the session, in order. Stops at a malformed entry.
    pub fn filter(&self, told: &mut Told, raw: &[u8], out: &mut BytesMut) -> bool {
        let mut changed = false;
        for change in changes(raw) {
            let Ok(change) = change else { break };
            changed |= self.pass(told, change, out);
        }
        changed
    }

    /// As [`Wishes::filter`], of one entry.
    pub fn filter_one(&self, told: &mut Told, change: Change<'_>, out: &mut BytesMut) -> bool {
        self.pass(told, change, out)
    }

    fn pass(&self, told: &mut Told, change: Change<'_>, out: &mut BytesMut) -> bool {
        let wanted = match change {
            Change::Variable { name, value } => return self.pass_variable(name, value, out),
            Change::Characteristics(statements) => return self.pass_characteristics(told, statements, out),
            Change::Schema(_) => self.schema,
            Change::StateChanged(_) => self.state_change,
            Change::Gtid(_) => self.gtids,
            Change::Transaction(_) => self.transactions != Transactions::Off,
            // Not switched on by us, so on by default there.
            Change::Unknown { .. } => true,
        };
        if wanted {
            change.encode(out);
        }
        wanted
    }

    fn pass_variable(&self, name: &[u8], value: &[u8], out: &mut BytesMut) -> bool {
        let list = match &self.variables {
            Variables::All => {
                Change::Variable { name, value }.encode(out);
                return true;
            }
            Variables::Default => DEFAULT_VARIABLES,
            Variables::Listed(list) => list,
        };
        let Some(listed) = names(list).find(|listed| listed.eq_ignore_ascii_case(name)) else { return false };
        let name = if self.flavour == Flavour::MySql { listed } else { name };
        Change::Variable { name, value }.encode(out);
        true
    }

    /// Characteristics are reported where an explicit transaction starts or ends, and where SET TRANSACTION prepares one
    /// or its effect is over. A client that wants the state only is told "something changed" in each case, with the
    /// state only if that changed too.
    fn pass_characteristics(&self, told: &mut Told, statements: &[u8], out: &mut BytesMut) -> bool {
        let before = *told;
        told.explicit = Explicit::of(statements);
        told.one_shot = told.explicit == Explicit::None && !statements.is_empty();
        match self.transactions {
            Transactions::Characteristics => {
                Change::Characteristics(statements).encode(out);
                true
            }
            Transactions::State => true,
            Transactions::Off if self.flavour == Flavour::MariaDb => false,
            Transactions::Off => tell_explicit(before, *told, out),
        }
    }
}

/// What MySQL says of explicit transactions to who does not ask. Tables are not watched then, so the state shows only
/// that there is a transaction.
fn tell_explicit(before: Told, now: Told, out: &mut BytesMut) -> bool {
    if now.explicit == before.explicit {
        // One was started in another's place, or began and ended within the statement: told, without saying what. SET
        // TRANSACTION, and the end of its effect, are not told.
        return now.explicit != Explicit::None || !(now.one_shot || before.one_shot);
    }
    let state: &[u8] = match now.explicit {
        Explicit::None => b"________",
        Explicit::Begun => b"T_______",
        Explicit::Snapshot => b"T_R_____",
    };
    Change::Transaction(state).encode(out);
    true
}

impl Explicit {
    /// The transaction that these characteristics start.
    fn of(statements: &[u8]) -> Explicit {
        let holds = |what: &str| memchr::memmem::find(statements, what.as_bytes()).is_some();
        // The name of an XA transaction may hold anything, so it is looked for first.
        if holds("XA START '") {
            Explicit::Begun
        } else if holds("START TRANSACTION WITH CONSISTENT SNAPSHOT") {
            Explicit::Snapshot
        } else if holds("START TRANSACTION") {
            Explicit::Begun
        } else {
            Explicit::None
        }
    }
}

/// Which variables a list names, in order.
fn sorted(list: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<_> = names(list).collect();
    all.sort_unstable();
    all
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn is_on(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"ON") || value == b"1"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::packet::ok::OkPacket;

    /// The same statements were run on five connections, one tracking everything, four with other wishes. Each line has
    /// the statement and the OK packets that answered it on each.
    const MYSQL: &str = include_str!("../../../tests/captures/session_track_mysql.txt");
    const MARIADB: &str = include_str!("../../../tests/captures/session_track_mariadb.txt");

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    fn wishes(flavour: Flavour, set: &[(&str, &str)]) -> Wishes {
        let mut wishes = Wishes::new(flavour);
        for (name, value) in set {
            wishes.set(format!("session_track_{name}").as_bytes(), value.as_bytes());
        }
        wishes
    }

    /// The connections' wishes, in the order of the captures.
    fn captured_wishes(flavour: Flavour) -> [Wishes; 5] {
        let (list, info) = ("system_variables", "transaction_info");
        [
            wishes(flavour, &[(list, "*"), ("state_change", "ON"), (info, "CHARACTERISTICS")]),
            wishes(flavour, &[]),
            wishes(flavour, &[(list, "sql_mode , TIME_ZONE"), ("state_change", "ON")]),
            wishes(flavour, &[(list, ""), (info, "STATE")]),
            wishes(
                flavour,
                &[(list, &String::from_utf8_lossy(DEFAULT_VARIABLES)), (info, "CHARACTERISTICS"), ("schema", "OFF")],
            ),
        ]
    }

    #[test]
    fn told_as_on_a_private_connection() {
        for (flavour, capture) in [(Flavour::MySql, MYSQL), (Flavour::MariaDb, MARIADB)] {
            for (at, mut wishes) in captured_wishes(flavour).into_iter().enumerate() {
                let mut told = Told::default();
                for line in capture.lines() {
                    let columns: Vec<&str> = line.split('\t').collect();
                    for (all, expected) in columns[1].split('/').zip(columns[at + 1].split('/')) {
                        let all = hex(all);
                        let ok = OkPacket::parse(&all, true).unwrap();
                        let (mut state, mut out) = (BytesMut::new(), BytesMut::new());
                        let changed = wishes.filter(&mut told, ok.session_state, &mut state);
                        ok.with_changes(changed, &state).encode(&mut out, true);
                        assert_eq!(out, hex(expected), "{flavour:?}, connection {at}: {}", columns[0]);
                        for change in changes(ok.session_state) {
                            if let Change::Variable { name, value } = change.unwrap() {
                                wishes.set(name, value);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_heard() {
        let default = Wishes::default();
        let mut changed = default.clone();
        changed.set(b"sql_mode", b"ON");
        changed.set(b"SESSION_TRACK_SCHEMA", b"ON");
        changed.set(b"session_track_state_change", b"0");
        assert_eq!(changed, default);
        changed.set(b"session_track_state_change", b"1");
        assert_ne!(changed, default);
        let all = wishes(Flavour::MySql, &[("system_variables", "time_zone, *")]);
        assert_eq!(all.variables, Variables::All);
    }

    #[test]
    fn a_connection_can_be_told() {
        assert_eq!(
            Wishes::default().statement(),
            "SET SESSION session_track_schema=ON, session_track_state_change=OFF, \
             session_track_transaction_info='OFF', session_track_system_variables=DEFAULT"
        );
        for (list, literal) in [("*", "'*'"), ("", "''"), ("a,'", "0x612C27")] {
            let set = [("system_variables", list), ("transaction_info", "STATE"), ("state_change", "1")];
            let statement = wishes(Flavour::MariaDb, &set).statement();
            assert!(statement.ends_with(&format!("='STATE', session_track_system_variables={literal}")), "{statement}");
            assert!(statement.contains("state_change=ON"), "{statement}");
        }
    }

    #[test]
    fn statement_id_is_for_those_who_track_everything() {
        let raw = b"\0\x14\x0Cstatement_id\x06559656";
        let mut out = BytesMut::new();
        assert!(!Wishes::default().filter(&mut Told::default(), raw, &mut out));
        assert!(out.is_empty());
        let all = wishes(Flavour::MySql, &[("system_variables", "*")]);
        assert!(all.filter(&mut Told::default(), raw, &mut out));
        assert_eq!(out, raw[..]);
    }

    #[test]
    fn an_xa_name_may_hold_anything() {
        for (statements, expected) in [
            (&b"XA START 'START TRANSACTION WITH CONSISTENT SNAPSHOT';"[..], Explicit::Begun),
            (b"SET TRANSACTION READ ONLY; XA START 'x';", Explicit::Begun),
            (b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE;", Explicit::Begun),
            (b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;", Explicit::Snapshot),
            (b"SET TRANSACTION READ ONLY;", Explicit::None),
            (b"", Explicit::None),
        ] {
            assert_eq!(Explicit::of(statements), expected);
        }
    }
    #[test]
    fn new_sessions_wish_what_their_server_says() {
        let none = |_: &str| None;
        assert_eq!(Wishes::of(Flavour::MariaDb, none), Wishes::new(Flavour::MariaDb));
        let list: &[u8] = b"autocommit,character_set_client,character_set_connection,character_set_results,time_zone";
        let usual = |name: &str| (name == "session_track_system_variables").then_some(list);
        assert_eq!(Wishes::of(Flavour::MySql, usual), Wishes::new(Flavour::MySql), "in whatever order");
        let other = |name: &str| match name {
            "session_track_schema" => Some(&b"OFF"[..]),
            "session_track_system_variables" => Some(&b"time_zone"[..]),
            _ => None,
        };
        let mut wanted = Wishes::new(Flavour::MySql);
        wanted.set(b"session_track_schema", b"OFF");
        wanted.set(b"session_track_system_variables", b"time_zone");
        assert_eq!(Wishes::of(Flavour::MySql, other), wanted);
    }
}
