//! Calls of the ledger's own functions inside of expressions.

use crate::expression::written::{all_fields_of, variadic_operand};
use crate::expression::{Binder, Environment, Expression, Kind, RoutineCall, row_value};
use crate::overload::{Argument, choose};
use crate::polymorphic::{Callee, resolve, variadic_element};
use crate::routines::{CallForm, Given, Routine, Routines, assign_arguments, is_volatile, takes};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName};
use sqlparser::tokenizer::Span;
use std::borrow::Cow;
use std::sync::Arc;
use syntax::names::name_of;
use types::{DataType, FunctionResult, Parameter, ParameterMode, Procedure, SqlError, SqlState, Value};
use values::broken;
use values::functions;

impl RoutineCall {
    /// The values of its arguments; `None` where it is not run because one of them is NULL.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn arguments_in(&self, environment: &Environment<'_>) -> Result<Option<Vec<Value>>, SqlError> {
        let values = self.arguments.iter().map(|argument| argument.evaluate(environment));
        let values = values.collect::<Result<Vec<Value>, SqlError>>()?;
        Ok((!self.is_strict || !values.iter().any(Value::is_null)).then_some(values))
    }

    /// Its value.
    pub(super) fn evaluate(&self, environment: &Environment<'_>) -> Result<Value, SqlError> {
        let query = environment.query.ok_or_else(|| broken("a function where nothing can run"))?;
        match self.arguments_in(environment)? {
            Some(arguments) => {
                let mut values = query.subqueries.call(&self.callee, arguments)?;
                match self.form {
                    CallForm::Columns => row_value(DataType::Record, values),
                    CallForm::Value | CallForm::Row => Ok(values.drain(..).next().unwrap_or_default()),
                }
            }
            None => Ok(Value::Null),
        }
    }
}

/// An argument of a call, and the name that it is given under.
#[derive(Clone)]
pub struct NamedArgument {
    /// `name => value`
    pub name: Option<String>,
    /// Its value.
    pub value: Expression,
    /// `VARIADIC value`: an array in the place of further arguments.
    pub is_variadic: bool,
}

impl NamedArgument {
    /// What tells which routine is meant.
    pub fn given(&self) -> Argument {
        let (name, is_variadic) = (self.name.clone(), self.is_variadic);
        Argument { name, is_variadic, data_type: self.value.data_type }
    }

    /// An argument given by its position.
    pub fn positional(value: Expression) -> NamedArgument {
        NamedArgument { name: None, value, is_variadic: false }
    }
}

/// What a parameter gets.
enum Assigned {
    /// The argument at this position.
    Argument(usize),
    /// Its DEFAULT.
    Default(Expression),
    /// The arguments from this position on, as an array.
    Rest(usize),
}

