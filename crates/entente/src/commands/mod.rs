//! One file per command.

pub(crate) mod agree;
pub(crate) mod bench;
mod bench_analytics;
mod bench_anker;
mod bench_attest;
mod bench_chainify;
mod bench_faults;
mod bench_htap;
mod bench_join;
mod bench_pcp;
mod bench_scale;
mod bench_shards;
mod bench_state;
mod bench_tpch;
pub(crate) mod chainify;
pub(crate) mod convert_store;
pub(crate) mod export;
mod figures;
pub(crate) mod governance;
pub(crate) mod init;
mod measured_network;
pub(crate) mod node;
pub(crate) mod password;
pub(crate) mod place;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod verify;
