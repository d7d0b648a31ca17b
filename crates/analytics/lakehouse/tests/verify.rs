//! Every way to change an export is found, named and refused.
#![allow(missing_docs)]

mod support;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use futures::TryStreamExt;
use lakehouse::{LakehouseError, Target, verify_export};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proofs::{ProofError, TablesProof};
use std::sync::Arc;
use support::{EVENTS, FailingStore, Fault, World, account, charter, key, node_key};
use types::{Attestation, Key, Row, Value};

const PROOF: &str = "lake/_entente/checkpoints/00000000000000000010.proof";
const MANIFEST: &str = "lake/_entente/checkpoints/00000000000000000010.json";
const LATEST: &str = "lake/_entente/latest.json";
const ROWS: i64 = 5_000;

/// An export of one checkpoint, to be changed.
struct Exported {
    store: Arc<FailingStore>,
    target: Target,
    world: World,
}

impl Exported {
    async fn new(name: &str) -> Exported {
        let store = Arc::new(FailingStore::new(Fault::Refused));
        let target = Target::in_store(store.clone(), "lake").expect("a path");
        let mut world = World::new(name);
        world.accounts(0..ROWS, 100);
        let event = |number: u8| {
            let row = Row::from([Value::text("sold"), Value::Timestamp(number.into())]);
            (Key::from_bytes(&[number, 1]), Some(row))
        };
        world.change(EVENTS, (0..9).map(event));
        world.export(&target, 10).await.expect("it is exported");
        Exported { store, target, world }
    }

    async fn read(&self, path: &str) -> Bytes {
        let found = self.store.inner.get(&Path::from(path)).await.expect("it is there");
        found.bytes().await.expect("it is there")
    }

    async fn write(&self, path: &str, content: impl Into<Bytes>) {
        let content: Bytes = content.into();
        self.store.inner.put(&Path::from(path), content.into()).await.expect("there is room");
    }

    async fn data_file(&self, folder: &str) -> String {
        let prefix = Path::from(format!("lake/{folder}"));
        let all: Vec<_> = self.store.inner.list(Some(&prefix)).try_collect().await.expect("it is there");
        let mut files = all.iter().map(|meta| meta.location.to_string());
        files.find(|path| path.ends_with(".parquet")).expect("a data file")
    }

    /// Writes the data file of a table again with other rows.
    async fn change_rows(&self, folder: &str, change: impl Fn(RecordBatch) -> Vec<RecordBatch>) {
        let path = self.data_file(folder).await;
        let builder = ParquetRecordBatchReaderBuilder::try_new(self.read(&path).await).expect("a file");
        let schema = builder.schema().clone();
        let reader = builder.with_batch_size(ROWS as usize * 2).build().expect("a file");
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).expect("a schema");
        for batch in reader {
            change(batch.expect("rows")).iter().for_each(|batch| writer.write(batch).expect("rows"));
        }
        self.write(&path, writer.into_inner().expect("rows")).await;
    }

    async fn change_text(&self, path: &str, from: &str, to: &str) {
        let text = String::from_utf8(self.read(path).await.to_vec()).expect("text");
        assert!(text.contains(from), "{from} in {text}");
        self.write(path, text.replace(from, to)).await;
    }

    async fn change_proof(&self, change: impl Fn(&mut TablesProof)) {
        let mut proof = TablesProof::from_bytes(&self.read(PROOF).await).expect("a proof");
        change(&mut proof);
        self.write(PROOF, proof.to_bytes()).await;
    }

    async fn refused(&self) -> LakehouseError {
        verify_export(&self.target, &self.world.charter, None).await.expect_err("something is wrong")
    }

    async fn refused_in_words(&self, words: &[&str]) {
        let error = self.refused().await.to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} in: {error}");
        }
    }
}

fn without(batch: &RecordBatch, row: usize) -> Vec<RecordBatch> {
    vec![batch.slice(0, row), batch.slice(row + 1, batch.num_rows() - row - 1)]
}

/// The same with another owner in one row.
fn with_owner(batch: &RecordBatch, row: usize, owner: &str) -> RecordBatch {
    let mut owners = StringBuilder::new();
    for (at, before) in batch.column(1).as_string::<i32>().iter().enumerate() {
        owners.append_option(if at == row { Some(owner) } else { before });
    }
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[1] = Arc::new(owners.finish());
    RecordBatch::try_new(batch.schema(), columns).expect("the same columns")
}