impl Binder<'_> {
    /// The arguments of a call.
    ///
    /// # Errors
    /// As [`Binder::bind`]; `42601` for a positional argument behind a named one.
    pub fn bind_arguments(&self, arguments: &[FunctionArg]) -> Result<Vec<NamedArgument>, SqlError> {
        let mut bound: Vec<NamedArgument> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (name, value) = match argument {
                FunctionArg::Unnamed(value) => (None, value),
                FunctionArg::Named { name, arg, .. } => (Some(name_of(name)?), arg),
                FunctionArg::ExprNamed { .. } => {
                    return Err(SqlError::unsupported("an expression as the name of an argument"));
                }
            };
            let value = match value {
                FunctionArgExpr::Expr(value) => match all_fields_of(value) {
                    Some(row) => Cow::Owned(row),
                    None => Cow::Borrowed(value),
                },
                // The whole row.
                FunctionArgExpr::QualifiedWildcard(name) => Cow::Owned(whole_row_of(name)),
                _ => return Err(SqlError::unsupported("* as an argument")),
            };
            if let Some(name) = &name
                && bound.iter().any(|known| known.name.as_ref() == Some(name))
            {
                let message = format!("argument name \"{name}\" used more than once");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            if name.is_none() && bound.last().is_some_and(|last| last.name.is_some()) {
                let message = "positional argument cannot follow named argument";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let operand = variadic_operand(&value);
            let is_variadic = operand.is_some();
            let value = self.bind(operand.unwrap_or(&value))?;
            bound.push(NamedArgument { name, value, is_variadic });
        }
        Ok(bound)
    }

    /// A call of this name with these arguments as an expression; `None` where the ledger has no function that takes
    /// them.
    pub(super) fn bind_routine(
        &self,
        name: &str,
        arguments: Vec<NamedArgument>,
    ) -> Result<Option<Expression>, SqlError> {
        let Some((routine, call)) = self.routine_call(name, arguments)? else { return Ok(None) };
        if routine.definition.function.as_ref().is_some_and(|function| function.is_set) {
            let error =
                SqlError::unsupported(format_args!("{name}(), which gives many rows, in an expression"));
            return Err(error.hint(format!("Call it in FROM: SELECT … FROM {name}(…).")));
        }
        let data_type = routine.data_type();
        Ok(Some(Expression { kind: Kind::Call(Box::new(call)), data_type }))
    }

    /// A function of the ledger and its call with these arguments; `None` where it has none that takes them.
    ///
    /// # Errors
    /// `42809` for a procedure; what is wrong with an argument.
    pub fn routine_call(
        &self,
        name: &str,
        arguments: Vec<NamedArgument>,
    ) -> Result<Option<(Arc<Routine>, RoutineCall)>, SqlError> {
        let candidates = self.scope().routines().candidates(name);
        if candidates.is_empty() {
            return Ok(None);
        }
        let given: Vec<Argument> = arguments.iter().map(NamedArgument::given).collect();
        let Some(routine) = choose("function", name, &candidates, &given)? else { return Ok(None) };
        let Some(assigned) = self.assigned(&routine.definition, &arguments)? else { return Ok(None) };
        let declared = routine.definition.inputs().map(|parameter| parameter.data_type);
        let types = given_types(declared.clone(), &assigned, &arguments);
        let Some(actual) = resolve(&types)? else {
            return match self.fits_without_defaults(declared, &assigned, &arguments)? {
                true => Err(not_alike()),
                false => Ok(None),
            };
        };
        let applied = routine.applied(self.scope().routines().types(), actual)?;
        let inputs = || applied.definition.inputs().map(|parameter| parameter.data_type);
        let types = given_types(inputs(), &assigned, &arguments);
        if !types.into_iter().all(|(parameter, argument)| takes(parameter, argument)) {
            return Ok(None);
        }
        let Some(function) = &routine.definition.function else {
            let message = format!("{name}({}) is a procedure", shown_arguments(&arguments));
            return Err(SqlError::new(SqlState(*b"42809"), message).hint("To call a procedure, use CALL."));
        };
        if function.result == FunctionResult::Trigger {
            let message = "trigger functions can only be called as triggers";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let callee = Callee { name: routine.key().clone(), actual };
        self.scope().note_call(&callee);
        let total = arguments.len();
        let mut values: Vec<Option<Expression>> =
            arguments.into_iter().map(|argument| Some(argument.value)).collect();
        let mut take = |at: usize| values[at].take().expect("each argument is assigned once");
        let mut cast = Vec::with_capacity(assigned.len());
        for (data_type, assigned) in inputs().zip(assigned) {
            let data_type = data_type.family();
            cast.push(match assigned {
                Assigned::Argument(at) => self.cast_to(take(at), data_type)?,
                Assigned::Default(value) => self.cast_to(value, data_type)?,
                Assigned::Rest(from) => {
                    let element = variadic_element(data_type);
                    let rest = (from..total).map(|at| self.cast_to(take(at), element));
                    let rest = rest.collect::<Result<Vec<Expression>, SqlError>>()?;
                    Binder::array_call(&functions::CONSTRUCT, rest, data_type)
                }
            });
        }
        let call = RoutineCall {
            callee,
            is_volatile: is_volatile(function),
            is_strict: function.is_strict,
            arguments: cast,
            form: applied.form(),
            columns: (applied.form() != CallForm::Value && !applied.columns.is_empty())
                .then(|| applied.columns.clone()),
            columns_are_asked: false,
        };
        Ok(Some((applied, call)))
    }

    /// Whether the arguments agree on what polymorphic types stand for, DEFAULTs left out.
    fn fits_without_defaults(
        &self,
        declared: impl Iterator<Item = DataType>,
        assigned: &[Assigned],
        arguments: &[NamedArgument],
    ) -> Result<bool, SqlError> {
        let has_defaults = assigned.iter().any(|one| matches!(one, Assigned::Default(_)));
        let given = declared.zip(assigned).filter(|(_, one)| !matches!(one, Assigned::Default(_)));
        let (declared, given): (Vec<DataType>, Vec<&Assigned>) = given.unzip();
        let types = given_types(declared.into_iter(), given, arguments);
        Ok(has_defaults && resolve(&types)?.is_some())
    }

    /// What each parameter gets; `None` where the call does not fit.
    fn assigned(
        &self,
        definition: &Procedure,
        arguments: &[NamedArgument],
    ) -> Result<Option<Vec<Assigned>>, SqlError> {
        let inputs: Vec<&Parameter> = definition.inputs().collect();
        let takes_rest = inputs.last().is_some_and(|last| last.mode == ParameterMode::Variadic);
        let is_variadic = arguments.iter().any(|argument| argument.is_variadic);
        if is_variadic && !takes_rest {
            return Ok(None);
        }
        let names: Vec<Option<String>> = arguments.iter().map(|argument| argument.name.clone()).collect();
        if takes_rest && !is_variadic && arguments.len() >= inputs.len() {
            // The elements of the array have no names to be given under.
            if names.iter().any(Option::is_some) {
                return Ok(None);
            }
            let single = (0..inputs.len() - 1).map(Assigned::Argument);
            return Ok(Some(single.chain([Assigned::Rest(inputs.len() - 1)]).collect()));
        }
        let Some(given) = assign_arguments(definition.inputs(), &names) else { return Ok(None) };
        let assigned = given.into_iter().zip(inputs).map(|(given, parameter)| {
            Ok(match given {
                Given::Argument(at) => Assigned::Argument(at),
                Given::Default => Assigned::Default(Routines::default_in(self.scope(), parameter)?),
            })
        });
        assigned.collect::<Result<Vec<Assigned>, SqlError>>().map(Some)
    }

    /// What calling a function that is not there ends with.
    pub fn no_routine(&self, name: &str, arguments: &[NamedArgument], span: Span) -> SqlError {
        let message = format!("function {name}({}) does not exist", shown_arguments(arguments));
        let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        );
        self.at(error, span)
    }
}

