//! The pool's connector for real servers.

use std::sync::Arc;
use std::time::Duration;

use super::{Connector, Failure, FailureKind};
use crate::backend::{self, Backend, Class, OpenError};
use crate::metrics::OpenResult;

/// How long a server may take to hang up.
const GOODBYE: Duration = Duration::from_secs(1);

/// Connections to one server, as the pool sees them.
#[derive(Clone, Debug)]
pub struct Server(pub Arc<backend::Connector>);

impl Connector for Server {
    type Conn = Box<Backend>;
    type Class = Class;
    type Error = OpenError;

    async fn open(&self, class: &Class) -> Result<Box<Backend>, Failure<OpenError>> {
        self.0.open(class).await.map(Box::new).map_err(|error| {
            let kind = match (error.kind, error.code) {
                (OpenResult::Refused, _) => FailureKind::Refused,
                (OpenResult::Timeout, _) => FailureKind::Timeout,
                (OpenResult::Full, 1203 | 1226) => FailureKind::AccountFull,
                (OpenResult::Full | OpenResult::Addresses, _) => FailureKind::Full,
                (OpenResult::Denied, _) => FailureKind::Account,
                (OpenResult::Ok | OpenResult::Tls | OpenResult::Protocol, _) => FailureKind::Other,
            };
            Failure { error, kind }
        })
    }

    fn is_alive(&self, conn: &mut Box<Backend>) -> bool {
        conn.is_alive()
    }

    fn close(&self, conn: Box<Backend>) -> impl Future<Output = ()> + Send + 'static {
        let goodbye = tokio::time::timeout(GOODBYE, conn.close());
        // A server that does not hang up in time is on its own.
        async move { drop(goodbye.await) }
    }
}
