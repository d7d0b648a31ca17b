//! CREATE SEQUENCE, DROP SEQUENCE, and the sequences of columns.

use super::names::written;
use super::views::depends;
use super::{SchemaChange, check_free, generated_name, relation_exists};
use crate::parse::parse_expression;
use crate::scope::name_of;
use crate::sequence::stored_sequence_name;
use crate::statement::table_name;
use sqlparser::ast::{self, Expr, ObjectName, SequenceOptions, Statement};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{
    Catalog, Generated, Sequence, SequenceOwner, SqlError, SqlState, Table, TableId, limits, object_name,
};

/// A sequence as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct SequenceDraft {
    if_not_exists: bool,
    pub(super) name: String,
    /// OWNED BY: table and column.
    pub(super) owner: Option<(String, String)>,
}

fn counts(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} of a sequence")).hint(
        "Leave it out: values are unique and ascending, made of the block's height and the place in it, so that nobody waits for anybody.",
    )
}

/// CREATE SEQUENCE.
///
/// # Errors
/// Options that are not supported.
pub(super) fn bind_create_sequence(statement: &Statement) -> Result<Option<SchemaChange>, SqlError> {
    let Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } =
        statement
    else {
        return Ok(None);
    };
    if *temporary {
        return Err(SqlError::unsupported("CREATE TEMPORARY SEQUENCE"));
    }
    if let Some(data_type) = data_type
        && !matches!(data_type, ast::DataType::BigInt(None) | ast::DataType::Int8(None))
    {
        return Err(counts(&format!("the type {data_type}")));
    }
    refuse_options(sequence_options)?;
    let owner = match owned_by {
        None => None,
        Some(owner) if owner.to_string().eq_ignore_ascii_case("none") => None,
        Some(owner) => Some(bind_owner(owner)?),
    };
    let draft = SequenceDraft { if_not_exists: *if_not_exists, name: table_name(name)?, owner };
    Ok(Some(SchemaChange::CreateSequence(draft)))
}

fn bind_owner(owner: &ObjectName) -> Result<(String, String), SqlError> {
    let mut parts = owner.0.clone();
    let column = parts.pop();
    let Some(column) = column.as_ref().and_then(|part| part.as_ident()).filter(|_| !parts.is_empty()) else {
        let error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
        return Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE."));
    };
    Ok((table_name(&ObjectName(parts))?, name_of(column)?))
}

/// Options that say how a sequence counts, which ours do not.
pub(super) fn refuse_options(options: &[SequenceOptions]) -> Result<(), SqlError> {
    for option in options {
        return Err(counts(match option {
            // How many a session keeps for itself is nothing that anybody sees.
            SequenceOptions::Cache(_) | SequenceOptions::MinValue(None) | SequenceOptions::MaxValue(None) => {
                continue;
            }
            SequenceOptions::IncrementBy(..) => "INCREMENT",
            SequenceOptions::MinValue(_) => "MINVALUE",
            SequenceOptions::MaxValue(_) => "MAXVALUE",
            SequenceOptions::StartWith(..) => "START",
            SequenceOptions::Cycle(_) => "CYCLE",
        }));
    }
    Ok(())
}

/// Adds a sequence to the catalog.
///
/// # Errors
/// A name that is taken, an owner that is not there.
pub(super) fn create_sequence(catalog: &mut Catalog, draft: &SequenceDraft) -> Result<(), SqlError> {
    if draft.if_not_exists && relation_exists(catalog, &draft.name) {
        return Ok(());
    }
    check_free(catalog, &draft.name)?;
    let owner = match &draft.owner {
        None => None,
        Some((table, column)) => {
            let table = super::find_table(catalog, table)?;
            let ordinal = table.ordinal(column).ok_or_else(|| {
                let message =
                    format!("column \"{column}\" of relation \"{}\" does not exist", table.object_name());
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            })?;
            Some(SequenceOwner { table: table.id, column: ordinal as u16, identity: None })
        }
    };
    insert(catalog, Sequence { name: draft.name.clone(), owner })
}

fn insert(catalog: &mut Catalog, sequence: Sequence) -> Result<(), SqlError> {
    if catalog.sequences.len() >= limits::TABLES_MAX {
        let message = format!("a ledger has at most {} sequences (TABLES_MAX)", limits::TABLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.sequences.insert(sequence.name.clone(), Arc::new(sequence));
    Ok(())
}

/// Makes the sequences of a table's columns: their defaults draw from them.
///
/// # Errors
/// Too many sequences.
pub(super) fn create_owned(
    catalog: &mut Catalog,
    table: &mut Table,
    columns: &[(u16, Option<Generated>)],
) -> Result<(), SqlError> {
    for (column, identity) in columns {
        let name = table.columns[usize::from(*column)].name.clone();
        let candidates = (0..).map(|number: u32| {
            let label = if number == 0 { "seq".to_string() } else { format!("seq{number}") };
            generated_name(table.object_name(), &name, &label)
        });
        let mut free = candidates
            .map(|name| table.index_name(&name))
            .filter(|name| !relation_exists(catalog, name) && *name != table.name);
        let name = free.next().unwrap_or_default();
        let quoted = written(&name).to_string().replace('\'', "''");
        table.columns[usize::from(*column)].default = Some(format!("nextval('{quoted}')"));
        let owner = SequenceOwner { table: table.id, column: *column, identity: *identity };
        insert(catalog, Sequence { name, owner: Some(owner) })?;
    }
    Ok(())
}

/// Whether a DEFAULT draws from a sequence.
fn draws_from(default: &str, sequence: &str) -> bool {
    let Ok(expr) = parse_expression(default) else { return false };
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
