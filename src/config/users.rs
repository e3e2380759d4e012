//! `[[auth.users]]`: once the list is read, fetches the passwords.

use std::fs;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use super::list::Item;
use super::mistake::Mistakes;
use super::options::{USERS, WrittenUser};
use super::settings::User;
use super::shape::{Secret, quoted};

/// A user as written, and where.
pub(super) type DraftUser = Item<WrittenUser>;

/// Users as meant: complete, each name once, each with its password unless clients bring theirs.
pub(super) fn finish(
    drafts: Vec<DraftUser>,
    passthrough: bool,
    environment: &[(String, String)],
    mistakes: &mut Mistakes,
) -> Vec<User> {
    let mut users: Vec<User> = Vec::with_capacity(drafts.len());
    for Item { place, written, .. } in USERS.named(drafts, |written| written.name.as_ref(), mistakes) {
        let who = written.name.as_deref().map_or_else(|| "this user".into(), quoted);
        let password = if passthrough { no_password(&written) } else { password(&written, environment) };
        match password {
            Ok(password) => users.extend(written.name.map(|name| User {
                name,
                password,
                max_clients: written.max_clients,
                max_connections: written.max_connections,
                max_waiting: written.max_waiting,
                weight: written.weight,
                backend_user: written.backend_user,
            })),
            Err(message) => mistakes.push(&place, USERS.name, format!("{who}: {message}")),
        }
    }
    users
}

/// Where clients' passwords come from the clients themselves, a user is listed for its limits only.
fn no_password(user: &WrittenUser) -> Result<Zeroizing<String>, String> {
    match (&user.password, &user.password_file, &user.password_env) {
        (None, None, None) => Ok(Zeroizing::default()),
        _ => {
            Err("has a password, but \"passthrough\" takes passwords from clients: remove it, or set \"users\"".into())
        }
    }
}

/// The password from the one place it was given.
fn password(user: &WrittenUser, environment: &[(String, String)]) -> Result<Zeroizing<String>, String> {
    match (&user.password, &user.password_file, &user.password_env) {
        (Some(password), None, None) => Ok(password.clone()),
        (None, Some(path), None) => from_file(path),
        (None, None, Some(variable)) => {
            let found = environment.iter().find(|(name, _)| name == variable);
            let (_, password) = found
                .ok_or_else(|| format!("the environment has no variable {} (or it is not UTF-8)", quoted(variable)))?;
            sound(Zeroizing::new(password.clone()))
        }
        (None, None, None) => Err("has no password: give one of password, password_file, password_env \
             (password = \"\" for an account without one)"
            .into()),
        _ => Err("has several passwords: keep one of password, password_file, password_env".into()),
    }
}

/// The first line of a file, which must be the only one.
fn from_file(path: &Path) -> Result<Zeroizing<String>, String> {
    const MOST: u64 = 4096;
    let fault = |why: &str| format!("password_file {}: {why}", quoted(&path.to_string_lossy()));
    let mut text = Zeroizing::new(String::new());
    let file = fs::File::open(path).map_err(|error| fault(&error.to_string()))?;
    file.take(MOST).read_to_string(&mut text).map_err(|error| fault(&error.to_string()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.contains('\n') {
        return Err(fault("must hold the password and nothing else, on one line"));
    }
    sound(Zeroizing::new(line.to_owned())).map_err(|why| fault(&why))
}

fn sound(password: Zeroizing<String>) -> Result<Zeroizing<String>, String> {
    match Secret::fault(&password) {
        Some(why) => Err(format!("the password {why}")),
        None => Ok(password),
    }
}
