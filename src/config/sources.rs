//! Where settings come from, and which wins: default < file < environment < flags.

use std::borrow::Cow;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::draft::{Draft, readable};
use super::mistake::{Mistakes, Place};
use super::options;
use super::settings::Config;
use super::{check, file};

/// Everything that may hold settings, as the command line and the environment gave it.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `--config FILE`
    pub file: Option<PathBuf>,
    /// `--listen ADDR`; together they replace `server.listen`.
    pub listen: Vec<String>,
    /// `--backend HOST:PORT`; together they replace `backend.servers`.
    pub backend: Vec<String>,
    /// `--set section.key=value`: the value in TOML, or else plain text.
    pub set: Vec<String>,
    /// The whole environment: `MYRIAD_SECTION__KEY` is a setting, and `password_env` may name any variable.
    pub environment: Vec<(String, String)>,
}

/// What the variables that are settings start with.
const PREFIX: &str = "MYRIAD_";

/// The settings, or everything that is wrong with them.
pub fn load(sources: &Sources) -> Result<Config, Mistakes> {
    let mut draft = Draft::default();
    if let Some(path) = &sources.file {
        file::read(path, &mut draft);
    }
    for (name, value) in &sources.environment {
        read_variable(name, value, &mut draft);
    }
    for (i, setting) in sources.set.iter().enumerate() {
        read_set(setting, &Place::Flag { name: "--set", number: i + 1 }, &mut draft);
    }
    read_addresses("--listen", "server.listen", &sources.listen, &mut draft);
    read_addresses("--backend", "backend.servers", &sources.backend, &mut draft);
    check::everything(&mut draft, &sources.environment);
    if draft.mistakes.is_empty() {
        return Ok(draft.config);
    }
    draft.mistakes.sort();
    Err(draft.mistakes)
}

/// `MYRIAD_SERVER__TLS__MODE` sets `server.tls.mode`. Variables without a double underscore belong to others, unless
/// one is an option's name but for that.
fn read_variable(variable: &str, value: &str, draft: &mut Draft) {
    let Some(name) = variable.strip_prefix(PREFIX) else { return };
    let place = Place::Variable(variable.into());
    let name = name.to_ascii_lowercase();
    if name.contains("__") {
        read_value(&name.replace("__", "."), value, &place, draft);
    } else if let Some(meant) = options::names().find(|option| option.replace('.', "_") == name) {
        let variable = meant.to_ascii_uppercase().replace('.', "__");
        draft.mistakes.push(&place, meant, format!("has no effect: write {PREFIX}{variable}, with two underscores"));
    }
}

fn read_set(setting: &str, place: &Place, draft: &mut Draft) {
    match setting.split_once('=') {
        Some((name, value)) => read_value(name.trim(), value, place, draft),
        None => draft.mistakes.push(place, "", "must be section.key=value, as in pool.max_connections=64"),
    }
}

/// A value outside of a file: TOML if it can be, else plain text, so that quotes may be left out.
fn read_value(name: &str, text: &str, place: &Place, draft: &mut Draft) {
    let text = text.trim();
    let value = match DeValue::parse(text) {
        Ok(value) => value,
        // What begins as a list, a table or a quoted text was meant as TOML. (The message never quotes the value.)
        Err(error) if text.starts_with(['[', '{', '"', '\'']) => {
            return draft.mistakes.push(
                place,
                readable(name),
                format!("is not valid TOML: {}", error.message().replace('\n', ", ")),
            );
        }
        Err(_) => Spanned::new(0..text.len(), DeValue::String(Cow::Borrowed(text))),
    };
    draft.assign(name, place, &value, &|_| place.clone());
}

/// The flags that name addresses: together they make one list.
fn read_addresses(flag: &'static str, option: &'static str, addresses: &[String], draft: &mut Draft) {
    let place = |i: usize| Place::Flag { name: flag, number: i + 1 };
    let items: Vec<_> = addresses
        .iter()
        .enumerate()
        .map(|(i, address)| Spanned::new(i..i, DeValue::String(Cow::Borrowed(address.as_str()))))
        .collect();
    if !items.is_empty() {
        let list = Spanned::new(0..0, DeValue::Array(items.into_iter().collect()));
        draft.assign(option, &place(0), &list, &|span| place(span.start));
    }
}
