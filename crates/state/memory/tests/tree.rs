//! The tree over a state: the same for the same content, whatever led to it; another one for another content; and proofs of
//! every row and of every row that is not there.
#![allow(missing_docs)]

use crypto::{Digest, SecretKey};
use memory::Memory;
use proofs::state::TreeShape;
use proofs::{Entry, Found, GroupedRow, Path, ProofError, RowProof};
use proptest::prelude::*;
use state::{AfterImage, LiveRequests, RowId, StateNode, StateTree, Store, Stores, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    AmendedCharter, Attestation, Catalog, Certificate, Charter, CharterChange, CheckpointCertificate,
    CheckpointRoot, ClientId, Column, DataType, Handover, Key, Organisation, OutcomeHeader, RequestId, Row,
    Table, TableId, TransactionId, Value,
};

type Rows = BTreeMap<(u32, u16), i64>;

fn key(number: u16) -> Key {
    Key::encode([&Value::Integer(number.into())]).expect("a short key")
}

fn row(number: u16, value: i64) -> Row {
    Arc::from([Value::Integer(number.into()), Value::BigInt(value)])
}

fn catalog(tables: u32) -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    for id in 1..=tables {
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
            columns: vec![column("id", DataType::Integer), column("value", DataType::BigInt)],
            primary_key: vec![0],
            primary_key_name: format!("t{id}_pkey"),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        catalog.tables.insert(name, Arc::new(table));
    }
    Arc::new(catalog)
}

/// Writes `changes` in batches of some size.
fn state_after(tables: u32, changes: &[((u32, u16), Option<i64>)], batch: usize) -> Arc<dyn Store> {
    let state = Memory.create(catalog(tables)).expect("memory can be read");
    for (number, changes) in changes.chunks(batch.max(1)).enumerate() {
        let last: BTreeMap<_, _> = changes.iter().copied().collect();
        let image = |((table, number), value): (&(u32, u16), &Option<i64>)| AfterImage {
            row: RowId { table: TableId(*table), key: key(*number) },
            value: value.map(|value| row(*number, value)),
        };
        let images: Vec<AfterImage> = last.iter().map(image).collect();
        state.apply(Version::after_batch(number as u64 + 1, 0), &images, None).expect("memory can be read");
    }
    state
}

const SHAPES: [TreeShape; 2] = [TreeShape::Ranges, TreeShape::Groups];

fn tree(state: &dyn Store, shape: TreeShape) -> StateTree {
    let live = LiveRequests::new().content();
    StateTree::new(state.snapshot().as_ref(), &live, shape).expect("memory can be read")
}

fn of_rows(tables: u32, rows: &Rows) -> Arc<dyn Store> {
    let changes: Vec<_> = rows.iter().map(|(place, value)| (*place, Some(*value))).collect();
    state_after(tables, &changes, usize::MAX)
}

fn node_key(member: usize) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 101; 32])
}

