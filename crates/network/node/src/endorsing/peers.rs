use super::gather::Others;
use crate::NodeError;
use crate::charters::DecidedCharters;
use client::{ClientError, Endorser, NodeKey, Trust};
use crypto::PublicKey;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Charter, Organisation, ProposalReply, ProposalRequest};

/// How long another organisation's endorser may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// How long one that has failed is asked only where nobody else will do.
const AVOIDED_FOR: Duration = Duration::from_secs(5);

/// Who endorses, as the charter of a height says.
pub(crate) struct Peers {
    charters: Arc<DecidedCharters>,
    own: Own,
    last: RwLock<Arc<Endorsers>>,
}

/// This node: position of its organisation, and its key, which the charter may have replaced.
pub(crate) type Own = (u16, PublicKey);

/// Who endorses under one charter.
pub(crate) struct Endorsers {
    version: u64,
    /// Whose endorsements count, by position: keys expire.
    signs: Vec<bool>,
    /// Names of the organisations, by position.
    names: Vec<String>,
    /// Position of this node's organisation, where its key is the one that counts.
    own: Option<u16>,
    /// By position in the charter; `None`: it has no address there, has left, or is this node's organisation.
    peers: Vec<Option<Peer>>,
}

struct Peer {
    endorser: Endorser,
    gateway: String,
    node_key: PublicKey,
    avoided_until: Mutex<Option<Instant>>,
}

fn signing(charter: &Charter, height: u64) -> Vec<bool> {
    (0..charter.organisations.len()).map(|position| charter.signs_at(position, height)).collect()
}

impl Peers {
    /// As the charter of this height says, and of later ones as they come.
    pub(crate) fn new(charters: Arc<DecidedCharters>, own: Own, height: u64) -> Peers {
        let first = Endorsers::new(&charters.at(height), height, own);
        Peers { charters, own, last: RwLock::new(Arc::new(first)) }
    }

    /// Whose endorsements count in the block of this height.
    pub(crate) fn at(&self, height: u64) -> Arc<Endorsers> {
        let charter = self.charters.at(height);
        let known = self.last.read().clone();
        if known.version == charter.version && known.signs == signing(&charter, height) {
            return known;
        }
        let mut endorsers = Endorsers::new(&charter, height, self.own);
        endorsers.remember(&known);
        let endorsers = Arc::new(endorsers);
        *self.last.write() = endorsers.clone();
        endorsers
    }
}

impl Endorsers {
    fn new(charter: &Charter, height: u64, (own, own_key): Own) -> Endorsers {
        let signs = signing(charter, height);
        let peer = |(position, organisation): (usize, &Organisation)| {
            let (gateway, node_key) = (organisation.gateway.clone(), organisation.node_key);
            if position == usize::from(own) || !signs[position] || gateway.is_empty() {
                return None;
            }
            // Who has another key than the charter of this height says gives no endorsement that counts, and learns nothing.
            let whom = Trust::NodeKey(NodeKey::of(charter, position)?);
            match Endorser::trusting(&gateway, &whom) {
                Ok(endorser) => Some(Peer { endorser, gateway, node_key, avoided_until: Mutex::new(None) }),
                Err(error) => {
                    let error = NodeError::Endorser { gateway, reason: error.to_string() };
                    tracing::warn!(%error, organisation = organisation.name, "an endorser cannot be asked");
                    None
                }
            }
        };
        let is_own = |member: &usize| *member == usize::from(own) && signs[*member];
        Endorsers {
            version: charter.version,
            names: charter.organisations.iter().map(|organisation| organisation.name.clone()).collect(),
            own: charter.member(&own_key).filter(is_own).map(|_| own),
            peers: charter.organisations.iter().enumerate().map(peer).collect(),
            signs,
        }
    }

    /// Who has failed a moment ago is avoided as before, and connections with who stays the same stay open.
    fn remember(&mut self, before: &Endorsers) {
        for (new, known) in self.peers.iter_mut().zip(&before.peers) {
            if let (Some(new), Some(known)) = (new, known)
                && (&new.gateway, new.node_key) == (&known.gateway, known.node_key)
            {
                new.endorser = known.endorser.clone();
                *new.avoided_until.get_mut() = *known.avoided_until.lock();
            }
        }
    }

