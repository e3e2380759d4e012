//! Capability and status flags, and which of them the proxy can carry.
