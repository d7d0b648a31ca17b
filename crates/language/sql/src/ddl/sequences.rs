//! Sequences, and those of columns.

use crate::ddl::counters::{cache, counter, restart, sequence_type};
use crate::ddl::names::written;
use crate::ddl::relations::{check_free, generated_name, relation_exists};
use crate::ddl::rows::Rows;
use crate::ddl::views::depends;
use plan::sequence::{does_not_count, no_sequence, stored_sequence_name};
use sqlparser::ast::{self, Expr};
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::parse::parse_expression;
use syntax::parse::sequence::{CountingOptions, SequenceStatement};
use types::{
    Catalog, DataType, ExecutionVersion, Generated, Sequence, SequenceOwner, SqlError, SqlState, Table,
    TableId, as_given, catalog_name, limits, object_name, schema_of,
};

/// Makes, changes or renames a sequence. Gives the command's tag.
///
/// # Errors
/// A name that is taken, an owner that is not there; bounds that hold no value.
pub(super) fn change_sequence(
    catalog: &mut Catalog,
    statement: &SequenceStatement,
    rows: &mut Rows<'_, '_>,
) -> Result<&'static str, SqlError> {
    match statement {
        SequenceStatement::Create { if_not_exists, name, options } => {
            if !(*if_not_exists && relation_exists(catalog, name)) {
                create_sequence(catalog, rows.version(), name, options)?;
            }
            Ok("CREATE SEQUENCE")
        }
        SequenceStatement::Alter { if_exists, name, options } => {
            if !*if_exists || relation_exists(catalog, name) {
                alter_sequence(catalog, name, options, rows)?;
            }
            Ok("ALTER SEQUENCE")
        }
        SequenceStatement::Rename { if_exists, name, to } => {
            if !*if_exists || relation_exists(catalog, name) {
                rename_sequence(catalog, name, to)?;
            }
            Ok("ALTER SEQUENCE")
        }
        SequenceStatement::AddIdentity { table, column, generated, options } => {
            add_identity(catalog, rows.version(), (table, column), *generated, options)?;
            Ok("ALTER TABLE")
        }
    }
}

fn find(catalog: &Catalog, name: &str) -> Result<Sequence, SqlError> {
    catalog.sequences.get(name).map(|found| Sequence::clone(found)).ok_or_else(|| {
        match relation_exists(catalog, name) {
            true => {
                SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a sequence", object_name(name)))
            }
            false => no_sequence(as_given(name)),
        }
    })
}

fn create_sequence(
    catalog: &mut Catalog,
    rules: ExecutionVersion,
    name: &str,
    options: &CountingOptions,
) -> Result<(), SqlError> {
    check_free(catalog, name)?;
    if let Some(what) = options.restart.map(|_| "RESTART").or(options.name.as_ref().map(|_| "SEQUENCE")) {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{what}\"")));
    }
    let owner = options.owner.clone().flatten();
    let owner = owner.map(|(table, column)| owner_of(catalog, &table, &column)).transpose()?;
    let data_type = sequence_type(catalog, rules, options)?.unwrap_or(DataType::BigInt);
    let counter = counter(catalog, data_type, options, None)?;
    let cache = cache(rules, options, 1)?;
    insert(catalog, Sequence { name: name.to_string(), owner, counter, cache })
}

fn owner_of(catalog: &Catalog, table: &str, column: &str) -> Result<SequenceOwner, SqlError> {
    let table = crate::ddl::relations::find_table(catalog, table)?;
    let ordinal = table.ordinal(column).ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.object_name());
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    Ok(SequenceOwner { table: table.id, column: ordinal as u16, identity: None })
}

