//! Metrics with one label whose values are known beforehand: looked up once, used by index.

use std::marker::PhantomData;

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// An enum whose variants are the values of one label.
pub trait Labelled: Copy + 'static {
    /// Every variant, in the order of [`Labelled::index`].
    const ALL: &'static [Self];
    /// The position of this variant in [`Labelled::ALL`].
    fn index(self) -> usize;
    /// The label's value: lower case, words joined by `_`.
    fn label(self) -> &'static str;
}

/// One handle for each variant of `L`.
#[derive(Debug)]
pub struct Family<L, M> {
    handles: Box<[M]>,
    of: PhantomData<fn(L)>,
}

impl<L: Labelled, M> Family<L, M> {
    /// The handle of this variant.
    pub fn get(&self, label: L) -> &M {
        &self.handles[label.index()]
    }
}

/// A family of counters named `name`, with one label called `by`.
pub(super) fn counters<L: Labelled>(registry: &Registry, name: &str, help: &str, by: &str) -> Family<L, IntCounter> {
    let vec = register(registry, IntCounterVec::new(Opts::new(name, help), &[by]));
    Family { handles: L::ALL.iter().map(|l| vec.with_label_values(&[l.label()])).collect(), of: PhantomData }
}

/// A family of gauges named `name`, with one label called `by`.
pub(super) fn gauges<L: Labelled>(registry: &Registry, name: &str, help: &str, by: &str) -> Family<L, IntGauge> {
    let vec = register(registry, IntGaugeVec::new(Opts::new(name, help), &[by]));
    Family { handles: L::ALL.iter().map(|l| vec.with_label_values(&[l.label()])).collect(), of: PhantomData }
}

/// A family of gauges of numbers with a fraction, with one label called `by`.
pub(super) fn float_gauges<L: Labelled>(registry: &Registry, name: &str, help: &str, by: &str) -> Family<L, Gauge> {
    let vec = register(registry, GaugeVec::new(Opts::new(name, help), &[by]));
    Family { handles: L::ALL.iter().map(|l| vec.with_label_values(&[l.label()])).collect(), of: PhantomData }
}

/// Gauges by the names of users, which the configuration has.
pub(super) fn by_user(registry: &Registry, name: &str, help: &str) -> IntGaugeVec {
    register(registry, IntGaugeVec::new(Opts::new(name, help), &["user"]))
}

/// A single gauge of a number with a fraction.
pub(super) fn float_gauge(registry: &Registry, name: &str, help: &str) -> Gauge {
    register(registry, Gauge::new(name, help))
}

/// A single counter.
pub(super) fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    register(registry, IntCounter::new(name, help))
}

/// A single gauge.
pub(super) fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    register(registry, IntGauge::new(name, help))
}

/// A histogram of seconds, from 50 microseconds to 100 seconds.
pub(super) fn seconds(registry: &Registry, name: &str, help: &str) -> Histogram {
    let buckets = vec![
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0, 30.0, 100.0,
    ];
    register(registry, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)))
}

#[allow(clippy::expect_used, reason = "two metrics of one name are our own broken promise, seen by every test")]
pub(super) fn register<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let metric = made.expect("a metric's name and labels are valid");
    registry.register(Box::new(metric.clone())).expect("a metric's name is used once");
    metric
}

/// Implements [`Labelled`] for a field-less enum: `labelled!(State { Idle => "idle", Running => "running" })`.
macro_rules! labelled {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident => $label:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$vmeta])* $variant),+ }
        impl $crate::metrics::Labelled for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            fn index(self) -> usize {
                self as usize
            }
            fn label(self) -> &'static str {
                match self { $(Self::$variant => $label),+ }
            }
        }
    };
}
pub(crate) use labelled;
