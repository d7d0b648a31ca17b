//! `entente verify` as somebody runs it who has a copy of a ledger and its charter.
#![allow(missing_docs)]

use bench::{SignedLedger, SignedLedgerOptions};
use proofs::ReceiptProof;
use std::path::Path;
use std::process::{Command, Output};
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
