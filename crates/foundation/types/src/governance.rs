//! Consent: changes that wait for the members' approval, and the charters that came of them. Part of the catalog, so that
//! every node has them and every digest covers them.

use crate::{AmendedCharter, Charter, CharterChange, Policy, SqlError, TransactionId, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is to be changed.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum ProposedChange {
    /// Statements that change the schema, with the search path that they came with.
    Script(String),
    /// An amendment of the charter.
    Charter(CharterChange),
    /// A transaction's content goes from every node. From execution version 14 on.
    Redaction(Redaction),
}

/// A transaction whose content is to go; its hash and place stay.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Redaction {
    /// The transaction, wherever its bytes stand.
    pub transaction: TransactionId,
    /// Why, for ever in the catalog.
    pub reason: String,
}

/// What became of a proposal.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum ProposalState {
    /// It waits for approvals, until it expires.
    Open,
    /// The change was made.
    Done,
    /// It was approved, and could not be made any more.
    Failed(SqlError),
    /// So many have rejected it that the others are too few.
    Rejected,
    /// The organisation that made it has taken it back.
    Withdrawn,
    /// Nobody decided on it in its time.
    Expired,
}

/// A change of schema or charter that waits for consent, or that has waited.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct ChangeProposal {
    /// Counts the proposals of the ledger, from 1.
    pub number: u64,
    /// Position of the organisation whose administrator made it.
    pub organisation: u16,
    /// The transaction that made it: says which client it was.
    pub transaction: TransactionId,
    /// What is to be changed.
    pub change: ProposedChange,
    /// Height of the block in which it was made.
    pub height: u64,
    /// The last height at which it can be decided.
    pub expires_at: u64,
    /// Positions of the organisations that agree; the one that made it is among them.
    pub approved_by: BTreeSet<u16>,
    /// Positions of those that do not.
    pub rejected_by: BTreeSet<u16>,
    /// What became of it.
    pub state: ProposalState,
    /// Height of the block in which that was decided.
    pub decided_height: Option<u64>,
}

impl ChangeProposal {
    /// What became of it as seen at this height: one that nobody has looked at since it expired is marked open.
    pub fn state_at(&self, height: u64) -> &ProposalState {
        match &self.state {
            ProposalState::Open if height > self.expires_at => &ProposalState::Expired,
            state => state,
        }
    }

    /// The bytes of it that its organisation chose.
    fn text_bytes(&self) -> usize {
        match &self.change {
            ProposedChange::Script(sql) => sql.len(),
            ProposedChange::Charter(change) => crate::encode(change).len(),
            ProposedChange::Redaction(redaction) => crate::encode(redaction).len(),
        }
    }

    /// What it has members agree to take out of the ledger.
    fn redaction(&self) -> Option<&Redaction> {
        match &self.change {
            ProposedChange::Redaction(redaction) => Some(redaction),
            ProposedChange::Script(_) | ProposedChange::Charter(_) => None,
        }
    }

    /// It has taken something out of the ledger, for ever.
    fn has_redacted(&self) -> bool {
        self.state == ProposalState::Done && self.redaction().is_some()
    }
}

/// The charters of a ledger and what waits for consent under them.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Governance {
    /// The charter that the ledger began with; `None` in catalogs of no ledger, which nobody governs.
    pub founding: Option<Arc<Charter>>,
    /// Amended charters, by ascending version and height.
    pub amendments: Vec<Arc<AmendedCharter>>,
    /// Number of the last proposal.
    pub last_proposal: u64,
    /// Those that are open, and the newest ones that are closed, by number.
    pub proposals: BTreeMap<u64, Arc<ChangeProposal>>,
}

impl Governance {
    /// That of a new ledger.
    pub fn founded(charter: Arc<Charter>) -> Governance {
        Governance { founding: Some(charter), ..Governance::default() }
    }

    /// The charter that holds for the block of this height.
    pub fn charter_at(&self, height: u64) -> Option<&Charter> {
        let amended = self.amendments.iter().rev().find(|amended| amended.effective_height <= height);
        amended.map(|amended| &amended.charter).or(self.founding.as_deref())
    }

    /// The charter as it is to become, whether it holds already or not.
    pub fn newest_charter(&self) -> Option<&Charter> {
        self.amendments.last().map(|amended| &amended.charter).or(self.founding.as_deref())
    }

    /// Whose consent a change needs at this height; `None`: nobody's.
    fn policy_at(&self, height: u64) -> Option<(&Charter, Policy)> {
        let charter = self.charter_at(height)?;
        // A charter with another governance was refused.
        let policy = charter.governance_policy().ok()?;
        Some((charter, policy))
    }

    /// Whether a change can be made at this height that these organisations agree to.
    pub fn is_agreed(&self, height: u64, agrees: &dyn Fn(u16) -> bool) -> bool {
        self.policy_at(height).is_none_or(|(charter, policy)| policy.is_satisfied(&of_names(charter, agrees)))
    }

