//! What PARTITION BY and FOR VALUES say, held against the table and against the partitions that are there.

use crate::ddl::indexes::check_ordered;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::rows::Rows;
use plan::expression::{Binder, Environment, Source};
use plan::partition_conditions::PartitionConditions;
use plan::routines::Routines;
use plan::scope::VariableScope;
use sqlparser::ast::{
    Expr, ForValues, Function, FunctionArg, FunctionArgExpr, FunctionArguments, PartitionBoundValue,
};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use syntax::names::name_of;
use syntax::parse::parse_expression;
use types::session_format::{SessionFormat, within_format};
use types::{
    CompositeTypes, DataType, Key, PartitionBound, PartitionKey, PartitionStrategy, Partitioning, RangeDatum,
    SearchPath, SqlError, SqlState, Table, Value, format_value, object_name, shown_datums,
};

/// Columns of a partition key, as in PostgreSQL.
const KEY_COLUMNS_MAX: usize = 32;

/// PARTITION BY as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct PartitionKeyDraft {
    strategy: PartitionStrategy,
    /// Names of the columns.
    columns: Vec<String>,
}

fn invalid_object(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"42P17"), message)
}

fn invalid_definition(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// Reads PARTITION BY, which looks like a call.
///
/// # Errors
/// `22023` for an unknown strategy; `0A000` for HASH and for expressions.
pub(super) fn bind_partition_key(expr: &Expr) -> Result<PartitionKeyDraft, SqlError> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
        return Err(SqlError::unsupported("this form of PARTITION BY"));
    };
    let named = name.to_string().to_ascii_lowercase();
    let strategy = match named.as_str() {
        "range" => PartitionStrategy::Range,
        "list" => PartitionStrategy::List,
        "hash" => {
            return Err(SqlError::unsupported("PARTITION BY HASH").hint("Use LIST or RANGE."));
        }
        other => {
            let message = format!("unrecognized partitioning strategy \"{other}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    };
    let column = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(ident))) => name_of(ident),
        _ => Err(SqlError::unsupported("an expression in PARTITION BY").hint(
            "Add a generated column to another table, or a column that a trigger fills, and use that.",
        )),
    };
    let columns = list.args.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    if strategy == PartitionStrategy::List && columns.len() > 1 {
        return Err(invalid_object("cannot use \"list\" partition strategy with more than one column"));
    }
    if columns.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot partition using more than {KEY_COLUMNS_MAX} columns");
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    Ok(PartitionKeyDraft { strategy, columns })
}

impl PartitionKeyDraft {
    /// The key of a table, or of a partition of it.
    ///
    /// # Errors
    /// A column that is not there, or that cannot be in a key.
    pub(super) fn of(&self, table: &Table) -> Result<PartitionKey, SqlError> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let Some(ordinal) = table.ordinal(name) else {
                let message = format!("column \"{name}\" named in partition key does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            };
            if table.columns[ordinal].generated {
                return Err(invalid_object("cannot use generated column in partition key")
                    .detail(format!("Column \"{name}\" is a generated column.")));
            }
            columns.push(ordinal as u16);
        }
        check_ordered(table, &columns)?;
        Ok(PartitionKey { strategy: self.strategy, columns })
    }
}

/// A partition that is to be one of a table.
pub(super) struct NewBound<'a> {
    pub table: &'a Table,
    /// The partition that it is to be one of; `None`: it is to be one of the table.
    pub parent: Option<&'a str>,
    /// Its name in the catalog.
    pub name: &'a str,
    pub search_path: &'a SearchPath,
}

/// A value of a bound: below all, one, above all.
#[derive(Debug)]
enum Datum {
    Smallest,
    Value(Value),
    Largest,
}

