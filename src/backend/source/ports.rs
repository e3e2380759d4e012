//! Which ports are ours to use, in which order.

use std::ops::RangeInclusive;

use rand::Rng;
use rand::seq::SliceRandom;

/// Local ports, in the order of their first use: the same for every address, and different in each process.
///
/// The same, since a port that is bound at one address is lost to whoever leaves the choice to the system, at every address; so
/// many addresses cost other programs no more ports than one does. Different, since several proxies on one host may use the
/// same addresses: in a random order a port that is somebody else's is met now and then, and never a thousand in a row.
#[derive(Debug)]
pub(in crate::backend) struct Ports(Box<[u16]>);

impl Ports {
    /// The ports of a range, without those that are reserved.
    pub(in crate::backend) fn new(
        range: RangeInclusive<u16>,
        reserved: &[RangeInclusive<u16>],
        dice: &mut impl Rng,
    ) -> Self {
        let free = |port: &u16| !reserved.iter().any(|range| range.contains(port));
        let mut ports: Box<[u16]> = range.filter(free).collect();
        ports.shuffle(dice);
        Self(ports)
    }

    /// How many.
    pub(in crate::backend) fn count(&self) -> usize {
        self.0.len()
    }

    /// The one that is used first, second, ..
    pub(super) fn at(&self, index: usize) -> Option<u16> {
        self.0.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn each_once_and_reserved_ones_never() {
        let ports =
            |seed| Ports::new(65_000..=65_535, &[65_010..=65_019, 1..=65_000], &mut StdRng::seed_from_u64(seed));
        let (one, other) = (ports(1), ports(2));
        assert_eq!(one.count(), 525);
        assert_ne!(one.0, other.0);
        let mut sorted = one.0.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (65_001..=65_009).chain(65_020..=65_535).collect::<Vec<_>>());
        assert_eq!((one.at(0), one.at(525)), (Some(one.0[0]), None));
    }
}
