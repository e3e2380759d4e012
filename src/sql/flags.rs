//! What a text may do, as a set of flags.

use std::fmt;

/// A set of things that a text may do to its session, or may ask about it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u128);

macro_rules! flags {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "only numbers the constants below")]
        enum Bit { $($name),+ }
        impl Flags {
            $($(#[$meta])* pub const $name: Self = Self(1 << Bit::$name as u32);)+
            const NAMES: &'static [(&'static str, Self)] = &[$((stringify!($name), Self::$name)),+];
        }
    };
}

flags! {
    /// A user variable (`@name`, not the host of an account) is named.
    USER_VARIABLE,
    /// A user variable may be written: `SET @a`, `:=`, `INTO @a`, `LOAD DATA .. (@a)`, `GET DIAGNOSTICS @a`, `CALL p(@a)`.
    WRITES_USER_VARIABLE,
    /// One is assigned by `SET` or `:=`: it is there when the text is prepared.
    CREATES_USER_VARIABLE,
    /// `GET_LOCK()`
    GET_LOCK,
    /// `RELEASE_LOCK()`
    RELEASE_LOCK,
    /// `RELEASE_ALL_LOCKS()`
    RELEASE_ALL_LOCKS,
    /// `CREATE [OR REPLACE] TEMPORARY ..`
    CREATE_TEMPORARY,
    /// `DROP [TEMPORARY] TABLE`
    DROP_TABLE,
    /// `DROP TEMPORARY ..`
    DROP_TEMPORARY,
    /// `LOCK TABLES`
    LOCK_TABLES,
    /// `UNLOCK TABLES`
    UNLOCK_TABLES,
    /// `FLUSH TABLES .. WITH READ LOCK` or `.. FOR EXPORT`
    FLUSH_AND_LOCK,
    /// `LOCK INSTANCE FOR BACKUP`
    LOCK_INSTANCE,
    /// `UNLOCK INSTANCE`
    UNLOCK_INSTANCE,
    /// `BACKUP STAGE ..` other than END, and `BACKUP LOCK`
    BACKUP_BEGIN,
    /// `BACKUP STAGE END`, `BACKUP UNLOCK`
    BACKUP_END,
    /// `HANDLER t OPEN`
    HANDLER_OPEN,
    /// `HANDLER t CLOSE`
    HANDLER_CLOSE,
    /// `SQL_CALC_FOUND_ROWS`
    CALC_FOUND_ROWS,
    /// `PREPARE name FROM ..`
    PREPARE,
    /// `EXECUTE name`, `EXECUTE IMMEDIATE`: runs a text that is not seen here.
    EXECUTE,
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`
    DEALLOCATE,
    /// `CALL`: runs code that is not seen here.
    CALL,
    /// `CREATE`, `ALTER` or `DROP` of a stored routine.
    CHANGES_ROUTINE,
    /// A function is called that is not the server's own: it runs code that is not seen here.
    CALLS_FUNCTION,
    /// MariaDB's statements outside procedures that hold others (`BEGIN NOT ATOMIC`, `IF`, `FOR`, ...).
    COMPOUND,
    /// `XA START`, `XA BEGIN`
    XA_START,
    /// `XA END`
    XA_END,
    /// `XA PREPARE`
    XA_PREPARE,
    /// `XA COMMIT`, `XA ROLLBACK`
    XA_FINISH,
    /// `SET ROLE`, `SET SESSION AUTHORIZATION`
    SET_ROLE,
    /// `SET RESOURCE GROUP`
    SET_RESOURCE_GROUP,
    /// `SET TRANSACTION` (or `SET @@transaction_isolation`) without a scope: for the next transaction only.
    SET_TRANSACTION,
    /// `SAVEPOINT`
    SAVEPOINT,
    /// `BEGIN`, `START TRANSACTION`
    BEGIN,
    /// `COMMIT`
    COMMIT,
    /// `ROLLBACK`, not `ROLLBACK TO`
    ROLLBACK,
    /// `SET STATEMENT .. FOR ..` (MariaDB)
    SET_STATEMENT,
    /// A variable of the session is assigned, by whatever form of `SET`.
    SET_VARIABLE,
    /// `SET` of a variable called `session_track_*`, after which the server may not report something any more.
    SET_TRACKER,
    /// `SET session_track_schema` or `session_track_gtids` in a text of one statement: whatever else that sets is reported.
    SET_MINOR_TRACKER,
    /// A variable called `session_track_*` is read: `@@session_track_schema`, or all variables by `SHOW VARIABLES`.
    READS_TRACKER,
    /// `SET GLOBAL`, `SET PERSIST`, `SET @@global.x`
    SET_GLOBAL,
    /// A variable that only the next statement uses is assigned (`insert_id`, `gtid_next`, ...).
    SET_ONE_SHOT,
    /// A variable that cannot be read back is assigned (`rand_seed1`, ...).
    SET_WRITE_ONLY,
    /// `SET timestamp` to a number, which then lasts.
    SET_TIMESTAMP,
    /// `SET timestamp` to 0 or DEFAULT: the clock runs again. (The server reports the time of the statement.)
    FREE_TIMESTAMP,
    /// `SET timestamp` to something else: which of the two cannot be told.
    SET_TIMESTAMP_UNSEEN,
    /// `SET last_insert_id`, `SET identity`, `LAST_INSERT_ID(expression)`
    SETS_LAST_INSERT_ID,
    /// `SET NAMES`, `SET CHARACTER SET`, or a `character_set_*` or `collation_*` variable assigned.
    SET_CHARSET,
    /// `collation_connection` is or may be assigned: `SET NAMES`, `SET CHARACTER SET`, or by name.
    SET_COLLATION,
    /// `USE`
    USE,
    /// `ROW_COUNT()`
    READS_ROW_COUNT,
    /// `FOUND_ROWS()`
    READS_FOUND_ROWS,
    /// The list of warnings or its length: `SHOW WARNINGS`, `@@error_count`, `GET DIAGNOSTICS`, ...
    READS_WARNINGS,
    /// `LAST_INSERT_ID()`, `@@last_insert_id`, `@@identity`
    READS_LAST_INSERT_ID,
    /// `CONNECTION_ID()`, `@@pseudo_thread_id`
    READS_CONNECTION_ID,
    /// A sequence's last value in this session is read or made: `LASTVAL()`, `PREVIOUS VALUE FOR`, `NEXTVAL()`, `NEXT VALUE
    /// FOR`, `SETVAL()` (MariaDB)
    READS_SEQUENCE,
    /// `FROM`, of anything but `DUAL`
    READS_TABLE,
    /// `KILL`
    KILL,
    /// Who may log in, and what for, may change: `CREATE USER`, `GRANT`, `SET PASSWORD`, `FLUSH PRIVILEGES`, ...
    CHANGES_ACCOUNTS,
    /// `FLUSH STATUS`: what the connection counts from here on is looked at.
    FLUSH_STATUS,
    /// A lock that is no table's and no `GET_LOCK()`'s: MySQL's locking service and version tokens.
    SERVICE_LOCK,
    /// `LOAD DATA LOCAL`, `LOAD XML LOCAL`
    LOAD_LOCAL,
    /// `BINLOG '..'`
    BINLOG,
    /// The text has a comment that servers may run or not (`/*! .. */`).
    EXECUTABLE_COMMENT,
    /// The server may read the text in another way than we did (for example its `sql_mode` changes half way).
    OPAQUE,
}

impl Flags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Anything of `ROW_COUNT()`, `FOUND_ROWS()` and the list of warnings.
    pub const READS_DIAGNOSTICS: Self = Self::READS_ROW_COUNT.and(Self::READS_FOUND_ROWS).and(Self::READS_WARNINGS);
    /// Code runs that was not seen: what it leaves behind cannot be told from the text.
    pub const RUNS_UNSEEN: Self = Self::CALL.and(Self::EXECUTE).and(Self::COMPOUND).and(Self::CALLS_FUNCTION);

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[must_use]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no flag is set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Every single flag of the set.
    pub fn each(self) -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, flag)| *flag).filter(move |flag| self.contains(*flag))
    }

    pub(super) const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        let mut first = true;
        for (name, _) in Self::NAMES.iter().filter(|(_, flag)| self.contains(*flag)) {
            f.write_str(if first { "" } else { " | " })?;
            f.write_str(name)?;
            first = false;
        }
        f.write_str("}")
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.and(other)
    }
}
