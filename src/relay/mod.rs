//! The hot path: one turn of bytes between two channels. Knows neither clients nor pool.
