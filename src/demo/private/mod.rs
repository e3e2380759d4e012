//! A private MySQL or MariaDB server for the length of the demo: own folder, free port, one account, one small table.

mod folder;
mod program;

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use self::folder::Folder;
use self::program::Settings;
use super::embedded::{PASSWORD, ROWS, SCHEMA, TABLE, USER, name, price};
use super::host;
use crate::load::{Plan, first_row};

pub(crate) use self::program::Program;

/// How long a server may take to fill its data folder, and again to start.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
/// How much of a server's log goes into an error.
const LOG_LINES: usize = 5;

/// A running server; killed and removed when dropped. (Its data are worth nothing, so it need not be asked nicely.)
#[derive(Debug)]
pub(crate) struct Private {
    // Dropped in this order: first the process, then its folder.
    process: Process,
    _folder: Folder,
    address: SocketAddr,
}

/// Why there is no private server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateError {
    /// Something around it.
    #[error("{what}: {source}")]
    Io { what: &'static str, source: io::Error },
    /// The server's own.
    #[error("{what}; the last lines it wrote: {log}")]
    Server { what: &'static str, log: String },
}

impl Private {
    /// Starts `program` with room for this many connections, and waits until it can be used.
    ///
    /// # Errors
    /// If it does not start. Nothing is left behind.
    pub(crate) async fn start(program: &Program, connections: usize) -> Result<Self, PrivateError> {
        let io = |what| move |source| PrivateError::Io { what, source };
        // Servers refuse to run as root.
        let user = host::is_root().then(|| host::user("mysql")).flatten();
        let name = if user.is_some() { Some("mysql") } else { host::is_root().then_some("root") };
        let folder = Folder::new(user).map_err(io("could not make a folder among the temporary files"))?;
        let port = free_port().map_err(io("could not find a free port"))?;
        let open_files = host::open_files();
        let settings = Settings { folder: folder.path(), user: name, port, connections, open_files };
        let log = folder.path().join("server.log");

        let mut install = Process::spawn(program.install(settings), &log)
            .map_err(io("could not start the program that makes a data folder"))?;
        let status = install.finished().await.map_err(io("could not wait for the data folder"))?;
        if !status.is_some_and(|status| status.success()) {
            return Err(PrivateError::Server { what: "could not make a data folder", log: last_lines(&log) });
        }
        let setup = folder.path().join("setup.sql");
        fs::write(&setup, setup_script()).map_err(io("could not write the set-up script"))?;
        let process =
            Process::spawn(program.serve(settings, &setup), &log).map_err(io("could not start the server"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut private = Self { process, _folder: folder, address };
        private.ready(&log).await?;
        Ok(private)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its memory, in bytes, if the kernel says.
    pub(crate) fn resident(&self) -> Option<u64> {
        host::resident_of(&self.process.0.id().to_string()).ok()
    }

    /// Waits until the table can be read.
    async fn ready(&mut self, log: &Path) -> Result<(), PrivateError> {
        let failed = |what| PrivateError::Server { what, log: last_lines(log) };
        let plan = Plan::single(self.address, USER, PASSWORD, Some(SCHEMA));
        let count = format!("SELECT COUNT(*) FROM {TABLE}");
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if first_row(&plan, &count).await.is_ok() {
                return Ok(());
            }
            if !matches!(self.process.0.try_wait(), Ok(None)) {
                return Err(failed("the server ended right after its start"));
            }
            sleep(POLL).await;
        }
        Err(failed("the server was not ready in time"))
    }
}

/// A process that ends when this is dropped.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// Starts it, with its output in `log`. In a group of its own, or Ctrl-C would reach it before us.
    fn spawn(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let errors = output.try_clone()?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        command.spawn().map(Self)
    }

    /// Waits for its end; nothing if that takes too long.
    async fn finished(&mut self) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            sleep(POLL).await;
        }
        Ok(None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free now. Somebody may take it before the server does; then the server says so.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The account and the table, one statement a line, as `--init-file` wants them.
fn setup_script() -> String {
    let mut script = format!(
        "CREATE DATABASE {SCHEMA};\n\
         CREATE TABLE {SCHEMA}.{TABLE} (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, price INT NOT NULL);\n"
    );
    let ids: Vec<i64> = (1..=ROWS).collect();
    for chunk in ids.chunks(100) {
        let rows: Vec<String> = chunk.iter().map(|&id| format!("({id},'{}',{})", name(id), price(id))).collect();
        script.push_str(&format!("INSERT INTO {SCHEMA}.{TABLE} VALUES {};\n", rows.join(",")));
    }
    script.push_str(&format!(
        "CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON {SCHEMA}.* TO '{USER}'@'127.0.0.1';\n"
    ));
    script
}

/// The end of a log, in one line.
fn last_lines(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    lines.get(from..).unwrap_or_default().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_one_statement_a_line() {
        let script = setup_script();
        assert_eq!(script.lines().count(), 2 + 10 + 2);
        assert!(script.lines().all(|line| line.ends_with(';') && line.matches(';').count() == 1));
        // MariaDB's limit for a line of its init file is 20,000 bytes.
        assert!(script.lines().all(|line| line.len() < 20_000));
        assert!(script.contains("(1000,'item 1000',200)"));
    }

    #[tokio::test]
    async fn a_program_that_fails_leaves_a_reason() {
        let folder = Folder::new(None).unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let mut process = Process::spawn(command, &log).unwrap();
        assert_eq!(process.finished().await.unwrap().unwrap().code(), Some(3));
        assert_eq!(last_lines(&log), "one | two");
    }
}
