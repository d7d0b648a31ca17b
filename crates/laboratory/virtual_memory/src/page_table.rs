//! Which page of the file stands at which page of a rewired area, and how many hold each.

/// A run of pages that lie one behind the other in the file as well: one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) page: usize,
    pub(crate) file_page: usize,
    pub(crate) pages: usize,
}

/// The pages of an area and of its snapshots.
#[derive(Debug)]
pub(crate) struct PageTable {
    /// By page of the area.
    file_pages: Vec<u32>,
    /// By page of the file: the area, if it has the page, and the snapshots that have it.
    holders: Vec<u32>,
    /// Pages of the file that nobody holds.
    free: Vec<u32>,
}

impl PageTable {
    /// Every page of the area stands at its own place in the file.
    pub(crate) fn new(pages: u32) -> PageTable {
        PageTable { file_pages: (0..pages).collect(), holders: vec![1; pages as usize], free: Vec::new() }
    }

    /// Whether a snapshot has the page, too.
    pub(crate) fn is_shared(&self, page: usize) -> bool {
        self.holders[self.file_pages[page] as usize] > 1
    }

    /// A page of the file for a copy, and whether the file has to grow for it. Nobody holds it before [`PageTable::replace`].
    pub(crate) fn unused(&mut self) -> (u32, bool) {
        match self.free.last() {
            Some(page) => (*page, false),
            None => (self.holders.len() as u32, true),
        }
    }

    /// The area has another page of the file from now on: the one that [`PageTable::unused`] has named.
    pub(crate) fn replace(&mut self, page: usize, file_page: u32) {
        if self.free.last() == Some(&file_page) {
            self.free.pop();
        } else {
            assert_eq!(self.holders.len(), file_page as usize, "the page is the one that was named");
            self.holders.push(0);
        }
        let before = std::mem::replace(&mut self.file_pages[page], file_page);
        self.holders[file_page as usize] = 1;
        self.release(&[before]);
    }

    /// A snapshot holds the first pages.
    pub(crate) fn hold(&mut self, pages: usize) -> Vec<u32> {
        let held = self.file_pages[..pages].to_vec();
        held.iter().for_each(|page| self.holders[*page as usize] += 1);
        held
    }

    /// Somebody does not hold pages of the file any more.
    pub(crate) fn release(&mut self, file_pages: &[u32]) {
        for page in file_pages {
            let holders = &mut self.holders[*page as usize];
            assert!(*holders > 0, "a page is released by those who hold it");
            *holders -= 1;
            if *holders == 0 {
                self.free.push(*page);
            }
        }
    }

    /// The mappings that the first pages need.
    pub(crate) fn runs(&self, pages: usize) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (page, file_page) in self.file_pages[..pages].iter().enumerate() {
            let file_page = *file_page as usize;
            match runs.last_mut() {
                Some(run) if run.file_page + run.pages == file_page => run.pages += 1,
                _ => runs.push(Run { page, file_page, pages: 1 }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_file_are_used_again_when_nobody_holds_them() {
        let mut table = PageTable::new(4);
        let held = table.hold(4);
        assert!(table.is_shared(2));
        let (copy, grows) = table.unused();
        assert_eq!((copy, grows), (4, true));
        table.replace(2, copy);
        assert!(!table.is_shared(2));
        let runs: Vec<_> = table.runs(4).iter().map(|run| (run.page, run.file_page, run.pages)).collect();
        assert_eq!(runs, [(0, 0, 2), (2, 4, 1), (3, 3, 1)]);
        table.release(&held);
        assert!(!table.is_shared(0));
        assert_eq!(table.unused(), (2, false));
    }
}
