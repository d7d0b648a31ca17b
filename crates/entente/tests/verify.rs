//! `entente verify` as somebody runs it who has a copy of a ledger and its charter.
#![allow(missing_docs)]

mod support;

use bench::{SignedLedger, SignedLedgerOptions};
use proofs::ReceiptProof;
use std::path::Path;
use std::process::{Command, Output};
use support::TestNetwork;
use types::{Outcome, Payload, RejectReason};

fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}

/// Two tables with rows, some of whose transactions fail.
fn ledger(folder: &Path, forge: impl Fn(u64, &mut ledger::BlockOutcome)) -> SignedLedger {
    let mut ledger =
        SignedLedger::create(folder, SignedLedgerOptions::default(), |_| ()).expect("an empty folder");
    let table = "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint CHECK (balance >= 0))";
    let mut blocks = vec![vec![script(table)]];
    for block in 0..6 {
        let insert = |number| script(&format!("INSERT INTO accounts VALUES ({number}, {number})"));
        let mut payloads: Vec<Payload> = (0..5).map(|number| insert(block * 4 + number)).collect();
        payloads.push(script("UPDATE accounts SET balance = balance - 3 WHERE id < 3"));
        blocks.push(payloads);
    }
    for payloads in blocks {
        let height = ledger.engine().height() + 1;
        let mut transactions = ledger.transactions(payloads);
        if height == 4 {
            // Badly signed, and no transaction at all.
            let last = transactions.len() - 1;
            let mut bytes = transactions[last].to_vec();
            *bytes.last_mut().expect("not empty") ^= 1;
            transactions[last] = bytes.into();
            transactions.push(b"garbage".to_vec().into());
        }
        ledger.append(transactions, |outcome| forge(height, outcome)).expect("appends");
    }
    ledger.ledger().flush().expect("flushes");
    ledger
}

fn verify(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entente"));
    command.arg("verify").args(arguments).arg(folder).output().expect("the program runs")
}

/// Runs with `--json` and reads what that says.
fn record(arguments: &[&str], folder: &Path) -> (bool, serde_json::Value) {
    let json = folder.join("verify.json");
    let path = json.to_str().expect("text");
    let output = verify(&[arguments, &["--json", path]].concat(), folder);
    let text = std::fs::read_to_string(&json).expect("a record");
    (output.status.success(), serde_json::from_str(&text).expect("JSON"))
}

