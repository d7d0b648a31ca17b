//! What readers find in an export, after each checkpoint and after whatever fails.
#![allow(missing_docs)]

mod support;

use deltalake_core::kernel::transaction::CommitBuilder;
use futures::TryStreamExt;
use lakehouse::{Exporter, LakehouseError, Target, verify_export};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::{ACCOUNTS, EVENTS, FailingStore, Fault, World, account, key};
use types::{Key, Numeric, Row, Value};

fn memory(fault: Fault) -> (Arc<FailingStore>, Target) {
    let store = Arc::new(FailingStore::new(fault));
    let target = Target::in_store(store.clone(), "lake").expect("a path");
    (store, target)
}

async fn names(store: &dyn ObjectStore) -> BTreeSet<String> {
    let found: Vec<_> = store.list(None).try_collect().await.expect("it can be listed");
    found.into_iter().map(|meta| meta.location.to_string()).collect()
}

fn data_files(names: &BTreeSet<String>) -> BTreeSet<String> {
    names.iter().filter(|name| name.contains(".parquet") && !name.contains("_delta_log")).cloned().collect()
}

/// The newest version of a table as deltalake reads it: the version, and paths of its data files.
async fn table(store: &Arc<FailingStore>, folder: &str) -> Option<(u64, BTreeSet<String>)> {
    let url = url::Url::parse(&format!("memory:///lake/{folder}/")).expect("an address");
    let prefixed = object_store::prefix::PrefixStore::new(store.clone(), format!("lake/{folder}"));
    let log = deltalake_core::logstore::default_logstore(
        Arc::new(prefixed),
        store.clone(),
        &url,
        &Default::default(),
    );
    if !log.is_delta_table_location().await.expect("it can be listed") {
        return None;
    }
    let mut table = deltalake_core::DeltaTable::new(log);
    table.load().await.expect("a table");
    let state = table.snapshot().expect("it was loaded");
    let paths = state.log_data().iter().map(|file| format!("lake/{folder}/{}", file.path())).collect();
    Some((state.version(), paths))
}

async fn rows(target: &Target, world: &World, height: Option<u64>) -> Vec<(String, u64, u64)> {
    let verified = verify_export(target, &world.charter, height).await.expect("it is right");
    verified.tables.into_iter().map(|table| (table.name, table.version, table.rows)).collect()
}

fn event(number: u8) -> (Key, Option<Row>) {
    let row = Row::from([Value::text("sold"), Value::Timestamp(i64::from(number))]);
    (Key::from_bytes(&[number, 1]), Some(row))
}

#[tokio::test]
async fn each_checkpoint_is_a_version_of_the_tables_that_have_changed() {
    let (store, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..3_000, 100);
    world.change(EVENTS, (0..9).map(event));
    let first = world.export(&target, 10).await.expect("it is exported");
    assert_eq!((first.tables, first.changed, first.rows, first.kept_files), (2, 2, 3_009, 0));
    // Nothing has changed but the height.
    let second = world.export(&target, 20).await.expect("it is exported");
    assert_eq!((second.changed, second.rows, second.kept_files), (0, 0, 2));
    world.change(EVENTS, [event(200)]);
    let third = world.export(&target, 30).await.expect("it is exported");
    assert_eq!((third.changed, third.kept_files), (1, 1));
    world.accounts([7], 5);
    world.change(ACCOUNTS, [(key(8), None)]);
    world.export(&target, 40).await.expect("it is exported");
    let named = |accounts: (u64, u64), events: (u64, u64)| {
        vec![
            ("accounts".to_string(), accounts.0, accounts.1),
            ("sales.events".to_string(), events.0, events.1),
        ]
    };
    // All of them stay readable, and are still proved.
    assert_eq!(rows(&target, &world, Some(10)).await, named((0, 3_000), (0, 9)));
    assert_eq!(rows(&target, &world, Some(20)).await, named((0, 3_000), (0, 9)));
    assert_eq!(rows(&target, &world, Some(30)).await, named((0, 3_000), (1, 10)));
    assert_eq!(rows(&target, &world, Some(40)).await, named((1, 2_999), (1, 10)));
    assert_eq!(rows(&target, &world, None).await, named((1, 2_999), (1, 10)));
    let (version, paths) = table(&store, "public/accounts").await.expect("a table");
    assert_eq!((version, paths.len()), (1, 1));
    assert!(!names(&store.inner).await.iter().any(|name| name.ends_with("writing.json")));
}

