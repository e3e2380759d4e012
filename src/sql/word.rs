//! The words that matter: keywords, functions and variables with an effect on the session.

/// Longest word that is kept: a name has at most 64 characters, and the names that matter are ASCII.
pub(super) const LONGEST: usize = 64;

/// Longest word in the list below.
const LONGEST_KNOWN: usize = 29;

macro_rules! words {
    ($($name:ident $text:literal),+ $(,)?) => {
        /// A word with a meaning to this room.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is named after its text")]
        #[repr(u8)]
        pub enum Word {
            /// No word at all (an empty text).
            #[default]
            None,
            /// Any word not listed here.
            Other,
            $($name),+
        }

        impl Word {
            /// Every known word with its text in upper case.
            const KNOWN: &'static [(&'static [u8], Self)] = &[$(($text, Self::$name)),+];
        }
    };
}

/// Where to begin looking for a word of this spelling (in any case).
const fn slot(text: &[u8]) -> usize {
    let len = text.len();
    let (first, middle, late, last) =
        (fold(text[0]), fold(text[len / 2]), fold(text[len * 3 / 4]), fold(text[len - 1]));
    (len * 37 + first * 17 + middle * 113 + late * 61 + last * 7) % SLOTS
}

/// Letters of either case alike.
const fn fold(byte: u8) -> usize {
    (byte | 0x20) as usize
}

const SLOTS: usize = 1024;
const EMPTY: u8 = u8::MAX;

/// Positions in [`Word::KNOWN`], by [`slot`]; the next free one where that is taken.
static TABLE: [u8; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut n = 0;
    while n < Word::KNOWN.len() {
        let mut at = slot(Word::KNOWN[n].0);
        while table[at] != EMPTY {
            at = (at + 1) % SLOTS;
        }
        table[at] = n as u8;
        n += 1;
    }
    table
};

impl Word {
    /// Looks up a word, in any case.
    pub(super) fn of(text: &[u8]) -> Self {
        if text.len() < 2 || text.len() > LONGEST_KNOWN {
            return Self::Other;
        }
        let mut at = slot(text);
        while let Some((known, word)) = Self::KNOWN.get(usize::from(TABLE[at])) {
            if text.eq_ignore_ascii_case(known) {
                return *word;
            }
            at = (at + 1) % SLOTS;
        }
        Self::Other
    }
}

words! {
    // What begins a statement.
    Alter b"ALTER", Analyze b"ANALYZE", Backup b"BACKUP", Begin b"BEGIN", Binlog b"BINLOG", Call b"CALL",
    Case b"CASE", Commit b"COMMIT", Create b"CREATE", Deallocate b"DEALLOCATE", Declare b"DECLARE",
    Delete b"DELETE", Desc b"DESC", Describe b"DESCRIBE", Do b"DO", Drop b"DROP", Execute b"EXECUTE",
    Explain b"EXPLAIN", Flush b"FLUSH", For b"FOR", Get b"GET", Grant b"GRANT", Handler b"HANDLER", If b"IF",
    Insert b"INSERT", Kill b"KILL", Load b"LOAD", Lock b"LOCK", Loop b"LOOP", Optimize b"OPTIMIZE",
    Prepare b"PREPARE", Release b"RELEASE", Rename b"RENAME", Repeat b"REPEAT", Replace b"REPLACE",
    Revoke b"REVOKE", Rollback b"ROLLBACK", Savepoint b"SAVEPOINT", Select b"SELECT", Set b"SET", Show b"SHOW",
    Start b"START", Table b"TABLE", Truncate b"TRUNCATE", Unlock b"UNLOCK", Update b"UPDATE", Use b"USE",
    Values b"VALUES", While b"WHILE", With b"WITH", Work b"WORK", Xa b"XA",
    // What follows.
    As b"AS", Authorization b"AUTHORIZATION", Char b"CHAR", Character b"CHARACTER", Charset b"CHARSET", Close b"CLOSE",
    Connection b"CONNECTION", Continue b"CONTINUE", Count b"COUNT", Default b"DEFAULT", Diagnostics b"DIAGNOSTICS", Dual b"DUAL", End b"END",
    Errors b"ERRORS", Exists b"EXISTS", Exit b"EXIT", Export b"EXPORT", From b"FROM", Function b"FUNCTION", Global b"GLOBAL", Group b"GROUP", Hard b"HARD", Id b"ID",
    Instance b"INSTANCE", Into b"INTO", Limit b"LIMIT", Local b"LOCAL", Names b"NAMES", Next b"NEXT", Not b"NOT", Offset b"OFFSET",
    Open b"OPEN", OptimizerCosts b"OPTIMIZER_COSTS", Or b"OR",
    Password b"PASSWORD", Persist b"PERSIST", PersistOnly b"PERSIST_ONLY", Previous b"PREVIOUS", Privileges b"PRIVILEGES",
    Query b"QUERY",
    Procedure b"PROCEDURE", Recursive b"RECURSIVE", Resource b"RESOURCE", Role b"ROLE", Row b"ROW", Session b"SESSION", Soft b"SOFT",
    SqlCalcFoundRows b"SQL_CALC_FOUND_ROWS", Stage b"STAGE", Statement b"STATEMENT", Status b"STATUS", Tables b"TABLES",
    Temporary b"TEMPORARY", To b"TO", Transaction b"TRANSACTION", User b"USER",
    UserResources b"USER_RESOURCES", Value b"VALUE", Variables b"VARIABLES", Warnings b"WARNINGS",
    // Functions.
    ConnectionId b"CONNECTION_ID", Currval b"CURRVAL", FoundRows b"FOUND_ROWS", GetLock b"GET_LOCK",
    LastInsertId b"LAST_INSERT_ID", Lastval b"LASTVAL", Nextval b"NEXTVAL", ReleaseAllLocks b"RELEASE_ALL_LOCKS",
    ReleaseLock b"RELEASE_LOCK", RowCount b"ROW_COUNT", Rowcount b"ROWCOUNT",
    ServiceGetReadLocks b"SERVICE_GET_READ_LOCKS", ServiceGetWriteLocks b"SERVICE_GET_WRITE_LOCKS", Setval b"SETVAL",
    VersionTokensLockExclusive b"VERSION_TOKENS_LOCK_EXCLUSIVE", VersionTokensLockShared b"VERSION_TOKENS_LOCK_SHARED",
    // Variables.
    CharacterSetClient b"CHARACTER_SET_CLIENT", CharacterSetConnection b"CHARACTER_SET_CONNECTION",
    CharacterSetResults b"CHARACTER_SET_RESULTS", CollationConnection b"COLLATION_CONNECTION",
    ErrorCount b"ERROR_COUNT", GtidNext b"GTID_NEXT", GtidSeqNo b"GTID_SEQ_NO", Identity b"IDENTITY",
    ImmediateServerVersion b"IMMEDIATE_SERVER_VERSION", InsertId b"INSERT_ID",
    OriginalCommitTimestamp b"ORIGINAL_COMMIT_TIMESTAMP", OriginalServerVersion b"ORIGINAL_SERVER_VERSION",
    PseudoReplicaMode b"PSEUDO_REPLICA_MODE", PseudoSlaveMode b"PSEUDO_SLAVE_MODE",
    PseudoThreadId b"PSEUDO_THREAD_ID", RandSeed1 b"RAND_SEED1", RandSeed2 b"RAND_SEED2", SqlMode b"SQL_MODE", Timestamp b"TIMESTAMP",
    TransactionIsolation b"TRANSACTION_ISOLATION", TransactionReadOnly b"TRANSACTION_READ_ONLY",
    TxIsolation b"TX_ISOLATION", TxReadOnly b"TX_READ_ONLY", WarningCount b"WARNING_COUNT",
}

