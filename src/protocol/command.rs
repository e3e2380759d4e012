//! Commands: their codes, and what kind of reply each leads to.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html>.

/// What the reply to a command looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyKind {
    /// Nothing is sent back.
    None,
    /// OK, ERR, a LOCAL INFILE request, or result sets.
    Query,
    /// One packet: OK, EOF or ERR.
    Simple,
    /// A statement's id and the definitions of its parameters and columns, or ERR.
    Prepare,
    /// Rows of an open cursor, or ERR.
    Fetch,
    /// Column definitions without a count, or ERR.
    FieldList,
    /// A bare string.
    Statistics,
    /// An authentication exchange: never relayed, the proxy speaks for itself on both sides.
    ChangeUser,
    /// A stream without an end, or what prepares one: refused by the caller.
    Stream,
}

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal => $reply:ident;)*) => {
        /// The first byte of a command packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $($(#[$doc])* $variant,)*
            /// A code that neither server documents.
            Unknown(u8),
        }

        impl Command {
            /// Every command with a name.
            pub const ALL: &'static [Command] = &[$(Command::$variant),*];

            /// The command with this code.
            pub fn from_byte(byte: u8) -> Command {
                match byte {
                    $($code => Command::$variant,)*
                    other => Command::Unknown(other),
                }
            }

            /// Its code.
            pub fn byte(self) -> u8 {
                match self {
                    $(Command::$variant => $code,)*
                    Command::Unknown(byte) => byte,
                }
            }

            /// Its name in the manual, e.g. `COM_QUERY`; `unknown` for others.
            pub fn name(self) -> &'static str {
                match self {
                    $(Command::$variant => $name,)*
                    Command::Unknown(_) => "unknown",
                }
            }

            /// Whether it runs a statement (or several).
            pub fn runs_statement(self) -> bool {
                matches!(self, Command::Query | Command::StmtExecute | Command::StmtBulkExecute)
            }

            /// What its reply looks like. Servers answer what they do not know with one ERR.
            pub fn reply(self) -> ReplyKind {
                match self {
                    $(Command::$variant => ReplyKind::$reply,)*
                    Command::Unknown(_) => ReplyKind::Simple,
                }
            }
        }
    };
}

