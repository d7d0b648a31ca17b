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

/// A ledger of `blocks` blocks in files of one block each, and its folder's names of files with blocks.
fn in_small_files(folder: &Path, blocks: u64) -> SignedLedger {
    let mut ledger =
        SignedLedger::create(folder, SignedLedgerOptions::default(), |_| ()).expect("an empty folder");
    for block in 0..blocks {
        let payload = match block {
            0 => script("CREATE TABLE notes (id bigint PRIMARY KEY)"),
            block => script(&format!("INSERT INTO notes VALUES ({block}), ({})", block + 1_000)),
        };
        let transactions = ledger.transactions(vec![payload]);
        ledger.append(transactions, |_| ()).expect("appends");
        ledger.ledger().begin_file().expect("ends the file");
    }
    ledger
}

fn prune(ledger: &ledger::Ledger, below: u64) {
    while ledger.prune(below).expect("prunes").is_some() {}
}

#[test]
fn of_a_pruned_ledger_what_is_certified_is_right_and_nothing_is_executed() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = in_small_files(folder.path(), 12);
    let whole = record(&[], folder.path()).1;
    let certified = whole["certified_height"].as_u64().expect("a number");
    assert!((5..12).contains(&certified), "{whole}");
    prune(ledger.ledger(), certified + 1);
    let (right, pruned) = record(&[], folder.path());
    assert!(right, "{pruned}");
    assert_eq!(pruned["pruned_blocks"], certified);
    assert_eq!(
        (&pruned["pruned_to"], &pruned["pruned_transactions"]),
        (&certified.into(), &certified.into())
    );
    assert_eq!(pruned["transactions"].as_u64().expect("a number") + certified, 12);
    for same in ["height", "certified_height", "first_height"] {
        assert_eq!(pruned[same], whole[same]);
    }
    let output = verify(&[], folder.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("are pruned: their headers, certificates and digests are right"), "{text}");
    let (right, replayed) = record(&["--replay"], folder.path());
    let error = replayed["first_error"].as_str().expect("an error");
    assert!(!right && error.contains("the transactions of block 1 are pruned"), "{error}");
    // Nothing stands for what the last of them came to.
    prune(ledger.ledger(), 12);
    let (right, uncertified) = record(&[], folder.path());
    let error = uncertified["first_error"].as_str().expect("an error");
    assert!(!right && error.contains("nothing proves what they came to"), "{error}");
    ledger.finish().expect("closes");
}

/// A pruned record says what its block came to, with a right checksum: the certificates in later blocks contradict.
#[test]
fn what_a_pruned_block_is_said_to_have_come_to_is_held_against_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = in_small_files(folder.path(), 12);
    prune(ledger.ledger(), 4);
    ledger.finish().expect("closes");
    let path = folder.path().join("ledger").join(format!("blocks-{:020}.log", 1));
    let good = std::fs::read(&path).expect("reads");
    assert!(record(&[], folder.path()).0);
    // Of the first record's head: counts of transactions, receipts root, state digest.
    for (at, part) in [(48, "receipts"), (128, "outcome"), (160, "state digest")] {
        let mut bad = good.clone();
        bad[64 + at] ^= 1;
        let crc = crc32(&bad[64 + 8..64 + 416]);
        bad[64 + 4..64 + 8].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&path, &bad).expect("writes");
        let (right, found) = record(&[], folder.path());
        let error = found["first_error"].as_str().expect("an error");
        assert!(!right && error.contains(part), "{part}: {error}");
    }
}

/// CRC-32 as in zip.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}