#[test]
fn a_good_ledger_is_right_with_and_without_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = ledger(folder.path(), |_, _| ());
    // While somebody has it open, from the node's folder and from that of the blocks.
    for path in [folder.path().to_path_buf(), folder.path().join("ledger")] {
        let output = verify(&["--replay"], &path);
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.contains("38 transactions up to height 7 are right, and so is what they came to"),
            "{text}"
        );
        assert!(text.contains("certified up to height 4; 3 above are not certified yet"), "{text}");
    }
    ledger.finish().expect("closes");
    for arguments in [&[][..], &["--replay"], &["--replay", "--threads", "1"]] {
        let (success, record) = record(arguments, folder.path());
        assert!(success && record["valid"] == true && record["first_error"].is_null(), "{record}");
        assert_eq!(record["transactions"], 38);
        assert!(record["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    }
}

#[test]
fn outcomes_that_everybody_attests_and_nobody_has_executed_are_found_by_replay() {
    type Forge = fn(u64, &mut ledger::BlockOutcome);
    let forgeries: [(Forge, &str); 5] = [
        (
            |height, outcome| {
                if height == 5 {
                    outcome.receipts[0].outcome = Outcome::Committed(vec![]);
                }
            },
            "height 5: receipt 0: expected by execution",
        ),
        (
            |height, outcome| {
                if height == 3 {
                    outcome.digest.tables[0].root.0[0] ^= 1;
                }
            },
            "height 3: state digest: expected by execution in table `accounts`",
        ),
        (
            |height, outcome| {
                if height == 2 {
                    outcome.digest.tables.clear();
                }
            },
            "height 2: state digest: expected by execution in table `accounts`",
        ),
        (
            |height, outcome| {
                if height == 6 {
                    outcome.digest.requests.0[9] ^= 1;
                }
            },
            "height 6: state digest: expected by execution the requests",
        ),
        (
            |height, outcome| {
                if height == 4 {
                    outcome.receipts[5].outcome =
                        Outcome::Rejected(RejectReason::Unsigned("other words".into()));
                }
            },
            "height 4: receipt 5: expected by execution",
        ),
    ];
    for (forge, says) in forgeries {
        let folder = tempfile::tempdir().expect("a folder");
        ledger(folder.path(), forge).finish().expect("closes");
        let (success, without) = record(&[], folder.path());
        assert!(success && without["valid"] == true, "{without}");
        let (success, with) = record(&["--replay"], folder.path());
        assert!(!success && with["valid"] == false, "{with}");
        assert!(with["first_error"].as_str().is_some_and(|error| error.contains(says)), "{says}: {with}");
    }
}

#[test]
fn damage_and_missing_charters_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    ledger(folder.path(), |_, _| ()).finish().expect("closes");
    let charter = folder.path().join("charter.toml");
    let elsewhere = folder.path().join("elsewhere.toml");
    std::fs::rename(&charter, &elsewhere).expect("moves");
    let output = verify(&[], folder.path());
    let error = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && error.contains("name it with --charter"), "{error}");
    let there = ["--charter", elsewhere.to_str().expect("text")];
    assert!(verify(&there, folder.path()).status.success());

    let file = folder.path().join("ledger/blocks-00000000000000000001.log");
    let mut bytes = std::fs::read(&file).expect("reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("writes");
    let (success, record) = record(&there, folder.path());
    assert!(!success && record["valid"] == false, "{record}");
    let error = record["first_error"].as_str().expect("an error");
    assert!(error.contains("blocks-00000000000000000001.log") && error.contains("height"), "{error}");
}

#[test]
fn a_receipt_proves_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let signed = ledger(folder.path(), |_, _| ());
    let outcome = |height| signed.ledger().outcome(height).expect("reads").expect("such a height");
    let certificate = signed.certificate(outcome(5).header);
    let headers = vec![outcome(3).header, outcome(4).header];
    let proof = ReceiptProof::new(&outcome(3).receipts, 2, headers, certificate).expect("such a receipt");
    let file = folder.path().join("receipt.json");
    std::fs::write(&file, proof.to_json()).expect("writes");
    let check = |file: &Path| {
        let charter = folder.path().join("charter.toml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_entente"));
        command.arg("verify").arg("--receipt").arg(file).arg("--charter").arg(charter);
        let output = command.output().expect("the program runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).to_string())
    };
    let (success, text) = check(&file);
    assert!(success, "{text}");
    assert!(text.contains("has committed: INSERT 0 1, at height 3, position 2"), "{text}");
    assert!(text.contains("attested by org1, org2, org3, org4, at height 5"), "{text}");

    let mut forged = proof;
    forged.receipt.outcome = Outcome::Conflict;
    std::fs::write(&file, forged.to_json()).expect("writes");
    let (success, text) = check(&file);
    assert!(!success && text.contains("the path from the receipt leads to"), "{text}");
}

