//! AnKerDB as its paper has it (Sharma, *Snapshots in data management*, chapter 2): one storage for transactions and analytics.
//!
//! - [`Engine`]: tables of columns. A [`Transaction`] reads the newest columns in place, keeps its writes to itself, and is validated by
//!   precision locking when it commits; what it replaces moves into version chains.
//! - [`Engine::ask`]: a [`Question`] of the state of one moment. [`Asked::answer`] answers it, while transactions go on.
//! - [`System`]: where that state comes from: five storages behind the trait [`ColumnStorage`], or copies of the process.
//! - [`bench`](bench()): the tables and figures of the chapter, with the paper's numbers beside ours.
//!
//! ```text
//!  transactions ──▶ newest columns + version chains ──(first touch: snapshot, takes the chains over)──▶ columns of a snapshot
//!                        │      ▲                                                                            ▲
//!                        └──────┘ commit: validate, write in place                      questions ───────────┘
//! ```
//!
//! ```
//! use anker::{Engine, Question, System, TableShape};
//!
//! let accounts = TableShape { name: "accounts", columns: &["id", "balance"], keys: 1, rows_max: 100 };
//! let engine = Engine::new(System::named("columns")?, &[accounts], 0)?;
//! let mut opens = engine.begin();
//! opens.insert(0, vec![1, 500], None)?;
//! opens.commit()?;
//!
//! let asked = engine.ask(&Question::Groups { table: 0, by: None, groups: 1, sums: vec![1], among: None })?;
//! let mut pays = engine.begin();
//! let balance = pays.read(0, 0, 1)?;
//! pays.write(0, 0, 1, balance - 200)?;
//! pays.commit()?;
//! assert_eq!(asked.answer()?.groups[0], [1, 500]);
//! # Ok::<(), anker::AnkerError>(())
//! ```

mod arguments;
mod clock;
mod column;
mod driver;
mod engine;
mod error;
mod experiments;
mod figures;
mod index;
mod predicate;
mod question;
mod record;
mod storage;
mod system;
mod table;
mod tpcc;
mod versions;

pub use arguments::AnkerArguments;
pub use engine::{Engine, Transaction};
pub use error::AnkerError;
pub use predicate::{Condition, Predicate, Rows};
pub use question::{Answer, Asked, FORK_SECONDS_MAX, GROUPS_MAX, Question};
pub use record::{AnkerRecord, Parameter, anker_table};
pub use storage::{BLOCK_ROWS, ColumnStorage, FrozenColumn};
pub use system::{Isolation, Storage, System};
pub use table::{COLUMNS_MAX, ROWS_MAX, TABLES_MAX, TableShape};

/// Measures. `progress` is told what is being done.
///
/// # Errors
/// Bad options; tables that are full; a consistency condition of TPC-C that does not hold; memory that cannot be had. Where the kernel
/// refuses to rewire, that is a result, with its reason in [`AnkerRecord`].
pub fn bench(
    arguments: &AnkerArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<AnkerRecord>, AnkerError> {
    experiments::run(&arguments.plan()?, progress)
}
