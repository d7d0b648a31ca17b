//! Functions, procedures and aggregates as `pg_proc` and the functions that print them show them.

use crate::objects::PUBLIC;
use types::{
    CompositeTypes, DataType, Function, FunctionResult, Language, Parameter, ParameterMode, Procedure,
    UserAggregate, Volatility, object_name, schema_of,
};
use values::quote_ident;

/// A procedure as `pg_proc` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Routine {
    pub(crate) oid: i32,
    /// Its name in the catalog.
    pub(crate) key: String,
    pub(crate) name: String,
    /// Its schema.
    pub(crate) schema: String,
    pub(crate) schema_oid: i32,
    /// `f` a function, `p` a procedure, `a` an aggregate.
    pub(crate) kind: &'static str,
    /// As `pg_get_function_result` shows it; `None` for a procedure.
    pub(crate) result: Option<String>,
    /// Type of the result: `void` for a procedure, `record` for a row.
    pub(crate) result_type: i64,
    pub(crate) returns_set: bool,
    pub(crate) is_strict: bool,
    /// `i`, `s` or `v`.
    pub(crate) volatility: &'static str,
    pub(crate) arguments: String,
    /// The same without names of outputs and DEFAULT.
    pub(crate) identity: String,
    /// Of arguments that have one, with their numbers among the inputs, from 1.
    pub(crate) defaults: Vec<(i32, String)>,
    pub(crate) language: &'static str,
    pub(crate) definition: String,
    pub(crate) body: String,
    /// Types of the arguments that go in.
    pub(crate) input_types: Vec<i64>,
    /// Types, modes and names of all arguments.
    pub(crate) all_types: Vec<i64>,
    pub(crate) modes: Vec<String>,
    pub(crate) names: Vec<String>,
}

/// Object identifier of the type of arguments that take every type.
const ANY: i64 = 2276;

impl Routine {
    pub(crate) fn of_aggregate(number: usize, aggregate: &UserAggregate, known: &CompositeTypes) -> Routine {
        let types = &aggregate.arguments;
        let shown = types.iter().map(|one| one.map_or("\"any\"".to_string(), |one| family_name(known, one)));
        let arguments = shown.collect::<Vec<String>>().join(", ");
        Routine {
            oid: 50_000_000 + number as i32,
            key: aggregate.name.clone(),
            name: object_name(&aggregate.name).to_string(),
            schema: schema_of(&aggregate.name).to_string(),
            schema_oid: PUBLIC,
            kind: "a",
            result: Some(family_name(known, aggregate.data_type)),
            result_type: i64::from(aggregate.data_type.oid()),
            returns_set: false,
            is_strict: false,
            volatility: "i",
            identity: arguments.clone(),
            defaults: Vec::new(),
            language: "internal",
            arguments,
            definition: String::new(),
            body: "aggregate_dummy".to_string(),
            input_types: types
                .iter()
                .map(|known| known.map_or(ANY, |known| i64::from(known.oid())))
                .collect(),
            all_types: Vec::new(),
            modes: Vec::new(),
            names: Vec::new(),
        }
    }

    pub(crate) fn of_procedure(number: usize, procedure: &Procedure, types: &CompositeTypes) -> Routine {
        let written = |with_default| parameters_of(procedure, types, with_default);
        let arguments = written(true);
        let defaults = (1..).zip(procedure.inputs());
        let defaults = defaults.filter_map(|(number, input)| Some((number, input.default.clone()?)));
        let (kind, result, result_type) = match &procedure.function {
            None if procedure.outputs().next().is_some() => ("procedure", None, RECORD),
            None => ("procedure", None, VOID),
            Some(function) => {
                let (result, result_type) = result_of(procedure, function, types);
                ("function", Some(result), result_type)
            }
        };
        let language = match procedure.language {
            Language::PlPgSql => "plpgsql",
            Language::Sql => "sql",
        };
        let returns = result.as_ref().map(|result| format!("\n RETURNS {result}")).unwrap_or_default();
        let (volatility, promise) = match procedure.function.as_ref().map(|function| function.volatility) {
            Some(Volatility::Immutable) => ("i", " IMMUTABLE"),
            Some(Volatility::Stable) => ("s", " STABLE"),
            Some(Volatility::Volatile) | None => ("v", ""),
        };
        let is_strict = procedure.function.as_ref().is_some_and(|function| function.is_strict);
        let options = if is_strict { format!("{promise} STRICT") } else { promise.to_string() };
        let options = if options.is_empty() { options } else { format!("\n{options}") };
        let definition = format!(
            "CREATE OR REPLACE {} {}.{}({arguments}){returns}\n LANGUAGE {language}{options}\nAS ${kind}${}${kind}$\n",
            kind.to_uppercase(),
            quote_ident(schema_of(&procedure.name)),
            quote_ident(object_name(&procedure.name)),
            procedure.body
        );
        let (input, parameters) = (procedure.inputs(), &procedure.parameters);
        Routine {
            result,
            result_type,
            returns_set: procedure.function.as_ref().is_some_and(|function| function.is_set),
            is_strict,
            volatility,
            oid: routine_identifier(number),
            key: procedure.key(),
            name: object_name(&procedure.name).to_string(),
            schema: schema_of(&procedure.name).to_string(),
            schema_oid: PUBLIC,
            kind: if procedure.function.is_some() { "f" } else { "p" },
            definition,
            body: procedure.body.clone(),
            input_types: input.map(|parameter| i64::from(parameter.data_type.oid())).collect(),
            all_types: parameters.iter().map(|parameter| i64::from(parameter.data_type.oid())).collect(),
            modes: parameters.iter().map(|parameter| mode(procedure, parameter.mode).1.to_string()).collect(),
            names: parameters.iter().map(|parameter| parameter.name.clone()).collect(),
            identity: written(false),
            defaults: defaults.collect(),
            language,
            arguments,
        }
    }
}

