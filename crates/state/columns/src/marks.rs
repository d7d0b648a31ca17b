//! A mark for each of many positions, as bits.

/// Positions that are marked. Those behind the last word are not.
#[derive(Default)]
pub(crate) struct Marks {
    words: Vec<u64>,
    count: usize,
}

impl Marks {
    /// Whether a position is marked.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Marks a position.
    pub(crate) fn add(&mut self, at: usize) {
        if self.words.len() <= at / 64 {
            self.words.resize(at / 64 + 1, 0);
        }
        let word = &mut self.words[at / 64];
        self.count += usize::from(*word >> (at % 64) & 1 == 0);
        *word |= 1 << (at % 64);
    }

    /// Takes a mark away.
    pub(crate) fn remove(&mut self, at: usize) {
        if self.has(at) {
            self.words[at / 64] &= !(1 << (at % 64));
            self.count -= 1;
        }
    }

    /// How many positions are marked.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_and_go() {
        let mut marks = Marks::default();
        assert!(!marks.has(700));
        [3, 64, 700, 64].into_iter().for_each(|at| marks.add(at));
        marks.remove(3);
        marks.remove(9_000);
        assert_eq!(marks.count(), 2);
        let found: Vec<usize> = (0..1_000).filter(|at| marks.has(*at)).collect();
        assert_eq!(found, [64, 700]);
    }
}
