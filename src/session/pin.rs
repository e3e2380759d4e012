//! Pins: the reasons why a session keeps its backend between turns.

macro_rules! reasons {
    ($($(#[$meta:meta])* $variant:ident => $label:literal),+ $(,)?) => {
        /// One reason to keep the lease. Each comment says what ends it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PinReason { $($(#[$meta])* $variant),+ }

        impl PinReason {
            /// Every reason, in the order of [`PinReason::index`].
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The metric label's value: lower case, words joined by `_`.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label),+ }
            }
        }
    };
}

reasons! {
    /// A transaction is or may be open. Ends with it, as the server's status says.
    Transaction => "transaction",
    /// A savepoint was set under `autocommit=0` before any table was touched. Ends with the transaction.
    AutocommitSavepoint => "autocommit_savepoint",
    /// `LOCK TABLES`. Ends when the transaction tracker says so.
    Locks => "locks",
    /// `FLUSH TABLES .. WITH READ LOCK`, `.. FOR EXPORT`. Ends at `UNLOCK TABLES`.
    GlobalReadLock => "global_read_lock",
    /// `LOCK INSTANCE FOR BACKUP`. Ends at `UNLOCK INSTANCE`.
    InstanceLock => "instance_lock",
    /// `BACKUP STAGE`, `BACKUP LOCK`. Ends at `BACKUP STAGE END`, `BACKUP UNLOCK`.
    BackupStage => "backup_stage",
    /// `GET_LOCK()`. Ends when every lock provably taken by literal name was released so, at `RELEASE_ALL_LOCKS()`, at a reset.
    UserLock => "user_lock",
    /// A user variable may have been written that cannot be carried: its name is not plain ASCII, there are too many, or the
    /// values are too long or nothing that SQL can write. Ends at a reset.
    UserVariables => "user_variables",
    /// A temporary table may exist. Ends when every one created by plain name was dropped so, or at a reset.
    TemporaryTable => "temporary_table",
    /// `HANDLER .. OPEN`. Ends at as many `HANDLER .. CLOSE`, or at a reset.
    Handler => "handler",
    /// Text `PREPARE` of what cannot be prepared again elsewhere. Ends when every such name was deallocated, or at a reset.
    TextPrepare => "text_prepare",
    /// A statement prepared by COM_STMT_PREPARE is open. Ends when all are closed.
    PreparedStatement => "prepared_statement",
    /// COM_STMT_SEND_LONG_DATA. Ends at execute, reset or close.
    LongData => "long_data",
    /// An open cursor. Ends at its last row, at reset or close.
    Cursor => "cursor",
    /// MySQL's locking service, or version tokens. Ends at a reset.
    ServiceLock => "service_lock",
    /// `FLUSH STATUS`: the session looks at what its connection counts. Ends at a reset.
    StatusCounters => "status_counters",
    /// `SET TRANSACTION` for the next transaction. Ends with that.
    OneShotTransaction => "one_shot_transaction",
    /// `insert_id` for the next id that is generated. Ends when the server says that it is used up.
    OneShotVariable => "one_shot_variable",
    /// A variable was set that cannot be read back or must not be copied. Ends at a reset.
    WriteOnlyVariable => "write_only_variable",
    /// `SET ROLE`. Ends with the role that the login gave: a reset does not change it.
    Role => "role",
    /// `SET RESOURCE GROUP`. Ends with its client, whose backend is closed then.
    ResourceGroup => "resource_group",
    /// An XA transaction. Ends when it is finished, or provably detached from the connection.
    Xa => "xa",
    /// Code ran that was not seen: `CALL`, `EXECUTE` of what is not known, a stored function, MariaDB's compound statements.
    /// Ends when the bodies of what was called show that they leave nothing, or at a reset.
    Call => "call",
    /// `profiling` or `optimizer_trace` is or was on: the server keeps the session's statements. Ends at a reset.
    Trace => "trace",
    /// A sequence was drawn from, set or asked for its last value (MariaDB). Ends at a reset.
    Sequence => "sequence",
    /// The state changed and nothing that was seen explains it, or a question about it failed. Ends at a reset.
    Unexplained => "unexplained",
}

impl PinReason {
    /// The position of this variant in [`PinReason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PinSet(u32);

impl PinSet {
    /// No reason.
    pub const EMPTY: Self = Self(0);

    /// What a client would lose if the proxy hung up now: a drain waits for these to end.
    pub const OPEN_WORK: Self = Self(
        1 << PinReason::Transaction as u32
            | 1 << PinReason::AutocommitSavepoint as u32
            | 1 << PinReason::Xa as u32
            | 1 << PinReason::Locks as u32
            | 1 << PinReason::GlobalReadLock as u32
            | 1 << PinReason::InstanceLock as u32
            | 1 << PinReason::BackupStage as u32,
    );

    /// A set of one.
    #[must_use]
    pub const fn of(reason: PinReason) -> Self {
        Self(1 << reason as u32)
    }

    /// Whether nothing pins.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many reasons.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether this reason is in the set.
    #[must_use]
    pub const fn contains(self, reason: PinReason) -> bool {
        self.0 & Self::of(reason).0 != 0
    }

    /// Adds a reason; `true` if it was not there.
    pub const fn insert(&mut self, reason: PinReason) -> bool {
        let new = !self.contains(reason);
        self.0 |= Self::of(reason).0;
        new
    }

    /// Takes a reason out; `true` if it was there.
    pub const fn remove(&mut self, reason: PinReason) -> bool {
        let old = self.contains(reason);
        self.0 &= !Self::of(reason).0;
        old
    }

    /// Adds or takes out, as `on` says.
    pub const fn put(&mut self, reason: PinReason, on: bool) {
        if on {
            self.insert(reason);
        } else {
            self.remove(reason);
        }
    }

    /// Whether any of `other` is in it.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in this set and not in `other`: to count what a turn pinned or ended.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What is in either.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Every reason in the set, in the order of [`PinReason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = PinReason> {
        PinReason::ALL.iter().copied().filter(move |reason| self.contains(*reason))
    }
}

impl FromIterator<PinReason> for PinSet {
    fn from_iter<I: IntoIterator<Item = PinReason>>(reasons: I) -> Self {
        let mut set = Self::EMPTY;
        for reason in reasons {
            set.insert(reason);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set = PinSet::EMPTY;
        for (n, reason) in PinReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), n);
            assert!(set.insert(*reason));
            assert!(!set.insert(*reason));
            assert_eq!(set.len(), n + 1);
        }
        assert!(set.iter().eq(PinReason::ALL.iter().copied()));
        assert!(set.remove(PinReason::Xa));
        assert!(!set.remove(PinReason::Xa));
        assert!(!set.contains(PinReason::Xa));
        let without: PinSet = [PinReason::Xa].into_iter().collect();
        assert!(PinSet::EMPTY.without(set).is_empty());
        assert_eq!(without.without(set), without);
    }

    #[test]
    fn labels_differ_and_fit_a_metric() {
        let mut labels: Vec<_> = PinReason::ALL.iter().map(|r| r.label()).collect();
        assert!(labels.iter().all(|l| l.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), PinReason::ALL.len());
    }
}
