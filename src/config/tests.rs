//! The whole way: texts in, settings or mistakes out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::list::List;
use super::options::{OPTIONS, Opt, SCHEMAS, USERS};
use super::reference::one;
use super::*;

/// A file of this text in a folder of its own that goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(text: impl AsRef<[u8]>) -> Self {
        let folder = std::env::temp_dir().join(format!("myriad-config-{:016x}", rand::random::<u64>()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("m.toml"), text).unwrap();
        fs::set_permissions(folder.join("m.toml"), fs::Permissions::from_mode(0o600)).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("m.toml")
    }

    fn beside(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load_text(text: &str) -> Result<Config, Mistakes> {
    let scratch = Scratch::new(text);
    load(&Sources { file: Some(scratch.file()), ..Sources::default() })
}

/// The mistakes of a text, with the file's name left out: `line:column: option: message`.
fn mistakes_of(text: impl AsRef<[u8]>) -> Vec<String> {
    let scratch = Scratch::new(text);
    let mistakes = load(&Sources { file: Some(scratch.file()), ..Sources::default() }).unwrap_err();
    let prefix = format!("{}:", scratch.file().display());
    mistakes.iter().map(|mistake| mistake.to_string().replace(&prefix, "")).collect()
}

fn set(settings: &[&str]) -> Sources {
    Sources { set: settings.iter().map(|s| (*s).to_owned()).collect(), ..Sources::default() }
}

fn environment(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn nothing_given_is_valid() {
    let config = load(&Sources::default()).unwrap();
    assert_eq!(config.auth.mode, AuthMode::Passthrough);
    assert_eq!(config.server.listen, Server::default().listen);
    assert!(config.warnings.is_empty());
}

#[test]
fn later_sources_win() {
    let scratch = Scratch::new("[pool]\nmax_connections = 10\nmin_idle = 1\nopen_parallel = 2\nidle_timeout = '5s'");
    let sources = Sources {
        file: Some(scratch.file()),
        environment: environment(&[("MYRIAD_POOL__MAX_CONNECTIONS", "20"), ("MYRIAD_POOL__MIN_IDLE", "2")]),
        set: vec!["pool.max_connections=30".into()],
        listen: vec!["127.0.0.1:1".into(), "unix:/run/m".into()],
        backend: vec!["db:7".into()],
    };
    let config = load(&sources).unwrap();
    assert_eq!((config.pool.max_connections, config.pool.min_idle, config.pool.open_parallel), (30, 2, 2));
    assert_eq!(config.pool.idle_timeout, Duration::from_secs(5));
    assert_eq!(config.server.listen, [Listen::Tcp(([127, 0, 0, 1], 1).into()), Listen::Unix("/run/m".into())]);
    assert_eq!(config.backend.servers, [Endpoint { host: "db".into(), port: 7 }]);
}

#[test]
fn values_outside_of_files_need_no_quotes() {
    let config = load(&set(&[
        "auth.mode=passthrough",
        "pool.idle_timeout = 30s",
        "pool.max_lifetime=never",
        "server.idle_timeout=0",
        "limits.buffer='64KiB'",
        "log.level=warn,myriad::pool=debug",
        "server.tls={mode=\"off\"}",
        "server.listen=[\"[::1]:1\", \"127.0.0.1:1\"]",
        "metrics.listen=127.0.0.1:9104",
    ]));
    let config = config.unwrap();
    assert_eq!(config.auth.mode, AuthMode::Passthrough);
    assert_eq!(config.pool.idle_timeout, Duration::from_secs(30));
    assert_eq!((config.pool.max_lifetime, config.server.idle_timeout), (Duration::ZERO, Duration::ZERO));
    assert_eq!(config.limits.buffer, 64 << 10);
    assert_eq!(config.log.level, "warn,myriad::pool=debug");
    assert_eq!(config.server.tls.mode, ServerTlsMode::Off);
    assert_eq!(config.server.listen.len(), 2);
    assert_eq!(config.metrics.listen, Some(([127, 0, 0, 1], 9104).into()));
}

#[test]
fn flags_and_variables_are_named_in_mistakes() {
    let sources = Sources {
        environment: environment(&[
            ("MYRIAD_POOL__MAX_CONNECTIONS", "many"),
            ("MYRIAD_POOL_MIN_IDLE", "3"),
            ("MYRIAD_PORT_6033_TCP", "tcp://10.0.0.1:6033"),
            ("MYRIAD_PÖOL__X", "1"),
        ]),
        listen: vec!["127.0.0.1:1".into(), "6033".into()],
        backend: vec!["db:x".into()],
        ..set(&["log.connections=yes", "pool.max_conections=3", "pool.min_idle", "auth.users=[{name=1}"])
    };
    let mistakes = load(&sources).unwrap_err();
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    let starts = [
        "MYRIAD_POOL__MAX_CONNECTIONS: pool.max_connections: must be a whole number without quotes, 1 to 100_000; found",
        "MYRIAD_POOL_MIN_IDLE: pool.min_idle: has no effect: write MYRIAD_POOL__MIN_IDLE, with two underscores",
        "MYRIAD_PÖOL__X: \"pÖol.x\": is not an option",
        "--set 1: log.connections: must be true or false; found the text \"yes\"",
        "--backend 1: backend.servers: \"db:x\" is no server: the port is 1 to 65535",
        "--set 2: pool.max_conections: is not an option: did you mean \"max_connections\"?",
        "--listen 2: server.listen: \"6033\" is no address to listen on: write \"127.0.0.1:6033\"",
        "--set 3: must be section.key=value",
        "--set 4: auth.users: is not valid TOML",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\nshould start with\n{start}");
    }
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
}

#[test]
fn every_mistake_at_once_with_its_place() {
    let mistakes = mistakes_of(
        r#"colour = "red"
[server]
listen = ["127.0.0.1:6033", "nowhere"]
max_client = 5
max_connections = 7
handshake_timeout = 10
idle_timeout = "8hours"
reuse_port = "no"
[server.tls]
mode = "maybe"
[pol]
mode = "session"
[limits]
    buffer = "1GiB"
[backend]
servers = []
[log]
level = 3
"#,
    );
    let expected = [
        "1:1: colour: is not a section: there are server, backend, session, pool, scheduler, limits, auth, metrics, runtime, log",
        "3:29: server.listen: \"nowhere\" is no address to listen on: write an IP address and a port, as in \"127.0.0.1:6033\" or \"[::1]:6033\"",
        "4:1: server.max_client: is not an option: did you mean \"max_clients\"?",
        "5:1: server.max_connections: is not an option: did you mean \"pool.max_connections\"?",
        "6:21: server.handshake_timeout: must be 100ms to 10min; 10 needs a unit, as in \"10s\"",
        "7:16: server.idle_timeout: must be 1s to 31d, or \"never\"; write \"8hours\" as \"8h\"",
        "8:14: server.reuse_port: must be true or false; found the text \"no\"",
        "10:8: server.tls.mode: must be \"off\" | \"optional\" | \"required\"; found \"maybe\"",
        "11:2: pol: is not an option: did you mean \"pool\"?",
        "14:14: limits.buffer: must be 4KiB to 1MiB; found the text \"1GiB\"",
        "16:11: backend.servers: must name at least one",
        "18:9: log.level: must be text in quotes, as in \"info,myriad::pool=debug\"; found the number 3",
    ];
    assert_eq!(mistakes, expected);
}

#[test]
fn sections_and_lists_of_the_wrong_kind() {
    for (text, expected) in [
        ("server = 5", "1:1: server: is a section and holds listen, max_clients,"),
        ("[[server]]", "1:3: server: is a section"),
        ("[auth.users]\nname = 'x'", "must be a list of users: each starts with [[auth.users]] in double brackets"),
        ("[auth]\nusers = ['x']", "2:10: auth.users: must be a list of users"),
        ("[pool.mode]\nx = 1", "pool.mode: must be \"transaction\" | \"session\"; found a table"),
        ("pool.mode.x = 1", "pool.mode: must be"),
        ("\"a\\nb\" = 1", "1:1: \"a\\nb\": is not a section"),
    ] {
        let mistakes = mistakes_of(text);
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].contains(expected), "{text}: {mistakes:?}");
    }
}

