//! Finds a MySQL or MariaDB server on this machine, and knows how each is called.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where servers are installed though it is not on everybody's PATH.
const ALSO: &[&str] = &["/usr/sbin", "/usr/local/sbin"];

/// A server that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    server: PathBuf,
    kind: Kind,
    /// What it says about itself.
    version: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    MariaDb { installer: PathBuf },
    MySql,
}

/// What a server is to be started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a> {
    /// The folder of the run.
    pub(super) folder: &'a Path,
    /// The system user to run as.
    pub(super) user: Option<&'a str>,
    /// The port to listen on.
    pub(super) port: u16,
    /// Connections at once.
    pub(super) connections: usize,
    /// Files it may open.
    pub(super) open_files: u64,
}

impl Program {
    /// The first usable server on the PATH.
    pub(crate) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).chain(ALSO.iter().map(PathBuf::from)).collect();
        ["mariadbd", "mysqld"].into_iter().find_map(|name| {
            let server = find_in(&folders, name)?;
            let version = version(&server)?;
            let kind = if version.contains("MariaDB") {
                let installer = ["mariadb-install-db", "mysql_install_db"].into_iter();
                Kind::MariaDb { installer: installer.filter_map(|name| find_in(&folders, name)).next()? }
            } else {
                Kind::MySql
            };
            Some(Self { server, kind, version })
        })
    }

    /// What it says about itself, in one line.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.server
    }

    /// The command that fills an empty data folder.
    pub(super) fn install(&self, settings: Settings<'_>) -> Command {
        let mut command = match &self.kind {
            Kind::MariaDb { installer } => {
                let mut command = Command::new(installer);
                command.arg("--no-defaults").arg("--skip-test-db");
                command
            }
            Kind::MySql => {
                let mut command = Command::new(&self.server);
                command.arg("--no-defaults").arg("--initialize-insecure");
                command
            }
        };
        command.arg(flag("--datadir=", data(settings.folder)));
        command.args(settings.user.map(|user| format!("--user={user}")));
        command
    }

    /// The command that runs it. `setup` is a file of statements, one a line, to run before the first client.
    pub(super) fn serve(&self, settings: Settings<'_>, setup: &Path) -> Command {
        let mut command = Command::new(&self.server);
        command
            .arg("--no-defaults")
            .arg(flag("--datadir=", data(settings.folder)))
            .arg(flag("--socket=", settings.folder.join("server.sock")))
            .arg(flag("--pid-file=", settings.folder.join("server.pid")))
            .arg(flag("--init-file=", setup))
            .arg(format!("--port={}", settings.port))
            .arg("--bind-address=127.0.0.1")
            .arg("--skip-name-resolve")
            .arg(format!("--max-connections={}", settings.connections))
            .arg(format!("--open-files-limit={}", settings.open_files))
            .arg("--back-log=4096")
            .arg("--skip-log-bin");
        if self.kind == Kind::MySql {
            // Its second protocol has its own port, and files are exchanged through a folder that may not exist.
            command.args(["--mysqlx=OFF", "--secure-file-priv=NULL"]);
        }
        command.args(settings.user.map(|user| format!("--user={user}")));
        command
    }
}

/// The data folder inside the run's folder.
fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(value);
    flag
}

fn find_in(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What the program says about its version; nothing if it cannot be run.
fn version(server: &Path) -> Option<String> {
    let output = Command::new(server).args(["--no-defaults", "--version"]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next()?.trim();
    let short = line.split_once("Ver ").map_or(line, |(_, version)| version);
    (output.status.success() && !short.is_empty()).then(|| short.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_kind_is_called_its_own_way() {
        let settings =
            Settings { folder: Path::new("/f"), user: Some("mysql"), port: 99, connections: 5, open_files: 7 };
        let mysql = Program { server: "/bin/mysqld".into(), kind: Kind::MySql, version: String::new() };
        let maria = Program { kind: Kind::MariaDb { installer: "/bin/install".into() }, ..mysql.clone() };
        assert_eq!(
            words(&mysql.install(settings)),
            ["--no-defaults", "--initialize-insecure", "--datadir=/f/data", "--user=mysql"]
        );
        assert_eq!(maria.install(settings).get_program(), "/bin/install");
        assert!(words(&mysql.serve(settings, Path::new("/s"))).contains(&"--mysqlx=OFF".into()));
        let serve = words(&maria.serve(settings, Path::new("/s")));
        for expected in ["--init-file=/s", "--port=99", "--max-connections=5", "--user=mysql"] {
            assert!(serve.contains(&expected.into()), "{expected}");
        }
        assert_eq!(serve[0], "--no-defaults");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert_eq!(find_in(&["/nonexistent".into()], "mysqld"), None);
        assert_eq!(version(Path::new("/nonexistent/mysqld")), None);
    }
}
