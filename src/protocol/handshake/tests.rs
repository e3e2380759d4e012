//! Stepping one end against the other.