#[test]
fn broken_toml_is_read_as_far_as_it_goes() {
    let mistakes = mistakes_of("[server]\nmax_clients = 10k\nbacklog = \"7\n[pool]\nmin_idle = -1\n[pool]\n");
    let lines: Vec<_> = mistakes.iter().map(|m| m.split(':').next().unwrap()).collect();
    assert!(["2", "3", "5", "6"].iter().all(|line| lines.contains(line)), "{mistakes:#?}");
    let mistakes = mistakes_of(b"[server]\nmax_clients = 1 # \xff\n");
    assert_eq!(mistakes, ["2:19: is not UTF-8 from here on: save the file as UTF-8"]);
    assert!(load_text("\u{feff}[pool]\nmin_idle = 1").is_ok());
}

#[test]
fn a_file_that_cannot_be_read() {
    let missing = Sources { file: Some("/nonexistent/m.toml".into()), ..Sources::default() };
    let mistakes = load(&missing).unwrap_err();
    assert_eq!(mistakes.to_string(), "/nonexistent/m.toml: cannot be read: No such file or directory (os error 2)");
    assert_eq!(mistakes.count(), 1);
}

#[test]
fn contradictions() {
    for (text, expected) in [
        ("[pool]\nmin_idle = 40", "2:1: pool.min_idle: 40 is more than pool.max_connections, 32 (the default)"),
        (
            "[pool]\nmin_idle = 9\nmax_connections = 8",
            "2:1: pool.min_idle: 9 is more than pool.max_connections, 8 (3:1)",
        ),
        ("server.tls.certificate = '/dev/null'", "1:12: server.tls.certificate: needs server.tls.key beside it"),
        ("server.tls.key = '/dev/null'", "1:12: server.tls.key: needs server.tls.certificate beside it"),
        ("server.tls.client_ca = '/none'", "server.tls.client_ca: \"/none\" cannot be read: No such file"),
        ("server.tls.client_ca = '/'", "server.tls.client_ca: \"/\" cannot be read: is a directory"),
        ("backend.tls.ca = '/dev/null'", "backend.tls.ca: is of no use while backend.tls.mode is \"off\""),
        ("backend.servers = ['a', 'b']", "backend.servers: this version works with one server; found 2"),
        ("server.listen = ['[::]:1', '[::]:1']", "server.listen: \"[::]:1\" is listed twice"),
        (
            "server.listen = '[::]:1'\nmetrics.listen = '[::]:1'",
            "2:9: metrics.listen: \"[::]:1\" is in server.listen too",
        ),
        ("backend.source_ports = '20000-29999'", "backend.source_ports: is of no use without backend.source_addresses"),
        (
            "backend.source_addresses = ['10.0.0.9', '10.0.0.8/30']",
            "backend.source_addresses: 10.0.0.9 is listed twice",
        ),
        (
            "backend.source_addresses = ['10.0.0.0/22', '10.1.0.0/29']",
            "backend.source_addresses: at most 1024 addresses together; found 1028",
        ),
        (
            "backend.source_addresses = '10.0.0.8'\nbackend.source_ports = '1023-2000'",
            "backend.source_ports: must be \"FIRST-LAST\", from 1024 to 65535; found \"1023-2000\"",
        ),
        ("backend.source_addresses = []", "backend.source_addresses: must name at least one"),
        ("auth.mode = 'users'", "1:6: auth.mode: \"users\" needs users"),
        (
            "auth.mode = 'passthrough'\nauth.users = [{name='a', password='b'}]",
            "2:15: auth.users: \"a\": has a password, but \"passthrough\" takes passwords from clients",
        ),
        (
            "[scheduler]\nmax_running = 9\n[pool]\nmax_connections = 8",
            "2:1: scheduler.max_running: 9 is more than pool.max_connections, 8 (4:1)",
        ),
        ("scheduler.max_running = 'many'", "must be \"off\" | \"auto\" | 1 to 100_000; found the text \"many\""),
        ("limits.schemas = [{name='a'}, {name='a'}]", "limits.schemas: \"a\" is listed already, at 1:19"),
        ("limits.schemas = [{max_clients=1}]", "limits.schemas: has no name"),
        ("limits.schemas = [{name='a', weight=1}]", "limits.schemas: \"weight\" is not an option: a schema has name, "),
    ] {
        let mistakes = mistakes_of(text);
        assert_eq!(mistakes.len(), 1, "{text}: {mistakes:#?}");
        assert!(mistakes[0].contains(expected), "{text}: {mistakes:#?}\nshould contain\n{expected}");
    }
}

