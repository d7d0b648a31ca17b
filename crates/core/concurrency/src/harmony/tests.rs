//! Edges by aggregates compared with edges by pairs.

use super::decide::edges;
use super::edges::Number;
use crate::conflict::reads_before_image_of;
use crate::optimistic::Simulated;
use crate::written_rows::WrittenRows;
use proptest::prelude::*;
use state::{
    Command, CommandKind, Effects, KeyRange, PlainState, Read, RowChange, RowFunction, RowId, RowPredicate,
    Scan,
};
use std::ops::Bound;
use std::sync::Arc;
use types::{ColumnSet, Key, Row, SqlError, TableId, Value};

const COLUMNS: usize = 3;

fn row_id(table: u32, key: u8) -> RowId {
    RowId { table: TableId(table), key: Key::from_bytes(&[key]) }
}

fn values(values: [i32; COLUMNS]) -> Row {
    values.map(Value::Integer).into()
}

/// Sets columns of an existing row; what inserts and deletes do does not matter here.
struct Set(Vec<(u16, Value)>);

impl RowFunction for Set {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let Some(row) = row else { return Ok(RowChange::Unmatched) };
        let mut values = row.to_vec();
        self.0.iter().for_each(|(ordinal, value)| values[usize::from(*ordinal)] = value.clone());
        Ok(RowChange::Put(values.into()))
    }
}

/// Every column is at least this.
struct AtLeast([i32; COLUMNS]);

impl RowPredicate for AtLeast {
    fn may_match(&self, known: &[Option<Value>]) -> bool {
        self.0.iter().enumerate().all(|(column, least)| match known.get(column) {
            Some(Some(Value::Integer(value))) => value >= least,
            Some(Some(_)) => false,
            _ => true,
        })
    }
}

fn column_set(bits: u8) -> ColumnSet {
    let columns = (0..COLUMNS).filter(|column| bits >> column & 1 == 1);
    columns.fold(ColumnSet::EMPTY, |set, column| set | ColumnSet::column(column))
}

fn commands() -> impl Strategy<Value = Command> {
    let kinds = prop_oneof![
        1 => prop::array::uniform3(0..4i32).prop_map(|row| CommandKind::Insert(values(row))),
        1 => Just(CommandKind::Delete),
        4 => prop::collection::btree_map(0..COLUMNS as u16, (0..4i32).prop_map(Value::Integer), 0..3)
            .prop_map(|known| CommandKind::Update { known: known.into_iter().collect() }),
    ];
    let guards = prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (0..2u32, 0..4u8, kinds, 0..8u8, guards).prop_map(|(table, key, kind, unknown, guard)| {
        let (writes, known) = match &kind {
            CommandKind::Update { known } => {
                let written = known.iter().fold(column_set(unknown), |set, (ordinal, _)| {
                    set | ColumnSet::column(usize::from(*ordinal))
                });
                (written, known.clone())
            }
            _ => (ColumnSet::ALL, vec![]),
        };
        let function = Arc::new(Set(known));
        let uses = ColumnSet::EXISTS;
        Command {
            row: row_id(table, key),
            function,
            kind,
            uses,
            writes,
            guard,
            can_fail: true,
            addition: None,
        }
    })
}

fn bounds() -> impl Strategy<Value = Bound<Key>> {
    (0..3u8, 0..4u8).prop_map(|(kind, key)| match kind {
        0 => Bound::Included(Key::from_bytes(&[key])),
        1 => Bound::Excluded(Key::from_bytes(&[key])),
        _ => Bound::Unbounded,
    })
}

fn scans() -> impl Strategy<Value = Scan> {
    let predicates = prop::option::weighted(0.8, (prop::array::uniform3(0..5i32), 1..8u8));
    (0..2u32, bounds(), bounds(), predicates, 0..8u8, any::<u8>()).prop_map(
        |(table, start, end, predicate, projection, result)| {
            let range = KeyRange { start, end };
            let keys = (0..4).filter(|key| result >> key & 1 == 1).map(|key| Key::from_bytes(&[key]));
            let result = keys.filter(|key| range.contains(key)).collect();
            let predicate_columns = predicate.map_or(ColumnSet::EMPTY, |(_, columns)| column_set(columns));
            let columns = column_set(projection) | predicate_columns | ColumnSet::EXISTS;
            let predicate = predicate.map(|(least, _)| Arc::new(AtLeast(least)) as Arc<dyn RowPredicate>);
            Scan { table: TableId(table), range, columns, predicate_columns, predicate, result }
        },
    )
}

pub(crate) fn effects() -> impl Strategy<Value = Option<Effects>> {
    let reads = (0..2u32, 0..4u8, 0..8u8).prop_map(|(table, key, columns)| Read {
        row: row_id(table, key),
        columns: column_set(columns) | ColumnSet::EXISTS,
    });
    let parts = (
        prop::collection::vec(reads, 0..3),
        prop::collection::vec(scans(), 0..2),
        prop::collection::vec(commands(), 0..5),
    );
    prop::option::weighted(
        0.95,
        parts.prop_map(|(reads, scans, commands)| Effects {
            reads,
            scans,
            commands,
            result: Ok(vec![]),
            steps: 1,
            catalog: None,
        }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn edges_equal_those_found_pair_by_pair(effects in prop::collection::vec(effects(), 0..9)) {
        let rows = WrittenRows::new(&effects);
        let snapshot = PlainState::default();
        let found = edges(&Simulated { effects: &effects, rows: &rows, snapshot: &snapshot }, None, true);
        let leads = |from: usize, to: usize| match (&effects[from], &effects[to]) {
            (Some(reader), Some(writer)) => from != to && reads_before_image_of(reader, writer, &snapshot.catalog),
            _ => false,
        };
        for number in (0..effects.len()).filter(|number| effects[*number].is_some()) {
            let out = (0..effects.len()).filter(|to| leads(number, *to)).map(|to| to as Number);
            let into = (0..effects.len()).filter(|from| leads(*from, number)).map(|from| from as Number);
            let min_out = out.min().unwrap_or(Number::MAX).min(number as Number + 1);
            let max_in = into.max().unwrap_or(Number::MIN);
            prop_assert_eq!(found.min_out(number as u32), min_out);
            prop_assert_eq!(found.max_in(number as u32), max_in);
            let dangerous = min_out < number as Number && min_out <= max_in;
            prop_assert_eq!(found.is_dangerous(number as u32), dangerous);
        }
    }
}
