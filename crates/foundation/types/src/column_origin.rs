/// The column of a table or view that a column of a result is, unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnOrigin {
    /// The table or view, by its name in the catalog.
    pub relation: String,
    /// Which of its columns, from 0.
    pub column: usize,
}
