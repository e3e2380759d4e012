//! The composition root: builds every room once and hands each its part of the configuration.

mod proxy;

pub use proxy::{Proxy, StartError};
