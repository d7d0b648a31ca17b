//! What clients ask for, within the bounds of the specification.

use super::{DISTRICTS, Scale};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Which warehouses and districts are used (2.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Uniform,
    /// Half of the transactions go to five pairs of a warehouse and a district.
    Skewed,
}

impl Access {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Access::Uniform => "uniform",
            Access::Skewed => "skewed",
        }
    }
}

/// A client's dice.
pub(crate) struct Inputs {
    pub(crate) scale: Scale,
    access: Access,
    random: StdRng,
    date: i64,
}

impl Inputs {
    pub(crate) fn new(scale: Scale, access: Access, seed: u64) -> Inputs {
        Inputs { scale, access, random: StdRng::seed_from_u64(seed), date: 0 }
    }

    /// From the first to the last, both included.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        self.random.random_range(first..=last)
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.between(1, 100) <= percent
    }

    /// A number that grows.
    pub(crate) fn date(&mut self) -> i64 {
        self.date += 1;
        self.date
    }

    /// A warehouse and a district.
    pub(crate) fn home(&mut self) -> (usize, usize) {
        if self.access == Access::Skewed && self.percent(50) {
            let hot = self.between(0, 4);
            return (1 + hot * self.scale.warehouses / 5, 1 + 2 * hot);
        }
        (self.between(1, self.scale.warehouses), self.between(1, DISTRICTS))
    }

    /// Another warehouse, if there is one.
    pub(crate) fn other_warehouse(&mut self, w_id: usize) -> usize {
        if self.scale.warehouses == 1 {
            return w_id;
        }
        let other = self.between(1, self.scale.warehouses - 1);
        if other < w_id { other } else { other + 1 }
    }

    pub(crate) fn customer(&mut self) -> usize {
        self.not_uniform(1_023, 259, 1, self.scale.customers)
    }

    pub(crate) fn item(&mut self) -> usize {
        self.not_uniform(8_191, 7_911, 1, self.scale.items)
    }

    /// The number of a last name; there are as many as customers, if that is below a thousand.
    pub(crate) fn last_name(&mut self) -> i64 {
        self.not_uniform(255, 223, 0, self.scale.customers.min(1_000) - 1) as i64
    }

    /// NURand of the specification (2.1.6).
    fn not_uniform(&mut self, a: usize, c: usize, first: usize, last: usize) -> usize {
        let dice = self.between(0, a) | self.between(first, last);
        (dice + c) % (last - first + 1) + first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_stay_within_their_bounds_and_half_of_a_skew_is_hot() {
        for warehouses in [1, 2, 7, 40] {
            let scale = Scale { warehouses, customers: 100, items: 50 };
            let mut inputs = Inputs::new(scale, Access::Skewed, 3);
            let mut homes = std::collections::BTreeMap::new();
            for _ in 0..2_000 {
                let (w_id, d_id) = inputs.home();
                assert!((1..=warehouses).contains(&w_id) && (1..=10).contains(&d_id));
                *homes.entry((w_id, d_id)).or_insert(0) += 1;
                let other = inputs.other_warehouse(w_id);
                assert!((1..=warehouses).contains(&other) && (warehouses == 1 || other != w_id));
                assert!((1..=100).contains(&inputs.customer()) && (1..=50).contains(&inputs.item()));
                assert!((0..100).contains(&inputs.last_name()));
            }
            let mut counts: Vec<i32> = homes.into_values().collect();
            counts.sort_unstable();
            assert!(counts.iter().rev().take(5).sum::<i32>() > 950, "{counts:?}");
        }
    }
}
