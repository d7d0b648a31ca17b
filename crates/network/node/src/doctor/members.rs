//! Other members' nodes: whether they can be reached, who they are, how far they are; and what this node itself says where it runs.

use super::answer::{Answer, PATIENCE, answer_of};
use super::clocks::{self, TOLERATED_MS};
use super::encryption;
use super::finding::Findings;
use super::subject::Subject;
use crate::NodeError;
use client::{NodeKey, Status};
use crypto::{PublicKey, SecretKey};
use futures::future::join_all;
use ordering::{Proving, prove_members};
use std::net::SocketAddr;
use std::time::Duration;
use types::{Charter, ExecutionModel, Presence};

const NODE: &str = "node";
const MEMBERS: &str = "members";
const ONE_KEY: &str = "one key";
/// A member that is trying to connect with this node takes nobody else meanwhile, for five seconds.
const PROVING_PATIENCE: Duration = Duration::from_secs(7);
/// The same where it is known already why it will not prove its key.
const HOPELESS_PATIENCE: Duration = Duration::from_millis(1_500);
/// After this time nodes have noticed who is connected.
const LOOK_AGAIN: Duration = Duration::from_secs(4);
/// A node that is further behind catches up, or does not get on.
const BEHIND_BLOCKS: u64 = 100;

/// A member of the newest charter that is known.
struct Member {
    name: String,
    key: String,
    address: String,
    gateway: String,
}

/// Another member, and what is known of it.
struct Other {
    member: Member,
    answer: Answer,
    /// Whether this node, which runs, is connected with it.
    connected: bool,
    /// Where its address leads.
    resolved: Result<SocketAddr, String>,
    proving: Option<Proving>,
}

pub(super) fn check(subject: &Subject, findings: &mut Findings) -> Result<(), NodeError> {
    let (Ok(founding), Ok(config), Ok(key)) = (&subject.charter, &subject.config, &subject.node_key) else {
        let advice = "mend what is wrong above, and look again";
        findings.warning(MEMBERS, "not asked: charter, node.toml or node.key cannot be read", advice);
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| NodeError::Thread { name: "doctor", error })?;
    let own_http = reached_at(config.http);
    let name = founding.member(&key.public_key()).map(|at| founding.organisations[at].name.clone());
    let whom = NodeKey {
        organisation: name.unwrap_or_else(|| "this node".to_string()),
        key: key.public_key(),
        others: Vec::new(),
    };
    let ask_own = || runtime.block_on(answer_of(&own_http, Some(whom.clone())));
    let own = subject.is_running().then(ask_own);
    let own_status = own.as_ref().and_then(|own| own.status.as_ref().ok());
    let members = members_of(subject, own_status);
    let keys: Vec<(String, PublicKey)> =
        members.iter().filter_map(|member| Some((member.name.clone(), member.key.parse().ok()?))).collect();
    let (this, others): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| member.key == key.public_key().to_string());
    if let Some(own) = &own {
        of_this_node(own, &own_http, key, findings);
    }
    if others.is_empty() {
        return Ok(());
    }
    let mut others =
        runtime.block_on(join_all(others.into_iter().map(|member| ask_other(member, &keys, own_status))));
    let ask_elsewhere = |this: &Member| runtime.block_on(answer_of(&this.gateway, whom_of(this, &keys)));
    let elsewhere = this.first().map(|this| (this, ask_elsewhere(this)));
    if this.is_empty() {
        findings.warning(
            MEMBERS,
            "members' nodes are not asked for proof: this node's key is that of no member, and they do not answer strangers",
            "see what is said of the charter above",
        );
    } else {
        let has_twin =
            own.is_none() && elsewhere.as_ref().is_some_and(|(_, answer)| answer.has_key(&key.public_key()));
        prove((founding, key), &mut others, has_twin)?;
    }
    let is_strange =
        |other: &Other| !other.connected && other.proving != Some(Proving::Proved) && other.is_there();
    if own.is_some() && others.iter().any(is_strange) {
        // What has just begun or ended looks strange for a moment.
        std::thread::sleep(LOOK_AGAIN);
        let again = ask_own().status;
        others
            .iter_mut()
            .for_each(|other| other.connected = is_connected(again.as_ref().ok(), &other.member));
    }
    report(subject, &others, findings);
    others.iter().for_each(|other| {
        let whom = (other.member.name.as_str(), other.member.gateway.as_str());
        encryption::check(whom, &other.answer, findings);
    });
    quorum(founding, &others, findings);
    behind(subject, own_status, &others, findings);
    one_key(key, (own.as_ref(), elsewhere), &others, findings);
    let own_ahead = own.and_then(|own| own.ahead_ms).unwrap_or(0);
    let ahead = |other: &Other| Some((other.member.name.clone(), other.known_clock()? - own_ahead));
    clocks::check(&others.iter().filter_map(ahead).collect::<Vec<_>>(), findings);
    Ok(())
}

