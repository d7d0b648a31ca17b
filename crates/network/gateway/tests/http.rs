//! The HTTP door over a socket.

mod fake;

use crypto::{SecretKey, sha256};
use fake::{Fake, serve};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use types::{
    AnswerAt, Credential, Payload, Proposal, ProposalReply, ProposalRequest, RequestId,
    SUBMISSION_REPLY_BYTES_MAX, SubmissionRefusal, SubmissionReply, Transaction, read_frame, write_frame,
};

/// Status and body of an answer.
async fn request(port: u16, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    // The server may answer before it has read everything.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = &answer[end + 4..];
    (status, if head.contains("transfer-encoding: chunked") { dechunk(body) } else { body.to_vec() })
}

fn dechunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(&String::from_utf8_lossy(&body[..end]), 16).expect("a length");
        whole.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 4 + length..];
    }
    whole
}

async fn get(port: u16, path: &str) -> (u16, String) {
    let (status, body) = request(port, "GET", path, b"").await;
    (status, String::from_utf8(body).expect("text"))
}

async fn started() -> (Arc<Fake>, u16) {
    let fake = Arc::new(Fake::default());
    let (_, port) = serve(Arc::clone(&fake)).await;
    (fake, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_is_said_under_a_signature() {
    let (_, port) = started().await;
    let question = sha256(&[b"a question"]);
    let (status, body) = get(port, &format!("/v1/presence/{question}")).await;
    let presence: types::Presence = serde_json::from_str(&body).expect("a presence");
    assert!(status == 200 && presence.answers(&question), "{body}");
    let (status, body) = get(port, "/v1/presence/who").await;
    assert_eq!((status, body.as_str()), (400, "expected a question of 64 hexadecimal digits\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_status_and_metrics_are_answered() {
    let (fake, port) = started().await;
    assert_eq!(get(port, "/health").await, (200, "ok\n".into()));
    *fake.not_serving.lock().expect("no panic") = Some("the disk is full".into());
    assert_eq!(get(port, "/health").await, (503, "the disk is full\n".into()));
    let (status, json) = get(port, "/status").await;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (status, json["organisation"].as_str(), json["height"].as_u64()),
        (200, Some("org1"), Some(fake::BLOCKS))
    );
    assert_eq!(json["recent"][0]["height"].as_u64(), Some(fake::BLOCKS));
    assert!(get(port, "/metrics").await.1.contains("entente_height 150000"));
    assert_eq!(get(port, "/elsewhere").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_get_replies_in_any_order() {
    let (_, port) = started().await;
    let (root, key) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
    let ledger = sha256(&[b"ledger"]);
    let credential = Credential::issue(&root, 0, &ledger, &key.public_key());
    let mut body = Vec::new();
    let mut ids = Vec::new();
    for number in 0..100_u8 {
        let payload = Payload::Call { procedure: "p".into(), arguments: Vec::new() };
        let (client, request) = (key.public_key(), RequestId([number; 16]));
        let transaction =
            Transaction { ledger, client, request, expires_at: 9, role: String::new(), payload };
        ids.push(transaction.id());
        write_frame(&mut body, &transaction.sign(&key, credential).to_bytes());
    }
    write_frame(&mut body, b"nonsense");
    write_frame(&mut body, b"full");
    let (status, answer) = request(port, "POST", "/v1/transactions", &body).await;
    assert_eq!(status, 200);
    let mut rest = answer.as_slice();
    let mut replies = vec![None; 102];
    while let Some(frame) = read_frame(&mut rest, SUBMISSION_REPLY_BYTES_MAX).expect("frames") {
        let reply = SubmissionReply::from_bytes(frame).expect("a reply");
        let position = reply.position as usize;
        replies[position] = Some(reply.result);
    }
    assert!(rest.is_empty());
    for (id, reply) in ids.iter().zip(&replies) {
        assert_eq!(reply.as_ref().expect("a reply").as_ref().expect("a receipt").transaction, *id);
    }
    assert!(matches!(replies[100], Some(Err(SubmissionRefusal::Rejected(_)))));
    assert_eq!(replies[101], Some(Err(SubmissionRefusal::Full)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_says_when_it_is_answered_and_a_node_that_does_not_serve_takes_none() {
    let (fake, port) = started().await;
    let mut body = Vec::new();
    write_frame(&mut body, b"nonsense");
    for (query, expected) in [
        ("", AnswerAt::Recorded),
        ("?answer_at=attested", AnswerAt::Attested),
        ("?answer_at=recorded", AnswerAt::Recorded),
    ] {
        let (status, _) = request(port, "POST", &format!("/v1/transactions{query}"), &body).await;
        assert_eq!(
            (status, fake.asked_for.lock().expect("no panic").take()),
            (200, Some(expected)),
            "{query}"
        );
    }
    for query in ["?answer_at=soon", "?when=attested", "?"] {
        let (status, answer) = request(port, "POST", &format!("/v1/transactions{query}"), &body).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(status == 400 && answer.contains("answer_at=attested"), "{query}: {status} {answer}");
    }
    *fake.not_serving.lock().expect("no panic") = Some("its outcomes differ".into());
    let (status, answer) = request(port, "POST", "/v1/transactions", &body).await;
    assert_eq!((status, String::from_utf8_lossy(&answer).contains("its outcomes differ")), (503, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_are_passed_on_and_what_is_none_is_explained() {
    let (_, port) = started().await;
    let ask = async |height, proposals| {
        request(port, "POST", "/v1/proposals", &ProposalRequest { height, proposals }.to_bytes()).await
    };
    let proposal = Proposal { transaction: vec![1, 2, 3], expected: None };
    let (status, answer) = ask(None, vec![proposal.clone(); 2]).await;
    let reply = ProposalReply::from_bytes(&answer, 2).expect("a reply");
    let ProposalReply::Answers { height: fake::BLOCKS, answers } = reply else { panic!("{reply:?}") };
    assert_eq!((status, answers.len()), (200, 2));
    let (status, answer) = ask(Some(fake::BLOCKS + 1), vec![proposal.clone()]).await;
    let newest = ProposalReply::NoSuchState { oldest: 1, newest: fake::BLOCKS };
    assert_eq!((status, ProposalReply::from_bytes(&answer, 1).expect("a reply")), (200, newest));

    let says = |(status, answer): (u16, Vec<u8>), expected: u16, text: &str| {
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(status == expected && answer.contains(text), "{status}: {answer}");
    };
    says(ask(Some(0), vec![proposal.clone()]).await, 503, "too much to do");
    says(ask(None, vec![]).await, 400, "expected 1 to 2048 proposals");
    says(ask(None, vec![proposal; 2_049]).await, 400, "at most 2048 entries, found 2049");
    says(request(port, "POST", "/v1/proposals", b"nonsense").await, 400, "canonical encoding");
    let too_large = vec![0; types::SUBMISSION_BYTES_MAX + 1];
    says(request(port, "POST", "/v1/proposals", &too_large).await, 413, "SUBMISSION_BYTES_MAX");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_tells_of_itself_while_as_many_submissions_wait_as_may() {
    let (_, port) = started().await;
    let mut waiting = Vec::new();
    let start = std::time::Instant::now();
    // Bodies that do not come.
    let head = b"POST /v1/transactions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n";
    let (status, answer) = loop {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
        stream.write_all(head).await.expect("sent");
        waiting.push(stream);
        if waiting.len() >= gateway::limits::HTTP_SUBMISSIONS_MAX {
            let (status, answer) = request(port, "POST", "/v1/transactions", b"").await;
            if status == 503 {
                break (status, answer);
            }
            assert!(start.elapsed() < gateway::limits::HTTP_BODY_TIME_MAX, "{status}: they are not counted");
        }
    };
    assert!(String::from_utf8_lossy(&answer).contains("HTTP_SUBMISSIONS_MAX"), "{status}: {answer:?}");
    assert_eq!(get(port, "/status").await.0, 200);
    assert_eq!(get(port, "/metrics").await.0, 200);
    assert_eq!(get(port, "/health").await, (200, "ok\n".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_framing_is_explained() {
    let (_, port) = started().await;
    for body in [b"".as_slice(), b"\x09\0\0\0abc", b"\xff\xff\xff\xff", b"ab"] {
        let (status, answer) = request(port, "POST", "/v1/transactions", body).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("length as u32 little-endian"), "{answer}");
    }
    let too_large = vec![0; types::SUBMISSION_BYTES_MAX + 1];
    assert_eq!(request(port, "POST", "/v1/transactions", &too_large).await.0, 413);
    assert_eq!(request(port, "GET", "/v1/transactions", b"").await.0, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_json() {
    let (_, port) = started().await;
    let id = sha256(&[b"known"]).to_string();
    let (status, json) = get(port, &format!("/v1/receipts/{id}")).await;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (status, json["outcome"].as_str(), json["height"].as_u64()),
        (200, Some("committed"), Some(5))
    );
    assert_eq!(json["results"][0]["rows"][0][3].as_str(), Some("-12345.678"));
    assert_eq!(get(port, &format!("/v1/receipts/{}", "0".repeat(64))).await.0, 404);
    assert_eq!(get(port, "/v1/receipts/nonsense").await.0, 400);
    let (status, json) = get(port, &format!("/v1/proofs/receipts/{id}")).await;
    assert_eq!((status, json), (200, format!("{{\"transaction\":\"{id}\"}}")));
    assert_eq!(get(port, &format!("/v1/proofs/receipts/{}", "0".repeat(64))).await.0, 404);
    assert_eq!(get(port, "/v1/proofs/receipts/nonsense").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_proofs_are_asked_for_by_table_and_key() {
    let (_, port) = started().await;
    let (status, json) = get(port, "/v1/proofs/rows/accounts/7/a%2Fb%20%C3%A4").await;
    let expected = "{'row':'public ['public'] ['7', 'a/b \u{e4}']'}";
    assert_eq!((status, json.as_str()), (200, expected));
    let (status, text) = get(port, "/v1/proofs/rows/new/7").await;
    assert!(status == 404 && text.contains("no checkpoint has it; CHECKPOINT"), "{status} {text}");
    assert_eq!(get(port, "/v1/proofs/rows/nothing/7").await.0, 404);
    assert_eq!(get(port, "/v1/proofs/rows/accounts/%zz").await.0, 400);
    assert_eq!(get(port, "/v1/proofs/rows/accounts/%ff").await.0, 400);
}
