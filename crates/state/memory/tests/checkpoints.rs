//! Checkpoints: the same bytes on every node, the same state after reading, an error for every damage.

#![allow(clippy::unwrap_used)] // A test fails where its preparation does.

use crypto::{Digest, PublicKey};
use memory::Memory;
use proofs::state::TreeShape;
use state::conformance::{FailingStores, Failures, Operation};
use state::{
    AfterImage, Checkpoint, CheckpointError, CheckpointHeader, KeptState, KeyRange, LiveRequests, PlainState,
    RowId, Snapshot, StateNode, StateOutline, StatePiece, StateTree, Store, Stores, Version, content_digest,
    read_checkpoint, write_checkpoint,
};
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{
    AdvisoryKey, Catalog, Certificate, Charter, CheckpointRoot, ClientId, Column, DataType, Deferral, Index,
    Key, RequestId, Row, Table, TableId, TransactionId, Value,
};

const HEADER: CheckpointHeader = CheckpointHeader {
    ledger: Digest([1; 32]),
    height: 40,
    state_digest: Digest([2; 32]),
    outcome: Digest([3; 32]),
};

fn catalog() -> Arc<Catalog> {
    let column = |name: &str, data_type| Column {
        name: name.into(),
        data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    let table = |id: u32| Table {
        id: TableId(id),
        name: format!("t{id}"),
        columns: vec![column("k", DataType::BigInt), column("v", DataType::Text(None))],
        primary_key: vec![0],
        primary_key_name: String::from("t_pkey"),
        checks: vec![],
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    // Names in another order than numbers.
    let tables =
        [7, 3, 9].iter().enumerate().map(|(at, id)| (format!("name{at}"), Arc::new(table(*id)))).collect();
    Arc::new(Catalog { version: 3, next_table: 10, tables, ..Catalog::default() })
}

fn image(table: u32, number: i64, text: &str) -> AfterImage {
    let key = Key::encode([&Value::BigInt(number)]).unwrap();
    let row: Row = Arc::from([Value::BigInt(number), Value::text(text)]);
    AfterImage { row: RowId { table: TableId(table), key }, value: Some(row) }
}

fn live() -> LiveRequests {
    live_since(30)
}

fn live_since(first: u64) -> LiveRequests {
    let mut live = LiveRequests::new();
    for height in first..=40 {
        live.begin_block(height);
        for index in 0..5u32 {
            let number = (height * 10) as u8 + index as u8;
            let client = ClientId { key: PublicKey([index as u8; 32]), request: RequestId([number; 16]) };
            live.admit(client, TransactionId(Digest([number; 32])), index, height + 4 + u64::from(index % 3))
                .unwrap();
        }
    }
    live
}

/// A state with `rows` rows in each of two tables; how it came about depends on `batches`.
fn state(rows: i64, batches: usize) -> Arc<dyn Store> {
    state_of(catalog(), rows, batches)
}

fn state_of(catalog: Arc<Catalog>, rows: i64, batches: usize) -> Arc<dyn Store> {
    let state = Memory.create(catalog).unwrap();
    let mut changes: Vec<AfterImage> =
        [3, 7].iter().flat_map(|table| (0..rows).map(|number| image(*table, number, "text"))).collect();
    changes.sort_by(|a, b| a.row.cmp(&b.row));
    let mut height = 0;
    for batch in changes.chunks(changes.len().div_ceil(batches).max(1)) {
        height += 1;
        let gone = |image: &AfterImage| AfterImage { row: image.row.clone(), value: None };
        state.apply(Version::after_batch(height, 0), batch, None).unwrap();
        state
            .apply(Version::after_batch(height, 1), &batch.iter().map(gone).collect::<Vec<_>>(), None)
            .unwrap();
        state.apply(Version::after_batch(height, 2), batch, None).unwrap();
    }
    state
}

fn written(state: &dyn Store, live: &LiveRequests) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_checkpoint(&HEADER, &*state.snapshot(), &live.content(), &mut bytes).unwrap();
    bytes
}

fn rows_of(snapshot: &dyn Snapshot) -> PlainState {
    let mut plain = PlainState::new(snapshot.catalog().clone());
    for table in [3, 7, 9].map(TableId) {
        let scanned = snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
            plain.apply(&AfterImage { row: RowId { table, key: key.clone() }, value: Some(row.clone()) });
            ControlFlow::Continue(())
        });
        scanned.unwrap();
    }
    plain
}

