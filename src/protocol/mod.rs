//! Bytes and packets of the MySQL client/server protocol. Pure: no socket, no clock, no runtime.
//!
//! Everything here takes bytes and returns bytes or decisions, so every part is tested from tables and fuzzed.
//! Knows nothing of clients, backends or pools.

pub mod auth;
pub mod capability;
pub mod command;
pub mod compression;
pub mod frame;
pub mod handshake;
pub mod packet;
pub mod response;
pub mod wire;
