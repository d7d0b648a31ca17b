//! What an error is about: the table, column and constraint that the protocol names in fields of their own.
//!
//! A receipt has an error's message and detail, and an encoding that every node must agree on. PostgreSQL's messages say
//! the names too, so they are taken from there. The catalog says in which schema that is, and that these names are the
//! ones meant: a message that somebody else has worded names what there is not.

use types::{Catalog, SqlError, SqlState, Table, object_name, schema_of};

/// The names, as far as they are known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct About {
    pub(super) schema: Option<String>,
    pub(super) table: Option<String>,
    pub(super) column: Option<String>,
    pub(super) constraint: Option<String>,
}

/// Names as a message has them.
#[derive(Default)]
struct Named<'m> {
    table: Option<&'m str>,
    column: Option<&'m str>,
    constraint: Option<&'m str>,
}

/// Whether errors of this class say what they are about.
pub(super) fn says_it(state: SqlState) -> bool {
    matches!(
        state,
        SqlState::NOT_NULL_VIOLATION
            | SqlState::FOREIGN_KEY_VIOLATION
            | SqlState::UNIQUE_VIOLATION
            | SqlState::CHECK_VIOLATION
    )
}

impl About {
    /// What an error is about, of what a catalog has.
    pub(super) fn of(error: &SqlError, catalog: &Catalog) -> About {
        let Some(named) = named(error) else { return About::default() };
        let mut tables = catalog.tables.values().filter(|table| named.fits(table, catalog));
        let Some(table) = tables.next() else { return About::default() };
        let owned = |name: Option<&str>| name.map(str::to_string);
        About {
            // Names may be the same in several schemas.
            schema: tables.next().is_none().then(|| schema_of(&table.name).to_string()),
            table: Some(table.object_name().to_string()),
            column: owned(named.column),
            constraint: owned(named.constraint),
        }
    }
}

impl Named<'_> {
    fn fits(&self, table: &Table, catalog: &Catalog) -> bool {
        let has_column = self.column.is_none_or(|column| table.ordinal(column).is_some());
        match (self.table, self.constraint) {
            // What a schema change adds is not there where it has failed.
            (Some(name), _) => table.object_name() == name && has_column,
            (None, Some(constraint)) => {
                let mut indexes = catalog.indexes_of(table.id).iter();
                object_name(&table.primary_key_name) == constraint
                    || indexes.any(|index| index.unique && object_name(&index.name) == constraint)
            }
            (None, None) => false,
        }
    }
}

/// The names in a message of PostgreSQL's.
fn named(error: &SqlError) -> Option<Named<'_>> {
    let message = error.message.as_str();
    let between = |before: &str, after: &str| message.strip_prefix(before)?.strip_suffix(after);
    let two = |before: &str, middle: &str, after: &str| between(before, after)?.split_once(middle);
    let nothing = Named::default();
    match error.state {
        SqlState::NOT_NULL_VIOLATION => {
            let (column, table) =
                two("null value in column \"", "\" of relation \"", "\" violates not-null constraint")
                    .or_else(|| two("column \"", "\" of relation \"", "\" contains null values"))?;
            Some(Named { table: Some(table), column: Some(column), ..nothing })
        }
        SqlState::UNIQUE_VIOLATION => {
            let constraint = between("duplicate key value violates unique constraint \"", "\"")?;
            Some(Named { constraint: Some(constraint), ..nothing })
        }
        SqlState::CHECK_VIOLATION => {
            let (table, constraint) = two("new row for relation \"", "\" violates check constraint \"", "\"")
                .or_else(|| {
                    let (constraint, table) =
                        two("check constraint \"", "\" of relation \"", "\" is violated by some row")?;
                    Some((table, constraint))
                })?;
            Some(Named { table: Some(table), constraint: Some(constraint), ..nothing })
        }
        SqlState::FOREIGN_KEY_VIOLATION => {
            const VIOLATES: &str = "\" violates foreign key constraint \"";
            let (table, constraint) = two("insert or update on table \"", VIOLATES, "\"").or_else(|| {
                let (_, constraint) = two("update or delete on table \"", VIOLATES, "\"")?;
                let (constraint, table) = constraint.split_once("\" on table \"")?;
                Some((table, constraint))
            })?;
            Some(Named { table: Some(table), constraint: Some(constraint), ..nothing })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use types::{Column, DataType, TableId};

    /// Tables `t` in two schemas, and one in one of them.
    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        for (number, name) in ["t", "other.t", "other.u"].into_iter().enumerate() {
            let column = Column {
                name: "c".to_string(),
                data_type: DataType::Integer,
                not_null: true,
                default: None,
                generated: false,
            };
            let table = Table {
                id: TableId(number as u32 + 1),
                name: name.to_string(),
                columns: vec![column],
                primary_key: vec![0],
                primary_key_name: format!("{}_pkey", object_name(name)),
                checks: Vec::new(),
                endorsement: None,
                row_security: types::RowSecurity::default(),
                partitioning: None,
                materialized: None,
            };
            catalog.tables.insert(name.to_string(), Arc::new(table));
        }
        catalog
    }

    /// Schema, table, column and constraint.
    fn about(state: SqlState, message: &str) -> [String; 4] {
        let About { schema, table, column, constraint } =
            About::of(&SqlError::new(state, message), &catalog());
        [schema, table, column, constraint].map(Option::unwrap_or_default)
    }

    #[test]
    fn each_message_names_what_it_is_about() {
        for (state, message, names) in [
            (
                SqlState::NOT_NULL_VIOLATION,
                "null value in column \"c\" of relation \"u\" violates not-null constraint",
                ["other", "u", "c", ""],
            ),
            (
                SqlState::NOT_NULL_VIOLATION,
                "column \"c\" of relation \"u\" contains null values",
                ["other", "u", "c", ""],
            ),
            (
                SqlState::UNIQUE_VIOLATION,
                "duplicate key value violates unique constraint \"u_pkey\"",
                ["other", "u", "", "u_pkey"],
            ),
            (
                SqlState::CHECK_VIOLATION,
                "new row for relation \"u\" violates check constraint \"u_c_check\"",
                ["other", "u", "", "u_c_check"],
            ),
            (
                SqlState::CHECK_VIOLATION,
                "check constraint \"k\" of relation \"u\" is violated by some row",
                ["other", "u", "", "k"],
            ),
            (
                SqlState::FOREIGN_KEY_VIOLATION,
                "insert or update on table \"u\" violates foreign key constraint \"u_c_fkey\"",
                ["other", "u", "", "u_c_fkey"],
            ),
            (
                SqlState::FOREIGN_KEY_VIOLATION,
                "update or delete on table \"t\" violates foreign key constraint \"u_c_fkey\" on table \"u\"",
                ["other", "u", "", "u_c_fkey"],
            ),
        ] {
            assert_eq!(about(state, message), names, "{message}");
            assert!(says_it(state), "{state}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        // In which of the two schemas?
        let message = "duplicate key value violates unique constraint \"t_pkey\"";
        assert_eq!(about(SqlState::UNIQUE_VIOLATION, message), ["", "t", "", "t_pkey"]);
        for (state, message) in [
            (SqlState::UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"mine\""),
            (SqlState::UNIQUE_VIOLATION, "taken"),
            (SqlState::NOT_NULL_VIOLATION, "column \"d\" of relation \"u\" contains null values"),
            (SqlState::CHECK_VIOLATION, "duplicate key value violates unique constraint \"u_pkey\""),
        ] {
            assert_eq!(about(state, message), ["", "", "", ""], "{message}");
        }
        assert!(!says_it(SqlState::SYNTAX_ERROR));
    }
}
