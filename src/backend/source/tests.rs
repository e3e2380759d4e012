//! Tables of events, and random ones against a model that is too plain to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn ledger(addresses: &[&str], ports: u16) -> Ledger {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Ledger::new(addresses, Ports::new(10_000..=9_999 + ports, &[], &mut StdRng::seed_from_u64(7)))
}

fn server(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 3306))
}

#[test]
fn the_least_used_address_is_next() {
    let now = Instant::now();
    let mut ledger = ledger(&["127.0.0.1", "fd00::1", "127.0.0.2", "127.0.0.3"], 2);
    let mut places: Vec<_> = (0..6).map(|_| ledger.take(server(1), now).unwrap()).collect();
    assert_eq!(places.iter().map(Place::source).collect::<Vec<_>>(), [0, 2, 3, 0, 2, 3]);
    let from: BTreeSet<_> = places.iter().map(|place| ledger.from(place).unwrap()).collect();
    assert_eq!(from.len(), 6, "each place once");
    // Another server has places of its own; IPv6 is reached from IPv6.
    assert_eq!(ledger.take(server(2), now).unwrap().source(), 0);
    let six = ledger.take("[fd00::9]:3306".parse().unwrap(), now).unwrap();
    assert_eq!((six.source(), ledger.from(&six).unwrap().ip()), (1, "fd00::1".parse::<IpAddr>().unwrap()));
    assert_eq!(ledger.take(server(1), now), Err(Shortage { addresses: 3, pausing: 0, refusal: None, used: 6 }));
    ledger.give_back(places.remove(4));
    assert_eq!(ledger.take(server(1), now).unwrap().source(), 2);
}

#[test]
fn an_address_of_the_other_family_does_not_help() {
    let now = Instant::now();
    let shortage = ledger(&["127.0.0.1"], 2).take("[::1]:3306".parse().unwrap(), now);
    assert_eq!(shortage, Err(Shortage { addresses: 0, pausing: 0, refusal: None, used: 0 }));
}

#[test]
fn a_freed_port_is_the_last_to_be_used_again() {
    let now = Instant::now();
    let mut ledger = ledger(&["127.0.0.1"], 5);
    let take = |ledger: &mut Ledger| {
        let place = ledger.take(server(1), now).unwrap();
        let port = ledger.from(&place).unwrap().port();
        ledger.give_back(place);
        port
    };
    let first: Vec<_> = (0..5).map(|_| take(&mut ledger)).collect();
    let second: Vec<_> = (0..5).map(|_| take(&mut ledger)).collect();
    assert_eq!(first, second);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn a_line_pauses_after_refusals_in_a_row_and_the_others_go_on() {
    let start = Instant::now();
    let mut ledger = ledger(&["127.0.0.1", "127.0.0.2"], 100);
    let refuse = |ledger: &mut Ledger, source, refusal, now| {
        let place = ledger.take(server(1), now).unwrap();
        assert_eq!(place.source(), source);
        ledger.refused(place, refusal, now)
    };
    for _ in 0..15 {
        assert!(!refuse(&mut ledger, 0, Refusal::PairInUse, start));
    }
    let works = ledger.take(server(1), start).unwrap();
    ledger.connected(&works);
    ledger.give_back(works);
    for n in 1..=16 {
        assert_eq!(refuse(&mut ledger, 0, Refusal::PortInUse, start), n == 16, "counted from the last success");
    }
    // A foreign address pauses at once.
    assert!(refuse(&mut ledger, 1, Refusal::AddressNotOurs, start));
    let shortage = Shortage { addresses: 2, pausing: 2, refusal: Some(Refusal::AddressNotOurs), used: 0 };
    assert_eq!(ledger.take(server(1), start + 99 * MS), Err(shortage));
    assert_eq!(ledger.take(server(2), start).unwrap().source(), 0, "to another server it may work");
    // The second pause is twice as long, until it works again.
    let mut now = start + 100 * MS;
    assert!(!refuse(&mut ledger, 0, Refusal::PairInUse, now));
    for _ in 0..15 {
        refuse(&mut ledger, 0, Refusal::PairInUse, now);
    }
    assert!(refuse(&mut ledger, 1, Refusal::AddressNotOurs, now));
    assert!(ledger.take(server(1), now + 199 * MS).is_err());
    now += 200 * MS;
    let works = ledger.take(server(1), now).unwrap();
    ledger.connected(&works);
    ledger.give_back(works);
    for _ in 0..16 {
        refuse(&mut ledger, 0, Refusal::PairInUse, now);
    }
    assert_eq!(ledger.take(server(1), now + 100 * MS).unwrap().source(), 0);
    for _ in 0..20 {
        now += Duration::from_secs(10);
        while ledger.take(server(1), now).is_ok_and(|place| !ledger.refused(place, Refusal::AddressNotOurs, now)) {}
    }
    assert!(ledger.take(server(1), now + Duration::from_secs(10)).is_ok(), "ten seconds at most");
}

#[test]
fn where_the_system_picks_it_is_counted() {
    let now = Instant::now();
    let mut ledger = ledger(&[], 3);
    let places: Vec<_> = (0..5).map(|_| ledger.take(server(1), now).unwrap()).collect();
    assert_eq!((ledger.from(&places[0]), ledger.used_and_left(0)), (None, (5, 0)));
    places.into_iter().for_each(|place| ledger.give_back(place));
    assert_eq!(ledger.used_and_left(0), (0, 3));
}

#[test]
fn destinations_without_connections_are_forgotten() {
    let now = Instant::now();
    let mut ledger = ledger(&["127.0.0.1"], 3);
    let kept = ledger.take(server(0), now).unwrap();
    for n in 1..=200 {
        let place = ledger.take(server(n), now).unwrap();
        ledger.give_back(place);
    }
    assert_eq!(ledger.used_and_left(0), (1, 2));
    ledger.give_back(kept);
}

/// What may happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    Take { server: u8 },
    Connected(prop::sample::Index),
    GiveBack(prop::sample::Index),
    Refused(prop::sample::Index, bool),
    Time(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (0..2_u8).prop_map(|server| Event::Take { server }),
        1 => index().prop_map(Event::Connected),
        2 => index().prop_map(Event::GiveBack),
        3 => (index(), prop::bool::weighted(0.1)).prop_map(|(place, ours)| Event::Refused(place, ours)),
        1 => (0..300_u64).prop_map(Event::Time),
    ]
}