/// Where a program on this machine reaches what listens there.
fn reached_at(listens: SocketAddr) -> String {
    match (listens.ip().is_unspecified(), listens) {
        (false, _) => listens.to_string(),
        (true, SocketAddr::V4(_)) => format!("127.0.0.1:{}", listens.port()),
        (true, SocketAddr::V6(_)) => format!("[::1]:{}", listens.port()),
    }
}

/// Whom an address of a member must lead to.
fn whom_of(member: &Member, keys: &[(String, PublicKey)]) -> Option<NodeKey> {
    let key = member.key.parse().ok()?;
    let others = keys.iter().filter(|(_, other)| *other != key).cloned().collect();
    Some(NodeKey { organisation: member.name.clone(), key, others })
}

/// As the node knows them where it runs, else as its blocks say.
fn members_of(subject: &Subject, own: Option<&Status>) -> Vec<Member> {
    if let Some(own) = own.filter(|own| !own.members.is_empty()) {
        let known = own.members.iter();
        return known
            .map(|member| Member {
                name: member.organisation.clone(),
                key: member.node_key.clone(),
                address: member.address.clone(),
                gateway: member.gateway.clone(),
            })
            .collect();
    }
    let Some(charters) = subject.charters() else { return Vec::new() };
    let members = charters.newest().charter.members();
    members
        .map(|(_, member)| Member {
            name: member.name.clone(),
            key: member.node_key.to_string(),
            address: member.address.clone(),
            gateway: member.gateway.clone(),
        })
        .collect()
}

fn is_connected(status: Option<&Status>, member: &Member) -> bool {
    let members = status.into_iter().flat_map(|status| &status.members);
    members.into_iter().any(|known| known.node_key == member.key && known.connected)
}

