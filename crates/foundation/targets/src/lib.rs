//! Where exports and backups go: a folder on a disk, or a prefix in a bucket.
//!
//! [`Target`] reads and writes files that are there whole or not at all, and lists them with what was left by somebody who fell.
//!
//! ```
//! use targets::Target;
//!
//! # async fn keep() -> Result<(), targets::TargetError> {
//! let target = Target::open("/srv/backup")?; // or s3://bucket/backup, gs://…, az://…
//! assert!(target.create("first", b"content".to_vec()).await?, "there was no such file");
//! assert!(!target.create("first", b"another".to_vec()).await?, "now there is");
//! # Ok(())
//! # }
//! ```

mod error;
#[cfg(feature = "failing")]
pub mod failing;
mod target;

pub use error::TargetError;
pub use target::Target;
