//! Binding of arrays: constructors, subscripts, ANY and ALL, operators.

use crate::expression::refusals::no_operator;
use crate::expression::written::comparison_of;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::{self, AccessExpr, BinaryOperator, Expr, Spanned, Subscript};
use syntax::names::name_of;
use types::{
    ArithmeticOperator, DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value,
    check_array_elements, check_dimensions,
};
use values::Comparison;
use values::functions::{self, Function};

impl Binder<'_> {
    pub(super) fn array_call(
        function: &'static Function,
        arguments: Vec<Expression>,
        data_type: DataType,
    ) -> Expression {
        Expression { kind: Kind::Function(function, arguments), data_type }
    }

    /// `ARRAY[a, b, c]`
    pub(super) fn bind_array(&self, array: &ast::Array) -> Result<Expression, SqlError> {
        check_array_elements(array.elem.len())?;
        if array.elem.is_empty() {
            let error = SqlError::new(SqlState(*b"42P18"), "cannot determine type of empty array")
                .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].");
            return Err(self.at(error, array.span()));
        }
        let elements = array.elem.iter().map(|element| self.bind(element)).collect::<Result<Vec<_>, _>>()?;
        let (elements, common) =
            self.unify(elements, "ARRAY").map_err(|error| self.at(error, array.span()))?;
        if let DataType::Array(_) = common
            && self.scope.version() >= ExecutionVersion::V16
        {
            return Ok(Self::array_call(&functions::NEST, elements, common.family()));
        }
        let Some(element) = ElementType::new(common) else {
            let error = SqlError::unsupported("an array of more than one dimension");
            return Err(self.at(error, array.span()));
        };
        let data_type = DataType::Array(element.family());
        Ok(Self::array_call(&functions::CONSTRUCT, elements, data_type))
    }

    /// `ARRAY[]::type[]`, which alone has no type.
    pub(super) fn bind_empty_array(&self, target: DataType) -> Option<Expression> {
        target.element()?;
        Some(Self::array_call(&functions::CONSTRUCT, Vec::new(), target))
    }

    /// `array[subscript]`, `array[lower:upper]`
    pub(super) fn bind_access(&self, root: &Expr, chain: &[AccessExpr]) -> Result<Expression, SqlError> {
        // A qualified name comes as its first part and dots.
        let mut names = Vec::new();
        let mut rest = chain;
        if let Expr::Identifier(first) = root {
            names.push(first.clone());
            while let [AccessExpr::Dot(Expr::Identifier(name)), after @ ..] = rest {
                names.push(name.clone());
                rest = after;
            }
        }
        let mut value = match names.len() {
            0 | 1 => self.bind(root)?,
            _ => self.bind(&Expr::CompoundIdentifier(names))?,
        };
        while let Some((access, after)) = rest.split_first() {
            if value.data_type == DataType::Jsonb && matches!(access, AccessExpr::Subscript(_)) {
                let subscripted = self.json_subscripts(value, rest);
                let (found, count) = subscripted.map_err(|error| self.at(error, root.span()))?;
                (value, rest) = (found, &rest[count..]);
                continue;
            }
            rest = after;
            if value.data_type == DataType::Hstore
                && let AccessExpr::Subscript(subscript) = access
            {
                let found = self.hstore_subscript(value, subscript);
                value = found.map_err(|error| self.at(error, root.span()))?;
                continue;
            }
            let accessed = match access {
                AccessExpr::Subscript(subscript) => {
                    let mut subscripts = vec![subscript];
                    // Those of all dimensions belong together.
                    while self.scope.version() >= ExecutionVersion::V16
                        && let [AccessExpr::Subscript(next), after @ ..] = rest
                    {
                        subscripts.push(next);
                        rest = after;
                    }
                    self.bind_subscripts(value, &subscripts)
                }
                AccessExpr::Dot(Expr::Identifier(name)) => self.bind_field(value, &name_of(name)?),
                AccessExpr::Dot(_) => Err(SqlError::unsupported("this form of access to a field")),
            };
            value = accessed.map_err(|error| self.at(error, root.span()))?;
        }
        Ok(value)
    }

    fn bind_subscripts(&self, array: Expression, subscripts: &[&Subscript]) -> Result<Expression, SqlError> {
        let Some(element) = array.data_type.element() else {
            let message = format!(
                "cannot subscript type {} because it does not support subscripting",
                array.data_type.family()
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        check_dimensions(subscripts.len())?;
        let data_type = array.data_type;
        let counts_from_zero = array.as_slot().is_some_and(|slot| self.scope.counts_from_zero(slot));
        let is_slice = subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice { .. }));
        let mut operands = vec![array];
        for subscript in subscripts {
            match subscript {
                Subscript::Index { index } => {
                    let mut index = self.subscript(index)?;
                    if is_slice {
                        // Among slices a number says where one ends.
                        operands.push(Expression::constant(Value::Integer(1), DataType::Integer));
                    } else if counts_from_zero {
                        // Behind the largest number nothing is either.
                        let one = Expression::constant(Value::Integer(1), DataType::Integer);
                        let operands = Box::new([index, one]);
                        let kind = Kind::Arithmetic(ArithmeticOperator::Add, operands);
                        index = Expression { kind, data_type: DataType::Integer };
                    }
                    operands.push(index);
                }
                Subscript::Slice { lower_bound, upper_bound, stride: None } => {
                    for bound in [lower_bound, upper_bound] {
                        let bound = bound.as_ref().map(|bound| self.subscript(bound)).transpose()?;
                        operands.push(bound.unwrap_or_else(no_bound));
                    }
                }
                Subscript::Slice { .. } => return Err(SqlError::unsupported("a slice with a stride")),
            }
        }
        Ok(match is_slice {
            true => Self::array_call(&functions::SLICE, operands, data_type),
            false => Self::array_call(&functions::ELEMENT, operands, element),
        })
    }

    /// A subscript, by the rules of assignment.
    fn subscript(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let bound = self.bind(expr)?;
        let found = bound.data_type;
        self.assign_to_column(bound, "subscript", DataType::Integer).map_err(|error| match error.state {
            SqlState::DATATYPE_MISMATCH => {
                let message = format!("array subscript must have type integer, not {}", found.family());
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            }
            _ => error,
        })
    }

    /// `value op ANY (array)` and `value op ALL (array)`.
    pub(super) fn bind_quantified(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        any: bool,
    ) -> Result<Expression, SqlError> {
        let Some(comparison) = comparison_of(op) else {
            let error = SqlError::unsupported(format_args!("the operator {op} with ANY or ALL"));
            return Err(self.at(error, left.span()));
        };
        let (value, array) = (self.bind(left)?, self.bind(right)?);
        self.compare_with_array(comparison, value, array, any).map_err(|error| self.at(error, left.span()))
    }

    fn compare_with_array(
        &self,
        comparison: Comparison,
        value: Expression,
        array: Expression,
        any: bool,
    ) -> Result<Expression, SqlError> {
        let no_array = || {
            let message = "op ANY/ALL (array) requires array on right side";
            SqlError::new(SqlState(*b"42809"), message)
        };
        let (element, known) = match (array.data_type, value.data_type) {
            (DataType::Unknown, DataType::Unknown) => (DataType::Text(None), false),
            (DataType::Unknown, value) => (value, false),
            (array, _) => (array.element().ok_or_else(no_array)?, true),
        };
        let symbol = comparison.symbol();
        let missing = || no_operator(&format!("{} {symbol} {}", value.data_type.family(), element.family()));
        let common = self.comparison_type(value.data_type, element).ok_or_else(missing)?;
        let target = common.array().ok_or_else(no_array)?.family();
        self.check_compared_elements(target)?;
        // Integers of all widths compare as they are.
        let integers = element.is_integer() && value.data_type.is_integer();
        let array = if known && integers { array } else { self.cast_to(array, target)? };
        let value = if integers { value } else { self.cast_to(value, common.family())? };
        let function = match any {
            true => functions::any_element(comparison),
            false => functions::all_elements(comparison),
        };
        Ok(Self::array_call(function, vec![value, array], DataType::Boolean))
    }

    /// `||` where a side is an array: of two arrays, or of an array and an element.
    pub(super) fn concatenate_arrays(
        &self,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, SqlError> {
        let (left_type, right_type) = (left.data_type, right.data_type);
        let missing = || no_operator(&format!("{} || {}", left_type.family(), right_type.family()));
        let (name, array) = match (left_type.element(), right_type.element()) {
            (Some(_), Some(_)) => ("array_cat", left_type),
            // A literal is an array too.
            (Some(_), None) if right_type == DataType::Unknown => ("array_cat", left_type),
            (None, Some(_)) if left_type == DataType::Unknown => ("array_cat", right_type),
            (Some(_), None) => ("array_append", left_type),
            (None, _) => ("array_prepend", right_type),
        };
        let element = array.element().ok_or_else(missing)?;
        let fits = |other: DataType| match other.element() {
            Some(other) => {
                self.comparison_type(element, other).is_some_and(|common| common.family() == element.family())
            }
            None => types::can_cast_implicitly(other, element),
        };
        if !fits(left_type) || !fits(right_type) {
            return Err(missing());
        }
        self.call_by_name(name, vec![left, right])
    }

    /// `@>`, `<@` and `&&` of arrays.
    pub(super) fn bind_array_operator(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let (left_bound, right_bound) = (self.bind(left)?, self.bind(right)?);
        if let Some(compared) = self.json_operator(op, &left_bound, &right_bound)? {
            return Ok(compared);
        }
        let own = self.symbol_operator(&op.to_string(), &left_bound, &right_bound);
        if let Some(own) = own.map_err(|error| self.at(error, left.span()))? {
            return Ok(own);
        }
        let (left_type, right_type) = (left_bound.data_type, right_bound.data_type);
        let array = match (left_type, right_type) {
            (DataType::Array(_), DataType::Array(_)) if left_type.family() == right_type.family() => {
                left_type
            }
            (DataType::Array(_), DataType::Unknown) => left_type,
            (DataType::Unknown, DataType::Array(_)) => right_type,
            _ => {
                let form = format!("{} {op} {}", left_type.family(), right_type.family());
                return Err(self.at(no_operator(&form), left.span()));
            }
        };
        self.check_compared_elements(array)?;
        let cast = |operand: Expression| self.cast_to(operand, array.family());
        let (left, right) = (cast(left_bound)?, cast(right_bound)?);
        Ok(match op {
            BinaryOperator::AtArrow => {
                Self::array_call(&functions::CONTAINS, vec![left, right], DataType::Boolean)
            }
            BinaryOperator::ArrowAt => {
                Self::array_call(&functions::CONTAINS, vec![right, left], DataType::Boolean)
            }
            _ => Self::array_call(&functions::OVERLAPS, vec![left, right], DataType::Boolean),
        })
    }
}

