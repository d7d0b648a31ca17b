//! Whether the keys in the folder belong together, and to the charter.

use super::finding::Findings;
use super::subject::Subject;
use crypto::SecretKey;
use types::{Charter, Identity};

const KEYS: &str = "keys";
const ADVICE: &str = "put the files of one organisation together again, from a copy of this folder";

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    if let Err(error) = &subject.node_key {
        findings.problem(KEYS, error.to_string(), "restore node.key from a copy of this folder");
    }
    if let Some(Err(error)) = &subject.session {
        findings.problem(KEYS, error.to_string(), ADVICE);
    }
    votes(subject, findings);
    let Some(charters) = subject.charters() else { return };
    let newest = &charters.newest().charter;
    if let Some(Ok(session)) = &subject.session {
        vouched("session.toml", session, newest, findings);
        if let (Ok(key), Ok(founding)) = (&subject.node_key, &subject.charter) {
            one_organisation(key, session, &[&**founding, &**newest], findings);
        }
    }
    let client = subject.folder.join("client.toml");
    if let Ok(text) = std::fs::read_to_string(&client) {
        match Identity::from_toml(&text) {
            Ok(client) if client.ledger() == charters.ledger() => {
                vouched("client.toml", &client, newest, findings);
            }
            Ok(client) => findings.warning(
                KEYS,
                format!("client.toml signs for ledger {}, not for {}", client.ledger(), charters.ledger()),
                ADVICE,
            ),
            Err(error) => findings.warning(KEYS, format!("{}: {error}", client.display()), ADVICE),
        }
    }
    if findings.is_well(KEYS)
        && let (Ok(key), Some(Ok(session))) = (&subject.node_key, &subject.session)
    {
        let position = usize::from(session.organisation());
        let name = newest.organisations.get(position).map_or("a later member", |own| &own.name);
        findings.ok(KEYS, format!("node key {} and the credentials are those of {name}", key.public_key()));
    }
}

/// Whether the folder with the votes may be used.
fn votes(subject: &Subject, findings: &mut Findings) {
    let (Ok(key), Some(charters)) = (&subject.node_key, subject.charters()) else { return };
    if !matches!(charters.founding().ordering.as_str(), "bft" | "raft") {
        return;
    }
    let folder = subject.folder.join("ordering");
    if let Err(error) = ordering::check_votes(&folder, &charters, key, subject.height()) {
        findings.problem(KEYS, error.to_string(), "docs/doctor.md says what to do with a folder of votes");
    }
}

/// The node key is not that of another organisation than the session's.
fn one_organisation(key: &SecretKey, session: &Identity, charters: &[&Charter], findings: &mut Findings) {
    let (key, own) = (key.public_key(), usize::from(session.organisation()));
    let other = charters.iter().find_map(|charter| {
        let position = charter.member(&key).filter(|position| *position != own)?;
        charter.organisations.get(position)
    });
    if let Some(other) = other {
        findings.problem(
            KEYS,
            format!(
                "node key {key} is that of another organisation than session.toml: it is {}'s, at another position of the charter",
                other.name
            ),
            ADVICE,
        );
    }
}

/// Whether the organisation has said that it is its own.
fn vouched(file: &str, identity: &Identity, charter: &Charter, findings: &mut Findings) {
    let position = usize::from(identity.organisation());
    // Whoever comes later does not stand in it yet.
    let Some(own) = charter.organisations.get(position) else { return };
    if !identity.is_vouched_for_by(&own.root_key) {
        findings.problem(
            KEYS,
            format!("{file} is not signed by the root key of {}, which stands at its position {position}", own.name),
            "sign the charter with that root key again (entente charter sign), which writes the credentials, or take the file from a copy",
        );
    } else if own.removed {
        findings.warning(
            KEYS,
            format!("{} has left the ledger: nothing that {file} signs counts", own.name),
            "stop this node, or join again",
        );
    }
}
