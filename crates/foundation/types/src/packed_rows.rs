//! The rows that COPY brings in a transaction block, which must fit into one transaction: column by column, so that values that
//! repeat, or count in equal steps, take the bytes of one. They are unpacked one by one, when they are inserted: what is
//! decoded is as long as what has come.

use crate::{SqlError, SqlState, Value, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};

/// Rows, packed as they come.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize)]
pub struct PackedRows {
    rows: u32,
    columns: Vec<Vec<Run>>,
}

/// Values of a column, one below the other.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
enum Run {
    /// These.
    Values(Vec<Value>),
    /// One, several times.
    Repeat { count: u32, value: Value },
    /// Integers of one type, from the first on in equal steps.
    Count { count: u32, first: Value, step: i64 },
}

/// Bytes of a run without its values.
const RUN_BYTES: usize = 1 + 4 + 8;

impl PackedRows {
    /// These rows.
    ///
    /// # Errors
    /// As [`PackedRows::push`].
    pub fn pack(rows: impl IntoIterator<Item = Vec<Value>>) -> Result<PackedRows, SqlError> {
        let mut packed = PackedRows::default();
        for row in rows {
            packed.push(row)?;
        }
        Ok(packed)
    }

    /// One more row; gives how many bytes longer it has made them at most.
    ///
    /// # Errors
    /// `54000` for too many rows, `22P04` where it has not as many values as those before it.
    pub fn push(&mut self, row: Vec<Value>) -> Result<usize, SqlError> {
        if self.rows >= limits::PACKED_ROWS_MAX {
            let message =
                format!("a transaction brings at most {} rows (PACKED_ROWS_MAX)", limits::PACKED_ROWS_MAX);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if self.rows == 0 {
            self.columns.resize_with(row.len(), Vec::new);
        }
        if row.len() != self.columns.len() {
            let message = format!("a row has {} values, the first one {}", row.len(), self.columns.len());
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
        }
        self.rows += 1;
        Ok(self.columns.iter_mut().zip(row).map(|(column, value)| push(column, value)).sum())
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        let mut columns: Vec<_> = self.columns.iter().map(|runs| runs.iter().flat_map(Run::values)).collect();
        (0..self.rows)
            .map(move |_| columns.iter_mut().map(|column| column.next().unwrap_or_default()).collect())
    }

    /// Whether every column has a value for every row, and all can be made.
    fn is_whole(&self) -> bool {
        let whole = |runs: &Vec<Run>| {
            let count: Option<u64> = runs.iter().map(Run::checked_count).sum();
            count == Some(u64::from(self.rows))
        };
        self.rows <= limits::PACKED_ROWS_MAX && self.columns.iter().all(whole)
    }
}

impl BorshDeserialize for PackedRows {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<PackedRows> {
        let (rows, columns) = <(u32, Vec<Vec<Run>>)>::deserialize_reader(reader)?;
        let packed = PackedRows { rows, columns };
        if packed.is_whole() {
            return Ok(packed);
        }
        Err(borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, "columns of different lengths"))
    }
}

impl Run {
    fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let (values, count, from, step) = match self {
            Run::Values(values) => (values.as_slice(), 0, &Value::Null, None),
            Run::Repeat { count, value } => (&[][..], *count, value, None),
            Run::Count { count, first, step } => (&[][..], *count, first, Some(*step)),
        };
        let made = (0..count).map(move |position| match step {
            None => from.clone(),
            Some(step) => counted(from, step, position).unwrap_or_default(),
        });
        values.iter().cloned().chain(made)
    }

    /// How many values it has; `None` where it can have none.
    fn checked_count(&self) -> Option<u64> {
        match self {
            Run::Values(values) => (!values.is_empty()).then_some(values.len() as u64),
            Run::Repeat { count, .. } => (*count > 0).then_some(u64::from(*count)),
            Run::Count { count, first, step } => {
                counted(first, *step, count.checked_sub(1)?)?;
                Some(u64::from(*count))
            }
        }
    }

    /// Takes one more value, if it is what comes next.
    fn goes_on_with(&mut self, value: &Value) -> bool {
        match self {
            Run::Values(_) => false,
            Run::Repeat { count, value: repeated } => {
                let goes_on = is_same(repeated, value);
                *count += u32::from(goes_on);
                goes_on
            }
            Run::Count { count, first, step } => {
                let goes_on = counted(first, *step, *count).is_some_and(|next| is_same(&next, value));
                *count += u32::from(goes_on);
                goes_on
            }
        }
    }
}

fn push(column: &mut Vec<Run>, value: Value) -> usize {
    if column.last_mut().is_some_and(|run| run.goes_on_with(&value)) {
        return 0;
    }
    let bytes = encode(&value).len();
    let Some(Run::Values(values)) = column.last_mut() else {
        column.push(Run::Values(vec![value]));
        return RUN_BYTES + bytes;
    };
    // Three make a run.
    let run = match values.as_slice() {
        [.., first, second] if is_same(first, second) && is_same(second, &value) => {
            Some(Run::Repeat { count: 3, value: value.clone() })
        }
        [.., first, second] => match (integer(first), integer(second), integer(&value)) {
            (Some(a), Some(b), Some(c)) if b.checked_sub(a) == c.checked_sub(b) => {
                b.checked_sub(a).and_then(|step| {
                    let run = Run::Count { count: 3, first: first.clone(), step };
                    let is_run = counted(first, step, 1).is_some_and(|next| is_same(&next, second))
                        && counted(first, step, 2).is_some_and(|next| is_same(&next, &value));
                    is_run.then_some(run)
                })
            }
            _ => None,
        },
        _ => None,
    };
    match run {
        None => {
            values.push(value);
            bytes
        }
        Some(run) => {
            values.truncate(values.len() - 2);
            if values.is_empty() {
                column.pop();
            }
            column.push(run);
            RUN_BYTES
        }
    }
}