/// A bound of a slice that is left out.
fn no_bound() -> Expression {
    Expression::constant(Value::Boolean(false), DataType::Boolean)
}

/// What leads to a part of an array: the subscripts of one element, or of a slice.
pub enum Subscripts {
    /// One for each dimension.
    Element(Vec<Expression>),
    /// Both bounds of each dimension, of which each may be missing.
    Slice(Vec<(Option<Expression>, Option<Expression>)>),
}

impl Subscripts {
    /// Subscripts as they are written. Among slices a number says where one ends that begins at 1.
    ///
    /// # Errors
    /// `54000` where there are more than dimensions may be.
    pub fn new(written: Vec<(Option<Expression>, Option<Expression>, bool)>) -> Result<Subscripts, SqlError> {
        check_dimensions(written.len())?;
        if written.iter().all(|(_, _, is_slice)| !is_slice) {
            return Ok(Subscripts::Element(written.into_iter().filter_map(|(index, ..)| index).collect()));
        }
        let one = || Expression::constant(Value::Integer(1), DataType::Integer);
        let bounds = written.into_iter().map(|(lower, upper, is_slice)| match is_slice {
            true => (lower, upper),
            false => (Some(one()), lower),
        });
        Ok(Subscripts::Slice(bounds.collect()))
    }
}

/// An element of an array.
pub fn element_of(array: Expression, subscripts: Vec<Expression>) -> Expression {
    match array.data_type.element() {
        Some(data_type) => {
            let operands = std::iter::once(array).chain(subscripts).collect();
            Expression { kind: Kind::Function(&functions::ELEMENT, operands), data_type }
        }
        None => array,
    }
}

/// The array with a value assigned to some of its elements: one of their type, or an array for a slice.
pub fn part_assigned(array: Expression, subscripts: Subscripts, value: Expression) -> Expression {
    let data_type = array.data_type;
    if !matches!(data_type, DataType::Array(_)) {
        return array;
    }
    let (function, operands) = match subscripts {
        Subscripts::Element(subscripts) => {
            (&functions::ASSIGN, std::iter::once(array).chain(subscripts).chain([value]).collect())
        }
        Subscripts::Slice(bounds) => {
            let bounds = bounds.into_iter().flat_map(|(lower, upper)| [lower, upper]);
            let bounds = bounds.map(|bound| bound.unwrap_or_else(no_bound));
            (&functions::ASSIGN_SLICE, [array, value].into_iter().chain(bounds).collect())
        }
    };
    Expression { kind: Kind::Function(function, operands), data_type }
}
