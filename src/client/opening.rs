//! What a new session begins with, where the server's `init_connect` or `backend.init_sql` makes it other than the
//! handshake alone would.
//!
//! What these leave depends on the session that they run in, its character set above all, and only the server knows. So
//! they are run once in each state that a handshake can make, on a backend, which tells what it has become of it; after
//! that the answer is known.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Door;
use super::lend::{self, Unlent};
use crate::backend::{Class, OpenError, Opening, QueryError};
use crate::metrics::{CloseReason, OpenResult};
use crate::pool::{Lease, LeaseError, Server};
use crate::session::{BackendState, Plan, State, StateSpec, plan};

/// What became of states in which new sessions began.
#[derive(Debug, Default)]
pub struct Openings(Mutex<HashMap<Key, Known>>);

impl Openings {
    /// How many are known at most; then it starts over.
    const MAX: usize = 10_000;

    fn get(&self, key: &Key, as_of: u64) -> Option<Arc<State>> {
        let openings = self.0.lock();
        openings.get(key).filter(|known| known.as_of == as_of).map(|known| Arc::clone(&known.start))
    }

    fn insert(&self, key: Key, known: Known) {
        let mut openings = self.0.lock();
        if openings.len() >= Self::MAX {
            openings.clear();
        }
        openings.insert(key, known);
    }
}

/// Whose session it is, and in which state it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    account: u64,
    base: u64,
    fresh: bool,
}

#[derive(Debug)]
struct Known {
    as_of: u64,
    start: Arc<State>,
    /// Held, so that an equal state has the same number.
    _base: Arc<State>,
}

/// What a session begins with that the handshake made like `base`; `fresh`: it is new, and has not only changed its user.
///
/// # Errors
/// If there is no backend to find out, or the server refuses the statements.
pub(super) async fn start(
    door: &Arc<Door>,
    class: &Class,
    owner: u64,
    base: Arc<State>,
    fresh: bool,
) -> Result<Arc<State>, Unlent> {
    if let Some(start) = known(door, class, &base, fresh) {
        return Ok(start);
    }
    let Some(opening) = class.account.opening(door.connector.era()) else { return Ok(base) };
    let key = Key { account: class.account.id, base: base.id, fresh };
    let mut class = class.clone();
    let mut lease = lend::take(door, &mut class, owner, base.id, None).await?;
    match Box::pin(run(door, &class, &mut lease, &base, &opening, fresh)).await {
        Ok(start) => {
            let known = Known { as_of: opening.as_of, start: Arc::clone(&start), _base: base };
            door.openings.insert(key, known);
            lend::give_back(lease, 0);
            Ok(start)
        }
        Err(error) => {
            lease.discard(CloseReason::Dirty);
            Err(LeaseError::Open(error))
        }
    }
}

/// The same, if it is known without asking.
pub(super) fn known(door: &Door, class: &Class, base: &Arc<State>, fresh: bool) -> Option<Arc<State>> {
    let Some(opening) = class.account.opening(door.connector.era()) else { return Some(Arc::clone(base)) };
    if opening.texts(fresh).next().is_none() {
        return Some(Arc::clone(base));
    }
    door.openings.get(&Key { account: class.account.id, base: base.id, fresh }, opening.as_of)
}

/// Runs the statements in this state, and tells what has become of it. The backend is as good as new afterwards.
async fn run(
    door: &Door,
    class: &Class,
    lease: &mut Lease<Server>,
    base: &Arc<State>,
    opening: &Opening,
    fresh: bool,
) -> Result<Arc<State>, OpenError> {
    // `init_connect` may be several statements.
    let wanted = BackendState::fresh(Arc::clone(base), true);
    let mut way = plan(&lease.state, &wanted);
    if way == Plan::Unreachable {
        door.connector.change_user(lease, &class.account).await?;
        way = plan(&lease.state, &wanted);
    }
    if let Plan::Restore(restore) = way {
        lease.restore(&restore).await.map_err(refused)?;
    }
    lease.state = wanted;
    for text in opening.texts(fresh) {
        lease.query(text).await.map_err(refused)?;
    }
    let mut spec = lease.read_state().await.map_err(refused)?;
    lease.read_variables(&mut spec).await.map_err(refused)?;
    let start = door.interner.intern(StateSpec { schema: base.schema().map(Into::into), ..spec });
    door.connector.reset(lease).await.map_err(refused)?;
    Ok(start)
}

fn refused(error: QueryError) -> OpenError {
    match error {
        QueryError::Refused { code, state, message } => {
            let message = format!("what sessions begin with (init_connect, backend.init_sql) failed: {message}");
            OpenError { kind: OpenResult::Protocol, code, state, message, from: None }
        }
        error => OpenError { code: 1158, ..OpenError::ours(OpenResult::Refused, error.to_string()) },
    }
}
