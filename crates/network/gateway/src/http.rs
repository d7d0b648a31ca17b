//! HTTP: health, status, metrics, and the door for clients that hold their own key.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /health` | 200 `ok`, or 503 and why the node does not serve |
//! | `GET /status` | [`NodeStatus`](crate::NodeStatus) as JSON |
//! | `GET /metrics` | Prometheus text |
//! | `GET /v1/presence/{question}` | who answers and what its clock shows, signed with the node key: [`Presence`](types::Presence) as JSON; the question is 64 hexadecimal digits |
//! | `POST /v1/transactions` | body: frames ([`types::write_frame`]) with canonical bytes of signed transactions; answer: frames with [`SubmissionReply`](types::SubmissionReply)s, streamed as they become final and are attested; with `?answer_at=recorded` as they are on the node's disk |
//! | `POST /v1/parts` | the same for transactions in schemas with members: frames with [`types::PartSubmission`]s |
//! | `POST /v1/proposals` | body: a [`ProposalRequest`]; answer: a [`ProposalReply`](types::ProposalReply), both in the canonical encoding |
//! | `GET /v1/receipts/{id}` | the receipt as JSON; 404 while there is none |
//! | `GET /v1/proofs/receipts/{id}` | what proves it, as JSON; 404 while there is none |

use crate::{Database, limits};
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::StreamExt;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use types::{
    AnswerAt, Notification, Notifications, Outcome, PROPOSALS_MAX, PartSubmission, ProposalRequest, Receipt,
    SUBMISSION_BYTES_MAX, SUBMISSION_TRANSACTIONS_MAX, SqlError, SqlState, StatementResult, SubmissionReply,
    TransactionId, Value, decode_exactly, format_value, frame_ranges,
};

/// Where transactions are submitted.
const SUBMISSIONS: &str = "/v1/transactions";
/// Where transactions in schemas with members are submitted.
const PARTS: &str = "/v1/parts";
/// Where endorsements are asked for.
const PROPOSALS: &str = "/v1/proposals";
/// Media type of frames and messages.
const FRAMES: &str = "application/octet-stream";

#[derive(Clone)]
struct Door {
    database: Arc<dyn Database>,
    requests: Arc<Semaphore>,
    /// Those that submit: they last until everything is answered, and what a node says of itself is to be had meanwhile.
    submissions: Arc<Semaphore>,
    /// Those that ask for endorsements: requests of clients wait for them at other nodes.
    proposals: Arc<Semaphore>,
}

/// What answers requests.
pub(crate) fn router(database: Arc<dyn Database>) -> Router {
    let door = Door {
        database,
        requests: Arc::new(Semaphore::new(limits::HTTP_REQUESTS_MAX)),
        submissions: Arc::new(Semaphore::new(limits::HTTP_SUBMISSIONS_MAX)),
        proposals: Arc::new(Semaphore::new(limits::HTTP_PROPOSALS_MAX)),
    };
    Router::new()
        .route("/health", get(health))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/v1/presence/{question}", get(presence))
        .route(SUBMISSIONS, post(submit))
        .route(PARTS, post(submit_parts))
        .route(PROPOSALS, post(propose))
        .route("/v1/receipts/{id}", get(receipt))
        .route("/v1/proofs/receipts/{id}", get(receipt_proof))
        .route("/v1/proofs/rows/{table}/{*key}", get(row_proof))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(SUBMISSION_BYTES_MAX))
        .layer(middleware::from_fn_with_state(door.clone(), admit))
        .with_state(door)
}

fn text(status: StatusCode, text: impl Into<String>) -> Response {
    let mut text = text.into();
    text.push('\n');
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// Refuses what is beyond the number of requests, except the question whether the node is well.
async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response {
    if request.uri().path() == "/health" {
        return next.run(request).await;
    }
    let (permits, limit, constant) = match request.uri().path() {
        SUBMISSIONS | PARTS => (&door.submissions, limits::HTTP_SUBMISSIONS_MAX, "HTTP_SUBMISSIONS_MAX"),
        PROPOSALS => (&door.proposals, limits::HTTP_PROPOSALS_MAX, "HTTP_PROPOSALS_MAX"),
        _ => (&door.requests, limits::HTTP_REQUESTS_MAX, "HTTP_REQUESTS_MAX"),
    };
    let Ok(permit) = permits.clone().try_acquire_owned() else {
        let message = format!("too many requests at the same time: at most {limit} ({constant})");
        return text(StatusCode::SERVICE_UNAVAILABLE, message);
    };
    let response = next.run(request).await;
    // The permit lasts as long as the answer streams.
    response.map(|body| {
        Body::from_stream(body.into_data_stream().map(move |chunk| {
            let _held = &permit;
            chunk
        }))
    })
}

async fn unknown() -> Response {
    text(
        StatusCode::NOT_FOUND,
        "unknown path; there are GET /health, GET /status, GET /metrics, POST /v1/transactions, POST /v1/parts, POST /v1/proposals, GET /v1/presence/{question}, GET /v1/receipts/{id} and GET /v1/proofs/receipts/{id}",
    )
}

async fn health(State(door): State<Door>) -> Response {
    match door.database.status().not_serving {
        None => text(StatusCode::OK, "ok"),
        Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, reason),
    }
}

