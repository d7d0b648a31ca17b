//! Minima and maxima over edges.

use super::scans::Writers;

/// A transaction as edges count it: its position in the batch. Transactions of the batch before have negative
/// numbers, so that they come first.
pub(super) type Number = i32;

/// The two smallest of a set of transactions: enough to leave out one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smallest(Number, Number);

impl Smallest {
    pub(super) const NONE: Smallest = Smallest(Number::MAX, Number::MAX);

    pub(super) fn add(&mut self, number: Number) {
        if number < self.0 {
            *self = Smallest(number, self.0);
        } else if number != self.0 {
            self.1 = self.1.min(number);
        }
    }

    /// The smallest other than `number`; [`Number::MAX`] if there is none.
    pub(super) fn without(self, number: Number) -> Number {
        if self.0 == number { self.1 } else { self.0 }
    }
}

/// The two largest of a set of transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Largest(Number, Number);

impl Largest {
    pub(super) const NONE: Largest = Largest(Number::MIN, Number::MIN);

    pub(super) fn add(&mut self, number: Number) {
        if number > self.0 {
            *self = Largest(number, self.0);
        } else if number != self.0 {
            self.1 = self.1.max(number);
        }
    }

    /// The largest other than `number`; [`Number::MIN`] if there is none.
    pub(super) fn without(self, number: Number) -> Number {
        if self.0 == number { self.1 } else { self.0 }
    }
}

impl Default for Largest {
    fn default() -> Largest {
        Largest::NONE
    }
}

/// What validation knows of every transaction of a batch.
#[derive(Debug)]
pub(super) struct Edges {
    /// The smallest of T + 1 and every u with T → u.
    min_out: Vec<Number>,
    /// The largest t with t → T; [`Number::MIN`] if there is none.
    max_in: Vec<Number>,
}

impl Edges {
    /// No edges among so many transactions.
    pub(super) fn new(transactions: usize) -> Edges {
        Edges { min_out: (1..=transactions as Number).collect(), max_in: vec![Number::MIN; transactions] }
    }

    /// `from` read what `to` wrote.
    pub(super) fn lower_min_out(&mut self, from: Number, to: Number) {
        let min_out = &mut self.min_out[from as usize];
        *min_out = to.min(*min_out);
    }

    /// `from` read what `to` wrote.
    pub(super) fn raise_max_in(&mut self, to: Number, from: Number) {
        let max_in = &mut self.max_in[to as usize];
        *max_in = from.max(*max_in);
    }

    /// The transaction is rejected whatever its edges are.
    pub(super) fn reject(&mut self, number: Number) {
        self.min_out[number as usize] = Number::MIN;
    }

    /// Every transaction is rejected.
    pub(super) fn reject_all(&mut self) {
        self.min_out.fill(Number::MIN);
    }

    /// `from` read what transactions of the batch before then wrote.
    pub(super) fn add_unseen(&mut self, from: Number, unseen: Writers) {
        self.lower_min_out(from, unseen.first);
        if unseen.backward {
            self.reject(from);
        }
    }

    pub(super) fn min_out(&self, number: u32) -> Number {
        self.min_out[number as usize]
    }

    /// The largest number with an edge to this one.
    #[cfg(test)]
    pub(super) fn max_in(&self, number: u32) -> Number {
        self.max_in[number as usize]
    }

    /// The backward dangerous structure: T must come before a smaller number, and after one that is not smaller than
    /// that (HarmonyBC, rule 1).
    pub(super) fn is_dangerous(&self, number: u32) -> bool {
        let min_out = self.min_out[number as usize];
        min_out < number as Number && min_out <= self.max_in[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_extremes_are_enough_to_leave_one_out(numbers in prop::collection::vec(-4..8i32, 0..9), out in -4..8i32) {
            let (mut smallest, mut largest) = (Smallest::NONE, Largest::NONE);
            for number in &numbers {
                smallest.add(*number);
                largest.add(*number);
            }
            let others = || numbers.iter().copied().filter(|number| *number != out);
            prop_assert_eq!(smallest.without(out), others().min().unwrap_or(Number::MAX));
            prop_assert_eq!(largest.without(out), others().max().unwrap_or(Number::MIN));
        }
    }
}
