//! `node.toml`: whether a node starts with it, and whether the machine has what it asks for.

use super::finding::Findings;
use super::subject::Subject;
use crate::holders;
use crate::local::query_bytes;
use crate::process_memory::{limit_bytes, limit_bytes_of};
use crate::store_choice::{StoreChoice, StoreKind, column_bytes};
use crate::{MEMORY_MEGABYTES, NodeConfig, kafka};
use gateway::PlainHttp;
use types::Charter;

const SETTINGS: &str = "settings";
const MEMORY: &str = "memory";

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let config = match &subject.config {
        Ok(config) => config,
        Err(error) => {
            let advice = "correct node.toml; docs/doctor.md lists its settings";
            return findings.problem(SETTINGS, error.to_string(), advice);
        }
    };
    for reason in refused(config, subject.charter.as_ref().ok().map(|charter| &**charter)) {
        findings.problem(SETTINGS, reason, "correct node.toml");
    }
    if config.plain_http == PlainHttp::Everybody && !config.http.ip().is_loopback() {
        findings.warning(
            SETTINGS,
            "node.toml: HTTP is answered to other machines in plain text as well (plain_http = \"everybody\", or not said): who stands between \
             reads along",
            "set plain_http = \"loopback\" when who asks from elsewhere does so with https:// (docs/operating.md)",
        );
    }
    for (name, value) in nothing_allowed(config) {
        findings.warning(
            SETTINGS,
            format!("node.toml: {name} = {value} allows next to nothing"),
            format!("leave {name} out, or give it a number that fits"),
        );
    }
    if findings.is_well(SETTINGS) {
        let kind = config.store.name();
        findings.ok(SETTINGS, format!("node.toml: {} threads, store = \"{kind}\"", config.threads));
    }
    let limit = subject.process().map_or_else(limit_bytes, limit_bytes_of);
    memory(config, limit, findings);
}

/// What a start refuses.
fn refused(config: &NodeConfig, charter: Option<&Charter>) -> Vec<String> {
    let mut reasons = Vec::new();
    let listens = [("listen", config.listen), ("postgres", config.postgres), ("http", config.http)];
    for (at, (one, first)) in listens.iter().enumerate() {
        for (other, second) in &listens[at + 1..] {
            let meet =
                first.ip() == second.ip() || first.ip().is_unspecified() || second.ip().is_unspecified();
            if first.port() == second.port() && meet && first.port() != 0 {
                reasons.push(format!("node.toml: {one} and {other} are the same port, {}", first.port()));
            }
        }
    }
    let choice = StoreChoice { kind: config.store, memory_megabytes: config.memory_megabytes };
    reasons.extend(choice.check().err().map(|error| format!("node.toml: {error}")));
    reasons.extend(holders::check(config).err().map(|reason| format!("node.toml: {reason}")));
    if let Some(charter) = charter.filter(|charter| charter.ordering == "kafka") {
        let settings = kafka::settings(config.kafka.as_ref(), &charter.ledger());
        reasons.extend(settings.err().map(|error| error.to_string()));
    }
    reasons
}

/// Settings that are numbers, and too small to be meant.
fn nothing_allowed(config: &NodeConfig) -> Vec<(&'static str, u64)> {
    let settings = [
        ("threads", Some(config.threads as u64)),
        ("connections_max", config.connections_max.map(|most| most as u64)),
        ("client_transactions_per_second", config.client_transactions_per_second.map(u64::from)),
        ("query_memory_megabytes", config.query_memory_megabytes),
        ("history_heights", config.history_heights.map(|heights| heights as u64)),
    ];
    let small = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
    small.filter(|(_, value)| *value == 0).collect()
}

/// `limit`: bytes that the node may have at most.
fn memory(config: &NodeConfig, limit: Option<u64>, findings: &mut Findings) {
    let Some(limit) = limit else {
        return findings.ok(MEMORY, "the system does not say how much memory a process may have");
    };
    let choice = StoreChoice { kind: config.store, memory_megabytes: config.memory_megabytes };
    if let Err(error) = choice.check_limit(Some(limit)) {
        return findings.problem(
            MEMORY,
            error.to_string(),
            "set memory_megabytes in node.toml lower, or give the machine or the control group more (MemoryMax of systemd)",
        );
    }
    let rows = match config.store {
        StoreKind::Disk => config.memory_megabytes.unwrap_or(MEMORY_MEGABYTES) << 20,
        StoreKind::Memory => 0,
    };
    let all = rows
        .saturating_add(query_bytes(config.query_memory_megabytes))
        .saturating_add(column_bytes(config.column_memory_megabytes));
    let (all, limit) = (all >> 20, limit >> 20);
    if all > limit {
        return findings.warning(
            MEMORY,
            format!(
                "store, queries and columns may take {all} MB together, and the process may have {limit} MB: it is ended when it needs more"
            ),
            "set memory_megabytes, query_memory_megabytes and column_memory_megabytes lower, or allow the process more",
        );
    }
    findings.ok(
        MEMORY,
        format!("store, queries and columns may take {all} MB together, the process may have {limit} MB"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn config() -> NodeConfig {
        NodeConfig::new([7000, 7100, 7200].map(|port| ([127, 0, 0, 1], port).into()), 1)
    }

    fn found(config: &NodeConfig, limit: u64) -> (Level, String) {
        let mut findings = Findings::default();
        memory(config, Some(limit), &mut findings);
        let finding = findings.0.pop().expect("one");
        (finding.level, finding.found)
    }

    #[test]
    fn memory_that_is_not_there_is_named() {
        let mut config = config();
        assert_eq!(found(&config, 16 << 30).0, Level::Ok);
        config.query_memory_megabytes = Some(4_000);
        let (level, text) = found(&config, 2 << 30);
        assert_eq!(level, Level::Warning);
        assert!(text.contains("the process may have 2048 MB"), "{text}");
        (config.store, config.memory_megabytes) = (StoreKind::Disk, Some(1_500));
        let (level, text) = found(&config, 2 << 30);
        assert_eq!(level, Level::Problem);
        assert!(
            text.contains("at most half of what this process may have, which is 2048, found 1500"),
            "{text}"
        );
    }

    #[test]
    fn what_a_start_refuses_and_what_allows_nothing_is_named() {
        let mut config = config();
        assert!(refused(&config, None).is_empty() && nothing_allowed(&config).is_empty());
        config.http = config.listen;
        config.memory_megabytes = Some(20);
        config.connections_max = Some(0);
        let reasons = refused(&config, None).join("; ");
        assert!(reasons.contains("listen and http are the same port, 7000"), "{reasons}");
        assert!(reasons.contains("memory_megabytes needs store"), "{reasons}");
        assert_eq!(nothing_allowed(&config), [("connections_max", 0)]);
        let mut charter = Charter::with_defaults("test", 1);
        charter.ordering = "kafka".to_string();
        let reasons = refused(&config, Some(&charter)).join("; ");
        assert!(reasons.contains("expected [kafka]"), "{reasons}");
    }
}
