//! One client from accept to goodbye.

pub mod users;
