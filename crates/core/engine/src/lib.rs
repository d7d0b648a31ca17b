//! The deterministic core: ordered blocks in, receipts and a state digest out, the same bytes on every node and for
//! any number of threads.
//!
//! ```text
//!  Block ──Verifier──▶ VerifiedBlock ──Engine::execute──▶ ExecutedBlock
//!          decode,       one verdict      admit ids, cut into batches,
//!          signatures    per transaction  protocol, apply, digest, receipts
//!
//!  inside of execute, batch by batch:
//!    poll protocol ─▶ apply ─▶ outcomes ──▶ state digest, receipts root
//!      ∥ judge the next ids       └ a piece of receipts that is complete is hashed in the background
//! ```
//!
//! Where transactions were executed before they were ordered, blocks that wait can be handed over before their turn
//! ([`Engine::foresee`]). Where each organisation's own database executes scripts, the engine does everything else and puts what
//! they came to into the state ([`ExecuteScripts`]). Organisations may have to agree to a script there before it is ordered
//! ([`EndorsementBasis::proposed_to`]). Where an organisation's nodes share its schemas, transactions run where their rows are
//! ([`SplitRuns`]). A schema with members has an engine of its own at each of them ([`SchemaEngine`]).
//!
//! The engine is synchronous, reads no clock but the block's, except to measure, and does no I/O; parallel work runs on the current rayon
//! pool. The node drives it behind ordering, `entente bench engine` drives it alone, simulations drive it inline.

mod admission;
mod agreement;
mod block_run;
mod elsewhere;
mod endorsement;
mod engine;
mod foresight;
mod held;
mod outcomes;
mod parts;
mod row_history;
mod schema_engine;
mod schema_moves;
mod splitting;
mod submission;
mod verify;

pub use agreement::ProposedScript;
pub use elsewhere::{BlockScripts, ExecuteScripts, RanScripts};
pub use endorsement::EndorsementBasis;
pub use engine::{BlockStatistics, Engine, EngineError, ExecutedBlock, StageTimes};
pub use row_history::{RowChanged, RowHistory};
pub use schema_engine::{ExecutedSchemaBlock, SchemaBlock, SchemaEngine, SchemaError, SchemaPart};
pub use schema_moves::Between;
pub use splitting::{BatchOfRun, Elsewhere, RunOfBatches, Split, SplitRuns};
pub use verify::{Judged, VerifiedBlock, VerifiedEndorsement, VerifiedTransaction, Verifier};
