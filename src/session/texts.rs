//! The texts of prepared statements, each kept once: 100,000 clients prepare the same few.

use std::sync::Arc;

use super::shelf::{Place, Shelf};
use crate::sql::{Effects, Mode, Word};

/// A prepared statement's text. Compare with [`Arc::ptr_eq`] (or by [`Text::id`]).
#[derive(Debug)]
pub struct Text {
    /// Its number, never given twice by one [`Texts`].
    pub id: u64,
    bytes: Box<[u8]>,
    mode: Mode,
    effects: Effects,
    place: Place<Text>,
}

impl Text {
    /// As the client wrote it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How it was read.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// It is a `SET`.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.effects.first == Word::Set
    }

    /// What it does.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.effects
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.place.leave(self.id);
    }
}

/// Keeps texts, each only once and only as long as somebody holds it.
#[derive(Debug, Default)]
pub struct Texts {
    shelf: Arc<Shelf<Text>>,
}

impl Texts {
    /// The one text of these bytes, as read in this mode; `effects` is what it does.
    #[must_use]
    pub fn intern(&self, bytes: &[u8], mode: Mode, effects: Effects) -> Arc<Text> {
        self.shelf.intern(
            (bytes, mode),
            |text, (bytes, mode)| *text.bytes == **bytes && text.mode == *mode,
            |(bytes, mode), id, place| Text { id, bytes: bytes.into(), mode, effects, place },
        )
    }

    /// A text that was not kept.
    #[must_use]
    pub fn nameless(&self, mode: Mode, effects: Effects) -> Arc<Text> {
        let (id, place) = (self.shelf.next_id(), Place::nowhere());
        Arc::new(Text { id, bytes: Box::default(), mode, effects, place })
    }

    /// How many are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelf.len()
    }

    /// Whether none is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql;

    #[test]
    fn the_same_text_is_the_same_object_as_long_as_it_is_used() {
        let texts = Texts::default();
        let mode = Mode::default();
        let ansi = Mode { ansi_quotes: true, ..mode };
        let intern = |bytes: &[u8], mode| texts.intern(bytes, mode, sql::effects(bytes, mode));
        let one = intern(b"SELECT \"a\"", mode);
        assert!(Arc::ptr_eq(&one, &intern(b"SELECT \"a\"", mode)));
        assert!(!Arc::ptr_eq(&one, &intern(b"SELECT \"a\"", ansi)));
        let other = intern(b"SELECT 2", mode);
        assert_eq!(texts.len(), 2);
        let gone = one.id;
        drop((one, other));
        assert!(texts.is_empty());
        assert!(intern(b"SELECT \"a\"", mode).id > gone);
    }
}