fn charter() -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    for member in 0..4 {
        charter.organisations.push(Organisation {
            name: format!("org{}", member + 1),
            root_key: SecretKey::from_bytes([member as u8 + 1; 32]).public_key(),
            node_key: node_key(member).public_key(),
            address: format!("127.0.0.1:{}", 7_000 + member),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
    }
    charter
}

fn certificate(charter: &Charter, state_root: Digest) -> CheckpointCertificate {
    let statement =
        CheckpointRoot { ledger: charter.ledger(), height: 9, outcome: Digest([7; 32]), state_root };
    let sign = |member: u16| {
        (member, Attestation::sign(statement.clone(), member, &node_key(member.into())).signature)
    };
    Certificate { signatures: [0, 2, 3].map(sign).to_vec(), statement }
}

/// Many rows: several ranges per table.
fn many() -> Rows {
    (0..3_000u16).map(|number| ((1 + u32::from(number % 3), number), i64::from(number) * 7)).collect()
}

#[test]
fn groups_end_where_rows_say_so_and_a_change_moves_those_around_it() {
    let groups = |tree: &StateTree| -> Vec<StateNode> {
        tree.nodes().iter().filter(|node| matches!(node, StateNode::Group { .. })).cloned().collect()
    };
    // About 256 rows each, and about 1,000.
    for (shape, expected, moved) in [(TreeShape::Ranges, 6..40, 6), (TreeShape::Groups, 10..80, 6)] {
        let count = if shape == TreeShape::Ranges { 3_000 } else { 30_000 };
        let mut rows: Rows =
            (0..count).map(|number| ((1 + u32::from(number % 3), number), i64::from(number) * 7)).collect();
        let before = tree(&*of_rows(4, &rows), shape);
        let count = groups(&before).len();
        assert!(expected.contains(&count), "{count} groups");
        rows.remove(&(2, 1_501));
        rows.insert((3, 59_999), 1);
        let after = tree(&*of_rows(4, &rows), shape);
        assert_ne!(before.root(), after.root());
        let kept = groups(&after).into_iter().filter(|group| groups(&before).contains(group)).count();
        assert!(kept + moved >= count, "{kept} of {count} groups are as they were");
    }
}

/// What one row more or less does to ranges that end by their size, and to groups that do.
#[test]
fn ranges_and_groups_have_limits() {
    let row = Digest([1; 32]);
    let groups = TreeShape::Groups;
    assert!(groups.ends_range(&Digest([32; 32]), 1, 1) && groups.ends_group(&Digest([64; 32]), 1, 1, 1));
    assert!(!groups.ends_range(&row, 127, 65_535) && !groups.ends_group(&row, 127, 127, 262_143));
    assert!(groups.ends_range(&row, 128, 1) && groups.ends_range(&row, 1, 65_536));
    assert!(groups.ends_group(&row, 128, 128, 1) && groups.ends_group(&row, 1, 1, 262_144));
    let ranges = TreeShape::Ranges;
    assert!(ranges.ends_range(&Digest([0; 32]), 1, 1) && !ranges.ends_range(&Digest([32; 32]), 1_023, 1));
    assert!(ranges.ends_group(&row, 1, 1, 1));
    let (table, key) = (TableId(1), key(7));
    assert_eq!(ranges.group_leaf(table, &key, &[row]), row);
    assert_ne!(groups.group_leaf(table, &key, &[row]), row);
    assert_ne!(groups.range_leaf(table, &key, &row), ranges.range_leaf(table, &key, &row));
    assert_ne!(groups.range_leaf(table, &key, &row), groups.group_leaf(table, &key, &[row]));
}

#[test]
fn everything_in_the_state_goes_into_its_root() {
    SHAPES.into_iter().for_each(everything_goes_in);
}

fn everything_goes_in(shape: TreeShape) {
    let rows = many();
    let root = |tables: u32, rows: &Rows| tree(&*of_rows(tables, rows), shape).root();
    let base = root(3, &rows);
    assert_ne!(root(4, &rows), base, "another catalog");
    for place in [(1, 0), (2, 1_501), (3, 2_999)] {
        let mut changed = rows.clone();
        changed.insert(place, -1);
        assert_ne!(root(3, &changed), base, "{place:?}");
        changed.remove(&place);
        assert_ne!(root(3, &changed), base, "without {place:?}");
    }
    let state = of_rows(3, &rows);
    let mut roots = vec![base];
    for count in [1u8, 15, 16, 40] {
        let mut live = LiveRequests::new();
        live.begin_block(1);
        for number in 0..count {
            let key = SecretKey::from_bytes([3; 32]).public_key();
            let client = ClientId { key, request: RequestId([number; 16]) };
            live.admit(client, TransactionId(Digest([number; 32])), number.into(), 50).expect("a new id");
        }
        roots.push(
            StateTree::new(state.snapshot().as_ref(), &live.content(), shape)
                .expect("memory can be read")
                .root(),
        );
    }
    roots.sort_unstable();
    roots.dedup();
    assert_eq!(roots.len(), 5);
}

#[test]
fn every_row_and_every_gap_is_proved() {
    SHAPES.into_iter().for_each(every_row_is_proved);
}

fn every_row_is_proved(shape: TreeShape) {
    let charter = charter();
    // Table 3 is empty, 4 has one row, 5 is the last one and empty.
    let mut rows: Rows = (0..1_200u16).map(|number| ((1 + u32::from(number % 2), number * 2), 1)).collect();
    rows.insert((4, 10), 5);
    let state = of_rows(5, &rows);
    let (tree, snapshot) = (tree(&*state, shape), state.snapshot());
    let certificate = certificate(&charter, tree.root());
    let prove = |table: u32, number: u16| {
        let (table, key) = (TableId(table), key(number));
        tree.prove(snapshot.as_ref(), table, &key, certificate.clone())
            .expect("memory can be read")
            .expect("there is such a table")
    };
    let numbers = (0..2_500u16).step_by(7).chain(0..40).chain([1_201, 2_398, 2_399, 2_400, 65_535]);
    for (table, number) in numbers.flat_map(|number| (1..=5).map(move |table| (table, number))) {
        let proof = prove(table, number);
        let expected = rows.get(&(table, number)).map(|value| row(number, *value));
        assert_eq!(proof.verify(&charter), Ok(expected.as_ref()), "table {table}, key {number}");
        assert_eq!(proof.key(), &key(number));
        assert_eq!(proof.table.table.name, format!("t{table}"));
        assert_eq!(RowProof::from_bytes(&proof.to_bytes()), Ok(proof));
    }
    let unknown =
        tree.prove(snapshot.as_ref(), TableId(6), &key(1), certificate).expect("memory can be read");
    assert!(unknown.is_none());
}

#[test]
fn no_row_is_hidden_and_none_is_moved() {
    SHAPES.into_iter().for_each(no_row_is_hidden);
}

fn no_row_is_hidden(shape: TreeShape) {
    let charter = charter();
    let state = of_rows(2, &many());
    let (tree, snapshot) = (tree(&*state, shape), state.snapshot());
    let certificate = certificate(&charter, tree.root());
    let prove = |table: u32, number: u16| {
        tree.prove(snapshot.as_ref(), TableId(table), &key(number), certificate.clone())
            .expect("memory can be read")
            .expect("a table")
    };
    let entry = |table: u32, number: u16| match prove(table, number).found {
        Found::Row(entry) => Entry::Row(entry),
        Found::Grouped(entry) => Entry::Grouped(entry),
        Found::Nothing { .. } => panic!("there is such a row"),
    };
    // Rows 600, 603, 606, … are in table 1. Row 603 is left out.
    let found = Found::Nothing {
        key: key(603),
        before: Box::new(entry(1, 600)),
        after: Some(Box::new(entry(1, 606))),
    };
    let hidden = RowProof { found, ..prove(1, 603) };
    assert_eq!(
        hidden.verify(&charter),
        Err(ProofError::Order("something stands between what should be neighbours"))
    );
    let cut = Found::Nothing { key: key(603), before: Box::new(entry(1, 600)), after: None };
    let cut = RowProof { found: cut, ..prove(1, 603) };
    assert_eq!(
        cut.verify(&charter),
        Err(ProofError::Order("something stands behind what should be the last"))
    );
    // A gap that is there, somewhere else.
    let Found::Nothing { before, after, .. } = prove(1, 604).found else { panic!("no such row") };
    for number in [603, 606, 612] {
        let found = Found::Nothing { key: key(number), before: before.clone(), after: after.clone() };
        let elsewhere = RowProof { found, ..prove(1, number) };
        assert!(matches!(elsewhere.verify(&charter), Err(ProofError::Order(_))), "{number}");
    }
    // A row of another table.
    let moved = RowProof { found: prove(2, 601).found, ..prove(1, 603) };
    assert_eq!(moved.verify(&charter), Err(ProofError::Order("the row is one of another table")));
}

/// The same charter with another node key of its first member from height 5 on, and what proves it.
fn amended(charter: &Charter) -> Handover {
    let (name, node_key) = ("org1".to_string(), node_key(8).public_key());
    let change = CharterChange::ReplaceNodeKey { name, node_key, expires: None };
    let amended =
        AmendedCharter { charter: charter.amended(&change).expect("a good change"), effective_height: 5 };
    let zero = Digest([0; 32]);
    let statement = OutcomeHeader {
        ledger: charter.ledger(),
        height: 3,
        block: zero,
        previous: zero,
        receipts_root: zero,
        state_digest: zero,
        charters: amended.chain(&charter.ledger()),
    };
    let sign = |member: u16| {
        (member, Attestation::sign(statement.clone(), member, &self::node_key(member.into())).signature)
    };
    let certificate = Certificate { signatures: [0, 1, 2].map(sign).to_vec(), statement };
    Handover { certificate, charters: vec![amended] }
}

#[test]
fn a_row_under_a_later_charter_is_proved_from_the_founding_one() {
    let charter = charter();
    let handover = amended(&charter);
    let state = of_rows(2, &many());
    let (tree, snapshot) = (tree(&*state, TreeShape::Groups), state.snapshot());
    let mut certificate = certificate(&charter, tree.root());
    let signature = Attestation::sign(certificate.statement.clone(), 0, &node_key(8)).signature;
    certificate.signatures[0] = (0, signature);
    let proof = tree
        .prove(snapshot.as_ref(), TableId(1), &key(603), certificate)
        .expect("memory can be read")
        .expect("such a table");
    assert!(
        matches!(proof.verify(&charter), Err(ProofError::Certificate(_))),
        "the key is not the founding one"
    );
    let proof = proof.with_handovers([handover.clone()]);
    assert_eq!(proof.handovers, std::slice::from_ref(&handover));
    assert!(proof.verify(&charter).expect("good").is_some());
    assert_eq!(RowProof::from_json(&proof.to_json()), Ok(proof.clone()));
    let bytes = proof.to_bytes();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let read = RowProof::from_bytes(&flipped);
        assert!(read.is_err() || read.expect("memory can be read").verify(&charter).is_err(), "byte {at}");
    }
    let mut repeated = proof.clone();
    repeated.handovers.push(handover.clone());
    assert!(repeated.verify(&charter).is_err());
    let mut forged = proof;
    forged.handovers[0].certificate.signatures.pop();
    assert!(matches!(forged.verify(&charter), Err(ProofError::Handover(_))), "{:?}", forged.verify(&charter));
}