async fn status(State(door): State<Door>) -> Response {
    Json(door.database.status()).into_response()
}

async fn presence(State(door): State<Door>, Path(question): Path<String>) -> Response {
    match question.parse() {
        Ok(question) => Json(door.database.presence(&question)).into_response(),
        Err(_) => text(StatusCode::BAD_REQUEST, "expected a question of 64 hexadecimal digits"),
    }
}

async fn metrics(State(door): State<Door>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], door.database.metrics()).into_response()
}

/// The body of a request, or the answer to one that has none.
async fn body_of(request: Request) -> Result<Bytes, Response> {
    let reading = axum::body::to_bytes(request.into_body(), SUBMISSION_BYTES_MAX);
    match tokio::time::timeout(limits::HTTP_BODY_TIME_MAX, reading).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => {
            let message = format!(
                "the body could not be read ({error}); at most {SUBMISSION_BYTES_MAX} bytes (SUBMISSION_BYTES_MAX)"
            );
            Err(text(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

async fn propose(State(door): State<Door>, request: Request) -> Response {
    let body = match body_of(request).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let request = match ProposalRequest::from_bytes(&body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("expected the canonical encoding of a request for endorsement: {error}");
            return text(StatusCode::BAD_REQUEST, message);
        }
    };
    if request.proposals.is_empty() {
        let message = format!("expected 1 to {PROPOSALS_MAX} proposals (PROPOSALS_MAX), found none");
        return text(StatusCode::BAD_REQUEST, message);
    }
    match door.database.endorse(request).await {
        Ok(reply) => ([(header::CONTENT_TYPE, FRAMES)], reply.to_bytes()).into_response(),
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, error.message),
    }
}

async fn submit(State(door): State<Door>, request: Request) -> Response {
    let (frames, answer_at) = match submitted(&door, request).await {
        Ok(submitted) => submitted,
        Err(refusal) => return refusal,
    };
    streamed(door.database.submit(frames, answer_at).await)
}

async fn submit_parts(State(door): State<Door>, request: Request) -> Response {
    let (frames, answer_at) = match submitted(&door, request).await {
        Ok(submitted) => submitted,
        Err(refusal) => return refusal,
    };
    let read: Result<Vec<PartSubmission>, std::io::Error> =
        frames.iter().map(|frame| decode_exactly(frame)).collect();
    match read {
        Ok(submissions) => streamed(door.database.submit_parts(submissions, answer_at).await),
        Err(error) => {
            let message = format!("expected the canonical encoding of a transaction with its part: {error}");
            text(StatusCode::BAD_REQUEST, message)
        }
    }
}

/// Replies, as they come.
fn streamed(mut replies: mpsc::Receiver<SubmissionReply>) -> Response {
    let frames = futures::stream::poll_fn(move |context| {
        replies
            .poll_recv(context)
            .map(|reply| reply.map(|reply| Ok::<_, std::convert::Infallible>(reply.to_frame())))
    });
    ([(header::CONTENT_TYPE, FRAMES)], Body::from_stream(frames)).into_response()
}

/// The frames of a submission, and when they are answered; or the answer to one that cannot be.
async fn submitted(door: &Door, request: Request) -> Result<(Vec<Bytes>, AnswerAt), Response> {
    let asked = request.uri().query().map(|query| query.strip_prefix("answer_at=").unwrap_or(query));
    let answer_at = match asked.map(AnswerAt::from_name) {
        None => door.database.answer_at(),
        Some(Some(moment)) => moment,
        Some(None) => {
            let message = "expected ?answer_at=attested, ?answer_at=recorded or nothing";
            return Err(text(StatusCode::BAD_REQUEST, message));
        }
    };
    if let Err(error) = door.database.serving() {
        return Err(text(StatusCode::SERVICE_UNAVAILABLE, error.message));
    }
    let body = body_of(request).await?;
    match frame_ranges(&body) {
        Ok(ranges) if ranges.is_empty() => Err(text(StatusCode::BAD_REQUEST, framing("the body is empty"))),
        Ok(ranges) => Ok((ranges.into_iter().map(|range| body.slice(range)).collect(), answer_at)),
        Err(error) => Err(text(StatusCode::BAD_REQUEST, framing(&error.to_string()))),
    }
}

fn framing(what: &str) -> String {
    format!(
        "{what}; expected one frame per transaction, at most {SUBMISSION_TRANSACTIONS_MAX}: \
         its length as u32 little-endian, then the canonical bytes of the signed transaction"
    )
}

async fn receipt(State(door): State<Door>, Path(id): Path<String>) -> Response {
    let read = |database: Arc<dyn Database>, id: TransactionId| {
        let missing = || {
            let unknown =
                || format!("no receipt of transaction {id} here: it is not final, or was never sent");
            database.redacted(&id).map_or_else(unknown, |redacted| redacted.message)
        };
        database.receipt(&id).map(|receipt| receipt_json(&receipt).to_string()).ok_or_else(missing)
    };
    about_transaction(door, &id, read).await
}

async fn receipt_proof(State(door): State<Door>, Path(id): Path<String>) -> Response {
    let read = |database: Arc<dyn Database>, id| database.receipt_proof(&id).map_err(|error| error.message);
    about_transaction(door, &id, read).await
}

/// The role that has what is granted to everybody, and nothing else: no role can have this name.
const PUBLIC: &str = "public";

/// The table's name, and the values of its primary key, one per part of the path, each percent-encoded. Nobody says
/// who asks: only what everybody may read is given.
async fn row_proof(State(door): State<Door>, request: Request) -> Response {
    let parts: Option<Vec<String>> =
        request.uri().path().trim_start_matches("/v1/proofs/rows/").split('/').map(percent_decoded).collect();
    let Some((table, key)) = parts.as_deref().and_then(<[String]>::split_first) else {
        return text(
            StatusCode::BAD_REQUEST,
            "expected /v1/proofs/rows/{schema.table}/{key}, parts in UTF-8, percent-encoded",
        );
    };
    let (database, table, key) = (door.database, table.clone(), key.to_vec());
    let path = [types::PUBLIC_SCHEMA.to_string()];
    let read = move || database.row_proof(PUBLIC, &table, &path, &key);
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(error)) => {
            let status = match error.state {
                SqlState::UNDEFINED_TABLE => StatusCode::NOT_FOUND,
                SqlState::INTERNAL_ERROR => StatusCode::INTERNAL_SERVER_ERROR,
                SqlState(state) if state == *b"55000" => StatusCode::NOT_FOUND,
                SqlState::INSUFFICIENT_PRIVILEGE => StatusCode::FORBIDDEN,
                SqlState::CANNOT_CONNECT_NOW => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_REQUEST,
            };
            let hint = match status {
                StatusCode::FORBIDDEN => Some(
                    "GRANT SELECT on it TO PUBLIC lets everybody ask; a session asks with SELECT entente.proof('table', key)"
                        .to_string(),
                ),
                _ => error.hint,
            };
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            text(status, error.message + &hint)
        }
        Err(error) => {
            tracing::error!(%error, "proving a row panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the row could not be proved; the node's log says more")
        }
    }
}