async fn ask_other(member: Member, keys: &[(String, PublicKey)], own: Option<&Status>) -> Other {
    let resolving = tokio::time::timeout(PATIENCE, tokio::net::lookup_host(member.address.clone()));
    let asking = answer_of(&member.gateway, whom_of(&member, keys));
    let (answer, resolved) = futures::join!(asking, resolving);
    let resolved = match resolved {
        Ok(Ok(mut found)) => found.next().ok_or_else(|| "it has no address".to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
    };
    let connected = is_connected(own, &member);
    Other { member, answer, connected, resolved, proving: None }
}

/// Has those prove their keys that this node is not connected with. `has_twin`: they are connected with somebody who has this node's
/// key, and take nobody else.
fn prove(
    (founding, own): (&Charter, &SecretKey),
    others: &mut [Other],
    has_twin: bool,
) -> Result<(), NodeError> {
    let unproved = others.iter_mut().filter(|other| !other.connected);
    let (hopeless, unproved): (Vec<&mut Other>, Vec<&mut Other>) =
        unproved.partition(|other| has_twin || other.will_not_prove());
    for (mut asked, patience) in [(hopeless, HOPELESS_PATIENCE), (unproved, PROVING_PATIENCE)] {
        asked.retain(|other| other.resolved.is_ok() && other.member.key.parse::<PublicKey>().is_ok());
        if asked.is_empty() {
            continue;
        }
        let whom = asked
            .iter()
            .filter_map(|other| Some((other.member.key.parse().ok()?, other.resolved.clone().ok()?)));
        let proved = prove_members(founding, own, whom.collect(), patience)?;
        asked.into_iter().zip(proved).for_each(|(other, proved)| other.proving = Some(proved));
    }
    Ok(())
}

impl Other {
    /// The key of whoever answers at its gateway, where that is another one.
    fn stranger(&self) -> Option<String> {
        let found = self.answer.key()?.to_string();
        (found != self.member.key).then_some(found)
    }

    /// Whether it is known already that it has another key, or a clock with which nobody connects.
    fn will_not_prove(&self) -> bool {
        self.stranger().is_some() || self.answer.ahead_ms.is_some_and(|ahead| ahead.abs() > TOLERATED_MS)
    }

    /// Whether somebody answers at its address.
    fn is_there(&self) -> bool {
        self.connected || matches!(self.proving, Some(Proving::Proved | Proving::NotProved(_)))
    }

    /// Whether it has proved its key.
    fn is_proved(&self) -> bool {
        self.connected || self.proving == Some(Proving::Proved)
    }

    /// By how many milliseconds the member's clock is ahead.
    fn known_clock(&self) -> Option<i64> {
        if self.stranger().is_some() { None } else { self.answer.ahead_ms }
    }

    /// How it is, for a line.
    fn condition(&self) -> String {
        match &self.answer.status {
            Ok(status) => format!(
                "program {}, execution version {} of {} known, height {}",
                status.version, status.execution_version, status.execution_version_known, status.height
            ),
            Err(_) if self.answer.not_asked.is_some() => {
                format!("HTTP at {} is not asked", self.member.gateway)
            }
            Err(_) => format!("HTTP at {} is not open to this machine", self.member.gateway),
        }
    }
}

fn of_this_node(own: &Answer, http: &str, key: &SecretKey, findings: &mut Findings) {
    let status = match &own.status {
        Ok(status) => status,
        Err(error) => {
            let advice = "wait until it has started; if it stays so, its log says why";
            return findings.problem(
                NODE,
                format!("the node runs and does not answer at {http}: {error}"),
                advice,
            );
        }
    };
    if let Some(presence) = &own.presence
        && presence.node_key != key.public_key()
    {
        let found =
            format!("whoever answers at {http} has the node key {}, node.key is another", presence.node_key);
        findings.problem(
            NODE,
            found,
            "start the node again with the folder as it is, or put its node.key back",
        );
    }
    if let Some(reason) = &status.not_serving {
        findings.problem(
            NODE,
            format!("it does not serve: {reason}"),
            "do what the reason says; docs/errors.md has more",
        );
    }
    for warning in &status.warnings {
        findings.warning(NODE, warning.clone(), "do what the warning says");
    }
    if status.version != env!("CARGO_PKG_VERSION") {
        let found =
            format!("it runs program {}, this program is {}", status.version, env!("CARGO_PKG_VERSION"));
        findings.warning(NODE, found, "start the node again with the program that is installed");
    }
    if findings.is_well(NODE) {
        findings.ok(
            NODE,
            format!("serves at height {}, certified up to {}", status.height, status.certified_height),
        );
    }
}

fn report(subject: &Subject, others: &[Other], findings: &mut Findings) {
    let asks_gateways =
        matches!(&subject.charter, Ok(charter) if charter.execution == ExecutionModel::ExecuteOrderValidate);
    for other in others {
        let Member { name, key, address, gateway } = &other.member;
        if let Some(found) = other.stranger() {
            findings.problem(
                MEMBERS,
                format!("{name}: whoever answers at {gateway} has the node key {found}, the charter says {key}"),
                format!("ask {name} over the phone which key is theirs; a new key or address is an amendment (docs/governance.md)"),
            );
        }
        match (&other.resolved, &other.proving) {
            _ if other.is_proved() => {
                let how = if other.connected { "is connected" } else { "answers" };
                findings.ok(MEMBERS, format!("{name} at {address} {how} and has proved its node key; {}", other.condition()));
            }
            (Err(error), _) => findings.warning(
                MEMBERS,
                format!("{name}: {address} does not resolve: {error}"),
                "see to this machine's name servers, or ask the member for its address",
            ),
            (_, Some(Proving::NotProved(reason))) => findings.problem(
                MEMBERS,
                format!("{name}: somebody answers at {address} and does not prove the node key {key} ({reason})"),
                "it is another node or another program; or it does not take this node: clocks more than ten seconds apart, a charter without \
                 this node's key, or another process that is connected with it under this node's key. See the other findings, and ask the member",
            ),
            (_, Some(Proving::Unreachable(reason))) => findings.warning(
                MEMBERS,
                format!("{name}: nobody answers at {address} ({reason})"),
                "its node is stopped, or something between does not let this machine through: ask the member",
            ),
            (Ok(_), _) => findings.warning(MEMBERS, format!("{name} at {address} was not asked; {}", other.condition()), "see above"),
        }
        if asks_gateways && other.is_proved() && other.answer.status.is_err() {
            findings.warning(
                MEMBERS,
                format!("{name}: HTTP at {gateway} cannot be reached, where this node asks for endorsements"),
                "have it opened to this machine (docs/endorsement.md)",
            );
        }
    }
}

/// Whether so many are there as it takes.
fn quorum(founding: &Charter, others: &[Other], findings: &mut Findings) {
    let there = 1 + others.iter().filter(|other| other.is_proved()).count();
    let (members, needed) = (others.len() + 1, types::quorum(others.len() + 1));
    if founding.ordering != "kafka" && there < needed {
        findings.problem(
            MEMBERS,
            format!("{there} of {members} members' nodes are there with this one, and it takes {needed}: nothing is ordered"),
            "have the others started, or the way to them opened",
        );
    }
}

fn behind(subject: &Subject, own: Option<&Status>, others: &[Other], findings: &mut Findings) {
    let heights = others.iter().filter(|other| other.stranger().is_none());
    let Some(newest) = heights.filter_map(|other| Some(other.answer.status.as_ref().ok()?.height)).max()
    else {
        return;
    };
    let height = own.map_or(subject.height(), |own| own.height);
    let behind = newest.saturating_sub(height);
    match own {
        Some(_) if behind > BEHIND_BLOCKS => findings.warning(
            NODE,
            format!("it is {behind} blocks behind the others, at height {height}"),
            "wait while it catches up; if it does not get nearer, see its log and the members above",
        ),
        _ => findings.ok(NODE, format!("{behind} blocks behind the others, who are at height {newest}")),
    }
}

/// Whether another process has this node's key. `elsewhere`: who answers where the charter says that this node is.
fn one_key(
    key: &SecretKey,
    (own, elsewhere): (Option<&Answer>, Option<(&Member, Answer)>),
    others: &[Other],
    findings: &mut Findings,
) {
    let advice = "stop one of them at once: two nodes with one key count as a member that lies (docs/doctor.md says how to go on)";
    let own_process = own.and_then(|own| own.presence.as_ref());
    if let Some((this, answer)) = &elsewhere
        && let Some(found) = answer.key()
    {
        let is_ours = found == key.public_key();
        let is_process =
            |own: &Presence| answer.presence.as_ref().is_some_and(|one| one.process == own.process);
        match own_process {
            Some(own) if is_ours && !is_process(own) => findings.problem(
                ONE_KEY,
                format!("another process with this node's key answers at {}, where the charter says that this node is", this.gateway),
                advice,
            ),
            None if is_ours && own.is_none() => findings.problem(
                ONE_KEY,
                format!("this folder's node is stopped, and a process with its key answers at {}: it runs from another folder", this.gateway),
                "do not start this one; if it is to take over, stop the other first, and move its whole folder",
            ),
            _ if !is_ours => findings.problem(
                ONE_KEY,
                format!("{}, where the charter says that this node is, is answered by the node key {found}", this.gateway),
                "see that the address leads to this machine; a new address is an amendment (docs/governance.md)",
            ),
            _ => {}
        }
    }
    if own.is_some() {
        let says = |other: &&Other| {
            let status = other.answer.status.as_ref().ok();
            let member = status.into_iter().flat_map(|status| &status.members);
            let own_key = key.public_key().to_string();
            !other.connected && member.into_iter().any(|known| known.node_key == own_key && known.connected)
        };
        let names: Vec<&str> = others.iter().filter(says).map(|other| other.member.name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            let found =
                format!("{names}: connected with a node that has this node's key, and not with this one");
            findings.problem(ONE_KEY, found, advice);
        }
    }
    if findings.is_well(ONE_KEY) {
        findings.ok(ONE_KEY, "no other process with this node's key is seen");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_all_addresses_is_asked_on_this_machine() {
        let at = |text: &str| reached_at(text.parse().expect("an address"));
        assert_eq!(at("0.0.0.0:7200"), "127.0.0.1:7200");
        assert_eq!(at("[::]:7200"), "[::1]:7200");
        assert_eq!(at("10.0.0.1:7200"), "10.0.0.1:7200");
    }
}
