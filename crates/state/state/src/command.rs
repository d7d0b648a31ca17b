use crate::{Command, RowChange};
use types::{Row, SqlError};

/// Lets a command act on the row as its predecessors left it (`None`: there is none). Gives the row as the command
/// leaves it, and whether the command matched: what its guard is compared with.
///
/// # Errors
/// The command's: a business abort of its whole transaction.
#[inline]
pub fn apply_command(row: Option<Row>, command: &Command) -> Result<(Option<Row>, bool), SqlError> {
    Ok(match command.function.apply(row.as_ref())? {
        RowChange::Unmatched => (row, false),
        RowChange::Put(row) => (Some(row), true),
        RowChange::Delete => (None, true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandKind, RowFunction, RowId};
    use std::sync::Arc;
    use types::{ColumnSet, Key, SqlState, TableId, Value};

    /// Takes 7 from column 0, which must stay above zero; a row that is not there does not match; 7 deletes.
    struct TakeSeven;

    impl RowFunction for TakeSeven {
        fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
            match row.map(|row| &row[0]) {
                None => Ok(RowChange::Unmatched),
                Some(Value::BigInt(7)) => Ok(RowChange::Delete),
                Some(Value::BigInt(value)) if *value > 7 => {
                    Ok(RowChange::Put(Arc::from([Value::BigInt(value - 7)])))
                }
                Some(_) => Err(SqlError::new(SqlState::CHECK_VIOLATION, "too little")),
            }
        }
    }

    #[test]
    fn commands_on_one_row_act_one_after_the_other() {
        let command = Command {
            row: RowId { table: TableId(1), key: Key::default() },
            function: Arc::new(TakeSeven),
            kind: CommandKind::Update { known: vec![] },
            uses: ColumnSet::ALL,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: true,
            addition: None,
        };
        let fourteen: Row = Arc::from([Value::BigInt(14)]);
        let (seven, matched) = apply_command(Some(fourteen), &command).unwrap();
        assert_eq!((seven.as_deref(), matched), (Some(&[Value::BigInt(7)][..]), true));
        assert_eq!(apply_command(seven, &command), Ok((None, true)));
        assert_eq!(apply_command(None, &command), Ok((None, false)));
        assert!(apply_command(Some(Arc::from([Value::BigInt(3)])), &command).is_err());
    }
}
