//! What a node is like at the moment when somebody asks for its metrics: whether it serves, what waits, how far the other members
//! are, and how much memory and disk is left.

use crate::NodeError;
use crate::process_memory;
use nix::sys::statvfs::statvfs;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::path::Path;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OrganisationLabel {
    organisation: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProgramLabels {
    organisation: String,
    version: String,
}

/// What only the parts of a running node can tell.
pub(crate) struct Present {
    pub(crate) organisation: String,
    pub(crate) serves: bool,
    pub(crate) warnings: usize,
    pub(crate) uptime_seconds: u64,
    /// Execution version of the next block, and the newest that the program knows.
    pub(crate) execution_versions: (u32, u32),
    pub(crate) waiting_transactions: usize,
    pub(crate) connected_members: usize,
    /// Bytes of the files of blocks, and the first block that has its transactions and receipts.
    pub(crate) ledger: (u64, u64),
    /// The newest height that each other member has attested; 0 before its first word.
    pub(crate) members: Vec<(String, u64)>,
}

/// The gauges of it.
#[derive(Default)]
pub(crate) struct PresentGauges {
    program: Family<ProgramLabels, Gauge>,
    serves: Gauge,
    warnings: Gauge,
    uptime_seconds: Gauge,
    execution_version: Gauge,
    execution_version_known: Gauge,
    resident_bytes: Gauge,
    memory_limit_bytes: Gauge,
    disk_bytes: Gauge,
    disk_free_bytes: Gauge,
    waiting_transactions: Gauge,
    connected_members: Gauge,
    ledger_bytes: Gauge,
    payloads_from: Gauge,
    member_height: Family<OrganisationLabel, Gauge>,
}

impl PresentGauges {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("entente_node_program", "1, with who runs which version", self.program.clone());
        registry.register(
            "entente_attest_member_height",
            "The newest height that another member has attested; 0 before its first word since this node's start",
            self.member_height.clone(),
        );
        let gauges = [
            ("entente_node_serves", "1 where the node serves clients", &self.serves),
            ("entente_node_warnings", "Warnings that /status has", &self.warnings),
            ("entente_node_uptime_seconds", "Time since the node has started", &self.uptime_seconds),
            (
                "entente_node_execution_version",
                "Rules by which the next block is executed",
                &self.execution_version,
            ),
            (
                "entente_node_execution_version_known",
                "The newest rules that the program knows",
                &self.execution_version_known,
            ),
            ("entente_node_resident_bytes", "Memory that the process has", &self.resident_bytes),
            (
                "entente_node_memory_limit_bytes",
                "Memory that the process may have: of its control group or of the machine",
                &self.memory_limit_bytes,
            ),
            ("entente_node_disk_bytes", "Size of the disk that has the node's folder", &self.disk_bytes),
            ("entente_node_disk_free_bytes", "What is free on it for the node", &self.disk_free_bytes),
            (
                "entente_order_waiting_transactions",
                "Transactions at this node that wait to be ordered",
                &self.waiting_transactions,
            ),
            (
                "entente_order_connected_members",
                "Other members heard from within the last seconds",
                &self.connected_members,
            ),
            ("entente_ledger_bytes", "Bytes of the files of blocks", &self.ledger_bytes),
            (
                "entente_ledger_payloads_from",
                "Height of the first block that has its transactions and receipts",
                &self.payloads_from,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }

    /// Takes over what is so now. `folder`: the node's.
    pub(crate) fn set(&self, present: Present, folder: &Path) {
        let program = ProgramLabels {
            organisation: present.organisation,
            version: env!("CARGO_PKG_VERSION").to_string(),
        };
        self.program.get_or_create(&program).set(1);
        for (organisation, height) in present.members {
            self.member_height.get_or_create(&OrganisationLabel { organisation }).set(height as i64);
        }
        // What the system does not tell stays 0.
        let (disk, disk_free) = disk_bytes(folder).unwrap_or((0, 0));
        for (gauge, value) in [
            (&self.serves, u64::from(present.serves)),
            (&self.warnings, present.warnings as u64),
            (&self.uptime_seconds, present.uptime_seconds),
            (&self.execution_version, u64::from(present.execution_versions.0)),
            (&self.execution_version_known, u64::from(present.execution_versions.1)),
            (&self.resident_bytes, process_memory::resident_bytes()),
            (&self.memory_limit_bytes, process_memory::limit_bytes().unwrap_or(0)),
            (&self.disk_bytes, disk),
            (&self.disk_free_bytes, disk_free),
            (&self.waiting_transactions, present.waiting_transactions as u64),
            (&self.connected_members, present.connected_members as u64),
            (&self.ledger_bytes, present.ledger.0),
            (&self.payloads_from, present.ledger.1),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

/// Size of the file system that has this folder, and what a process without privileges may still write there.
fn disk_bytes(folder: &Path) -> Result<(u64, u64), NodeError> {
    let found = statvfs(folder).map_err(|error| NodeError::File {
        action: "ask for the free room of",
        path: folder.to_path_buf(),
        error: error.into(),
    })?;
    let unit = found.fragment_size();
    Ok((found.blocks().saturating_mul(unit), found.blocks_available().saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn what_is_so_now_is_shown_and_what_was_is_not() {
        let (gauges, mut registry) = (PresentGauges::default(), Registry::default());
        gauges.register(&mut registry);
        let present = |serves, height| Present {
            organisation: "org1".to_string(),
            serves,
            warnings: 2,
            uptime_seconds: 5,
            execution_versions: (10, 11),
            waiting_transactions: 7,
            connected_members: 3,
            ledger: (1_000, 17),
            members: vec![("org2".to_string(), height)],
        };
        let text = |present| {
            gauges.set(present, Path::new("/"));
            let mut text = String::new();
            encode(&mut text, &registry).expect("a string");
            text
        };
        assert!(text(present(true, 4)).contains("entente_node_serves 1\n"));
        let later = text(present(false, 5));
        for line in [
            "entente_node_serves 0",
            "entente_node_warnings 2",
            "entente_node_execution_version_known 11",
            "entente_order_waiting_transactions 7",
            "entente_ledger_payloads_from 17",
            "entente_attest_member_height{organisation=\"org2\"} 5",
            concat!(
                "entente_node_program{organisation=\"org1\",version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"} 1"
            ),
        ] {
            assert!(later.lines().any(|found| found == line), "{line}: {later}");
        }
        assert!(!later.contains("entente_attest_member_height{organisation=\"org2\"} 4"));
    }

    #[test]
    fn a_disk_has_more_room_than_is_free() {
        let (all, free) = disk_bytes(Path::new("/")).expect("there is a disk");
        assert!(all >= free && all > 0, "{free} of {all}");
        assert!(disk_bytes(Path::new("/no/such/folder")).is_err());
    }
}
