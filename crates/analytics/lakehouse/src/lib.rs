//! Tables of a ledger in a lakehouse: at certified checkpoints, as Parquet files with a Delta Lake log, so that Spark, DuckDB,
//! Trino and others read them without asking a node; with what proves every row.
//!
//! - [`NodeState`]: the newest certified checkpoint in a node's folder, whether the node runs or not: a [`CertifiedState`].
//! - [`Target`]: a folder or a prefix in a bucket.
//! - [`Exporter`]: writes such a checkpoint into a target: all tables, of which only what has changed is written.
//! - [`Continuous`]: does so again and again.
//! - [`verify_export`]: whether what is there is what a quorum has certified; needs the charter and nothing else.
//!
//! ```text
//!  node's folder ──NodeState──▶ CertifiedState ──Exporter──▶ Target ──▶ readers
//!                               rows, tree,                  schema/table/_delta_log/…    one Delta table each
//!                               certificate                  schema/table/….parquet       its rows
//!                                                            _entente/…                   heights, versions, proofs
//!                                                                └──verify_export──▶ right, or what is wrong
//! ```
//!
//! Each data file has the rows of groups of the state's tree. A group that has not changed has the same leaf at the next
//! checkpoint, so that files follow from leaves: which stay and which are written again is known without reading them.
//!
//! ```
//! use lakehouse::{Target, table_folder, verify_export};
//!
//! # async fn check(charter: types::Charter) -> Result<(), lakehouse::LakehouseError> {
//! let target = Target::open("/srv/lake")?;
//! let verified = verify_export(&target, &charter, None).await?;
//! println!("right behind block {}", verified.proof.certificate.statement.height);
//! # Ok(())
//! # }
//! assert_eq!(table_folder("sales.orders"), "sales/orders");
//! ```

mod continuous;
mod data_file;
mod delta;
mod error;
mod export;
mod files;
mod from_columns;
mod kind;
mod layout;
mod manifest;
mod names;
mod state_source;
mod to_columns;
mod verify;

pub use continuous::Continuous;
pub use error::LakehouseError;
pub use export::{Exported, Exporter};
pub use manifest::{Manifest, ManifestSignature, ManifestTable};
pub use names::{KEY_COLUMN, ROW_COLUMN, table_folder};
pub use state_source::{CertifiedState, NodeState};
pub use targets::{Target, TargetError};
pub use verify::{VerifiedExport, verify_export};
