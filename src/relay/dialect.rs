//! What the two ends agreed on with us, where it differs.

use bytes::BytesMut;

use crate::protocol::capability::StatusFlags;
use crate::protocol::packet::eof::EofPacket;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::Wishes;

/// The dialects of both ends of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The client speaks CLIENT_DEPRECATE_EOF.
    pub client_deprecates_eof: bool,
    /// The backend speaks CLIENT_DEPRECATE_EOF. A client does only if its server does.
    pub backend_deprecates_eof: bool,
    /// The client speaks CLIENT_SESSION_TRACK.
    pub client_tracks: bool,
    /// The backend speaks CLIENT_SESSION_TRACK.
    pub backend_tracks: bool,
    /// The session's status flags before this turn, for EOF packets that must be made up.
    pub status: StatusFlags,
}

impl Dialect {
    /// Must EOF packets be put in, and sequence numbers be moved?
    pub(super) fn translates(self) -> bool {
        self.backend_deprecates_eof && !self.client_deprecates_eof
    }

    /// Writes to `out` what the client gets instead of this OK packet; false if it may have it as it is.
    pub(super) fn rewrite_ok(self, ok: &OkPacket<'_>, wishes: &Wishes, out: &mut BytesMut) -> bool {
        if !ok.status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED) {
            return false;
        }
        let mut wanted = BytesMut::new();
        if self.client_tracks {
            wishes.filter(ok.session_state, &mut wanted);
        }
        OkPacket { session_state: &wanted, ..*ok }.encode(out, self.client_tracks);
        true
    }

    /// The EOF that an old client gets at the end of rows.
    pub(super) fn rows_end(ok: &OkPacket<'_>) -> EofPacket {
        let mut status = ok.status;
        status.remove(StatusFlags::SERVER_SESSION_STATE_CHANGED);
        EofPacket { warnings: ok.warnings, status }
    }
}
