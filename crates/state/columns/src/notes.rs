//! Keys of a table that batches have changed since its columns were brought up.

use state::Version;
use types::Key;

/// So many keys are always noted.
const KEYS_MIN: usize = 100_000;

/// The keys of one table by batch.
pub(crate) struct Notes {
    /// They are complete for batches behind this version.
    since: Version,
    batches: Vec<(Version, Vec<Key>)>,
    count: usize,
    /// There were too many: nothing is noted until somebody asks.
    is_full: bool,
}

/// What changed up to a version.
pub(crate) enum Changed {
    /// Nobody knows: some of it was not noted.
    Unknown,
    /// These keys, by batch.
    Keys(Vec<(Version, Vec<Key>)>),
}

/// From so many changed keys on it is better to read a table with so many rows again.
pub(crate) fn are_too_many(keys: usize, rows: usize) -> bool {
    keys > KEYS_MIN.max(rows / 2)
}

impl Notes {
    /// Begins behind this version.
    pub(crate) fn since(since: Version) -> Notes {
        Notes { since, batches: Vec::new(), count: 0, is_full: false }
    }

    /// Whether there were too many.
    pub(crate) fn are_full(&self) -> bool {
        self.is_full
    }

    /// Adds those of one batch, by key. `rows`: how many the table has. Gives back what was noted where it is too much.
    pub(crate) fn add(
        &mut self,
        version: Version,
        keys: impl Iterator<Item = Key>,
        rows: usize,
    ) -> Vec<(Version, Vec<Key>)> {
        if self.is_full {
            return Vec::new();
        }
        let keys: Vec<Key> = keys.collect();
        if !keys.is_empty() {
            self.count += keys.len();
            self.batches.push((version, keys));
        }
        if !are_too_many(self.count, rows) {
            return Vec::new();
        }
        (self.count, self.is_full) = (0, true);
        std::mem::take(&mut self.batches)
    }

    /// Takes out what changed behind `from` and up to `to`, and forgets what changed before.
    pub(crate) fn take(&mut self, from: Version, to: Version) -> Changed {
        let (taken, rest) =
            std::mem::take(&mut self.batches).into_iter().partition(|(version, _)| *version <= to);
        self.batches = rest;
        self.count = self.batches.iter().map(|(_, keys)| keys.len()).sum();
        let is_complete = !self.is_full && from >= self.since;
        self.since = self.since.max(to);
        if !is_complete {
            return Changed::Unknown;
        }
        let taken: Vec<(Version, Vec<Key>)> = taken;
        Changed::Keys(taken.into_iter().filter(|(version, _)| *version > from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(height: u64) -> Version {
        Version::after_batch(height, 0)
    }

    fn keys(count: u32) -> impl Iterator<Item = Key> {
        (0..count).map(|number| Key::from_bytes(&number.to_be_bytes()))
    }

    fn versions(changed: Changed) -> Option<Vec<u64>> {
        match changed {
            Changed::Unknown => None,
            Changed::Keys(batches) => Some(batches.iter().map(|(version, _)| version.height()).collect()),
        }
    }

    #[test]
    fn what_is_behind_a_question_stays_noted() {
        let mut notes = Notes::since(version(2));
        for height in [3, 4, 6, 9] {
            assert!(notes.add(version(height), keys(2), 10).is_empty());
        }
        assert_eq!(versions(notes.take(version(1), version(2))), None, "batch 2 was not noted");
        assert_eq!(versions(notes.take(version(3), version(7))), Some(vec![4, 6]));
        assert_eq!(versions(notes.take(version(6), version(7))), None, "it was taken");
        assert_eq!(versions(notes.take(version(7), version(8))), Some(vec![]));
        assert_eq!(versions(notes.take(version(8), version(9))), Some(vec![9]));
    }

    #[test]
    fn too_many_are_thrown_away() {
        let mut notes = Notes::since(version(0));
        assert!(notes.add(version(1), keys(KEYS_MIN as u32), 10).is_empty());
        assert_eq!(notes.add(version(2), keys(1), 10).len(), 2);
        assert!(notes.are_full());
        assert!(notes.add(version(3), keys(1), 10).is_empty());
        assert_eq!(versions(notes.take(version(2), version(3))), None);
        assert!(!are_too_many(KEYS_MIN + 1, 2 * KEYS_MIN + 2));
    }
}
