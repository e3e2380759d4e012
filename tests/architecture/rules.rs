//! The rules. Each takes one file and names every place that breaks it.

use super::source::{Path, Source, is_tests, matching};

/// Who may import whom; a room that is not here does not exist. docs/ARCHITECTURE.md says why.
pub(crate) const IMPORTS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("sql", &[]),
    ("config", &[]),
    ("metrics", &[]),
    ("session", &["protocol", "sql"]),
    ("net", &["protocol", "config"]),
    ("relay", &["protocol", "net", "metrics"]),
    ("backend", &["protocol", "session", "net", "config", "metrics"]),
    ("pool", &["backend", "config", "metrics"]),
    ("client", &["protocol", "sql", "session", "net", "relay", "backend", "pool", "config", "metrics"]),
    ("load", &["protocol", "net"]),
    ("demo", ALL),
    ("app", ALL),
];
const ALL: &[&str] = &[
    "protocol", "sql", "config", "metrics", "session", "net", "relay", "backend", "pool", "client", "load", "demo",
    "app",
];

/// Rooms in which everything is decided without a socket, a clock or a runtime.
pub(crate) const PURE: &[&str] = &["protocol", "sql", "session"];

/// What a pure room never names: (part of) a path.
const IMPURE: &[&[&str]] = &[
    &["std", "net"],
    &["std", "os"],
    &["std", "fs"],
    &["std", "thread"],
    &["std", "time", "SystemTime"],
    &["SystemTime", "now"],
    &["Instant", "now"],
    &["socket2"],
    &["nix"],
    &["mio"],
    &["hyper"],
];

/// The most lines of a file, its tests at the end not counted.
const MOST_LINES: usize = 500;
/// Files that may be longer, how long, and why.
const LONG_FILES: &[(&str, usize, &str)] = &[];

/// Methods that set an option of a socket.
const SOCKET_OPTIONS: &[&str] = &[
    "set_nodelay",
    "set_tcp_nodelay",
    "set_keepalive",
    "set_tcp_keepalive",
    "set_linger",
    "set_reuseaddr",
    "set_reuse_address",
    "set_reuseport",
    "set_reuse_port",
    "set_recv_buffer_size",
    "set_send_buffer_size",
    "set_tcp_user_timeout",
    "setsockopt",
];

/// Ways to open a connection: the last two segments of a path.
const DIALS: &[&[&str]] =
    &[&["tcp", "connect"], &["TcpStream", "connect"], &["TcpStream", "connect_timeout"], &["UnixStream", "connect"]];
/// Who may: backend/dial by the function of net/; the load generator, which plays the clients; the demo, which asks
/// whether its servers are up; the listener of a Unix socket, which asks whether the file is somebody's.
const DIALERS: &[&str] = &["src/backend/dial.rs", "src/net/", "src/load/", "src/demo/", "src/app/proxy.rs"];

/// Rooms that are imported against the table.
pub(crate) fn imports(source: &Source) -> Vec<String> {
    let mut broken = Vec::new();
    let allowed: &[&str] = match source.room() {
        Some(room) => match IMPORTS.iter().find(|(name, _)| *name == room) {
            Some((_, allowed)) => allowed,
            None => return vec![format!("{}: the room {room} is not in the table of imports", source.name)],
        },
        None if source.name == "src/main.rs" => &["app"],
        None => return broken,
    };
    for path in &source.paths {
        let Some(resolved) = source.resolve(path) else { continue };
        let complaint = match resolved.first().map(String::as_str) {
            None | Some("*" | "self") => "imports the whole crate".to_owned(),
            Some(room) if Some(room) == source.room() || allowed.contains(&room) => continue,
            Some(room) if IMPORTS.iter().any(|(name, _)| *name == room) => format!("must not import {room}"),
            Some(room) => format!("imports {room}, which is not in the table of imports"),
        };
        broken.push(at(source, path.line, &complaint));
    }
    broken
}

/// Runtimes, sockets and clocks in a pure room.
pub(crate) fn purity(source: &Source) -> Vec<String> {
    if !source.room().is_some_and(|room| PURE.contains(&room)) {
        return Vec::new();
    }
    let impure = |path: &&Path| {
        path.segments.first().is_some_and(|first| first.starts_with("tokio"))
            || IMPURE.iter().any(|impure| contains(&path.segments, impure))
    };
    complain(source, source.paths.iter().filter(impure), "is of no pure room")
}

