//! What the table knows of a function.

use crate::{broken, work};
use std::fmt;
use types::{DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value};

/// What the code of a function gives.
pub(super) type Computed = Result<Value, SqlError>;

/// The types that arguments become, and that of the result.
pub(super) type Types = (Vec<DataType>, DataType);

/// A function of values: all that is known of it.
pub struct Function {
    /// Its names in calls, and the symbols of operators that mean it.
    names: &'static [&'static str],
    /// What EXPLAIN calls it, where that is not its first name without underscores.
    shown: Option<&'static str>,
    takes: Takes,
    gives: Gives,
    is_strict: bool,
    can_fail: bool,
    since: ExecutionVersion,
    units: fn(&[Value]) -> u64,
    stability: Stability,
    code: Code,
}

/// Whether PostgreSQL says that a function gives the same for the same arguments for ever. Here they all do.
#[derive(Clone, Copy)]
enum Stability {
    Immutable,
    /// Not of instants, which are shown in the zone of the session.
    StableOfInstants,
    Stable,
}

/// What a call hands to a function.
pub(super) enum Takes {
    /// These arguments, of which so many at the end may be left out, where the condition holds for all of their types.
    Arguments { list: &'static [Argument], optional: usize, when: Option<fn(&[DataType]) -> bool> },
    /// What the types of the arguments say: the types that they become, and the type of the result.
    Worked(fn(&[DataType]) -> Option<Types>),
    /// What the binder says: the grammar has a form of its own for it, and nobody looks for its name.
    Form,
}

/// What an argument may be, and what it becomes. Types are compared without length, precision and scale.
pub(super) enum Argument {
    /// Whatever becomes this type by itself.
    To(DataType),
    /// One of these, which becomes that one.
    From(&'static [DataType], DataType),
    /// One of the first ones, which becomes the one beside it.
    Pairs(&'static [(DataType, DataType)]),
    /// One of these, as it is.
    OneOf(&'static [DataType]),
    /// An array, as it is.
    AnyArray,
    /// An array, without the length, precision and scale of its elements.
    Array,
    /// Whatever becomes the type of the elements of the first argument.
    Element,
}

/// The type of a function's result.
pub(super) enum Gives {
    /// This one.
    Is(DataType),
    /// An array of these.
    ArrayOf(DataType),
    /// That of an argument, once it has become what the function takes.
    As(usize),
}

enum Code {
    /// Looks at the values alone.
    OfValues(fn(&[Value]) -> Computed),
    /// Makes an array, and has to know of which elements.
    OfElements(fn(&[Value], ElementType) -> Computed),
}

/// What a call of a name with some argument types means.
pub struct Signature {
    /// The function.
    pub function: &'static Function,
    /// Types that the arguments are cast to.
    pub arguments: Vec<DataType>,
    /// Type of the result.
    pub result: DataType,
}

/// The code of a function: what it gives for values of the types that it takes.
macro_rules! code {
    ($($values:pat $(if $holds:expr)? => $value:expr),+ $(,)?) => {
        |values: &[Value]| match values {
            $($values $(if $holds)? => $value,)+
            _ => Err($crate::functions::entry::misplaced(values)),
        }
    };
}
pub(super) use code;

/// Values of types that the function does not take.
#[cold]
pub(super) fn misplaced(values: &[Value]) -> SqlError {
    let types: Vec<String> = values.iter().map(|value| value.data_type().to_string()).collect();
    broken(&format!("a function was bound for other types than {}", types.join(", ")))
}

/// Goes over all values once, and may have to write numbers down.
pub(super) fn once(values: &[Value]) -> u64 {
    values.iter().map(work::of_argument).sum()
}

/// Looks at next to nothing, or counts for itself.
pub(super) fn free(_: &[Value]) -> u64 {
    0
}

impl Function {
    /// A function that is NULL where an argument is NULL, goes over its arguments once and may fail.
    pub(super) const fn new(
        names: &'static [&'static str],
        list: &'static [Argument],
        gives: Gives,
        code: fn(&[Value]) -> Computed,
    ) -> Function {
        let takes = Takes::Arguments { list, optional: 0, when: None };
        Function::of(names, takes, gives, Code::OfValues(code))
    }

    /// The same where types are worked out: what arguments of some types become, and what comes out.
    pub(super) const fn worked(
        names: &'static [&'static str],
        types: fn(&[DataType]) -> Option<Types>,
        code: fn(&[Value]) -> Computed,
    ) -> Function {
        Function::of(names, Takes::Worked(types), Gives::As(0), Code::OfValues(code))
    }

    /// The same where an array comes out.
    pub(super) const fn worked_array(
        names: &'static [&'static str],
        types: fn(&[DataType]) -> Option<Types>,
        code: fn(&[Value], ElementType) -> Computed,
    ) -> Function {
        Function::of(names, Takes::Worked(types), Gives::As(0), Code::OfElements(code))
    }

    /// A function for which the grammar has a form of its own.
    pub(super) const fn form(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
        Function::of(names, Takes::Form, Gives::As(0), Code::OfValues(code))
    }

    /// The same where an array comes out.
    pub(super) const fn array_form(
        names: &'static [&'static str],
        code: fn(&[Value], ElementType) -> Computed,
    ) -> Function {
        Function::of(names, Takes::Form, Gives::As(0), Code::OfElements(code))
    }

