//! What a run is to do.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::statement::{Statement, StatementError};

/// What a run is to do: who connects where, how fast, and what they ask.
#[derive(Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The server or proxy.
    pub target: SocketAddr,
    /// The account that every client uses.
    pub user: String,
    /// Its password; empty is none.
    pub password: String,
    /// The default schema, if any.
    pub schema: Option<String>,
    /// How many clients.
    pub clients: usize,
    /// How many log in per second; 0 is as fast as they can.
    pub ramp_per_second: usize,
    /// How long the clients ask, once all are connected.
    pub duration: Duration,
    /// The mean pause of a client between two statements (exponentially distributed); zero is none.
    pub think: Duration,
    /// What they ask, picked at random; [`Statement`] has the placeholders. None: the clients stay idle.
    pub statements: Vec<String>,
    /// Local addresses to connect from, in turn; empty leaves it to the kernel. One address reaches one target about
    /// 28,000 times, with Linux's default port range.
    pub sources: Vec<IpAddr>,
}

/// A plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nobody to connect.
    #[error("a load needs at least one client")]
    NoClients,
    /// A source address of the other family than the target's.
    #[error("the source address {0} cannot reach {1}: one is IPv4, the other IPv6")]
    Family(IpAddr, SocketAddr),
    /// A statement that cannot be understood.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

impl Plan {
    /// A plan for a single question with this account.
    #[must_use]
    pub fn single(target: SocketAddr, user: &str, password: &str, schema: Option<&str>) -> Self {
        Self {
            target,
            user: user.into(),
            password: password.into(),
            schema: schema.map(Into::into),
            clients: 1,
            ramp_per_second: 0,
            duration: Duration::ZERO,
            think: Duration::ZERO,
            statements: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Checks the plan and prepares its statements.
    pub(super) fn check(&self) -> Result<Vec<Statement>, PlanError> {
        if self.clients == 0 {
            return Err(PlanError::NoClients);
        }
        if let Some(source) = self.sources.iter().find(|source| source.is_ipv4() != self.target.is_ipv4()) {
            return Err(PlanError::Family(*source, self.target));
        }
        Ok(self.statements.iter().map(|text| Statement::parse(text)).collect::<Result<_, _>>()?)
    }

    /// Where client number `index` connects from.
    pub(super) fn source(&self, index: usize) -> Option<IpAddr> {
        let place = index.checked_rem(self.sources.len())?;
        self.sources.get(place).copied()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Everything but the password.
        f.debug_struct("Plan")
            .field("target", &self.target)
            .field("user", &self.user)
            .field("schema", &self.schema)
            .field("clients", &self.clients)
            .field("ramp_per_second", &self.ramp_per_second)
            .field("duration", &self.duration)
            .field("think", &self.think)
            .field("statements", &self.statements)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let target = SocketAddr::from(([127, 0, 0, 1], 3306));
        Plan { statements: vec!["SELECT ?10".into()], ..Plan::single(target, "u", "secret", None) }
    }

    #[test]
    fn refuses_what_cannot_run() {
        assert!(plan().check().is_ok());
        assert_eq!(Plan { clients: 0, ..plan() }.check().unwrap_err(), PlanError::NoClients);
        let other = IpAddr::from([0u16; 8]);
        assert!(matches!(Plan { sources: vec![other], ..plan() }.check(), Err(PlanError::Family(..))));
        assert!(matches!(
            Plan { statements: vec!["SELECT ?0".into()], ..plan() }.check(),
            Err(PlanError::Statement(_))
        ));
    }

    #[test]
    fn sources_take_turns() {
        let (a, b) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let plan = Plan { sources: vec![a, b], ..plan() };
        assert_eq!([plan.source(0), plan.source(1), plan.source(2)], [Some(a), Some(b), Some(a)]);
        assert_eq!(Plan { sources: vec![], ..plan }.source(7), None);
    }

    #[test]
    fn debug_output_hides_the_password() {
        assert!(!format!("{:?}", plan()).contains("secret"));
    }

    #[test]
    fn survives_its_wire_format() {
        let text = toml::to_string(&plan()).unwrap();
        let back: Plan = toml::from_str(&text).unwrap();
        assert_eq!((back.password.as_str(), back.statements.len()), ("secret", 1));
    }
}
