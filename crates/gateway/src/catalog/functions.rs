//! Functions of the catalogue that `datafusion-pg-catalog` lacks or does not answer for Entente's objects.

use super::objects::{ENTENTE, Objects, PG_CATALOG, PUBLIC, ROLE, quoted};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Name of the function that `rewrite` puts in the place of a subquery on `pg_attrdef`.
pub(super) const COLUMN_DEFAULT: &str = "entente_column_default";

/// What a function answers.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Answer {
    /// The text that belongs to the first arguments, or NULL.
    Text { keys: usize, values: BTreeMap<Vec<i64>, String> },
    /// The text that belongs to the first argument, or what another function answers.
    TextOr(BTreeMap<i64, String>, Arc<ScalarUDF>),
    /// The text of its first argument.
    FirstArgument,
    /// Whether the first argument is one of these.
    Contained(BTreeSet<i64>),
    /// The number that belongs to the first argument, a name, or NULL.
    Named(BTreeMap<String, i64>),
    /// The same text for every row, or NULL.
    ConstantText(Option<String>),
    /// The same number for every row.
    ConstantNumber(i64),
    /// The same truth for every row.
    ConstantBoolean(bool),
    /// A number of bytes, for people.
    PrettyBytes,
    /// The items of an array with a separator between them; what is no array (columns that are arrays in PostgreSQL and
    /// text here) is given back as it is.
    JoinedItems,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    signature: Signature,
    answer: Answer,
}

impl Function {
    fn named(name: &'static str, answer: Answer) -> ScalarUDF {
        // Any number of arguments of any type: clients call these with a second argument or without.
        let signature = Signature::one_of(
            vec![
                datafusion::logical_expr::TypeSignature::VariadicAny,
                datafusion::logical_expr::TypeSignature::Nullary,
            ],
            Volatility::Stable,
        );
        ScalarUDF::new_from_impl(Function { name, signature, answer })
    }
}

fn numbers(array: &ArrayRef) -> Result<Int64Array> {
    let array = cast(array, &DataType::Int64)?;
    Ok(array.as_primitive::<Int64Type>().clone())
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.answer {
            Answer::Contained(_) | Answer::ConstantBoolean(_) => DataType::Boolean,
            Answer::ConstantNumber(_) | Answer::Named(_) => DataType::Int64,
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = call.number_rows;
        let arguments =
            call.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let missing = || DataFusionError::Plan(format!("function {}() needs an argument", self.name));
        let array: ArrayRef = match &self.answer {
            Answer::Text { keys, values } => {
                let keys = arguments.get(..*keys).ok_or_else(missing)?;
                let keys = keys.iter().map(numbers).collect::<Result<Vec<Int64Array>>>()?;
                let text = |row: usize| {
                    let key: Vec<i64> = keys.iter().map(|key| key.value(row)).collect();
                    let known = keys.iter().all(|key| key.is_valid(row));
                    values.get(&key).filter(|_| known).map(String::as_str)
                };
                Arc::new((0..rows).map(text).collect::<StringArray>())
            }
            Answer::TextOr(values, other) => {
                let keys = numbers(arguments.first().ok_or_else(missing)?)?;
                let others = cast(&other.invoke_with_args(call.clone())?.into_array(rows)?, &DataType::Utf8)?;
                let text = |(key, other): (Option<i64>, Option<&str>)| {
                    let known = key.and_then(|key| values.get(&key)).map(String::as_str);
                    known.or(other).map(str::to_string)
                };
                Arc::new(keys.iter().zip(others.as_string::<i32>()).map(text).collect::<StringArray>())
            }
            Answer::FirstArgument => cast(arguments.first().ok_or_else(missing)?, &DataType::Utf8)?,
            Answer::Contained(values) => {
                let keys = numbers(arguments.first().ok_or_else(missing)?)?;
                Arc::new(
                    keys.iter().map(|key| key.map(|key| values.contains(&key))).collect::<BooleanArray>(),
                )
            }
            Answer::Named(numbers) => {
                let names = cast(arguments.first().ok_or_else(missing)?, &DataType::Utf8)?;
                let number = |name: Option<&str>| {
                    let name = name?.trim().to_ascii_lowercase();
                    numbers.get(name.trim_start_matches("pg_catalog.")).copied()
                };
                Arc::new(names.as_string::<i32>().iter().map(number).collect::<Int64Array>())
            }
            Answer::ConstantText(text) => {
                Arc::new((0..rows).map(|_| text.as_deref()).collect::<StringArray>())
            }
            Answer::ConstantNumber(number) => Arc::new(Int64Array::from(vec![*number; rows])),
            Answer::ConstantBoolean(truth) => Arc::new(BooleanArray::from(vec![*truth; rows])),
            Answer::PrettyBytes => {
                let bytes = numbers(arguments.first().ok_or_else(missing)?)?;
                let text = |bytes: Option<i64>| bytes.map(|bytes| format!("{bytes} bytes"));
                Arc::new(bytes.iter().map(text).collect::<StringArray>())
            }
            Answer::JoinedItems => joined_items(arguments.first().ok_or_else(missing)?, arguments.get(1))?,
        };
        Ok(ColumnarValue::Array(array))
    }
}

