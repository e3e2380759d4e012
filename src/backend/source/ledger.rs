//! The accounts: who uses how many ports to where, and who is next.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::Ports;

/// So many refusals in a row, and a line pauses. With half of the ports somebody else's, this happens once in 65,000 dials.
const TRIES: u32 = 16;
/// How long a line pauses the first time; twice as long each time until it works again.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Addresses of servers that are remembered without a connection to them; a name may have others every minute.
const DESTINATIONS: usize = 64;

/// A port of ours, for one connection to one address of a server. To be given back when the connection is gone.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "it is in use until it is given back"]
pub(in crate::backend) struct Place {
    to: SocketAddr,
    /// Which of the addresses.
    source: usize,
    /// Zero: whichever the system picks.
    port: u16,
}

impl Place {
    /// Which of the addresses.
    pub(in crate::backend) fn source(&self) -> usize {
        self.source
    }
}

/// Why the system did not give us a connection from a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Refusal {
    /// Somebody listens on the port, or has bound it for himself alone (EADDRINUSE).
    PortInUse,
    /// There is such a connection already, or there was until a moment ago (EADDRNOTAVAIL at connect).
    PairInUse,
    /// This host does not have the address (EADDRNOTAVAIL at bind).
    AddressNotOurs,
}

/// There is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) struct Shortage {
    /// Addresses of the destination's family.
    pub(in crate::backend) addresses: usize,
    /// Those that pause, since the system refused them.
    pub(in crate::backend) pausing: usize,
    /// Why the last of those was refused.
    pub(in crate::backend) refusal: Option<Refusal>,
    /// Places in use, of all of them.
    pub(in crate::backend) used: usize,
}

/// Every place there is, and who has it.
#[derive(Debug)]
pub(in crate::backend) struct Ledger {
    /// Empty: the system picks addresses and ports, and there is one line for whatever it picks.
    addresses: Box<[IpAddr]>,
    ports: Ports,
    destinations: HashMap<SocketAddr, Box<[Line]>>,
}

/// One address of ours to one address of a server.
#[derive(Debug, Default)]
struct Line {
    used: usize,
    /// How many ports have been used at least once.
    begun: usize,
    /// Of those, the ones that are free again; the one that has been so for longest comes first.
    freed: VecDeque<u16>,
    /// Refusals since it last worked or paused.
    refusals: u32,
    refusal: Option<Refusal>,
    pause: Duration,
    pauses_until: Option<Instant>,
}

impl Line {
    fn pauses(&self, now: Instant) -> bool {
        self.pauses_until.is_some_and(|until| now < until)
    }

    fn has_room(&self, ports: &Ports) -> bool {
        self.begun < ports.count() || !self.freed.is_empty()
    }

    fn take(&mut self, ports: &Ports) -> Option<u16> {
        let port = match ports.at(self.begun) {
            Some(port) => {
                self.begun += 1;
                port
            }
            None => self.freed.pop_front()?,
        };
        self.used += 1;
        Some(port)
    }
}

impl Ledger {
    /// With these addresses, each with these ports. Without any, the system picks, and the ports only say how many there are.
    pub(in crate::backend) fn new(addresses: Vec<IpAddr>, ports: Ports) -> Self {
        Self { addresses: addresses.into(), ports, destinations: HashMap::new() }
    }

    /// The ports of each address.
    pub(in crate::backend) fn ports(&self) -> usize {
        self.ports.count()
    }

