//! Which of several routines of one name a call means, by PostgreSQL's rules.
//!
//! For a call in a statement this is decided when the statement is bound; for `Payload::Call`, by the values of the
//! call.

use crate::polymorphic::{Actual, resolve, variadic_element};
use crate::routines::{Given, Routine, assign_arguments, takes};
use std::sync::Arc;
use types::{DataType, Parameter, ParameterMode, SqlError, SqlState, schema_of};

/// An argument of a call, as far as it tells which routine is meant.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name that it is given under.
    pub name: Option<String>,
    /// `VARIADIC`
    pub is_variadic: bool,
    /// Its type; unknown where it is a literal.
    pub data_type: DataType,
}

/// A routine that takes the arguments.
struct Candidate {
    routine: Arc<Routine>,
    /// By argument, the type that it becomes, as the parameter says it.
    types: Vec<DataType>,
    /// Arguments become the elements of an array.
    collects: bool,
    /// Another one takes the same, with the DEFAULTs of its own.
    is_ambiguous: bool,
}

/// The routine of these that a call means; `None` where none takes the arguments. `kind`: what the error calls it.
///
/// # Errors
/// `42725` where several do, and none better than the others.
pub fn choose(
    kind: &str,
    name: &str,
    routines: &[Arc<Routine>],
    arguments: &[Argument],
) -> Result<Option<Arc<Routine>>, SqlError> {
    choose_by(kind, name, routines, arguments, false)
}

/// The same of procedures that get arguments for what goes in only.
///
/// # Errors
/// As [`choose`].
pub fn choose_for_inputs(
    name: &str,
    routines: &[Arc<Routine>],
    arguments: &[Argument],
) -> Result<Option<Arc<Routine>>, SqlError> {
    choose_by("procedure", name, routines, arguments, true)
}

fn choose_by(
    kind: &str,
    name: &str,
    routines: &[Arc<Routine>],
    arguments: &[Argument],
    inputs_only: bool,
) -> Result<Option<Arc<Routine>>, SqlError> {
    if let [only] = routines {
        return Ok(Some(only.clone()));
    }
    let found: Vec<Candidate> =
        routines.iter().filter_map(|routine| candidate(routine, arguments, inputs_only)).collect();
    // Of those that take the same, the one whose schema comes first, and the one that has no array made for it.
    let mut distinct: Vec<Candidate> = Vec::new();
    for candidate in found {
        let Some(known) = distinct.iter_mut().find(|known| known.types == candidate.types) else {
            distinct.push(candidate);
            continue;
        };
        let schema = |candidate: &Candidate| schema_of(&candidate.routine.definition.name).to_string();
        match (known.collects, candidate.collects) {
            _ if schema(known) != schema(&candidate) => {}
            (true, false) => *known = candidate,
            (false, true) => {}
            _ => known.is_ambiguous = true,
        }
    }
    let mut candidates = distinct;
    let given: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.family()).collect();
    if candidates.iter().any(|candidate| candidate.types == given) {
        candidates.retain(|candidate| candidate.types == given);
    }
    keep_closest(&mut candidates, &given);
    match candidates.as_slice() {
        [] => Ok(None),
        [only] if !only.is_ambiguous => Ok(Some(only.routine.clone())),
        _ => Err(not_unique(kind, name, arguments)),
    }
}

fn not_unique(kind: &str, name: &str, arguments: &[Argument]) -> SqlError {
    let types: Vec<String> =
        arguments.iter().map(|argument| argument.data_type.family().to_string()).collect();
    let message = format!("{kind} {name}({}) is not unique", types.join(", "));
    SqlError::new(SqlState(*b"42725"), message)
        .hint(format!("Could not choose a best candidate {kind}. You might need to add explicit type casts."))
}