#[test]
fn users_and_schemas_have_limits() {
    let text = "auth.mode = 'passthrough'\nauth.users = [{name='a', weight=3, max_waiting=7}]\n[[limits.schemas]]\nname='s'\nmax_connections=2\n[scheduler]\nmax_running='auto'";
    let config = load_text(text).unwrap();
    let user = &config.auth.users[0];
    assert_eq!(
        (config.auth.mode, user.weight, user.max_waiting, user.max_connections),
        (AuthMode::Passthrough, 3, 7, 0)
    );
    let schema = SchemaLimits { name: "s".into(), max_connections: 2, ..SchemaLimits::default() };
    assert_eq!((config.limits.schemas, config.scheduler.max_running), (vec![schema], MaxRunning::Auto));
    let numbered = load_text("scheduler.max_running = 12\nauth.users = [{name='a', password='b'}]").unwrap();
    assert_eq!((numbered.scheduler.max_running, numbered.auth.users[0].weight), (MaxRunning::At(12), 1));
}

#[test]
fn a_bad_value_is_not_compared() {
    let mistakes = mistakes_of("[pool]\nmin_idle = 40\nmax_connections = 'many'");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    let mistakes = mistakes_of("[auth]\nmode = 'users'\n[[auth.users]]\nnam = 'x'\npassword = 5");
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
}

