//! The `myriad` command.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// An idle client costs a third less memory than with glibc's allocator, and the memory of a burst goes back to the system: see
/// docs/BENCHMARKS.md.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    myriad::app::cli::main()
}
