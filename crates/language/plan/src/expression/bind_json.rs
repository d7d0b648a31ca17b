//! Binding of what makes JSON of values of any types, of operators of `jsonb`, and of its subscripts.

use crate::expression::refusals::{no_function, no_operator, not_unique};
use crate::expression::row::RowOperation;
use crate::expression::{Binder, Expression};
use crate::row_functions::json_type_of;
use sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Spanned, Subscript, UnaryOperator};
use std::collections::BTreeMap;
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value};
use values::functions::{self, Function, RecordShape};

impl Binder<'_> {
    /// Whether the rules of execution know the types.
    pub(super) fn has_json(&self) -> bool {
        self.scope().version() >= ExecutionVersion::V7
    }

    /// A call of a function that takes values of any types; `None` where the name is another one.
    ///
    /// # Errors
    /// `42883` and `42804` where the arguments are none for it.
    pub(super) fn bind_json_call(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        if !self.has_json() {
            return Ok(None);
        }
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || no_function(name, &types);
        let bound = match (name, arguments) {
            ("to_json", [value]) => self.json_of(value, false)?,
            ("to_jsonb", [value]) => self.json_of(value, true)?,
            ("row_to_json" | "array_to_json", [value, rest @ ..]) if rest.len() <= 1 => {
                let is_row = value.data_type.is_composite();
                let fits = if name == "row_to_json" { is_row } else { value.data_type.element().is_some() };
                let lines = match rest {
                    [] => Expression::constant(Value::Boolean(false), DataType::Boolean),
                    [lines, ..] => self.argument(lines.clone(), DataType::Boolean).ok_or_else(missing)?,
                };
                if !fits {
                    return Err(missing());
                }
                let operands = vec![self.json_shape(value)?, self.known(value.clone())?, lines];
                json_call(&functions::TO_LINES, operands, DataType::Json)
            }
            ("json_build_object" | "jsonb_build_object", _) => {
                if arguments.len() % 2 == 1 {
                    let message = "argument list must have even number of elements";
                    let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
                    return Err(error.hint(format!(
                        "The arguments of {name}() must consist of alternating keys and values."
                    )));
                }
                self.json_of_all(name, arguments)?
            }
            ("json_build_array" | "jsonb_build_array", _) => self.json_of_all(name, arguments)?,
            ("json_populate_record" | "jsonb_populate_record", [base, json]) => {
                self.populated_record(name, base, json)?.ok_or_else(missing)?
            }
            _ => return Ok(None),
        };
        Ok(Some(bound))
    }

    fn json_of_all(&self, name: &str, arguments: &[Expression]) -> Result<Expression, SqlError> {
        let mut operands = Vec::with_capacity(2 * arguments.len());
        for argument in arguments {
            operands.push(self.json_shape(argument)?);
            operands.push(self.known(argument.clone())?);
        }
        let (function, data_type): (&'static Function, _) = match name {
            "json_build_object" => (&functions::JSON_OBJECT, DataType::Json),
            "jsonb_build_object" => (&functions::JSONB_OBJECT, DataType::Jsonb),
            "json_build_array" => (&functions::JSON_ARRAY, DataType::Json),
            _ => (&functions::JSONB_ARRAY, DataType::Jsonb),
        };
        Ok(json_call(function, operands, data_type))
    }

    /// A value of any type as `json` or `jsonb`.
    ///
    /// # Errors
    /// `42804` for a literal, whose type nothing tells.
    pub(super) fn json_of(&self, value: &Expression, is_binary: bool) -> Result<Expression, SqlError> {
        if value.data_type == DataType::Unknown {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let operands = vec![self.json_shape(value)?, self.known(value.clone())?];
        Ok(match is_binary {
            true => json_call(&functions::TO_JSONB, operands, DataType::Jsonb),
            false => json_call(&functions::TO_JSON, operands, DataType::Json),
        })
    }

    /// The names of the fields of all rows that may be in a value.
    ///
    /// # Errors
    /// `0A000` where those of records cannot be told.
    fn json_shape(&self, value: &Expression) -> Result<Expression, SqlError> {
        let mut open = Vec::new();
        let record = match self.scope().version() >= ExecutionVersion::V8 {
            true => self.record_shape(value, &mut open)?,
            false => self.record_shape_of_version_7(value, &mut open),
        };
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        while let Some(data_type) = open.pop() {
            let data_type = data_type.element().unwrap_or(data_type);
            let DataType::Composite(id) = data_type else { continue };
            let Some(known) = self.types().of(data_type).filter(|_| !names.contains_key(&id.0)) else {
                continue;
            };
            open.extend(known.fields.iter().map(|field| field.data_type));
            names.insert(id.0, known.fields.iter().map(|field| field.name.clone()).collect());
        }
        Ok(Expression::constant(functions::json_shape(names, record.as_ref())?, DataType::Jsonb))
    }

    /// Version 7 knew the names of the outermost record only, and not always these.
    fn record_shape_of_version_7(
        &self,
        value: &Expression,
        types: &mut Vec<DataType>,
    ) -> Option<RecordShape> {
        types.push(value.data_type);
        if value.data_type != DataType::Record {
            return None;
        }
        let fields = self.fields_of(value).unwrap_or_default();
        types.extend(fields.iter().map(|field| field.data_type));
        let names = fields.into_iter().map(|field| field.name).collect();
        Some(RecordShape { names, ..RecordShape::default() })
    }

    /// `json_populate_record(base, json)`; `None` where its types do not fit.
    fn populated_record(
        &self,
        name: &str,
        base: &Expression,
        json: &Expression,
    ) -> Result<Option<Expression>, SqlError> {
        let wanted = json_type_of(name);
        if self.types().of(base.data_type).is_none() {
            return Ok(None);
        }
        let Some(json) = self.argument(json.clone(), wanted) else { return Ok(None) };
        let operation = RowOperation::OfJson(name.into(), self.types().clone());
        Ok(Some(Expression::row(operation, vec![base.clone(), json], base.data_type)))
    }

    /// An operator that there is of JSON alone.
    ///
    /// # Errors
    /// `42883` where the operands are none for it, `42725` where nothing tells of which of both types they are.
    pub(super) fn bind_json_operator(
        &self,
        op: &BinaryOperator,
        left: &Expr,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        // PostgreSQL reads `->-1` as `-> -1`.
        let (symbol, right) = match op {
            BinaryOperator::Custom(symbol) => {
                (symbol.trim_end_matches('-').to_string(), self.bind_unary(UnaryOperator::Minus, right)?)
            }
            op => (op.to_string(), self.bind(right)?),
        };
        let operands = vec![self.bind(left)?, right];
        if symbol.ends_with('>') && operands.iter().all(|operand| operand.data_type == DataType::Unknown) {
            return Err(self.at(not_unique(&format!("unknown {symbol} unknown")), left.span()));
        }
        self.bind_operator(&symbol, operands, left.span())
    }

    /// An operator that has a meaning of its own where a side is a `jsonb`; `None` where there is none.
    ///
    /// # Errors
    /// A literal that is no JSON.
    pub(super) fn json_operator(
        &self,
        op: &BinaryOperator,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Expression>, SqlError> {
        let is_one = |operand: &Expression| operand.data_type == DataType::Jsonb;
        let fits = |operand: &Expression| is_one(operand) || operand.data_type == DataType::Unknown;
        let name = match op {
            BinaryOperator::Minus if is_one(left) => "jsonb_delete",
            _ if !(is_one(left) || is_one(right)) || !fits(left) || !fits(right) => return Ok(None),
            BinaryOperator::AtArrow => "jsonb_contains",
            BinaryOperator::ArrowAt => "jsonb_contained",
            BinaryOperator::StringConcat => "jsonb_concat",
            _ => return Ok(None),
        };
        match self.call_by_name(name, vec![left.clone(), right.clone()]) {
            Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => {
                let (from, to) = (left.data_type.family(), right.data_type.family());
                Err(no_operator(&format!("{from} {op} {to}")))
            }
            called => called.map(Some),
        }
    }

    /// `json['key'][0]`, with all subscripts that follow one another: so many of the chain.
    ///
    /// # Errors
    /// `42804` for a subscript that is neither a text nor an integer, `0A000` for a slice.
    pub(super) fn json_subscripts(
        &self,
        json: Expression,
        chain: &[AccessExpr],
    ) -> Result<(Expression, usize), SqlError> {
        let mut operands = vec![json];
        for access in chain {
            let AccessExpr::Subscript(subscript) = access else { break };
            operands.push(self.json_subscript(subscript)?);
        }
        let count = operands.len() - 1;
        Ok((json_call(&functions::JSON_SUBSCRIPT, operands, DataType::Jsonb), count))
    }

    /// A subscript of a `jsonb`, as a text.
    ///
    /// # Errors
    /// As [`Binder::json_subscripts`].
    fn json_subscript(&self, subscript: &Subscript) -> Result<Expression, SqlError> {
        let Subscript::Index { index } = subscript else {
            let message = "jsonb subscript does not support slices";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        let bound = self.bind(index)?;
        let found = bound.data_type;
        let text = DataType::Text(None);
        match found {
            DataType::SmallInt
            | DataType::Integer
            | DataType::Text(_)
            | DataType::Char(_)
            | DataType::Unknown => self.cast_to(bound, text),
            _ => {
                let message = format!("subscript type {} is not supported", found.family());
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .hint("jsonb subscript must be coercible to either integer or text.");
                Err(self.at(error, index.span()))
            }
        }
    }
}

/// Whether an operator is one of JSON alone.
pub(super) fn is_of_json(op: &BinaryOperator) -> bool {
    match op {
        BinaryOperator::Custom(symbol) => matches!(symbol.as_str(), "->-" | "->>-"),
        _ => true,
    }
}

/// The value of a column or variable with another one at the place that subscripts say.
pub fn json_assigned(
    json: Expression,
    path: Vec<Expression>,
    starts_with_index: bool,
    value: Expression,
) -> Expression {
    let is_index = Expression::constant(Value::Boolean(starts_with_index), DataType::Boolean);
    let operands = [is_index, json, value].into_iter().chain(path).collect();
    json_call(&functions::JSON_ASSIGN, operands, DataType::Jsonb)
}

fn json_call(function: &'static Function, operands: Vec<Expression>, data_type: DataType) -> Expression {
    Expression { kind: crate::expression::Kind::Function(function, operands), data_type }
}