/// The routine with the types that the arguments become, where it takes them.
fn candidate(routine: &Arc<Routine>, arguments: &[Argument], inputs_only: bool) -> Option<Candidate> {
    let inputs_only = inputs_only || routine.definition.function.is_some();
    let parameters = routine.definition.parameters.iter();
    // CALL names what comes back too.
    let parameters: Vec<&Parameter> =
        parameters.filter(|parameter| !inputs_only || parameter.mode.is_input()).collect();
    let takes_rest = parameters.last().is_some_and(|last| last.mode == ParameterMode::Variadic);
    let is_variadic = arguments.iter().any(|argument| argument.is_variadic);
    if is_variadic && !takes_rest {
        return None;
    }
    let collects = takes_rest && !is_variadic && arguments.len() >= parameters.len();
    let mut types = vec![DataType::Unknown; arguments.len()];
    if collects {
        if arguments.iter().any(|argument| argument.name.is_some()) {
            return None;
        }
        for (at, data_type) in types.iter_mut().enumerate() {
            *data_type = match parameters.get(at).filter(|_| at + 1 < parameters.len()) {
                Some(parameter) => parameter.data_type,
                None => variadic_element(parameters.last()?.data_type),
            };
        }
    } else {
        let names: Vec<Option<String>> = arguments.iter().map(|argument| argument.name.clone()).collect();
        let given = assign_arguments(parameters.iter().copied(), &names)?;
        for (parameter, given) in parameters.iter().zip(given) {
            match given {
                Given::Argument(at) => types[at] = parameter.data_type,
                Given::Default => {}
            }
        }
    }
    let given: Vec<(DataType, DataType)> =
        types.iter().copied().zip(arguments.iter().map(|argument| argument.data_type)).collect();
    // What polymorphic types stand for where only literals are given is said when the call is bound.
    let actual = match resolve(&given) {
        Ok(actual) => actual?,
        Err(_) => Actual::default(),
    };
    let types: Vec<DataType> = types.into_iter().map(DataType::family).collect();
    for (wanted, argument) in types.iter().zip(arguments) {
        let wanted = actual.stands_for(*wanted).ok()?;
        if !matches!(wanted, DataType::Polymorphic(_)) && !takes(wanted, argument.data_type) {
            return None;
        }
    }
    Some(Candidate { routine: routine.clone(), types, collects, is_ambiguous: false })
}

/// PostgreSQL's kinds of types, within which it prefers one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Category {
    Boolean,
    Number,
    Text,
    Time,
    Interval,
    Array,
    Row,
    Other(DataType),
}

fn category(data_type: DataType) -> Category {
    match data_type {
        DataType::Boolean => Category::Boolean,
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Numeric(_)
        | DataType::Real
        | DataType::Double
        | DataType::Oid => Category::Number,
        DataType::Text(_) | DataType::Char(_) | DataType::Citext => Category::Text,
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => Category::Time,
        DataType::Interval => Category::Interval,
        DataType::Array(_) => Category::Array,
        DataType::Composite(_) | DataType::Record => Category::Row,
        other => Category::Other(other),
    }
}

fn is_preferred(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Double
            | DataType::Oid
            | DataType::Text(_)
            | DataType::TimestampTz
            | DataType::Interval
    )
}

/// Keeps those of which most is so.
fn keep_most(candidates: &mut Vec<Candidate>, count: impl Fn(&Candidate) -> usize) {
    let most = candidates.iter().map(&count).max().unwrap_or(0);
    candidates.retain(|candidate| count(candidate) == most);
}

/// PostgreSQL's steps to the one function that is meant, as far as they lead.
fn keep_closest(candidates: &mut Vec<Candidate>, given: &[DataType]) {
    let known = |at: &usize| given[*at] != DataType::Unknown;
    let exact = |candidate: &Candidate, at: usize| candidate.types[at] == given[at];
    if candidates.len() > 1 {
        keep_most(candidates, |candidate| {
            (0..given.len()).filter(known).filter(|at| exact(candidate, *at)).count()
        });
    }
    if candidates.len() > 1 {
        keep_most(candidates, |candidate| {
            let prefers = |at: usize| {
                let found = candidate.types[at];
                category(found) == category(given[at]) && is_preferred(found)
            };
            (0..given.len()).filter(known).filter(|at| exact(candidate, *at) || prefers(*at)).count()
        });
    }
    let unknown: Vec<usize> = (0..given.len()).filter(|at| !known(at)).collect();
    if candidates.len() <= 1 || unknown.is_empty() {
        return;
    }
    if let Some(wanted) = unknown.iter().map(|at| wanted_by_all(candidates, *at)).collect::<Option<Vec<_>>>()
    {
        let has = |candidate: &Candidate| {
            unknown.iter().zip(&wanted).all(|(at, (wanted, preferred))| {
                let found = candidate.types[*at];
                category(found) == *wanted && (!preferred || is_preferred(found))
            })
        };
        if candidates.iter().any(has) {
            candidates.retain(has);
        }
    }
    if candidates.len() <= 1 {
        return;
    }
    // Literals beside arguments of one type are taken for values of that.
    let mut types = given.iter().filter(|found| **found != DataType::Unknown);
    if let Some(first) = types.next()
        && types.all(|other| other == first)
    {
        let fits = |candidate: &Candidate| unknown.iter().all(|at| takes(candidate.types[*at], *first));
        if candidates.iter().filter(|candidate| fits(candidate)).count() == 1 {
            candidates.retain(fits);
        }
    }
}

/// The kind of type that a literal is taken for, and whether one of the candidates has the one that is preferred; text where
/// they differ and one takes that.
fn wanted_by_all(candidates: &[Candidate], at: usize) -> Option<(Category, bool)> {
    let found = || candidates.iter().map(|candidate| candidate.types[at]);
    let first = category(found().next()?);
    let wanted = match found().all(|other| category(other) == first) {
        true => first,
        false => found().map(category).find(|one| *one == Category::Text)?,
    };
    Some((wanted, found().any(|one| category(one) == wanted && is_preferred(one))))
}
