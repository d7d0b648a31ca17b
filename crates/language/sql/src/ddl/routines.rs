//! CREATE and DROP of procedures and functions.

use crate::ddl::aggregates::drop_aggregates_of;
use crate::ddl::endorsement::bind_policy;
use crate::ddl::new_catalog::{NewCatalog, WARNINGS_TOGETHER_MAX};
use crate::ddl::row_security::drop_policies_calling;
use crate::ddl::triggers::{check_triggers, drop_calling};
use crate::ddl::views::drop_dependents;
use plan::expression::bind_routine_type;
use plan::polymorphic::{self, Actual, is_polymorphic};
use plan::tables::Tables;
use plpgsql::{self, CompileOptions};
use sqlparser::ast::{self, FunctionDesc};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::routine::{CreateRoutine, ParsedFunction, ParsedResult};
use types::{
    CompositeTypes, DataType, ExecutionVersion, Function, FunctionResult, Language, Parameter, ParameterMode,
    Procedure, SqlError, SqlState, as_given, limits, object_name,
};

/// What PostgreSQL calls a definition that cannot be: `invalid_function_definition`.
const INVALID_DEFINITION: SqlState = SqlState(*b"42P13");
/// `wrong_object_type`
const WRONG_OBJECT: SqlState = SqlState(*b"42809");

/// DROP PROCEDURE and DROP FUNCTION.
#[derive(Clone, Debug)]
pub(crate) struct DropRoutine {
    pub(super) if_exists: bool,
    /// CASCADE
    cascade: bool,
    /// DROP FUNCTION.
    is_function: bool,
    /// With the types of the arguments where they are given.
    pub(super) names: Vec<(String, Option<Vec<DataType>>)>,
}

/// What CREATE PROCEDURE or CREATE FUNCTION makes.
///
/// # Errors
/// What is wrong with it but its body; `0A000` names what is not supported.
pub(crate) fn bind_create_routine(
    types: &CompositeTypes,
    create: &CreateRoutine,
) -> Result<Procedure, SqlError> {
    let name = table_name(&ast::ObjectName::from(create.name.clone()))?;
    if name.contains('(') {
        return Err(SqlError::unsupported("a parenthesis in the name of a routine"));
    }
    if create.parameters.len() > limits::ARGUMENTS_MAX {
        return Err(SqlError::new(
            SqlState(*b"54023"),
            format!("procedures cannot have more than {} arguments (ARGUMENTS_MAX)", limits::ARGUMENTS_MAX),
        ));
    }
    let parameters = bind_parameters(types, create)?;
    let function =
        create.function.as_ref().map(|function| bind_function(types, function, &parameters)).transpose()?;
    let endorsement = bind_policy(create.endorsement.as_deref().unwrap_or_default())?;
    let (language, body) = (create.language, create.body.clone());
    let is_trigger = function.as_ref().is_some_and(|function| function.result == FunctionResult::Trigger);
    if is_trigger && language == Language::Sql {
        let message = "SQL functions cannot return type trigger";
        return Err(SqlError::new(INVALID_DEFINITION, message));
    }
    let security_definer = create.security_definer;
    let search_path = create.search_path.as_ref().unwrap_or(types.search_path()).clone();
    Ok(Procedure {
        name,
        parameters,
        function,
        language,
        body,
        endorsement,
        security_definer,
        search_path,
        overload: false,
    })
}