/// Socket options outside of net/, the embedded server outside of demo/, dialing outside of backend/dial.
pub(crate) fn outlets(source: &Source) -> Vec<String> {
    let mut broken = Vec::new();
    let starts_with = |first: &'static str| source.paths.iter().filter(move |path| path.segments[0] == first);
    if source.room() != Some("net") {
        broken.extend(complain(source, starts_with("socket2"), "belongs to net/"));
        let calls = source.tokens.iter().filter(|token| !token.test && SOCKET_OPTIONS.contains(&token.text.as_str()));
        broken.extend(calls.map(|token| at(source, token.line, &format!("{} belongs to net/", token.text))));
    }
    if source.room() != Some("demo") {
        broken.extend(complain(source, starts_with("opensrv_mysql"), "belongs to demo/"));
    }
    if !DIALERS.iter().any(|dialer| source.name.starts_with(dialer)) {
        let dials = |path: &&Path| {
            !path.test
                && (DIALS.iter().any(|dial| ends_with(&path.segments, dial))
                    || path.segments.iter().any(|segment| segment == "TcpSocket"))
        };
        broken.extend(complain(source, source.paths.iter().filter(dials), "dials, which is backend/dial's to do"));
    }
    broken
}

/// Error packets made for clients anywhere but in client/reply.rs. (Taking one apart is a pattern, and fine.)
pub(crate) fn errors(source: &Source) -> Vec<String> {
    if source.name == "src/client/reply.rs" || source.room().is_none_or(|room| room == "protocol") {
        return Vec::new();
    }
    let text = |i: usize| source.tokens.get(i).map_or("", |token| token.text.as_str());
    let makes_one = |i: &usize| {
        let i = *i;
        if text(i) != "ErrPacket" || source.tokens[i].test {
            return false;
        }
        let encodes = text(i + 1) == ":" && text(i + 3) == "encode";
        let close = matching(&source.tokens, i + 1);
        let is_pattern = text(close - 1) == "." || matches!(text(close + 1), "=" | "|" | "if");
        encodes || (text(i + 1) == "{" && text(i - 1) != "for" && !is_pattern)
    };
    let made = (1..source.tokens.len()).filter(makes_one);
    made.map(|i| at(source, source.tokens[i].line, "words an error packet, which is client/reply.rs's to do")).collect()
}

/// A file that does not say what it is, is too long, or lies too deep.
pub(crate) fn shape(source: &Source) -> Vec<String> {
    let mut broken = Vec::new();
    if !source.has_opening {
        broken.push(format!("{}: must open with //! and say what it is for", source.name));
    }
    let most = LONG_FILES.iter().find(|(name, ..)| *name == source.name).map_or(MOST_LINES, |(_, most, _)| *most);
    if !is_unit_tests(source) && source.lines > most {
        broken.push(format!("{}: has {} lines without its tests; {most} are allowed", source.name, source.lines));
    }
    // A folder of tests lies beside what it tests, and does not count.
    if source.name.starts_with("src/") && source.name.replace("/tests/", "/").matches('/').count() > 3 {
        broken.push(format!("{}: lies more than two folders deep", source.name));
    }
    broken
}

/// Tests inside of src/ may be as long as their tables; those in tests/ are held to the limit.
fn is_unit_tests(source: &Source) -> bool {
    source.name.starts_with("src/") && is_tests(&source.name)
}

/// Every rule.
pub(crate) fn all(source: &Source) -> Vec<String> {
    [imports, purity, outlets, errors, shape].iter().flat_map(|rule| rule(source)).collect()
}

fn at(source: &Source, line: usize, complaint: &str) -> String {
    format!("{}:{line}: {complaint}", source.name)
}

fn complain<'s>(source: &Source, paths: impl Iterator<Item = &'s Path>, complaint: &str) -> Vec<String> {
    paths.map(|path| at(source, path.line, &format!("{} {complaint}", path.segments.join("::")))).collect()
}

fn ends_with(segments: &[String], tail: &[&str]) -> bool {
    segments.len() >= tail.len() && segments.iter().rev().zip(tail.iter().rev()).all(|(segment, part)| segment == part)
}

