//! Passwords and what the authentication plugins make of them. Pure, apart from the randomness RSA needs.
//!
//! A plugin is a small fixed exchange: the server sends a nonce, the client a reply that proves the password
//! without showing it. [`native`] and [`caching_sha2`] compute and check replies; [`rsa`] is how
//! `caching_sha2_password` carries the password itself where there is no TLS. Who sends what when is the
//! business of [`handshake`](super::handshake).

pub mod caching_sha2;
pub mod native;
pub mod rsa;

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroizing;

/// The random bytes a server challenges with; none of them is zero.
pub type Nonce = [u8; 20];

/// A password: zeroised when dropped, compared in constant time, never shown.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes themselves. Whoever copies them is responsible for the copy.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the empty password, which plugins treat apart: the reply to it is empty too.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Self {
        Self::from(password.as_bytes())
    }
}

impl From<&[u8]> for Secret {
    fn from(password: &[u8]) -> Self {
        Self(Zeroizing::new(password.to_vec()))
    }
}

impl From<Vec<u8>> for Secret {
    fn from(password: Vec<u8>) -> Self {
        Self(Zeroizing::new(password))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        same(self.expose(), other.expose())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Equality that takes as long for a near miss as for a wild guess. Only the length is given away.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    verify_slices_are_equal(left, right).is_ok()
}

/// An authentication plugin, by the name it has on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// `mysql_native_password`
    Native,
    /// `caching_sha2_password`
    CachingSha2,
    /// `sha256_password`: the password itself, inside TLS or encrypted. Spoken towards servers only: to a user that does
    /// not exist, MySQL pretends that it uses this.
    Sha256,
    /// `mysql_clear_password`: the password as it is. Only ever inside TLS.
    ClearPassword,
    /// Any other; not spoken here, but named in errors.
    Other(Box<[u8]>),
}

impl Plugin {
    /// The plugin of this name; a terminating zero is not part of it.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        [Self::Native, Self::CachingSha2, Self::Sha256, Self::ClearPassword]
            .into_iter()
            .find(|plugin| plugin.name() == name)
            .unwrap_or_else(|| Self::Other(name.into()))
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        match self {
            Self::Native => b"mysql_native_password",
            Self::CachingSha2 => b"caching_sha2_password",
            Self::Sha256 => b"sha256_password",
            Self::ClearPassword => b"mysql_clear_password",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::from("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(secret.expose(), b"hunter2");
    }

    #[test]
    fn secrets_compare_by_content() {
        let secret = Secret::from("hunter2");
        for (other, equal) in [("hunter2", true), ("hunter3", false), ("hunter", false), ("", false)] {
            assert_eq!(secret == Secret::from(other), equal, "{other}");
        }
        assert!(Secret::from(Vec::new()).is_empty());
        assert!(Secret::default() == Secret::from(""));
    }

    #[test]
    fn plugins_have_the_names_of_the_wire() {
        for (name, spoken) in [
            ("mysql_native_password", true),
            ("caching_sha2_password", true),
            ("sha256_password", true),
            ("mysql_clear_password", true),
            ("client_ed25519", false),
            ("mysql_native_password ", false),
            ("", false),
        ] {
            let plugin = Plugin::from_name(name.as_bytes());
            assert_eq!(plugin.to_string(), name);
            assert_eq!(matches!(plugin, Plugin::Other(_)), !spoken);
        }
    }
}
