//! Which build this is.

use std::sync::LazyLock;

/// The version in Cargo.toml.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, if `MYRIAD_COMMIT` named it when this was compiled.
pub const COMMIT: &str = match option_env!("MYRIAD_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Both, and what it was compiled for, as `--version` shows it.
pub static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{VERSION} (commit {COMMIT}, {}-{}, {profile})", std::env::consts::ARCH, std::env::consts::OS)
});