#[test]
fn a_checkpoint_read_is_the_state_that_was_written() {
    for rows in [0, 1, 6_000] {
        let (before, live) = (state(rows, 1), live());
        let bytes = written(&*before, &live);
        let Checkpoint { header, state, live: live_read } = read_checkpoint(&bytes[..], &Memory).unwrap();
        assert_eq!(header, HEADER);
        assert_eq!(state.version(), Version::after_block(HEADER.height));
        assert_eq!(rows_of(&*state.snapshot()), rows_of(&*before.snapshot()));
        assert_eq!(state.catalog_digest(), before.catalog_digest());
        assert_eq!((state.rows(TableId(3)), state.rows(TableId(9))), (rows as u64, 0));
        assert!(live_read.content().iter().eq(live.content().iter()));
        assert_eq!(live_read.height(), HEADER.height);
        assert_eq!(written(&*state, &live_read), bytes, "and is written the same again");
    }
}

/// Everything that stands under this number.
fn all_of(state: &dyn Store, table: TableId) -> Vec<(Key, Row)> {
    let mut found = Vec::new();
    let scanned = state.snapshot().scan(table, &KeyRange::ALL, false, &mut |key, row| {
        found.push((key.clone(), row.clone()));
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    found
}

#[test]
fn indexes_are_there_again_and_only_taken_keys_are_stored() {
    let index = Index {
        number: 11,
        name: "i".into(),
        columns: vec![0],
        unique: true,
        constraint: true,
        details: Default::default(),
        deferral: Deferral::Never,
        primary: false,
        method: types::IndexMethod::Ordered,
    };
    let indexed = |unique| {
        let mut catalog = Catalog::clone(&catalog());
        catalog.indexes.insert(TableId(3), vec![Index { unique, ..index.clone() }]);
        Arc::new(catalog)
    };
    let rows = || (0..3_000).map(|number| image(3, number, "text"));
    let state_with = |catalog, taken: bool| {
        let state = Memory.create(catalog).unwrap();
        let keys = rows().filter(|_| taken).map(|image| {
            let row = image.value.unwrap();
            let key = index.unique_entry(&row).unwrap().unwrap();
            AfterImage { row: RowId { table: index.unique_entries(), key }, value: Some(Row::default()) }
        });
        let mut changes: Vec<AfterImage> = rows().chain(keys).collect();
        changes.sort_by(|a, b| a.row.cmp(&b.row));
        state.apply(Version::after_batch(1, 0), &changes, None).unwrap();
        state
    };
    let before = state_with(indexed(true), true);
    let bytes = written(&*before, &live());
    let after = read_checkpoint(&bytes[..], &Memory).unwrap().state;
    for table in [TableId(3), index.entries(), index.unique_entries()] {
        assert_eq!(all_of(&*after, table), all_of(&*before, table));
        assert_eq!(all_of(&*after, table).len(), 3_000);
    }
    assert_eq!(written(&*after, &live()), bytes);
    // An index that is not unique takes no more room than its name.
    let [ordered, none] =
        [indexed(false), catalog()].map(|catalog| written(&*state_with(catalog, false), &live()).len());
    assert!(ordered - none < 100, "{none} bytes without the index, {ordered} with it");
}

#[test]
fn equal_states_have_equal_checkpoints_whatever_led_to_them() {
    let (one, other) = (state(500, 1), state(500, 37));
    assert_eq!(written(&*one, &live()), written(&*other, &live()));
    let content_digest = |snapshot: &dyn Snapshot| content_digest(snapshot).unwrap();
    let digest = content_digest(&*one.snapshot());
    assert_eq!(digest, content_digest(&*other.snapshot()));
    assert_eq!(digest, content_digest(&rows_of(&*one.snapshot())), "the plain state has the same content");
    one.apply(Version::after_batch(90, 0), &[image(3, 400, "other")], None).unwrap();
    assert_ne!(digest, content_digest(&*one.snapshot()));
}

#[test]
fn a_state_read_from_a_checkpoint_goes_on() {
    let bytes = written(&*state(100, 1), &live());
    let Checkpoint { state, mut live, .. } = read_checkpoint(&bytes[..], &Memory).unwrap();
    let before = state.snapshot();
    state.apply(Version::after_batch(41, 0), &[image(3, 5, "new"), image(3, 100, "more")], None).unwrap();
    assert_eq!(rows_of(&*before), rows_of(&*read_checkpoint(&bytes[..], &Memory).unwrap().state.snapshot()));
    assert_eq!(state.rows(TableId(3)), 101);
    live.begin_block(41);
    let known = live.content().iter().next().unwrap();
    assert!(live.admit(known.client, known.id, 0, 50).is_err());
}

#[test]
fn every_flipped_byte_and_every_torn_end_is_an_error() {
    let bytes = written(&*state(2, 1), &live_since(40));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(read_checkpoint(&damaged[..], &Memory).is_err(), "byte {at} flipped");
        assert!(read_checkpoint(&bytes[..at], &Memory).is_err(), "torn after {at} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(read_checkpoint(&longer[..], &Memory), Err(CheckpointError::Damaged { .. })));
    assert!(matches!(
        read_checkpoint(&b"something else entirely"[..], &Memory),
        Err(CheckpointError::Format { .. })
    ));
}

/// The damage alone would make a node try an older checkpoint, which the store would refuse too.
#[test]
fn a_store_that_fails_is_named_also_where_the_checkpoint_is_damaged_behind_that() {
    let bytes = written(&*state(6_000, 1), &live());
    let torn = &bytes[..bytes.len() * 3 / 4];
    assert!(matches!(read_checkpoint(torn, &Memory).err(), Some(CheckpointError::Read(_))));
    let failures = Arc::new(Failures::default());
    failures.fail(Operation::Add, 0);
    let stores = FailingStores::new(Arc::new(Memory), failures);
    assert!(matches!(read_checkpoint(torn, &stores).err(), Some(CheckpointError::Store(_))));
}

/// Claims of lengths and counts are not believed: reading ends where the bytes end, without the memory for the claim.
#[test]
fn claimed_lengths_do_not_take_memory() {
    let bytes = written(&*state(0, 1), &LiveRequests::new());
    let catalog_length = 8 + 4 + 104;
    let mut claims = bytes[..catalog_length].to_vec();
    claims.extend_from_slice(&u32::MAX.to_le_bytes());
    let endless = claims.as_slice().chain(std::io::repeat(0).take(1 << 20));
    assert!(matches!(read_checkpoint(endless, &Memory), Err(CheckpointError::Read(_))));
}

fn unsigned(tree: &StateTree) -> Certificate<CheckpointRoot> {
    let CheckpointHeader { ledger, height, outcome, .. } = HEADER;
    let statement = CheckpointRoot { ledger, height, outcome, state_root: tree.root() };
    Certificate { statement, signatures: Vec::new() }
}

#[test]
fn a_checkpoint_that_is_kept_gives_proofs_and_pieces_while_the_state_goes_on() {
    let shapes = [(TreeShape::Ranges, 2), (TreeShape::Groups, 3)];
    let cases = [0, 1, 6_000].into_iter().flat_map(|rows| shapes.map(|shape| (rows, shape)));
    for (rows, (shape, execution_version)) in cases {
        let mut catalog = Catalog::clone(&catalog());
        let charter = Charter { execution_version, ..Charter::with_defaults("test", 1) };
        catalog.governance.founding = Some(Arc::new(charter));
        let (state, live) = (state_of(Arc::new(catalog), rows, 2), live().content());
        let snapshot = state.snapshot();
        let tree = StateTree::new(snapshot.as_ref(), &live, shape).unwrap();
        let kept = state.keep_checkpoint(&HEADER, snapshot.clone(), live.clone(), shape).unwrap().unwrap();
        let key = Key::encode([&Value::BigInt(0)]).unwrap();
        let gone = AfterImage { row: RowId { table: TableId(3), key }, value: None };
        state.apply(Version::after_batch(41, 0), &[gone], None).unwrap();
        assert_eq!((kept.tree(), *kept.header()), (&tree, HEADER));
        assert_eq!(kept.outline(), StateOutline::new(&tree, snapshot.as_ref(), &live));
        for number in 0..tree.nodes().len() + 1 {
            let piece = StatePiece::new(&tree, snapshot.as_ref(), number).unwrap();
            assert_eq!(kept.piece(number).unwrap(), piece);
        }
        assert_eq!(kept.find_damage(0..tree.nodes().len()).unwrap(), None);
        let certificate = unsigned(&tree);
        for (table, number) in [(3, 0), (3, 2_999), (3, -1), (7, 9_999), (9, 1), (4, 1)] {
            let key = Key::encode([&Value::BigInt(number)]).unwrap();
            let expected = tree.prove(snapshot.as_ref(), TableId(table), &key, certificate.clone()).unwrap();
            assert_eq!(kept.prove(TableId(table), &key, certificate.clone()).unwrap(), expected);
        }
    }
}

#[test]
fn a_row_that_is_another_one_than_the_tree_was_made_of_is_found() {
    let (state, live) = (state(6_000, 1), live().content());
    let snapshot = state.snapshot();
    for shape in [TreeShape::Ranges, TreeShape::Groups] {
        let tree = StateTree::new(snapshot.as_ref(), &live, shape).unwrap();
        let nodes = tree.nodes().len();
        for number in [0, 1_234, 2_999] {
            let key = Key::encode([&Value::BigInt(number)]).unwrap();
            for value in [None, snapshot.get(TableId(3), &key).unwrap().map(|row| changed(&row))] {
                let mut other = PlainState::new(snapshot.catalog().clone());
                for table in snapshot.catalog().row_tables() {
                    snapshot
                        .scan(table, &KeyRange::ALL, false, &mut |key, row| {
                            let row = AfterImage {
                                row: RowId { table, key: key.clone() },
                                value: Some(row.clone()),
                            };
                            other.apply(&row);
                            ControlFlow::Continue(())
                        })
                        .unwrap();
                }
                other.apply(&AfterImage { row: RowId { table: TableId(3), key: key.clone() }, value });
                let kept = KeptState::new(HEADER, Arc::new(other), live.clone(), tree.clone());
                let found = kept.find_damage(0..nodes).unwrap().expect("a row is another one");
                assert_eq!(found.table(), TableId(3), "row {number}");
            }
        }
    }
}

#[test]
fn a_row_that_has_come_is_found_wherever_it_stands() {
    let live = live().content();
    for shape in [TreeShape::Ranges, TreeShape::Groups] {
        let mut even = PlainState::new(catalog());
        (0..6_000).for_each(|number| even.apply(&image(3, 2 * number, "text")));
        let tree = StateTree::new(&even, &live, shape).unwrap();
        let nodes = tree.nodes().len();
        assert!(nodes > 6, "{nodes} nodes");
        // In front of all, behind all, in every gap around the ends of groups, and in the table that is empty.
        let ends = tree.nodes().iter().filter_map(|node| match node {
            StateNode::Group { first, .. } => Some(first.clone()),
            StateNode::Table(_) => None,
        });
        let numbers = (0..6_000).map(|number| 2 * number);
        let first = ends.flat_map(|end| numbers.clone().find(|number| image(3, *number, "").row.key == end));
        let gaps = first.flat_map(|number| [(3, number - 1), (3, number + 1)]);
        for (table, number) in gaps.chain([(3, 11_999), (3, 99_999), (7, 5)]) {
            let mut other = even.clone();
            other.apply(&image(table, number, "text"));
            let kept = KeptState::new(HEADER, Arc::new(other), live.clone(), tree.clone());
            let found = kept.find_damage(0..nodes).unwrap().expect("a row is there that was not");
            assert_eq!(found.table(), TableId(table), "row {number}");
            let damaged = (0..nodes).filter(|node| kept.piece(*node).is_err()).count();
            assert_eq!(damaged, usize::from(table == 3), "row {number}: nobody gets such a piece");
            let key = image(table, number, "").row.key;
            assert!(kept.prove(TableId(table), &key, unsigned(&tree)).is_err(), "row {number}: nor a proof");
        }
    }
}

/// A row with another value in its last column.
fn changed(row: &Row) -> Row {
    let mut values = row.to_vec();
    if let Some(last) = values.last_mut() {
        *last = Value::Null;
    }
    values.into()
}

#[test]
fn advisory_locks_are_rows_of_the_state_which_has_another_root_only_as_long_as_there_are_any() {
    let (state, live) = (state(100, 1), live());
    let roots = || {
        let snapshot = state.snapshot();
        [TreeShape::Ranges, TreeShape::Groups]
            .map(|shape| StateTree::new(snapshot.as_ref(), &live.content(), shape).unwrap().root())
    };
    let (before, bytes_before) = (roots(), written(&*state, &live));
    let row = RowId { table: TableId::ADVISORY_LOCKS, key: AdvisoryKey::Two(1, -2).row_key() };
    let value = Some(types::advisory_row(&vec![7_u64]));
    let locked = AfterImage { row: row.clone(), value: value.clone() };
    state.apply(Version::after_batch(8, 0), std::slice::from_ref(&locked), None).unwrap();
    assert!(roots().iter().zip(&before).all(|(root, before)| root != before));
    let read = read_checkpoint(&written(&*state, &live)[..], &Memory).unwrap().state;
    assert_eq!(read.snapshot().get(row.table, &row.key).unwrap(), value);
    state.apply(Version::after_batch(9, 0), &[AfterImage { value: None, ..locked }], None).unwrap();
    assert_eq!((roots(), written(&*state, &live)), (before, bytes_before));
}
