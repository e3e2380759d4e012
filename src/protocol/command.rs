//! Commands: their codes, and what kind of reply each leads to.