fn bind_parameters(types: &CompositeTypes, create: &CreateRoutine) -> Result<Vec<Parameter>, SqlError> {
    let mut parameters: Vec<Parameter> = Vec::with_capacity(create.parameters.len());
    for parameter in &create.parameters {
        let name = parameter.name.as_ref().map(name_of).transpose()?.unwrap_or_default();
        if !name.is_empty() && parameters.iter().any(|known| known.name == name) {
            let message = format!("parameter name \"{name}\" used more than once");
            return Err(SqlError::new(INVALID_DEFINITION, message));
        }
        let is_input = parameter.mode.is_input();
        if !is_input && parameter.default.is_some() {
            let message = "only input parameters can have default values";
            return Err(SqlError::new(INVALID_DEFINITION, message));
        }
        if is_input && parameter.default.is_none() && parameters.iter().any(|known| known.default.is_some()) {
            let message = "input parameters after one with a default value must also have defaults";
            return Err(SqlError::new(INVALID_DEFINITION, message));
        }
        // PostgreSQL drops length, precision and scale of parameters.
        let data_type = bind_routine_type(types, &parameter.data_type)?.family();
        if data_type.element().unwrap_or(data_type) == DataType::Record {
            return Err(SqlError::unsupported("a parameter of type record").hint("Use CREATE TYPE … AS (…)."));
        }
        if is_input && parameters.iter().any(|known| known.mode == ParameterMode::Variadic) {
            let message = "VARIADIC parameter must be the last input parameter";
            return Err(SqlError::new(INVALID_DEFINITION, message));
        }
        let is_array = match data_type {
            DataType::Polymorphic(polymorphic) => polymorphic.is_array(),
            known => known.element().is_some(),
        };
        if parameter.mode == ParameterMode::Variadic && !is_array {
            return Err(SqlError::new(INVALID_DEFINITION, "VARIADIC parameter must be an array"));
        }
        if create.function.is_none()
            && (parameter.mode == ParameterMode::Variadic || matches!(data_type, DataType::Polymorphic(_)))
        {
            let what = match parameter.mode {
                ParameterMode::Variadic => "VARIADIC in CREATE PROCEDURE".to_string(),
                _ => format!("{data_type} in CREATE PROCEDURE"),
            };
            return Err(SqlError::unsupported(what).hint("Make it a function."));
        }
        let default = parameter.default.clone();
        parameters.push(Parameter { name, mode: parameter.mode, data_type, default });
    }
    Ok(parameters)
}

fn bind_function(
    types: &CompositeTypes,
    parsed: &ParsedFunction,
    parameters: &[Parameter],
) -> Result<Function, SqlError> {
    if matches!(&parsed.returns, Some(returns) if matches!(returns.result, ParsedResult::Trigger)) {
        return bind_trigger_function(parsed, parameters);
    }
    let outputs: Vec<&Parameter> = parameters.iter().filter(|parameter| parameter.mode.is_output()).collect();
    let is_set = parsed.returns.as_ref().is_some_and(|returns| returns.is_set);
    let invalid = |message: String| Err(SqlError::new(INVALID_DEFINITION, message));
    let result = match parsed.returns.as_ref().map(|returns| &returns.result) {
        None if outputs.is_empty() => return invalid("function result type must be specified".to_string()),
        Some(ParsedResult::Record) if outputs.is_empty() => FunctionResult::Record,
        None | Some(ParsedResult::Table) => FunctionResult::Outputs,
        Some(result) if !outputs.is_empty() => {
            let expected = match outputs.as_slice() {
                [only] => only.data_type.to_string(),
                _ => "record".to_string(),
            };
            let fits = match result {
                ParsedResult::Named(named) => {
                    outputs.len() == 1
                        && bind_routine_type(types, named)
                            .is_ok_and(|named| named.family() == outputs[0].data_type)
                }
                ParsedResult::Record => outputs.len() > 1,
                _ => false,
            };
            if !fits {
                return invalid(format!("function result type must be {expected} because of OUT parameters"));
            }
            FunctionResult::Outputs
        }
        Some(ParsedResult::Void | ParsedResult::Record) => FunctionResult::Void,
        Some(ParsedResult::Trigger) => FunctionResult::Trigger,
        Some(ParsedResult::Named(named)) => match (bind_routine_type(types, named), named) {
            (Ok(data_type), _) => FunctionResult::Value(data_type.family()),
            // Parameters of these types, which would tell it, have been refused.
            (Err(_), ast::DataType::Custom(name, _)) if tells_no_range(&name.to_string()) => {
                return Err(polymorphic::undetermined(&name.to_string().to_ascii_lowercase()));
            }
            (Err(error), _) => return Err(error),
        },
    };
    if result == FunctionResult::Void && is_set {
        return Err(SqlError::unsupported("SETOF void").hint("Use RETURNS void."));
    }
    let volatility = parsed.volatility.unwrap_or_default();
    Ok(Function { result, is_set, volatility, is_strict: parsed.is_strict.unwrap_or(false) })
}

