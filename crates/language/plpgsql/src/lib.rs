//! PL/pgSQL, the language of contracts, in PostgreSQL 15's dialect.
//!
//! ```text
//! text ──parse──▶ ast::Body ──compile──▶ CompiledProcedure ──call──▶ OUT and INOUT values, or a function's result
//!                               │ binds expressions and statements        │ runs on an Execution
//! ```
//!
//! A contract that is accepted gives the same result on a real PostgreSQL; what cannot is refused when the procedure
//! is created, by name, with SQLSTATE 0A000.
//!
//! # Calls
//!
//! - A call of a function is an expression or a relation, and runs in the execution of its statement. The statement
//!   goes on seeing the rows that it saw when it began; a function sees what those before it wrote.
//! - What may write is run for every row and never pushed into a scan. It makes a transaction of a SELECT
//!   (`sql::Library` tells).
//! - A polymorphic function is compiled for every set of types that it is called with, and kept. A call pays steps by
//!   the length of its body, because nobody can tell when a node compiles it again. Who is called with which types is
//!   known when a statement is bound, and so is everything that follows from it: policies, and whether it may write.
//!
//! # Checks and texts
//!
//! - Bodies are checked when they are created. What a name stands for is looked for when its statement runs, as by PostgreSQL
//!   (from execution version 9 on); the creation warns. What else PostgreSQL finds when the routine runs (RETURN QUERY of other
//!   columns) is found when it runs.
//! - `CREATE FUNCTION … SET check_function_bodies TO off` creates a routine whose body names what comes later. The
//!   gateway puts that clause behind the statement where the session has the setting, as `pg_dump` sets it: a
//!   transaction says itself what it depends on.
//! - EXECUTE binds its text through the library's cache of scripts. Steps are charged by the text's length each time,
//!   because caches differ between nodes. The protocol `graph` refuses a computed text, and calls of procedures with
//!   an endorsement policy of their own inside of it.
//!
//! # Values and messages
//!
//! - A cursor's rows are computed and registered as read when it is opened; FETCH and MOVE read nothing. Behind its
//!   columns stands the primary key of the table whose rows they are, so WHERE CURRENT OF is a command by key.
//!   Cursors belong to the execution, travel between the statements of a transaction block, and are closed with a
//!   block that is undone.
//! - A record has slots of its own for every set of columns that it is assigned (`records`), so names stay settled
//!   when the program is compiled. If compiling finds a record of which only running tells the columns, it begins
//!   anew with that known (`late`).
//! - RAISE of INFO, NOTICE and WARNING goes into the result of its statement, and so into the receipt: at most 100
//!   messages and 16 KiB. A transaction that ends with an error tells the error only.

mod analysis;
mod coercion;
mod compile;
mod explain;
mod footprint;
mod fuse;
mod hoist;
mod late;
mod late_records;
mod position;
mod program;
mod records;
mod run;
mod shape;
mod target;
mod variables;

pub use compile::trigger::{check_trigger_function, compile_trigger};
pub use compile::{CompileOptions, compile};
pub use explain::explain;
pub use footprint::footprint;
pub use program::CompiledProcedure;
pub use run::call;
