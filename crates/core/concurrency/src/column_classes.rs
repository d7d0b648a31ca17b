//! Something kept for every column of a row, in as few pieces as there are columns that nobody tells apart.

use smallvec::{SmallVec, smallvec};
use types::ColumnSet;

#[derive(Clone, Copy)]
struct Class<T> {
    columns: ColumnSet,
    value: T,
}

/// The classes are disjoint and cover every column: a row of which all transactions use the same columns has two of
/// them, however wide it is.
#[derive(Clone)]
pub(crate) struct ColumnClasses<T>(SmallVec<[Class<T>; 2]>);

impl<T: Copy> ColumnClasses<T> {
    /// The same for every column.
    pub(crate) fn new(value: T) -> ColumnClasses<T> {
        ColumnClasses(smallvec![Class { columns: ColumnSet::ALL, value }])
    }

    /// Visits classes that make up exactly `columns`, splitting those that are partly in it.
    pub(crate) fn for_each_in(&mut self, columns: ColumnSet, mut visit: impl FnMut(&mut T)) {
        for i in 0..self.0.len() {
            let class = self.0[i];
            if !class.columns.intersects(columns) {
                continue;
            }
            let rest = class.columns.without(columns);
            if !rest.is_empty() {
                self.0.push(Class { columns: rest, ..class });
                self.0[i].columns = class.columns & columns;
            }
            visit(&mut self.0[i].value);
        }
    }

    /// What is kept for columns of which some are in `columns`.
    pub(crate) fn values_in(&self, columns: ColumnSet) -> impl Iterator<Item = T> + '_ {
        self.0.iter().filter(move |class| class.columns.intersects(columns)).map(|class| class.value)
    }
}
