//! What a client asks for when it logs in.

use crate::protocol::auth::Plugin;
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::compression::{Algorithm, BadLevel};
use crate::protocol::packet::change_user::ChangeUser;
use crate::protocol::packet::handshake_response::{Attributes, HandshakeResponse};

/// Bytes of connection attributes that are kept of a client; MySQL's default is 512, the rest is dropped too.
const ATTRIBUTES_KEPT: usize = 2 << 10;

/// A client's wishes, from its response to the greeting or from COM_CHANGE_USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// Who wants in. Names that are not UTF-8 are read as Latin-1, so that different bytes stay different names.
    pub user: String,
    /// The default schema, as the client wrote it.
    pub schema: Option<Vec<u8>>,
    /// What both sides can do.
    pub capabilities: CapabilityFlags,
    /// The collation's number. A greeting's response carries its low byte only.
    pub collation: u16,
    /// The plugin that the client started with.
    pub plugin: Plugin,
    /// What the client says about itself, the first 2 KiB of it.
    pub attributes: Vec<(String, String)>,
    /// How the client's packets are compressed once it is logged in. A change of users does not touch it.
    pub compression: Option<Algorithm>,
}

impl LoginRequest {
    /// From the response to a greeting that offered `offered` and named the plugin `greeted`.
    ///
    /// # Errors
    /// If its compression makes no sense.
    pub(super) fn from_response(
        response: &HandshakeResponse<'_>,
        offered: CapabilityFlags,
        greeted: &Plugin,
    ) -> Result<Self, BadLevel> {
        let capabilities = response.head.capabilities & offered;
        Ok(Self {
            user: decode_name(response.user),
            schema: response.schema.map(<[u8]>::to_vec),
            capabilities,
            collation: response.head.collation.into(),
            plugin: plugin(response.plugin, capabilities, greeted),
            attributes: keep(response.attributes),
            compression: Algorithm::agreed(capabilities, response.zstd_level)?,
        })
    }

    /// From COM_CHANGE_USER on a connection with these `capabilities`, whose greeting named `greeted` and `collation`.
    pub(super) fn from_change(
        change: &ChangeUser<'_>,
        capabilities: CapabilityFlags,
        greeted: &Plugin,
        collation: u8,
    ) -> Self {
        Self {
            user: decode_name(change.user),
            schema: change.schema.map(<[u8]>::to_vec),
            capabilities,
            collation: change.collation.unwrap_or(collation.into()),
            plugin: plugin(change.plugin, capabilities, greeted),
            attributes: keep(change.attributes),
            compression: None,
        }
    }
}

/// The plugin a reply was made by. A client that knows plugins but names none does as the greeting says; to one that knows
/// none there is only one.
fn plugin(name: Option<&[u8]>, capabilities: CapabilityFlags, greeted: &Plugin) -> Plugin {
    match name {
        Some(name) => Plugin::from_name(name),
        None if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) => greeted.clone(),
        None => Plugin::Native,
    }
}

/// The name in UTF-8, in which the configuration and the backends have it.
///
/// A client on a Latin-1 terminal sends its user in Latin-1, and MySQL converts it too. Never lossy: two names that differ
/// must not become one.
fn decode_name(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(name) => name.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn keep(attributes: Attributes<'_>) -> Vec<(String, String)> {
    let mut room = ATTRIBUTES_KEPT;
    let lossy = |bytes| String::from_utf8_lossy(bytes).into_owned();
    attributes
        .pairs()
        .take_while(|(name, value)| {
            let fits = room.checked_sub(name.len() + value.len() + 2);
            room = fits.unwrap_or(0);
            fits.is_some()
        })
        .map(|(name, value)| (lossy(name), lossy(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::packet::handshake_response::encode_attributes;

    #[test]
    fn different_names_stay_different() {
        let names: [(&[u8], &str); 5] = [
            (b"app", "app"),
            (b"", ""),
            ("jos\u{e9}".as_bytes(), "jos\u{e9}"),
            (b"jos\xe9", "jos\u{e9}"),
            (b"\xff", "\u{ff}"),
        ];
        for (bytes, name) in names {
            assert_eq!(decode_name(bytes), name);
        }
        assert_ne!(decode_name(b"\xff"), decode_name(b"\xfe"));
        assert_ne!(decode_name(b"\xff"), decode_name("\u{fffd}".as_bytes()));
    }

    #[test]
    fn attributes_are_kept_in_order_and_within_bounds() {
        let pairs: Vec<_> = (0..1000).map(|n| (format!("name{n}"), "v".repeat(100))).collect();
        let raw = encode_attributes(&pairs);
        let kept = keep(Attributes::new(&raw));
        assert!((15..20).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept, pairs[..kept.len()]);
        assert_eq!(keep(Attributes::new(b"\x01a\x01b\x05cut")), [("a".to_owned(), "b".to_owned())]);
        assert_eq!(keep(Attributes::new(b"\xff")), []);
    }
}
