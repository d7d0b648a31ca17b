use crate::error::ClientError;
use crate::http::{Http, Spoken};
use crate::trust::Trust;
use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::{RequestBuilder, Response};
use serde::Deserialize;
use std::time::Duration;
use types::{
    AnswerAt, FrameError, Identity, PartSubmission, Presence, Receipt, SUBMISSION_BYTES_MAX,
    SUBMISSION_REPLY_BYTES_MAX, SUBMISSION_TRANSACTIONS_MAX, SignedTransaction, SubmissionReply, encode,
    read_frame, write_frame,
};

/// The part of a node's status that clients need.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Status {
    /// Name of the organisation.
    pub organisation: String,
    /// Digest of the charter.
    pub ledger: String,
    /// Height of the newest applied block.
    pub height: u64,
    /// State digest after it.
    pub state_digest: String,
    /// Up to this height the node's outcomes are those of a quorum of organisations.
    pub certified_height: u64,
    /// Height and state digest of the last blocks, ascending.
    pub recent: Vec<StatusAt>,
    /// Resident memory of the node in bytes.
    pub resident_bytes: u64,
    /// Height of the first block that has its transactions and receipts on this node.
    #[serde(default)]
    pub payloads_from: u64,
    /// Bytes of the files of blocks.
    #[serde(default)]
    pub ledger_bytes: u64,
    /// Where its outcomes were not those of a quorum the last time that this was so, since it started.
    pub diverged: Option<String>,
    /// Why the node does not serve.
    pub not_serving: Option<String>,
    /// What somebody must do before long: node keys that expire soon, or have expired.
    pub warnings: Vec<String>,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// Version of the rules that the next block is executed with.
    #[serde(default)]
    pub execution_version: u32,
    /// The newest version that the program knows.
    #[serde(default)]
    pub execution_version_known: u32,
    /// The members of the newest charter that the node knows.
    #[serde(default)]
    pub members: Vec<MemberStatus>,
    /// The organisation's own database, where it keeps tables in one.
    #[serde(default)]
    pub database: Option<OwnDatabaseStatus>,
    /// Other nodes of the organisation that hold schemas.
    #[serde(default)]
    pub holders: Vec<HolderStatus>,
}

/// A member of the ledger, as one of the nodes knows it.
#[derive(Clone, Debug, Deserialize)]
pub struct MemberStatus {
    /// Name of the organisation.
    pub organisation: String,
    /// Its node key, as hexadecimal text.
    pub node_key: String,
    /// Where the other nodes reach its node.
    pub address: String,
    /// Where its node answers HTTP.
    pub gateway: String,
    /// Whether it is the node that answers.
    pub is_this_node: bool,
    /// Whether the node that answers is connected with it, and it has proved its node key.
    pub connected: bool,
    /// The newest height that it has attested, as far as that node knows.
    pub height: Option<u64>,
}

/// Another node of an organisation, which holds schemas.
#[derive(Clone, Debug, Deserialize)]
pub struct HolderStatus {
    /// What it is called.
    pub name: String,
    /// Where it listens for the organisation's member.
    pub address: String,
    /// The schemas that it holds.
    pub schemas: Vec<String>,
    /// Rows that it had at the end of the last block.
    pub rows: Option<u64>,
}

/// How far an organisation's own database is.
#[derive(Clone, Debug, Deserialize)]
pub struct OwnDatabaseStatus {
    /// `postgres` or `mariadb`.
    pub kind: String,
    /// It has everything up to this height.
    pub height: u64,
    /// Certified blocks that it does not have yet.
    pub lag_blocks: u64,
    /// `connecting`, `filling`, `following`, `waiting` or `refused`.
    pub state: String,
    /// Why it waits or is refused.
    pub problem: Option<String>,
    /// Rows that somebody else has changed there, each put right.
    pub strange_rows: u64,
}

/// The state digest after a block.
#[derive(Clone, Debug, Deserialize)]
pub struct StatusAt {
    /// The height.
    pub height: u64,
    /// The digest.
    pub state_digest: String,
}

/// A connection pool to one organisation's gateway.
#[derive(Clone)]
pub struct Client {
    http: Http,
    identity: Identity,
    answer_at: Option<AnswerAt>,
}

