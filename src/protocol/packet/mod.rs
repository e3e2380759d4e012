//! The packets that are read or written as a whole.
