//! Lists of readers that share their ends: a class of columns that is split is split with its list at no cost.

const END: u32 = u32::MAX;

/// Names a list; a copy names the same readers, and what is added to one of them is not in the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReaderList(u32);

impl Default for ReaderList {
    fn default() -> ReaderList {
        ReaderList(END)
    }
}

impl ReaderList {
    pub(super) fn is_empty(self) -> bool {
        self.0 == END
    }
}

#[derive(Clone, Copy)]
struct Entry {
    reader: u32,
    next: u32,
}

/// The entries of all lists.
#[derive(Default)]
pub(super) struct ReaderLists(Vec<Entry>);

impl ReaderLists {
    /// Puts a reader at the head, unless it is there already. The lists of a batch are filled by number, so that no
    /// reader is twice in one of them.
    pub(super) fn add(&mut self, list: &mut ReaderList, reader: u32) {
        if self.0.get(list.0 as usize).is_none_or(|head| head.reader != reader) {
            self.0.push(Entry { reader, next: list.0 });
            list.0 = self.0.len() as u32 - 1;
        }
    }

    /// The readers, descending.
    pub(super) fn iter(&self, list: ReaderList) -> impl Iterator<Item = u32> + '_ {
        let mut at = list.0;
        std::iter::from_fn(move || {
            let entry = self.0.get(at as usize)?;
            at = entry.next;
            Some(entry.reader)
        })
    }

    /// Whether one of those who are `kept` is `wanted`. Who is met before and is not kept is taken out of every list
    /// that shares the place, so that all calls together are linear in the entries if nearly everybody is wanted.
    pub(super) fn retain_until(
        &mut self,
        list: ReaderList,
        kept: impl Fn(u32) -> bool,
        wanted: impl Fn(u32) -> bool,
    ) -> bool {
        let mut last_kept = END;
        let mut at = list.0;
        while let Some(Entry { reader, next }) = self.0.get(at as usize).copied() {
            if kept(reader) {
                if wanted(reader) {
                    return true;
                }
                last_kept = at;
            } else if let Some(before) = self.0.get_mut(last_kept as usize) {
                before.next = next;
            } else if let Some(following) = self.0.get(next as usize).copied() {
                // The list is known by its head, so the head becomes what follows it.
                self.0[at as usize] = following;
                continue;
            }
            at = next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lists: &ReaderLists, list: ReaderList) -> Vec<u32> {
        lists.iter(list).collect()
    }

    #[test]
    fn lists_share_ends_and_nothing_else() {
        let mut lists = ReaderLists::default();
        let mut one = ReaderList::default();
        lists.add(&mut one, 1);
        lists.add(&mut one, 1);
        lists.add(&mut one, 2);
        let mut two = one;
        lists.add(&mut one, 3);
        lists.add(&mut two, 4);
        assert_eq!((all(&lists, one), all(&lists, two)), (vec![3, 2, 1], vec![4, 2, 1]));
        assert!(ReaderList::default().is_empty() && !one.is_empty());
    }

    #[test]
    fn who_is_not_kept_disappears_from_every_list_that_shares_the_place() {
        let mut lists = ReaderLists::default();
        let mut one = ReaderList::default();
        for reader in 0..6 {
            lists.add(&mut one, reader);
        }
        let mut two = one;
        lists.add(&mut two, 6);
        let even = |reader: u32| reader.is_multiple_of(2);
        assert!(lists.retain_until(one, even, |reader| reader == 2));
        assert_eq!(all(&lists, one), [4, 2, 1, 0]);
        assert!(!lists.retain_until(two, even, |_| false));
        assert_eq!((all(&lists, one), all(&lists, two)), (vec![4, 2, 0], vec![6, 4, 2, 0]));
        assert!(!lists.retain_until(one, |_| false, |_| true));
    }
}
