//! Constants of a script: literals, parameters, casts of both, and the time of the block.

use crate::data_type::{bind_type, kind_of, own_digits};
use crate::fit::{cast, check_value};
use crate::refusal::{COMPUTE_BEFORE, refused};
use crate::written::Written;
use sqlparser::ast::{
    self, CastKind, DataType as SqlType, Expr, Function, FunctionArguments, Spanned, UnaryOperator,
    ValueWithSpan,
};
use syntax::names::{name_of, position_in};
use types::{DataType, Numeric, SqlError, SqlState, Value, negate};

/// What constants of a text are read with.
#[derive(Clone, Copy)]
pub(crate) struct Constants<'a> {
    /// The text, for positions of errors.
    pub(crate) sql: &'a str,
    /// `$1`, `$2`, …
    pub(crate) parameters: &'a [Value],
    /// `now()`; `None` where there is no such time.
    pub(crate) now_ms: Option<u64>,
}

impl Constants<'_> {
    /// The error at the place of its cause, unless it has a place already.
    pub(crate) fn at(&self, error: SqlError, cause: &impl Spanned) -> SqlError {
        if error.position.is_some() {
            return error;
        }
        match position_in(self.sql, cause.span().start) {
            Some(position) => error.at(position),
            None => error,
        }
    }

    /// The constant that an expression is; `None` where it is none.
    ///
    /// # Errors
    /// It is one that cannot be.
    pub(crate) fn read(&self, expr: &Expr) -> Result<Option<Written>, SqlError> {
        let read = match expr {
            Expr::Nested(inner) => return self.read(inner),
            Expr::Value(literal) => self.literal(literal).map(Some),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.signed(expr, false),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => self.signed(expr, true),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => self.cast(expr, data_type),
            Expr::TypedString(typed) if !typed.uses_odbc_syntax => {
                let target = bind_type(&typed.data_type);
                target.and_then(|target| cast(self.literal(&typed.value)?, target)).map(Some)
            }
            Expr::Function(function) if is_now(function) => self.now().map(Some),
            _ => Ok(None),
        };
        read.map_err(|error| self.at(error, expr))
    }

    /// The value of a parameter, or one that COPY brings.
    ///
    /// # Errors
    /// `0A000` for a type that is not the same everywhere.
    pub(crate) fn given(value: &Value) -> Result<Written, SqlError> {
        let data_type = match value {
            // Its place says what it is: drivers give the values of many types as texts.
            Value::Null | Value::Text(_) => DataType::Unknown,
            Value::Numeric(number) => own_digits(number)?,
            other if kind_of(other.data_type()).is_some() => other.data_type(),
            other => {
                let what = format!("a value of type {}", other.data_type());
                return Err(refused(what).hint("Give it as a value of the column's type, or as text."));
            }
        };
        check_value(value)?;
        Ok(Written { value: value.clone(), data_type })
    }

    fn cast(&self, expr: &Expr, data_type: &SqlType) -> Result<Option<Written>, SqlError> {
        let Some(inner) = self.read(expr)? else { return Ok(None) };
        cast(inner, bind_type(data_type)?).map(Some)
    }

    fn literal(&self, literal: &ValueWithSpan) -> Result<Written, SqlError> {
        let unknown = |text: &str| {
            let value = Value::text(text);
            check_value(&value)?;
            Ok(Written { value, data_type: DataType::Unknown })
        };
        match &literal.value {
            ast::Value::Number(text, false) => number(text, false),
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => unknown(text),
            ast::Value::DollarQuotedString(text) => unknown(&text.value),
            ast::Value::Boolean(truth) => {
                Ok(Written { value: Value::Boolean(*truth), data_type: DataType::Boolean })
            }
            ast::Value::Null => Ok(Written { value: Value::Null, data_type: DataType::Unknown }),
            ast::Value::Placeholder(name) => self.parameter(name),
            other => Err(refused(format_args!("the literal {other}"))
                .hint("Write numbers in digits and everything else in single quotes.")),
        }
    }

    fn parameter(&self, name: &str) -> Result<Written, SqlError> {
        let Some(number) = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok()) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{name}\"")));
        };
        let value = number.checked_sub(1).and_then(|index| self.parameters.get(index));
        let value = value.ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}"))
        })?;
        Constants::given(value)
    }

    /// A number with a sign.
    fn signed(&self, expr: &Expr, negative: bool) -> Result<Option<Written>, SqlError> {
        let inner = match expr {
            Expr::Nested(inner) => inner,
            other => other,
        };
        if let Expr::Value(ValueWithSpan { value: ast::Value::Number(text, false), .. }) = inner {
            return number(text, negative).map(Some);
        }
        if !matches!(inner, Expr::Cast { .. } | Expr::TypedString(_) | Expr::UnaryOp { .. }) {
            return Ok(None);
        }
        let Some(read) = self.read(inner)? else { return Ok(None) };
        match (&read.value, negative) {
            (Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Numeric(_), true) => {
                Ok(Some(Written { value: negate(&read.value)?, ..read }))
            }
            (Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Numeric(_), false) => {
                Ok(Some(read))
            }
            _ => Ok(None),
        }
    }

    /// The time of the block.
    fn now(&self) -> Result<Written, SqlError> {
        const MILLISECONDS_FROM_1970_TO_2000: i64 = 946_684_800_000;
        let Some(now_ms) = self.now_ms else {
            return Err(
                refused("the time in a CHECK").hint("Compare columns with one another, or with constants.")
            );
        };
        let milliseconds = i64::try_from(now_ms).unwrap_or(i64::MAX / 2000);
        let microseconds = (milliseconds - MILLISECONDS_FROM_1970_TO_2000).saturating_mul(1000);
        let value = Value::TimestampTz(microseconds);
        check_value(&value)?;
        Ok(Written { value, data_type: DataType::TimestampTz })
    }
}

/// A literal of digits: the narrowest of integer, bigint and numeric.
fn number(text: &str, negative: bool) -> Result<Written, SqlError> {
    let signed = if negative { format!("-{text}") } else { text.to_string() };
    if let Ok(value) = signed.parse::<i32>() {
        return Ok(Written { value: Value::Integer(value), data_type: DataType::Integer });
    }
    if let Ok(value) = signed.parse::<i64>() {
        return Ok(Written { value: Value::BigInt(value), data_type: DataType::BigInt });
    }
    let value = Numeric::parse(text)?;
    let data_type = own_digits(&value)?;
    let value = if negative { negate(&Value::Numeric(value))? } else { Value::Numeric(value) };
    Ok(Written { value, data_type })
}

/// `now()` or `CURRENT_TIMESTAMP`
fn is_now(function: &Function) -> bool {
    let [name] = function.name.0.as_slice() else { return false };
    let Some(ident) = name.as_ident() else { return false };
    let plain = function.filter.is_none() && function.over.is_none() && function.within_group.is_empty();
    let no_arguments = match &function.args {
        FunctionArguments::List(list) => list.args.is_empty() && list.clauses.is_empty(),
        _ => false,
    };
    let name = name_of(ident).unwrap_or_default();
    let none = matches!(function.args, FunctionArguments::None);
    plain
        && ((name == "now" && no_arguments)
            || (name == "current_timestamp" && none && ident.quote_style.is_none()))
}

/// What a function is refused with.
pub(crate) fn refused_function(function: &Function) -> SqlError {
    let hint =
        format!("Only now(), CURRENT_TIMESTAMP and COALESCE mean the same everywhere. {COMPUTE_BEFORE}");
    refused(format_args!("the function {}", function.name.to_string().to_ascii_lowercase())).hint(hint)
}
