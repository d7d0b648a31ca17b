//! Expressions that every database evaluates alike.

use types::{DataType, Value};
use values::Comparison;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub term: Term,
    /// The type of its value.
    pub data_type: DataType,
}

impl Expression {
    /// A value of a type, or NULL.
    pub(crate) fn constant(value: Value, data_type: DataType) -> Expression {
        Expression { term: Term::Constant(value), data_type }
    }

    /// What is true, false or NULL.
    pub(crate) fn boolean(term: Term) -> Expression {
        Expression { term, data_type: DataType::Boolean }
    }

    /// What it is directly made of.
    pub(crate) fn parts(&self) -> Vec<&Expression> {
        match &self.term {
            Term::Column(_) | Term::Constant(_) => Vec::new(),
            Term::Arithmetic(_, left, right) | Term::Compared(_, left, right) => vec![left, right],
            Term::Concatenated(parts) | Term::And(parts) | Term::Or(parts) | Term::Coalesce(parts) => {
                parts.iter().collect()
            }
            Term::IsNull { of, .. } | Term::Not(of) => vec![of],
            Term::In(of, list) => std::iter::once(&**of).chain(list).collect(),
            Term::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
        }
    }

    /// Whether something holds for it or for anything inside of it.
    pub(crate) fn any(&self, holds: &mut impl FnMut(&Expression) -> bool) -> bool {
        holds(self) || self.parts().into_iter().any(|part| part.any(holds))
    }

    /// Whether it reads a column.
    pub(crate) fn reads(&self, ordinal: usize) -> bool {
        self.any(&mut |part| matches!(part.term, Term::Column(read) if read == ordinal))
    }
}

/// What an expression is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A column of the statement's table, by ordinal.
    Column(usize),
    /// A value of the expression's type, or NULL.
    Constant(Value),
    /// Exact arithmetic of two numbers.
    Arithmetic(Operator, Box<Expression>, Box<Expression>),
    /// Texts one behind the other; NULL where one is.
    Concatenated(Vec<Expression>),
    /// A comparison of two values of one kind.
    Compared(Comparison, Box<Expression>, Box<Expression>),
    /// IS NULL, or IS NOT NULL.
    IsNull {
        /// Of what.
        of: Box<Expression>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// A value that is one of several; NULL as in SQL. None of those is NULL.
    In(Box<Expression>, Vec<Expression>),
    /// All are true.
    And(Vec<Expression>),
    /// One is true.
    Or(Vec<Expression>),
    /// Not.
    Not(Box<Expression>),
    /// CASE WHEN condition THEN value … ELSE value END.
    Case {
        /// Conditions and values.
        branches: Vec<(Expression, Expression)>,
        /// ELSE; `None`: NULL.
        otherwise: Option<Box<Expression>>,
    },
    /// The first that is not NULL.
    Coalesce(Vec<Expression>),
}

/// Exact arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}