/// Whether both are the same to the last bit: numbers that are equal may be written differently.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a == b,
        _ => match (integer(a), integer(b)) {
            (Some(one), Some(other)) => {
                one == other && std::mem::discriminant(a) == std::mem::discriminant(b)
            }
            (None, None) => encode(a) == encode(b),
            _ => false,
        },
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::SmallInt(number) => Some(i64::from(*number)),
        Value::Integer(number) => Some(i64::from(*number)),
        Value::BigInt(number) => Some(*number),
        _ => None,
    }
}

/// The number at this position, of the type of the first one; `None` where that type has none.
fn counted(first: &Value, step: i64, position: u32) -> Option<Value> {
    let number = step.checked_mul(i64::from(position))?.checked_add(integer(first)?)?;
    match first {
        Value::SmallInt(_) => number.try_into().ok().map(Value::SmallInt),
        Value::Integer(_) => number.try_into().ok().map(Value::Integer),
        Value::BigInt(_) => Some(Value::BigInt(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_exactly;

    fn packed(rows: &[Vec<Value>]) -> PackedRows {
        let packed = PackedRows::pack(rows.iter().cloned()).expect("rows");
        assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
        assert_eq!(packed.len(), rows.len());
        assert_eq!(decode_exactly::<PackedRows>(&encode(&packed)).expect("they are read"), packed);
        packed
    }

    #[test]
    fn what_is_packed_is_unpacked_to_the_last_bit() {
        let number = |text: &str| Value::Numeric(crate::Numeric::parse(text).expect("a number"));
        let shown = |rows: &PackedRows| rows.iter().map(|row| encode(&row)).collect::<Vec<_>>();
        let columns: [Vec<Value>; 5] = [
            [1, 2, 3, 4, 4, 4, 4, 5, i32::MAX].map(Value::Integer).to_vec(),
            [i64::MIN, i64::MAX, i64::MIN, 0, 0, 0, -5, -10, -15].map(Value::BigInt).to_vec(),
            ["1.0", "1.00", "1", "1", "1", "1.0", "1.0", "1.0", "2"].map(number).to_vec(),
            ["", "", "", "", "a", "a", "b", "b", "b"].map(Value::text).to_vec(),
            vec![
                Value::SmallInt(32_766),
                Value::SmallInt(32_767),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Integer(1),
                Value::SmallInt(2),
                Value::Integer(3),
                Value::Boolean(true),
            ],
        ];
        let rows: Vec<Vec<Value>> =
            (0..9).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
        let expected: Vec<_> = rows.iter().map(encode).collect();
        for end in 0..=rows.len() {
            assert_eq!(shown(&packed(&rows[..end])), expected[..end], "{end} rows");
        }
        packed(&[vec![], vec![]]);
    }

    #[test]
    fn rows_that_go_on_as_they_began_take_few_bytes() {
        let mut rows = PackedRows::default();
        let mut bytes = 0;
        for id in 1..=100_000 {
            let row = vec![Value::Integer(id), Value::Integer(1), Value::Integer(0), Value::text("")];
            bytes += rows.push(row).expect("a row");
        }
        assert_eq!(rows.len(), 100_000);
        assert!(bytes < 256, "{bytes}");
        assert!(encode(&rows).len() < 256, "{}", encode(&rows).len());
        assert_eq!(rows.iter().last().and_then(|row| row.into_iter().next()), Some(Value::Integer(100_000)));
        // Others are as long as they are, and the bytes that are told are no fewer.
        let mut rows = PackedRows::default();
        let bytes: usize = (0..1_000)
            .map(|id: i32| {
                rows.push(vec![Value::Integer(id * id), Value::text("x".repeat(9))]).expect("a row")
            })
            .sum();
        let found = encode(&rows).len();
        assert!(bytes >= found - 16 && bytes < found + 64, "{bytes} {found}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |rows: u32, columns: Vec<Vec<Run>>| {
            let error = decode_exactly::<PackedRows>(&encode(&(rows, columns.clone())));
            assert!(error.is_err(), "{rows} {columns:?}");
        };
        let repeat = |count| Run::Repeat { count, value: Value::Null };
        refused(1, vec![vec![]]);
        refused(2, vec![vec![repeat(1)]]);
        refused(1, vec![vec![repeat(1)], vec![repeat(2)]]);
        refused(1, vec![vec![repeat(1), repeat(0)]]);
        refused(1, vec![vec![repeat(1), Run::Values(vec![])]]);
        refused(2, vec![vec![Run::Count { count: 2, first: Value::SmallInt(i16::MAX), step: 1 }]]);
        refused(2, vec![vec![Run::Count { count: 2, first: Value::Null, step: 1 }]]);
        refused(2, vec![vec![Run::Count { count: 2, first: Value::BigInt(1), step: i64::MAX }]]);
        refused(u32::MAX, vec![]);
        let mut rows = packed(&[vec![Value::Null]]);
        assert_eq!(rows.push(vec![]).expect_err("too short").state, SqlState::BAD_COPY_FILE_FORMAT);
        assert_eq!(rows.len(), 1);
    }
}
