//! A state that is fetched in pieces: in any order, each checked, and the same as the one that it comes from.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)] // A test fails where its preparation does.

use crypto::{Digest, SecretKey};
use memory::Memory;
use proofs::state::TreeShape;
use proptest::prelude::*;
use state::conformance::{FailingStores, Failures, Operation};
use state::{
    AfterImage, CheckpointHeader, KeyRange, LiveRequests, PieceError, RowId, StateAssembly, StateNode,
    StateOutline, StatePiece, StateTree, Store, Stores, Version, content_digest,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{
    Catalog, Charter, ClientId, Column, DataType, Deferral, Index, IndexDetails, Key, RequestId, Row, Table,
    TableId, TransactionId, Value,
};

const HEIGHT: u64 = 20;

/// The catalog of a ledger in which states have trees of this shape.
fn catalog(shape: TreeShape) -> Catalog {
    let mut charter = Charter::with_defaults("test", 1);
    charter.found_with_version(match shape {
        TreeShape::Ranges => 2,
        TreeShape::Groups => 3,
    });
    Catalog::founded(Arc::new(charter))
}

fn row(number: u32) -> (Key, Row) {
    let key = Value::Integer(number as i32);
    (Key::encode([&key]).expect("a short key"), Arc::from([key, Value::text(format!("row {number}"))]))
}

/// Two tables, the first with so many rows, and some live ids.
fn original(rows: u32, shape: TreeShape) -> (Arc<dyn Store>, LiveRequests) {
    let mut catalog = catalog(shape);
    for id in [1, 2] {
        let column = |name: &str, data_type| Column {
            name: name.into(),
            data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        let name = format!("t{id}");
        let table = Table {
            id: TableId(id),
            name: name.clone(),
            columns: vec![column("id", DataType::Integer), column("name", DataType::Text(None))],
            primary_key: vec![0],
            primary_key_name: format!("{name}_pkey"),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        catalog.tables.insert(name, Arc::new(table));
    }
    let state = Memory.create(Arc::new(catalog)).unwrap();
    let images: Vec<AfterImage> = (0..rows)
        .map(row)
        .map(|(key, row)| AfterImage { row: RowId { table: TableId(1), key }, value: Some(row) })
        .collect();
    state.apply(Version::after_batch(HEIGHT, 0), &images, None).unwrap();
    let mut live = LiveRequests::new();
    live.begin_block(HEIGHT);
    for number in 0..20u8 {
        let client = ClientId {
            key: SecretKey::from_bytes([number % 3 + 1; 32]).public_key(),
            request: RequestId([number; 16]),
        };
        let id = TransactionId(Digest([number; 32]));
        live.admit(client, id, number.into(), HEIGHT + u64::from(number % 4)).expect("a new id");
    }
    (state, live)
}

struct Source {
    state: Arc<dyn Store>,
    live: LiveRequests,
    tree: StateTree,
}

impl Source {
    fn new(rows: u32, shape: TreeShape) -> Source {
        let (state, live) = original(rows, shape);
        let tree = StateTree::new(state.snapshot().as_ref(), &live.content(), shape);
        let tree = tree.expect("memory can be read");
        Source { state, live, tree }
    }

    fn outline(&self) -> StateOutline {
        StateOutline::new(&self.tree, self.state.snapshot().as_ref(), &self.live.content())
    }

    fn piece(&self, number: usize) -> StatePiece {
        StatePiece::new(&self.tree, self.state.snapshot().as_ref(), number)
            .expect("memory can be read")
            .expect("a group")
    }

    fn assembly(&self) -> StateAssembly {
        StateAssembly::new(self.outline(), HEIGHT, self.tree.root(), &Memory).expect("the right outline")
    }
}

fn header() -> CheckpointHeader {
    CheckpointHeader {
        ledger: Digest::ZERO,
        height: HEIGHT,
        state_digest: Digest::ZERO,
        outcome: Digest::ZERO,
    }
}

#[test]
fn a_state_is_the_same_from_pieces_in_any_order_some_of_them_twice() {
    let shapes = [TreeShape::Ranges, TreeShape::Groups];
    for (rows, shape) in [0, 1, 3_000].into_iter().flat_map(|rows| shapes.map(|shape| (rows, shape))) {
        let source = Source::new(rows, shape);
        let mut assembly = source.assembly();
        let groups =
            source.tree.nodes().iter().filter(|node| matches!(node, StateNode::Group { .. })).count();
        let mut missing: Vec<usize> = assembly.missing().collect();
        assert_eq!(missing.len(), groups);
        missing.reverse();
        for (done, number) in missing.iter().enumerate() {
            assert_eq!(assembly.missing().count(), groups - done);
            for _ in 0..2 {
                assembly.add(*number, &source.piece(*number)).expect("the right piece");
            }
        }
        let copy = assembly.finish(header()).expect("everything is there");
        let (one, other) = (source.state.snapshot(), copy.state.snapshot());
        assert_eq!(
            content_digest(one.as_ref()).expect("memory can be read"),
            content_digest(other.as_ref()).expect("memory can be read")
        );
        assert_eq!(
            StateTree::new(other.as_ref(), &copy.live.content(), shape).expect("memory can be read"),
            source.tree
        );
        assert_eq!(copy.state.rows(TableId(1)), u64::from(rows));
    }
}

/// Without rows that the store has refused the state would look whole.
#[test]
fn a_piece_that_the_store_refuses_stays_missing() {
    let source = Source::new(3_000, TreeShape::Groups);
    let adds = 2 * source.assembly().missing().count() as u64;
    for times in 0..adds {
        let failures = Arc::new(Failures::default());
        let stores = FailingStores::new(Arc::new(Memory), failures.clone());
        let assembly = StateAssembly::new(source.outline(), HEIGHT, source.tree.root(), &stores);
        let mut assembly = assembly.expect("the right outline");
        failures.fail(Operation::Add, times);
        let refused = assembly.missing().collect::<Vec<_>>().into_iter().find(|number| {
            let added = assembly.add(*number, &source.piece(*number));
            matches!(added, Err(PieceError::Store(_)))
        });
        let refused = refused.expect("the store fails");
        assert!(assembly.missing().any(|number| number == refused), "after {times} of {adds}");
        assert!(matches!(assembly.finish(header()).err(), Some(PieceError::Incomplete(_))));
    }
}

#[test]
fn what_is_wrong_or_missing_is_named_and_changes_nothing() {
    let (source, other) = (Source::new(3_000, TreeShape::Groups), Source::new(2_999, TreeShape::Groups));
    let root = source.tree.root();
    let mut outline = source.outline();
    outline.leaves.pop();
    let refused = StateAssembly::new(outline, HEIGHT, root, &Memory).err();
    assert!(matches!(refused, Some(PieceError::Outline { expected, .. }) if expected == root));
    let refused = StateAssembly::new(other.outline(), HEIGHT, root, &Memory).err();
    assert!(matches!(refused, Some(PieceError::Outline { .. })));
    let refused = StateAssembly::new(source.outline(), 1 << 60, root, &Memory).err();
    assert!(matches!(refused, Some(PieceError::Content(_))));

    let mut assembly = source.assembly();
    let numbers: Vec<usize> = assembly.missing().collect();
    let (first, second) = (numbers[0], numbers[1]);
    assert!(
        matches!(assembly.add(first, &source.piece(second)), Err(PieceError::Rows { number, .. }) if number == first)
    );
    assert_eq!(
        assembly.add(999, &source.piece(first)),
        Err(PieceError::Number { nodes: source.tree.nodes().len(), found: 999 })
    );
    let good = source.piece(first);
    let last = good.rows.len() - 1;
    let mut changes: Vec<StatePiece> = vec![good.clone(); 5];
    changes[0].rows.remove(last);
    changes[1].rows.swap(0, last);
    changes[2].rows[last] = row(7_777);
    changes[3].table = TableId(2);
    changes[4].rows.clear();
    for changed in &changes {
        assert!(
            matches!(assembly.add(first, changed), Err(PieceError::Rows { .. })),
            "{} rows",
            changed.rows.len()
        );
    }
    assert_eq!(assembly.missing().count(), numbers.len());
    assembly.add(first, &good).expect("the right piece");
    assert_eq!(assembly.finish(header()).err(), Some(PieceError::Incomplete(numbers.len() - 1)));
}

/// Keys that are taken stand in a state like rows, but no tree has them.
#[test]
fn keys_that_are_taken_in_unique_indexes_are_there_again() {
    let index = Index {
        number: 11,
        name: "i".into(),
        columns: vec![1],
        unique: true,
        constraint: true,
        details: Default::default(),
        deferral: Deferral::Never,
        primary: false,
        method: types::IndexMethod::Ordered,
    };
    let (state, live) = original(0, TreeShape::Groups);
    let mut catalog = Catalog::clone(&state.catalog());
    catalog.indexes.insert(TableId(1), vec![index.clone()]);
    let state = Memory.create(Arc::new(catalog)).unwrap();
    let mut images: Vec<AfterImage> = Vec::new();
    for number in 0..900 {
        let (key, row) = row(number);
        let taken = index.unique_entry(&row).expect("a short key").expect("no NULL");
        images.push(AfterImage { row: RowId { table: TableId(1), key }, value: Some(row) });
        let row = RowId { table: index.unique_entries(), key: taken };
        images.push(AfterImage { row, value: Some(Row::default()) });
    }
    images.sort_by(|one, other| one.row.cmp(&other.row));
    state.apply(Version::after_batch(HEIGHT, 0), &images, None).unwrap();

    assert_eq!(rows_fetched(state.as_ref(), &live, index.unique_entries()), 900);
}

/// Fetches a state in pieces, which is the same then. Gives how many rows stand under a number.
fn rows_fetched(state: &dyn Store, live: &LiveRequests, table: TableId) -> usize {
    let tree = StateTree::new(state.snapshot().as_ref(), &live.content(), TreeShape::Groups);
    let tree = tree.expect("memory can be read");
    let outline = StateOutline::new(&tree, state.snapshot().as_ref(), &live.content());
    let mut assembly = StateAssembly::new(outline, HEIGHT, tree.root(), &Memory).expect("the right outline");
    for number in assembly.missing().collect::<Vec<_>>() {
        let piece = StatePiece::new(&tree, state.snapshot().as_ref(), number)
            .expect("memory can be read")
            .expect("a group");
        assembly.add(number, &piece).expect("the right piece");
    }
    let copy = assembly.finish(header()).expect("everything is there");
    let (one, other) = (state.snapshot(), copy.state.snapshot());
    let mut rows = 0;
    let scanned = other.scan(table, &KeyRange::ALL, false, &mut |_, _| {
        rows += 1;
        ControlFlow::Continue(())
    });
    scanned.expect("memory can be read");
    assert_eq!(
        content_digest(one.as_ref()).expect("memory can be read"),
        content_digest(other.as_ref()).expect("memory can be read")
    );
    rows
}

/// What nobody can compute without SQL is fetched and attested like rows.
#[test]
fn entries_of_computed_indexes_are_fetched_with_the_rows() {
    let details = IndexDetails { expressions: vec!["lower(a)".into()], ..IndexDetails::default() };
    let columns = vec![Index::EXPRESSION];
    let (name, deferral) = ("i".into(), Deferral::Never);
    let index = Index {
        number: 11,
        name,
        columns,
        unique: true,
        constraint: false,
        details,
        deferral,
        primary: false,
        method: types::IndexMethod::Ordered,
    };
    let (state, live) = original(0, TreeShape::Groups);
    let mut catalog = Catalog::clone(&state.catalog());
    catalog.indexes.insert(TableId(1), vec![index.clone()]);
    let state = Memory.create(Arc::new(catalog)).unwrap();
    let mut images: Vec<AfterImage> = Vec::new();
    for number in 0..900 {
        let (key, row) = row(number);
        let entry = index.computed_entry(&row[1..2], &key).expect("a short key");
        let leads: Row = vec![Value::Bytea(key.as_bytes().into())].into();
        images.push(AfterImage { row: RowId { table: TableId(1), key }, value: Some(row) });
        let row = RowId { table: index.computed_entries(), key: entry };
        images.push(AfterImage { row, value: Some(leads) });
    }
    images.sort_by(|one, other| one.row.cmp(&other.row));
    state.apply(Version::after_batch(HEIGHT, 0), &images, None).unwrap();
    assert_eq!(rows_fetched(state.as_ref(), &live, index.computed_entries()), 900);
    let root = |state: &dyn Store| {
        let tree = StateTree::new(state.snapshot().as_ref(), &live.content(), TreeShape::Groups);
        tree.expect("memory can be read").root()
    };
    let before = root(state.as_ref());
    let gone = AfterImage { value: None, ..images.last().expect("some").clone() };
    state.apply(Version::after_batch(HEIGHT + 1, 0), &[gone], None).unwrap();
    assert_ne!(root(state.as_ref()), before, "an entry that is missing is seen");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_flipped_byte_of_outline_or_piece_gets_in(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let source = Source::new(40, TreeShape::Groups);
        let number = source.assembly().missing().next().expect("a group");
        let flipped = |bytes: Vec<u8>| {
            let mut bytes = bytes;
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            bytes
        };
        let bytes = flipped(types::encode(&source.outline()));
        if let Ok(outline) = types::decode_exactly::<StateOutline>(&bytes) {
            prop_assert!(StateAssembly::new(outline, HEIGHT, source.tree.root(), &Memory).is_err());
        }
        let bytes = flipped(types::encode(&source.piece(number)));
        if let Ok(piece) = types::decode_exactly::<StatePiece>(&bytes) {
            prop_assert!(source.assembly().add(number, &piece).is_err());
        }
    }
}
