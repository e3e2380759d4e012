//! Where settings come from, and which wins: default < file < environment < flags.

use std::path::PathBuf;

use super::{Config, Mistakes};

/// Everything that may hold settings, as the command line and the environment gave it.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `--config FILE`
    pub file: Option<PathBuf>,
    /// `--listen ADDR`; together they replace `server.listen`.
    pub listen: Vec<String>,
    /// `--backend HOST:PORT`; together they replace `backend.servers`.
    pub backend: Vec<String>,
    /// `--set section.key=value`
    pub set: Vec<String>,
    /// The whole environment: `MYRIAD_SECTION__KEY` is a setting, and `password_env` may name any variable.
    pub environment: Vec<(String, String)>,
}

/// The settings, or everything that is wrong with them.
pub fn load(sources: &Sources) -> Result<Config, Mistakes> {
    todo!("{sources:?}")
}