/// `name.*` as one value.
pub(super) fn whole_row_of(name: &ObjectName) -> Expr {
    let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    match <[Ident; 1]>::try_from(parts) {
        Ok([name]) => Expr::Identifier(name),
        Err(parts) => Expr::CompoundIdentifier(parts),
    }
}

fn not_alike() -> SqlError {
    let message = "arguments declared \"anyelement\" are not all alike";
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// For every argument the type of its parameter, and its own.
fn given_types<'a>(
    parameters: impl Iterator<Item = DataType>,
    assigned: impl IntoIterator<Item = &'a Assigned>,
    arguments: &[NamedArgument],
) -> Vec<(DataType, DataType)> {
    let mut types = Vec::with_capacity(arguments.len());
    for (parameter, assigned) in parameters.zip(assigned) {
        match assigned {
            Assigned::Argument(at) => types.push((parameter, arguments[*at].value.data_type)),
            Assigned::Default(value) => types.push((parameter, value.data_type)),
            Assigned::Rest(from) => {
                let element = variadic_element(parameter);
                types.extend(arguments[*from..].iter().map(|argument| (element, argument.value.data_type)));
            }
        }
    }
    types
}

/// The types of arguments as an error shows them.
pub fn shown_arguments(arguments: &[NamedArgument]) -> String {
    let shown = arguments.iter().map(|argument| {
        let data_type: DataType = argument.value.data_type.family();
        match &argument.name {
            Some(name) => format!("{name} => {data_type}"),
            None => data_type.to_string(),
        }
    });
    shown.collect::<Vec<String>>().join(", ")
}
