//! What is given the parts of a statement, one after the other.

use crate::expression::Expression;

/// Gets every slot that is read, some of them several times.
pub type VisitSlot<'v> = dyn FnMut(u16) + 'v;

/// Gets every expression, those inside of others left to the visitor.
pub type VisitExpression<'v> = dyn FnMut(&Expression) + 'v;
