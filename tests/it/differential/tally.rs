//! What happened in a run: steps and packets compared, and what the proxy's metrics say it did.

use std::collections::BTreeMap;
use std::fmt;

use myriad::metrics::Metrics;

/// Which metrics are of interest.
const METRICS: &[&str] = &[
    "myriad_pool_leases_total",
    "myriad_restores_total",
    "myriad_saves_total",
    "myriad_asks_total",
    "myriad_resets_total",
    "myriad_local_answers_total",
    "myriad_chatter_total",
    "myriad_chatter_entries",
    "myriad_schema_exits_total",
    "myriad_pins_total",
    "myriad_backend_opens_total",
    "myriad_backend_closes_total",
    "myriad_errors_total",
];

/// Numbers of one run, or of many.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) steps: usize,
    pub(super) packets: usize,
    /// Resets that were added so that somebody else finds a backend.
    pub(super) cures: usize,
    pub(super) most_pinned: usize,
    /// Differences that are known, by reason.
    pub(super) tolerated: BTreeMap<&'static str, usize>,
    pub(super) survey: BTreeMap<String, (usize, String)>,
    metrics: BTreeMap<String, f64>,
}

impl Tally {
    /// Adds what this proxy did in its life.
    pub(super) fn read(&mut self, metrics: &Metrics) {
        for family in metrics.registry.gather() {
            if !METRICS.contains(&family.name()) && !family.name().contains("prepare") {
                continue;
            }
            for metric in family.get_metric() {
                let labels: Vec<_> = metric.get_label().iter().map(|pair| pair.value().to_owned()).collect();
                let value = metric.get_counter().get_value() + metric.get_gauge().get_value();
                *self.metrics.entry(format!("{} {}", family.name(), labels.join(" "))).or_default() += value;
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.packets += other.packets;
        self.cures += other.cures;
        self.most_pinned = self.most_pinned.max(other.most_pinned);
        for (reason, times) in &other.tolerated {
            *self.tolerated.entry(reason).or_default() += times;
        }
        for (what, (times, first)) in &other.survey {
            self.survey.entry(what.clone()).or_insert_with(|| (0, first.clone())).0 += times;
        }
        for (name, value) in &other.metrics {
            *self.metrics.entry(name.clone()).or_default() += value;
        }
    }

    /// How often a backend was given to another session than its last.
    pub(super) fn hand_overs(&self) -> f64 {
        let kinds = ["same_state", "other_state"];
        kinds.iter().filter_map(|kind| self.metrics.get(&format!("myriad_pool_leases_total {kind}"))).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, packets, cures, most_pinned, .. } = self;
        writeln!(f, "{steps} steps, {packets} packets compared, {} hand-overs", self.hand_overs())?;
        writeln!(f, "{cures} resets for room, at most {most_pinned} clients pinned at once")?;
        for (name, value) in self.metrics.iter().filter(|(_, value)| **value > 0.0) {
            writeln!(f, "    {name}: {value}")?;
        }
        for (reason, times) in &self.tolerated {
            writeln!(f, "    tolerated {times} times: {reason}")?;
        }
        for (what, (times, first)) in &self.survey {
            writeln!(f, "DIFFERS {times} times, first at {first}: {what}")?;
        }
        Ok(())
    }
}
