//! The command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use super::bench::{self, Bench};
use super::failure::Failure;
use super::preflight::{self, Finding, Host};
use super::{logging, runtime, sources};
use crate::config::{self, Config, Sources};
use crate::metrics::build;

/// A MySQL proxy and connection multiplexer: many client connections in, few server connections out.
///
/// Without a command, `serve`. Every option of the configuration can be given by --set or in the environment, so that no
/// file is needed: `myriad --backend db.example.org:3306`.
#[derive(Debug, Parser)]
#[command(name = "myriad", version = build::VERSION, long_version = build::LONG_VERSION.as_str())]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Accepts clients and serves them until SIGTERM.
    Serve(Settings),
    /// Reports every mistake in the settings, and what this host cannot give of what they promise; exit code 0 or 78.
    Check {
        #[command(flatten)]
        settings: Settings,
        /// Prints every option and the value in effect.
        #[arg(long)]
        print: bool,
    },
    /// Shows what it does, on a machine with nothing installed.
    #[cfg(feature = "demo")]
    Demo(Demo),
    /// The demo's embedded server alone, until SIGTERM: for measurements of the proxy. Several processes may share its port.
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    Embedded {
        /// Where it listens.
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: std::net::SocketAddr,
    },
    /// Drives clients against any MySQL server or proxy, and measures what they see.
    Bench(Box<Bench>),
    /// Drives clients for a parent process, on standard input and output.
    #[command(name = crate::load::WORKER, hide = true)]
    Worker,
}

/// Where the settings come from.
#[derive(Clone, Debug, Default, Args)]
struct Settings {
    /// The configuration file; config/myriad.toml lists every option.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen here, "ADDRESS:PORT" or "unix:/path"; may be given several times.
    #[arg(long, value_name = "ADDR")]
    listen: Vec<String>,
    /// The server.
    #[arg(long, value_name = "HOST:PORT")]
    backend: Vec<String>,
    /// One option, as in pool.max_connections=64; may be given several times.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

#[cfg(feature = "demo")]
#[derive(Debug, Args)]
struct Demo {
    /// How many clients; by default 10,000, or what the limit on open files allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: Option<u32>,
    /// For how long they ask.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// A server to use instead of a private or an embedded one.
    #[arg(long, value_name = "HOST:PORT", requires = "user")]
    backend: Option<String>,
    /// The account at that server.
    #[arg(long, requires = "backend")]
    user: Option<String>,
    /// Its password.
    #[arg(long, requires = "user")]
    password: Option<String>,
    /// End after the measurement instead of staying up.
    #[arg(long)]
    exit: bool,
}

/// Does what the process's arguments ask for.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. If nobody reads it, there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { Failure::Usage(String::new()).code().into() } else { ExitCode::SUCCESS };
        }
    };
    let done = match cli.command {
        None => serve(cli.settings),
        Some(Command::Serve(settings)) => serve(settings),
        Some(Command::Check { settings, print }) => check(settings, print),
        #[cfg(feature = "demo")]
        Some(Command::Demo(demo)) => show_demo(demo),
        #[cfg(feature = "demo")]
        Some(Command::Embedded { listen }) => embedded(listen),
        Some(Command::Bench(bench)) => measure(*bench),
        Some(Command::Worker) => work(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(io::stderr(), &failure.to_string());
            ExitCode::from(&failure)
        }
    }
}

fn serve(settings: Settings) -> Result<(), Failure> {
    let config = config::load(&settings.sources())?;
    logging::start(&config.log);
    look(&config, |warning| tracing::warn!("{warning}"))?;
    runtime::block_on(config.runtime.threads, super::serve(config))?
}

fn check(settings: Settings, print: bool) -> Result<(), Failure> {
    let config = config::load(&settings.sources())?;
    look(&config, |warning| say(io::stderr(), &format!("warning: {warning}")))?;
    say(io::stdout(), if print { effective(&config) } else { "ok".into() }.as_str());
    Ok(())
}

