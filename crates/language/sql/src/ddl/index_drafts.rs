//! Indexes as statements describe them.

use crate::ddl::deferral::bind_deferral;
use crate::ddl::operator_classes::{is_natural_order, is_usual};
use plan::expression::output_name;
use sqlparser::ast::{self, BinaryOperator, Expr, IndexColumn, IndexType};
use syntax::names::{name_of, table_name};
use types::{Deferral, ExecutionVersion, KeyOrder, SqlError, SqlState, Table};

/// An index as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct IndexDraft {
    /// Its name; `None`: PostgreSQL's.
    pub name: Option<String>,
    /// What it is on.
    pub parts: Vec<IndexPart>,
    /// How each of these is written.
    orders: Vec<KeyOrder>,
    /// UNIQUE
    pub unique: bool,
    /// It is a UNIQUE constraint.
    pub constraint: bool,
    /// When the constraint is held.
    pub deferral: Deferral,
    /// The constraint is a PRIMARY KEY that can be deferred.
    pub primary: bool,
    /// INCLUDE
    pub included: Vec<String>,
    /// WHERE, as SQL.
    pub predicate: Option<String>,
    /// NULLS NOT DISTINCT
    pub nulls_not_distinct: bool,
}

/// A part of an index's key.
#[derive(Clone, Debug)]
pub(crate) enum IndexPart {
    /// A column of this name.
    Column(String),
    /// An expression, as SQL, and what it is called in the names of indexes.
    Expression { sql: String, name: String },
}

impl IndexDraft {
    /// A primary key that can be deferred.
    pub(super) fn key(name: Option<String>, columns: Vec<String>, deferral: Deferral) -> IndexDraft {
        IndexDraft {
            name,
            parts: columns.into_iter().map(IndexPart::Column).collect(),
            orders: Vec::new(),
            unique: true,
            constraint: true,
            deferral,
            primary: true,
            included: Vec::new(),
            predicate: None,
            nulls_not_distinct: false,
        }
    }

    /// UNIQUE of one column.
    pub(super) fn of_column(mut self, name: &str) -> IndexDraft {
        (self.parts, self.orders) = (vec![IndexPart::Column(name.to_string())], Vec::new());
        self
    }

    /// Expressions of the key, as SQL.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            IndexPart::Column(_) => None,
            IndexPart::Expression { sql, .. } => Some(sql.as_str()),
        })
    }

    /// What it has as SQL.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let expressions = self.parts.iter_mut().filter_map(|part| match part {
            IndexPart::Column(_) => None,
            IndexPart::Expression { sql, .. } => Some(sql),
        });
        expressions.chain(&mut self.predicate)
    }

    /// What its parts and the columns of INCLUDE are called where the index gets a name of them. As PostgreSQL: no two
    /// expressions are called the same.
    pub(super) fn part_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for part in &self.parts {
            names.push(match part {
                IndexPart::Column(name) => name.clone(),
                IndexPart::Expression { name, .. } => {
                    let numbered =
                        |number: u32| if number == 0 { name.clone() } else { format!("{name}{number}") };
                    let free = (0..).map(numbered).find(|name| !names.contains(name));
                    free.unwrap_or_default()
                }
            });
        }
        names.extend(self.included.iter().cloned());
        names
    }

    /// How its parts are written; nothing where all are as usual.
    pub(super) fn written(&self, table: &Table) -> Vec<KeyOrder> {
        let usual = |part: &IndexPart, class: &str| match part {
            IndexPart::Column(name) => {
                table.ordinal(name).is_some_and(|ordinal| is_usual(class, table.columns[ordinal].data_type))
            }
            IndexPart::Expression { .. } => false,
        };
        let mut written = self.orders.clone();
        for (part, order) in self.parts.iter().zip(&mut written) {
            order.class = order.class.take().filter(|class| !usual(part, class));
        }
        if written.iter().all(|order| *order == KeyOrder::default()) { Vec::new() } else { written }
    }
}

