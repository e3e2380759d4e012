//! From a file, flags and the environment to checked settings. Knows no other room.
//!
//! [`load`] is the way in. Every source is walked against one table of options (`options`), whose shapes (`shape`,
//! `unit`, `address`, `outgoing`) read and explain values; a `draft` collects them, later sources over earlier ones; `check`
//! compares them with each other at the end. Nothing stops at the first mistake. Tests are tables of texts.

mod address;
mod check;
mod draft;
mod file;
mod list;
mod mistake;
mod options;
mod outgoing;
mod reference;
mod settings;
mod shape;
mod sources;
mod suggest;
#[cfg(test)]
mod tests;
mod unit;
mod users;

pub use mistake::{Mistake, Mistakes, Place};
pub use reference::{Described, describe};
pub use settings::*;
pub use sources::{Sources, load};
