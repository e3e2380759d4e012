//! Integers and strings as the protocol writes them.
