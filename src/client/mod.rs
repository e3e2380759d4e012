//! One client from accept to goodbye.
