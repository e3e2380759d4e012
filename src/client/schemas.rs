//! Schemas with limits of their own: `[[limits.schemas]]`.

use std::collections::HashMap;

use super::places::{Place, Places};
use crate::config::SchemaLimits;
use crate::pool::SchemaId;

/// Every schema that is limited.
#[derive(Debug, Default)]
pub struct Schemas {
    by_name: HashMap<Box<[u8]>, SchemaId>,
    /// By [`SchemaId`].
    places: Vec<Places>,
}

impl Schemas {
    /// As configured; more than 65,536 are not.
    #[must_use]
    pub fn new(limits: &[SchemaLimits]) -> Self {
        let numbered = limits.iter().zip(0..=u16::MAX);
        let by_name = numbered.map(|(limits, n)| (limits.name.as_bytes().into(), SchemaId(n)));
        let places = limits.iter().map(|limits| Places::new(limits.max_clients));
        Self { by_name: by_name.collect(), places: places.collect() }
    }

    /// A schema that is limited. (Without any, this costs nothing.)
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<SchemaId> {
        if self.by_name.is_empty() { None } else { self.by_name.get(name).copied() }
    }

    /// Counts one more client that logs in to this schema, until the place is dropped.
    ///
    /// # Errors
    /// The schema's `max_clients`, if it has as many.
    pub fn enter(&self, name: Option<&[u8]>) -> Result<Place, usize> {
        let found = name.and_then(|name| self.find(name)).and_then(|id| self.places.get(usize::from(id.0)));
        found.map_or_else(|| Ok(Place::unlimited()), Places::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_has_so_many_clients_and_no_more() {
        let limit = |name: &str, max_clients| SchemaLimits { name: name.into(), max_clients, ..Default::default() };
        let schemas = Schemas::new(&[limit("shop", 2), limit("wiki", 0)]);
        let two = [schemas.enter(Some(b"shop")).unwrap(), schemas.enter(Some(b"shop")).unwrap()];
        assert_eq!(schemas.enter(Some(b"shop")).unwrap_err(), 2);
        for free in [Some(&b"wiki"[..]), Some(b"other"), None] {
            assert!(schemas.enter(free).is_ok());
        }
        drop(two);
        assert!(schemas.enter(Some(b"shop")).is_ok());
        assert_eq!((schemas.find(b"wiki"), schemas.find(b"Shop")), (Some(SchemaId(1)), None));
    }
}
