//! Binding of CALL.

use crate::expression::{Binder, Expression, NamedArgument, Source, shown_arguments};
use crate::overload::choose;
use crate::polymorphic::Callee;
use crate::routines::{Given, Routines, assign_arguments, no_procedure};
use crate::scope::VariableScope;
use crate::statement::BoundCall;
use sqlparser::ast::{self, FunctionArguments, Spanned};
use syntax::names::table_name;
use types::{DataType, Parameter, SqlError, SqlState, can_cast_implicitly};

pub(super) fn bind_call(scope: &VariableScope, call: &ast::Function) -> Result<BoundCall, SqlError> {
    let procedure = table_name(&call.name)?;
    let binder = Binder::new(scope, Source::Nothing);
    binder.in_clause(Some("CALL arguments"));
    let arguments = match &call.args {
        FunctionArguments::None => Vec::new(),
        FunctionArguments::List(list) if list.clauses.is_empty() && list.duplicate_treatment.is_none() => {
            binder.bind_arguments(&list.args)?
        }
        _ => return Err(SqlError::unsupported("this form of CALL")),
    };
    BoundCall::new(scope, procedure, arguments).map_err(|error| scope.located(error, call.name.span()))
}

impl BoundCall {
    /// A call with these arguments in the order of the procedure's parameters, what is left out by its DEFAULT. A
    /// procedure that is not there yet is looked up again when the call runs.
    ///
    /// # Errors
    /// `42883` where the procedure takes other arguments, `42809` for a function.
    pub fn new(
        scope: &VariableScope,
        procedure: String,
        arguments: Vec<NamedArgument>,
    ) -> Result<BoundCall, SqlError> {
        let candidates = scope.routines().candidates(&procedure);
        let all: Vec<_> = arguments.iter().map(NamedArgument::given).collect();
        let chosen = choose("procedure", &procedure, &candidates, &all)?;
        let procedure = match &chosen {
            Some(known) => known.key().to_string(),
            None => scope.routines().find_or_missing(&procedure),
        };
        scope.note_call(&Callee::named(&procedure));
        let names: Vec<Option<String>> = arguments.iter().map(|argument| argument.name.clone()).collect();
        let known = chosen.as_ref();
        if known.is_some_and(|known| known.definition.function.is_some()) {
            let message = format!("{procedure}({}) is not a procedure", shown_arguments(&arguments));
            let error = SqlError::new(SqlState(*b"42809"), message);
            return Err(error.hint("To call a function, use SELECT."));
        }
        let given = known.and_then(|known| assign_arguments(known.definition.parameters.iter(), &names));
        let (Some(known), Some(given)) = (known, given) else {
            if names.iter().any(Option::is_some) {
                return Err(crate::routines::no_procedure(&procedure, &shown_arguments(&arguments)));
            }
            let arguments = arguments.into_iter().map(|argument| argument.value).collect();
            return Ok(BoundCall { procedure, arguments });
        };
        let mut values: Vec<Option<Expression>> =
            arguments.into_iter().map(|argument| Some(argument.value)).collect();
        let mut ordered = Vec::with_capacity(given.len());
        for (parameter, given) in known.definition.parameters.iter().zip(given) {
            ordered.push(match given {
                Given::Argument(at) => values[at].take().expect("each argument is assigned once"),
                Given::Default => Routines::default_in(scope, parameter)?,
            });
        }
        Ok(BoundCall { procedure, arguments: ordered })
    }

    /// Gives parameters of a script the types of the procedure's parameters, where nothing else has told them.
    pub fn infer(&mut self, scope: &VariableScope, parameters: &[types::Parameter]) {
        for (argument, parameter) in self.arguments.iter_mut().zip(parameters) {
            if argument.data_type == DataType::Unknown
                && let Some(slot) = argument.as_slot()
            {
                scope.infer(slot, parameter.data_type.family());
                argument.data_type = parameter.data_type.family();
            }
        }
    }
}

impl BoundCall {
    /// Whether a procedure with these parameters takes the arguments.
    pub fn fits(&self, parameters: &[Parameter]) -> bool {
        parameters.len() == self.arguments.len()
            && parameters.iter().zip(&self.arguments).all(|(parameter, argument)| {
                !parameter.mode.is_input() || can_cast_implicitly(argument.data_type, parameter.data_type)
            })
    }

    /// What calling a procedure that is not there ends with.
    #[cold]
    pub fn no_procedure(&self) -> SqlError {
        let types: Vec<String> =
            self.arguments.iter().map(|argument| argument.data_type.to_string()).collect();
        no_procedure(&self.procedure, &types.join(", "))
    }
}