commands! {
    /// Internal to the server.
    Sleep = 0x00, "COM_SLEEP" => Simple;
    /// Goodbye; the server closes the connection.
    Quit = 0x01, "COM_QUIT" => None;
    /// Change the default schema.
    InitDb = 0x02, "COM_INIT_DB" => Simple;
    /// Statements as text.
    Query = 0x03, "COM_QUERY" => Query;
    /// Columns of a table (deprecated).
    FieldList = 0x04, "COM_FIELD_LIST" => FieldList;
    /// Obsolete.
    CreateDb = 0x05, "COM_CREATE_DB" => Simple;
    /// Obsolete.
    DropDb = 0x06, "COM_DROP_DB" => Simple;
    /// FLUSH by bits (deprecated).
    Refresh = 0x07, "COM_REFRESH" => Simple;
    /// Stop the server (deprecated).
    Shutdown = 0x08, "COM_SHUTDOWN" => Simple;
    /// A line of numbers about the server.
    Statistics = 0x09, "COM_STATISTICS" => Statistics;
    /// The process list as a result set (deprecated).
    ProcessInfo = 0x0A, "COM_PROCESS_INFO" => Query;
    /// Internal to the server.
    Connect = 0x0B, "COM_CONNECT" => Simple;
    /// KILL by number (deprecated).
    ProcessKill = 0x0C, "COM_PROCESS_KILL" => Simple;
    /// Write debug information to the server's log.
    Debug = 0x0D, "COM_DEBUG" => Simple;
    /// Is the server alive?
    Ping = 0x0E, "COM_PING" => Simple;
    /// Internal to the server.
    Time = 0x0F, "COM_TIME" => Simple;
    /// Internal to the server.
    DelayedInsert = 0x10, "COM_DELAYED_INSERT" => Simple;
    /// Log in again as somebody else.
    ChangeUser = 0x11, "COM_CHANGE_USER" => ChangeUser;
    /// Binary log from a position.
    BinlogDump = 0x12, "COM_BINLOG_DUMP" => Stream;
    /// Obsolete.
    TableDump = 0x13, "COM_TABLE_DUMP" => Stream;
    /// Internal to the server.
    ConnectOut = 0x14, "COM_CONNECT_OUT" => Simple;
    /// A replica names itself.
    RegisterSlave = 0x15, "COM_REGISTER_SLAVE" => Stream;
    /// Prepare a statement.
    StmtPrepare = 0x16, "COM_STMT_PREPARE" => Prepare;
    /// Execute a prepared statement.
    StmtExecute = 0x17, "COM_STMT_EXECUTE" => Query;
    /// A piece of a long parameter.
    StmtSendLongData = 0x18, "COM_STMT_SEND_LONG_DATA" => None;
    /// Forget a prepared statement.
    StmtClose = 0x19, "COM_STMT_CLOSE" => None;
    /// Drop a prepared statement's long data and cursor.
    StmtReset = 0x1A, "COM_STMT_RESET" => Simple;
    /// Switch several-statements-in-one on or off.
    SetOption = 0x1B, "COM_SET_OPTION" => Simple;
    /// Rows from a cursor.
    StmtFetch = 0x1C, "COM_STMT_FETCH" => Fetch;
    /// Internal to the server.
    Daemon = 0x1D, "COM_DAEMON" => Simple;
    /// Binary log from a GTID set (MySQL).
    BinlogDumpGtid = 0x1E, "COM_BINLOG_DUMP_GTID" => Stream;
    /// Back to a fresh session without a new login.
    ResetConnection = 0x1F, "COM_RESET_CONNECTION" => Simple;
    /// MySQL's clone plugin.
    Clone = 0x20, "COM_CLONE" => Stream;
    /// MySQL's group replication.
    SubscribeGroupReplicationStream = 0x21, "COM_SUBSCRIBE_GROUP_REPLICATION_STREAM" => Stream;
    /// MariaDB: execute a prepared statement for many rows of parameters.
    StmtBulkExecute = 0xFA, "COM_STMT_BULK_EXECUTE" => Query;
    /// MariaDB, internal to the server.
    SlaveWorker = 0xFB, "COM_SLAVE_WORKER" => Simple;
    /// MariaDB, internal to the server.
    SlaveIo = 0xFC, "COM_SLAVE_IO" => Simple;
    /// MariaDB, internal to the server.
    SlaveSql = 0xFD, "COM_SLAVE_SQL" => Simple;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for byte in 0..=u8::MAX {
            assert_eq!(Command::from_byte(byte).byte(), byte);
        }
        for &command in Command::ALL {
            assert_eq!(Command::from_byte(command.byte()), command);
            assert!(command.name().starts_with("COM_"));
        }
    }

    #[test]
    fn codes_are_those_of_the_servers() {
        use mysql_common::constants::Command as Theirs;
        for (ours, theirs) in [
            (Command::Quit, Theirs::COM_QUIT),
            (Command::Query, Theirs::COM_QUERY),
            (Command::ChangeUser, Theirs::COM_CHANGE_USER),
            (Command::StmtPrepare, Theirs::COM_STMT_PREPARE),
            (Command::StmtFetch, Theirs::COM_STMT_FETCH),
            (Command::ResetConnection, Theirs::COM_RESET_CONNECTION),
            (Command::StmtBulkExecute, Theirs::COM_STMT_BULK_EXECUTE),
        ] {
            assert_eq!(ours.byte(), theirs as u8, "{}", ours.name());
        }
    }

    #[test]
    fn replies() {
        let silent: Vec<_> = Command::ALL.iter().filter(|command| command.reply() == ReplyKind::None).collect();
        assert_eq!(silent, [&Command::Quit, &Command::StmtSendLongData, &Command::StmtClose]);
        assert_eq!(Command::Unknown(0x77).reply(), ReplyKind::Simple);
        assert_eq!(Command::StmtExecute.reply(), ReplyKind::Query);
    }
}
