//! User variables that a session never had, on a backend that it cannot leave for a reset.

use super::serve::Client;
use crate::backend::Prefix;
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::session::{PinReason, PinSet};
use crate::sql::Effects;

impl Client {
    /// Sees to it that the command finds none of them: by other words, or by a statement in front of it. None if the backend
    /// is lost.
    pub(super) async fn erasure(
        &mut self,
        lease: &mut Lease<Server>,
        command: Command,
        effects: &Effects,
    ) -> Option<Prefix> {
        if !lease.served.others(self.owner()) {
            return Some(Prefix::default());
        }
        let unseen: PinSet = [PinReason::Unexplained, PinReason::Call].into_iter().collect();
        let rewords = command == Command::Query && self.is_whole();
        if self.session.pins().intersects(unseen) {
            let whole = !rewords || Box::pin(self.without_erased(lease, effects)).await;
            return whole.then(Prefix::default);
        }
        let erasure = if rewords {
            let (text, erasure) = self.session.without_foreign(self.text(), effects);
            text.into_iter().for_each(|text| self.replace_command(command, &text));
            erasure
        } else {
            self.session.erasure(effects)
        };
        Some(erasure.map_or_else(Prefix::default, |sql| Prefix::statement(&sql, lease)))
    }

    /// Code ran that was not seen, so what the session never named may be its own all the same; but not what was made NULL for
    /// it and still is. False if the backend is lost.
    async fn without_erased(&mut self, lease: &mut Lease<Server>, effects: &Effects) -> bool {
        let names: Vec<String> =
            self.session.foreign(effects).filter(|name| lease.erased.contains(*name)).map(str::to_owned).collect();
        if names.is_empty() {
            return true;
        }
        if !self.moved {
            if !self.pay(lease).await {
                return false;
            }
            let _ = self.session.moved();
            self.moved = true;
        }
        let questions: Vec<_> = names.iter().map(|name| format!("@`{name}` IS NULL")).collect();
        let Ok(answer) = lease.query(&format!("SELECT {} LIMIT 1", questions.join(", "))).await else { return false };
        let still = |(name, field): (String, Option<Vec<u8>>)| (field.as_deref() == Some(b"1")).then_some(name);
        let unset: Vec<String> = names.into_iter().zip(answer.fields(0)).filter_map(still).collect();
        if let Some(text) = self.session.without(self.text(), &unset) {
            self.replace_command(Command::Query, &text);
        }
        true
    }
}
