//! The reply state machine: which packet is the last of a turn.
