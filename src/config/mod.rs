//! From a file, flags and the environment to checked settings. Knows no other room.

mod settings;

pub use settings::*;
