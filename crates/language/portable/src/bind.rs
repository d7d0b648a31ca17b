//! From syntax to expressions with types. What a kind of expression asks of its parts is in the file of that kind.

use crate::constant::{Constants, refused_function};
use crate::data_type::{bind_type, integer_rank};
use crate::expression::{Expression, Term};
use crate::refusal::{COMPUTE_BEFORE, refused, shortened, too_deep};
use crate::written::Written;
use sqlparser::ast::{BinaryOperator, CastKind, DataType as SqlType, Expr, Ident, UnaryOperator};
use std::cell::Cell;
use syntax::names::name_of;
use types::{DataType, SqlError, SqlState, Table, limits, schema_of};

/// Binds expressions about one table.
pub(crate) struct Binder<'a> {
    pub(crate) table: &'a Table,
    /// The name that its columns can have in front.
    pub(crate) known_as: &'a str,
    pub(crate) constants: Constants<'a>,
    depth: Cell<usize>,
}

/// A constant, which its place gives a type, or anything else.
pub(crate) enum Operand {
    Written(Written),
    Bound(Expression),
}

impl Operand {
    /// Its type; [`DataType::Unknown`] of a text without one and of NULL.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Operand::Written(written) => written.data_type,
            Operand::Bound(bound) => bound.data_type,
        }
    }
}

impl<'a> Binder<'a> {
    pub(crate) fn new(table: &'a Table, known_as: &'a str, constants: Constants<'a>) -> Binder<'a> {
        Binder { table, known_as, constants, depth: Cell::new(0) }
    }

    /// `towards`: the type of the column that the value is for, which constants without a type get.
    pub(crate) fn operand(&self, expr: &Expr, towards: Option<DataType>) -> Result<Operand, SqlError> {
        Ok(match self.constants.read(expr)? {
            Some(written) => Operand::Written(written),
            None => Operand::Bound(self.bind(expr, towards)?),
        })
    }

    /// Anything but a constant.
    pub(crate) fn bind(&self, expr: &Expr, towards: Option<DataType>) -> Result<Expression, SqlError> {
        let depth = self.depth.get() + 1;
        if depth > limits::NESTING_MAX {
            return Err(self.constants.at(too_deep(), expr));
        }
        self.depth.set(depth);
        let bound = self.bind_inside(expr, towards).map_err(|error| self.constants.at(error, expr));
        self.depth.set(depth - 1);
        bound
    }

    fn bind_inside(&self, expr: &Expr, towards: Option<DataType>) -> Result<Expression, SqlError> {
        match expr {
            Expr::Nested(inner) => self.bind(inner, towards),
            Expr::Identifier(name) => self.column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(names) => self.column(names),
            Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.negation(expr),
            Expr::UnaryOp { op: UnaryOperator::Minus, .. } => {
                Err(refused("a minus in front of anything but a number").hint("Write 0 - x."))
            }
            Expr::IsNull(of) => self.null_test(of, false),
            Expr::IsNotNull(of) => self.null_test(of, true),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            Expr::Case { operand: None, conditions, else_result, .. } => {
                self.case(conditions, else_result.as_deref(), towards)
            }
            Expr::Case { .. } => {
                Err(refused("CASE with a value behind it").hint("Write CASE WHEN x = 1 THEN … END."))
            }
            Expr::Function(function) => match self.coalesce(function, towards)? {
                Some(bound) => Ok(bound),
                None => Err(refused_function(function)),
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => self.cast(expr, data_type),
            other => Err(unsupported(other)),
        }
    }

    fn binary(
        &self,
        whole: &Expr,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        match operator {
            BinaryOperator::And | BinaryOperator::Or => self.junction(whole, operator),
            BinaryOperator::StringConcat => self.concatenation(whole),
            BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply => {
                self.arithmetic(left, operator, right)
            }
            BinaryOperator::Divide | BinaryOperator::Modulo | BinaryOperator::PGExp => {
                let hint = format!("The databases round differently. {COMPUTE_BEFORE}");
                Err(refused(format_args!("the operator {operator}")).hint(hint))
            }
            _ => self.comparison(left, operator, right),
        }
    }

    /// A column, with the names of its table and schema in front or without.
    fn column(&self, names: &[Ident]) -> Result<Expression, SqlError> {
        let names = names.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
        let column = match names.as_slice() {
            [column] => column,
            [table, column] if table == self.known_as => column,
            [schema, table, column]
                if table == self.table.object_name()
                    && table == self.known_as
                    && schema == schema_of(&self.table.name) =>
            {
                column
            }
            _ => {
                let table = names[..names.len() - 1].join(".");
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        };
        let Some(ordinal) = self.table.ordinal(column) else {
            let message = format!("column \"{}\" does not exist", names.join("."));
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        Ok(Expression { term: Term::Column(ordinal), data_type: self.table.columns[ordinal].data_type })
    }

    /// A column of integers as bigint, and a cast to the type that something has.
    fn cast(&self, expr: &Expr, data_type: &SqlType) -> Result<Expression, SqlError> {
        let target = bind_type(data_type)?;
        let inner = self.bind(expr, None)?;
        let is_column = matches!(inner.term, Term::Column(_));
        let widens = target == DataType::BigInt && integer_rank(inner.data_type).is_some();
        match inner.data_type == target || widens {
            true if is_column => Ok(Expression { data_type: target, ..inner }),
            _ => Err(refused(format_args!("a cast to {target} of anything but a constant")).hint(
                "Only a column of integers can be cast, to bigint: x::bigint. Cast it inside of the expression.",
            )),
        }
    }
}

/// Why an expression is refused.
fn unsupported(expr: &Expr) -> SqlError {
    let (what, hint) = match expr {
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
            ("a subquery", "Read the value before, and give it as a parameter.")
        }
        Expr::AnyOp { .. } | Expr::AllOp { .. } => ("ANY or ALL", "Use a list: x IN ($1, $2)."),
        Expr::Like { .. } => ("LIKE", "Compare with =, <> or <."),
        Expr::ILike { .. } => ("ILIKE", "Compare with =, <> or <."),
        Expr::SimilarTo { .. } | Expr::RLike { .. } => ("a pattern", "Compare with =, <> or <."),
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => {
            ("IS DISTINCT FROM", "Use = or <>, and IS NULL beside it.")
        }
        Expr::IsTrue(_) | Expr::IsNotTrue(_) | Expr::IsFalse(_) | Expr::IsNotFalse(_) => {
            ("IS TRUE or IS FALSE", "Use the condition itself, NOT, and IS NULL beside it.")
        }
        Expr::IsUnknown(_) | Expr::IsNotUnknown(_) => ("IS UNKNOWN", "Use IS NULL."),
        Expr::Collate { .. } => ("COLLATE", "Texts compare by their bytes here, as with COLLATE \"C\"."),
        other => {
            let what = format!("the expression {}", shortened(&other.to_string()));
            return refused(what).hint(COMPUTE_BEFORE);
        }
    };
    refused(what).hint(hint)
}