impl Client {
    /// A client of the gateway at `url`, for example `http://127.0.0.1:7301`. With `https://` its certificate must be from an authority
    /// that this machine trusts; [`Client::trusting`] says otherwise.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn new(url: &str, identity: Identity) -> Result<Client, ClientError> {
        Client::trusting(url, &Trust::System, identity)
    }

    /// A client of the gateway at `address`, as charters write it, who must be whom `trust` says. `host:port` is asked over TLS; in plain
    /// text only where `trust` is a node key and the node knows no TLS, and where it is what the system trusts.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn trusting(address: &str, trust: &Trust, identity: Identity) -> Result<Client, ClientError> {
        Ok(Client { http: Http::new(address, trust)?, identity, answer_at: None })
    }

    /// Receipts come at this moment, not at that which the node's operator has chosen.
    pub fn answered_at(self, moment: AnswerAt) -> Client {
        Client { answer_at: Some(moment), ..self }
    }

    /// Who signs.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The gateway's address.
    pub fn url(&self) -> &str {
        self.http.address()
    }

    /// How the gateway answers, as far as it has.
    pub fn spoken(&self) -> Spoken {
        self.http.spoken()
    }

    async fn checked(
        &self,
        request: impl Fn(&reqwest::Client, &str) -> RequestBuilder,
    ) -> Result<Response, ClientError> {
        let response = self.http.send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let message = response.text().await.map_err(|error| self.http.failed(error))?;
        Err(ClientError::Refused { status, message })
    }

    /// Gets what is at a path, within this time.
    async fn get(&self, path: &str, within: Duration) -> Result<Response, ClientError> {
        self.checked(|http, url| http.get(format!("{url}{path}")).timeout(within)).await
    }

    /// Height, digests and health of the node.
    ///
    /// # Errors
    /// The gateway does not answer, or not with a status.
    pub async fn status(&self) -> Result<Status, ClientError> {
        let response = self.get("/status", Duration::from_secs(10)).await?;
        response.json().await.map_err(|error| self.http.failed(error))
    }

    /// Who answers, and what its clock shows: the signature has been checked, whose key it is has not.
    ///
    /// # Errors
    /// The gateway does not answer, or not with a signed answer to this question.
    pub async fn presence(&self) -> Result<Presence, ClientError> {
        let question = crypto::Digest(crypto::random_bytes());
        let response = self.get(&format!("/v1/presence/{question}"), Duration::from_secs(5)).await?;
        let presence: Presence = response.json().await.map_err(|error| self.http.failed(error))?;
        match presence.answers(&question) {
            true => Ok(presence),
            false => Err(ClientError::Reply("its signature is not under this answer".to_string())),
        }
    }

    /// The gateway's metrics, in the text format of Prometheus.
    ///
    /// # Errors
    /// The gateway does not answer.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let response = self.get("/metrics", Duration::from_secs(10)).await?;
        response.text().await.map_err(|error| self.http.failed(error))
    }

    /// Submits transactions that are signed; receipts come as they become final, in any order.
    ///
    /// # Errors
    /// Too many transactions, no connection, or the gateway refuses the request as a whole.
    pub async fn submit(&self, transactions: &[SignedTransaction]) -> Result<Replies, ClientError> {
        let frames = transactions.iter().map(SignedTransaction::to_bytes);
        self.post("transactions", frames, transactions.len()).await
    }

    /// Submits transactions in schemas with members to the node of one of them, which hands the parts to the others. A receipt says
    /// what came of the part.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn submit_parts(&self, submissions: &[PartSubmission]) -> Result<Replies, ClientError> {
        self.post("parts", submissions.iter().map(encode), submissions.len()).await
    }

    async fn post(
        &self,
        what: &str,
        frames: impl Iterator<Item = Vec<u8>>,
        count: usize,
    ) -> Result<Replies, ClientError> {
        let mut body = Vec::new();
        for frame in frames {
            write_frame(&mut body, &frame);
        }
        if count > SUBMISSION_TRANSACTIONS_MAX || body.len() > SUBMISSION_BYTES_MAX {
            return Err(ClientError::TooLarge { transactions: count, bytes: body.len() });
        }
        let moment =
            self.answer_at.map_or_else(String::new, |moment| format!("?answer_at={}", moment.name()));
        let body = Bytes::from(body);
        let request = |http: &reqwest::Client, url: &str| {
            http.post(format!("{url}/v1/{what}{moment}")).body(body.clone())
        };
        let response = self.checked(request).await?;
        Ok(Replies {
            http: self.http.clone(),
            stream: response.bytes_stream().boxed(),
            buffer: BytesMut::new(),
            missing: count,
        })
    }

    /// Submits one transaction and waits for its receipt.
    ///
    /// # Errors
    /// As [`Client::submit`]; a refusal is [`ClientError::Refused`] with status 0.
    pub async fn execute(&self, transaction: &SignedTransaction) -> Result<Receipt, ClientError> {
        let mut replies = self.submit(std::slice::from_ref(transaction)).await?;
        match replies.next().await? {
            Some(reply) => reply
                .result
                .map_err(|refusal| ClientError::Refused { status: 0, message: refusal.to_string() }),
            None => Err(ClientError::Reply("the stream ended before the receipt".to_string())),
        }
    }
}

/// The replies to one submission, as they arrive.
pub struct Replies {
    http: Http,
    stream: BoxStream<'static, reqwest::Result<Bytes>>,
    buffer: BytesMut,
    missing: usize,
}

impl Replies {
    /// The next reply; `None` after the last.
    ///
    /// # Errors
    /// The connection broke: what has no reply may still commit; submit the same transactions again.
    pub async fn next(&mut self) -> Result<Option<SubmissionReply>, ClientError> {
        let malformed = |error: FrameError| ClientError::Reply(error.to_string());
        loop {
            if self.missing == 0 {
                return Ok(None);
            }
            let mut rest: &[u8] = &self.buffer;
            if let Some(content) = read_frame(&mut rest, SUBMISSION_REPLY_BYTES_MAX).map_err(malformed)? {
                let reply = SubmissionReply::from_bytes(content)
                    .map_err(|error| ClientError::Reply(error.to_string()))?;
                let read = self.buffer.len() - rest.len();
                self.buffer.advance(read);
                self.missing -= 1;
                return Ok(Some(reply));
            }
            match self.stream.next().await {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(&chunk),
                Some(Err(error)) => return Err(self.http.failed(error)),
                None => {
                    return Err(ClientError::Reply(format!("{} replies are missing", self.missing)));
                }
            }
        }
    }
}