    /// The same, of whom another one is asked first at every turn.
    pub(crate) fn in_turn(&self, turn: usize) -> InTurn<'_> {
        InTurn { endorsers: self, turn }
    }

    /// Positions of those that can be asked, by preference: this node, then the others in turn, beginning behind it with
    /// the one of number `turn`, and last those that have failed a moment ago.
    fn by_preference(&self, turn: usize) -> Vec<u16> {
        let (now, count) = (Instant::now(), self.peers.len());
        let first = usize::from(self.own.unwrap_or(0)) + 1 + turn % count.saturating_sub(1).max(1);
        let in_turn = (0..count).map(|offset| (first + offset) % count);
        let (avoided, good): (Vec<usize>, Vec<usize>) =
            in_turn.filter(|position| self.peers[*position].is_some()).partition(|position| {
                self.peers[*position]
                    .as_ref()
                    .and_then(|peer| *peer.avoided_until.lock())
                    .is_some_and(|until| now < until)
            });
        let others = good.into_iter().chain(avoided).map(|position| position as u16);
        self.own.into_iter().chain(others).collect()
    }

    async fn ask(&self, organisation: u16, request: &ProposalRequest) -> Result<ProposalReply, String> {
        let Some(Some(peer)) = self.peers.get(usize::from(organisation)) else {
            return Err("the charter does not say where it endorses".to_string());
        };
        let asked = peer.endorser.propose(request, ANSWER_WITHIN).await;
        let reply = match asked {
            Ok(reply @ ProposalReply::Answers { .. }) => Ok(reply),
            Ok(ProposalReply::NoSuchState { oldest, newest }) => {
                let asked = request.height.unwrap_or(0);
                Err(format!("it has the states of heights {oldest} to {newest}, not that of {asked}"))
            }
            Err(ClientError::Connection { error, .. }) if error.is_timeout() => {
                Err(format!("it does not answer within {} s", ANSWER_WITHIN.as_secs()))
            }
            Err(ClientError::Connection { .. }) => Err("it cannot be reached".to_string()),
            Err(ClientError::OtherKey { other, .. }) => Err(other.to_string()),
            Err(other) => Err(other.to_string()),
        };
        if reply.is_err() {
            self.avoid(organisation);
        }
        reply
    }

    /// One has failed, forged, or found something else: it is asked last for a while.
    fn avoid(&self, organisation: u16) {
        if let Some(Some(peer)) = self.peers.get(usize::from(organisation)) {
            *peer.avoided_until.lock() = Some(Instant::now() + AVOIDED_FOR);
        }
    }
}

/// Whom one batch asks.
pub(crate) struct InTurn<'a> {
    endorsers: &'a Endorsers,
    turn: usize,
}

impl Others for InTurn<'_> {
    fn names(&self) -> &[String] {
        &self.endorsers.names
    }

    fn preference(&self) -> Vec<u16> {
        self.endorsers.by_preference(self.turn)
    }

    async fn ask(&self, organisation: u16, request: &ProposalRequest) -> Result<ProposalReply, String> {
        self.endorsers.ask(organisation, request).await
    }

    fn avoid(&self, organisation: u16) {
        self.endorsers.avoid(organisation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;
    use types::CharterChange;

    fn key(number: u8) -> PublicKey {
        SecretKey::from_bytes([number; 32]).public_key()
    }

    fn charter() -> Charter {
        let mut charter = Charter::with_defaults("test", 1);
        charter.organisations = (0..5_u8)
            .map(|position| Organisation {
                name: format!("org{}", position + 1),
                root_key: key(position + 100),
                node_key: key(position),
                address: format!("127.0.0.1:{}", 7_000 + u16::from(position)),
                gateway: format!("127.0.0.1:{}", 7_200 + u16::from(position)),
                removed: false,
                node_key_expires: None,
            })
            .collect();
        charter
    }

    #[test]
    fn members_whose_keys_count_are_asked_and_nobody_else() {
        let founding = charter();
        let asked = |charter: &Charter, height, own: Own| {
            let mut asked = Endorsers::new(charter, height, own).by_preference(0);
            let first = asked.remove(0);
            asked.sort_unstable();
            asked.insert(0, first);
            asked
        };
        let own = (1, key(1));
        assert_eq!(asked(&founding, 7, own), [1, 0, 2, 3, 4]);
        let removed = CharterChange::RemoveOrganisation { name: "org5".to_string() };
        let without = founding.amended(&removed).expect("a member");
        assert_eq!(asked(&without, 7, own), [1, 0, 2, 3]);
        // Its key has expired; another one has another key.
        let (name, node_key) = ("org3".to_string(), key(42));
        let replaced = CharterChange::ReplaceNodeKey { name, node_key, expires: Some(9) };
        let expiring = founding.amended(&replaced).expect("a member");
        assert_eq!(asked(&expiring, 9, own), [1, 0, 2, 3, 4]);
        assert_eq!(asked(&expiring, 10, own), [1, 0, 3, 4]);
        let stranger = Endorsers::new(&expiring, 9, (2, key(2)));
        let mut others = stranger.by_preference(3);
        others.sort_unstable();
        assert_eq!(others, [0, 1, 3, 4], "the own key does not count any more");
    }

    #[test]
    fn who_has_failed_is_asked_last_also_under_the_next_charter() {
        let founding = charter();
        let endorsers = Endorsers::new(&founding, 1, (0, key(0)));
        endorsers.avoid(1);
        assert_eq!(endorsers.by_preference(0), [0, 2, 3, 4, 1]);
        let change = CharterChange::RemoveOrganisation { name: "org3".to_string() };
        let mut next = Endorsers::new(&founding.amended(&change).expect("a member"), 2, (0, key(0)));
        next.remember(&endorsers);
        assert_eq!(next.by_preference(0), [0, 3, 4, 1]);
        // With another key it is another node.
        let (name, node_key) = ("org2".to_string(), key(42));
        let change = CharterChange::ReplaceNodeKey { name, node_key, expires: None };
        let mut next = Endorsers::new(&founding.amended(&change).expect("a member"), 2, (0, key(0)));
        next.remember(&endorsers);
        assert_eq!(next.by_preference(0), [0, 1, 2, 3, 4]);
    }
}