/// Whether this host can give what the settings promise. All is told before anything is refused, and all refusals at once.
fn look(config: &Config, warn: impl Fn(&str)) -> Result<(), Failure> {
    config.warnings.iter().for_each(|warning| warn(warning));
    let mut refusals = Vec::new();
    let host = Host::this(runtime::raise_open_files());
    for finding in preflight::findings(config, &host).into_iter().chain(sources::findings(config)) {
        match finding {
            Finding::Warning(warning) => warn(&warning),
            Finding::Refusal(refusal) => refusals.push(refusal),
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(Failure::Host(refusals.join("\n"))) }
}

/// Every option with its value, as a configuration file would have it (passwords are left out).
fn effective(config: &Config) -> String {
    let mut lines = Vec::new();
    for option in config::describe(config) {
        lines.push(match option.value {
            Some(value) => format!("{} = {value}", option.name),
            None => format!("#{} =  # not given", option.name),
        });
    }
    lines.extend(config.auth.users.iter().map(|user| format!("# user {:?}, password not shown", user.name)));
    lines.join("\n")
}

fn measure(bench: Bench) -> Result<(), Failure> {
    let open_files = runtime::raise_open_files();
    runtime::block_on(1, bench::run(bench, open_files))?
}

/// The load generator's half of a measurement that another process makes.
fn work() -> Result<(), Failure> {
    runtime::raise_open_files();
    runtime::block_on(0, crate::load::worker())?.map_err(|error| Failure::Internal(error.to_string()))
}

#[cfg(feature = "demo")]
fn show_demo(demo: Demo) -> Result<(), Failure> {
    use crate::demo;

    let backend: Result<Option<config::Endpoint>, String> = demo.backend.as_deref().map(str::parse).transpose();
    let options = demo::Options {
        clients: demo.clients.map(|clients| clients as usize),
        seconds: demo.seconds,
        backend: backend.map_err(|message| Failure::Usage(format!("--backend: {message}")))?,
        user: demo.user,
        password: demo.password,
        exit: demo.exit,
    };
    runtime::raise_open_files();
    runtime::block_on(0, demo::run(options))?.map_err(|error| match error {
        demo::DemoError::Usage(_) => Failure::Usage(error.to_string()),
        _ => Failure::Unavailable(error.to_string()),
    })
}

#[cfg(feature = "demo")]
fn embedded(listen: std::net::SocketAddr) -> Result<(), Failure> {
    runtime::raise_open_files();
    runtime::block_on(0, async {
        let mut signals = runtime::Signals::install().map_err(|error| Failure::Internal(error.to_string()))?;
        let server = crate::demo::embedded(listen).await;
        let _server = server.map_err(|error| Failure::Unavailable(format!("cannot listen on {listen}: {error}")))?;
        signals.next().await;
        Ok(())
    })?
}

impl Settings {
    fn sources(self) -> Sources {
        // What is not UTF-8 cannot be a setting; a password in such a variable is reported as missing.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Sources { file: self.config, listen: self.listen, backend: self.backend, set: self.set, environment }
    }
}

/// One message for people. If the other end is closed, there is nobody to tell.
fn say(mut to: impl Write, message: &str) {
    let _ = writeln!(to, "{message}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default() {
        for line in ["myriad --backend db --set a.b=c --set d.e=f", "myriad serve --backend db --set a.b=c --set d.e=f"]
        {
            let cli = parse(line).unwrap();
            let settings = match cli.command {
                None => cli.settings,
                Some(Command::Serve(settings)) => settings,
                other => panic!("{other:?}"),
            };
            assert_eq!(settings.backend, ["db"]);
            assert_eq!(settings.set, ["a.b=c", "d.e=f"]);
        }
        assert!(parse("myriad").unwrap().command.is_none());
    }

    #[test]
    fn usage_errors() {
        for line in
            ["myriad --colour", "myriad serve db", "myriad --config", "myriad --set a.b=c check", "myriad frobnicate"]
        {
            assert!(parse(line).unwrap_err().use_stderr(), "{line}");
        }
        for line in ["myriad --help", "myriad --version", "myriad check --help"] {
            assert!(!parse(line).unwrap_err().use_stderr(), "{line}");
        }
    }

    #[cfg(feature = "demo")]
    #[test]
    fn demo_options() {
        let cli = parse("myriad demo --clients 100 --seconds 2 --backend db --user u --password p --exit").unwrap();
        let Some(Command::Demo(demo)) = cli.command else { panic!("{cli:?}") };
        assert_eq!((demo.clients, demo.seconds, demo.exit), (Some(100), 2, true));
        for line in
            ["myriad demo --clients 0", "myriad demo --backend db", "myriad demo --user u", "myriad demo --seconds 0"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_in_effect_can_be_loaded_again() {
        let sources = Sources { set: vec!["pool.max_connections=7".into()], ..Sources::default() };
        let config = config::load(&sources).unwrap();
        let text = effective(&config);
        assert!(text.contains("pool.max_connections = 7\n"), "{text}");
        let set = text.lines().filter(|line| !line.starts_with('#')).map(Into::into).collect();
        let again = config::load(&Sources { set, ..Sources::default() }).unwrap();
        assert_eq!(effective(&again), text);
    }
}
