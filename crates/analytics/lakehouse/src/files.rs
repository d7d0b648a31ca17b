//! Which data files a table has: each has the rows of groups of the state's tree that follow one another, and says in its name
//! which. A group that has not changed has the same leaf, so that a file of such groups stays, whoever wrote it and when.

use crypto::{Digest, merkle_root};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows of a file, about.
pub(crate) const FILE_ROWS: u64 = 1 << 17;
/// Files with fewer are written together with a neighbour that is written anyway.
const FEW_ROWS: u64 = FILE_ROWS / 4;
const END: &str = ".parquet";
/// Digits of a digest that say with which group a file begins.
const FIRST_DIGITS: usize = 16;

/// The groups of a table: how many rows each has, and its leaf.
pub(crate) type Groups<'g> = &'g [(u64, Digest)];

/// What the name of a data file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileName {
    /// Root over the leaves of its groups.
    root: Digest,
    /// How many groups it has.
    groups: usize,
    /// What the first group's leaf begins with.
    first: String,
    /// Which attempt to export has written it.
    attempt: String,
}

impl FileName {
    /// Of a file that is about to be written; `groups`: at least one.
    pub(crate) fn new(groups: Groups<'_>, attempt: &str) -> FileName {
        let leaves: Vec<Digest> = groups.iter().map(|(_, leaf)| *leaf).collect();
        let first = groups.first().map(|(_, leaf)| first_digits(leaf)).unwrap_or_default();
        FileName { root: merkle_root(&leaves), groups: groups.len(), first, attempt: attempt.to_string() }
    }

    pub(crate) fn to_text(&self) -> String {
        format!("{}-{}-{}-{}{END}", self.first, self.groups, self.root, self.attempt)
    }

    /// `None`: no export has made this name.
    pub(crate) fn read(name: &str) -> Option<FileName> {
        let mut parts = name.strip_suffix(END)?.splitn(4, '-');
        let (first, groups) = (parts.next()?.to_string(), parts.next()?.parse().ok()?);
        let (root, attempt) = (parts.next()?.parse().ok()?, parts.next()?.to_string());
        Some(FileName { root, groups, first, attempt })
    }
}

fn first_digits(leaf: &Digest) -> String {
    leaf.to_string().chars().take(FIRST_DIGITS).collect()
}

/// What becomes of some groups that follow one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Planned {
    /// A file has them: which one of those that there are, and how many groups.
    Kept { file: usize, groups: Range<usize> },
    /// They are written, in one file or in several.
    Written { groups: Range<usize> },
}

impl Planned {
    fn groups(&self) -> Range<usize> {
        match self {
            Planned::Kept { groups, .. } | Planned::Written { groups } => groups.clone(),
        }
    }

    fn rows(&self, groups: Groups<'_>) -> u64 {
        groups[self.groups()].iter().map(|(rows, _)| rows).sum()
    }
}

/// Which files stay and what is written, so that the table has exactly these groups. `files`: names of those that there are.
pub(crate) fn plan(groups: Groups<'_>, files: &[Option<FileName>]) -> Vec<Planned> {
    let mut beginning: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        if let Some(file) = file {
            beginning.entry(&file.first).or_default().push(number);
        }
    }
    let mut planned: Vec<Planned> = Vec::new();
    let mut at = 0;
    while at < groups.len() {
        let first = first_digits(&groups[at].1);
        let mut candidates = beginning.get(first.as_str()).into_iter().flatten();
        let kept = candidates.find_map(|number| {
            let file = files[*number].as_ref()?;
            let end = at.checked_add(file.groups).filter(|end| *end > at && *end <= groups.len())?;
            let leaves: Vec<Digest> = groups[at..end].iter().map(|(_, leaf)| *leaf).collect();
            (merkle_root(&leaves) == file.root).then_some((*number, end))
        });
        match (kept, planned.last_mut()) {
            (Some((file, end)), _) => {
                planned.push(Planned::Kept { file, groups: at..end });
                at = end;
            }
            (None, Some(Planned::Written { groups })) => {
                groups.end += 1;
                at += 1;
            }
            (None, _) => {
                planned.push(Planned::Written { groups: at..at + 1 });
                at += 1;
            }
        }
    }
    join_small(planned, groups)
}

