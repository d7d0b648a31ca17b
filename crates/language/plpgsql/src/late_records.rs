//! Which records of a program are told late: compiling finds that out, and begins again.

use crate::program::CompiledProcedure;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use types::SqlError;

/// Records of one program that are found to be such, one after the other.
const LATE_RECORDS_MAX: usize = 32;

/// Which records of a program are told late: by number, in the order of their declarations.
#[derive(Clone, Default)]
pub(crate) struct LateRecords {
    known: Rc<BTreeSet<usize>>,
    /// One that cannot be compiled in any other way.
    found: Rc<Cell<Option<usize>>>,
}

impl LateRecords {
    /// Compiles a program: with all records known as far as that goes, and then again with those told late of which it has turned
    /// out that only running tells their columns.
    ///
    /// # Errors
    /// What is wrong with the program.
    pub fn find(
        compile: impl Fn(LateRecords) -> Result<CompiledProcedure, SqlError>,
    ) -> Result<CompiledProcedure, SqlError> {
        let mut known = BTreeSet::new();
        loop {
            let records = LateRecords { known: Rc::new(known.clone()), found: Rc::default() };
            let compiled = compile(records.clone());
            match records.found.get() {
                Some(record) if known.len() < LATE_RECORDS_MAX && known.insert(record) => {}
                _ => return compiled,
            }
        }
    }

    /// Whether this record is told late.
    pub fn has(&self, record: usize) -> bool {
        self.known.contains(&record)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Only running tells the columns of this one.
    pub fn note(&self, record: usize) {
        self.found.set(Some(record));
    }
}
