//! What a run is to do.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::statement::StatementError;
use super::work::{Script, Work};

/// What a run is to do: who connects where, how fast, and what they ask.
#[derive(Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The server or proxy, or several, whose clients take turns.
    pub targets: Vec<SocketAddr>,
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
    /// How long they stay connected after that, idle.
    pub hold: Duration,
    /// The mean pause of a client between two statements (exponentially distributed); zero is none.
    pub think: Duration,
    /// What they do.
    pub work: Work,
    /// A connection of its own for each piece of work: connect, do it, say good-bye.
    pub churn: bool,
    /// Pieces of work a second of all clients together, begun whether those before have ended or not as far as there are
    /// clients, and measured from when each should have begun; zero is as fast as they can.
    pub rate: f64,
    /// The number of the first client, where a run is split between processes.
    pub first: usize,
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
    /// No target.
    #[error("a load needs a target")]
    NoTarget,
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
            targets: vec![target],
            user: user.into(),
            password: password.into(),
            schema: schema.map(Into::into),
            clients: 1,
            ramp_per_second: 0,
            duration: Duration::ZERO,
            hold: Duration::ZERO,
            think: Duration::ZERO,
            work: Work::default(),
            churn: false,
            rate: 0.0,
            first: 0,
            sources: Vec::new(),
        }
    }

    /// Checks the plan and finds its placeholders.
    pub(super) fn check(&self) -> Result<Script, PlanError> {
        if self.clients == 0 {
            return Err(PlanError::NoClients);
        }
        if self.targets.is_empty() {
            return Err(PlanError::NoTarget);
        }
        for target in &self.targets {
            if let Some(source) = self.sources.iter().find(|source| source.is_ipv4() != target.is_ipv4()) {
                return Err(PlanError::Family(*source, *target));
            }
        }
        Ok(self.work.parse()?)
    }

    /// Splits the clients, and what they do in all, between so many processes.
    #[must_use]
    pub fn split(&self, processes: usize) -> Vec<Self> {
        let processes = processes.clamp(1, self.clients.max(1));
        let mut first = self.first;
        let part = |n: usize| {
            let clients = self.clients / processes + usize::from(n < self.clients % processes);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let share = clients as f64 / self.clients.max(1) as f64;
            let ramp_per_second = self.ramp_per_second.div_ceil(processes);
            let plan = Self { clients, first, rate: self.rate * share, ramp_per_second, ..self.clone() };
            first += clients;
            plan
        };
        (0..processes).map(part).collect()
    }

    /// Where client number `index` connects to.
    pub(super) fn target(&self, index: usize) -> SocketAddr {
        let place = (self.first + index).checked_rem(self.targets.len());
        place.and_then(|place| self.targets.get(place)).copied().unwrap_or_else(|| SocketAddr::from(([0; 4], 0)))
    }

    /// How often one client begins a piece of work, if the plan says so.
    pub(super) fn period(&self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let seconds = self.clients as f64 / self.rate;
        (self.rate > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Where client number `index` connects from.
    pub(super) fn source(&self, index: usize) -> Option<IpAddr> {
        let place = (self.first + index).checked_rem(self.sources.len())?;
        self.sources.get(place).copied()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Everything but the password.
        f.debug_struct("Plan")
            .field("targets", &self.targets)
            .field("user", &self.user)
            .field("schema", &self.schema)
            .field("clients", &self.clients)
            .field("ramp_per_second", &self.ramp_per_second)
            .field("duration", &self.duration)
            .field("think", &self.think)
            .field("work", &self.work)
            .field("churn", &self.churn)
            .field("rate", &self.rate)
            .field("first", &self.first)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let target = SocketAddr::from(([127, 0, 0, 1], 3306));
        Plan { work: Work::Statements(vec!["SELECT ?10".into()]), ..Plan::single(target, "u", "secret", None) }
    }

    #[test]
    fn refuses_what_cannot_run() {
        assert!(plan().check().is_ok());
        assert_eq!(Plan { clients: 0, ..plan() }.check().unwrap_err(), PlanError::NoClients);
        assert_eq!(Plan { targets: vec![], ..plan() }.check().unwrap_err(), PlanError::NoTarget);
        let other = IpAddr::from([0u16; 8]);
        assert!(matches!(Plan { sources: vec![other], ..plan() }.check(), Err(PlanError::Family(..))));
        assert!(matches!(
            Plan { work: Work::Prepared(vec!["SELECT ?0".into()]), ..plan() }.check(),
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
    fn a_split_plan_is_the_same_in_all() {
        let plan = Plan { clients: 10, rate: 50.0, ramp_per_second: 100, ..plan() };
        let parts = plan.split(3);
        let firsts: Vec<_> = parts.iter().map(|part| (part.first, part.clients)).collect();
        assert_eq!(firsts, [(0, 4), (4, 3), (7, 3)]);
        assert!(parts.iter().all(|part| part.period() == Some(Duration::from_millis(200))));
        assert_eq!((Plan { clients: 2, ..plan.clone() }.split(5).len(), plan.split(0).len()), (2, 1));
        assert_eq!(Plan { rate: 0.0, ..plan }.period(), None);
    }

    #[test]
    fn debug_output_hides_the_password() {
        assert!(!format!("{:?}", plan()).contains("secret"));
    }

    #[test]
    fn survives_its_wire_format() {
        let text = toml::to_string(&plan()).unwrap();
        let back: Plan = toml::from_str(&text).unwrap();
        assert_eq!((back.password.as_str(), back.work), ("secret", plan().work));
    }
}
