//! Binding of literals and casts.

use crate::expression::build::{number, variable_expression};
use crate::expression::names::bind_type_or_domain;
use crate::expression::refusals::unsupported_expression;
use crate::expression::written::is_empty_array;
use crate::expression::{Binder, Expression};
use sqlparser::ast::{self, Expr, Spanned, ValueWithSpan};
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value};

impl Binder<'_> {
    pub(super) fn bind_literal(&self, value: &ValueWithSpan) -> Result<Expression, SqlError> {
        let unknown = |text: &str| Expression::constant(Value::text(text), DataType::Unknown);
        Ok(match &value.value {
            ast::Value::Number(text, false) => {
                number(text, false).map_err(|error| self.at(error, value.span))?
            }
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
                check_literal(text)?;
                unknown(text)
            }
            ast::Value::DollarQuotedString(text) => {
                check_literal(&text.value)?;
                unknown(&text.value)
            }
            // As PostgreSQL reads them: the text of a value of type bit, told apart by its first letter.
            ast::Value::SingleQuotedByteStringLiteral(text) if self.has_bits() => {
                bits(&format!("b{text}")).map_err(|error| self.at(error, value.span))?
            }
            ast::Value::HexStringLiteral(text) if self.has_bits() => {
                bits(&format!("x{text}")).map_err(|error| self.at(error, value.span))?
            }
            ast::Value::Boolean(truth) => Expression::constant(Value::Boolean(*truth), DataType::Boolean),
            ast::Value::Null => Expression::constant(Value::Null, DataType::Unknown),
            ast::Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok());
                let Some(number) = number else {
                    let error =
                        SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{name}\""));
                    return Err(self.at(error, value.span));
                };
                let parameter = self.scope.parameter(number);
                variable_expression(parameter.map_err(|error| self.at(error, value.span))?)
            }
            other => {
                let what = format_args!("the literal {other}");
                return Err(self.at(SqlError::unsupported(what), value.span));
            }
        })
    }

    /// A literal that is to be of type bytea and is longer than a text: with two digits for each byte it may have twice as many. `None`
    /// of anything else.
    pub(super) fn long_bytes(&self, expr: &Expr, target: DataType) -> Result<Option<Expression>, SqlError> {
        let Expr::Value(value) = expr else { return Ok(None) };
        let (ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text)) = &value.value
        else {
            return Ok(None);
        };
        let is_long = text.len() > types::text_bytes_max()
            && self.scope.version() >= ExecutionVersion::V14
            && self.types().base_of(target) == DataType::Bytea;
        if !is_long {
            return Ok(None);
        }
        types::check_bytea_text(text)?;
        let bytes = types::parse_value(text, DataType::Bytea)?;
        Ok(Some(Expression::constant(bytes, DataType::Bytea)))
    }

    /// Whether the rules of execution know strings of bits.
    fn has_bits(&self) -> bool {
        self.scope.version() >= ExecutionVersion::V10
    }

    pub(super) fn bind_cast(&self, expr: &Expr) -> Result<Expression, SqlError> {
        match expr {
            Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                let target = bind_type_or_domain(self.types(), data_type)?;
                if is_empty_array(expr)
                    && let Some(array) = self.bind_empty_array(target)
                {
                    return Ok(array);
                }
                let operand = self.bind_towards(expr, target)?;
                self.explicit_cast(operand, target).map_err(|error| self.at(error, expr.span()))
            }
            Expr::TypedString(typed) => {
                let target = match &typed.data_type {
                    // In front of a literal it is as long as that.
                    ast::DataType::Bit(None) if self.types().rules() >= ExecutionVersion::V16 => {
                        DataType::Bit(None)
                    }
                    ast::DataType::Char(None) | ast::DataType::Character(None)
                        if self.types().rules() >= ExecutionVersion::V16 =>
                    {
                        DataType::Char(None)
                    }
                    data_type => bind_type_or_domain(self.types(), data_type)?,
                };
                let operand = match self.long_bytes(&Expr::Value(typed.value.clone()), target)? {
                    Some(bytes) => bytes,
                    None => self.bind_literal(&typed.value)?,
                };
                self.explicit_cast(operand, target).map_err(|error| self.at(error, typed.value.span))
            }
            other => Err(unsupported_expression(other)),
        }
    }
}

/// A constant of type `bit` without a length.
fn bits(text: &str) -> Result<Expression, SqlError> {
    let data_type = DataType::Bit(None);
    Ok(Expression::constant(types::parse_value(text, data_type)?, data_type))
}

fn check_literal(text: &str) -> Result<(), SqlError> {
    if text.len() > types::text_bytes_max() {
        let message = format!(
            "the text has {} bytes, the limit is {} (TEXT_BYTES_MAX)",
            text.len(),
            types::text_bytes_max()
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if text.contains('\0') {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(SqlState(*b"22021"), message));
    }
    Ok(())
}
