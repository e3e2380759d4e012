//! Sockets: every option, TLS, compression, one stream type, and buffers that are lent only while bytes are in flight.
//!
//! Knows what a byte stream is and nothing of what the bytes mean. Tested over loopback on port 0.

pub mod buffer;
mod codec;
pub mod compressed;
pub mod host;
pub mod stream;
pub mod tcp;
pub mod tls;

pub use buffer::Buffer;
pub use stream::Stream;
