//! Settings being put together: every source writes its values over those of the one before.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::list::Item;
use super::mistake::{Mistakes, Place};
use super::options::{self, SCHEMAS, USERS, WrittenSchema};
use super::settings::Config;
use super::shape::{Fault, Written, kind, quoted};
use super::suggest::nearest;
use super::users::DraftUser;

/// Where a part of a source's text is, for people.
pub(super) type Locate<'a> = &'a dyn Fn(Range<usize>) -> Place;

/// Settings so far, and what is wrong with them so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) config: Config,
    /// The users, whose passwords are not fetched yet.
    pub(super) users: Vec<DraftUser>,
    pub(super) schemas: Vec<Item<WrittenSchema>>,
    pub(super) mistakes: Mistakes,
    /// Who wrote an option last.
    places: BTreeMap<&'static str, Place>,
    /// Options with a bad value somewhere: their value so far must not be compared with others.
    wrong: Vec<&'static str>,
}

impl Draft {
    /// Takes over every option of a table; `section` is the name in front of its keys.
    pub(super) fn table(&mut self, section: &str, table: &DeTable<'_>, locate: Locate<'_>) {
        for (key, value) in table {
            let key_text = key.get_ref();
            let name = if section.is_empty() { key_text.to_string() } else { format!("{section}.{key_text}") };
            self.assign(&name, &locate(key.span()), value, locate);
        }
    }

    /// Takes over the value of one option, or of a whole section; `at` is where its name is written.
    pub(super) fn assign(&mut self, name: &str, at: &Place, value: &Written<'_>, locate: Locate<'_>) {
        let lists = [USERS.name, SCHEMAS.name];
        if let Some(list) = lists.into_iter().find(|list| *list == name) {
            let mistakes_before = self.mistakes.count();
            if list == USERS.name {
                self.users = USERS.read(value, locate, &mut self.mistakes);
            } else {
                self.schemas = SCHEMAS.read(value, locate, &mut self.mistakes);
            }
            if self.mistakes.count() > mistakes_before {
                self.wrong.push(list);
            }
            self.places.insert(list, at.clone());
        } else if let Some(option) = options::option(name) {
            self.places.insert(option.name, at.clone());
            if let Err(faults) = (option.read)(&mut self.config, value) {
                self.wrong.push(option.name);
                self.faults(name, faults, locate);
            }
        } else if options::is_section(name) {
            match value.get_ref() {
                DeValue::Table(table) => self.table(name, table, locate),
                other => {
                    let children = options::children(name).join(", ");
                    let message = format!("is a section and holds {children}; found {}", kind(other));
                    self.mistakes.push(at, name, message);
                }
            }
        } else {
            self.mistakes.push(at, readable(name), unknown(name));
        }
    }

    /// Reports what is wrong with the value of an option.
    pub(super) fn faults(&mut self, name: &str, faults: Vec<Fault>, locate: Locate<'_>) {
        for fault in faults {
            self.mistakes.push(&locate(fault.span), name, fault.message);
        }
    }

    /// Where an option was written last; `None` if it has its default.
    pub(super) fn place(&self, name: &str) -> Option<&Place> {
        self.places.get(name)
    }

    /// Whether all of these options are fit to be compared with each other.
    pub(super) fn sound(&self, names: &[&str]) -> bool {
        !names.iter().any(|name| self.wrong.contains(name))
    }
}

/// Words for a name that is no option.
fn unknown(name: &str) -> String {
    let (section, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    let here = options::children(section);
    if let Some(child) = nearest(leaf, here.iter().copied()) {
        return format!("is not an option: did you mean \"{child}\"?");
    }
    if let Some(elsewhere) = options::names().find(|option| option.rsplit_once('.').is_some_and(|(_, l)| l == leaf)) {
        return format!("is not an option: did you mean \"{elsewhere}\"?");
    }
    if let Some(elsewhere) = nearest(name, options::names()) {
        return format!("is not an option: did you mean \"{elsewhere}\"?");
    }
    match (section, here.is_empty()) {
        ("", _) => format!("is not a section: there are {}", here.join(", ")),
        (_, false) => format!("is not an option: [{section}] has {}", here.join(", ")),
        (_, true) => "is not an option".into(),
    }
}

/// A name as people can read it on one line.
pub(super) fn readable(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() <= 60 && name.chars().all(plain) { name.into() } else { quoted(name) }
}
