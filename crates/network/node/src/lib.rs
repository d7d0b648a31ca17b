//! One organisation's node: the pipeline from ordered block to recorded receipt, recovery, and what the gateway asks.
//!
//! ```text
//!             ┌────────────────────────── Node ──────────────────────────┐
//!  clients ──▶│ gateway ──▶ Database ──▶ Ordering ──▶ other nodes      │
//!             │    ▲                          │ final blocks             │
//!             │    │ receipts                 ▼                          │
//!             │ answer ◀── record ◀──── execute ◀── verify    (threads)  │
//!             │    ▲       ledger       engine      verifier             │
//!             │    └─────── attest ◀───────┘                             │
//!             │               ▲ outcomes of the other nodes              │
//!             └──────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything between `verify` and `record` is synchronous and deterministic; a stage is a file in `pipeline`, with
//! the queue it reads and the queue it fills. Async code lives in ordering and gateway only.

mod access;
mod admission;
mod ask;
mod attesting;
mod certified_state;
mod charters;
mod checkpoints;
mod convert_store;
mod core;
mod database;
pub mod doctor;
mod endorsing;
mod error;
mod faults;
mod files;
mod folder;
pub mod founding;
mod fragments;
mod history;
mod holders;
pub mod joining;
mod kafka;
mod key_watch;
mod live;
mod local;
mod metrics;
mod node;
mod own_database;
mod own_execution;
mod own_judgement;
mod past;
mod pipeline;
mod present;
mod private;
mod process_memory;
mod proving;
mod proving_rows;
mod pruning;
mod published;
mod query_files;
mod rate_limit;
mod receipts;
mod recovery;
mod redaction;
mod reload;
mod restored_state;
mod row_history;
mod row_locks;
mod schema_counts;
mod scrub;
#[cfg(feature = "simulation")]
pub mod simulation;
mod store_choice;
mod store_failure;
mod submission;
mod traces;
mod twin;

pub use access::PASSWORDS_FILE;
pub use certified_state::CertifiedState;
pub use convert_store::{ConvertedStore, convert_store};
pub use error::NodeError;
pub use faults::{Defence, Faults};
pub use folder::{Join, NodeConfig, NodeFolder};
pub use founding::{Network, NetworkOptions};
pub use gateway::{Passwords, Verifier as PasswordVerifier};
pub use holders::{HolderConfig, HolderFolder, HolderNode, HolderOptions, Placed, place, placement};
pub use kafka::KafkaConfig;
pub use node::{Node, NodeOptions, StartReport};
pub use own_database::{Agreed, KeepOwnDatabase, OwnDatabaseConfig};
pub use own_execution::OwnExecution;
pub use own_judgement::JudgeScripts;
pub use private::{FolderParts, ReplayedSchema, SchemaReplay};
pub use proving::receipt_proof;
pub use pruning::{PAYLOAD_BLOCKS_MIN, PrunedFolder, prune_folder};
pub use reload::Reloaded;
pub use restored_state::{StateOfBackup, put_state};
pub use store_choice::{MEMORY_MEGABYTES, MEMORY_MEGABYTES_MIN, StoreChoice, StoreKind};
