//! Scripts and CHECK constraints in each database's own SQL.
//!
//! What is written means the same in both, because `portable` lets nothing else through: integers that PostgreSQL would compute
//! in 32 bits are cast where the tree says so, texts are compared by their bytes, and times are constants.

use crate::DatabaseError;
use crate::dialect::{Dialect, ForeignType, text_of};
use crate::error::ErrorKind;
use crate::shared_table::SharedTable;
use portable::{Action, Comparison, Expression, Operator, Statement, Term};
use std::cell::RefCell;
use types::{Column, DataType, Row, Value};

/// A statement of a script.
pub(crate) fn statement(table: &SharedTable, statement: &Statement) -> Result<String, DatabaseError> {
    let writer = Writer { table, dialect: table.dialect, constants: None };
    let mut sql = String::with_capacity(128);
    match &statement.action {
        Action::Insert(rows) => {
            sql.push_str(&insert_head(table));
            writer.rows(&mut sql, rows);
        }
        Action::Update { set, condition } => {
            sql.push_str(&format!("UPDATE {} SET ", table.name));
            writer.set(&mut sql, set)?;
            writer.condition(&mut sql, condition.as_ref())?;
        }
        Action::Delete { condition } => {
            sql.push_str(&format!("DELETE FROM {}", table.name));
            writer.condition(&mut sql, condition.as_ref())?;
        }
    }
    Ok(sql)
}

fn insert_head(table: &SharedTable) -> String {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    format!("INSERT INTO {} ({}) VALUES ", table.name, names.join(","))
}

/// What statements have in common that can run as one, each on another row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// They add rows.
    Insert {
        /// INSERT up to its rows.
        head: String,
    },
    /// They change rows by the same expressions of their constants.
    Update {
        /// The table's name.
        table: String,
        /// The assignments; constants are `entente_p0`, `entente_p1`, …
        set: String,
        /// The condition, with WHERE.
        condition: String,
        /// How many constants there are.
        constants: usize,
        /// Their types.
        types: String,
    },
}

/// The shape of a statement, and what is its own: the constants, or its rows. Nothing where it must run by itself.
pub(crate) fn shape(
    table: &SharedTable,
    statement: &Statement,
) -> Result<Option<(Shape, String)>, DatabaseError> {
    let dialect = table.dialect;
    let mut own = String::new();
    match &statement.action {
        Action::Insert(rows) => {
            let writer = Writer { table, dialect, constants: None };
            writer.rows(&mut own, rows);
            Ok(Some((Shape::Insert { head: insert_head(table) }, own)))
        }
        Action::Update { set: values, condition: Some(condition) } => {
            let writer = Writer { table, dialect, constants: Some(RefCell::default()) };
            let (mut set, mut text) = (String::new(), String::new());
            writer.set(&mut set, values)?;
            writer.condition(&mut text, Some(condition))?;
            let constants = writer.constants.map(RefCell::into_inner).unwrap_or_default();
            let mut types = String::new();
            for (kind, literal) in &constants {
                let is_integer =
                    matches!(kind, ForeignType::SmallInt | ForeignType::Integer | ForeignType::BigInt);
                if dialect == Dialect::MariaDb && (!is_integer || literal == "NULL") {
                    // The columns of a table of constants have collations and digits of their own there.
                    return Ok(None);
                }
                types.push_str(&dialect.type_name(kind));
                types.push(',');
                own.push(',');
                own.push_str(literal);
                if literal == "NULL" {
                    own.push_str(&format!("::{}", dialect.type_name(kind)));
                }
            }
            let (table, constants) = (table.name.clone(), constants.len());
            Ok(Some((Shape::Update { table, set, condition: text, constants, types }, own)))
        }
        _ => Ok(None),
    }
}

/// Many statements of one shape as one. `own`: a number and what [`shape`] has given, of each.
pub(crate) fn together(dialect: Dialect, shape: &Shape, own: &[(usize, String)]) -> String {
    match shape {
        Shape::Insert { head } => {
            let rows: Vec<&str> = own.iter().map(|(_, rows)| rows.as_str()).collect();
            format!("{head}{}", rows.join(","))
        }
        Shape::Update { table, set, condition, constants, .. } => {
            let rows: Vec<String> = own.iter().map(|(number, own)| format!("({number}{own})")).collect();
            let (rows, names) = (rows.join(","), (0..*constants).map(|number| format!("entente_p{number}")));
            match dialect {
                Dialect::Postgres => {
                    let names: String = names.map(|name| format!(", {name}")).collect();
                    format!(
                        "UPDATE {table} SET {set} FROM (VALUES {rows}) entente_v(entente_n{names}){condition} RETURNING entente_n"
                    )
                }
                Dialect::MariaDb => {
                    let names: String = names.map(|name| format!(", 0 AS {name}")).collect();
                    format!(
                        "UPDATE (SELECT 0 AS entente_n{names} FROM DUAL WHERE FALSE UNION ALL VALUES {rows}) entente_v \
                         STRAIGHT_JOIN {table} SET {set}{condition}"
                    )
                }
            }
        }
    }
}

/// The CHECK constraints of a table, as its definition has them.
pub(crate) fn checks(table: &SharedTable) -> Result<Vec<String>, DatabaseError> {
    let unfit = |error: types::SqlError| DatabaseError::new(ErrorKind::Unfit, error.message);
    let writer = Writer { table, dialect: table.dialect, constants: None };
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
    /// Constants are put here, with their types, and named in the text.
    constants: Option<RefCell<Vec<(ForeignType, String)>>>,
}

impl Writer<'_> {
    fn rows(&self, sql: &mut String, rows: &[Row]) {
        for (number, row) in rows.iter().enumerate() {
            sql.push_str(if number == 0 { "(" } else { ",(" });
            for (ordinal, (value, (_, kind))) in row.iter().zip(&self.table.columns).enumerate() {
                if ordinal > 0 {
                    sql.push(',');
                }
                self.value(sql, kind, value);
            }
            sql.push(')');
        }
    }

    fn set(&self, sql: &mut String, set: &[(usize, Expression)]) -> Result<(), DatabaseError> {
        for (number, (ordinal, value)) in set.iter().enumerate() {
            sql.push_str(if number == 0 { "" } else { ", " });
            sql.push_str(&format!("{} = ", self.table.columns[*ordinal].0));
            self.expression(sql, value)?;
        }
        Ok(())
    }

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
            Term::Constant(value) => self.constant(sql, self.kind(expression.data_type)?, value),
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

    fn constant(&self, sql: &mut String, kind: ForeignType, value: &Value) {
        let Some(constants) = &self.constants else { return self.value(sql, &kind, value) };
        let mut constants = constants.borrow_mut();
        sql.push_str(&format!("entente_p{}", constants.len()));
        let mut literal = String::new();
        self.value(&mut literal, &kind, value);
        constants.push((kind, literal));
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
        let column = Column {
            name: "constant".to_string(),
            data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        self.dialect
            .column_type(&column, false)
            .map_err(|reason| DatabaseError::new(ErrorKind::Unfit, reason))
    }
}
