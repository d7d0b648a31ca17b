//! Binding of the aggregates of the ledger.

use crate::aggregate::{Aggregate, AggregateFunction, AggregateOrder, UserFunctions, support_function};
use crate::expression::refusals::no_function;
use crate::expression::{Binder, Expression, Kind, RoutineCall, Source};
use crate::polymorphic::{Callee, resolve};
use crate::routines::{Routines, is_volatile, takes};
use crate::scope::VariableScope;
use sqlparser::tokenizer::Span;
use syntax::parse::parse_expression;
use types::{
    DataType, ExecutionVersion, FunctionResult, SearchPath, SqlError, SqlState, UserAggregate, Value,
    parse_value,
};

/// A function of an aggregate, called with its state.
pub struct StateCall {
    /// The value, of the state and what stands behind it.
    pub value: Expression,
    /// It is NULL where an argument is.
    pub is_strict: bool,
}

fn state(number: usize, data_type: DataType) -> Expression {
    Expression { kind: Kind::State(number as u16), data_type }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"42P13"), message)
}

fn mismatch(message: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

impl Binder<'_> {
    /// What an aggregate's functions do, checked; the arguments are left to the call.
    ///
    /// # Errors
    /// `42883` for a function that there is not, `42804` and `42P13` for functions that do not fit.
    pub fn user_functions(&self, definition: &UserAggregate) -> Result<UserFunctions, SqlError> {
        let mut types = vec![Some(definition.state)];
        types.extend(&definition.arguments);
        let transition = self.state_call(&definition.transition, &types)?;
        let found = transition.value.data_type.family();
        if found != definition.state {
            let message = format!(
                "return type of transition function {} is not {}",
                definition.transition, definition.state
            );
            return Err(mismatch(message));
        }
        let initial = match &definition.initial {
            Some(text) => parse_value(text, definition.state)?,
            None => Value::Null,
        };
        // The first row becomes the state then.
        let first = definition.arguments.first().copied().flatten();
        if transition.is_strict && initial.is_null() && first != Some(definition.state) {
            return Err(invalid(
                "must not omit initial value when transition function is strict and transition type is not compatible with input type",
            ));
        }
        let result = match &definition.result {
            None => state(0, definition.state),
            Some(name) => {
                let count = if definition.result_takes_arguments { types.len() } else { 1 };
                let call = self.state_call(name, &types[..count])?;
                if call.is_strict && definition.result_takes_arguments {
                    return Err(invalid("final function with extra arguments must not be declared STRICT"));
                }
                call.value
            }
        };
        Ok(UserFunctions {
            name: definition.name.as_str().into(),
            arguments: Vec::new(),
            transition: transition.value,
            is_strict: transition.is_strict,
            initial,
            result,
        })
    }

    /// A call of the function of this name with the state and what stands behind it, of these types: one that is there for
    /// states, any other one of the system, or one of the ledger, which hides none of these.
    fn state_call(&self, name: &str, types: &[Option<DataType>]) -> Result<StateCall, SqlError> {
        let known: Vec<DataType> = types.iter().map(|known| known.unwrap_or(DataType::Unknown)).collect();
        let missing = || {
            let shown =
                types.iter().map(|known| known.map_or("\"any\"".to_string(), |known| known.to_string()));
            let message = format!("function {name}({}) does not exist", shown.collect::<Vec<_>>().join(", "));
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
        };
        if let Some(support) = support_function(name).filter(|support| support.arguments == types) {
            let mut scope =
                VariableScope::for_procedure(None).with_routines(&Routines::none(self.scope().version()));
            for data_type in &known {
                scope.declare_parameter("", *data_type)?;
            }
            let binder = Binder::new(&scope, Source::Default);
            let mut value = binder.bind(&parse_expression(support.sql, scope.version())?)?;
            slots_to_states(&mut value);
            let value = binder.cast_to(value, support.result)?;
            return Ok(StateCall { value, is_strict: support.is_strict });
        }
        // They have the syntax of functions and are none.
        let is_function = !matches!(name, "coalesce" | "greatest" | "least" | "nullif");
        let arguments = known.iter().enumerate().map(|(at, data_type)| state(at, *data_type)).collect();
        match self.call(name, arguments, Span::empty()) {
            Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => {}
            Ok(_) if !is_function => {}
            found => {
                let takes_nulls =
                    name.starts_with("array_") || matches!(name, "concat" | "concat_ws" | "format");
                return Ok(StateCall { value: found?, is_strict: !takes_nulls });
            }
        }
        self.ledger_call(name, types, &known)?.ok_or_else(missing)
    }

    /// The same of a function of the ledger; `None` where there is none that takes these.
    fn ledger_call(
        &self,
        name: &str,
        types: &[Option<DataType>],
        known: &[DataType],
    ) -> Result<Option<StateCall>, SqlError> {
        let routines = self.scope().routines();
        // A name of the catalog, whatever the search path.
        let candidates = routines.with_search_path(&SearchPath::default()).candidates(name);
        let exact = candidates.iter().find(|routine| routine.definition.input_types() == known);
        let Some(routine) = exact.or(candidates.first()) else { return Ok(None) };
        let Some(function) = &routine.definition.function else { return Ok(None) };
        let declared = routine.definition.inputs().map(|parameter| parameter.data_type);
        let given: Vec<(DataType, DataType)> = declared.zip(known.iter().copied()).collect();
        let Some(actual) = resolve(&given)? else { return Ok(None) };
        let applied = routine.applied(routines.types(), actual)?;
        let routine = &applied;
        let parameters: Vec<DataType> =
            routine.definition.inputs().map(|parameter| parameter.data_type).collect();
        let fits = |(parameter, found): (&DataType, &Option<DataType>)| {
            found.is_some_and(|found| takes(*parameter, found))
        };
        if parameters.len() != types.len() || !parameters.iter().zip(types).all(fits) {
            return Ok(None);
        }
        let same = |(parameter, found): (&DataType, &DataType)| parameter.family() == found.family();
        if !parameters.iter().zip(known).all(same) {
            let shown: Vec<String> = parameters.iter().map(DataType::to_string).collect();
            let message = format!("function {name}({}) requires run-time type coercion", shown.join(", "));
            return Err(mismatch(message));
        }
        let result = routine.definition.function.as_ref().map(|function| &function.result);
        let data_type = match result {
            Some(FunctionResult::Value(data_type)) => Some(*data_type),
            Some(FunctionResult::Outputs) if routine.columns.len() == 1 => Some(routine.columns[0].data_type),
            _ => None,
        };
        let Some(data_type) = data_type.filter(|_| !function.is_set) else {
            return Err(SqlError::unsupported(format_args!("{name}(), which gives rows, in an aggregate")));
        };
        let callee = Callee { name: routine.key().clone(), actual };
        self.scope().note_call(&callee);
        let arguments = known.iter().enumerate().map(|(at, data_type)| state(at, *data_type));
        let call = RoutineCall {
            callee,
            is_volatile: is_volatile(function),
            is_strict: function.is_strict,
            arguments: arguments.collect(),
            form: routine.form(),
            columns: None,
            columns_are_asked: false,
        };
        let value = Expression { kind: Kind::Call(Box::new(call)), data_type };
        Ok(Some(StateCall { value, is_strict: function.is_strict }))
    }

    /// A call of an aggregate of the ledger with these arguments.
    pub(super) fn user_aggregate(
        &self,
        definition: &UserAggregate,
        arguments: Vec<Expression>,
        (distinct, order, filter): (bool, Vec<AggregateOrder>, Option<Expression>),
    ) -> Result<Aggregate, SqlError> {
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || no_function(&definition.name, &types);
        if arguments.len() != definition.arguments.len() {
            return Err(missing());
        }
        let written = arguments.clone();
        let mut functions = self.user_functions(definition)?;
        self.scope().note_call(&Callee::named(&definition.name));
        for (argument, wanted) in arguments.into_iter().zip(&definition.arguments) {
            functions.arguments.push(match wanted {
                Some(wanted) => self.argument(argument, *wanted).ok_or_else(missing)?,
                None => self.known(argument)?,
            });
        }
        let listed = |key: &AggregateOrder| {
            written.contains(&key.expression) || functions.arguments.contains(&key.expression)
        };
        if distinct && self.scope().version() >= ExecutionVersion::V8 {
            functions.arguments.iter().try_for_each(|argument| self.check_sortable(argument, "equality"))?;
        }
        if distinct && !order.iter().all(listed) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        Ok(Aggregate {
            function: AggregateFunction::User,
            argument: None,
            second: None,
            direct: Vec::new(),
            distinct,
            order,
            filter,
            data_type: definition.data_type,
            user: Some(Box::new(functions)),
        })
    }
}

/// What was bound as parameters is the state and what stands behind it.
fn slots_to_states(expression: &mut Expression) {
    if let Kind::Slot(slot) = expression.kind {
        expression.kind = Kind::State(slot);
    }
    expression.operands_mut().into_iter().for_each(slots_to_states);
}
