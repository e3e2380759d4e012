//! How `caching_sha2_password` carries a password without TLS: xor with the nonce, then RSA-OAEP (SHA-1).
//!
//! It hides the password from who only listens. Who sits in the middle can hand out a key of his own, as with
//! MySQL itself; TLS with a CA is the remedy.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use zeroize::Zeroizing;

use super::{Nonce, Secret};

/// Larger keys than a server's are ten times as slow and nobody expects them.
const KEY_SIZE: rcgen::RsaKeySize = rcgen::RsaKeySize::_2048;

/// Why RSA did not do what it should.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RsaError {
    /// Ours: the machine could not make a key.
    #[error("an RSA key could not be generated")]
    Generate,
    /// The operator's: no PEM file of an RSA key.
    #[error("there is no RSA private key in PEM in it")]
    BadFile,
    /// The server's: what it sent is no PEM public key.
    #[error("the server's public key is not a PEM RSA key")]
    BadKey,
    /// Ours or the server's: the password does not fit the key.
    #[error("the password is too long for the server's RSA key")]
    TooLong,
    /// The peer's: these bytes were not encrypted with our key.
    #[error("the encrypted password does not fit our RSA key")]
    Decrypt,
}

/// Our key pair, made when first needed: a proxy whose clients all use TLS never pays for it.
///
/// Making it takes some hundred milliseconds of CPU once; whoever minds calls [`Keys::get`] early, on a thread that
/// may block.
#[derive(Default)]
pub struct Keys(OnceLock<Result<KeyPair, RsaError>>);

impl Keys {
    /// Nothing made yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// This pair, and no other.
    #[must_use]
    pub fn of(pair: KeyPair) -> Self {
        Self(OnceLock::from(Ok(pair)))
    }

    /// The key pair.
    ///
    /// # Errors
    /// [`RsaError::Generate`], then at every call.
    pub fn get(&self) -> Result<&KeyPair, RsaError> {
        self.0.get_or_init(KeyPair::generate).as_ref().map_err(|error| *error)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// A 2,048-bit RSA key pair for clients that have no TLS.
pub struct KeyPair {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl KeyPair {
    /// A fresh pair.
    ///
    /// # Errors
    /// [`RsaError::Generate`]
    pub fn generate() -> Result<Self, RsaError> {
        let pair = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, KEY_SIZE);
        Self::of(&pair.map_err(|_| RsaError::Generate)?).ok_or(RsaError::Generate)
    }

    /// The pair of a private key in PEM, as servers keep theirs (PKCS#1 or PKCS#8).
    ///
    /// # Errors
    /// [`RsaError::BadFile`]
    pub fn from_pem(pem: &[u8]) -> Result<Self, RsaError> {
        let der = match PrivateKeyDer::from_pem_slice(pem) {
            Ok(PrivateKeyDer::Pkcs8(der)) => Zeroizing::new(der.secret_pkcs8_der().to_vec()),
            Ok(PrivateKeyDer::Pkcs1(der)) => pkcs8(der.secret_pkcs1_der()),
            _ => return Err(RsaError::BadFile),
        };
        let der = PrivatePkcs8KeyDer::from(der.as_slice());
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&der, &rcgen::PKCS_RSA_SHA256);
        pair.ok().and_then(|pair| Self::of(&pair)).ok_or(RsaError::BadFile)
    }

    fn of(pair: &rcgen::KeyPair) -> Option<Self> {
        let key = PrivateDecryptingKey::from_pkcs8(&Zeroizing::new(pair.serialize_der())).ok()?;
        let private = OaepPrivateDecryptingKey::new(key).ok()?;
        Some(Self { private, public_pem: pair.public_key_pem() })
    }

    /// The public half as a server sends it.
    #[must_use]
    pub fn public_key_pem(&self) -> &str {
        &self.public_pem
    }

    /// The length of every encrypted password.
    #[must_use]
    pub fn ciphertext_len(&self) -> usize {
        self.private.key_size_bytes()
    }

    /// The password that a client encrypted for us.
    ///
    /// # Errors
    /// [`RsaError::Decrypt`]
    pub fn decrypt(&self, ciphertext: &[u8], nonce: &Nonce) -> Result<Secret, RsaError> {
        let mut plain = Zeroizing::new(vec![0; self.private.min_output_size()]);
        let length = self
            .private
            .decrypt(&OAEP_SHA1_MGF1SHA1, ciphertext, &mut plain, None)
            .map_err(|_| RsaError::Decrypt)?
            .len();
        plain.truncate(length);
        mask(&mut plain, nonce);
        // The terminating zero is part of what the client encrypts.
        match plain.pop() {
            Some(0) => Ok(Secret(plain)),
            _ => Err(RsaError::Decrypt),
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(..)")
    }
}

/// An RSA key as PKCS#8 has it, of one as PKCS#1 has it.
fn pkcs8(pkcs1: &[u8]) -> Zeroizing<Vec<u8>> {
    /// Version 0; the algorithm rsaEncryption, without parameters.
    const FRONT: &[u8] = b"\x02\x01\x00\x30\x0D\x06\x09\x2A\x86\x48\x86\xF7\x0D\x01\x01\x01\x05\x00";
    // Keys of any use are so long that their length needs two bytes, and none needs more.
    let head = |tag: u8, len: usize| [tag, 0x82, (len >> 8) as u8, len as u8];
    let key = head(0x04, pkcs1.len());
    let whole = head(0x30, FRONT.len() + key.len() + pkcs1.len());
    Zeroizing::new([&whole[..], FRONT, &key, pkcs1].concat())
}

/// The password, encrypted for the server whose public key this is.
///
/// # Errors
/// [`RsaError::BadKey`], [`RsaError::TooLong`]
pub fn encrypt(server_pem: &[u8], password: &Secret, nonce: &Nonce) -> Result<Vec<u8>, RsaError> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(server_pem).map_err(|_| RsaError::BadKey)?;
    let key = PublicEncryptingKey::from_der(&der)
        .map_err(|_| RsaError::BadKey)
        .and_then(|key| OaepPublicEncryptingKey::new(key).map_err(|_| RsaError::BadKey))?;

    let mut plain = Zeroizing::new(Vec::with_capacity(password.expose().len() + 1));
    plain.extend_from_slice(password.expose());
    plain.push(0);
    mask(&mut plain, nonce);

    let mut ciphertext = vec![0; key.ciphertext_size()];
    let length = key.encrypt(&OAEP_SHA1_MGF1SHA1, &plain, &mut ciphertext, None).map_err(|_| RsaError::TooLong)?.len();
    ciphertext.truncate(length);
    Ok(ciphertext)
}

fn mask(bytes: &mut [u8], nonce: &Nonce) {
    for (byte, mask) in bytes.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = *b"12345678901234567890";

    #[test]
    fn what_is_encrypted_is_decrypted() {
        let pair = KeyPair::generate().unwrap();
        let pem = pair.public_key_pem();
        assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{pem}");
        // 256 - 2 * 20 - 2 bytes fit, one of them the terminating zero.
        for length in [0, 1, 19, 20, 21, 100, 213] {
            let password = Secret::from(vec![b'x'; length]);
            let ciphertext = encrypt(pem.as_bytes(), &password, &NONCE).unwrap();
            assert_eq!(ciphertext.len(), pair.ciphertext_len());
            assert!(pair.decrypt(&ciphertext, &NONCE).unwrap() == password, "{length}");
        }
        assert_eq!(encrypt(pem.as_bytes(), &Secret::from(vec![b'x'; 214]), &NONCE), Err(RsaError::TooLong));
    }

    #[test]
    fn a_key_from_a_file() {
        let pair = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, KEY_SIZE).unwrap();
        let read = KeyPair::from_pem(pair.serialize_pem().as_bytes()).unwrap();
        assert_eq!(read.public_key_pem(), pair.public_key_pem());
        let ciphertext = encrypt(pair.public_key_pem().as_bytes(), &Secret::from("x"), &NONCE).unwrap();
        assert!(read.decrypt(&ciphertext, &NONCE).unwrap() == Secret::from("x"));
        for bad in ["", "x", pair.public_key_pem().as_str()] {
            assert_eq!(KeyPair::from_pem(bad.as_bytes()).unwrap_err(), RsaError::BadFile, "{bad}");
        }
        assert_eq!(Keys::of(read).get().unwrap().public_key_pem(), pair.public_key_pem());
    }

