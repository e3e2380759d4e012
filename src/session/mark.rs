//! A mark on the list of warnings, for statements of which nobody knows whether they empty it.
//!
//! MariaDB empties the list only at a statement that uses a table, and what a procedure does, say, is not seen. As long as
//! the list is on the backend that is the server's affair. Once only the memory has it, a warning of our own is put onto
//! the backend's list in front of such a statement: if that is what is there afterwards, the list has been left alone.

use super::memory::{About, Fate};
use super::{Rows, Session};
use crate::protocol::command::Command;
use crate::sql::Effects;

/// Leaves one warning, and nothing else that is not known.
const STATEMENT: &str = "DO CAST('myriad was here' AS SIGNED)";

/// What that warning says.
const WORDS: &[u8] = b"'myriad was here'";

impl Session {
    /// What must be run in front of this command, so that its end tells whether it has emptied the list. `effects`: none if
    /// the text is not known.
    pub fn mark(&mut self, command: Command, effects: Option<&Effects>) -> Option<&'static str> {
        let memory = &mut self.memory;
        memory.marked = false;
        if !self.options.mariadb || !memory.list_moved || memory.warnings == 0 {
            return None;
        }
        if effects.is_some_and(|effects| About::new(command, effects, true).fate() != Fate::Unsure) {
            return None;
        }
        (memory.marked, memory.count_moved) = (true, true);
        Some(STATEMENT)
    }

    /// What was found on the backend after a statement that the mark was for.
    pub(super) fn note_mark(&mut self, rows: Rows) {
        let is_mark = |row: &Vec<Option<Vec<u8>>>| matches!(row.as_slice(), [_, _, Some(message)] if memchr::memmem::find(message, WORDS).is_some());
        // What a RESIGNAL has added is known.
        let left_alone = rows.first().is_some_and(is_mark);
        self.warned |= !rows.is_empty();
        if !left_alone {
            self.memory.forget_list();
            self.memory.save(rows);
        }
        self.memory.asked_for_list();
    }
}
