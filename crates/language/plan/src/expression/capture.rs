//! What expressions need besides the row at hand.

use crate::expression::{Expression, Kind};

/// What some expressions need that is the same for every row (variables, arguments, columns to the left, subqueries),
/// gathered so that a command or a predicate carries these values and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capture {
    /// In the order of the captured values.
    pub sources: Vec<Expression>,
}

impl Capture {
    /// Lets `expression` take these from positions among the captured values.
    pub fn renumber(&mut self, expression: &mut Expression) {
        let captured = match &expression.kind {
            Kind::Slot(_) | Kind::Argument(_) | Kind::Left(_) => true,
            Kind::Subquery(_) | Kind::Call(_) => expression.is_row_independent(),
            _ => false,
        };
        if captured {
            let position = self.sources.iter().position(|known| known == expression).unwrap_or_else(|| {
                self.sources.push(expression.clone());
                self.sources.len() - 1
            });
            expression.kind = Kind::Slot(position as u16);
            return;
        }
        expression.operands_mut().into_iter().for_each(|operand| self.renumber(operand));
    }
}
