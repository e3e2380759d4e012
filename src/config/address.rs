//! Addresses: what to listen on, and where the servers are.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::settings::{Endpoint, Listen};
use super::shape::{Fault, Shape, Written, quoted, text, toml_text};

/// A Unix socket's path must fit `sockaddr_un`, with its final NUL.
const UNIX_PATH_MAX: usize = 107;
/// The port of a server that none is given for.
const MYSQL_PORT: u16 = 3306;

/// An IP address and a port.
pub(super) struct IpPort;

impl Shape for IpPort {
    type Value = SocketAddr;

    fn read(&self, written: &Written<'_>) -> Result<SocketAddr, Vec<Fault>> {
        parse_ip_port(text(written, &self.range())?).map_err(|message| Fault::of(written, message))
    }

    fn show(&self, value: &SocketAddr) -> String {
        toml_text(&value.to_string())
    }

    fn range(&self) -> String {
        "\"ADDRESS:PORT\"".into()
    }
}

/// Where to listen: an IP address and a port, or `unix:/path`.
pub(super) struct ListenAddress;

impl Shape for ListenAddress {
    type Value = Listen;

    fn read(&self, written: &Written<'_>) -> Result<Listen, Vec<Fault>> {
        parse_listen(text(written, &self.range())?).map_err(|message| Fault::of(written, message))
    }

    fn show(&self, value: &Listen) -> String {
        toml_text(&value.to_string())
    }

    fn range(&self) -> String {
        "\"ADDRESS:PORT\" or \"unix:/path\"".into()
    }
}

/// A server: `HOST`, `HOST:PORT`, `[V6]:PORT`.
pub(super) struct ServerAddress;

impl Shape for ServerAddress {
    type Value = Endpoint;

    fn read(&self, written: &Written<'_>) -> Result<Endpoint, Vec<Fault>> {
        text(written, &self.range())?.parse().map_err(|message: String| Fault::of(written, message))
    }

    fn show(&self, value: &Endpoint) -> String {
        toml_text(&value.to_string())
    }

    fn range(&self) -> String {
        "\"HOST:PORT\"".into()
    }
}

/// As it is written in the configuration: `127.0.0.1:6033`, `unix:/path`.
impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// As it is written in the configuration: `host:3306`, `[fd00::5]:3306`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT`; the error says what to write instead.
impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_endpoint(text)
    }
}

fn parse_ip_port(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let hint = match text.rsplit_once(':') {
        Some(("" | "*", port)) if port.parse::<u16>().is_ok() => {
            format!("for every address of this host write \"[::]:{port}\" or \"0.0.0.0:{port}\"")
        }
        Some(("localhost", port)) if port.parse::<u16>().is_ok() => format!("write \"127.0.0.1:{port}\""),
        None if text.parse::<u16>().is_ok() => format!("write \"127.0.0.1:{text}\""),
        _ => "write an IP address and a port, as in \"127.0.0.1:6033\" or \"[::1]:6033\"".into(),
    };
    Err(format!("{} is no address to listen on: {hint}", quoted(text)))
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    let Some(path) = text.strip_prefix("unix:") else {
        return parse_ip_port(text).map(Listen::Tcp);
    };
    if !Path::new(path).is_absolute() {
        return Err(format!(
            "{}: the path of a Unix socket must start with a slash, as in \"unix:/run/m.sock\"",
            quoted(text)
        ));
    }
    if path.len() > UNIX_PATH_MAX || path.contains('\0') {
        return Err(format!("the path of a Unix socket is at most {UNIX_PATH_MAX} bytes; found {}", path.len()));
    }
    Ok(Listen::Unix(PathBuf::from(path)))
}

fn parse_endpoint(text: &str) -> Result<Endpoint, String> {
    let wrong = |why: &str| format!("{} is no server: {why}", quoted(text));
    if text.starts_with("unix:") || text.starts_with('/') {
        return Err(wrong("servers are reached by TCP only, as in \"127.0.0.1:3306\""));
    }
    if text.contains("://") || text.contains('@') {
        return Err(wrong("write only a host and a port, as in \"db.example.org:3306\""));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok(Endpoint { host: text.into(), port: MYSQL_PORT });
    }
    let (host, port) = match text.strip_prefix('[') {
        None => {
            let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            if host.is_empty() || host.len() > 253 || !host.chars().all(allowed) {
                return Err(wrong("write a host name or an IP address, and a port, as in \"db.example.org:3306\""));
            }
            (host, port)
        }
        Some(rest) => match rest.split_once(']').map(|(host, rest)| (host, rest, rest.strip_prefix(':'))) {
            Some((host, "", port) | (host, _, port @ Some(_))) if host.parse::<Ipv6Addr>().is_ok() => (host, port),
            _ => return Err(wrong("brackets hold an IPv6 address, as in \"[fd00::5]:3306\"")),
        },
    };
    let port = match port {
        None => MYSQL_PORT,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => return Err(wrong("the port is 1 to 65535")),
        },
    };
    Ok(Endpoint { host: host.into(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens() {
        for (text, expected) in [
            ("127.0.0.1:6033", "\"127.0.0.1:6033\""),
            ("[::]:0", "\"[::]:0\""),
            ("unix:/run/myriad.sock", "\"unix:/run/myriad.sock\""),
        ] {
            assert_eq!(ListenAddress.show(&parse_listen(text).unwrap()), expected);
        }
        for (text, hint) in [
            (":6033", "\"0.0.0.0:6033\""),
            ("*:6033", "\"0.0.0.0:6033\""),
            ("6033", "write \"127.0.0.1:6033\""),
            ("localhost:6033", "write \"127.0.0.1:6033\""),
            ("example.org:6033", "write an IP address"),
            ("127.0.0.1", "write an IP address"),
            ("127.0.0.1:65536", "write an IP address"),
            ("", "write an IP address"),
            ("unix:run.sock", "must start with a slash"),
            ("unix:", "must start with a slash"),
        ] {
            let error = parse_listen(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        assert!(parse_listen(&format!("unix:/{}", "x".repeat(107))).is_err());
    }

    #[test]
    fn endpoints() {
        for (text, host, port) in [
            ("10.0.0.5:3307", "10.0.0.5", 3307),
            ("db", "db", 3306),
            ("db.example.org:1", "db.example.org", 1),
            ("::1", "::1", 3306),
            ("[::1]", "::1", 3306),
            ("[fd00::5]:65535", "fd00::5", 65535),
        ] {
            assert_eq!(parse_endpoint(text), Ok(Endpoint { host: host.into(), port }), "{text}");
        }
        for text in [
            "",
            ":3306",
            "db:",
            "db:0",
            "db:65536",
            "db:x",
            "[::1",
            "[db]:1",
            "[::1]x",
            "a b:1",
            "mysql://db:3306",
            "root@db",
            "unix:/run/mysqld.sock",
            "/run/mysqld.sock",
            "1:2:3",
            "dé:1",
            &"x".repeat(254),
        ] {
            assert!(parse_endpoint(text).is_err(), "{text}");
        }
        let v6 = Endpoint { host: "::1".into(), port: 1 };
        assert_eq!(ServerAddress.show(&v6), "\"[::1]:1\"");
    }
}
