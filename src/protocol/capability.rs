//! Capability and status flags, and which of them the proxy can carry.
//!
//! Both sides name what they can do in the handshake, and only what both named counts. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html>.

pub use mysql_common::constants::{CapabilityFlags, StatusFlags};

/// MariaDB's `MARIADB_CLIENT_STMT_BULK_OPERATIONS`: COM_STMT_BULK_EXECUTE may be used.
///
/// MariaDB's flags beyond the 32 bits of old are held, as far as they are carried, in two of these that never leave a
/// client library: see [`held`].
pub const BULK_OPERATIONS: CapabilityFlags = CapabilityFlags::CLIENT_SSL_VERIFY_SERVER_CERT;

/// MariaDB's `MARIADB_CLIENT_EXTENDED_METADATA`: column definitions name types that are stored as others (JSON, POINT).
/// Held like [`BULK_OPERATIONS`].
pub const EXTENDED_METADATA: CapabilityFlags = CapabilityFlags::CLIENT_REMEMBER_OPTIONS;

/// Where the wire has them, among bits 32 and up.
const EXTENDED: [(CapabilityFlags, u32); 2] = [(BULK_OPERATIONS, 1 << 2), (EXTENDED_METADATA, 1 << 3)];

/// The flags of a greeting or a response as they are held here. `extended` are MariaDB's from bit 32 on.
#[must_use]
pub fn held(flags: CapabilityFlags, extended: u32) -> CapabilityFlags {
    EXTENDED.iter().fold(flags, |flags, (flag, bit)| if extended & bit != 0 { flags | *flag } else { flags - *flag })
}

/// The flags as the wire has them, and MariaDB's beyond. That there are such is told by leaving out
/// `CLIENT_LONG_PASSWORD`, which is also called `CLIENT_MYSQL`.
#[must_use]
pub fn on_wire(held: CapabilityFlags) -> (CapabilityFlags, u32) {
    let mut extended = 0;
    let mut flags = held;
    for (flag, bit) in EXTENDED {
        if held.contains(flag) {
            extended |= bit;
        }
        flags -= flag;
    }
    if extended != 0 {
        flags -= CapabilityFlags::CLIENT_LONG_PASSWORD;
    }
    (flags, extended)
}

/// What the proxy never offers to a client: everything whose packets it does not carry.
///
/// - optional metadata, further authentication factors: other packet layouts than the ones read here;
/// - expired passwords: the server would lock the *backend* into a sandbox that others must not share;
/// - progress reports.
pub const NEVER_OFFERED: CapabilityFlags = CapabilityFlags::CLIENT_OPTIONAL_RESULTSET_METADATA
    .union(CapabilityFlags::MULTI_FACTOR_AUTHENTICATION)
    .union(CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
    .union(CapabilityFlags::CLIENT_PROGRESS_OBSOLETE);

/// What compresses a client's packets. No backend is asked for it.
pub const COMPRESSION: CapabilityFlags =
    CapabilityFlags::CLIENT_COMPRESS.union(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);

/// What every backend connection asks for, whatever the client speaks.
///
/// MariaDB's progress reports and cached metadata are not asked for.
pub const BACKEND_ALWAYS: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    .union(BULK_OPERATIONS);

/// Flags that change the meaning of commands or replies and cannot be switched after the handshake.
///
/// A client is served only by backends that have exactly its choice of these. (`CLIENT_MULTI_STATEMENTS` is not among
/// them: COM_SET_OPTION switches it.)
pub const CLASS_FLAGS: CapabilityFlags = CapabilityFlags::CLIENT_FOUND_ROWS
    .union(CapabilityFlags::CLIENT_NO_SCHEMA)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
    .union(EXTENDED_METADATA);

/// Status flags that tell of one statement, and not of the session: servers clear them before the next command.
pub const OF_ONE_STATEMENT: StatusFlags = StatusFlags::SERVER_MORE_RESULTS_EXISTS
    .union(StatusFlags::SERVER_STATUS_NO_GOOD_INDEX_USED)
    .union(StatusFlags::SERVER_STATUS_NO_INDEX_USED)
    .union(StatusFlags::SERVER_STATUS_CURSOR_EXISTS)
    .union(StatusFlags::SERVER_STATUS_LAST_ROW_SENT)
    .union(StatusFlags::SERVER_STATUS_DB_DROPPED)
    .union(StatusFlags::SERVER_STATUS_METADATA_CHANGED)
    .union(StatusFlags::SERVER_QUERY_WAS_SLOW)
    .union(StatusFlags::SERVER_PS_OUT_PARAMS)
    .union(StatusFlags::SERVER_SESSION_STATE_CHANGED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_sets_do_not_overlap() {
        assert!(!NEVER_OFFERED.intersects(BACKEND_ALWAYS));
        assert!(!NEVER_OFFERED.intersects(CLASS_FLAGS));
        assert!(!BACKEND_ALWAYS.intersects(CLASS_FLAGS));
        assert!(!COMPRESSION.intersects(BACKEND_ALWAYS | CLASS_FLAGS | NEVER_OFFERED));
    }

    #[test]
    fn flags_beyond_32_bits_come_back() {
        let base = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_LONG_PASSWORD;
        assert_eq!(on_wire(base), (base, 0));
        assert_eq!(held(base | BULK_OPERATIONS, 0), base);
        for extended in [4, 8, 12] {
            let (flags, there) = on_wire(held(base, extended));
            assert_eq!((flags, there), (CapabilityFlags::CLIENT_PROTOCOL_41, extended));
        }
        assert_eq!(held(base, 0x11), base);
    }

    #[test]
    fn tls_and_schema_are_decided_by_the_handshake() {
        let decided_later = CapabilityFlags::CLIENT_SSL | CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        assert!(!(NEVER_OFFERED | BACKEND_ALWAYS | CLASS_FLAGS).intersects(decided_later));
    }
}
