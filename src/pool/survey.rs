//! What operators want to know of the line and is not worth a gauge at every event: looked at once a tick of the keeper.

use std::sync::Arc;
use std::time::Duration;

use super::{Connector, Pool};
use crate::metrics::{PoolMetrics, WaitQueue};

/// The user label of everybody who is not in the configuration: what clients say about themselves is no label.
const OTHERS: &str = "(others)";

/// A look at the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Survey {
    /// How many statements may run at once; `None` if that is not limited.
    pub(super) limit: Option<usize>,
    /// The elasticity of throughput that `auto` sees, and how often it has compared.
    pub(super) gradient: Option<(f64, u64)>,
    /// Statements that have ever stalled.
    pub(super) stalls: u64,
    /// How long the oldest ticket has waited.
    pub(super) oldest: Duration,
    /// How long the first of those has waited that keep their connection.
    pub(super) oldest_returning: Duration,
    /// Users with connections or tickets.
    pub(super) users: Vec<UserSurvey>,
}

/// A user, in a survey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserSurvey {
    pub(super) name: Arc<str>,
    /// Is the name in the configuration?
    pub(super) listed: bool,
    pub(super) connections: usize,
    pub(super) waiting: usize,
}

/// What was shown the last time.
#[derive(Debug, Default)]
pub(super) struct Shown {
    users: Vec<Arc<str>>,
    stalls: u64,
    samples: u64,
}

impl Shown {
    /// Brings the metrics up to date.
    pub(super) fn show(&mut self, survey: &Survey, metrics: &PoolMetrics) {
        let limit = survey.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        metrics.running_limit.set(limit);
        let (gradient, samples) = survey.gradient.unwrap_or_default();
        metrics.gradient.set(gradient);
        metrics.samples.inc_by(samples - std::mem::replace(&mut self.samples, samples));
        metrics.stalls.inc_by(survey.stalls - std::mem::replace(&mut self.stalls, survey.stalls));
        metrics.oldest_wait.get(WaitQueue::New).set(survey.oldest.as_secs_f64());
        metrics.oldest_wait.get(WaitQueue::Returning).set(survey.oldest_returning.as_secs_f64());
        self.show_users(&survey.users, metrics);
    }

    fn show_users(&mut self, users: &[UserSurvey], metrics: &PoolMetrics) {
        let mut others = (0, 0);
        let before = std::mem::take(&mut self.users);
        for user in users {
            if user.listed {
                metrics.show_user(&user.name, user.connections, user.waiting);
                self.users.push(Arc::clone(&user.name));
            } else {
                others = (others.0 + user.connections, others.1 + user.waiting);
            }
        }
        let gone = before.iter().filter(|name| !self.users.contains(name));
        gone.for_each(|name| metrics.show_user(name, 0, 0));
        metrics.show_user(OTHERS, others.0, others.1);
    }
}

impl<C: Connector> Pool<C> {
    /// A look at the line now.
    pub(super) fn survey(&self) -> Survey {
        let now = super::shell::now();
        self.admission(|admission| admission.survey(now))
    }
}
