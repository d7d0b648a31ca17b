//! `pg_get_serial_sequence(relation, column)`: which sequence a column has its values from.

use plan::sequence::{no_sequence, stored_sequence_name};
use types::{Catalog, SqlError, SqlState, Value, object_name, schema_of};
use values::{broken, quote_ident};

/// The name of the sequence that belongs to a column, with its schema, as SQL writes it; NULL where none does. As in PostgreSQL the first
/// text is read as an identifier, the second one is the name itself.
///
/// # Errors
/// `42P01` for a relation that is not there, `42703` for a column.
pub(crate) fn serial_sequence(catalog: &Catalog, arguments: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(relation), Value::Text(column)] = arguments else {
        return Err(broken("a sequence of something else than a column"));
    };
    let relation = stored_sequence_name(relation)?;
    let Some(columns) = catalog.columns_of(&relation) else {
        return Err(no_sequence(&relation));
    };
    let Some(ordinal) = columns.iter().position(|known| known.name == **column) else {
        let message =
            format!("column \"{column}\" of relation \"{}\" does not exist", object_name(&relation));
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    let Some(table) = catalog.tables.get(&relation) else { return Ok(Value::Null) };
    let mut sequences = catalog.sequences.values();
    let found = sequences.find(|sequence| {
        let owner = sequence.owner.as_ref();
        owner.is_some_and(|owner| owner.table == table.id && usize::from(owner.column) == ordinal)
    });
    Ok(found.map_or(Value::Null, |sequence| {
        let (schema, name) = (schema_of(&sequence.name), object_name(&sequence.name));
        Value::text(format!("{}.{}", quote_ident(schema), quote_ident(name)))
    }))
}