fn joined_items(items: &ArrayRef, separator: Option<&ArrayRef>) -> Result<ArrayRef> {
    let Some(lists) = items.as_list_opt::<i32>() else { return Ok(cast(items, &DataType::Utf8)?) };
    let separators = separator.map(|separator| cast(separator, &DataType::Utf8)).transpose()?;
    let mut texts = Vec::with_capacity(lists.len());
    for (row, list) in lists.iter().enumerate() {
        let separator =
            separators.as_ref().map_or(",", |separators| separators.as_string::<i32>().value(row));
        texts.push(match list {
            None => None,
            Some(items) => {
                let items = cast(&items, &DataType::Utf8)?;
                let items: Vec<&str> = items.as_string::<i32>().iter().flatten().collect();
                Some(items.join(separator))
            }
        });
    }
    Ok(Arc::new(StringArray::from(texts)))
}

/// Registers the functions that know `objects`.
pub(super) fn register(context: &SessionContext, objects: &Objects) {
    let text = |values: Vec<(i32, String)>| Answer::Text {
        keys: 1,
        values: values.into_iter().map(|(oid, text)| (vec![i64::from(oid)], text)).collect(),
    };
    let routines = &objects.routines;
    let arguments: Vec<(i32, String)> = routines.iter().map(|r| (r.oid, r.arguments.clone())).collect();
    let results = routines.iter().filter_map(|r| Some((r.oid, r.result.clone()?))).collect();
    let defined = routines.iter().filter(|routine| routine.kind != "a");
    let definitions = defined.map(|r| (r.oid, r.definition.clone())).collect();
    let indexes = objects.relations.iter().flat_map(|relation| &relation.indexes);
    let indexes = indexes.map(|index| (index.oid, index.definition.clone())).collect();
    let constraints = objects.relations.iter().flat_map(|relation| &relation.constraints);
    let constraints = constraints.map(|constraint| (constraint.oid, constraint.definition.clone())).collect();
    let triggers = objects.relations.iter().flat_map(|relation| &relation.triggers);
    let triggers = triggers.map(|trigger| (trigger.oid, trigger.definition.clone())).collect();
    let visible = objects.relations.iter().filter(|relation| [PUBLIC, PG_CATALOG].contains(&relation.schema));
    let mut visible: BTreeSet<i64> = visible
        .flat_map(|relation| {
            let indexes = relation.indexes.iter().map(|index| Some(index.oid));
            std::iter::once(Some(relation.oid)).chain(indexes)
        })
        .flatten()
        .map(i64::from)
        .collect();
    visible.extend(12_000..13_000);
    let functions = [
        ("pg_get_function_arguments", text(arguments.clone())),
        ("pg_get_function_identity_arguments", text(arguments)),
        ("pg_get_function_result", text(results)),
        ("pg_get_functiondef", text(definitions)),
        ("pg_get_function_sqlbody", Answer::ConstantText(None)),
        ("pg_get_indexdef", text(indexes)),
        ("pg_get_constraintdef", text(constraints)),
        (COLUMN_DEFAULT, Answer::Text { keys: 2, values: defaults(objects) }),
        ("pg_get_expr", Answer::FirstArgument),
        ("to_regtype", Answer::Named(type_numbers())),
        ("pg_table_is_visible", Answer::Contained(visible)),
        ("pg_function_is_visible", Answer::ConstantBoolean(true)),
        ("pg_type_is_visible", Answer::ConstantBoolean(true)),
        ("pg_operator_is_visible", Answer::ConstantBoolean(true)),
        ("pg_collation_is_visible", Answer::ConstantBoolean(true)),
        ("pg_get_userbyid", Answer::ConstantText(Some(ROLE.to_string()))),
        ("obj_description", Answer::ConstantText(None)),
        ("col_description", Answer::ConstantText(None)),
        ("shobj_description", Answer::ConstantText(None)),
        ("pg_get_viewdef", Answer::ConstantText(None)),
        ("pg_get_triggerdef", text(triggers)),
        ("pg_get_ruledef", Answer::ConstantText(None)),
        ("pg_get_serial_sequence", Answer::ConstantText(None)),
        ("pg_table_size", Answer::ConstantNumber(0)),
        ("pg_indexes_size", Answer::ConstantNumber(0)),
        ("pg_database_size", Answer::ConstantNumber(0)),
        ("pg_tablespace_size", Answer::ConstantNumber(0)),
        ("pg_relation_size", Answer::ConstantNumber(0)),
        ("pg_total_relation_size", Answer::ConstantNumber(0)),
        ("pg_size_pretty", Answer::PrettyBytes),
        ("array_to_string", Answer::JoinedItems),
        ("pg_tablespace_location", Answer::ConstantText(Some(String::new()))),
        ("pg_char_to_encoding", Answer::ConstantNumber(6)),
        ("pg_conversion_is_visible", Answer::ConstantBoolean(true)),
        ("pg_opclass_is_visible", Answer::ConstantBoolean(true)),
        ("pg_opfamily_is_visible", Answer::ConstantBoolean(true)),
        ("pg_statistics_obj_is_visible", Answer::ConstantBoolean(true)),
        ("pg_ts_config_is_visible", Answer::ConstantBoolean(true)),
        ("pg_ts_dict_is_visible", Answer::ConstantBoolean(true)),
        ("pg_ts_parser_is_visible", Answer::ConstantBoolean(true)),
        ("pg_ts_template_is_visible", Answer::ConstantBoolean(true)),
        ("pg_is_in_recovery", Answer::ConstantBoolean(false)),
        ("pg_is_other_temp_schema", Answer::ConstantBoolean(false)),
        ("pg_my_temp_schema", Answer::ConstantNumber(0)),
        ("pg_advisory_unlock_all", Answer::ConstantText(Some(String::new()))),
        ("pg_client_encoding", Answer::ConstantText(Some("UTF8".to_string()))),
        ("getdatabaseencoding", Answer::ConstantText(Some("UTF8".to_string()))),
        ("pg_encoding_to_char", Answer::ConstantText(Some("UTF8".to_string()))),
        ("has_function_privilege", Answer::ConstantBoolean(true)),
        ("has_column_privilege", Answer::ConstantBoolean(true)),
        ("has_sequence_privilege", Answer::ConstantBoolean(true)),
        ("has_language_privilege", Answer::ConstantBoolean(true)),
        ("has_type_privilege", Answer::ConstantBoolean(true)),
        ("pg_has_role", Answer::ConstantBoolean(true)),
        ("inet_client_addr", Answer::ConstantText(Some("127.0.0.1".to_string()))),
        ("inet_server_addr", Answer::ConstantText(Some("127.0.0.1".to_string()))),
        ("txid_current_if_assigned", Answer::ConstantText(None)),
    ];
    for (name, answer) in functions {
        context.register_udf(Function::named(name, answer));
    }
    if let Ok(known) = context.udf(FORMAT_TYPE) {
        let answer = Answer::TextOr(row_type_names(objects), known);
        context.register_udf(Function::named(FORMAT_TYPE, answer));
    }
}

