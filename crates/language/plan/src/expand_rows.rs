//! Whole rows, written out: `NEW.*` in a list of values, and comparisons of one row with another.
//!
//! Binding knows values and columns. Where a row stands for all its fields, the syntax tree gets the fields instead.

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Spanned, UnaryOperator, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;
use syntax::names::name_of;

/// Gives the names of a row's fields; `None` for what is no row.
pub type Fields<'f> = dyn Fn(&str) -> Option<Vec<String>> + 'f;

/// Writes out the rows in a syntax tree.
pub fn expand_rows<T: VisitMut>(tree: &mut T, fields: &Fields<'_>) {
    let _ = tree.visit(&mut Expansion { fields });
}

struct Expansion<'f> {
    fields: &'f Fields<'f>,
}

impl Expansion<'_> {
    /// The fields of the row of this name, as expressions.
    fn fields_of(&self, name: &Ident) -> Option<Vec<Expr>> {
        let fields = (self.fields)(&name_of(name).ok()?)?;
        let field = |field: String| {
            let field = Ident { span: name.span, ..Ident::with_quote('"', field) };
            Expr::CompoundIdentifier(vec![name.clone(), field])
        };
        Some(fields.into_iter().map(field).collect())
    }

    fn fields_of_name(&self, name: &ObjectName) -> Option<Vec<Expr>> {
        match name.0.as_slice() {
            [part] => self.fields_of(part.as_ident()?),
            _ => None,
        }
    }

    /// The fields of a row that is an operand: `row` or `row.*`.
    fn operand(&self, expr: &Expr) -> Option<Vec<Expr>> {
        match expr {
            Expr::Nested(inner) => self.operand(inner),
            Expr::Identifier(name) => self.fields_of(name),
            Expr::QualifiedWildcard(name, _) => self.fields_of_name(name),
            _ => None,
        }
    }

    /// What a comparison of two rows is, field by field; `None` where it is none.
    fn comparison(&self, expr: &Expr) -> Option<Expr> {
        // Rows are equal where no field is distinct: NULL equals NULL here.
        let (left, right, same) = match expr {
            Expr::IsDistinctFrom(left, right) => (left, right, false),
            Expr::IsNotDistinctFrom(left, right) => (left, right, true),
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => (left, right, true),
            Expr::BinaryOp { left, op: BinaryOperator::NotEq, right } => (left, right, false),
            Expr::IsNull(row) => {
                let fields = self.operand(row)?.into_iter();
                let nulls = fields.map(|field| Expr::IsNull(Box::new(field))).collect();
                return Some(combined(nulls, BinaryOperator::And));
            }
            Expr::IsNotNull(row) => {
                let fields = self.operand(row)?.into_iter();
                let values = fields.map(|field| Expr::IsNotNull(Box::new(field))).collect();
                return Some(combined(values, BinaryOperator::And));
            }
            _ => return None,
        };
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        if left.len() != right.len() {
            return None;
        }
        let distinct = left.into_iter().zip(right);
        let distinct =
            distinct.map(|(left, right)| Expr::IsDistinctFrom(Box::new(left), Box::new(right))).collect();
        let distinct = combined(distinct, BinaryOperator::Or);
        Some(match same {
            false => distinct,
            true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(distinct) },
        })
    }
}

/// The parts, combined into a tree that is no deeper than it must be.
fn combined(mut parts: Vec<Expr>, operator: BinaryOperator) -> Expr {
    if parts.len() > 1 {
        let right = parts.split_off(parts.len() / 2);
        let (left, right) = (combined(parts, operator.clone()), combined(right, operator.clone()));
        let both = Expr::BinaryOp { left: Box::new(left), op: operator, right: Box::new(right) };
        return Expr::Nested(Box::new(both));
    }
    parts.pop().unwrap_or_else(|| Expr::value(sqlparser::ast::Value::Boolean(true)))
}

impl VisitorMut for Expansion<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(comparison) = self.comparison(expr) {
            *expr = comparison;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // A relation of the query goes before a variable of the same name.
        let names = select.from.iter().flat_map(|from| {
            std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
        });
        let relations: Vec<String> = names.map(|relation| relation.to_string().to_lowercase()).collect();
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            let fields = match &item {
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _)
                    if !relations.contains(&name.to_string().to_lowercase()) =>
                {
                    self.fields_of_name(name)
                }
                _ => None,
            };
            match fields {
                Some(fields) => projection.extend(fields.into_iter().map(SelectItem::UnnamedExpr)),
                None => projection.push(item),
            }
        }
        select.projection = projection;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut sqlparser::ast::Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            for row in &mut values.rows {
                for value in std::mem::take(&mut row.content) {
                    match &value {
                        Expr::QualifiedWildcard(name, _) => match self.fields_of_name(name) {
                            Some(fields) => row.content.extend(fields),
                            None => row.content.push(value),
                        },
                        _ => row.content.push(value),
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Where a name stands first that begins with this row's; `None`: nowhere.
pub fn span_of_row(expr: &Expr, row: &str) -> Option<sqlparser::tokenizer::Span> {
    let flow = sqlparser::ast::visit_expressions(expr, |inner| {
        let is_row = |name: &Ident| name_of(name).is_ok_and(|name| name == row);
        match inner {
            Expr::CompoundIdentifier(path) if path.first().is_some_and(is_row) => {
                ControlFlow::Break(inner.span())
            }
            Expr::QualifiedWildcard(name, _)
                if name.0.first().and_then(|part| part.as_ident()).is_some_and(is_row) =>
            {
                ControlFlow::Break(inner.span())
            }
            Expr::Identifier(name) if is_row(name) => ControlFlow::Break(inner.span()),
            _ => ControlFlow::Continue(()),
        }
    });
    flow.break_value()
}
