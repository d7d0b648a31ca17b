//! Entente: a SQL database that organisations which do not trust one another run together.
fn main() {}