/// A function that triggers call.
fn bind_trigger_function(parsed: &ParsedFunction, parameters: &[Parameter]) -> Result<Function, SqlError> {
    if !parameters.is_empty() {
        let message = "trigger functions cannot have declared arguments";
        return Err(SqlError::new(INVALID_DEFINITION, message)
            .hint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead."));
    }
    if parsed.returns.as_ref().is_some_and(|returns| returns.is_set) {
        return Err(SqlError::unsupported("SETOF trigger").hint("Use RETURNS trigger."));
    }
    let volatility = parsed.volatility.unwrap_or_default();
    let is_strict = parsed.is_strict.unwrap_or(false);
    Ok(Function { result: FunctionResult::Trigger, is_set: false, volatility, is_strict })
}

/// Adds a procedure or function to the catalog. Gives the command's tag.
///
/// # Errors
/// One that is there already; what is wrong in the body.
pub(crate) fn create_routine(
    catalog: &mut NewCatalog,
    or_replace: bool,
    checks_body: bool,
    procedure: &Procedure,
) -> Result<&'static str, SqlError> {
    if let Some(known) = catalog.aggregates.get(&procedure.name) {
        let inputs = procedure.inputs().map(|parameter| Some(parameter.data_type));
        if !or_replace || !inputs.eq(known.arguments.iter().copied()) {
            let error = SqlError::unsupported(format_args!(
                "a function of the name of the aggregate \"{}\"",
                procedure.name
            ));
            return Err(error.hint("Drop the aggregate first, or choose another name."));
        }
        let detail = format!("\"{}\" is an aggregate function.", procedure.name);
        return Err(SqlError::new(WRONG_OBJECT, "cannot change routine kind").detail(detail));
    }
    let types = procedure.input_types();
    let known = catalog.overloads(&procedure.name).find(|(_, known)| known.input_types() == types);
    let known = known.map(|(_, known)| known.clone());
    let overload = match &known {
        Some(known) => known.overload,
        None => catalog.procedures.contains_key(&procedure.name),
    };
    let procedure = &Procedure { overload, ..procedure.clone() };
    match known {
        Some(known) => check_replacement(&known, procedure, or_replace).map_err(|mut error| {
            if catalog.rules >= ExecutionVersion::V9 {
                let types = CompositeTypes::new(&catalog.catalog);
                error.hint = error.hint.map(|hint| types.named_text(hint));
            }
            error
        })?,
        None if catalog.procedures.len() >= limits::PROCEDURES_MAX => {
            let message =
                format!("a ledger has at most {} procedures (PROCEDURES_MAX)", limits::PROCEDURES_MAX);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        None => {}
    }
    polymorphic::check_definition(procedure)?;
    if let Some(other) = differs_by_domains(catalog, procedure) {
        let what = format_args!("a routine that differs from {other} only by the domains of its parameters");
        return Err(SqlError::unsupported(what).hint("Give it another name."));
    }
    // It may call itself.
    let key = procedure.key();
    catalog.procedures.insert(key.clone(), Arc::new(procedure.clone()));
    let routines = catalog.routines();
    for parameter in procedure.parameters.iter().filter(|parameter| parameter.default.is_some()) {
        routines.default_of(parameter)?;
    }
    let tables = catalog.bound()?;
    let is_trigger =
        procedure.function.as_ref().is_some_and(|function| function.result == FunctionResult::Trigger);
    match (is_trigger, is_polymorphic(procedure)) {
        // It is bound to the tables of its triggers; there may be none yet.
        (true, _) => {
            plpgsql::check_trigger_function(procedure, catalog.rules)?;
            check_triggers(catalog, &tables, &|_, trigger| trigger.function == key)?;
        }
        (false, false) if checks_body => {
            let options = CompileOptions { version: tables.version(), ..CompileOptions::default() };
            let compiled = plpgsql::compile(&tables, procedure, options)?;
            warn(catalog, procedure, &compiled.missing);
        }
        (false, false) => check_syntax(&tables, procedure)?,
        (false, true) => check_polymorphic_body(&tables, procedure)?,
    }
    Ok(match procedure.function {
        Some(_) => "CREATE FUNCTION",
        None => "CREATE PROCEDURE",
    })
}

/// At most so many names that stand for nothing are told of a routine, and so many in one transaction.
const WARNINGS_MAX: usize = 16;

/// Tells the client which names stand for nothing yet.
fn warn(catalog: &mut NewCatalog, procedure: &Procedure, missing: &[SqlError]) {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for error in missing {
        // A record without columns follows from the query that could not be bound.
        let follows = error.state == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE && !told.is_empty();
        let enough = told.len() >= WARNINGS_MAX || catalog.warnings >= WARNINGS_TOGETHER_MAX;
        if follows || enough || !told.insert(&error.message) {
            continue;
        }
        let before =
            procedure.body.chars().take(error.position.map_or(0, |at| at.saturating_sub(1) as usize));
        let line = 1 + before.filter(|character| *character == '\n').count();
        let message = format!("{}, line {line}: {}", object_name(&procedure.name), error.message);
        let report = SqlError::new(SqlState(*b"01000"), message)
            .hint("The name is looked for again when the statement runs.");
        catalog.warn(report);
    }
}

/// Another routine of the name that takes the same values: a domain's are those of the type that it is of.
fn differs_by_domains(catalog: &NewCatalog, procedure: &Procedure) -> Option<String> {
    let known = CompositeTypes::new(&catalog.catalog);
    let bases = |procedure: &Procedure| -> Vec<DataType> {
        procedure.inputs().map(|parameter| known.base_of(parameter.data_type).family()).collect()
    };
    let (types, own) = (procedure.input_types(), bases(procedure));
    let mut others = catalog.overloads(&procedure.name).filter(|(_, other)| other.input_types() != types);
    others
        .find(|(_, other)| bases(other) == own)
        .map(|(_, other)| signature(&other.name, &other.input_types()))
}

/// What is wrong in the body of a polymorphic function whatever it is called with: its syntax.
fn check_polymorphic_body(tables: &Tables, procedure: &Procedure) -> Result<(), SqlError> {
    match Actual::FOR_VALIDATION.applied_to(procedure) {
        Ok(applied) => check_syntax(tables, &applied),
        Err(_) => Ok(()),
    }
}

/// What is wrong in a body whatever its names stand for.
fn check_syntax(tables: &Tables, procedure: &Procedure) -> Result<(), SqlError> {
    match plpgsql::compile(
        tables,
        procedure,
        CompileOptions { version: tables.version(), ..CompileOptions::default() },
    ) {
        Err(error)
            if error.state == SqlState::SYNTAX_ERROR || error.state == SqlState::FEATURE_NOT_SUPPORTED =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A polymorphic type that only ranges tell.
fn tells_no_range(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "anyrange" | "anymultirange" | "anycompatiblerange" | "anycompatiblemultirange")
}

/// Whether a procedure or function can stand where another one of its name stands.
fn check_replacement(known: &Procedure, new: &Procedure, or_replace: bool) -> Result<(), SqlError> {
    let types = |procedure: &Procedure| {
        procedure.inputs().map(|parameter| parameter.data_type).collect::<Vec<DataType>>()
    };
    if !or_replace {
        let message =
            format!("function \"{}\" already exists with same argument types", object_name(&new.name));
        return Err(SqlError::new(SqlState::DUPLICATE_FUNCTION, message));
    }
    let kind = |procedure: &Procedure| match procedure.function {
        Some(_) => "function",
        None => "procedure",
    };
    if kind(known) != kind(new) {
        let detail = format!("\"{}\" is a {}.", known.name, kind(known));
        return Err(SqlError::new(WRONG_OBJECT, "cannot change routine kind").detail(detail));
    }
    let shown = signature(&known.name, &types(known));
    let drop = if known.function.is_some() { "DROP FUNCTION" } else { "DROP PROCEDURE" };
    let refused = |message: String| {
        Err(SqlError::new(INVALID_DEFINITION, message).hint(format!("Use {drop} {shown} first.")))
    };
    // The only OUT parameter is the result, whatever its name.
    let result = |procedure: &Procedure| {
        let outputs: Vec<&Parameter> = procedure.outputs().collect();
        procedure.function.as_ref().map(|function| match (&function.result, outputs.as_slice()) {
            (FunctionResult::Outputs, [only]) => (FunctionResult::Value(only.data_type), function.is_set),
            (result, _) => (result.clone(), function.is_set),
        })
    };
    if result(known) != result(new) {
        return refused("cannot change return type of existing function".to_string());
    }
    let outputs = |procedure: &Procedure| -> Vec<_> {
        procedure
            .outputs()
            .map(|parameter| (parameter.mode, parameter.data_type, parameter.name.clone()))
            .collect()
    };
    if outputs(known) != outputs(new) && known.function.is_some() && known.outputs().count() > 1 {
        let error = SqlError::new(INVALID_DEFINITION, "cannot change return type of existing function");
        return Err(error
            .detail("Row type defined by OUT parameters is different.")
            .hint(format!("Use {drop} {shown} first.")));
    }
    for (known, new) in known.inputs().zip(new.inputs()) {
        if !known.name.is_empty() && known.name != new.name {
            return refused(format!("cannot change name of input parameter \"{}\"", known.name));
        }
        if known.default.is_some() && new.default.is_none() {
            return refused("cannot remove parameter defaults from existing function".to_string());
        }
    }
    Ok(())
}

fn signature(name: &str, types: &[DataType]) -> String {
    let types: Vec<String> = types.iter().map(DataType::to_string).collect();
    format!("{name}({})", types.join(", "))
}

impl DropRoutine {
    /// Binds the names and types.
    ///
    /// # Errors
    /// Names and types that cannot be.
    pub fn bind(
        types: &CompositeTypes,
        if_exists: bool,
        is_function: bool,
        descriptions: &[FunctionDesc],
        behavior: Option<&ast::DropBehavior>,
    ) -> Result<DropRoutine, SqlError> {
        let names = descriptions.iter().map(|one| bind_name(types, one)).collect::<Result<_, _>>()?;
        let cascade = matches!(behavior, Some(ast::DropBehavior::Cascade));
        Ok(DropRoutine { if_exists, cascade, is_function, names })
    }

    /// Takes them out of the catalog. Gives the command's tag.
    ///
    /// # Errors
    /// `42883` for one that is not there, `42809` for one of the other kind.
    pub fn apply(&self, catalog: &mut NewCatalog) -> Result<&'static str, SqlError> {
        for (name, types) in &self.names {
            self.drop(catalog, name, types.as_deref())?;
        }
        Ok(if self.is_function { "DROP FUNCTION" } else { "DROP PROCEDURE" })
    }

    fn drop(&self, catalog: &mut NewCatalog, name: &str, types: Option<&[DataType]>) -> Result<(), SqlError> {
        let kind = if self.is_function { "function" } else { "procedure" };
        let fits = |procedure: &Procedure| {
            types.is_none_or(|types| {
                let all = procedure.parameters.iter().map(|parameter| parameter.data_type);
                let inputs = procedure.inputs().map(|parameter| parameter.data_type);
                inputs.eq(types.iter().copied()) || all.eq(types.iter().copied())
            })
        };
        let fitting = catalog.overloads(name).filter(|(_, procedure)| fits(procedure));
        let fitting: Vec<Arc<Procedure>> = fitting.map(|(_, procedure)| procedure.clone()).collect();
        if types.is_none() && fitting.len() > 1 {
            let message = format!("{kind} name \"{}\" is not unique", as_given(name));
            return Err(SqlError::new(SqlState(*b"42725"), message)
                .hint(format!("Specify the argument list to select the {kind} unambiguously.")));
        }
        match fitting.first() {
            Some(known) if known.function.is_some() == self.is_function => {
                return remove_routine(catalog, &known.key(), self.cascade);
            }
            Some(_) if types.is_some() => {
                let message = format!("{} is not a {kind}", signature(name, types.unwrap_or_default()));
                return Err(SqlError::new(WRONG_OBJECT, message));
            }
            _ if self.if_exists => return Ok(()),
            _ => {}
        }
        let message = match types {
            None => format!("could not find a {kind} named \"{}\"", as_given(name)),
            Some(types) => format!("{kind} {} does not exist", signature(as_given(name), types)),
        };
        Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
    }
}

/// Takes a procedure or function out of the catalog that is there.
///
/// # Errors
/// `2BP01` for what others need, without CASCADE.
pub(super) fn remove_routine(catalog: &mut NewCatalog, key: &str, cascade: bool) -> Result<(), SqlError> {
    let Some(known) = catalog.procedures.get(key).cloned() else { return Ok(()) };
    let (name, types) = (&known.name, known.input_types());
    let kind = if known.function.is_some() { "function" } else { "procedure" };
    // PostgreSQL names what is dropped without blanks between the types.
    let what = format!("{kind} {}", signature(name, &types).replace(", ", ","));
    drop_aggregates_of(catalog, name, &what, cascade)?;
    drop_dependents(catalog, &what, cascade, &[], &|view| view.functions.contains(key))?;
    drop_calling(catalog, key, &what, cascade)?;
    drop_policies_calling(catalog, key, &what, cascade)?;
    catalog.procedures.remove(key);
    Ok(())
}

fn bind_name(
    known: &CompositeTypes,
    description: &FunctionDesc,
) -> Result<(String, Option<Vec<DataType>>), SqlError> {
    let types = match &description.args {
        None => None,
        Some(arguments) => Some(
            arguments
                .iter()
                .map(|argument| bind_routine_type(known, &argument.data_type).map(DataType::family))
                .collect::<Result<Vec<_>, _>>()?,
        ),
    };
    Ok((table_name(&description.name)?, types))
}