    /// A place to connect from: at the address that has the fewest connections to there.
    ///
    /// # Errors
    /// If no address has a free port and does not pause.
    pub(in crate::backend) fn take(&mut self, to: SocketAddr, now: Instant) -> Result<Place, Shortage> {
        if self.destinations.len() >= DESTINATIONS && !self.destinations.contains_key(&to) {
            self.destinations.retain(|_, lines| lines.iter().any(|line| line.used > 0));
        }
        let count = self.addresses.len().max(1);
        let lines = self.destinations.entry(to).or_insert_with(|| (0..count).map(|_| Line::default()).collect());
        if self.addresses.is_empty() {
            lines.iter_mut().for_each(|line| line.used += 1);
            return Ok(Place { to, source: 0, port: 0 });
        }
        let fits = |source: usize| self.addresses.get(source).is_some_and(|it| it.is_ipv4() == to.is_ipv4());
        let of_family = || lines.iter().enumerate().filter(|(source, _)| fits(*source));
        let free = of_family().filter(|(_, line)| !line.pauses(now) && line.has_room(&self.ports));
        let Some((source, _)) = free.min_by_key(|(_, line)| line.used) else {
            let pausing = || of_family().filter(|(_, line)| line.pauses(now) && line.has_room(&self.ports));
            return Err(Shortage {
                addresses: of_family().count(),
                pausing: pausing().count(),
                refusal: pausing().max_by_key(|(_, line)| line.pauses_until).and_then(|(_, line)| line.refusal),
                used: of_family().map(|(_, line)| line.used).sum(),
            });
        };
        let port = lines.get_mut(source).and_then(|line| line.take(&self.ports)).unwrap_or_default();
        Ok(Place { to, source, port })
    }

    /// Where to bind; nowhere if the system picks.
    pub(in crate::backend) fn from(&self, place: &Place) -> Option<SocketAddr> {
        self.addresses.get(place.source).map(|address| SocketAddr::new(*address, place.port))
    }

    /// There is a connection from this place.
    pub(in crate::backend) fn connected(&mut self, place: &Place) {
        if let Some(line) = self.line(place) {
            (line.refusals, line.pause, line.pauses_until) = (0, Duration::ZERO, None);
        }
    }

    /// The connection from this place is gone, or never came about for reasons that have nothing to do with the place.
    pub(in crate::backend) fn give_back(&mut self, place: Place) {
        let (to, port) = (place.to, place.port);
        if let Some(line) = self.line(&place) {
            line.used -= 1;
            if port != 0 {
                line.freed.push_back(port);
            }
        }
        debug_assert!(self.destinations.contains_key(&to), "a destination with a place in use is kept");
    }

    /// The system said no. True if the address pauses now.
    pub(in crate::backend) fn refused(&mut self, place: Place, refusal: Refusal, now: Instant) -> bool {
        let mut pauses = false;
        if let Some(line) = self.line(&place) {
            line.refusals += 1;
            line.refusal = Some(refusal);
            if line.refusals >= TRIES || refusal == Refusal::AddressNotOurs {
                line.refusals = 0;
                line.pause = (line.pause * 2).clamp(PAUSE, LONGEST_PAUSE);
                line.pauses_until = Some(now + line.pause);
                pauses = true;
            }
        }
        self.give_back(place);
        pauses
    }

    /// Every place at this address.
    #[cfg(test)]
    pub(in crate::backend) fn addresses(&self, source: usize) -> Vec<SocketAddr> {
        (0..self.ports()).map(|n| SocketAddr::new(self.addresses[source], self.ports.at(n).unwrap())).collect()
    }

    fn line(&mut self, place: &Place) -> Option<&mut Line> {
        self.destinations.get_mut(&place.to)?.get_mut(place.source)
    }

    /// How many places at this address are in use, to all destinations, and how many could still be taken. (A name may
    /// stand for several destinations.)
    pub(in crate::backend) fn used_and_left(&self, source: usize) -> (usize, usize) {
        let v4 = self.addresses.get(source).map(IpAddr::is_ipv4);
        let lines = self.destinations.iter().filter(|(to, _)| v4.is_none_or(|v4| v4 == to.is_ipv4()));
        let used = lines.filter_map(|(_, lines)| lines.get(source)).map(|line| line.used);
        used.fold((0, self.ports()), |(all, left), used| (all + used, left.min(self.ports().saturating_sub(used))))
    }
}
