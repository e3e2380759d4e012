//! Tallies: what was made under which name, so that a pin can end when all of it is provably gone.

/// Names of things that may exist. A name is a hash; a thing made in a way that hides its name makes the tally unsure.
#[derive(Debug, Default)]
pub(super) struct Tally {
    names: Vec<u64>,
    unsure: bool,
}

impl Tally {
    /// More names than this are not counted one by one.
    const MOST: usize = 256;

    /// One more thing of this name.
    pub(super) fn add(&mut self, name: Option<u64>) {
        match name {
            Some(name) if self.names.len() < Self::MOST => self.names.push(name),
            _ => self.unsure = true,
        }
    }

    /// The thing of this name exists, once.
    pub(super) fn add_once(&mut self, name: Option<u64>) {
        if name.is_none_or(|name| !self.names.contains(&name)) {
            self.add(name);
        }
    }

    /// One thing of this name is gone.
    pub(super) fn remove(&mut self, name: u64) {
        if let Some(at) = self.names.iter().position(|other| *other == name) {
            self.names.swap_remove(at);
        }
    }

    /// Names no longer mean what they meant, or something exists that has none.
    pub(super) fn doubt(&mut self) {
        self.unsure |= !self.names.is_empty();
    }

    /// Nothing can exist.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.unsure
    }

    /// Everything is gone, whatever it was.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_gone_as_made() {
        let mut tally = Tally::default();
        tally.add(Some(1));
        tally.add(Some(1));
        tally.add_once(Some(2));
        tally.add_once(Some(2));
        tally.remove(3);
        tally.remove(1);
        tally.remove(2);
        assert!(!tally.is_empty());
        tally.remove(1);
        assert!(tally.is_empty());
        tally.doubt();
        assert!(tally.is_empty(), "there was nothing to doubt");
        tally.add(None);
        tally.remove(1);
        assert!(!tally.is_empty());
        tally.clear();
        assert!(tally.is_empty());
    }

    #[test]
    fn a_million_names_take_no_memory() {
        let mut tally = Tally::default();
        (0..1_000_000).for_each(|name| tally.add(Some(name)));
        (0..1_000_000).for_each(|name| tally.remove(name));
        assert!(!tally.is_empty());
        assert!(tally.names.capacity() <= 2 * Tally::MOST);
    }
}