/// CREATE INDEX: the table, and the index.
pub(super) fn bind_create_index(
    create: &ast::CreateIndex,
    rules: ExecutionVersion,
) -> Result<(String, IndexDraft), SqlError> {
    let before_8 = rules < ExecutionVersion::V8;
    let refused = [
        (before_8 && create.predicate.is_some(), "a partial index (WHERE)"),
        (before_8 && !create.include.is_empty(), "INCLUDE"),
        (before_8 && create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (!create.index_options.is_empty() || !create.alter_options.is_empty(), "this form of CREATE INDEX"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(found, _)| *found) {
        return Err(SqlError::unsupported(what));
    }
    match &create.using {
        None | Some(IndexType::BTree) => {}
        Some(other) => {
            return Err(SqlError::unsupported(format_args!("an index USING {other}"))
                .hint("Indexes are ordered: leave USING out, or write USING btree."));
        }
    }
    let name = create.name.as_ref().map(table_name).transpose()?;
    let draft = IndexDraft {
        name,
        parts: create.columns.iter().map(|column| part(column, rules)).collect::<Result<_, _>>()?,
        orders: orders(&create.columns, rules),
        unique: create.unique,
        constraint: false,
        deferral: Deferral::Never,
        primary: false,
        included: create.include.iter().map(name_of).collect::<Result<_, _>>()?,
        predicate: create.predicate.as_ref().map(ToString::to_string),
        nulls_not_distinct: create.unique && create.nulls_distinct == Some(false),
    };
    Ok((table_name(&create.table_name)?, draft))
}

/// UNIQUE as a constraint of a table.
pub(super) fn bind_unique(
    unique: &ast::UniqueConstraint,
    rules: ExecutionVersion,
) -> Result<IndexDraft, SqlError> {
    let deferral = bind_deferral(unique.characteristics.as_ref(), rules)?;
    if !unique.index_options.is_empty() {
        return Err(SqlError::unsupported("this form of UNIQUE"));
    }
    let nulls_not_distinct = matches!(unique.nulls_distinct, ast::NullsDistinctOption::NotDistinct);
    if nulls_not_distinct && rules < ExecutionVersion::V8 {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
    }
    let name = unique.name.as_ref().map(name_of).transpose()?;
    let mut parts = Vec::with_capacity(unique.columns.len());
    for column in &unique.columns {
        match part(column, rules)? {
            IndexPart::Expression { .. } => {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"(\"")
                    .hint("A constraint is on columns. CREATE UNIQUE INDEX takes expressions."));
            }
            column => parts.push(column),
        }
    }
    Ok(IndexDraft {
        name,
        parts,
        orders: Vec::new(),
        unique: true,
        constraint: true,
        deferral,
        primary: false,
        included: Vec::new(),
        predicate: None,
        nulls_not_distinct,
    })
}

/// What a part of an index's key is. It can be read in both directions, so that ASC and DESC are the same.
fn part(column: &IndexColumn, rules: ExecutionVersion) -> Result<IndexPart, SqlError> {
    let expr = &column.column.expr;
    let (bare, nested) = without_parentheses(expr);
    if rules < ExecutionVersion::V8 && !matches!(expr, Expr::Identifier(_)) {
        return Err(SqlError::unsupported("an index on an expression")
            .hint("Keep the value in a column, and index that."));
    }
    if let Some(class) = &column.operator_class
        && !is_natural_order(&class.to_string(), rules)
    {
        return Err(SqlError::unsupported(format_args!("the operator class {class} of an index")));
    }
    if let Expr::Identifier(ident) = bare {
        return name_of(ident).map(IndexPart::Column);
    }
    if !nested {
        refuse_bare(bare)?;
    }
    let name = match output_name(bare) {
        unnamed if unnamed == "?column?" => "expr".to_string(),
        name => name,
    };
    Ok(IndexPart::Expression { sql: bare.to_string(), name })
}

fn without_parentheses(expr: &Expr) -> (&Expr, bool) {
    match expr {
        Expr::Nested(inner) => (without_parentheses(inner).0, true),
        other => (other, false),
    }
}

/// Refuses what must stand in parentheses: only calls and columns need none.
fn refuse_bare(expr: &Expr) -> Result<(), SqlError> {
    let near = match expr {
        Expr::BinaryOp { op: BinaryOperator::And, .. } => "AND".to_string(),
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => "OR".to_string(),
        Expr::BinaryOp { op, .. } => op.to_string(),
        Expr::Cast { kind: ast::CastKind::DoubleColon, .. } => "::".to_string(),
        Expr::CompoundIdentifier(_) => ".".to_string(),
        _ => return Ok(()),
    };
    let message = format!("syntax error at or near \"{near}\"");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message).hint(
        "An expression in an index stands in parentheses of its own, unless it is a call of a function.",
    ))
}

/// How the parts of a key are written; before version 8 nobody kept it.
fn orders(columns: &[IndexColumn], rules: ExecutionVersion) -> Vec<KeyOrder> {
    if rules < ExecutionVersion::V8 {
        return Vec::new();
    }
    let order = |column: &IndexColumn| {
        let descending = column.column.options.asc == Some(false);
        let nulls_first = column.column.options.nulls_first.unwrap_or(descending);
        let class = column.operator_class.as_ref().map(|class| class.to_string().to_ascii_lowercase());
        KeyOrder { descending, nulls_first, class }
    };
    columns.iter().map(order).collect()
}
