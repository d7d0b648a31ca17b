//! Where nodes keep the state: the options that `init`, `demo`, `convert-store` and measurements share.

use clap::{Args, ValueEnum};
use node::{StoreChoice, StoreKind};

#[derive(Args, Clone)]
pub(crate) struct StoreArguments {
    /// Where the rows of the state are: all in memory, or on the disk with those that are often read in memory
    #[arg(long, value_enum, default_value_t = Kind::Memory)]
    store: Kind,
    /// Memory that a store on the disk may use, in units of 1,048,576 bytes [default: 256]
    #[arg(long, value_name = "MEGABYTES")]
    memory_megabytes: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Memory,
    Disk,
}

impl StoreArguments {
    pub(crate) fn choice(&self) -> StoreChoice {
        StoreChoice { kind: self.store.into(), memory_megabytes: self.memory_megabytes }
    }
}

impl From<Kind> for StoreKind {
    fn from(kind: Kind) -> StoreKind {
        match kind {
            Kind::Memory => StoreKind::Memory,
            Kind::Disk => StoreKind::Disk,
        }
    }
}
