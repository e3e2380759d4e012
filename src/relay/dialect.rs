//! What the two ends agreed on with us, where it differs.

use bytes::BytesMut;

use super::Witness;
use crate::protocol::capability::StatusFlags;
use crate::protocol::packet::eof::EofPacket;
use crate::protocol::packet::ok::OkPacket;

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
    /// The server is MariaDB.
    pub mariadb: bool,
    /// The client asked for a cursor (COM_STMT_EXECUTE). The flag in a reply may also be about a procedure's own.
    pub cursor: bool,
    /// The session's status flags before this turn, for EOF packets that must be made up.
    pub status: StatusFlags,
}

impl Dialect {
    /// Must EOF packets be put in, and sequence numbers be moved?
    pub(super) fn translates(self) -> bool {
        self.backend_deprecates_eof && !self.client_deprecates_eof
    }

    /// What ends rows for an old client, where `eof` says the same as the server's OK. MySQL tells old clients only in
    /// front of the row that these are OUT parameters and that more follows.
    pub(super) fn last_eof(self, eof: EofPacket) -> EofPacket {
        if self.mariadb || !eof.status.contains(StatusFlags::SERVER_PS_OUT_PARAMS) {
            return eof;
        }
        let told = StatusFlags::SERVER_PS_OUT_PARAMS | StatusFlags::SERVER_MORE_RESULTS_EXISTS;
        EofPacket { status: eof.status - told, ..eof }
    }

    /// Writes to `out` what the client gets instead of this OK packet; false if it may have it as it is.
    pub(super) fn rewrite_ok<W: Witness>(self, ok: &OkPacket<'_>, witness: &mut W, out: &mut BytesMut) -> bool {
        let warnings = witness.warnings(ok.warnings);
        let changed = ok.status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED);
        if !changed && warnings == ok.warnings {
            return false;
        }
        let ok = OkPacket { warnings, ..*ok };
        if !changed {
            ok.encode(out, self.client_tracks);
            return true;
        }
        let mut wanted = BytesMut::new();
        let told = self.client_tracks && witness.tell(ok.session_state, &mut wanted);
        ok.with_changes(told, &wanted).encode(out, self.client_tracks);
        true
    }
}
