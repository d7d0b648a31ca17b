//! pCP, the privacy-preserving atomic commit of TNG (Gorenflo, *Towards a New Generation of Permissioned Blockchain Systems*, sections
//! 5.3.2 to 5.5), as printed and corrected (`oracle/shards/PROTOCOLS.md`, section 2; the model is `pcp.py` beside it).
//!
//! A transaction is a list of hashes in a ledger. Each hash belongs to one shard, which knows the pre-image, or to nobody. A shard knows
//! its own part, the shards that its part depends on, and the number of hashes.
//!
//! - [`Shard`]: validates its parts, asks those that they depend on, round by round, and discards as soon as one says so.
//! - [`Rules`]: what the thesis prints, and what holds; [`VARIANTS`] are the ways between them, by the model's names.
//! - [`Case`], [`Schedule`]: random transactions, an order of events that follows from a seed, and whether all ended as in a serial run.
//! - [`attack_schemas`]: the attack that breaks pCP, on schemas with members, where it does not.
//! - [`bench`](bench()): the figures of section 5.5, with the thesis's numbers beside ours.
//!
//! ```text
//!  ledger ─▶ receive ─▶ validate: own part ─▶ round 1, 2, … n − δ + 1: ask each dependency ─▶ all final, or a "discard": decided
//!                                                    ▲    └─▶ "what do you believe, in round r?"
//!                            (belief, final) of round r ◀── once the called shard is in round r, or decided
//! ```
//!
//! The protocol holds where no shard lies: a shard that tells one caller "commit" and another one "discard" tears a transaction apart.
//! That is why Entente's [schemas with members](concurrency::parts) let votes count where they stand in the ledger, and not where they arrive.
//!
//! ```
//! use pcp::{Case, CasePart, CaseTransaction, Schedule, ShardId, VARIANTS};
//!
//! // Shard 0 depends on shard 1, which finds its part invalid.
//! let part = |on: &[u32], is_endorsed| CasePart {
//!     depends_on: on.iter().copied().map(ShardId).collect(),
//!     is_endorsed,
//!     ..CasePart::default()
//! };
//! let parts = [(ShardId(0), part(&[1], true)), (ShardId(1), part(&[], false))].into();
//! let case = Case { shards: 2, transactions: vec![CaseTransaction { hashes: 2, parts }] };
//! let mut schedule = Schedule::new(&case, &VARIANTS[0], 1);
//! schedule.run().expect("the corrected rules hold");
//! assert_eq!(schedule.shards()[0].decision(0), Some(false));
//! ```

mod arguments;
mod case;
mod endorsing;
mod error;
mod experiments;
mod lying;
mod message;
mod part;
mod record;
mod rules;
mod schedule;
mod shard;
mod timed;

pub use arguments::PcpArguments;
pub use case::{Case, CasePart, CaseTransaction, Truth};
pub use error::PcpError;
pub use lying::{Attacked, attack_schemas};
pub use message::{Answer, Message, Number, Request, Secret, ShardId};
pub use part::{HASHES_MAX, OwnPart};
pub use record::{PcpRecord, pcp_table};
pub use rules::{Absent, Rounds, Rules, VARIANTS, Variant};
pub use schedule::{Schedule, Violation};
pub use shard::{Shard, WAITING_REQUESTS_MAX};

/// Measures and counts. `progress` is told what is being done.
///
/// # Errors
/// Bad options; an honest schema that is told to commit what it has not prepared.
pub fn bench(arguments: &PcpArguments, progress: &mut dyn FnMut(&str)) -> Result<Vec<PcpRecord>, PcpError> {
    experiments::run(&arguments.plan()?, progress)
}
