//! `[[auth.users]]`: reads the list, then fetches the passwords.

use std::fs;
use std::io::Read;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

use super::draft::Locate;
use super::mistake::{Mistakes, Place};
use super::options::{USER_OPTIONS, USERS, WrittenUser};
use super::settings::User;
use super::shape::{Secret, Written, kind, quoted};
use super::suggest::nearest;

/// A user as written, and where.
pub(super) struct DraftUser {
    pub(super) place: Place,
    pub(super) written: WrittenUser,
    /// Whether something is wrong with it already.
    faulty: bool,
}

/// Reads the list of users.
pub(super) fn read(list: &Written<'_>, locate: Locate<'_>, mistakes: &mut Mistakes) -> Vec<DraftUser> {
    const FORM: &str = "must be a list of users: each starts with [[auth.users]] in double brackets";
    let DeValue::Array(items) = list.get_ref() else {
        mistakes.push(&locate(list.span()), USERS, format!("{FORM}; found {}", kind(list.get_ref())));
        return Vec::new();
    };
    let mut users = Vec::new();
    for item in items.iter() {
        let place = locate(item.span());
        match item.get_ref() {
            DeValue::Table(table) => users.push(read_one(place, table, locate, mistakes)),
            other => mistakes.push(&place, USERS, format!("{FORM}; found {}", kind(other))),
        }
    }
    users
}

fn read_one(place: Place, table: &DeTable<'_>, locate: Locate<'_>, mistakes: &mut Mistakes) -> DraftUser {
    let mut user = DraftUser { place, written: WrittenUser::default(), faulty: false };
    for (key, value) in table {
        let key_text = key.get_ref().as_ref();
        let Some(option) = USER_OPTIONS.iter().find(|option| option.name == key_text) else {
            let hint = match nearest(key_text, USER_OPTIONS.iter().map(|option| option.name)) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => format!("a user has {}", USER_OPTIONS.iter().map(|o| o.name).collect::<Vec<_>>().join(", ")),
            };
            mistakes.push(&locate(key.span()), USERS, format!("{} is not an option: {hint}", quoted(key_text)));
            user.faulty = true;
            continue;
        };
        if let Err(faults) = (option.read)(&mut user.written, value) {
            user.faulty = true;
            for fault in faults {
                mistakes.push(&locate(fault.span), format!("{USERS}.{}", option.name), fault.message);
            }
        }
    }
    user
}

/// Users as meant: complete, each name once, each with its password.
pub(super) fn finish(drafts: Vec<DraftUser>, environment: &[(String, String)], mistakes: &mut Mistakes) -> Vec<User> {
    let mut users: Vec<User> = Vec::with_capacity(drafts.len());
    let mut first_places: Vec<(String, Place)> = Vec::new();
    for DraftUser { place, written, faulty } in drafts {
        if let Some(name) = &written.name {
            match first_places.iter().find(|(first, _)| first == name) {
                Some((_, first)) => {
                    mistakes.push(&place, USERS, format!("{} is listed already, at {first}", quoted(name)));
                }
                None => first_places.push((name.clone(), place.clone())),
            }
        } else if !faulty {
            mistakes.push(&place, USERS, "has no name: add name = \"...\"");
        }
        if faulty {
            continue;
        }
        let who = written.name.as_deref().map_or_else(|| "this user".into(), quoted);
        match password(&written, environment) {
            Ok(password) => users.extend(written.name.map(|name| User {
                name,
                password,
                max_clients: written.max_clients,
                backend_user: written.backend_user,
            })),
            Err(message) => mistakes.push(&place, USERS, format!("{who}: {message}")),
        }
    }
    users
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