/// How a parameter's mode is written, and how `pg_proc` has it.
fn mode(procedure: &Procedure, mode: ParameterMode) -> (&'static str, &'static str) {
    match mode {
        ParameterMode::In if procedure.function.is_some() => ("", "i"),
        ParameterMode::In => ("IN", "i"),
        // Which of both forms it was made with nobody knows; they are the same.
        ParameterMode::Out if is_table(procedure) => ("", "t"),
        ParameterMode::Out => ("OUT", "o"),
        ParameterMode::InOut => ("INOUT", "b"),
        ParameterMode::Variadic => ("VARIADIC", "v"),
    }
}

/// The list of parameters: as CREATE has it, with defaults, or as it tells routines of one name apart.
fn parameters_of(procedure: &Procedure, types: &CompositeTypes, with_default: bool) -> String {
    let gives_rows = is_table(procedure);
    let parameters = procedure.parameters.iter();
    let parameters =
        parameters.filter(|parameter| (with_default && !gives_rows) || parameter.mode != ParameterMode::Out);
    let shown = parameters.map(|parameter| {
        let name = if parameter.name.is_empty() { String::new() } else { quote_ident(&parameter.name) + " " };
        let mode = mode(procedure, parameter.mode).0;
        let space = if mode.is_empty() { "" } else { " " };
        let default = parameter.default.as_ref().filter(|_| with_default);
        let default = default.map(|sql| format!(" DEFAULT {sql}")).unwrap_or_default();
        format!("{mode}{space}{name}{}{default}", family_name(types, parameter.data_type))
    });
    shown.collect::<Vec<String>>().join(", ")
}

/// The object identifier of the procedure or function of this number by name.
pub(crate) fn routine_identifier(number: usize) -> i32 {
    50_000_000 + number as i32
}

/// Object identifiers of the types `void`, `record` and `trigger`.
const VOID: i64 = 2278;
const RECORD: i64 = 2249;
const TRIGGER: i64 = 2279;

/// Whether it is shown as RETURNS TABLE: it gives rows, and its outputs come behind its inputs.
fn is_table(procedure: &Procedure) -> bool {
    let is_set = procedure
        .function
        .as_ref()
        .is_some_and(|function| function.is_set && function.result == FunctionResult::Outputs);
    let modes = procedure.parameters.iter().map(|parameter| parameter.mode);
    let behind = modes.clone().skip_while(|mode| *mode != ParameterMode::Out);
    is_set
        && modes.clone().all(|mode| mode != ParameterMode::InOut)
        && behind.clone().all(|mode| mode == ParameterMode::Out)
}

/// A function's result as `pg_get_function_result` shows it, and its type.
fn result_of(procedure: &Procedure, function: &Function, types: &CompositeTypes) -> (String, i64) {
    let value = |data_type: DataType| (family_name(types, data_type), i64::from(data_type.oid()));
    if is_table(procedure) {
        let column = |output: &Parameter| {
            format!("{} {}", quote_ident(&output.name), family_name(types, output.data_type))
        };
        let columns: Vec<&Parameter> = procedure.outputs().collect();
        let shown = columns.iter().map(|output| column(output)).collect::<Vec<String>>().join(", ");
        let result_type = match columns.as_slice() {
            [only] => i64::from(only.data_type.oid()),
            _ => RECORD,
        };
        return (format!("TABLE({shown})"), result_type);
    }
    let (name, result_type) = match &function.result {
        FunctionResult::Void => ("void".to_string(), VOID),
        FunctionResult::Value(data_type) => value(*data_type),
        FunctionResult::Outputs => match procedure.outputs().collect::<Vec<_>>().as_slice() {
            [only] => value(only.data_type),
            _ => ("record".to_string(), RECORD),
        },
        FunctionResult::Record => ("record".to_string(), RECORD),
        FunctionResult::Trigger => ("trigger".to_string(), TRIGGER),
    };
    match function.is_set {
        true => (format!("SETOF {name}"), result_type),
        false => (name, result_type),
    }
}

/// PostgreSQL leaves length, precision and scale out of the types of arguments.
fn family_name(types: &CompositeTypes, data_type: DataType) -> String {
    match data_type {
        DataType::Text(Some(_)) => "character varying".to_string(),
        other => types.name_of(other.family()),
    }
}
