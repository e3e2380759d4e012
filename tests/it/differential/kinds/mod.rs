//! The kinds of session state, and what clients do with each.

mod binary;
mod chatter;
mod commands;
mod errors;
mod keeping;
mod routines;
mod statements;
mod trackers;
mod transactions;
mod variables;

use super::author::Author;

/// A kind of section.
#[derive(Clone, Copy)]
pub(super) struct Section {
    /// How often.
    pub(super) weight: usize,
    /// Whether it keeps its backend for its whole length, whatever the proxy can do.
    pub(super) pins: bool,
    pub(super) write: fn(&mut Author),
}

const fn shares(weight: usize, write: fn(&mut Author)) -> Section {
    Section { weight, pins: false, write }
}

const fn pins(weight: usize, write: fn(&mut Author)) -> Section {
    Section { weight, pins: true, write }
}

const SECTIONS: &[Section] = &[
    shares(24, variables::probe),
    shares(12, chatter::chatter),
    shares(14, variables::set),
    shares(5, variables::set_charset),
    shares(3, variables::several),
    shares(3, variables::restore_from_variable),
    shares(6, variables::schema),
    shares(12, variables::user_variables),
    shares(10, statements::insert_ids),
    shares(12, statements::questions),
    shares(6, statements::reads),
    shares(5, statements::writes),
    shares(6, statements::several),
    shares(2, statements::files),
    shares(1, statements::alter),
    shares(6, errors::failing),
    pins(6, transactions::transaction),
    pins(3, transactions::without_autocommit),
    shares(3, transactions::one_shot),
    pins(2, transactions::xa),
    pins(4, keeping::temporary_tables),
    pins(2, keeping::lock_tables),
    pins(4, keeping::user_locks),
    pins(2, keeping::handler),
    shares(5, keeping::text_prepare),
    shares(5, routines::calls),
    shares(2, routines::functions),
    shares(2, routines::triggers),
    shares(14, binary::statement),
    shares(4, binary::long_data),
    shares(3, binary::cursor),
    shares(2, binary::errors),
    shares(6, commands::simple),
    shares(3, commands::set_option),
    shares(3, commands::reset),
    shares(1, commands::change_user),
    shares(1, commands::reconnect),
    shares(1, trackers::set),
];

/// One of them, by weight.
pub(super) fn choose(author: &mut Author) -> Section {
    let mut at = author.dice.below(SECTIONS.iter().map(|section| section.weight).sum());
    for section in SECTIONS {
        match at.checked_sub(section.weight) {
            Some(rest) => at = rest,
            None => return *section,
        }
    }
    unreachable!("it is below the sum")
}