/// A row, and one that is not there, at a checkpoint that was asked for.
async fn rows_are_proved(network: &TestNetwork, session: &tokio_postgres::Client) {
    session.batch_execute("GRANT SELECT ON accounts TO PUBLIC").await.expect("granted");
    let both = "SELECT entente.proof('accounts', 3), entente.proof('public.accounts', -5::bigint)";
    let both = network.row_proofs(session, both).await;
    let (row, nothing): (String, String) = (both.get(0), both.get(1));
    let file = network.node_folder(1).join("row.json");
    let charter_file = network.node_folder(1).join("charter.toml");
    let check = |text: &str, key: &[&str]| {
        std::fs::write(&file, text).expect("writes");
        let mut command = Command::new(env!("CARGO_BIN_EXE_entente"));
        command.arg("verify").arg("--row").arg(&file).arg("--charter").arg(&charter_file);
        if !key.is_empty() {
            command.arg("--key").args(key);
        }
        let output = command.output().expect("the program runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).to_string(),
        )
    };
    let (success, text) = check(&row, &["3"]);
    assert!(success && text.contains("balance = 100") && text.contains("attested by org"), "{text}");
    let (success, text) = check(&nothing, &["-5"]);
    assert!(success && text.contains("no row behind block") && text.contains("under the key -5"), "{text}");
    assert!(check(&nothing, &[]).0);
    let (success, text) = check(&nothing, &["3"]);
    assert!(!success && text.contains("another key"), "{text}");
    let (success, text) = check(&row.replace("\"100\"", "\"101\""), &["3"]);
    assert!(!success && text.contains("not those of the proof"), "{text}");
    let url = format!("http://127.0.0.1:{}/v1/proofs/rows/public.accounts/3", network.port_base + 201);
    let other = reqwest::get(&url).await.expect("answered").text().await.expect("text");
    assert_eq!(other, row, "over HTTP it is the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_network_proves_what_it_answers() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let session = network.session(1).await;
    session
        .batch_execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance int)")
        .await
        .expect("created");
    for id in 0..20 {
        let insert = format!("INSERT INTO accounts VALUES ({id}, 100)");
        session.batch_execute(&insert).await.expect("inserted");
    }
    session.batch_execute("INSERT INTO accounts VALUES (0, 1)").await.expect_err("it is there");
    let charter = &network.network.charter;
    // Answers wait for a quorum, so everything that was answered can be proved.
    let proofs = session
        .query("SELECT id, outcome, entente.proof(id) FROM entente.transactions", &[])
        .await
        .expect("everything is certified");
    assert_eq!(proofs.len(), 22);
    let mut outcomes = Vec::new();
    for row in &proofs {
        let (id, text): (&str, &str) = (row.get(0), row.get(2));
        let proof = ReceiptProof::from_json(text).expect("a proof");
        let receipt = proof.verify(charter).expect("a good one");
        assert_eq!(receipt.transaction.to_string(), id);
        assert_eq!(matches!(receipt.outcome, Outcome::Committed(_)), row.get::<_, &str>(1) == "committed");
        outcomes.push(matches!(receipt.outcome, Outcome::Committed(_)));
    }
    assert_eq!(outcomes.iter().filter(|committed| **committed).count(), 21);
    let unknown = format!("SELECT entente.proof('{}')", "0".repeat(64));
    let error = session.simple_query(&unknown).await.expect_err("no such transaction");
    assert_eq!(error.code().map(|code| code.code()), Some("P0002"));

    network.assert_agreement(&[0, 1, 2, 3]).await;
    let (id, text): (&str, &str) = (proofs[5].get(0), proofs[5].get(2));
    let url = format!("http://127.0.0.1:{}/v1/proofs/receipts/{id}", network.port_base + 203);
    let other = reqwest::get(&url).await.expect("answered").text().await.expect("text");
    let receipt = |text: &str| ReceiptProof::from_json(text).expect("a proof").receipt;
    assert_eq!(receipt(&other), receipt(text), "another node proves the same");

    rows_are_proved(&network, &session).await;

    // The folder of a node that runs.
    network.wait_until_level_with(1, &[2]).await;
    let (success, record) = record(&["--replay"], &network.node_folder(2));
    assert!(success && record["valid"] == true, "{record}");
    assert_eq!(record["transactions"], 24);
    assert!(record["certified_height"].as_u64().is_some_and(|height| height > 3), "{record}");
}
