//! What the session of a client is, apart from any connection. Pure.
