//! Makes a failing script short: fewer backends, fewer clients, fewer steps, as long as it still fails.

use std::time::{Duration, Instant};

use super::script::Step;
use super::theatre::{Failure, Stage};

/// Shrinks a failure until nothing more can be left out, or the time is up.
pub(super) async fn shrink(stage: Stage, failure: Failure, time: Duration) -> (Stage, Failure) {
    let limit = Instant::now() + time;
    let mut best = Best { stage, failure, limit };
    for backends in 1..if stage.leak.is_some() { 1 } else { stage.backends } {
        let fewer = Stage { backends, ..stage };
        let steps = best.failure.script.steps.clone();
        if best.still_fails(fewer, steps).await {
            break;
        }
    }
    best.keep_the_end().await;
    loop {
        let before = best.failure.script.steps.len();
        best.drop_clients().await;
        best.drop_steps().await;
        best.simplify_logins().await;
        if best.failure.script.steps.len() == before || Instant::now() > limit {
            return (best.stage, best.failure);
        }
    }
}

struct Best {
    stage: Stage,
    failure: Failure,
    limit: Instant,
}

impl Best {
    /// Plays these steps; if they fail, they are the best from now on.
    async fn still_fails(&mut self, stage: Stage, steps: Vec<Step>) -> bool {
        if Instant::now() > self.limit {
            return false;
        }
        let mut script = self.failure.script.clone();
        script.steps = steps;
        let Some(Err(failure)) = Box::pin(stage.perform(&script)).await else { return false };
        if failure.script.steps.last() != self.failure.script.steps.last() {
            // Another story.
            return false;
        }
        // A wait that nobody ends is what leaving out a step makes of many a script.
        if failure.waited && !self.failure.waited {
            return false;
        }
        *self = Self { stage, failure, limit: self.limit };
        true
    }

    fn steps(&self) -> &[Step] {
        &self.failure.script.steps
    }

    /// Mostly the cause is not long ago, and a short script is played quickly.
    async fn keep_the_end(&mut self) {
        for length in [12, 30, 60, 120, 250, 500, 1000] {
            let steps = self.steps();
            if length >= steps.len() {
                return;
            }
            let end = steps[steps.len() - length..].to_vec();
            if self.still_fails(self.stage, end).await {
                return;
            }
        }
    }

    async fn drop_clients(&mut self) {
        let mut clients: Vec<usize> = self.steps().iter().map(|step| step.client).collect();
        clients.sort_unstable();
        clients.dedup();
        let last = self.steps().last().map(|step| step.client);
        clients.retain(|client| Some(*client) != last);
        let mut size = clients.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < clients.len() {
                let dropped = clients[at..clients.len().min(at + size)].to_vec();
                let rest = self.steps().iter().filter(|step| !dropped.contains(&step.client)).cloned().collect();
                if self.still_fails(self.stage, rest).await {
                    clients.retain(|client| !dropped.contains(client));
                } else {
                    at += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    async fn drop_steps(&mut self) {
        let mut size = self.steps().len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            // The last one is what fails.
            while at + 1 < self.steps().len() {
                let end = (at + size).min(self.steps().len() - 1);
                let rest = [&self.steps()[..at], &self.steps()[end..]].concat();
                if !self.still_fails(self.stage, rest).await {
                    at += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Everybody logs in as most do, if that makes no difference.
    async fn simplify_logins(&mut self) {
        let usual = super::author::usual();
        for client in 0..self.failure.script.profiles.len() {
            let before = self.failure.script.profiles[client].clone();
            if before == usual || !self.steps().iter().any(|step| step.client == client) {
                continue;
            }
            self.failure.script.profiles[client] = usual.clone();
            let steps = self.steps().to_vec();
            if !self.still_fails(self.stage, steps).await {
                self.failure.script.profiles[client] = before;
            }
        }
    }
}
