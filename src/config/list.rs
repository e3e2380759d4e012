//! Lists of tables, as `[[auth.users]]`: reads each item against a table of options of its own.

use toml::de::{DeTable, DeValue};

use super::draft::Locate;
use super::mistake::{Mistakes, Place};
use super::options::Opt;
use super::shape::{Written, kind, quoted};
use super::suggest::nearest;

/// What a list is called, and what may stand in its items.
pub(super) struct List<T: 'static> {
    /// As in `auth.users`.
    pub(super) name: &'static str,
    /// One of them, in words.
    pub(super) item: &'static str,
    pub(super) options: &'static [Opt<T>],
}

/// An item as written, and where.
pub(super) struct Item<T> {
    pub(super) place: Place,
    pub(super) written: T,
    /// Whether something is wrong with it already.
    pub(super) faulty: bool,
}

impl<T: Default> List<T> {
    /// Reads the list.
    pub(super) fn read(&self, list: &Written<'_>, locate: Locate<'_>, mistakes: &mut Mistakes) -> Vec<Item<T>> {
        let form =
            || format!("must be a list of {}s: each starts with [[{}]] in double brackets", self.item, self.name);
        let DeValue::Array(array) = list.get_ref() else {
            mistakes.push(&locate(list.span()), self.name, format!("{}; found {}", form(), kind(list.get_ref())));
            return Vec::new();
        };
        let mut items = Vec::new();
        for item in array.iter() {
            let place = locate(item.span());
            match item.get_ref() {
                DeValue::Table(table) => items.push(self.read_one(place, table, locate, mistakes)),
                other => mistakes.push(&place, self.name, format!("{}; found {}", form(), kind(other))),
            }
        }
        items
    }

    fn read_one(&self, place: Place, table: &DeTable<'_>, locate: Locate<'_>, mistakes: &mut Mistakes) -> Item<T> {
        let mut item = Item { place, written: T::default(), faulty: false };
        for (key, value) in table {
            let key_text = key.get_ref().as_ref();
            let Some(option) = self.options.iter().find(|option| option.name == key_text) else {
                let hint = match nearest(key_text, self.options.iter().map(|option| option.name)) {
                    Some(name) => format!("did you mean \"{name}\"?"),
                    None => {
                        let all = self.options.iter().map(|option| option.name).collect::<Vec<_>>();
                        format!("a {} has {}", self.item, all.join(", "))
                    }
                };
                let message = format!("{} is not an option: {hint}", quoted(key_text));
                mistakes.push(&locate(key.span()), self.name, message);
                item.faulty = true;
                continue;
            };
            if let Err(faults) = (option.read)(&mut item.written, value) {
                item.faulty = true;
                for fault in faults {
                    mistakes.push(&locate(fault.span), format!("{}.{}", self.name, option.name), fault.message);
                }
            }
        }
        item
    }

    /// Keeps the items that are sound, and have a name that no other has.
    pub(super) fn named(
        &self,
        items: Vec<Item<T>>,
        name: impl Fn(&T) -> Option<&String>,
        mistakes: &mut Mistakes,
    ) -> Vec<Item<T>> {
        let mut first_places: Vec<(String, Place)> = Vec::new();
        for Item { place, written, faulty } in &items {
            match name(written) {
                Some(name) => match first_places.iter().find(|(first, _)| first == name) {
                    Some((_, first)) => {
                        mistakes.push(place, self.name, format!("{} is listed already, at {first}", quoted(name)));
                    }
                    None => first_places.push((name.clone(), place.clone())),
                },
                None if !faulty => mistakes.push(place, self.name, "has no name: add name = \"...\""),
                None => {}
            }
        }
        items.into_iter().filter(|item| !item.faulty).collect()
    }
}
