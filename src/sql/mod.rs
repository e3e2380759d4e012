//! Just enough MySQL lexing to know what a statement does to a session. Pure.
