//! Indexes as statements describe them.

use crate::ddl::deferral::bind_deferral;
use crate::ddl::operator_classes::{is_known_class, is_usual};
use plan::expression::output_name;
use sqlparser::ast::{self, BinaryOperator, Expr, IndexColumn, IndexType};
use syntax::names::{name_of, table_name};
use types::{Deferral, ExecutionVersion, IndexMethod, KeyOrder, SqlError, SqlState, Table};

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
    /// USING
    pub method: IndexMethod,
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
            method: IndexMethod::Ordered,
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
                let column = table.ordinal(name).map(|ordinal| &table.columns[ordinal]);
                column.is_some_and(|column| is_usual(class, column.data_type, self.method))
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
    let method = match &create.using {
        None | Some(IndexType::BTree) => IndexMethod::Ordered,
        Some(IndexType::GIN) if rules >= ExecutionVersion::V15 => {
            refuse_for_inverted(create)?;
            IndexMethod::Inverted
        }
        Some(other) => {
            let error = SqlError::unsupported(format_args!("an index USING {other}"));
            return Err(match rules >= ExecutionVersion::V15 {
                true => error.hint("There are btree, which is ordered and goes without saying, and gin."),
                false => error.hint("Indexes are ordered: leave USING out, or write USING btree."),
            });
        }
    };
    let name = create.name.as_ref().map(table_name).transpose()?;
    let draft = IndexDraft {
        name,
        parts: create.columns.iter().map(|column| part(column, rules, method)).collect::<Result<_, _>>()?,
        orders: orders(&create.columns, rules),
        unique: create.unique,
        constraint: false,
        deferral: Deferral::Never,
        primary: false,
        included: create.include.iter().map(name_of).collect::<Result<_, _>>()?,
        predicate: create.predicate.as_ref().map(ToString::to_string),
        nulls_not_distinct: create.unique && create.nulls_distinct == Some(false),
        method,
    };
    Ok((table_name(&create.table_name)?, draft))
}

/// Refuses what an inverted index cannot have, as PostgreSQL does, and several columns.
fn refuse_for_inverted(create: &ast::CreateIndex) -> Result<(), SqlError> {
    let is_ordered = |column: &IndexColumn| {
        let options = &column.column.options;
        options.asc.is_some() || options.nulls_first.is_some()
    };
    let refused = [
        (create.unique, "unique indexes"),
        (!create.include.is_empty(), "included columns"),
        (create.columns.iter().any(is_ordered), "ASC/DESC options"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(found, _)| *found) {
        let message = format!("access method \"gin\" does not support {what}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    match create.columns.len() {
        0 | 1 => Ok(()),
        _ => Err(SqlError::unsupported("an index USING gin on several columns")
            .hint("Create one for each column.")),
    }
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
        match part(column, rules, IndexMethod::Ordered)? {
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
        method: IndexMethod::Ordered,
    })
}

/// What a part of an index's key is. It can be read in both directions, so that ASC and DESC are the same.
fn part(column: &IndexColumn, rules: ExecutionVersion, method: IndexMethod) -> Result<IndexPart, SqlError> {
    let expr = &column.column.expr;
    let (bare, nested) = without_parentheses(expr);
    if rules < ExecutionVersion::V8 && !matches!(expr, Expr::Identifier(_)) {
        return Err(SqlError::unsupported("an index on an expression")
            .hint("Keep the value in a column, and index that."));
    }
    if let Some(class) = &column.operator_class
        && !is_known_class(&class.to_string(), rules, method)
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
