//! Execute–order–validate end to end: nodes endorse for one another, and one that is gone, late or lies neither stops the
//! others nor gets anything past them.

mod support;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use client::{EndorseError, Endorser, endorse};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{TestNetwork, in_between};
use tokio_postgres::SimpleQueryMessage;
use types::{
    Charter, ExecutionModel, Outcome, Payload, ProposalAnswer, ProposalReply, ProposalRequest, RejectReason,
    SubmissionRefusal, Value,
};

const SET_UP: [&str; 6] = [
    "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
    "CREATE TABLE vault (id bigint PRIMARY KEY, grams bigint NOT NULL) WITH (endorsement_policy = 'org4')",
    "INSERT INTO account VALUES (1, 100), (2, 100)",
    "CREATE PROCEDURE pay(payer bigint, payee bigint, amount bigint) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE account SET balance = balance - amount WHERE id = payer;
        UPDATE account SET balance = balance + amount WHERE id = payee;
    END $$",
    "CREATE PROCEDURE store(k bigint) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO vault VALUES (k, 1); END $$",
    "CREATE PROCEDURE pay_one(amount bigint) LANGUAGE plpgsql SET entente.endorsement = 'org1 AND (org2 OR org4)' AS $$
    BEGIN UPDATE account SET balance = balance + amount WHERE id = 1; END $$",
];

fn endorsing(charter: &mut Charter) {
    charter.execution = ExecutionModel::ExecuteOrderValidate;
    charter.protocol = "xox".into();
    charter.endorsement.policy = "2 of (org1, org2, org3, org4)".into();
}

/// Every node chooses how it schedules validation; these use the graph.
fn validate_on_the_graph(network: &TestNetwork, nodes: &[usize]) {
    for node in nodes {
        let path = network.node_folder(*node).join("node.toml");
        let config = std::fs::read_to_string(&path).expect("it has been created");
        std::fs::write(&path, format!("pipeline = \"graph\"\n{config}")).expect("it can be written");
    }
}

async fn set_up(session: &tokio_postgres::Client) {
    for statement in SET_UP {
        session.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// The values of a query with one column.
async fn column(session: &tokio_postgres::Client, sql: &str) -> Vec<String> {
    let messages = session.simple_query(sql).await.expect("an answer");
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_string()),
        _ => None,
    });
    rows.collect()
}

