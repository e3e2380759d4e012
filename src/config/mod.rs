//! From a file, flags and the environment to checked settings. Knows no other room.

mod mistake;
mod settings;
mod sources;

pub use mistake::{Mistake, Mistakes, Place};
pub use settings::*;
pub use sources::{Sources, load};