fn alter_sequence(
    catalog: &mut Catalog,
    name: &str,
    options: &CountingOptions,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let mut sequence = find(catalog, name)?;
    if let Some(owner) = &options.owner {
        if sequence.owner.as_ref().is_some_and(|owner| owner.identity.is_some()) {
            let message = "cannot change ownership of identity sequence";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        sequence.owner = match owner {
            None => None,
            Some((table, column)) => Some(owner_of(catalog, table, column)?),
        };
    }
    let counts_already = sequence.counter.as_ref().map(|counter| counter.data_type);
    let given = sequence_type(catalog, rows.version(), options)?;
    let data_type = given.or(counts_already).unwrap_or(DataType::BigInt);
    sequence.counter = counter(catalog, data_type, options, sequence.counter.as_ref())?;
    sequence.cache = cache(rows.version(), options, sequence.cache)?;
    if let Some(value) = options.restart {
        let counter = sequence.counter.take().ok_or_else(|| does_not_count("RESTART"))?;
        sequence.counter = Some(restart(catalog, counter, value, rows)?);
    }
    catalog.sequences.insert(name.to_string(), Arc::new(sequence));
    Ok(())
}

fn rename_sequence(catalog: &mut Catalog, name: &str, to: &str) -> Result<(), SqlError> {
    let mut sequence = find(catalog, name)?;
    let to = &catalog_name(schema_of(name), object_name(to));
    check_free(catalog, to)?;
    let drawn = catalog.tables.values().find_map(|table| {
        let draws = |column: &&types::Column| {
            column.default.as_ref().is_some_and(|default| draws_from(default, name))
        };
        Some((table.name.clone(), table.columns.iter().find(draws)?.name.clone()))
    });
    let Some((table, column)) = drawn else {
        catalog.sequences.remove(name);
        sequence.name = to.to_string();
        return insert(catalog, sequence);
    };
    let what = format_args!("renaming a sequence that the default of \"{column}\" of \"{table}\" draws from");
    Err(SqlError::unsupported(what).hint("Drop the default, rename the sequence, and set the default again."))
}

/// ADD GENERATED … AS IDENTITY.
fn add_identity(
    catalog: &mut Catalog,
    rules: ExecutionVersion,
    (table, column): (&str, &str),
    generated: Generated,
    options: &CountingOptions,
) -> Result<(), SqlError> {
    let mut table = Table::clone(&*crate::ddl::relations::find_table(catalog, table)?);
    let owner = owner_of(catalog, &table.name, column)?;
    let found = &table.columns[usize::from(owner.column)];
    let refused = |what: &str| {
        let message = format!("column \"{column}\" of relation \"{}\" {what}", table.object_name());
        Err(SqlError::new(SqlState(*b"55000"), message))
    };
    if catalog.identity(table.id, usize::from(owner.column)).is_some() {
        return refused("is already an identity column");
    }
    if found.default.is_some() {
        return refused("already has a default value");
    }
    if !found.not_null {
        return refused("must be declared NOT NULL before identity can be added");
    }
    if !found.data_type.is_integer() {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let sequence =
        ColumnSequence { column: owner.column, identity: Some(generated), options: options.clone() };
    create_owned(catalog, rules, &mut table, &[sequence])?;
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    Ok(())
}

fn insert(catalog: &mut Catalog, sequence: Sequence) -> Result<(), SqlError> {
    if catalog.sequences.len() >= limits::TABLES_MAX {
        let message = format!("a ledger has at most {} sequences (TABLES_MAX)", limits::TABLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.sequences.insert(sequence.name.clone(), Arc::new(sequence));
    Ok(())
}

/// A column with a sequence of its own.
#[derive(Clone, Debug)]
pub(super) struct ColumnSequence {
    /// Its ordinal.
    pub column: u16,
    /// What it takes, if it is an identity column.
    pub identity: Option<Generated>,
    /// How the sequence counts.
    pub options: CountingOptions,
}

/// Makes the sequences of a table's columns: their defaults draw from them.
///
/// # Errors
/// Too many sequences.
pub(super) fn create_owned(
    catalog: &mut Catalog,
    rules: ExecutionVersion,
    table: &mut Table,
    columns: &[ColumnSequence],
) -> Result<(), SqlError> {
    for ColumnSequence { column, identity, options } in columns {
        let (name, data_type) = {
            let definition = &table.columns[usize::from(*column)];
            (definition.name.clone(), definition.data_type)
        };
        let candidates = (0..).map(|number: u32| {
            let label = if number == 0 { "seq".to_string() } else { format!("seq{number}") };
            generated_name(table.object_name(), &name, &label)
        });
        let mut free = candidates
            .map(|name| table.index_name(&name))
            .filter(|name| !relation_exists(catalog, name) && *name != table.name);
        let name = match &options.name {
            Some(name) => {
                let name = table.index_name(object_name(name));
                check_free(catalog, &name)?;
                name
            }
            None => free.next().unwrap_or_default(),
        };
        let quoted = written(&name).to_string().replace('\'', "''");
        table.columns[usize::from(*column)].default = Some(format!("nextval('{quoted}')"));
        let owner = SequenceOwner { table: table.id, column: *column, identity: *identity };
        let counter = counter(catalog, data_type, options, None)?;
        let cache = cache(rules, options, 1)?;
        insert(catalog, Sequence { name, owner: Some(owner), counter, cache })?;
    }
    Ok(())
}

/// Whether a DEFAULT draws from a sequence.
fn draws_from(default: &str, sequence: &str) -> bool {
    let Ok(expr) = parse_expression(default, ExecutionVersion::NEWEST) else { return false };
    let flow = ast::visit_expressions(&expr, |inner| {
        let Expr::Value(value) = inner else { return ControlFlow::Continue(()) };
        let names = value.value.clone().into_string().and_then(|text| stored_sequence_name(&text).ok());
        match names.is_some_and(|name| name == sequence) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    flow.is_break() && default.contains("nextval")
}

/// DROP SEQUENCE.
///
/// # Errors
/// One that is not there; a default that draws from it, without CASCADE.
pub(super) fn drop_sequences(
    catalog: &mut Catalog,
    if_exists: bool,
    cascade: bool,
    names: &[String],
) -> Result<(), SqlError> {
    for name in names {
        let Some(sequence) = catalog.sequences.get(name).cloned() else {
            if relation_exists(catalog, name) {
                let message = format!("\"{}\" is not a sequence", object_name(name));
                return Err(SqlError::new(SqlState(*b"42809"), message));
            }
            if if_exists {
                continue;
            }
            let message = format!("sequence \"{}\" does not exist", object_name(name));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        };
        if let Some(SequenceOwner { table, column, identity: Some(_) }) = &sequence.owner
            && let Some(table) = catalog.table(*table)
        {
            let what = format!("column {} of table {}", table.columns[usize::from(*column)].name, table.name);
            let message = format!("cannot drop sequence {name} because {what} requires it");
            return Err(
                SqlError::new(SqlState(*b"2BP01"), message).hint(format!("You can drop {what} instead."))
            );
        }
        let what = format!("sequence {name}");
        for table in catalog.tables.values_mut() {
            for ordinal in 0..table.columns.len() {
                let column = &table.columns[ordinal];
                if !column.default.as_ref().is_some_and(|default| draws_from(default, name)) {
                    continue;
                }
                if !cascade {
                    let dependent =
                        format!("default value for column {} of table {}", column.name, table.name);
                    return Err(depends(&what, &dependent, &what));
                }
                Arc::make_mut(table).columns[ordinal].default = None;
            }
        }
        catalog.sequences.remove(name);
    }
    Ok(())
}

/// Drops the sequences that belong to a table, or to a column of it.
pub(super) fn drop_owned(catalog: &mut Catalog, table: TableId, column: Option<u16>) {
    catalog.sequences.retain(|_, sequence| {
        let owned = |owner: &SequenceOwner| {
            owner.table == table && column.is_none_or(|column| column == owner.column)
        };
        !sequence.owner.as_ref().is_some_and(owned)
    });
}

/// Changes whom sequences belong to.
pub(super) fn change_owners(catalog: &mut Catalog, table: TableId, change: &dyn Fn(&mut SequenceOwner)) {
    for sequence in catalog.sequences.values_mut() {
        if sequence.owner.as_ref().is_some_and(|owner| owner.table == table)
            && let Some(owner) = &mut Arc::make_mut(sequence).owner
        {
            change(owner);
        }
    }
}