#[tokio::test]
async fn what_was_not_touched_is_right() {
    let exported = Exported::new("test").await;
    let verified = verify_export(&exported.target, &exported.world.charter, None).await.expect("it is right");
    assert_eq!(verified.proof.certificate.statement.height, 10);
    let rows: Vec<_> = verified.tables.iter().map(|table| (table.name.as_str(), table.rows)).collect();
    assert_eq!(rows, [("accounts", ROWS as u64), ("sales.events", 9)]);
}

#[tokio::test]
async fn a_changed_row_is_named() {
    for row in [0, 1_234, ROWS as usize - 1] {
        let exported = Exported::new("test").await;
        exported.change_rows("public/accounts", |batch| vec![with_owner(&batch, row, "thief")]).await;
        exported
            .refused_in_words(&["table accounts", ".parquet", "the rows from id = ", "a row was changed"])
            .await;
        let LakehouseError::Rows { what, .. } = exported.refused().await else { panic!("of a row") };
        let numbers: Vec<usize> =
            what.split("id = ").skip(1).filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
        assert!((numbers[0]..=numbers[1]).contains(&row), "{row} in {what}");
    }
}

#[tokio::test]
async fn a_missing_row_is_named() {
    for row in [0, 2_345, ROWS as usize - 1] {
        let exported = Exported::new("test").await;
        exported.change_rows("public/accounts", |batch| without(&batch, row)).await;
        exported.refused_in_words(&["table accounts", "1 rows are missing: the export had 5000"]).await;
    }
    // All of them.
    let exported = Exported::new("test").await;
    exported.change_rows("public/accounts", |batch| vec![batch.slice(0, 0)]).await;
    exported.refused_in_words(&["table accounts", "its last rows", "5000 rows are missing"]).await;
    // In a table whose rows have hidden keys.
    let exported = Exported::new("test").await;
    exported.change_rows("sales/events", |batch| without(&batch, 4)).await;
    exported.refused_in_words(&["table sales.events", "the hidden key 0001", "1 rows are missing"]).await;
}

#[tokio::test]
async fn an_added_row_is_named() {
    let exported = Exported::new("test").await;
    let mut other = World::new("test");
    other.accounts(0..ROWS + 1, 100);
    let store = Arc::new(FailingStore::new(Fault::Refused));
    let target = Target::in_store(store.clone(), "lake").expect("a path");
    other.export(&target, 10).await.expect("it is exported");
    let longer = Exported { store, target, world: other };
    let (from, to) = (longer.data_file("public/accounts").await, exported.data_file("public/accounts").await);
    exported.write(&to, longer.read(&from).await).await;
    exported
        .refused_in_words(&["table accounts", "1 rows were added: the export had 5000, there are 5001"])
        .await;
    // The same row twice.
    let exported = Exported::new("test").await;
    exported.change_rows("public/accounts", |batch| vec![batch.slice(0, 8), batch.slice(7, 100)]).await;
    exported.refused_in_words(&["table accounts", "the row with id = 7 stands twice"]).await;
    let exported = Exported::new("test").await;
    exported.change_rows("public/accounts", |batch| vec![batch.slice(0, 8), batch.slice(6, 100)]).await;
    exported.refused_in_words(&["table accounts", "id = 6", "order of keys"]).await;
}

#[tokio::test]
async fn the_certificate_of_another_ledger_is_refused() {
    let (exported, other) = (Exported::new("test").await, Exported::new("other").await);
    let error =
        verify_export(&exported.target, &other.world.charter, None).await.expect_err("another ledger");
    assert!(matches!(error, LakehouseError::OtherLedger { .. }), "{error}");
    // Its proof, under our name.
    exported.write(PROOF, other.read(PROOF).await).await;
    let error = exported.refused().await;
    assert!(matches!(error, LakehouseError::Proof(ProofError::Certificate(_))), "{error}");
    assert!(error.to_string().contains(&exported.world.charter.ledger().to_string()), "{error}");
}

