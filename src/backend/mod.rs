//! One connection to a server: dialing, logging in, restoring a session, killing a statement.
