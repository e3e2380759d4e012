//! Schemas with limits of their own: `[[limits.schemas]]`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::SchemaLimits;
use crate::pool::SchemaId;

/// Every schema that is limited.
#[derive(Debug, Default)]
pub struct Schemas {
    by_name: HashMap<Box<[u8]>, SchemaId>,
    /// By [`SchemaId`]: how many clients it may have, and how many there are.
    clients: Vec<(usize, Arc<AtomicUsize>)>,
}

impl Schemas {
    /// As configured; more than 65,536 are not.
    #[must_use]
    pub fn new(limits: &[SchemaLimits]) -> Self {
        let numbered = limits.iter().zip(0..=u16::MAX);
        let by_name = numbered.map(|(limits, n)| (limits.name.as_bytes().into(), SchemaId(n)));
        let most = |limits: &SchemaLimits| if limits.max_clients == 0 { usize::MAX } else { limits.max_clients };
        Self { by_name: by_name.collect(), clients: limits.iter().map(|it| (most(it), Arc::default())).collect() }
    }

    /// A schema that is limited. (Without any, this costs nothing.)
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<SchemaId> {
        if self.by_name.is_empty() { None } else { self.by_name.get(name).copied() }
    }

    /// Counts one more client that logs in to this schema, until the slot is dropped.
    ///
    /// # Errors
    /// The schema's `max_clients`, if it has as many.
    pub fn enter(&self, name: Option<&[u8]>) -> Result<SchemaSlot, usize> {
        let found = name.and_then(|name| self.find(name)).and_then(|id| self.clients.get(usize::from(id.0)));
        let Some((most, clients)) = found else { return Ok(SchemaSlot(None)) };
        let one_more = |clients| if clients < *most { Some(clients + 1) } else { None };
        match clients.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(SchemaSlot(Some(Arc::clone(clients)))),
            Err(_) => Err(*most),
        }
    }
}

/// The right of one client to be in a schema.
#[derive(Debug)]
#[must_use = "dropping it gives the place away"]
pub struct SchemaSlot(Option<Arc<AtomicUsize>>);

impl Drop for SchemaSlot {
    fn drop(&mut self) {
        if let Some(clients) = &self.0 {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
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
