//! Sockets: options, TLS, the stream enum, buffers lent only while bytes are in flight.

pub mod tls;
