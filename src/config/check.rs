//! What no option can know by itself: values that contradict each other, files that are not there.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::mistake::Place;
use super::options::{SCHEMAS, USERS, WrittenSchema};
use super::outgoing::MOST_ADDRESSES;
use super::settings::{AuthMode, BackendTlsMode, Listen, MaxRunning, SchemaLimits, SourceAddresses, User};
use super::shape::quoted;
use super::users;

/// Turns the written settings into the meant ones, and reports every contradiction.
pub(super) fn everything(draft: &mut Draft, environment: &[(String, String)]) {
    warn_of_readable_passwords(draft);
    finish_auth(draft, environment);
    check_addresses(draft);
    check_instance(draft);
    check_sources(draft);
    finish_schemas(draft);
    check_pool(draft);
    check_scheduler(draft);
    check_server_tls(draft);
    check_auth(draft);
    check_backend_tls(draft);
}

impl Draft {
    /// Reports a contradiction at the first of these options that was written at all.
    fn contradiction(&mut self, options: &[&str], message: impl Into<String>) {
        let place = options.iter().find_map(|option| self.place(option)).cloned().unwrap_or_default();
        self.mistakes.push(&place, options.first().copied().unwrap_or_default(), message);
    }

    /// `32 (the default)`, `32 (myriad.toml:3:1)`.
    fn value_of(&self, option: &str, value: impl std::fmt::Display) -> String {
        match self.place(option) {
            Some(place) => format!("{value} ({place})"),
            None => format!("{value} (the default)"),
        }
    }
}

/// The mode follows the users unless it is given.
fn finish_auth(draft: &mut Draft, environment: &[(String, String)]) {
    let some_written = !draft.users.is_empty();
    let drafts = std::mem::take(&mut draft.users);
    let passthrough = draft.place("auth.mode").is_some() && draft.config.auth.mode == AuthMode::Passthrough;
    let users: Vec<User> = users::finish(drafts, passthrough, environment, &mut draft.mistakes);
    draft.config.auth.users = users;
    if draft.place("auth.mode").is_none() {
        draft.config.auth.mode = if some_written { AuthMode::Users } else { AuthMode::Passthrough };
    }
    if !draft.sound(&["auth.mode", USERS.name]) {
        return;
    }
    match draft.config.auth.mode {
        AuthMode::Users if !some_written => {
            let message =
                "\"users\" needs users: add [[auth.users]] with a name and a password, or set \"passthrough\"";
            draft.contradiction(&["auth.mode"], message);
        }
        _ => {}
    }
}

fn check_addresses(draft: &mut Draft) {
    let servers = draft.config.backend.servers.len();
    if servers > 1 {
        let message = format!("this version works with one server; found {servers}: keep one");
        draft.contradiction(&["backend.servers"], message);
    }
    if !draft.sound(&["server.listen", "metrics.listen"]) {
        return;
    }
    let listen = draft.config.server.listen.clone();
    let fixed_port = |listen: &Listen| !matches!(listen, Listen::Tcp(address) if address.port() == 0);
    let doubled =
        listen.iter().enumerate().find(|(i, one)| fixed_port(one) && listen.iter().take(*i).any(|l| l == *one));
    if let Some((_, doubled)) = doubled {
        draft.contradiction(&["server.listen"], format!("{} is listed twice", quoted(&doubled.to_string())));
    }
    let page = draft.config.metrics.listen.map(Listen::Tcp);
    if let Some(page) = page.filter(|page| fixed_port(page) && listen.contains(page)) {
        let message =
            format!("{} is in server.listen too: the page needs a port of its own", quoted(&page.to_string()));
        draft.contradiction(&["metrics.listen"], message);
    }
}

/// Clients of proxies that all are the only one have the same ids.
fn check_instance(draft: &mut Draft) {
    let server = &draft.config.server;
    if server.reuse_port && server.instance == 0 {
        let warning = "server.reuse_port without server.instance: a KILL that arrives at another proxy of the same port may hit \
                       a wrong client; give each proxy a server.instance of its own, from 1 to 255";
        draft.config.warnings.push(warning.into());
    }
}

fn check_sources(draft: &mut Draft) {
    let backend = &draft.config.backend;
    let Some(sources) = &backend.source_addresses else {
        if backend.source_ports.is_some() && draft.sound(&["backend.source_addresses"]) {
            let message = "is of no use without backend.source_addresses: the system picks both or neither";
            draft.contradiction(&["backend.source_ports"], message);
        }
        return;
    };
    let (mut seen, mut doubled) = (HashSet::new(), None);
    for address in sources.iter().flat_map(SourceAddresses::iter) {
        if !seen.insert(address) {
            doubled = doubled.or(Some(address));
        }
    }
    if let Some(doubled) = doubled {
        draft.contradiction(&["backend.source_addresses"], format!("{doubled} is listed twice"));
    } else if seen.len() > MOST_ADDRESSES {
        let message = format!("at most {MOST_ADDRESSES} addresses together; found {}", seen.len());
        draft.contradiction(&["backend.source_addresses"], message);
    }
}