    /// Who has to agree yet, as an expression; empty where nobody has to.
    pub fn missing(&self, height: u64, approved_by: &BTreeSet<u16>) -> String {
        let agrees = |position: u16| approved_by.contains(&position);
        let remaining = self
            .policy_at(height)
            .and_then(|(charter, policy)| policy.remaining(&of_names(charter, &agrees)));
        remaining.map_or_else(String::new, |policy| policy.to_string())
    }

    /// The name of an organisation, past members included.
    pub fn name_of(&self, position: u16) -> &str {
        let organisation = self.newest_charter().and_then(|all| all.organisations.get(usize::from(position)));
        organisation.map_or("", |organisation| organisation.name.as_str())
    }

    /// The name under which the administrator of this organisation executes statements.
    pub fn administrator_of(&self, position: u16) -> String {
        match self.name_of(position) {
            "" => format!("organisation {}", position + 1),
            name => name.to_string(),
        }
    }

    /// Whether an organisation of this name is or was a member.
    pub fn has_organisation(&self, name: &str) -> bool {
        let mut all = self.newest_charter().into_iter().flat_map(|charter| &charter.organisations);
        all.any(|known| known.name == name)
    }

    /// Makes an amended charter hold, for the first block that the present charter lets it. Gives its height.
    pub fn amend(&mut self, charter: Charter, height: u64) -> u64 {
        // Also the longest of those that will hold meanwhile: until then a block carries this one.
        let pending = self.pending_at(height).map(|amended| &amended.charter);
        let holds = self.charter_at(height).into_iter().chain(pending);
        let delay = holds.map(Charter::amendment_delay_blocks).max().unwrap_or(0);
        let after_last = self.amendments.last().map_or(0, |last| last.effective_height + 1);
        let effective_height = after_last.max(height + delay);
        self.amendments.push(Arc::new(AmendedCharter { charter, effective_height }));
        effective_height
    }

    /// Amendments that are decided and do not hold yet for the block of this height: there must not be more than
    /// [`AMENDMENTS_PENDING_MAX`](limits::AMENDMENTS_PENDING_MAX).
    pub fn pending_at(&self, height: u64) -> impl Iterator<Item = &Arc<AmendedCharter>> {
        self.amendments.iter().filter(move |amended| amended.effective_height > height)
    }

    /// Names all amendments, as outcome headers do ([`AmendedCharter::chain`]).
    pub fn charters_digest(&self, ledger: &Digest) -> Digest {
        self.amendments.iter().fold(*ledger, |digest, amended| amended.chain(&digest))
    }

    /// What members have agreed to take out of the ledger, each with the proposal that it was, by its number.
    pub fn redactions(&self) -> impl Iterator<Item = (&ChangeProposal, &Redaction)> {
        let done = self.proposals.values().filter(|proposal| proposal.has_redacted());
        done.filter_map(|proposal| Some((proposal.as_ref(), proposal.redaction()?)))
    }

    /// The proposal to redact this transaction that was agreed to, or waits for that at this height.
    pub fn redaction_of(&self, transaction: &TransactionId, height: u64) -> Option<&ChangeProposal> {
        let of_transaction = |one: &&Arc<ChangeProposal>| {
            one.redaction().is_some_and(|redaction| redaction.transaction == *transaction)
        };
        let holds = |one: &&Arc<ChangeProposal>| {
            matches!(one.state_at(height), ProposalState::Open | ProposalState::Done)
        };
        self.proposals.values().filter(of_transaction).find(holds).map(Arc::as_ref)
    }

    /// How many proposals of an organisation are open at this height, and their bytes.
    pub fn open_of(&self, organisation: u16, height: u64) -> (usize, usize) {
        let open = self
            .proposals
            .values()
            .filter(|one| one.organisation == organisation && *one.state_at(height) == ProposalState::Open);
        open.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.text_bytes()))
    }

    /// Closes what has expired, and forgets the oldest closed proposals beyond
    /// [`PROPOSALS_CLOSED_MAX`](limits::PROPOSALS_CLOSED_MAX) and
    /// [`PROPOSALS_CLOSED_BYTES_MAX`](limits::PROPOSALS_CLOSED_BYTES_MAX); the ledger has their transactions. Redactions that
    /// were agreed to stay.
    pub fn tidy(&mut self, height: u64) {
        for proposal in self.proposals.values_mut() {
            if proposal.state == ProposalState::Open && height > proposal.expires_at {
                let expired = Arc::make_mut(proposal);
                expired.state = ProposalState::Expired;
                expired.decided_height = Some(expired.expires_at);
            }
        }
        let (mut count, mut bytes) = (0, 0);
        let mut forgotten = Vec::new();
        for (number, proposal) in self.proposals.iter().rev() {
            // What was redacted every node has to know for ever, also one that joins.
            if proposal.state != ProposalState::Open && !proposal.has_redacted() {
                count += 1;
                bytes += proposal.text_bytes();
                if count > limits::PROPOSALS_CLOSED_MAX || bytes > limits::PROPOSALS_CLOSED_BYTES_MAX {
                    forgotten.push(*number);
                }
            }
        }
        forgotten.iter().for_each(|number| drop(self.proposals.remove(number)));
    }
}

