//! Authentication plugins: scrambles, verifiers and RSA, without any conversation.