/// How a statement fails: SQLSTATE, message, detail, hint.
async fn failure(session: &tokio_postgres::Client, sql: &str) -> [String; 4] {
    let error = session.batch_execute(sql).await.expect_err("it fails");
    let error = error.as_db_error().expect("the node's error").clone();
    let text = |text: Option<&str>| text.unwrap_or_default().to_string();
    [error.code().code().into(), error.message().into(), text(error.detail()), text(error.hint())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_endorsed_through_any_gateway_and_one_node_that_is_gone_is_replaced() {
    let mut network = TestNetwork::create(endorsing);
    validate_on_the_graph(&network, &[1, 3]);
    network.start_all().await;
    let session = network.session(0).await;
    set_up(&session).await;
    let height = network.client(0).status().await.expect("it answers").height;
    for node in 0..4 {
        network.wait_for_height(node, height).await;
        let session = network.session(node).await;
        session.batch_execute("CALL pay(1, 2, 10)").await.expect("endorsed and committed");
        let balances = column(&session, "SELECT balance FROM account ORDER BY id").await;
        let paid = 10 * (node as i64 + 1);
        assert_eq!(balances, [(100 - paid).to_string(), (100 + paid).to_string()]);
    }
    session.batch_execute("CALL store(1)").await.expect("org4 endorses");

    // What the contract refuses its client hears at once; nothing is ordered.
    let count = "SELECT count(*) FROM entente.transactions WHERE outcome <> 'committed'";
    let [state, message, ..] = failure(&session, "CALL pay(1, 2, 1000)").await;
    assert_eq!(state, "23514", "{message}");
    assert_eq!(column(&session, count).await, ["0"]);

    // A client that asks endorsers itself submits what they have signed, anywhere.
    let client = network.client(2);
    let call = Payload::Call { procedure: "pay_one".into(), arguments: vec![Value::BigInt(5)] };
    let height = client.status().await.expect("it answers").height;
    let endorser = |node: u16| {
        Endorser::new(&format!("http://127.0.0.1:{}", network.port_base + 200 + node)).expect("an address")
    };
    let (first_two, last_two) = ([endorser(0), endorser(1)], [endorser(2), endorser(3)]);
    let signed = client.identity().sign(call, height + 100);
    let few = endorse(signed.clone(), &last_two).await.expect("both find the same");
    let refused = client.execute(&few).await.expect("ordered").outcome;
    assert!(matches!(refused, Outcome::Rejected(RejectReason::Endorsement(_))), "{refused:?}");
    // The same request with enough of them is not used up by that.
    let enough = endorse(signed, &first_two).await.expect("both find the same");
    let receipt = client.execute(&enough).await.expect("a receipt");
    assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    let aborting = Payload::Call {
        procedure: "pay".into(),
        arguments: vec![Value::BigInt(1), Value::BigInt(2), Value::BigInt(1_000)],
    };
    let refused = endorse(client.identity().sign(aborting, height + 100), &[endorser(0)]).await;
    assert!(matches!(refused, Err(EndorseError::Refused { .. })), "{refused:?}");
    network.assert_agreement(&[0, 1, 2, 3]).await;

    // Without org4 everything goes on that does not need it.
    network.kill(3);
    for _ in 0..4 {
        session.batch_execute("CALL pay(2, 1, 10)").await.expect("others endorse");
    }
    let [state, message, detail, hint] = failure(&session, "CALL store(2)").await;
    assert_eq!(state, "57P03", "{message}");
    let says = "endorsed by org1 alone; its policy is 2 of (org1, org2, org3, org4) AND org4";
    assert!(message.contains(says), "{message}");
    assert!(detail.contains("org4: it cannot be reached") && hint.contains("back"), "{detail} {hint}");
    network.start(3);
    network.wait_for_height(3, 1).await;
    let start = std::time::Instant::now();
    while session.batch_execute("CALL store(2)").await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "org4 is back:\n{}", network.log(3));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// An organisation that came in by an amendment endorses; once it has left, the others do without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_endorses_follows_the_charter() {
    let mut network = TestNetwork::create(|charter| {
        endorsing(charter);
        charter.endorsement.policy = "2 of (org1, org2, org3)".into();
        // Amendments hold 14 blocks after they are decided.
        charter.outcome_lag_blocks = 4;
        charter.block.idle_ms = 100;
    });
    network.start_all().await;
    let session = network.session(0).await;
    set_up(&session).await;
    session.batch_execute("CALL store(1)").await.expect("org4 endorses");

    let (fifth, add) = network.newcomer("emma");
    network.start(fifth);
    session.simple_query(&add).await.expect("a good acceptance");
    let height = network.client(0).status().await.expect("it answers").height + 20;
    for node in [0, 1, 2, 3, fifth] {
        network.wait_for_height(node, height).await;
    }
    let table = "CREATE TABLE treasury (id bigint PRIMARY KEY) WITH (endorsement_policy = 'emma')";
    session.batch_execute(table).await.expect("emma is a member");
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(fifth, height).await;
    session.batch_execute("INSERT INTO treasury VALUES (1)").await.expect("emma endorses");
    // And through its own gateway, where the others are asked.
    let own = network.session(fifth).await;
    own.batch_execute("INSERT INTO treasury VALUES (2)").await.expect("emma and two others endorse");
    own.batch_execute("CALL store(2)").await.expect("org4 endorses");

    // Who is named in a policy cannot leave; whoever is not can, and nobody needs it then.
    let [state, message, ..] = failure(&session, "SELECT entente.remove_organisation('emma')").await;
    assert_eq!(state, "22023", "{message}");
    session.batch_execute("DROP TABLE treasury").await.expect("everybody may");
    session.simple_query("SELECT entente.remove_organisation('emma')").await.expect("a member");
    let height = network.client(0).status().await.expect("it answers").height + 20;
    for node in 0..4 {
        network.wait_for_height(node, height).await;
    }
    session.batch_execute("CALL store(3)").await.expect("org4 endorses");
    for _ in 0..4 {
        session.batch_execute("CALL pay(1, 2, 1)").await.expect("others endorse");
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// What the endorser in front of org4 does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Honest,
    FindsSomethingElse,
    Forges,
    SignsForAnother,
    IsLate,
    SendsGarbage,
    HasOtherStates,
    HasTooMuchToDo,
    Aborts,
}

#[derive(Clone)]
struct Impostor {
    manner: Arc<Mutex<Manner>>,
    org4: String,
    http: reqwest::Client,
}

async fn propose(State(impostor): State<Impostor>, body: Bytes) -> Response {
    let manner = *impostor.manner.lock().expect("nobody panics");
    let mut request = ProposalRequest::from_bytes(&body).expect("the gateway's request");
    match manner {
        Manner::IsLate => tokio::time::sleep(Duration::from_secs(30)).await,
        Manner::SendsGarbage => return "nonsense".into_response(),
        Manner::HasTooMuchToDo => return (StatusCode::SERVICE_UNAVAILABLE, "too much").into_response(),
        Manner::HasOtherStates => {
            let reply = ProposalReply::NoSuchState { oldest: 1, newest: 2 };
            return reply.to_bytes().into_response();
        }
        Manner::FindsSomethingElse => request.proposals.iter_mut().for_each(|one| one.expected = None),
        _ => {}
    }
    let count = request.proposals.len();
    let asked = impostor.http.post(format!("{}/v1/proposals", impostor.org4)).body(request.to_bytes());
    let answer = asked.send().await.expect("org4 answers").bytes().await.expect("a body");
    let Ok(mut reply) = ProposalReply::from_bytes(&answer, count) else {
        return Body::from(answer).into_response();
    };
    if let ProposalReply::Answers { answers, .. } = &mut reply {
        for answer in answers {
            match (manner, &mut *answer) {
                (Manner::FindsSomethingElse, Ok(ProposalAnswer::Found { effects, .. })) => {
                    effects.writes.clear();
                }
                (Manner::Forges, Ok(ProposalAnswer::Agreed(endorsement))) => {
                    endorsement.signature.0[5] ^= 1;
                }
                (Manner::SignsForAnother, Ok(ProposalAnswer::Agreed(endorsement))) => {
                    endorsement.organisation = 1;
                }
                (Manner::Aborts, Ok(_)) => {
                    let error = types::SqlError::new(types::SqlState::RAISE_EXCEPTION, "org4 says no");
                    *answer = Err(types::ProposalRefusal::Aborted(error));
                }
                _ => {}
            }
        }
    }
    reply.to_bytes().into_response()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endorser_that_lies_or_is_late_is_named_and_replaced_where_the_policy_allows() {
    let mut network = TestNetwork::create(endorsing);
    // The impostor has org4's address, and its key; org4's node listens elsewhere.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("free");
    let behind = listener.local_addr().expect("bound");
    in_between::stand(network.port_base + 203, &network.node_key(3), behind).await;
    let elsewhere = network.port_base + 204;
    network.answers_at(3, elsewhere);
    let manner = Arc::new(Mutex::new(Manner::Honest));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let org4 = format!("http://127.0.0.1:{elsewhere}");
    let behind_it = client::Client::new(&org4, network.network.clients[3].clone()).expect("a client");
    let impostor = Impostor { manner: manner.clone(), org4, http };
    let router =
        axum::Router::new().route("/v1/proposals", axum::routing::post(propose)).with_state(impostor);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (0..4).for_each(|node| network.start(node));
    for node in 0..3 {
        network.wait_for_height(node, 1).await;
    }
    let session = network.session(0).await;
    set_up(&session).await;
    network.wait_until_level_with(0, &[1, 2]).await;
    let height = network.client(0).status().await.expect("it answers").height;
    let start = std::time::Instant::now();
    while !behind_it.status().await.is_ok_and(|status| status.height >= height) {
        assert!(start.elapsed() < Duration::from_secs(90), "{}", network.log(3));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let mut key = 0;
    let mut stored = 0;
    for (does, sqlstate, says) in [
        (Manner::Honest, "", ""),
        (
            Manner::FindsSomethingElse,
            "XX001",
            "org4: it found something else: change 1: the row of table vault",
        ),
        (Manner::Forges, "57P03", "org4: its endorsement is not its signature"),
        (Manner::SignsForAnother, "XX001", "org4: its endorsement is another's"),
        (Manner::SendsGarbage, "57P03", "org4: the gateway's reply is not one"),
        (Manner::HasOtherStates, "57P03", "org4: it has the states of heights 1 to 2, not that of"),
        (Manner::HasTooMuchToDo, "57P03", "org4: the gateway answered 503: too much"),
        (Manner::Aborts, "XX001", "org4: the transaction ends with P0001: org4 says no"),
        (Manner::IsLate, "57P03", "org4: it does not answer within 3 s"),
        (Manner::Honest, "", ""),
    ] {
        *manner.lock().expect("nobody panics") = does;
        key += 1;
        let store = format!("CALL store({key})");
        if does == Manner::Honest {
            session.batch_execute(&store).await.expect("org4 endorses");
            stored += 1;
        } else {
            let [state, message, detail, _] = failure(&session, &store).await;
            assert_eq!(state, sqlstate, "{does:?}: {message} {detail}");
            assert!(detail.contains(says), "{does:?}: {detail}");
        }
        // Each of the others is asked first in turn, the impostor too.
        let before = column(&session, "SELECT balance FROM account WHERE id = 1").await;
        for _ in 0..4 {
            session
                .batch_execute("CALL pay_one(1)")
                .await
                .unwrap_or_else(|error| panic!("{does:?}: {error:?}"));
        }
        let after = column(&session, "SELECT balance FROM account WHERE id = 1").await;
        let number = |values: &[String]| values[0].parse::<i64>().expect("a number");
        assert_eq!(number(&before) + 4, number(&after));
    }
    assert_eq!(column(&session, "SELECT count(*) FROM vault").await, [stored.to_string()]);
    network.assert_agreement(&[0, 1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_transaction_again_gets_its_receipt_and_one_that_has_expired_is_refused() {
    let mut network = TestNetwork::create(endorsing);
    network.start_all().await;
    set_up(&network.session(0).await).await;
    // A gateway endorses on its own newest state: it must have the procedure.
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(1, height).await;
    let client = network.client(1);
    let call = || Payload::Call { procedure: "pay_one".into(), arguments: vec![Value::BigInt(7)] };
    let signed = client.identity().sign(call(), height + 1_000);
    let first = client.execute(&signed).await.expect("a receipt");
    assert!(matches!(first.outcome, Outcome::Committed(_)), "{first:?}");
    // Through the same gateway, which endorses nothing again, and through another one.
    assert_eq!(client.execute(&signed).await.expect("a receipt"), first);
    network.wait_for_height(2, first.height).await;
    assert_eq!(network.client(2).execute(&signed).await.expect("a receipt"), first);

    let late = client.identity().sign(call(), 1);
    let mut replies = client.submit(std::slice::from_ref(&late)).await.expect("a stream");
    let refusal = replies.next().await.expect("a reply").expect("one reply").result;
    assert!(
        matches!(&refusal, Err(SubmissionRefusal::Rejected(RejectReason::Expired { .. }))),
        "{refusal:?}"
    );
    let total = column(&network.session(0).await, "SELECT balance FROM account WHERE id = 1").await;
    assert_eq!(total, ["107"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_row_under_fabric_plus_plus_is_given_up_early() {
    let mut network = TestNetwork::create(|charter| {
        endorsing(charter);
        charter.protocol = "fabric++".into();
        charter.block.fill_ms = 100;
    });
    validate_on_the_graph(&network, &[0, 1]);
    network.start_all().await;
    set_up(&network.session(0).await).await;
    let height = network.client(0).status().await.expect("it answers").height;
    for node in 1..4 {
        network.wait_for_height(node, height).await;
    }
    let mut submissions = Vec::new();
    for node in 0..4 {
        let client = network.client(node);
        submissions.push(tokio::spawn(async move {
            let (mut committed, mut early, mut late) = (0, 0, 0);
            for _ in 0..5 {
                let height = client.status().await.expect("it answers").height;
                let call =
                    || Payload::Call { procedure: "pay_one".into(), arguments: vec![Value::BigInt(1)] };
                let signed: Vec<_> = (0..8).map(|_| client.identity().sign(call(), height + 1_000)).collect();
                let mut replies = client.submit(&signed).await.expect("a stream");
                while let Some(reply) = replies.next().await.expect("replies") {
                    match reply.result.map(|receipt| receipt.outcome) {
                        Ok(Outcome::Committed(_)) => committed += 1,
                        Ok(Outcome::Conflict) => late += 1,
                        Err(SubmissionRefusal::EarlyAbort { .. }) => early += 1,
                        other => panic!("{other:?}"),
                    }
                }
            }
            (committed, early, late)
        }));
    }
    let (mut committed, mut early, mut late) = (0, 0, 0);
    for submission in submissions {
        let (one, two, three) = submission.await.expect("it does not panic");
        (committed, early, late) = (committed + one, early + two, late + three);
    }
    assert_eq!(committed + early + late, 160);
    assert!(committed > 0 && early > 80, "{committed} committed, {early} early, {late} conflicts");
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let balance = column(&network.session(1).await, "SELECT balance FROM account WHERE id = 1").await;
    assert_eq!(balance, [(100 + committed).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oracles_are_asked_by_every_endorser_and_must_agree() {
    let mut network = TestNetwork::create(|charter| {
        endorsing(charter);
        charter.endorsement.policy = "org1 AND org2".into();
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let web = listener.local_addr().expect("its address");
    let router = axum::Router::new().route("/rate", axum::routing::get(|| async { "3\n" }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    for node in 0..4 {
        let folder = network.node_folder(node);
        let config = std::fs::read_to_string(folder.join("node.toml")).expect("written by init");
        let oracles = format!("\n[oracles]\nfile = \"rate.txt\"\nweb = \"http://{web}/rate\"\n");
        std::fs::write(folder.join("node.toml"), config + &oracles).expect("written");
        std::fs::write(folder.join("rate.txt"), "2").expect("written");
    }
    network.start_all().await;
    let session = network.session(0).await;
    for statement in [
        "CREATE TABLE rates (source text PRIMARY KEY, rate numeric NOT NULL)",
        "CREATE PROCEDURE ask(source text) LANGUAGE plpgsql AS $$ DECLARE rate numeric; BEGIN
            rate := entente.oracle(source)::numeric; INSERT INTO rates VALUES (source, rate); END $$",
        "CALL ask('file')",
        "CALL ask('web')",
    ] {
        session.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    assert_eq!(column(&session, "SELECT rate FROM rates ORDER BY source").await, ["2", "3"]);
    session.batch_execute("DELETE FROM rates").await.expect("endorsed");
    std::fs::write(network.node_folder(1).join("rate.txt"), "5").expect("written");
    let [state, _, detail, _] = failure(&session, "CALL ask('file')").await;
    assert_eq!(state, "XX001", "{detail}");
    assert!(
        detail.contains("org2: it found something else: oracle 1: file says 2 against file says 5"),
        "{detail}"
    );
    std::fs::remove_file(network.node_folder(1).join("rate.txt")).expect("removed");
    let [state, _, detail, _] = failure(&session, "CALL ask('file')").await;
    assert!(state == "XX001" && detail.contains("38000: the oracle \"file\" does not answer"), "{detail}");
    let [state, message, ..] = failure(&session, "CALL ask('weather')").await;
    assert!(state == "42704" && message.contains("it knows file, web"), "{message}");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