    #[test]
    fn a_key_in_the_older_form() {
        let pair = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, KEY_SIZE).unwrap();
        let der = pair.serialize_der();
        // Tag and length of the whole, the version, the algorithm, tag and length of the key.
        let inner = &der[4 + 3 + 15 + 4..];
        assert_eq!(*pkcs8(inner), der);
    }

    #[test]
    fn another_implementation_agrees() {
        let pair = KeyPair::generate().unwrap();
        let mut plain = b"app-secret\0".to_vec();
        mask(&mut plain, &NONCE);
        let ciphertext = mysql_common::crypto::encrypt(&plain, pair.public_key_pem().as_bytes());
        assert!(pair.decrypt(&ciphertext, &NONCE).unwrap() == Secret::from("app-secret"));
    }

    #[test]
    fn garbage_is_refused() {
        let (pair, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let foreign = encrypt(other.public_key_pem().as_bytes(), &Secret::from("x"), &NONCE).unwrap();
        for ciphertext in [&b""[..], b"x", &[0; 256], &[255; 256], &[7; 255], &[7; 257], &foreign] {
            assert_eq!(pair.decrypt(ciphertext, &NONCE).unwrap_err(), RsaError::Decrypt);
        }
        // The right key, but another nonce: the terminating zero is not where it should be.
        let stale = encrypt(pair.public_key_pem().as_bytes(), &Secret::from("x"), &[9; 20]).unwrap();
        assert_eq!(pair.decrypt(&stale, &NONCE).unwrap_err(), RsaError::Decrypt);
        for pem in ["", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert_eq!(encrypt(pem.as_bytes(), &Secret::from("x"), &NONCE), Err(RsaError::BadKey), "{pem}");
        }
    }

    #[test]
    fn the_key_pair_is_made_once() {
        let keys = Keys::new();
        let first = keys.get().unwrap().public_key_pem().to_owned();
        assert_eq!(keys.get().unwrap().public_key_pem(), first);
    }
}