/// Small files beside what is written are written with it, so that there are not ever more small ones.
fn join_small(planned: Vec<Planned>, groups: Groups<'_>) -> Vec<Planned> {
    let mut joined: Vec<Planned> = Vec::new();
    for next in planned {
        let Some(last) = joined.last_mut() else {
            joined.push(next);
            continue;
        };
        let both_kept = matches!((&*last, &next), (Planned::Kept { .. }, Planned::Kept { .. }));
        let is_small = last.rows(groups) < FEW_ROWS && next.rows(groups) < FEW_ROWS;
        let both_written = matches!((&*last, &next), (Planned::Written { .. }, Planned::Written { .. }));
        match both_written || (is_small && !both_kept) {
            true => *last = Planned::Written { groups: last.groups().start..next.groups().end },
            false => joined.push(next),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;

    fn groups(leaves: impl IntoIterator<Item = u64>, rows: u64) -> Vec<(u64, Digest)> {
        leaves.into_iter().map(|leaf| (rows, sha256(&[&leaf.to_le_bytes()]))).collect()
    }

    fn file(groups: Groups<'_>) -> Option<FileName> {
        FileName::read(&FileName::new(groups, "1-a").to_text())
    }

    /// The plan has every group once, in order.
    fn check(planned: &[Planned], groups: Groups<'_>) {
        let mut at = 0;
        for one in planned {
            assert_eq!(one.groups().start, at, "{planned:?}");
            at = one.groups().end;
        }
        assert_eq!(at, groups.len(), "{planned:?}");
    }

    #[test]
    fn a_name_comes_back_and_others_are_none() {
        let name = FileName::new(&groups([1, 2], 10), "17-00ff");
        assert_eq!(FileName::read(&name.to_text()), Some(name));
        for other in ["part-00000-c000.snappy.parquet", "a-1-b-c.parquet", "", "x.parquet"] {
            assert_eq!(FileName::read(other), None, "{other}");
        }
    }

    #[test]
    fn what_has_not_changed_stays_and_only_the_rest_is_written() {
        let before = groups(0..30, FILE_ROWS / 10);
        let files = [file(&before[..10]), file(&before[10..20]), file(&before[20..])];
        let kept = |file, groups| Planned::Kept { file, groups };
        assert_eq!(plan(&before, &files), [kept(0, 0..10), kept(1, 10..20), kept(2, 20..30)]);
        // One group has changed, and one has come behind the last.
        let mut after = before.clone();
        after[15] = groups([999], FILE_ROWS / 10)[0];
        after.extend(groups([1000], FILE_ROWS / 2));
        let planned = plan(&after, &files);
        check(&planned, &after);
        assert_eq!(planned[0], kept(0, 0..10));
        assert_eq!(planned[2], kept(2, 20..30));
        assert!(matches!(planned[1], Planned::Written { .. }) && planned.len() == 4, "{planned:?}");
    }

    #[test]
    fn groups_that_moved_are_found_where_they_are() {
        let before = groups(0..20, FILE_ROWS / 4);
        let files = [None, file(&before[10..20]), file(&before[..10])];
        let after: Vec<(u64, Digest)> = [groups([77], FILE_ROWS), before.clone()].concat();
        let planned = plan(&after, &files);
        check(&planned, &after);
        assert_eq!(
            planned[1..],
            [Planned::Kept { file: 2, groups: 1..11 }, Planned::Kept { file: 1, groups: 11..21 },]
        );
    }

    #[test]
    fn small_files_do_not_pile_up() {
        let mut files: Vec<Option<FileName>> = Vec::new();
        let mut table: Vec<(u64, Digest)> = Vec::new();
        for round in 0..200 {
            table.extend(groups([round], 100));
            let planned = plan(&table, &files);
            check(&planned, &table);
            files = planned.iter().map(|one| file(&table[one.groups()])).collect();
        }
        assert!(files.len() < 4, "{} files for 20,000 rows", files.len());
    }

    #[test]
    fn a_table_without_rows_has_no_files() {
        let before = groups(0..3, 5);
        assert_eq!(plan(&[], &[file(&before)]), []);
    }
}