#[tokio::test]
async fn a_forged_certificate_is_refused() {
    let exported = Exported::new("test").await;
    let honest = exported.read(PROOF).await;
    // Too few signatures, somebody else's, and one under something else.
    exported.change_proof(|proof| proof.certificate.signatures.truncate(2)).await;
    assert!(matches!(exported.refused().await, LakehouseError::Proof(ProofError::Certificate(_))));
    exported.write(PROOF, honest.clone()).await;
    exported
        .change_proof(|proof| {
            let statement = proof.certificate.statement.clone();
            let forged = Attestation::sign(statement, 2, &node_key(9)).signature;
            proof.certificate.signatures[1].1 = forged;
        })
        .await;
    assert!(matches!(exported.refused().await, LakehouseError::Proof(ProofError::Certificate(_))));
    exported.write(PROOF, honest.clone()).await;
    exported.change_proof(|proof| proof.certificate.statement.height = 11).await;
    assert!(matches!(exported.refused().await, LakehouseError::Proof(ProofError::Certificate(_))));
    // A good certificate with other leaves.
    exported.write(PROOF, honest.clone()).await;
    exported.change_proof(|proof| proof.leaves[1].0[0] ^= 1).await;
    assert!(matches!(exported.refused().await, LakehouseError::Proof(ProofError::Path { .. })));
    exported.write(PROOF, honest.slice(..honest.len() - 1)).await;
    assert!(matches!(exported.refused().await, LakehouseError::Proof(ProofError::Malformed(_))));
}

#[tokio::test]
async fn a_manifest_that_says_something_else_is_refused() {
    let ledger = charter("test").ledger().to_string();
    let cases = [
        ("\"height\": 10", "\"height\": 11"),
        ("\"version\": 0", "\"version\": 1"),
        ("\"public/accounts\"", "\"sales/events\""),
        ("\"name\": \"accounts\"", "\"name\": \"amounts\""),
        ("entente export 1", "entente export 2"),
        (ledger.as_str(), "00"),
    ];
    for (from, to) in cases {
        let exported = Exported::new("test").await;
        for path in [LATEST, MANIFEST] {
            exported.change_text(path, from, to).await;
        }
        let error = exported.refused().await.to_string();
        assert!(!error.is_empty(), "{from}");
        let by_height = verify_export(&exported.target, &exported.world.charter, Some(10)).await;
        assert!(by_height.is_err(), "{from}");
    }
    let exported = Exported::new("test").await;
    exported.change_text("lake/_entente/ledger.json", &ledger, "00").await;
    assert!(matches!(exported.refused().await, LakehouseError::OtherLedger { .. }));
    let error = verify_export(&exported.target, &exported.world.charter, Some(77)).await;
    assert!(error.is_err());
}

#[tokio::test]
async fn other_columns_and_files_that_are_gone_are_named() {
    let exported = Exported::new("test").await;
    let path = exported.data_file("public/accounts").await;
    let honest = exported.read(&path).await;
    exported.write(&path, &b"no Parquet"[..]).await;
    exported.refused_in_words(&["table accounts", "cannot be read"]).await;
    exported.write(&path, honest.slice(..honest.len() / 2)).await;
    exported.refused_in_words(&["table accounts", "cannot be read"]).await;
    exported.write(&path, honest.clone()).await;
    exported.change_rows("sales/events", |batch| vec![batch.slice(0, 9)]).await;
    assert!(verify_export(&exported.target, &exported.world.charter, None).await.is_ok(), "the same rows");
    exported.store.inner.delete(&Path::from(path.as_str())).await.expect("it is there");
    exported.refused_in_words(&["table accounts", "the log names it, and it is not there"]).await;
    let other = exported.read(&exported.data_file("sales/events").await).await;
    exported.write(&path, other).await;
    exported.refused_in_words(&["table accounts", "expected the columns"]).await;
    // Not even a value that people read may be another one.
    let mut world = World::new("test");
    let strange = Row::from([Value::BigInt(0), Value::Null, Value::Numeric(types::Numeric::NAN)]);
    world.change(support::ACCOUNTS, [(key(0), Some(strange)), (key(1), Some(account(1, 5)))]);
    let store = Arc::new(FailingStore::new(Fault::Refused));
    let target = Target::in_store(store.clone(), "lake").expect("a path");
    world.export(&target, 10).await.expect("it is exported");
    let exported = Exported { store, target, world };
    exported.change_rows("public/accounts", |batch| vec![with_owner(&batch, 0, "thief")]).await;
    exported.refused_in_words(&["row 1", "column owner is not what _entente_row says"]).await;
}
