//! Where nodes keep the state: the options that `init`, `demo`, `bench engine` and `bench state` share.

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
enum Kind {
    Memory,
    Disk,
}

impl StoreArguments {
    pub(crate) fn choice(&self) -> StoreChoice {
        let kind = match self.store {
            Kind::Memory => StoreKind::Memory,
            Kind::Disk => StoreKind::Disk,
        };
        StoreChoice { kind, memory_megabytes: self.memory_megabytes }
    }
}
