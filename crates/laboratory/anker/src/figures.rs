//! The tables and figures of chapter 2 that measure something: how they are called on the command line and in tables.

/// A table or figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The parameter that varies across the columns of its table.
    pub(crate) across: &'static str,
}

/// All of them, in the order of their records.
pub(crate) const FIGURES: [Figure; 9] = [
    figure("table-2-1", "creating a snapshot", "columns"),
    figure("figure-2-4", "snapshots and writes as more pages are modified", "modified_pages"),
    figure("figure-2-5", "scanning versioned tables", "versioned_percent"),
    figure("figure-2-6", "a snapshot of all columns of a table", "table"),
    figure("figure-2-8", "snapshots and latency of questions beside transactions", "question"),
    figure("figure-2-10", "streams of transactions and latency of questions", "threads"),
    figure("figure-2-11", "streams of questions and throughput", "streams"),
    figure("table-2-2", "warehouses and throughput", "warehouses"),
    figure("figure-2-9", "throughput of transactions beside questions", "access"),
];

const fn figure(name: &'static str, title: &'static str, across: &'static str) -> Figure {
    Figure { name, title, across }
}

/// The one of that name.
pub(crate) fn named(name: &str) -> Option<Figure> {
    FIGURES.into_iter().find(|figure| figure.name == name)
}

/// All names.
pub(crate) fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|figure| figure.name).collect()
}
