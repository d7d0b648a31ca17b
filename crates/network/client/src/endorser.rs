//! One organisation's endorsement service, and how a client that asks several puts their answers together.

use crate::error::ClientError;
use crate::http::Http;
use crate::trust::Trust;
use bytes::Bytes;
use crypto::Digest;
use futures::StreamExt;
use futures::future::join_all;
use std::time::Duration;
use types::{
    EndorsedSimulation, Proposal, ProposalAnswer, ProposalRefusal, ProposalReply, ProposalRequest,
    SignedTransaction,
};

/// Bytes of an endorser's answer beside [`ANSWER_BYTES_MAX`] for each proposal: room for effects that were not expected. What
/// is decoded takes up to 24 times as much memory.
const REPLY_BYTES_MAX: usize = 256 * 1024;
const ANSWER_BYTES_MAX: usize = 2 * 1024;
/// Bytes of a refusal.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;
/// How long an endorser may take to answer [`endorse`].
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The node of an organisation, asked to endorse.
#[derive(Clone)]
pub struct Endorser {
    http: Http,
}

impl Endorser {
    /// The endorser whose gateway is at `url`, for example `http://127.0.0.1:7301`.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn new(url: &str) -> Result<Endorser, ClientError> {
        Endorser::trusting(url, &Trust::System)
    }

    /// The endorser whose gateway is at `address`, as charters write it, and who must be whom `trust` says
    /// ([`Client::trusting`](crate::Client::trusting)).
    ///
    /// # Errors
    /// As [`Endorser::new`].
    pub fn trusting(address: &str, trust: &Trust) -> Result<Endorser, ClientError> {
        Ok(Endorser { http: Http::new(address, trust)? })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        self.http.address()
    }

    /// Sends proposals and waits for the answer, `within` this time.
    ///
    /// # Errors
    /// It does not answer in time, refuses the request as a whole (status 503: it has too much to do), or its answer is
    /// none.
    pub async fn propose(
        &self,
        request: &ProposalRequest,
        within: Duration,
    ) -> Result<ProposalReply, ClientError> {
        let body = Bytes::from(request.to_bytes());
        let posted = |http: &reqwest::Client, url: &str| {
            http.post(format!("{url}/v1/proposals")).timeout(within).body(body.clone())
        };
        let response = self.http.send(posted).await?;
        let status = response.status();
        if !status.is_success() {
            let message = self.body(response, REFUSAL_BYTES_MAX).await?;
            let message = String::from_utf8_lossy(&message).into_owned();
            return Err(ClientError::Refused { status: status.as_u16(), message });
        }
        let limit = REPLY_BYTES_MAX + request.proposals.len() * ANSWER_BYTES_MAX;
        let bytes = self.body(response, limit).await?;
        let expected = request.proposals.len();
        let reply = ProposalReply::from_bytes(&bytes, expected)
            .map_err(|error| ClientError::Reply(error.to_string()))?;
        match &reply {
            ProposalReply::Answers { answers, .. } if answers.len() != expected => {
                let found = answers.len();
                Err(ClientError::Reply(format!("expected {expected} answers, found {found}")))
            }
            _ => Ok(reply),
        }
    }
}

impl Endorser {
    /// The body of a response that may be of any length.
    async fn body(&self, response: reqwest::Response, limit: usize) -> Result<Vec<u8>, ClientError> {
        let (mut bytes, mut chunks) = (Vec::new(), response.bytes_stream());
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| self.http.failed(error))?);
            if bytes.len() > limit {
                return Err(ClientError::Reply(format!("it has more than {limit} bytes")));
            }
        }
        Ok(bytes)
    }
}

/// Why a transaction was not endorsed.
#[derive(Debug, thiserror::Error)]
pub enum EndorseError {
    /// An endorser did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An endorser refuses it.
    #[error("{url}: {refusal}")]
    Refused {
        /// Who.
        url: String,
        /// Why.
        refusal: ProposalRefusal,
    },
    /// An endorser does not have the state that the first one has executed on.
    #[error(
        "{url} stands at height {newest} (and keeps states from {oldest}), the first endorser at {asked}; try again"
    )]
    NoSuchState {
        /// Who.
        url: String,
        /// The height that it was asked for.
        asked: u64,
        /// The oldest that it has.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// Two endorsers say different things.
    #[error("{first} and {second} found different effects after the same block: {difference}")]
    Diverging {
        /// Who answered first.
        first: String,
        /// Who found something else.
        second: String,
        /// What differs.
        difference: String,
    },
    /// None was named.
    #[error("expected at least one endorser, found none")]
    NoEndorsers,
}

/// Has a transaction endorsed by all of these, which should satisfy its policy: the first executes it on its newest
/// state, the others on the same. What comes back is ready to be submitted anywhere.
///
/// # Errors
/// Who did not endorse it, and why.
pub async fn endorse(
    mut transaction: SignedTransaction,
    endorsers: &[Endorser],
) -> Result<SignedTransaction, EndorseError> {
    let (first, others) = endorsers.split_first().ok_or(EndorseError::NoEndorsers)?;
    transaction.endorsed = None;
    let bytes = transaction.to_bytes();
    let ask = async |endorser: &Endorser, height: Option<u64>, expected: Option<Digest>| {
        let proposals = vec![Proposal { transaction: bytes.clone(), expected }];
        let reply = endorser.propose(&ProposalRequest { height, proposals }, ANSWER_WITHIN).await?;
        let url = endorser.url().to_string();
        match reply {
            ProposalReply::Answers { height, mut answers } => match answers.pop() {
                Some(Ok(answer)) => Ok((height, answer)),
                Some(Err(refusal)) => Err(EndorseError::Refused { url, refusal }),
                None => Err(ClientError::Reply("expected one answer, found none".to_string()).into()),
            },
            ProposalReply::NoSuchState { oldest, newest } => {
                Err(EndorseError::NoSuchState { url, asked: height.unwrap_or(0), oldest, newest })
            }
        }
    };
    let (height, effects, endorsement) = match ask(first, None, None).await? {
        (height, ProposalAnswer::Found { effects, endorsement }) => (height, effects, endorsement),
        (_, ProposalAnswer::Agreed(_)) => {
            return Err(ClientError::Reply("expected effects, found agreement with nothing".into()).into());
        }
    };
    let mut endorsements = vec![endorsement];
    let expected = Some(effects.digest());
    for (endorser, answer) in
        others.iter().zip(join_all(others.iter().map(|other| ask(other, Some(height), expected))).await)
    {
        match answer? {
            (_, ProposalAnswer::Agreed(endorsement)) => endorsements.push(endorsement),
            (_, ProposalAnswer::Found { effects: found, .. }) => {
                return Err(EndorseError::Diverging {
                    first: first.url().to_string(),
                    second: endorser.url().to_string(),
                    difference: effects
                        .difference(&found, &|table| format!("table {}", table.0))
                        .unwrap_or_default(),
                });
            }
        }
    }
    transaction.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
    Ok(transaction)
}
