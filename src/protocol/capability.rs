//! Capability and status flags, and which of them the proxy can carry.
//!
//! Both sides name what they can do in the handshake, and only what both named counts. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html>.

pub use mysql_common::constants::{CapabilityFlags, StatusFlags};

/// What the proxy never offers to a client: everything whose packets it does not carry.
///
/// - compression (both kinds), query attributes, optional metadata, further authentication factors: other packet
///   layouts than the ones read here;
/// - expired passwords: the server would lock the *backend* into a sandbox that others must not share;
/// - progress reports, and the two flags that never leave a client library.
pub const NEVER_OFFERED: CapabilityFlags = CapabilityFlags::CLIENT_COMPRESS
    .union(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
    .union(CapabilityFlags::CLIENT_OPTIONAL_RESULTSET_METADATA)
    .union(CapabilityFlags::MULTI_FACTOR_AUTHENTICATION)
    .union(CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
    .union(CapabilityFlags::CLIENT_PROGRESS_OBSOLETE)
    .union(CapabilityFlags::CLIENT_SSL_VERIFY_SERVER_CERT)
    .union(CapabilityFlags::CLIENT_REMEMBER_OPTIONS);

/// What every backend connection asks for, whatever the client speaks.
///
/// `CLIENT_LONG_PASSWORD` is also `CLIENT_MYSQL`: with it MariaDB expects none of its extended capabilities. Its progress
/// reports are not asked for either.
pub const BACKEND_ALWAYS: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

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
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS);

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
    }

    #[test]
    fn tls_and_schema_are_decided_by_the_handshake() {
        let decided_later = CapabilityFlags::CLIENT_SSL | CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        assert!(!(NEVER_OFFERED | BACKEND_ALWAYS | CLASS_FLAGS).intersects(decided_later));
    }
}
