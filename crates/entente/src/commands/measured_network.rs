//! The network that a measurement makes for itself: new keys, governance by any organisation, two threads for each node.

use crate::CommandError;
use node::{Network, NetworkOptions, StoreChoice};
use std::path::Path;
use types::{Charter, Pipeline};

/// Its name, how many organisations it has, and its first port.
pub(super) struct MeasuredNetwork {
    pub name: &'static str,
    pub organisations: usize,
    pub port_base: u16,
    pub store: StoreChoice,
}

impl MeasuredNetwork {
    /// Writes the folders of its nodes into `folder`. `change`: what is to be otherwise in its charter.
    pub(super) fn create(
        self,
        folder: &Path,
        change: impl FnOnce(&mut Charter) -> Result<(), CommandError>,
    ) -> Result<Network, CommandError> {
        let MeasuredNetwork { name, organisations, port_base, store } = self;
        let mut charter = Charter::with_defaults(name, u64::from_be_bytes(crypto::random_bytes()));
        charter.governance = "any".to_string();
        change(&mut charter)?;
        let pipeline = Pipeline::Serial;
        let options = NetworkOptions { organisations, port_base, threads: 2, pipeline, store, charter };
        Ok(Network::create(folder, &options)?)
    }
}
