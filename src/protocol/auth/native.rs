//! `mysql_native_password`: reply = SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html>

use sha1::{Digest, Sha1};

use super::{Nonce, Secret, same};

/// What the reply to an empty password looks like: nothing. So `None` is "send nothing".
#[must_use]
pub fn scramble(password: &Secret, nonce: &Nonce) -> Option<[u8; 20]> {
    mysql_common::scramble::scramble_native(nonce, password.expose())
}

/// Whether `reply` proves this password.
#[must_use]
pub fn verify(password: &Secret, nonce: &Nonce, reply: &[u8]) -> bool {
    if password.is_empty() {
        return reply.is_empty();
    }
    verify_hash(&hash(password), nonce, reply).is_some()
}

/// SHA1(SHA1(password)), what a server keeps in its user table.
#[must_use]
pub fn hash(password: &Secret) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password.expose())).into()
}

/// Whether `reply` proves the password behind `hash`. If so, the reply yields SHA1(password): with that and
/// nothing else, one can log in to a server as this user.
#[must_use]
pub fn verify_hash(hash: &[u8; 20], nonce: &Nonce, reply: &[u8]) -> Option<[u8; 20]> {
    let mut once: [u8; 20] = reply.try_into().ok()?;
    let mask = Sha1::new().chain_update(nonce).chain_update(hash).finalize();
    for (byte, mask) in once.iter_mut().zip(mask) {
        *byte ^= mask;
    }
    same(&Sha1::digest(once), hash).then_some(once)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = *b"\x4e\x52\x33\x48\x50\x3a\x71\x49\x59\x61\x5f\x39\x3d\x64\x62\x3f\x53\x64\x7b\x60";
    // Recorded from a server's login of a user with the password "G!ider27".
    const REPLY: [u8; 20] = *b"\x09\xcf\xf8\x85\x5e\x9e\x70\x53\x40\xff\x22\x70\xd8\xfb\x9f\xad\xba\x90\x6b\x70";

    #[test]
    fn the_recorded_reply_is_made_and_accepted() {
        let password = Secret::from("G!ider27");
        assert_eq!(scramble(&password, &NONCE), Some(REPLY));
        assert!(verify(&password, &NONCE, &REPLY));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let password = Secret::from("G!ider27");
        let mut nonce = NONCE;
        nonce[19] ^= 1;
        assert!(!verify(&password, &nonce, &REPLY));
        for length in 0..20 {
            assert!(!verify(&password, &NONCE, &REPLY[..length]), "{length}");
        }
        for bit in 0..160 {
            let mut reply = REPLY;
            reply[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify(&password, &NONCE, &reply), "{bit}");
        }
        assert!(!verify(&Secret::from("G!ider28"), &NONCE, &REPLY));
    }

    #[test]
    fn an_empty_password_is_an_empty_reply_and_nothing_else() {
        let empty = Secret::default();
        assert_eq!(scramble(&empty, &NONCE), None);
        assert!(verify(&empty, &NONCE, b""));
        assert!(!verify(&empty, &NONCE, &REPLY));
        // The reply that SHA1 arithmetic alone would take for the empty password.
        let hash = hash(&empty);
        let mut forged: [u8; 20] = Sha1::digest(b"").into();
        let mask = Sha1::new().chain_update(NONCE).chain_update(hash).finalize();
        forged.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        assert!(verify_hash(&hash, &NONCE, &forged).is_some());
        assert!(!verify(&empty, &NONCE, &forged));
    }

    #[test]
    fn the_hash_is_the_one_of_the_user_table() {
        // SELECT HEX(UNHEX(SUBSTR(PASSWORD('secret'), 2)))
        let expected = b"\x14\xe6\x55\x67\xab\xdb\x51\x35\xd0\xcf\xd9\xa7\x0b\x30\x32\xc1\x79\xa4\x9e\xe7";
        assert_eq!(&hash(&Secret::from("secret")), expected);
    }
}