    const fn of(names: &'static [&'static str], takes: Takes, gives: Gives, code: Code) -> Function {
        Function {
            names,
            shown: None,
            takes,
            gives,
            is_strict: true,
            can_fail: true,
            since: ExecutionVersion::V1,
            units: once,
            stability: Stability::Immutable,
            code,
        }
    }

    /// So many arguments at the end may be left out.
    pub(super) const fn optional(mut self, count: usize) -> Function {
        if let Takes::Arguments { optional, .. } = &mut self.takes {
            *optional = count;
        }
        self
    }

    /// Only for arguments of types that belong together.
    pub(super) const fn when(mut self, holds: fn(&[DataType]) -> bool) -> Function {
        if let Takes::Arguments { when, .. } = &mut self.takes {
            *when = Some(holds);
        }
        self
    }

    /// It is called for NULL as well.
    pub(super) const fn sees_null(self) -> Function {
        Function { is_strict: false, ..self }
    }

    /// No argument ends it with an error.
    pub(super) const fn never_fails(self) -> Function {
        Function { can_fail: false, ..self }
    }

    /// PostgreSQL calls it STABLE: it looks at settings of the session, or calls the functions of types.
    pub(super) const fn stable(self) -> Function {
        Function { stability: Stability::Stable, ..self }
    }

    /// PostgreSQL calls it STABLE where an argument is an instant.
    pub(super) const fn stable_of_instants(self) -> Function {
        Function { stability: Stability::StableOfInstants, ..self }
    }

    /// Before this execution version there is no such function.
    pub(super) const fn since(self, since: ExecutionVersion) -> Function {
        Function { since, ..self }
    }

    /// What it does for some values in units of [`work`], beside what the result costs.
    pub(super) const fn costs(self, units: fn(&[Value]) -> u64) -> Function {
        Function { units, ..self }
    }

    /// What EXPLAIN calls it, where that is not its first name.
    pub(super) const fn shown_as(self, shown: &'static str) -> Function {
        Function { shown: Some(shown), ..self }
    }

    /// Its names in calls, and the symbols of operators that mean it.
    pub fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// Whether a version of the rules of execution has it.
    pub fn is_in(&self, version: ExecutionVersion) -> bool {
        version >= self.since
    }

    /// What a call hands to it.
    #[cfg(test)]
    pub(super) fn takes(&self) -> &Takes {
        &self.takes
    }

    /// What EXPLAIN calls it.
    pub fn shown(&self) -> String {
        match self.shown {
            Some(shown) => shown.to_string(),
            None => self.names.first().map_or_else(String::new, |name| name.replace('_', "")),
        }
    }

    /// Whether PostgreSQL says that it gives the same for ever for arguments of these types.
    pub fn is_immutable(&self, mut arguments: impl Iterator<Item = DataType>) -> bool {
        match self.stability {
            Stability::Immutable => true,
            Stability::StableOfInstants => !arguments.any(|data_type| data_type == DataType::TimestampTz),
            Stability::Stable => false,
        }
    }

    /// True where the value is NULL if an argument is.
    #[inline]
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// False where it gives no error, whatever its arguments are.
    #[inline]
    pub fn can_fail(&self) -> bool {
        self.can_fail
    }

    /// The function's value, of the type `result`, for arguments of the types that it was resolved for.
    ///
    /// # Errors
    /// What the function raises; `57014` where it takes more work than there is left.
    #[inline]
    pub fn call(&self, values: &[Value], result: DataType) -> Result<Value, SqlError> {
        work::spend((self.units)(values))?;
        match self.code {
            Code::OfValues(code) => code(values),
            Code::OfElements(code) => match result {
                DataType::Array(element) => code(values, element.family()),
                _ => Err(misplaced(values)),
            },
        }
    }

    /// What a call with arguments of these types means; `None` where they are not for this function.
    pub(super) fn signature(&'static self, given: &[DataType]) -> Option<Signature> {
        let (arguments, result) = match &self.takes {
            Takes::Arguments { list, optional, when } => {
                let required = list.len() - optional;
                let fits = (required..=list.len()).contains(&given.len());
                if !fits || when.is_some_and(|holds| !holds(given)) {
                    return None;
                }
                let arguments = list
                    .iter()
                    .zip(given)
                    .map(|(argument, given_type)| argument.becomes(*given_type, given.first().copied()));
                let arguments = arguments.collect::<Option<Vec<DataType>>>()?;
                let result = self.gives.of(&arguments)?;
                (arguments, result)
            }
            Takes::Worked(types) => types(given)?,
            Takes::Form => return None,
        };
        Some(Signature { function: self, arguments, result })
    }
}

impl Argument {
    /// The type that an argument of this type becomes; `None` where it is none for the function.
    fn becomes(&self, given: DataType, first: Option<DataType>) -> Option<DataType> {
        let family = given.family();
        match self {
            Argument::To(data_type) => Some(*data_type),
            // What takes a text takes a citext.
            Argument::From(types, data_type) => (types.contains(&family)
                || (family == DataType::Citext && types.contains(&DataType::Text(None))))
            .then_some(*data_type),
            Argument::Pairs(pairs) => {
                pairs.iter().find(|(accepted, _)| *accepted == family).map(|(_, data_type)| *data_type)
            }
            Argument::OneOf(types) => types.contains(&family).then_some(family),
            Argument::AnyArray => matches!(given, DataType::Array(_)).then_some(given),
            Argument::Array => matches!(given, DataType::Array(_)).then_some(family),
            Argument::Element => first?.family().element(),
        }
    }
}

impl Gives {
    fn of(&self, arguments: &[DataType]) -> Option<DataType> {
        match self {
            Gives::Is(data_type) => Some(*data_type),
            Gives::ArrayOf(element) => element.array(),
            Gives::As(index) => arguments.get(*index).copied(),
        }
    }
}

/// A function is itself and no other.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

/// What lies beyond the range of a type of integers.
pub(super) fn out_of_range(data_type: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{data_type} out of range"))
}
