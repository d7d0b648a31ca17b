//! Binding of what SQL has a syntax of its own for among dates and times.

use crate::expression::{Binder, Expression, Kind, Source};
use sqlparser::ast::{self, DateTimeField, Expr, Spanned};
use types::{ArithmeticOperator, DataType, ExecutionVersion, SqlError, SqlState, Value};

/// What AT TIME ZONE calls is always the system's, and its errors say so.
fn of_the_system(mut error: SqlError) -> SqlError {
    if error.state == SqlState::UNDEFINED_FUNCTION {
        error.message = error.message.replacen("function ", "function pg_catalog.", 1);
    }
    error
}

impl Binder<'_> {
    /// `INTERVAL '1 day'` and `INTERVAL '1' DAY`.
    pub(super) fn bind_interval(&self, interval: &ast::Interval) -> Result<Expression, SqlError> {
        let span = interval.value.span();
        let refused = |what: String| {
            let error = SqlError::unsupported(what).hint("Write the units into the text: INTERVAL '1 day'.");
            Err(self.at(error, span))
        };
        if interval.last_field.is_some()
            || interval.leading_precision.is_some()
            || interval.fractional_seconds_precision.is_some()
        {
            return refused("an interval with several fields or a precision".to_string());
        }
        let text = match interval.value.as_ref() {
            Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) => text,
                _ => return refused("an interval of something else than a text".to_string()),
            },
            _ => return refused("an interval of something else than a text".to_string()),
        };
        let text = match &interval.leading_field {
            None => text.clone(),
            // A number alone counts these; anything else would be cut off to them.
            Some(
                field @ (DateTimeField::Year
                | DateTimeField::Month
                | DateTimeField::Day
                | DateTimeField::Hour
                | DateTimeField::Minute
                | DateTimeField::Second),
            ) if text.trim().parse::<i32>().is_ok() => format!("{} {field}", text.trim()),
            Some(field) => return refused(format!("the interval '{text}' {field}")),
        };
        let literal = Expression::constant(Value::text(text), DataType::Unknown);
        self.explicit_cast(literal, DataType::Interval).map_err(|error| self.at(error, span))
    }

    /// `x AT TIME ZONE zone`: the other one of both types of timestamps.
    pub(super) fn bind_at_time_zone(&self, timestamp: &Expr, zone: &Expr) -> Result<Expression, SqlError> {
        let bound = self.bind(zone)?;
        if self.scope().version() >= ExecutionVersion::V8 {
            let operand = self.bind(timestamp)?;
            return self.call("timezone", vec![bound, operand], timestamp.span()).map_err(of_the_system);
        }
        self.at_utc(bound, timestamp, zone)
    }

    /// What versions below 8 have of AT TIME ZONE.
    fn at_utc(&self, bound: Expression, timestamp: &Expr, zone: &Expr) -> Result<Expression, SqlError> {
        let utc = match bound.as_constant() {
            Some(Value::Text(zone)) => {
                matches!(zone.to_ascii_lowercase().as_str(), "utc" | "gmt" | "etc/utc" | "z" | "zulu")
            }
            _ => false,
        };
        if !utc {
            let error = SqlError::unsupported("AT TIME ZONE with another zone than 'UTC'")
                .hint("Add or subtract the zone's displacement as an interval.");
            return Err(self.at(error, zone.span()));
        }
        let operand = self.bind(timestamp)?;
        let (operand, result) = match operand.data_type {
            DataType::Timestamp => (operand, DataType::TimestampTz),
            DataType::TimestampTz => (operand, DataType::Timestamp),
            DataType::Date | DataType::Unknown => {
                (self.cast_to(operand, DataType::TimestampTz)?, DataType::Timestamp)
            }
            other => {
                let message =
                    format!("function pg_catalog.timezone(unknown, {}) does not exist", other.family());
                return Err(self.at(SqlError::new(SqlState::UNDEFINED_FUNCTION, message), timestamp.span()));
            }
        };
        Ok(Expression { kind: Kind::Cast(Box::new(operand)), data_type: result })
    }

    /// What a function of this name tells of the block's time; `None` where it tells nothing of it.
    pub(super) fn bind_clock(&self, name: &str) -> Option<Expression> {
        let data_type = match name {
            "now" | "transaction_timestamp" | "current_timestamp" => DataType::TimestampTz,
            // Every statement of a transaction has the time of its block.
            "clock_timestamp" | "statement_timestamp" if self.scope().version() >= ExecutionVersion::V7 => {
                DataType::TimestampTz
            }
            "current_date" => DataType::Date,
            "localtimestamp" => DataType::Timestamp,
            "localtime" => DataType::Time,
            "current_time" if self.scope().version() >= ExecutionVersion::V10 => DataType::TimeTz,
            _ => return None,
        };
        Some(self.now_as(data_type))
    }

    /// What `'now'`, `'today'`, `'tomorrow'` and `'yesterday'` are of a type: told from the block's time when the statement runs. `None`
    /// for other texts and types, and where DEFAULT would keep the moment of its definition in PostgreSQL.
    pub fn clock_literal(&self, text: &str, data_type: DataType) -> Option<Expression> {
        if self.scope().version() < ExecutionVersion::V9 || matches!(self.source, Source::Default) {
            return None;
        }
        let days = match (text.trim().to_ascii_lowercase().as_str(), data_type) {
            ("now", DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz) => {
                return Some(self.now_as(data_type));
            }
            (word, DataType::Date | DataType::Timestamp | DataType::TimestampTz) => match word {
                "today" => 0,
                "tomorrow" => 1,
                "yesterday" => -1,
                _ => return None,
            },
            _ => return None,
        };
        let days = Expression::constant(Value::Integer(days), DataType::Integer);
        let day = self.arithmetic(ArithmeticOperator::Add, self.now_as(DataType::Date), days).ok()?;
        match data_type {
            DataType::Date => Some(day),
            other => Some(Expression { kind: Kind::Cast(Box::new(day)), data_type: other }),
        }
    }

    /// The block's time as a date, a timestamp or a time.
    pub(super) fn now_as(&self, data_type: DataType) -> Expression {
        let now = Expression { kind: Kind::Now, data_type: DataType::TimestampTz };
        match data_type {
            DataType::TimestampTz => now,
            other => Expression { kind: Kind::Cast(Box::new(now)), data_type: other },
        }
    }

    /// `age(timestamp)`: since then, at the begin of the block's day.
    pub(super) fn bind_age(&self, since: Expression) -> Result<Expression, SqlError> {
        let data_type = match since.data_type {
            DataType::Timestamp => DataType::Timestamp,
            _ => DataType::TimestampTz,
        };
        let since = self.cast_to(since, data_type)?;
        let today = self.now_as(DataType::Date);
        let midnight = Expression { kind: Kind::Cast(Box::new(today)), data_type };
        self.call_by_name("age", vec![midnight, since])
    }

    /// The arguments of `make_interval`, in order or by name.
    pub(super) fn bind_interval_parts(
        &self,
        arguments: &[ast::FunctionArg],
    ) -> Result<Vec<Expression>, SqlError> {
        const NAMES: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
        let zero = |index: usize| match index {
            6 => Expression::constant(Value::Double(0.0), DataType::Double),
            _ => Expression::constant(Value::Integer(0), DataType::Integer),
        };
        let mut parts: Vec<Expression> = (0..NAMES.len()).map(zero).collect();
        for (position, argument) in arguments.iter().enumerate() {
            let (index, argument) = match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => (Some(position), expr),
                ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(expr), .. } => {
                    (NAMES.iter().position(|known| name.value.eq_ignore_ascii_case(known)), expr)
                }
                _ => return Err(SqlError::unsupported("this form of make_interval()")),
            };
            let Some(part) = index.and_then(|index| parts.get_mut(index)) else {
                let message = "function make_interval does not exist for these arguments";
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            };
            *part = self.bind(argument)?;
        }
        Ok(parts)
    }
}