#[test]
fn users_and_their_passwords() {
    let scratch = Scratch::new("");
    let file = scratch.beside("secret", "from file\r\n");
    let text = format!(
        "[[auth.users]]\nname = 'a'\npassword = 'in clear'\nmax_clients = 5\nbackend_user = 'b'\n\
         [[auth.users]]\nname = 'f'\npassword_file = '{file}'\n[[auth.users]]\nname = 'e'\npassword_env = 'APP'"
    );
    fs::write(scratch.file(), text).unwrap();
    let sources = Sources {
        file: Some(scratch.file()),
        environment: environment(&[("APP", "from environment")]),
        ..Sources::default()
    };
    let config = load(&sources).unwrap();
    assert_eq!(config.auth.mode, AuthMode::Users);
    let passwords: Vec<_> = config.auth.users.iter().map(|user| (user.name.as_str(), user.password.as_str())).collect();
    assert_eq!(passwords, [("a", "in clear"), ("f", "from file"), ("e", "from environment")]);
    assert_eq!(config.auth.users[0].max_clients, 5);
    assert_eq!(config.auth.users[0].backend_user.as_deref(), Some("b"));
    assert!(!format!("{config:?}").contains("clear"));

    let config = load(&set(&["auth.users=[{name=\"app\",password=\"x\"}]"])).unwrap();
    assert_eq!((config.auth.mode, config.auth.users.len()), (AuthMode::Users, 1));
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
}

#[test]
fn mistakes_in_users_never_show_a_password() {
    let mistakes = mistakes_of(
        r#"[[auth.users]]
name = "a"
password = "hush"
password_env = "A"
[[auth.users]]
name = "b"
[[auth.users]]
password = "hush"
[[auth.users]]
name = "a"
password = "hush"
[[auth.users]]
name = "c"
passwort = "hush"
[[auth.users]]
name = "d"
password_env = "NOT_THERE"
[[auth.users]]
name = "e"
password_file = "/none"
[[auth.users]]
name = ""
password = ["hush"]
"#,
    );
    let expected = [
        "1:1: auth.users: \"a\": has several passwords: keep one of password, password_file, password_env",
        "5:1: auth.users: \"b\": has no password: give one of",
        "7:1: auth.users: has no name: add name = \"...\"",
        "9:1: auth.users: \"a\" is listed already, at 1:1",
        "14:1: auth.users: \"passwort\" is not an option: did you mean \"password\"?",
        "15:1: auth.users: \"d\": the environment has no variable \"NOT_THERE\"",
        "18:1: auth.users: \"e\": password_file \"/none\": No such file",
        "22:8: auth.users.name: must not be empty",
        "23:12: auth.users.password: must be text in quotes; found a list",
    ];
    for (mistake, start) in mistakes.iter().zip(expected) {
        assert!(mistake.starts_with(start), "{mistake}\nshould start with\n{start}");
        assert!(!mistake.contains("hush"));
    }
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
}

#[test]
fn a_readable_password_is_warned_of() {
    let scratch = Scratch::new("[[auth.users]]\nname = 'a'\npassword = 'x'");
    let sources = Sources { file: Some(scratch.file()), ..Sources::default() };
    assert!(load(&sources).unwrap().warnings.is_empty());
    fs::set_permissions(scratch.file(), fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = load(&sources).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("every user of this host can read it"), "{warnings:?}");
}

#[test]
fn proxies_of_one_port_without_an_instance_are_warned_of() {
    let both = ["server.reuse_port=true", "server.instance=3"];
    for (options, warned) in [(&both[..0], 0), (&both[..1], 1), (&both, 0), (&both[1..], 0)] {
        let warnings = load(&set(options)).unwrap().warnings;
        assert_eq!(warnings.len(), warned, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("a server.instance of its own")), "{warnings:?}");
    }
}

