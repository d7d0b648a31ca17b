//! Scripts and CHECK constraints in each database's own SQL.
//!
//! What is written means the same in both, because `portable` lets nothing else through: integers that PostgreSQL would compute
//! in 32 bits are cast where the tree says so, texts are compared by their bytes, and times are constants.

use crate::DatabaseError;
use crate::dialect::{Dialect, ForeignType, text_of};
use crate::error::ErrorKind;
use crate::shared_table::SharedTable;
use portable::{Action, Comparison, Expression, Operator, Statement, Term};
use types::{Column, DataType, Value};

/// A statement of a script.
pub(crate) fn statement(table: &SharedTable, statement: &Statement) -> Result<String, DatabaseError> {
    let writer = Writer { table, dialect: table.dialect };
    let mut sql = String::with_capacity(128);
    match &statement.action {
        Action::Insert(rows) => {
            let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
            sql.push_str(&format!("INSERT INTO {} ({}) VALUES ", table.name, names.join(",")));
            for (number, row) in rows.iter().enumerate() {
                sql.push_str(if number == 0 { "(" } else { ",(" });
                for (ordinal, (value, (_, kind))) in row.iter().zip(&table.columns).enumerate() {
                    if ordinal > 0 {
                        sql.push(',');
                    }
                    writer.value(&mut sql, kind, value);
                }
                sql.push(')');
            }
        }
        Action::Update { set, condition } => {
            sql.push_str(&format!("UPDATE {} SET ", table.name));
            for (number, (ordinal, value)) in set.iter().enumerate() {
                sql.push_str(if number == 0 { "" } else { ", " });
                sql.push_str(&format!("{} = ", table.columns[*ordinal].0));
                writer.expression(&mut sql, value)?;
            }
            writer.condition(&mut sql, condition.as_ref())?;
        }
        Action::Delete { condition } => {
            sql.push_str(&format!("DELETE FROM {}", table.name));
            writer.condition(&mut sql, condition.as_ref())?;
        }
    }
    Ok(sql)
}

/// The CHECK constraints of a table, as its definition has them.
pub(crate) fn checks(table: &SharedTable) -> Result<Vec<String>, DatabaseError> {
    let unfit = |error: types::SqlError| DatabaseError::new(ErrorKind::Unfit, error.message);
    let writer = Writer { table, dialect: table.dialect };
    let check = |(name, condition): (String, Expression)| {
        let mut sql = format!("CONSTRAINT {} CHECK (", table.dialect.quoted(&name));
        writer.expression(&mut sql, &condition)?;
        Ok(sql + ")")
    };
    portable::table_checks(&table.table).map_err(unfit)?.into_iter().map(check).collect()
}

struct Writer<'a> {
    table: &'a SharedTable,
    dialect: Dialect,
}

impl Writer<'_> {
    fn condition(&self, sql: &mut String, condition: Option<&Expression>) -> Result<(), DatabaseError> {
        let Some(condition) = condition else { return Ok(()) };
        sql.push_str(" WHERE ");
        self.expression(sql, condition)
    }

    fn value(&self, sql: &mut String, kind: &ForeignType, value: &Value) {
        match (text_of(self.dialect, kind, value), self.dialect, kind) {
            (None, _, _) => sql.push_str("NULL"),
            // Cast to a length a text would lose what is behind it.
            (Some(text), Dialect::Postgres, ForeignType::Text(_)) => {
                self.dialect.push_literal(sql, &ForeignType::Text(None), &text);
            }
            (Some(text), _, _) => self.dialect.push_literal(sql, kind, &text),
        }
    }

    fn expression(&self, sql: &mut String, expression: &Expression) -> Result<(), DatabaseError> {
        match &expression.term {
            Term::Column(ordinal) => {
                sql.push_str(&self.table.columns[*ordinal].0);
                let widened = expression.data_type == DataType::BigInt
                    && self.table.table.columns[*ordinal].data_type != DataType::BigInt;
                if widened && self.dialect == Dialect::Postgres {
                    sql.push_str("::bigint");
                }
            }
            Term::Constant(value) => {
                let kind = self.kind(expression.data_type)?;
                self.value(sql, &kind, value);
            }
            Term::Arithmetic(operator, left, right) => {
                let operator = match operator {
                    Operator::Add => " + ",
                    Operator::Subtract => " - ",
                    Operator::Multiply => " * ",
                };
                self.infix(sql, operator, [&**left, &**right])?;
            }
            Term::Concatenated(pieces) => match self.dialect {
                Dialect::Postgres => self.infix(sql, " || ", pieces)?,
                Dialect::MariaDb => self.call(sql, "CONCAT", pieces)?,
            },
            Term::Compared(comparison, left, right) => {
                let operator = match comparison {
                    Comparison::Equal => " = ",
                    Comparison::NotEqual => " <> ",
                    Comparison::Less => " < ",
                    Comparison::LessOrEqual => " <= ",
                    Comparison::Greater => " > ",
                    Comparison::GreaterOrEqual => " >= ",
                };
                self.infix(sql, operator, [&**left, &**right])?;
            }
            Term::IsNull { of, negated } => {
                sql.push('(');
                self.expression(sql, of)?;
                sql.push_str(if *negated { " IS NOT NULL)" } else { " IS NULL)" });
            }
            Term::In(value, list) => {
                sql.push('(');
                self.expression(sql, value)?;
                self.call(sql, " IN ", list)?;
                sql.push(')');
            }
            Term::And(all) => self.infix(sql, " AND ", all)?,
            Term::Or(all) => self.infix(sql, " OR ", all)?,
            Term::Not(of) => {
                sql.push_str("(NOT ");
                self.expression(sql, of)?;
                sql.push(')');
            }
            Term::Case { branches, otherwise } => {
                sql.push_str("(CASE");
                for (condition, value) in branches {
                    sql.push_str(" WHEN ");
                    self.expression(sql, condition)?;
                    sql.push_str(" THEN ");
                    self.expression(sql, value)?;
                }
                if let Some(otherwise) = otherwise {
                    sql.push_str(" ELSE ");
                    self.expression(sql, otherwise)?;
                }
                sql.push_str(" END)");
            }
            Term::Coalesce(values) => self.call(sql, "COALESCE", values)?,
        }
        Ok(())
    }

    fn infix<'e>(
        &self,
        sql: &mut String,
        operator: &str,
        operands: impl IntoIterator<Item = &'e Expression>,
    ) -> Result<(), DatabaseError> {
        sql.push('(');
        for (number, operand) in operands.into_iter().enumerate() {
            sql.push_str(if number == 0 { "" } else { operator });
            self.expression(sql, operand)?;
        }
        sql.push(')');
        Ok(())
    }

    fn call(&self, sql: &mut String, function: &str, arguments: &[Expression]) -> Result<(), DatabaseError> {
        sql.push_str(function);
        self.infix(sql, ", ", arguments)
    }

    /// The type of a constant.
    fn kind(&self, data_type: DataType) -> Result<ForeignType, DatabaseError> {
        let column = Column { name: "constant".to_string(), data_type, not_null: false, default: None };
        self.dialect
            .column_type(&column, false)
            .map_err(|reason| DatabaseError::new(ErrorKind::Unfit, reason))
    }
}
