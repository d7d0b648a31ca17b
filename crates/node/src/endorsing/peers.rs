use crate::NodeError;
use client::{ClientError, Endorser};
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use types::{Charter, ProposalReply, ProposalRequest};

/// How long another organisation's endorser may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// How long one that has failed is asked only where nobody else will do.
const AVOIDED_FOR: Duration = Duration::from_secs(5);

/// The other organisations' endorsers.
pub(crate) struct Peers {
    /// By position in the charter; `None`: it has no address there, or is this node's organisation.
    peers: Vec<Option<Peer>>,
}

struct Peer {
    endorser: Endorser,
    avoided_until: Mutex<Option<Instant>>,
}

impl Peers {
    /// As the charter says where they are.
    pub(crate) fn new(charter: &Charter, own: usize) -> Result<Peers, NodeError> {
        let peer = |(position, gateway): (usize, &str)| {
            if position == own || gateway.is_empty() {
                return Ok(None);
            }
            let endorser = Endorser::new(&format!("http://{gateway}")).map_err(|error| {
                NodeError::Endorser { gateway: gateway.to_string(), reason: error.to_string() }
            })?;
            Ok(Some(Peer { endorser, avoided_until: Mutex::new(None) }))
        };
        let gateways = charter.organisations.iter().map(|organisation| organisation.gateway.as_str());
        Ok(Peers { peers: gateways.enumerate().map(peer).collect::<Result<_, NodeError>>()? })
    }

    /// Positions of those that can be asked, by preference: in turn from `first`, and last those that have failed a moment
    /// ago.
    pub(crate) fn by_preference(&self, first: usize) -> Vec<u16> {
        let (now, count) = (Instant::now(), self.peers.len());
        let in_turn = (0..count).map(|offset| (first + offset) % count);
        let (avoided, good): (Vec<usize>, Vec<usize>) =
            in_turn.filter(|position| self.peers[*position].is_some()).partition(|position| {
                self.peers[*position]
                    .as_ref()
                    .and_then(|peer| *peer.avoided_until.lock())
                    .is_some_and(|until| now < until)
            });
        good.into_iter().chain(avoided).map(|position| position as u16).collect()
    }

    /// Asks one; says for people why there is no answer.
    pub(crate) async fn ask(
        &self,
        organisation: u16,
        request: &ProposalRequest,
    ) -> Result<ProposalReply, String> {
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
            Err(other) => Err(other.to_string()),
        };
        if reply.is_err() {
            self.avoid(organisation);
        }
        reply
    }

    /// One has failed, forged, or found something else: it is asked last for a while.
    pub(crate) fn avoid(&self, organisation: u16) {
        if let Some(Some(peer)) = self.peers.get(usize::from(organisation)) {
            *peer.avoided_until.lock() = Some(Instant::now() + AVOIDED_FOR);
        }
    }
}