/// Fragments of configurations, so that random ones get beyond the first character.
const FRAGMENTS: &[&str] = &[
    "[server]\n",
    "[[auth.users]]\n",
    "[server.tls]\n",
    "listen",
    "mode",
    "users",
    "name",
    " = ",
    ".",
    "\n",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\"",
    "'",
    "\"\"\"",
    "\\u00e9",
    "é",
    "\0",
    "7",
    "-1",
    "0x",
    "1e9",
    "true",
    "1979-05-27",
    "\"30s\"",
    "\"1GiB\"",
    "#",
    "hush",
];

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_text_is_a_panic(picks in proptest::collection::vec(0..FRAGMENTS.len(), 0..40)) {
        let text: String = picks.iter().map(|pick| FRAGMENTS[*pick]).collect();
        let mut draft = draft::Draft::default();
        file::parse(Path::new("f"), &text, &mut draft);
        for name in ["auth.users", "server.listen", "pool.idle_timeout", "limits.buffer", "log.level", text.as_str()] {
            if let Err(mistakes) = load(&set(&[&format!("{name}={text}")])) {
                // One line each, whatever was written.
                proptest::prop_assert_eq!(mistakes.to_string().lines().count(), mistakes.count());
            }
        }
    }
}

/// `config/myriad.toml` with each option that is commented out ("#name = value", "#[[table]]") brought to life.
fn sample(uncommented: bool) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/myriad.toml");
    let text = fs::read_to_string(path).unwrap();
    let alive = |line: &str| match line.strip_prefix('#').filter(|rest| uncommented && !rest.starts_with(' ')) {
        Some(option) => option.to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(alive).collect::<Vec<_>>().join("\n")
}

/// The comment right above the line that a span is in, as one line.
fn comment_above(text: &str, at: usize) -> String {
    let lines: Vec<_> = text[..at].lines().collect();
    let full = if text[..at].ends_with('\n') { lines.len() } else { lines.len() - 1 };
    let start = lines[..full].iter().rposition(|line| !line.starts_with("# ")).map_or(0, |above| above + 1);
    lines[start..full].iter().map(|line| line.trim_start_matches("# ")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_sample_configuration_holds_every_option_with_its_default() {
    let defaults = load(&Sources::default()).unwrap();
    let loaded = load_text(&sample(false)).unwrap();
    assert_eq!(describe(&loaded), describe(&defaults), "a live option must have its default");

    let (live, full) = (sample(false), sample(true));
    let (live_table, full_table) = (DeTable::parse(&live).unwrap(), DeTable::parse(&full).unwrap());
    for option in OPTIONS {
        let described = one(option, &defaults);
        let depends_on_users = option.name == "auth.mode";
        let is_live = lookup(live_table.get_ref(), option.name).is_some();
        assert_eq!(
            is_live,
            described.value.is_some() && !depends_on_users,
            "{}: live if and only if it has a default",
            option.name
        );
        check_entry(option, &full, lookup(full_table.get_ref(), option.name), &described.range);
    }
    check_list(&USERS, &full, &full_table);
    check_list(&SCHEMAS, &full, &full_table);
}

/// The first item of a list has every option.
fn check_list<T: Default>(list: &List<T>, text: &str, table: &toml::Spanned<DeTable<'_>>) {
    let item = match lookup(table.get_ref(), list.name).map(|(_, items)| items.get_ref()) {
        Some(DeValue::Array(items)) => items.iter().next().and_then(|item| item.get_ref().as_table()).unwrap(),
        _ => panic!("the sample has no [[{}]]", list.name),
    };
    for option in list.options {
        let entry = item.get_key_value(option.name).map(|(key, value)| (key.span().start, value));
        check_entry(option, text, entry, &(option.range)());
    }
}

fn lookup<'d>(table: &'d DeTable<'_>, name: &str) -> Option<(usize, &'d toml::Spanned<DeValue<'d>>)> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let (key, value) = table.get_key_value(first)?;
    match rest {
        None => Some((key.span().start, value)),
        Some(rest) => lookup(value.get_ref().as_table()?, rest),
    }
}

fn check_entry<T: Default>(
    option: &Opt<T>,
    text: &str,
    entry: Option<(usize, &toml::Spanned<DeValue<'_>>)>,
    range: &str,
) {
    let (at, value) = entry.unwrap_or_else(|| panic!("config/myriad.toml lacks {}", option.name));
    assert!((option.read)(&mut T::default(), value).is_ok(), "the example of {} is not valid", option.name);
    let comment = comment_above(text, at);
    assert!(
        comment.to_lowercase().contains(&range.to_lowercase()),
        "the comment on {} must give its range, {range}: {comment}",
        option.name
    );
}