fn check_pool(draft: &mut Draft) {
    let (min, max) = (draft.config.pool.min_idle, draft.config.pool.max_connections);
    if draft.sound(&["pool.min_idle", "pool.max_connections"]) && min > max {
        let max = draft.value_of("pool.max_connections", max);
        let message = format!("{min} is more than pool.max_connections, {max}: lower this or raise that");
        draft.contradiction(&["pool.min_idle", "pool.max_connections"], message);
    }
}

/// Schemas as meant: each name once.
fn finish_schemas(draft: &mut Draft) {
    let drafts = std::mem::take(&mut draft.schemas);
    let named = SCHEMAS.named(drafts, |written| written.name.as_ref(), &mut draft.mistakes);
    let schemas = named.into_iter().filter_map(|item| {
        let WrittenSchema { name, max_clients, max_connections, max_waiting } = item.written;
        Some(SchemaLimits { name: name?, max_clients, max_connections, max_waiting })
    });
    draft.config.limits.schemas = schemas.collect();
}

/// More than all connections cannot run.
fn check_scheduler(draft: &mut Draft) {
    let MaxRunning::At(running) = draft.config.scheduler.max_running else { return };
    let max = draft.config.pool.max_connections;
    if draft.sound(&["scheduler.max_running", "pool.max_connections"]) && running > max {
        let max = draft.value_of("pool.max_connections", max);
        let message = format!("{running} is more than pool.max_connections, {max}: lower this or raise that");
        draft.contradiction(&["scheduler.max_running", "pool.max_connections"], message);
    }
}

fn check_server_tls(draft: &mut Draft) {
    let tls = draft.config.server.tls.clone();
    for (given, name, missing, missing_name) in [
        (&tls.certificate, "server.tls.certificate", &tls.key, "server.tls.key"),
        (&tls.key, "server.tls.key", &tls.certificate, "server.tls.certificate"),
    ] {
        if given.is_some() && missing.is_none() && draft.sound(&[missing_name]) {
            draft.contradiction(&[name], format!("needs {missing_name} beside it"));
        }
    }
    check_readable(draft, "server.tls.certificate", tls.certificate);
    check_readable(draft, "server.tls.key", tls.key);
    check_readable(draft, "server.tls.client_ca", tls.client_ca);
}

fn check_auth(draft: &mut Draft) {
    let key = draft.config.auth.private_key.clone();
    check_readable(draft, "auth.private_key", key);
}

fn check_backend_tls(draft: &mut Draft) {
    let tls = draft.config.backend.tls.clone();
    // Somebody who names a CA expects encryption; a mode that was left out must not quietly mean none.
    let mode_left_out = draft.place("backend.tls.mode").is_none() && tls.mode == BackendTlsMode::Off;
    if mode_left_out && (tls.ca.is_some() || tls.server_name.is_some()) {
        let name = if tls.ca.is_some() { "backend.tls.ca" } else { "backend.tls.server_name" };
        let message = "is of no use while backend.tls.mode is \"off\" (the default): set mode = \"required\"";
        draft.contradiction(&[name], message);
    }
    if tls.mode != BackendTlsMode::Off && tls.ca.is_none() && tls.server_name.is_some() {
        let warning = "backend.tls.server_name without backend.tls.ca: the server's certificate is not verified";
        draft.config.warnings.push(warning.into());
    }
    check_readable(draft, "backend.tls.ca", tls.ca);
}

fn check_readable(draft: &mut Draft, option: &str, path: Option<PathBuf>) {
    let Some(path) = path else { return };
    let error = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Some("is a directory".to_owned()),
        Ok(_) => File::open(&path).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(error) = error {
        draft.contradiction(&[option], format!("{} cannot be read: {error}", quoted(&path.to_string_lossy())));
    }
}

/// A password that others on this host can read is worth a word, though somebody may have meant it.
fn warn_of_readable_passwords(draft: &mut Draft) {
    let mut warnings = Vec::new();
    for user in &draft.users {
        let file = match (&user.place, &user.written.password_file) {
            (_, Some(path)) => path,
            (Place::Line { path, .. }, None) if user.written.password.is_some() => path,
            (Place::Flag { .. }, None) if user.written.password.is_some() => {
                let flag =
                    "a password on the command line shows in the list of processes: use password_env or password_file";
                warnings.push(flag.to_owned());
                continue;
            }
            _ => continue,
        };
        if readable_by_all(file) {
            let path = file.display();
            warnings.push(format!("{path} holds a password and every user of this host can read it: chmod o-r {path}"));
        }
    }
    warnings.dedup();
    draft.config.warnings.append(&mut warnings);
}

fn readable_by_all(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & OTHERS_READ != 0)
}