impl NewBound<'_> {
    /// What FOR VALUES says of it.
    ///
    /// # Errors
    /// A bound that does not fit the key, that is empty, or that overlaps another one.
    pub(super) fn bind(
        &self,
        catalog: &NewCatalog,
        given: &ForValues,
        rows: &mut Rows<'_, '_>,
    ) -> Result<PartitionBound, SqlError> {
        let partitioning = self.partitioning()?;
        let key = partitioning.key_of(self.parent).ok_or_else(|| invalid_object("no partition key"))?;
        let wrong = || {
            let kind = key.strategy.name().to_ascii_lowercase();
            invalid_definition(format!("invalid bound specification for a {kind} partition"))
        };
        let bound = match (given, key.strategy) {
            (ForValues::Default, _) => PartitionBound::Default,
            (ForValues::In(values), PartitionStrategy::List) => {
                let mut texts = Vec::with_capacity(values.len());
                for value in values {
                    let text = self.value(catalog, key.columns[0], value, rows)?;
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                PartitionBound::List(texts)
            }
            (ForValues::From { from, to }, PartitionStrategy::Range) => {
                for (word, values) in [("FROM", from), ("TO", to)] {
                    if values.len() != key.columns.len() {
                        let message =
                            format!("{word} must specify exactly one value per partitioning column");
                        return Err(invalid_definition(message));
                    }
                }
                let from = self.range_bound(catalog, key, from, rows)?;
                PartitionBound::Range { from, to: self.range_bound(catalog, key, to, rows)? }
            }
            _ => return Err(wrong()),
        };
        // Every value of the others is read.
        let others = partitioning.partitions_of(self.parent).map(|(_, other)| other.bound.values() as u64);
        rows.execution.charge(others.sum())?;
        self.check(catalog, partitioning, key, &bound)?;
        Ok(bound)
    }

    fn partitioning(&self) -> Result<&Partitioning, SqlError> {
        self.table.partitioning.as_deref().ok_or_else(|| invalid_object("not partitioned"))
    }

    fn range_bound(
        &self,
        catalog: &NewCatalog,
        key: &PartitionKey,
        given: &[PartitionBoundValue],
        rows: &mut Rows<'_, '_>,
    ) -> Result<Vec<RangeDatum>, SqlError> {
        let mut bound: Vec<RangeDatum> = Vec::with_capacity(given.len());
        for (value, ordinal) in given.iter().zip(&key.columns) {
            let datum = match value {
                PartitionBoundValue::MinValue => RangeDatum::MinValue,
                PartitionBoundValue::MaxValue => RangeDatum::MaxValue,
                PartitionBoundValue::Expr(expr) => {
                    let text = self.value(catalog, *ordinal, expr, rows)?;
                    RangeDatum::Value(
                        text.ok_or_else(|| invalid_object("cannot specify NULL in range bound"))?,
                    )
                }
            };
            let word = match bound.last() {
                Some(RangeDatum::MinValue) if datum != RangeDatum::MinValue => "MINVALUE",
                Some(RangeDatum::MaxValue) if datum != RangeDatum::MaxValue => "MAXVALUE",
                _ => {
                    bound.push(datum);
                    continue;
                }
            };
            let message = format!("every bound following {word} must also be {word}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        Ok(bound)
    }

    /// A value that a statement gives, as text of the column's type; `None` is NULL.
    fn value(
        &self,
        catalog: &NewCatalog,
        ordinal: u16,
        given: &Expr,
        rows: &mut Rows<'_, '_>,
    ) -> Result<Option<String>, SqlError> {
        let column = &self.table.columns[usize::from(ordinal)];
        let routines = catalog.routines().with_search_path(self.search_path);
        let data_type = routines.types().base_of(column.data_type);
        let scope = VariableScope::for_procedure(None).with_routines(&routines);
        let binder = Binder::new(&scope, Source::Default);
        let bound = binder.in_clause(Some("partition bound")).bind_towards(given, data_type);
        let bound = bound.map_err(|error| SqlError {
            message: error.message.replace("in DEFAULT expression", "in partition bound expression"),
            ..error
        })?;
        let value = binder.assign_to_column(bound, &column.name, data_type).map_err(|error| {
            if error.state != SqlState::DATATYPE_MISMATCH {
                return error;
            }
            let shown = routines.types().name_of(data_type.family());
            let message =
                format!("specified value cannot be cast to type {shown} for column \"{}\"", column.name);
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })?;
        if value.runs_anything() {
            return Err(SqlError::unsupported("a function of the ledger in a bound of a partition")
                .hint("Write the value out."));
        }
        let format = rows.format;
        let value = within_format(format, || rows.execution.evaluate(&value, &[]))?;
        Ok(within_format(SessionFormat::default(), || format_value(&value)))
    }

    /// Holds the bound against the others.
    fn check(
        &self,
        catalog: &NewCatalog,
        partitioning: &Partitioning,
        key: &PartitionKey,
        bound: &PartitionBound,
    ) -> Result<(), SqlError> {
        let name = object_name(self.name);
        let others = || partitioning.partitions_of(self.parent);
        if *bound == PartitionBound::Default {
            let default = others().find(|(_, other)| other.bound == PartitionBound::Default);
            return match default {
                None => Ok(()),
                Some((default, _)) => Err(invalid_object(format!(
                    "partition \"{name}\" conflicts with existing default partition \"{}\"",
                    object_name(default)
                ))),
            };
        }
        let values = BoundValues { table: self.table, key, routines: catalog.routines() };
        if let PartitionBound::Range { from, to } = bound
            && values.compared(from, to)? != Ordering::Less
        {
            let error = invalid_object(format!("empty range bound specified for partition \"{name}\""));
            let types = key_types(&CompositeTypes::new(catalog), self.table, key);
            let (from, to) = (shown_datums(from, &types), shown_datums(to, &types));
            return Err(error.detail(format!(
                "Specified lower bound {from} is greater than or equal to upper bound {to}."
            )));
        }
        let new = match bound {
            PartitionBound::List(list) => values.keys(list)?,
            _ => BTreeSet::new(),
        };
        let mut first: Option<(&str, &[RangeDatum])> = None;
        for (other, partition) in others() {
            match (bound, &partition.bound) {
                (PartitionBound::List(_), PartitionBound::List(known))
                    if !values.keys(known)?.is_disjoint(&new) =>
                {
                    return Err(overlaps(name, other));
                }
                (PartitionBound::Range { from, to }, PartitionBound::Range { from: start, to: end })
                    if values.compared(from, end)? == Ordering::Less
                        && values.compared(start, to)? == Ordering::Less =>
                {
                    let is_first = match first {
                        None => true,
                        Some((_, known)) => values.compared(start, known)? == Ordering::Less,
                    };
                    if is_first {
                        first = Some((other, start));
                    }
                }
                _ => {}
            }
        }
        first.map_or(Ok(()), |(other, _)| Err(overlaps(name, other)))
    }
}

fn overlaps(name: &str, other: &str) -> SqlError {
    invalid_object(format!("partition \"{name}\" would overlap partition \"{}\"", object_name(other)))
}

/// The types of a key's columns, without domains.
fn key_types(types: &CompositeTypes, table: &Table, key: &PartitionKey) -> Vec<DataType> {
    let column = |ordinal: &u16| types.base_of(table.columns[usize::from(*ordinal)].data_type);
    key.columns.iter().map(column).collect()
}

/// Reads the values of bounds, which the catalog has as texts.
struct BoundValues<'a> {
    table: &'a Table,
    key: &'a PartitionKey,
    routines: Routines,
}

impl BoundValues<'_> {
    fn value(&self, text: &str, place: usize) -> Result<Value, SqlError> {
        let conditions = PartitionConditions::new(self.table, self.routines.types());
        let conditions = conditions.ok_or_else(|| invalid_object("not partitioned"))?;
        let literal = conditions.literal(text, self.key.columns[place]);
        let scope = VariableScope::for_procedure(None).with_routines(&self.routines);
        let bound = Binder::new(&scope, Source::Nothing);
        let bound = bound.bind(&parse_expression(&literal, self.routines.version())?)?;
        within_format(SessionFormat::default(), || bound.evaluate(&Environment::new(&[], &[], 0)))
    }

    /// The values of a bound that count: what is behind MINVALUE or MAXVALUE does not.
    fn datums(&self, bound: &[RangeDatum]) -> Result<Vec<Datum>, SqlError> {
        let datum = |(place, datum): (usize, &RangeDatum)| {
            Ok(match datum {
                RangeDatum::MinValue => Datum::Smallest,
                RangeDatum::Value(text) => Datum::Value(self.value(text, place)?),
                RangeDatum::MaxValue => Datum::Largest,
            })
        };
        bound.iter().enumerate().map(datum).collect()
    }

    fn compared(&self, one: &[RangeDatum], other: &[RangeDatum]) -> Result<Ordering, SqlError> {
        for (one, other) in self.datums(one)?.iter().zip(&self.datums(other)?) {
            let ordering = match (one, other) {
                (Datum::Value(one), Datum::Value(other)) => one.compare(other).unwrap_or(Ordering::Equal),
                (Datum::Smallest, Datum::Smallest) | (Datum::Largest, Datum::Largest) => Ordering::Equal,
                (Datum::Smallest, _) | (_, Datum::Largest) => Ordering::Less,
                (Datum::Largest, _) | (_, Datum::Smallest) => Ordering::Greater,
            };
            if ordering != Ordering::Equal {
                return Ok(ordering);
            }
        }
        Ok(Ordering::Equal)
    }

    /// The values of a list, as keys of an index have them; `None` is NULL.
    fn keys(&self, values: &[Option<String>]) -> Result<BTreeSet<Option<Key>>, SqlError> {
        let key = |text: &Option<String>| match text {
            Some(text) => Key::encode([&self.value(text, 0)?]).map(Some),
            None => Ok(None),
        };
        values.iter().map(key).collect()
    }
}