#[tokio::test]
async fn many_versions_are_summed_up_and_stay_readable() {
    let (store, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    for height in 1..=55u64 {
        world.accounts([height as i64], 100);
        world.export(&target, height).await.expect("it is exported");
    }
    assert!(names(&store.inner).await.iter().any(|name| name.ends_with(".checkpoint.parquet")));
    assert_eq!(table(&store, "public/accounts").await.expect("a table").0, 54);
    assert_eq!(rows(&target, &world, Some(3)).await[0].2, 3);
    assert_eq!(rows(&target, &world, None).await[0].2, 55);
}

#[tokio::test]
async fn a_table_that_gets_another_shape_gets_another_schema() {
    let (_, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..100, 100);
    world.export(&target, 10).await.expect("it is exported");
    world.add_column();
    world.export(&target, 20).await.expect("it is exported");
    assert_eq!(rows(&target, &world, None).await[1], ("accounts".to_string(), 1, 100));
    let old = verify_export(&target, &world.charter, Some(10)).await.expect("it is right");
    assert_eq!(old.proof.tables[0].definition.columns.len(), 3);
}

/// A reader sees each table at one checkpoint or the other, and nothing of a third.
#[tokio::test]
async fn a_store_that_fails_in_the_middle_shows_no_half_of_a_checkpoint() {
    for fault in [Fault::Refused, Fault::NoRoom, Fault::Torn, Fault::AnswerLost] {
        for writes in 0.. {
            let (store, target) = memory(fault);
            let mut world = World::new("test");
            world.accounts(0..500, 100);
            world.change(EVENTS, (0..9).map(event));
            world.export(&target, 10).await.expect("it is exported");
            let before = [table(&store, "public/accounts").await, table(&store, "sales/events").await];
            world.accounts(200..900, 7);
            world.change(EVENTS, [event(200)]);
            store.fail_after(writes);
            let exported = world.export(&target, 20).await;
            store.heal();
            if exported.is_ok() {
                assert!(writes > 5, "so many writes do not suffice: {writes}");
                break;
            }
            let error = exported.expect_err("it failed");
            assert!(error.may_pass(), "{error}");
            let words = error.to_string();
            let expected = if fault == Fault::NoRoom { "no storage space" } else { "connection reset" };
            let stays = ["stays readable", "stays as it is"].into_iter().any(|stays| words.contains(stays));
            assert!(words.contains(expected) && stays, "{words}");
            let all = names(&store.inner).await;
            for (folder, before) in ["public/accounts", "sales/events"].into_iter().zip(before) {
                let (version, paths) = table(&store, folder).await.expect("a table");
                assert!(paths.iter().all(|path| all.contains(path)), "{fault:?} {writes} {folder}");
                assert!(version == 1 || Some((version, paths)) == before, "{fault:?} {writes} {folder}");
            }
            // The newest checkpoint that is whole, and the one that came to be by a lost answer.
            let verified =
                verify_export(&target, &world.charter, None).await.expect("what is there is right");
            assert!([10, 20].contains(&verified.proof.certificate.statement.height));
            world.accounts([1_000], 1);
            world.export(&target, 30).await.expect("it goes on");
            assert_eq!(rows(&target, &world, None).await[0].2, 901, "{fault:?} {writes}");
            // Nothing is left of what failed: every data file belongs to some version.
            let mut known = BTreeSet::new();
            for path in names(&store.inner)
                .await
                .iter()
                .filter(|name| name.contains("_delta_log/") && name.ends_with(".json"))
            {
                let bytes = store.inner.get(&Path::from(path.as_str())).await.expect("it is there");
                let text =
                    String::from_utf8(bytes.bytes().await.expect("it is there").to_vec()).expect("text");
                let folder = path.split("/_delta_log").next().expect("a folder");
                for line in text.lines() {
                    let action: serde_json::Value = serde_json::from_str(line).expect("JSON");
                    if let Some(path) = action["add"]["path"].as_str() {
                        known.insert(format!("{folder}/{path}"));
                    }
                }
            }
            assert_eq!(data_files(&names(&store.inner).await), known, "{fault:?} {writes}");
        }
    }
}

#[tokio::test]
async fn a_target_of_another_ledger_or_of_nobody_is_left_alone() {
    let (store, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    world.export(&target, 10).await.expect("it is exported");
    let before = names(&store.inner).await;
    let other = World::new("other");
    let error = other.export(&target, 10).await.expect_err("the tables are another ledger's");
    assert!(matches!(error, LakehouseError::OtherLedger { .. }) && !error.may_pass(), "{error}");
    assert!(error.to_string().contains(&world.charter.ledger().to_string()), "{error}");
    assert_eq!(names(&store.inner).await, before);
    // A Delta table that somebody else has made, where no export has been.
    let (store, target) = memory(Fault::Refused);
    let log = "lake/public/accounts/_delta_log/00000000000000000000.json";
    let actions = [
        r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
        r#"{"metaData":{"id":"7c1b3e0c-0000-0000-0000-000000000000","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{},"createdTime":1}}"#,
    ];
    store.inner.put(&Path::from(log), actions.join("\n").into()).await.expect("there is room");
    let error = world.export(&target, 10).await.expect_err("the table is somebody else's");
    assert!(matches!(error, LakehouseError::NotAnExport { .. }), "{error}");
    assert_eq!(data_files(&names(&store.inner).await), BTreeSet::new());
}

#[tokio::test]
async fn two_nodes_do_not_write_into_one_target() {
    let (_, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    world.export(&target, 10).await.expect("it is exported");
    let mut other = Exporter::new(target.clone(), world.charter.clone(), "another".into(), Vec::new());
    let error = other.export(&world.certified(20)).await.expect_err("somebody else writes there");
    assert!(matches!(error, LakehouseError::OtherWriter { .. }), "{error}");
    other.take_over().await.expect("it can be written");
    world.accounts([11], 100);
    other.export(&world.certified(20)).await.expect("it is its own now");
    assert!(world.export(&target, 30).await.is_err(), "the first one has lost it");
    assert_eq!(rows(&target, &world, None).await[0].2, 11);
}

#[tokio::test]
async fn what_somebody_else_commits_is_found_and_written_again() {
    let (store, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    world.export(&target, 10).await.expect("it is exported");
    // Somebody deletes all rows.
    let url = url::Url::parse("memory:///lake/public/accounts/").expect("an address");
    let prefixed = object_store::prefix::PrefixStore::new(store.clone(), "lake/public/accounts");
    let log = deltalake_core::logstore::default_logstore(
        Arc::new(prefixed),
        store.clone(),
        &url,
        &Default::default(),
    );
    let mut table = deltalake_core::DeltaTable::new(log.clone());
    table.load().await.expect("a table");
    let path =
        table.snapshot().expect("loaded").log_data().iter().next().expect("a file").path().into_owned();
    let remove = serde_json::json!({"remove": {"path": path, "dataChange": true, "deletionTimestamp": 1}});
    let remove = serde_json::from_value(remove).expect("an action");
    let operation = deltalake_core::protocol::DeltaOperation::Delete { predicate: None };
    CommitBuilder::default()
        .with_actions(vec![remove])
        .build(table.snapshot().ok().map(|state| state as _), log, operation)
        .await
        .expect("nobody stops them");
    // The certified version is as it was, and the next export puts the rows back.
    assert_eq!(rows(&target, &world, None).await[0], ("accounts".to_string(), 0, 10));
    world.export(&target, 20).await.expect("it is exported");
    assert_eq!(rows(&target, &world, None).await[0], ("accounts".to_string(), 2, 10));
}

#[tokio::test]
async fn a_folder_that_vanishes_is_named_and_not_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("Der See, 100%");
    let target = Target::open(place.to_str().expect("a plain name")).expect("a folder");
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    let mut exporter = world.exporter(&target);
    assert_eq!(exporter.newest().await.expect("it is empty"), None);
    exporter.export(&world.certified(10)).await.expect("it is exported");
    assert_eq!(exporter.newest().await.expect("it is there"), Some(10));
    std::fs::rename(&place, folder.path().join("elsewhere")).expect("it can be moved");
    let error = exporter.newest().await.expect_err("it has gone");
    assert!(matches!(error, LakehouseError::Vanished { .. }) && error.may_pass(), "{error}");
    let error = exporter.export(&world.certified(20)).await.expect_err("it has gone");
    assert!(matches!(error, LakehouseError::Vanished { .. }), "{error}");
    assert!(!place.join("public").exists(), "nothing is written where nothing is mounted");
    std::fs::rename(folder.path().join("elsewhere"), &place).expect("it can be moved");
    exporter.export(&world.certified(20)).await.expect("it is back");
    assert_eq!(rows(&target, &world, None).await[0].2, 10);
}

#[tokio::test]
async fn what_a_killed_export_has_left_in_a_folder_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = Target::open(folder.path().to_str().expect("a plain name")).expect("a folder");
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    world.export(&target, 10).await.expect("it is exported");
    let table = folder.path().join("public/accounts");
    let writing = r#"{"kind":"entente export 1","height":20,"attempt":"20-00ff","folders":["public/accounts","sales/events"]}"#;
    std::fs::write(folder.path().join("_entente/writing.json"), writing).expect("there is room");
    let left = ["aa-1-bb-20-00ff.parquet", "aa-1-bb-20-00ff.parquet#1"].map(|name| table.join(name));
    left.iter().for_each(|path| std::fs::write(path, "half").expect("there is room"));
    world.accounts([11], 1);
    world.export(&target, 30).await.expect("it is exported");
    assert!(left.iter().all(|path| !path.exists()));
    assert_eq!(rows(&target, &world, None).await[0].2, 11);
}

#[tokio::test]
async fn only_some_tables_are_exported_and_unknown_ones_are_named() {
    let (store, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.change(EVENTS, (0..9).map(event));
    let some = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_string()).collect();
        Exporter::new(target.clone(), world.charter.clone(), "writer".into(), names)
    };
    let error = some(&["events"]).export(&world.certified(10)).await.expect_err("no such table");
    assert!(error.to_string().contains("accounts, sales.events"), "{error}");
    some(&["sales.events"]).export(&world.certified(10)).await.expect("it is exported");
    assert_eq!(rows(&target, &world, None).await, [("sales.events".to_string(), 0, 9)]);
    assert!(table(&store, "public/accounts").await.is_none());
}

#[tokio::test]
async fn what_decimals_cannot_say_is_exported_and_proved_all_the_same() {
    let (_, target) = memory(Fault::Refused);
    let mut world = World::new("test");
    world.accounts(0..10, 100);
    let strange = Row::from([Value::BigInt(3), Value::Null, Value::Numeric(Numeric::NAN)]);
    world.change(ACCOUNTS, [(key(3), Some(strange)), (key(4), Some(account(4, -1)))]);
    world.export(&target, 10).await.expect("it is exported");
    assert_eq!(rows(&target, &world, None).await[0].2, 10);
}
