//! Statements that have a name, as far as a connection has them. A name means something to one session only; what an
//! earlier one has left under it must not be found by the next.

use std::sync::{Arc, Weak};

use crate::session::Named;

/// How many names of sessions that are elsewhere by now are left on a connection.
const MOST: usize = 32;

/// Names that may mean something on a connection.
#[derive(Debug, Default)]
pub struct NamesThere(Vec<(Box<str>, Weak<Named>)>);

impl NamesThere {
    /// Whether there can be none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the name stands for this here.
    #[must_use]
    pub fn has(&self, named: &Arc<Named>) -> bool {
        self.0.iter().any(|(name, there)| *name == named.name && there.as_ptr() == Arc::as_ptr(named))
    }

    /// Whether the name may stand for anything here.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.0.iter().any(|(there, _)| **there == *name)
    }

    /// The name stands for this from here on.
    pub fn put(&mut self, named: &Arc<Named>) {
        self.remove(&named.name);
        self.0.push((named.name.clone(), Arc::downgrade(named)));
    }

    /// The name stands for something that is nobody's.
    pub fn put_nobodys(&mut self, name: &str) {
        self.remove(name);
        self.0.push((name.into(), Weak::new()));
    }

    /// The name stands for nothing, or for what its session alone knows of.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(there, _)| **there != *name);
    }

    /// Nothing is here that another session could find.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Names that stand for something else than what a session has under them.
    #[must_use]
    pub fn strange<'a>(&self, own: impl Iterator<Item = &'a Arc<Named>>) -> Vec<Box<str>> {
        let own: Vec<_> = own.map(Arc::as_ptr).collect();
        self.0.iter().filter(|(_, there)| !own.contains(&there.as_ptr())).map(|(name, _)| name.clone()).collect()
    }

    /// The oldest names of all but this session, as far as they are too many.
    #[must_use]
    pub fn surplus<'a>(&self, own: impl Iterator<Item = &'a Arc<Named>>) -> Vec<Box<str>> {
        if self.0.len() <= MOST {
            return Vec::new();
        }
        let mut strange = self.strange(own);
        strange.truncate(strange.len().saturating_sub(MOST));
        strange
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Interner, StateSpec, Texts};

    #[test]
    fn a_name_is_of_one_session() {
        let (texts, interner) = (Texts::default(), Interner::new());
        let named = |name: &str| {
            let text = texts.intern(b"PREPARE p FROM 'SELECT 1'", Default::default(), Default::default());
            Arc::new(Named { name: name.into(), text, state: interner.intern(StateSpec::default()) })
        };
        let (mut there, p, other) = (NamesThere::default(), named("p"), named("p"));
        there.put(&p);
        assert!(there.has(&p) && !there.has(&other) && there.has_name("p") && !there.has_name("q"));
        assert_eq!((there.strange([&p].into_iter()), there.strange([&other].into_iter())), (vec![], vec!["p".into()]));
        there.put(&other);
        assert!(!there.has(&p) && there.has(&other));
        drop(other);
        assert_eq!(there.strange([&p].into_iter()), ["p".into()], "its session is gone");
        there.put_nobodys("p");
        assert!(there.has_name("p") && there.strange([&p].into_iter()).len() == 1);
        there.remove("p");
        assert!(there.is_empty());
        let many: Vec<_> = (0..MOST + 3).map(|n| named(&format!("n{n}"))).collect();
        many.iter().for_each(|named| there.put(named));
        assert_eq!(there.surplus([&many[0]].into_iter()), ["n1".into(), "n2".into()]);
        assert!(there.surplus(many.iter()).is_empty());
        there.clear();
        assert!(there.is_empty());
    }
}
