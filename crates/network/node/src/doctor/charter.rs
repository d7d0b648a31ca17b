//! The charter: whether its members have signed it, whether this node stands in the one that holds now, and whether this program knows
//! its rules.

use super::finding::Findings;
use super::subject::Subject;
use crate::NodeConfig;
use crate::key_watch::expiring_soon;
use std::net::{IpAddr, SocketAddr};
use types::{Charters, GatewayAddress, KnownVersions, Organisation};

const CHARTER: &str = "charter";
const LEDGER: &str = "ledger";
const VERSIONS: &str = "versions";
const ADDRESSES: &str = "addresses";
const EXPIRY: &str = "expiry";

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let founding = match &subject.charter {
        Ok(charter) => charter,
        Err(error) => {
            return findings.problem(
                CHARTER,
                error.to_string(),
                "take the charter as its members have signed it, from any of them",
            );
        }
    };
    match &subject.past {
        Some(Err(error)) => findings.problem(
            LEDGER,
            error.clone(),
            "docs/errors.md says of each damage what to do; never remove the folder `ordering`",
        ),
        Some(Ok(past)) => {
            findings.ok(LEDGER, format!("the newest recorded block has height {}", past.height))
        }
        None => findings.ok(LEDGER, "no block is recorded yet"),
    }
    let Some(charters) = subject.charters() else { return };
    member(subject, &charters, findings);
    if findings.is_well(CHARTER) {
        let (version, height) = (charters.version_at(subject.height() + 1), subject.height() + 1);
        findings.ok(
            CHARTER,
            format!(
                "ledger {}, signed by all {} founders; version {version} holds at height {height}",
                founding.ledger(),
                founding.organisations.len()
            ),
        );
    }
    versions(&charters, subject.height(), findings);
    let newest = &charters.newest().charter;
    let pace_ms = match &subject.past {
        Some(Ok(past)) => past.pace_ms.unwrap_or(newest.block.idle_ms.into()),
        _ => newest.block.idle_ms.into(),
    };
    let expiring = expiring_soon(newest, subject.height(), pace_ms);
    if expiring.is_empty() {
        findings.ok(EXPIRY, "no node key expires within 30 days");
    }
    for text in expiring {
        findings.warning(EXPIRY, text, "replace the key in time: docs/governance.md");
    }
}

/// Whether the node's key is a member's, and whether others find it where it listens.
fn member(subject: &Subject, charters: &Charters, findings: &mut Findings) {
    let Ok(node_key) = &subject.node_key else { return };
    let (key, height) = (node_key.public_key(), subject.height() + 1);
    let (now, newest) = (&charters.at(height).charter, &charters.newest().charter);
    let Some(position) = newest.member(&key) else {
        let was = now.member(&key).and_then(|position| now.organisations.get(position));
        let found = match was {
            Some(was) => {
                format!("an amendment that is decided takes the key of this node, {key}, from {}", was.name)
            }
            None => format!(
                "node key {key} is that of no member at height {height}: this node follows without voting"
            ),
        };
        return findings.warning(
            CHARTER,
            found,
            "put the organisation's node.key into the folder, or have an amendment name this key (docs/governance.md)",
        );
    };
    if now.member(&key).is_none() {
        let first = charters.newest().first;
        findings.warning(
            CHARTER,
            format!("this node becomes a member's at height {first}; the next block has height {height}"),
            "wait until then; the node follows without voting",
        );
    }
    if let (Ok(config), Some(own)) = (&subject.config, newest.organisations.get(position)) {
        addresses(own, config, findings);
    }
}

fn addresses(own: &Organisation, config: &NodeConfig, findings: &mut Findings) {
    let gateway = GatewayAddress::of(&own.gateway).place;
    let pairs = [("listen", own.address.as_str(), config.listen), ("http", gateway, config.http)];
    for (setting, charter, listens) in pairs {
        if let Some(difference) = differs(charter, listens) {
            findings.warning(
                ADDRESSES,
                format!("the charter says that others reach {} at {charter}, node.toml has {setting} = \"{listens}\": {difference}", own.name),
                format!("correct {setting} in node.toml, or see that {charter} leads there; a new address is an amendment (docs/governance.md)"),
            );
        }
    }
    if findings.is_well(ADDRESSES) {
        findings.ok(
            ADDRESSES,
            format!("{} listens where the charter says: {} and {}", own.name, own.address, own.gateway),
        );
    }
}

/// In what an address of the charter differs from where the node listens.
fn differs(charter: &str, listens: SocketAddr) -> Option<String> {
    let Some((host, port)) = charter.rsplit_once(':') else {
        return Some("the charter's is no host with a port".to_string());
    };
    if port.parse() != Ok(listens.port()) {
        return Some("the ports differ".to_string());
    }
    let host: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    if listens.ip().is_loopback() && !host.is_none_or(|host| host.is_loopback()) {
        return Some("only programs on this machine reach that".to_string());
    }
    let differ = host.is_some_and(|host| host != listens.ip()) && !listens.ip().is_unspecified();
    differ.then(|| "the addresses differ".to_string())
}

fn versions(charters: &Charters, height: u64, findings: &mut Findings) {
    let known = KnownVersions::default();
    let holds = charters.at(height + 1).charter.execution_version;
    if let Some(unknown) = known.unknown(charters) {
        return findings.problem(
            VERSIONS,
            unknown.to_string(),
            "install a newer version of Entente before the ledger comes to that height",
        );
    }
    findings.ok(
        VERSIONS,
        format!(
            "program {}, execution version {holds} holds, the program knows versions up to {}",
            env!("CARGO_PKG_VERSION"),
            known.newest().number()
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_others_look_and_where_the_node_listens_is_compared() {
        let says = |charter: &str, listens: &str| differs(charter, listens.parse().expect("an address"));
        assert_eq!(says("127.0.0.1:7000", "127.0.0.1:7000"), None);
        assert_eq!(says("a.example:7000", "0.0.0.0:7000"), None);
        assert_eq!(says("[::1]:7000", "[::1]:7000"), None);
        assert_eq!(says("a.example:7000", "10.0.0.1:7000"), None);
        assert_eq!(says("a.example:7001", "0.0.0.0:7000").as_deref(), Some("the ports differ"));
        assert_eq!(says("10.0.0.2:7000", "10.0.0.1:7000").as_deref(), Some("the addresses differ"));
        assert!(says("10.0.0.2:7000", "127.0.0.1:7000").is_some_and(|text| text.contains("only programs")));
        assert!(says("nowhere", "127.0.0.1:7000").is_some());
    }
}
