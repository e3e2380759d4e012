//! A schema that is told late: of the way back from a procedure that failed, since its ERR tells nothing.
//!
//! Measured: MySQL tells it with the next OK, whatever that answers. MariaDB tells it with the next OK that has something
//! else to tell. The proxy's backends tell it at other times: with the answer to a question of our own, or with what only
//! the proxy wanted to know.

use bytes::BytesMut;

use super::Session;
use crate::protocol::command::Command;
use crate::protocol::packet::session_track::{Change, changes};
use crate::sql::Flags;

/// The schema that the client may still be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Untold {
    #[default]
    Nothing,
    /// The server is to tell it.
    There,
    /// The server has told us.
    Here,
    /// With the next OK: a private connection would tell it.
    Now,
}

impl Session {
    /// Code that was not seen has failed.
    pub(super) fn note_way_back(&mut self) {
        if self.options.tracks && self.turn.flags.any(Flags::RUNS_UNSEEN) && self.untold == Untold::Nothing {
            self.untold = Untold::There;
        }
    }

    /// The question for the schema was answered, and MySQL has told the way back with that.
    pub(super) fn note_told_way_back(&mut self) {
        if !self.options.mariadb && self.untold == Untold::There {
            self.untold = Untold::Here;
        }
    }

    /// A statement is about to be executed in the present schema that a private connection would run in the one that it was
    /// prepared in, and come back from there.
    pub fn expect_way_back(&mut self) {
        if self.options.tracks {
            self.untold = Untold::Now;
        }
    }

    /// As [`Session::filter`], where a schema may come late.
    pub(super) fn filter_late(&mut self, raw: &[u8], out: &mut BytesMut) -> bool {
        let state = std::sync::Arc::clone(&self.state);
        let current = state.schema().unwrap_or_default();
        // What is executed may have been prepared in another schema, or fire a trigger there, and come back from there.
        let comes_back = self.turn.command != Command::Query || self.turn.writes_rows();
        let own = comes_back || self.turn.flags.any(Flags::USE | Flags::RUNS_UNSEEN);
        let (mut late, mut chosen, mut rest) =
            (matches!(self.untold, Untold::Here | Untold::Now), false, BytesMut::new());
        for change in changes(raw).map_while(Result::ok) {
            match change {
                Change::Schema(schema) if !own && schema == current => late = true,
                change => {
                    chosen |= matches!(change, Change::Schema(_));
                    change.encode(&mut rest);
                }
            }
        }
        let mut told = BytesMut::new();
        let changed = self.wishes.filter(&mut self.told, &rest, &mut told);
        if !late || chosen || (self.options.mariadb && !changed && self.untold != Untold::Now) {
            self.untold = match self.untold {
                _ if chosen => Untold::Nothing,
                _ if late => Untold::Here,
                other => other,
            };
            out.extend_from_slice(&told);
            return changed;
        }
        self.untold = Untold::Nothing;
        let is_variable = |change: &Change<'_>| matches!(change, Change::Variable { .. });
        let (variables, others): (Vec<_>, Vec<_>) = changes(&told).map_while(Result::ok).partition(is_variable);
        variables.iter().for_each(|change| change.encode(out));
        let schema = self.wishes.filter_one(&mut self.told, Change::Schema(current), out);
        others.iter().for_each(|change| change.encode(out));
        changed || schema
    }
}
