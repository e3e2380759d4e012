//! The pure scheduler: events and `now` in, decisions out.