impl Word {
    /// A function with an effect or an answer of the session's.
    pub(super) const fn is_function(self) -> bool {
        matches!(
            self,
            Self::ConnectionId
                | Self::FoundRows
                | Self::GetLock
                | Self::LastInsertId
                | Self::Lastval
                | Self::Nextval
                | Self::ReleaseAllLocks
                | Self::ReleaseLock
                | Self::RowCount
                | Self::ServiceGetReadLocks
                | Self::ServiceGetWriteLocks
                | Self::Setval
                | Self::VersionTokensLockExclusive
                | Self::VersionTokensLockShared
        )
    }

    /// Begins one of MariaDB's statements that hold others.
    pub(super) const fn begins_compound(self) -> bool {
        matches!(self, Self::Case | Self::Declare | Self::For | Self::If | Self::Loop | Self::Repeat | Self::While)
    }

    /// A variable that decides how the next text is read.
    pub(super) const fn changes_lexing(self) -> bool {
        matches!(self, Self::SqlMode | Self::CharacterSetClient)
    }

    /// A variable of the character sets' group.
    pub(super) const fn is_charset(self) -> bool {
        matches!(
            self,
            Self::CharacterSetClient
                | Self::CharacterSetConnection
                | Self::CharacterSetResults
                | Self::CollationConnection
        )
    }

    /// A variable that the next statement uses up.
    pub(super) const fn is_one_shot(self) -> bool {
        matches!(self, Self::InsertId)
    }

    /// A variable whose reading does not give what was set, or whose value belongs to one connection or transaction.
    pub(super) const fn is_write_only(self) -> bool {
        matches!(
            self,
            Self::RandSeed1
                | Self::RandSeed2
                | Self::PseudoThreadId
                | Self::PseudoSlaveMode
                | Self::PseudoReplicaMode
                | Self::GtidNext
                | Self::GtidSeqNo
                | Self::ImmediateServerVersion
                | Self::OriginalCommitTimestamp
                | Self::OriginalServerVersion
        )
    }

    /// A variable that, set as `@@name` without a scope, is for the next transaction only.
    pub(super) const fn is_characteristic(self) -> bool {
        matches!(self, Self::TransactionIsolation | Self::TransactionReadOnly | Self::TxIsolation | Self::TxReadOnly)
    }

    /// A statement whose `name@name` are accounts.
    pub(super) const fn names_accounts(self) -> bool {
        matches!(self, Self::Alter | Self::Create | Self::Drop | Self::Grant | Self::Rename | Self::Revoke | Self::Show)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found() {
        for (text, word) in Word::KNOWN {
            assert_eq!(Word::of(text), *word);
            assert_eq!(Word::of(&text.to_ascii_lowercase()), *word);
            assert_eq!(Word::of(&[text, &b"X"[..]].concat()), Word::Other);
            assert!(text.len() <= LONGEST_KNOWN && !text.iter().any(u8::is_ascii_lowercase));
        }
        assert!(Word::KNOWN.len() < usize::from(EMPTY));
        assert_eq!(Word::of(b""), Word::Other);
        assert_eq!(Word::of(b"sele\xe7t"), Word::Other);
    }

    #[test]
    fn few_words_share_a_slot() {
        let displaced = Word::KNOWN.iter().filter(|(text, word)| {
            Word::KNOWN.get(usize::from(TABLE[slot(text)])).is_none_or(|(_, found)| found != word)
        });
        assert!(displaced.count() < Word::KNOWN.len() / 8);
    }
}