#[test]
fn every_flipped_byte_of_a_proof_shows() {
    SHAPES.into_iter().for_each(every_flipped_byte_shows);
}

fn every_flipped_byte_shows(shape: TreeShape) {
    let charter = charter();
    let state = of_rows(3, &many());
    let (tree, snapshot) = (tree(&*state, shape), state.snapshot());
    let certificate = certificate(&charter, tree.root());
    for (table, number) in [(1, 600), (1, 601), (3, 65_000)] {
        let key = key(number);
        let proof = tree
            .prove(snapshot.as_ref(), TableId(table), &key, certificate.clone())
            .expect("memory can be read")
            .expect("a table");
        let bytes = proof.to_bytes();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let Ok(read) = RowProof::from_bytes(&flipped) else { continue };
            // That a key which is not there is another one that is not there either is no lie.
            let other_gap = matches!(read.found, Found::Nothing { .. }) && *read.key() != key;
            assert!(read.verify(&charter).is_err() || other_gap, "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(RowProof::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}

/// Neighbours across ranges and groups: each pair of rows is taken for neighbours exactly if nothing stands between them.
fn check_neighbours(shape: TreeShape, tables: u32, rows: &Rows, step: usize) {
    let charter = charter();
    let state = of_rows(tables, rows);
    let (tree, snapshot) = (tree(&*state, shape), state.snapshot());
    let certificate = certificate(&charter, tree.root());
    let prove = |(table, number): (u32, u16)| {
        let found = tree.prove(snapshot.as_ref(), TableId(table), &key(number), certificate.clone());
        found.expect("memory can be read").expect("a table")
    };
    let places: Vec<(u32, u16)> = rows.keys().copied().collect();
    let entry = |place: (u32, u16)| match prove(place).found {
        Found::Row(entry) => Entry::Row(entry),
        Found::Grouped(entry) => Entry::Grouped(entry),
        Found::Nothing { .. } => panic!("there is such a row"),
    };
    for at in (0..places.len()).step_by(step.max(1)) {
        let before = Box::new(entry(places[at]));
        for distance in [1, 2, 3, 40, 1_000] {
            let Some(after) = places.get(at + distance) else { continue };
            let asked = (places[at].0, places[at].1 + 1);
            let found = Found::Nothing {
                key: key(asked.1),
                before: before.clone(),
                after: Some(Box::new(entry(*after))),
            };
            let proof = RowProof { found, ..prove(asked) };
            let same_table = after.0 == asked.0;
            // Between tables stands the definition of the next one.
            let expected = distance == 1 && same_table && *after > asked;
            assert_eq!(proof.verify(&charter) == Ok(None), expected, "{asked:?} before {after:?}");
        }
        let cut = Found::Nothing { key: key(places[at].1 + 1), before, after: None };
        let cut = RowProof { found: cut, ..prove((places[at].0, places[at].1 + 1)) };
        let is_last = at + 1 == places.len() && places[at].0 == tables;
        assert_eq!(cut.verify(&charter) == Ok(None), is_last, "nothing behind {:?}", places[at]);
    }
}

#[test]
fn neighbours_are_neighbours_across_ranges_and_groups() {
    // Every second number is free.
    let rows: Rows = (0..12_000u16).map(|number| ((1 + u32::from(number >= 9_000), number * 2), 1)).collect();
    for shape in SHAPES {
        check_neighbours(shape, 2, &rows, 7);
    }
}

#[test]
fn a_row_of_one_shape_proves_nothing_in_a_tree_of_the_other() {
    let charter = charter();
    let state = of_rows(1, &many());
    for (shape, other) in [(SHAPES[0], SHAPES[1]), (SHAPES[1], SHAPES[0])] {
        let [own, foreign] = [shape, other].map(|shape| {
            let tree = tree(&*state, shape);
            let certificate = certificate(&charter, tree.root());
            let found = tree.prove(state.snapshot().as_ref(), TableId(1), &key(603), certificate);
            found.expect("memory can be read").expect("a table")
        });
        let mixed = RowProof { found: foreign.found.clone(), ..own.clone() };
        assert!(mixed.verify(&charter).is_err());
        let disguised = match foreign.found {
            Found::Row(row) => {
                let (ranges, group) = (Path::default(), row.first.clone());
                Found::Grouped(GroupedRow { row, ranges, group })
            }
            Found::Grouped(GroupedRow { row, .. }) => Found::Row(row),
            Found::Nothing { .. } => panic!("there is such a row"),
        };
        assert!(RowProof { found: disguised, ..foreign }.verify(&charter).is_err());
        assert!(own.verify(&charter).expect("good").is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equal_content_has_an_equal_root_whatever_led_to_it(
        changes in prop::collection::vec(((1u32..4, 0u16..400), prop::option::weighted(0.8, 0i64..3)), 0..1_500),
        batches in (1usize..200, 1usize..2_000),
        threads in 1usize..5,
        other in ((1u32..4, 0u16..400), prop::option::of(0i64..3)),
        shape in prop::sample::select(SHAPES.to_vec()),
    ) {
        let last: BTreeMap<_, _> = changes.iter().copied().collect();
        let content: Rows = last.iter().filter_map(|(place, value)| Some((*place, (*value)?))).collect();
        let expected = tree(&*of_rows(3, &content), shape);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for batch in [batches.0, batches.1] {
            let state = state_after(3, &changes, batch);
            prop_assert_eq!(&pool.install(|| tree(&*state, shape)), &expected);
        }
        let mut changed = content.clone();
        match other.1 {
            Some(value) => drop(changed.insert(other.0, value)),
            None => drop(changed.remove(&other.0)),
        }
        prop_assert_eq!(tree(&*of_rows(3, &changed), shape).root() == expected.root(), changed == content);
    }

    #[test]
    fn gaps_of_random_states_are_proved_and_rows_in_them_are_not_hidden(
        places in prop::collection::btree_map((1u32..4, 0u16..20_000), 0i64..3, 1..1_200),
        shape in prop::sample::select(SHAPES.to_vec()),
        step in 20usize..60,
    ) {
        check_neighbours(shape, 3, &places, step);
    }
}

#[test]
fn proofs_survive_json_and_say_what_they_prove() {
    SHAPES.into_iter().for_each(proofs_survive_json);
}

fn proofs_survive_json(shape: TreeShape) {
    let (rows, charter) = (many(), charter());
    let state = of_rows(4, &rows);
    let tree = tree(&*state, shape);
    for (table, number) in [(1, 0), (2, 1_501), (2, 1_500), (4, 7), (1, 60_000)] {
        let certificate = certificate(&charter, tree.root());
        let found = tree
            .prove(state.snapshot().as_ref(), TableId(table), &key(number), certificate)
            .expect("memory can be read");
        let proof = found.expect("such a table");
        let text = proof.to_json();
        let read = RowProof::from_json(&text).expect("what was written");
        assert_eq!(read, proof);
        let value = rows.get(&(table, number)).map(i64::to_string);
        let names = read.named_values().map(|values| values[1].clone());
        assert_eq!(names, value.clone().map(|value| ("value", Some(value))));
        assert_eq!(read.verify(&charter).expect("good").is_some(), value.is_some());
        // What it says for people is what it proves.
        for (said, lie) in [
            (format!("\"table\":\"t{table}\""), "\"table\":\"t9\""),
            ("\"height\":9".to_string(), "\"height\":8"),
        ] {
            let changed = text.replacen(&said, lie, 1);
            assert_ne!(changed, text);
            assert!(matches!(RowProof::from_json(&changed), Err(ProofError::Malformed(_))), "{said}");
        }
        if let Some(value) = value {
            let changed = text.replacen(&format!("\"value\":\"{value}\""), "\"value\":\"1\"", 1);
            assert!(changed == text || RowProof::from_json(&changed).is_err());
        }
        for cut in (0..text.len()).step_by(101) {
            assert!(RowProof::from_json(&text[..cut]).is_err());
        }
    }
}
