//! `caching_sha2_password`: reply = SHA256(password) xor SHA256(SHA256(SHA256(password)), nonce).
//!
//! A server that has seen the password before checks the reply and answers [`FAST_AUTH_SUCCESS`]. Otherwise it asks
//! for the password itself ([`FULL_AUTHENTICATION`]), which then travels inside TLS or encrypted by RSA.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>

use super::{Nonce, Secret, same};

/// The client asks for the server's public key.
pub const REQUEST_PUBLIC_KEY: u8 = 2;
/// The reply was right; an OK packet follows.
pub const FAST_AUTH_SUCCESS: u8 = 3;
/// The server wants the password itself.
pub const FULL_AUTHENTICATION: u8 = 4;

/// The reply to a nonce; `None` for the empty password, whose reply is empty.
#[must_use]
pub fn scramble(password: &Secret, nonce: &Nonce) -> Option<[u8; 32]> {
    mysql_common::scramble::scramble_sha256(nonce, password.expose())
}

/// Whether `reply` proves this password (the fast path).
#[must_use]
pub fn verify(password: &Secret, nonce: &Nonce, reply: &[u8]) -> bool {
    match scramble(password, nonce) {
        Some(expected) => same(&expected, reply),
        None => says_empty(reply),
    }
}

/// Whether the client says that its password is empty: by nothing, or (libmysqlclient) by a single zero.
#[must_use]
pub fn says_empty(reply: &[u8]) -> bool {
    matches!(reply, [] | [0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = *b"\x4e\x52\x33\x48\x50\x3a\x71\x49\x59\x61\x5f\x39\x3d\x64\x62\x3f\x53\x64\x7b\x60";
    const REPLY: [u8; 32] = *b"\x4f\x97\xbb\xfd\x20\x24\x01\xc4\x2a\x69\xde\xaa\xe5\x3b\xda\x07\
        \x7e\xd7\x57\x85\x63\xc1\xa8\x0e\xb8\x16\xc8\x21\x19\xb6\x8d\x2e";

    #[test]
    fn the_recorded_reply_is_made_and_accepted() {
        let password = Secret::from("G!ider27");
        assert_eq!(scramble(&password, &NONCE), Some(REPLY));
        assert!(verify(&password, &NONCE, &REPLY));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let password = Secret::from("G!ider27");
        assert!(!verify(&password, &[1; 20], &REPLY));
        assert!(!verify(&Secret::from("G!ider28"), &NONCE, &REPLY));
        assert!(!verify(&password, &NONCE, &[]));
        assert!(!verify(&password, &NONCE, &[0]));
        for length in 0..32 {
            assert!(!verify(&password, &NONCE, &REPLY[..length]), "{length}");
        }
        for bit in 0..256 {
            let mut reply = REPLY;
            reply[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify(&password, &NONCE, &reply), "{bit}");
        }
    }

    #[test]
    fn an_empty_password_is_nothing_or_one_zero() {
        let empty = Secret::default();
        assert_eq!(scramble(&empty, &NONCE), None);
        for (reply, right) in [(&b""[..], true), (b"\0", true), (b"\x01", false), (b"\0\0", false), (&REPLY, false)] {
            assert_eq!(verify(&empty, &NONCE, reply), right, "{reply:?}");
        }
    }
}
