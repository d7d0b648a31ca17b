//! Rust SDK: an [`Identity`](types::Identity) signs transactions, a [`Client`] submits them to any organisation's gateway in batches and
//! gives back receipts as they become final. Where transactions are executed before they are ordered, the gateway has them
//! endorsed; a client that does not want to rely on it asks [`Endorser`]s itself ([`endorse`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use client::Client;
//! use types::{Identity, Payload, Value};
//!
//! let identity = Identity::from_toml(&std::fs::read_to_string("client.toml")?)?;
//! let client = Client::new("http://127.0.0.1:7301", identity)?;
//! let expires_at = client.status().await?.height + 1_000;
//! let arguments = vec![Value::BigInt(1), Value::BigInt(2), Value::BigInt(300)];
//! let payment = Payload::Call { procedure: "send_payment".into(), arguments };
//! let signed = client.identity().sign(payment, expires_at);
//! let mut replies = client.submit(&[signed]).await?;
//! while let Some(reply) = replies.next().await? {
//!     println!("{:?}", reply.result);
//! }
//! # Ok(()) }
//! ```
//!
//! Over TLS a client makes sure that it talks to the node that it means ([`Trust`]): by the node key in the charter, which needs no
//! authority, or by certificates.
//!
//! ```no_run
//! # fn example(charter: &types::Charter, identity: types::Identity) -> Result<(), Box<dyn std::error::Error>> {
//! use client::{Client, NodeKey, Trust};
//!
//! let address = "https://bank-a.example:7200";
//! let node = NodeKey::at(charter, address).ok_or("the charter names no node there")?;
//! let client = Client::trusting(address, &Trust::NodeKey(node), identity)?;
//! # Ok(()) }
//! ```

mod certificate_check;
mod endorser;
mod error;
mod http;
mod submission;
mod trust;

pub use certificate_check::CertificateCheck;
pub use endorser::{EndorseError, Endorser, endorse};
pub use error::ClientError;
pub use http::{Spoken, tls_failure};
pub use submission::{Client, HolderStatus, MemberStatus, OwnDatabaseStatus, Replies, Status, StatusAt};
pub use trust::{NodeKey, OtherKey, Trust};
