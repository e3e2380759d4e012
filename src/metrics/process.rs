//! What the process is and what it uses.

use prometheus::process_collector::ProcessCollector;
use prometheus::{IntGauge, Opts, Registry};

use super::build;

/// Registers `myriad_build_info` and the usual `process_*`: CPU, memory, open files and their limit, threads, start time.
#[allow(clippy::expect_used, reason = "two metrics of one name are our own broken promise, seen by every test")]
pub(super) fn register(registry: &Registry) {
    let info = Opts::new("myriad_build_info", "Always 1; the labels say which build this is.")
        .const_label("version", build::VERSION)
        .const_label("commit", build::COMMIT);
    let info = IntGauge::with_opts(info).expect("a valid name");
    info.set(1);
    registry.register(Box::new(info)).expect("a name used once");
    registry.register(Box::new(ProcessCollector::for_self())).expect("a name used once");
}