fn contains(segments: &[String], part: &[&str]) -> bool {
    segments.windows(part.len()).any(|window| window.iter().zip(part).all(|(segment, part)| segment == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rule: fn(&Source) -> Vec<String>, name: &str, text: &str) -> usize {
        rule(&Source::parse(name, text)).len()
    }

    #[test]
    fn an_arrow_that_points_up_is_found_however_it_is_written() {
        for text in [
            "use crate::pool::Pool;",
            "use crate::{metrics::Metrics, net::Stream, pool};",
            "use {crate::pool::Pool, std::io};",
            "use super::super::pool::Pool;",
            "mod m { use super::super::super::pool::Pool; }",
            "fn f() { crate::pool::f(); }",
            "fn f(x: &mut crate::pool::Pool) {}",
            "pub(in crate::pool) fn f() {}",
            "#[cfg(test)] mod tests { use crate::pool::Pool; }",
            "use crate::*;",
            "use crate::{self as c};",
            "use crate as c;",
            "use super::super::*;",
            "use crate::nowhere::X;",
            "macro_rules! m { () => { $crate::pool::f() } }",
        ] {
            assert_eq!(broken(imports, "src/relay/turn.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn what_is_allowed_is_not_complained_about() {
        for text in [
            "use crate::{protocol::wire, net::{Buffer, Stream}, metrics};",
            "use super::*; use super::turn::X; use self::y::Z;",
            "// use crate::pool::Pool;\nconst X: &str = \"crate::pool::Pool\"; pub(crate) fn f() {}",
            "/// See [`crate::pool`].\nfn f() { pool::f(); }",
        ] {
            assert_eq!(broken(imports, "src/relay/turn.rs", text), 0, "{text}");
        }
        assert_eq!(broken(imports, "src/relay/mod.rs", "use super::net::Stream;"), 0);
        assert_eq!(broken(imports, "src/relay/mod.rs", "use super::pool::Pool;"), 1);
        assert_eq!(broken(imports, "src/cellar/mod.rs", ""), 1);
        assert_eq!(broken(imports, "src/main.rs", "fn main() { myriad::app::cli::main() }"), 0);
        assert_eq!(broken(imports, "src/main.rs", "use myriad::pool::Pool;"), 1);
    }

    #[test]
    fn pure_rooms_name_no_runtime_socket_or_clock() {
        for text in [
            "use tokio::io::AsyncRead;",
            "use tokio;",
            "use tokio_util::sync::X;",
            "fn f() { let x = tokio::spawn(y); }",
            "use std::net::IpAddr;",
            "use std::{io, net};",
            "use std::{time::{Duration, SystemTime}};",
            "fn f() { let t = Instant::now(); }",
            "fn f() { std::time::Instant::now(); }",
            "use socket2::Socket;",
        ] {
            assert_eq!(broken(purity, "src/session/state.rs", text), 1, "{text}");
            assert_eq!(broken(purity, "src/net/tcp.rs", text), 0, "{text}");
        }
        assert_eq!(
            broken(purity, "src/sql/lex.rs", "use std::time::{Duration, Instant}; fn tokio() {} // tokio::spawn"),
            0
        );
    }

    #[test]
    fn outlets_are_in_one_place() {
        for (text, bad, good) in [
            ("use socket2::Socket;", "src/client/listener.rs", "src/net/tcp.rs"),
            ("fn f() { s.set_nodelay(true); }", "src/load/client.rs", "src/net/tcp.rs"),
            ("use opensrv_mysql::X;", "src/app/proxy.rs", "src/demo/embedded/mod.rs"),
            ("fn f() { tcp::connect(a); }", "src/pool/shell.rs", "src/backend/dial.rs"),
            ("fn f() { crate::net::tcp::connect(a); }", "src/backend/query.rs", "src/backend/dial.rs"),
            ("fn f() { tokio::net::TcpStream::connect(a); }", "src/client/serve.rs", "src/net/tcp.rs"),
            ("use tokio::net::{TcpSocket, TcpStream};", "src/client/serve.rs", "src/load/client.rs"),
        ] {
            assert_eq!(broken(outlets, bad, text), 1, "{text}");
            assert_eq!(broken(outlets, good, text), 0, "{text}");
        }
        assert_eq!(
            broken(outlets, "src/metrics/http.rs", "#[cfg(test)] mod t { fn f() { TcpStream::connect(a); } }"),
            0
        );
    }

    #[test]
    fn only_one_file_words_errors() {
        for text in [
            "fn f() { ErrPacket { code, state, message }.encode(out); }",
            "fn f() { let e = ErrPacket { code }; e.encode(out) }",
            "fn f() { ErrPacket::encode(&e, out) }",
        ] {
            assert_eq!(broken(errors, "src/client/serve.rs", text), 1, "{text}");
            assert_eq!(broken(errors, "src/client/reply.rs", text), 0, "{text}");
            assert_eq!(broken(errors, "src/protocol/packet/err.rs", text), 0, "{text}");
        }
        for text in [
            "fn f() { let ErrPacket { code, state } = ErrPacket::parse(p)?; }",
            "fn f() { match x { Some(ErrPacket { code, .. }) => 1, ErrPacket { code } if a => 2, ErrPacket { code } => 3 } }",
            "#[cfg(test)] mod t { fn f() { ErrPacket { code }.encode(out) } }",
        ] {
            assert_eq!(broken(errors, "src/relay/turn.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn files_say_what_they_are_and_stay_small() {
        let long = |lines: usize| format!("//! x\n{}", "fn f() {}\n".repeat(lines - 1));
        let tests = "#[cfg(test)]\nmod tests {\n".to_owned() + &"    fn g() {}\n".repeat(900) + "}\n";
        for (name, text, expected) in [
            ("src/x/y.rs", long(500), 0),
            ("src/x/y.rs", long(501), 1),
            ("src/x/y.rs", long(500) + &tests, 0),
            ("src/x/y.rs", long(501) + &tests, 1),
            ("src/x/tests.rs", long(900), 0),
            ("src/x/y.rs", "// x".into(), 1),
            ("src/x/y/z.rs", "//! x".into(), 0),
            ("src/x/y/z/w.rs", "//! x".into(), 1),
            ("src/x/y/tests/z.rs", "//! x".into(), 0),
            ("tests/z.rs", long(501), 1),
        ] {
            assert_eq!(broken(shape, name, &text), expected, "{name}");
        }
    }
}