/// The function that tells the name of a type.
const FORMAT_TYPE: &str = "format_type";

/// Names of the types of rows and of arrays of them.
fn row_type_names(objects: &Objects) -> BTreeMap<i64, String> {
    let with_rows = objects.relations.iter().filter(|relation| relation.row_type != 0);
    let names = with_rows.flat_map(|relation| {
        let (oid, name) = (i64::from(relation.row_type), quoted(&relation.name));
        [(oid, name.clone()), (oid + 1, format!("{name}[]"))]
    });
    names.collect()
}

/// Object identifiers of the types, by each of their names.
fn type_numbers() -> BTreeMap<String, i64> {
    use types::DataType;
    let types: [(&[&str], DataType); 19] = [
        (&["boolean", "bool"], DataType::Boolean),
        (&["smallint", "int2"], DataType::SmallInt),
        (&["integer", "int", "int4"], DataType::Integer),
        (&["bigint", "int8"], DataType::BigInt),
        (&["numeric", "decimal"], DataType::Numeric(None)),
        (&["real", "float4"], DataType::Real),
        (&["double precision", "float8"], DataType::Double),
        (&["text"], DataType::Text(None)),
        (&["character varying", "varchar"], DataType::Text(Some(1))),
        (&["character", "char", "bpchar"], DataType::Char(Some(1))),
        (&["bytea"], DataType::Bytea),
        (&["uuid"], DataType::Uuid),
        (&["date"], DataType::Date),
        (&["time", "time without time zone"], DataType::Time),
        (&["timestamp", "timestamp without time zone"], DataType::Timestamp),
        (&["timestamptz", "timestamp with time zone"], DataType::TimestampTz),
        (&["interval"], DataType::Interval),
        (&["unknown"], DataType::Unknown),
        (&["refcursor"], DataType::RefCursor),
    ];
    let named = types.iter().flat_map(|(names, data_type)| {
        names.iter().map(|name| (name.to_string(), i64::from(data_type.oid())))
    });
    named.collect()
}

fn defaults(objects: &Objects) -> BTreeMap<Vec<i64>, String> {
    let mut values = BTreeMap::new();
    for relation in objects.relations.iter().filter(|relation| relation.schema != ENTENTE) {
        for (number, attribute) in relation.attributes.iter().enumerate() {
            if let Some(default) = &attribute.default {
                values.insert(vec![i64::from(relation.oid), number as i64 + 1], default.clone());
            }
        }
    }
    values
}
