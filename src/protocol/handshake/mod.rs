//! The login conversation, from either end, as state machines.
