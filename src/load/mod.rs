//! The load generator: drives many clients from few tasks and measures what they see.