/// What holds of positions, of names of members.
fn of_names<'a>(charter: &'a Charter, holds: &'a dyn Fn(u16) -> bool) -> impl Fn(&str) -> bool + 'a {
    move |name| charter.members().any(|(position, one)| one.name == name && holds(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Organisation, decode_exactly, encode};
    use crypto::SecretKey;

    fn governance(rule: &str) -> Governance {
        let mut charter = Charter { governance: rule.into(), ..Charter::with_defaults("test", 7) };
        for number in 1..6_u8 {
            charter.organisations.push(Organisation {
                name: format!("org{number}"),
                root_key: SecretKey::from_bytes([number; 32]).public_key(),
                node_key: SecretKey::from_bytes([number + 100; 32]).public_key(),
                address: String::new(),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        for position in 0..5 {
            charter.sign(position, &SecretKey::from_bytes([position as u8 + 1; 32]));
        }
        Governance::founded(Arc::new(charter))
    }

    fn proposal(number: u64, organisation: u16, sql: &str) -> ChangeProposal {
        ChangeProposal {
            number,
            organisation,
            transaction: TransactionId::default(),
            change: ProposedChange::Script(sql.into()),
            height: 5,
            expires_at: 50,
            approved_by: BTreeSet::from([organisation]),
            rejected_by: BTreeSet::new(),
            state: ProposalState::Open,
            decided_height: None,
        }
    }

    #[test]
    fn the_rule_decides_and_says_who_is_missing() {
        let majority = governance("majority");
        assert!(!majority.is_agreed(1, &|position| position < 2));
        assert!(majority.is_agreed(1, &|position| position < 3));
        assert_eq!(majority.missing(1, &BTreeSet::from([0, 1])), "org3 OR org4 OR org5");
        assert_eq!(majority.missing(1, &BTreeSet::from([0])), "2 of (org2, org3, org4, org5)");
        assert_eq!(majority.missing(1, &BTreeSet::from([0, 1, 4])), "");
        assert!(governance("any").is_agreed(1, &|position| position == 4));
        let both = governance("org1 AND 2 of (org2, org3, org4)");
        assert!(!both.is_agreed(1, &|position| position > 0));
        assert_eq!(both.missing(1, &BTreeSet::from([0, 2])), "org2 OR org4");
        assert!(Governance::default().is_agreed(1, &|_| false), "where there is no charter, nobody governs");
    }

    #[test]
    fn amended_charters_hold_from_their_heights_on_one_after_the_other() {
        let mut governance = governance("majority");
        let change = CharterChange::SetParameter { parameter: "governance".into(), value: "any".into() };
        let next = governance.newest_charter().expect("founded").amended(&change).expect("a charter");
        assert_eq!(governance.amend(next, 7), 7 + 110);
        let change = CharterChange::RemoveOrganisation { name: "org5".into() };
        let next = governance.newest_charter().expect("founded").amended(&change).expect("a charter");
        assert_eq!(governance.amend(next, 7), 7 + 111);
        let version = |height| governance.charter_at(height).expect("founded").version;
        assert_eq!([0, 116, 117, 118, 900].map(version), [0, 0, 1, 2, 2]);
        assert!(!governance.is_agreed(116, &|position| position == 4));
        assert!(governance.is_agreed(117, &|position| position == 4));
        assert!(!governance.is_agreed(118, &|position| position == 4), "it has left");
        assert_eq!(governance.name_of(4), "org5");
        assert_eq!(decode_exactly::<Governance>(&encode(&governance)).expect("canonical"), governance);
    }

    #[test]
    fn proposals_expire_and_old_ones_are_forgotten() {
        let mut governance = governance("majority");
        for number in 1..=400 {
            let mut one = proposal(number, (number % 2) as u16, "CREATE TABLE t ()");
            if number > 10 {
                one.state = ProposalState::Done;
            }
            governance.proposals.insert(number, Arc::new(one));
        }
        assert_eq!(governance.open_of(0, 50), (5, 5 * 17));
        assert_eq!(governance.open_of(0, 51), (0, 0));
        governance.tidy(50);
        assert_eq!(governance.proposals.len(), 10 + limits::PROPOSALS_CLOSED_MAX);
        assert_eq!(governance.proposals[&1].state, ProposalState::Open);
        governance.tidy(51);
        assert_eq!(governance.proposals.len(), limits::PROPOSALS_CLOSED_MAX);
        assert_eq!(governance.proposals.first_key_value().map(|(number, _)| *number), Some(145));
        let long = "x".repeat(limits::PROPOSALS_CLOSED_BYTES_MAX);
        let long = ChangeProposal { state: ProposalState::Rejected, ..proposal(401, 0, &long) };
        governance.proposals.insert(401, Arc::new(long));
        governance.tidy(51);
        assert_eq!(governance.proposals.len(), 1);
    }
}