/// `%2F` and the like; `None` for what is no UTF-8 so.
fn percent_decoded(part: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(part.len()), part.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = behind;
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The JSON that `read` has of a transaction, or 404 and why there is none.
async fn about_transaction(
    door: Door,
    id: &str,
    read: impl FnOnce(Arc<dyn Database>, TransactionId) -> Result<String, String> + Send + 'static,
) -> Response {
    let Ok(digest) = id.parse() else {
        return text(StatusCode::BAD_REQUEST, "expected a transaction id of 64 hexadecimal digits");
    };
    let database = door.database;
    match tokio::task::spawn_blocking(move || read(database, TransactionId(digest))).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(missing)) => text(StatusCode::NOT_FOUND, missing),
        Err(error) => {
            tracing::error!(%error, "reading a receipt panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the receipt could not be read; the node's log says more")
        }
    }
}

/// A receipt for people and scripts. What is hashed and proved is its canonical encoding.
fn receipt_json(receipt: &Receipt) -> serde_json::Value {
    let mut json = json!({
        "transaction": receipt.transaction.to_string(),
        "height": receipt.height,
        "index": receipt.index,
    });
    let details = match &receipt.outcome {
        Outcome::Committed(results) => {
            let (results, said) = Notifications::split(results);
            let results: Vec<serde_json::Value> = results.iter().map(result_json).collect();
            let said: Vec<serde_json::Value> = said.iter().map(notification_json).collect();
            match said.is_empty() {
                true => json!({ "outcome": "committed", "results": results }),
                false => json!({ "outcome": "committed", "results": results, "notifications": said }),
            }
        }
        Outcome::Aborted(error) => error_json("aborted", error),
        Outcome::Conflict => {
            json!({ "outcome": "aborted", "sqlstate": "40001", "message": "given up because of a conflict" })
        }
        Outcome::Rejected(reason) => error_json("rejected", &reason.to_error()),
    };
    if let (Some(json), serde_json::Value::Object(details)) = (json.as_object_mut(), details) {
        json.extend(details);
    }
    json
}

fn error_json(outcome: &str, error: &SqlError) -> serde_json::Value {
    json!({
        "outcome": outcome,
        "sqlstate": error.state.to_string(),
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
    })
}

fn notification_json(said: &Notification) -> serde_json::Value {
    json!({ "channel": *said.channel, "payload": *said.payload })
}

fn result_json(result: &StatementResult) -> serde_json::Value {
    let columns: Vec<&str> = result.columns.iter().map(|column| column.name.as_str()).collect();
    let rows: Vec<Vec<serde_json::Value>> =
        result.rows.iter().map(|row| row.iter().map(value_json).collect()).collect();
    json!({ "tag": result.tag, "columns": columns, "rows": rows })
}

/// 64-bit integers and decimals are text: JSON numbers would lose digits in many readers.
fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Boolean(value) => json!(value),
        Value::Integer(value) => json!(value),
        other => json!(format_value(other)),
    }
}