proptest! {
    /// Whatever happens: no place twice, the least used line that can be had, and never a shortage without a reason.
    #[test]
    fn agrees_with_a_plain_model(events in prop::collection::vec(event(), 1..400), addresses in 1..4_usize, ports in 1..8_u16) {
        let all = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
        let mut ledger = ledger(&all[..addresses], ports);
        let mut now = Instant::now();
        let mut held: Vec<(u8, Place)> = Vec::new();
        let mut used: BTreeMap<(u8, usize), usize> = BTreeMap::new();
        // In a row, the length of the last pause, and its end.
        let mut refused: BTreeMap<(u8, usize), (u32, u64, Instant)> = BTreeMap::new();
        for event in events {
            match event {
                Event::Take { server: to } => {
                    let free = (0..addresses).filter(|source| {
                        used.get(&(to, *source)).copied().unwrap_or(0) < usize::from(ports)
                            && refused.get(&(to, *source)).is_none_or(|(.., until)| now >= *until)
                    });
                    let least = free.min_by_key(|source| used.get(&(to, *source)).copied().unwrap_or(0));
                    let taken = ledger.take(server(to), now);
                    prop_assert_eq!(taken.as_ref().ok().map(Place::source), least);
                    if let Ok(place) = taken {
                        let from = ledger.from(&place);
                        prop_assert!(held.iter().all(|(other, place)| *other != to || ledger.from(place) != from));
                        *used.entry((to, place.source())).or_default() += 1;
                        held.push((to, place));
                    }
                }
                Event::Time(ms) => now += Duration::from_millis(ms),
                Event::Connected(index) if !held.is_empty() => {
                    let (to, place) = &held[index.index(held.len())];
                    ledger.connected(place);
                    refused.remove(&(*to, place.source()));
                }
                Event::GiveBack(index) if !held.is_empty() => {
                    let (to, place) = held.swap_remove(index.index(held.len()));
                    *used.get_mut(&(to, place.source())).unwrap() -= 1;
                    ledger.give_back(place);
                }
                Event::Refused(index, foreign) if !held.is_empty() => {
                    let (to, place) = held.swap_remove(index.index(held.len()));
                    *used.get_mut(&(to, place.source())).unwrap() -= 1;
                    let (row, pause, until) = refused.entry((to, place.source())).or_insert((0, 0, now));
                    *row += 1;
                    let pauses = foreign || *row == 16;
                    if pauses {
                        *pause = (*pause * 2).clamp(100, 10_000);
                        (*row, *until) = (0, now + *pause as u32 * MS);
                    }
                    let refusal = if foreign { Refusal::AddressNotOurs } else { Refusal::PairInUse };
                    prop_assert_eq!(ledger.refused(place, refusal, now), pauses);
                }
                _ => {}
            }
            for source in 0..addresses {
                let of = |to| used.get(&(to, source)).copied().unwrap_or(0);
                let most = of(0).max(of(1));
                prop_assert_eq!(ledger.used_and_left(source), (of(0) + of(1), usize::from(ports) - most));
            }
        }
    }
}
