//! Killing what a connection does, from another connection.

use super::{Backend, QueryError};

impl Backend {
    /// Kills the statement that runs on another connection of the same account.
    ///
    /// # Errors
    /// As [`Backend::query`]; 1094 if that connection is gone.
    pub async fn kill_query(&mut self, thread_id: u32) -> Result<(), QueryError> {
        self.query(&format!("KILL QUERY {thread_id}")).await.map(|_| ())
    }
}
