//! Framing: headers, packets of several frames, exact multiples of the largest payload.
