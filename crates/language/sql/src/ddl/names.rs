//! The names of relations, routines, types and sequences in texts that the catalog keeps: queries of views, defaults, CHECKs,
//! conditions of triggers. There they are names of the catalog, found by the search path `public` alone.
//!
//! They get qualified names when they are made, by where the binder has seen a relation. The name alone would not do:
//! it may be that of a WITH query.

use plan::expression::is_system_function;
use plan::sequence::{draws_value, sequence_name, stored_sequence_name};
use sqlparser::ast::{self, Expr, Ident, ObjectName, Spanned, TableFactor, VisitMut, VisitorMut};
use sqlparser::tokenizer::Span;
use std::ops::ControlFlow;
use syntax::names::table_name;
use syntax::parse::{parse_expression, put_only, take_only, without_only};
use types::{
    Catalog, ExecutionVersion, PUBLIC_SCHEMA, SearchPath, SqlError, object_name, quoted_catalog_name,
    split_catalog_name,
};

/// What names become; `None` leaves one as it is.
pub(super) trait Renaming {
    /// Whether a relation stands at this place.
    fn is_relation(&self, span: Span) -> bool;
    /// A relation that stands at this place.
    fn relation(&self, name: &ObjectName, span: Span) -> Option<String>;
    /// A function.
    fn routine(&self, name: &ObjectName) -> Option<String>;
    /// A type.
    fn data_type(&self, name: &ObjectName) -> Option<String>;
    /// A sequence that a function is given as a text.
    fn sequence(&self, text: &str) -> Option<String>;
}

/// A name of the catalog as SQL writes it.
pub(super) fn written(name: &str) -> ObjectName {
    let (schema, object) = split_catalog_name(name);
    let quoted = |part: &str| Ident::with_quote('"', part);
    ObjectName::from(match schema {
        PUBLIC_SCHEMA => vec![quoted(object)],
        _ => vec![quoted(schema), quoted(object)],
    })
}

struct Rename<'r>(&'r dyn Renaming);

impl Rename<'_> {
    fn function(&self, name: &mut ObjectName) {
        if let Some(found) = self.0.routine(name) {
            *name = written(&found);
        }
    }

    fn data_type(&self, data_type: &mut ast::DataType) {
        match data_type {
            ast::DataType::Custom(name, _) => {
                if let Some(found) = self.0.data_type(name) {
                    *name = written(&found);
                }
            }
            ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => self.data_type(element),
            _ => {}
        }
    }

    fn sequences(&self, function: &mut ast::Function) {
        let is_about_one = function.name.0.last().and_then(|part| part.as_ident());
        if !is_about_one.is_some_and(|name| draws_value(&name.value.to_ascii_lowercase())) {
            return;
        }
        let _ = ast::visit_expressions_mut(&mut function.args, |inner| {
            if let Expr::Value(value) = inner
                && let ast::Value::SingleQuotedString(text) = &mut value.value
                && let Some(found) = self.0.sequence(text)
            {
                *text = quoted_catalog_name(&found);
            }
            ControlFlow::<()>::Continue(())
        });
    }
}

impl VisitorMut for Rename<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let is_only = match without_only(factor).0.as_ref() {
            TableFactor::Table { name, args: None, .. } => self.0.is_relation(name.span()),
            _ => false,
        } && take_only(factor);
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.function(name);
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                if let Some(found) = self.0.relation(name, name.span()) {
                    let known_as = name.0.last().and_then(|part| part.as_ident()).cloned();
                    if let Some(known_as) = known_as.filter(|known| known.value != object_name(&found)) {
                        alias.get_or_insert_with(|| ast::TableAlias {
                            explicit: true,
                            name: known_as,
                            columns: Vec::new(),
                            at: None,
                        });
                    }
                    *name = written(&found);
                }
            }
            _ => {}
        }
        if is_only {
            put_only(factor);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                self.function(&mut function.name);
                self.sequences(function);
            }
            Expr::Cast { data_type, .. } => self.data_type(data_type),
            Expr::TypedString(typed) => self.data_type(&mut typed.data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Renames what stands in a query.
pub(super) fn rename_in_query(query: &mut ast::Query, renaming: &dyn Renaming) {
    let _ = query.visit(&mut Rename(renaming));
}

/// Renames what stands in an expression.
pub(super) fn rename_in_expr(expr: &mut Expr, renaming: &dyn Renaming) {
    let _ = expr.visit(&mut Rename(renaming));
}

/// Renames what stands in the type of a column.
pub(super) fn rename_in_type(data_type: &mut ast::DataType, renaming: &dyn Renaming) {
    Rename(renaming).data_type(data_type);
}

/// Renames what stands in the text of an expression.
///
/// # Errors
/// None for one that the catalog has.
pub(super) fn rename_in_expression_text(text: &mut String, renaming: &dyn Renaming) -> Result<(), SqlError> {
    // Names stand where they stand, however the versions group what is between them.
    let mut expr = parse_expression(text, ExecutionVersion::NEWEST)?;
    let before = expr.clone();
    rename_in_expr(&mut expr, renaming);
    if expr != before {
        *text = expr.to_string();
    }
    Ok(())
}

/// Gives names the schemas in which a search path finds them.
pub(super) struct Qualify<'c> {
    pub catalog: &'c Catalog,
    pub path: &'c SearchPath,
    /// Relations by where they stand: a name may be that of a WITH query too.
    pub version: ExecutionVersion,
    pub places: &'c [(Span, String)],
}

impl Qualify<'_> {
    fn find(&self, name: &ObjectName, is_there: &dyn Fn(&str) -> bool) -> Option<String> {
        let name = table_name(name).ok().filter(|name| !name.contains('.'))?;
        self.path.find(&name, is_there).filter(|found| *found != name)
    }
}

impl Renaming for Qualify<'_> {
    fn is_relation(&self, span: Span) -> bool {
        self.places.iter().any(|(place, _)| *place == span)
    }

    fn relation(&self, name: &ObjectName, span: Span) -> Option<String> {
        let (_, found) = self.places.iter().find(|(place, _)| *place == span)?;
        (found.contains('.') && name.0.len() == 1).then(|| found.clone())
    }

    fn routine(&self, name: &ObjectName) -> Option<String> {
        let found = self.find(name, &|found| self.catalog.has_routine(found))?;
        // A function of the ledger does not hide one of the system.
        (!is_system_function(object_name(&found), self.version)).then_some(found)
    }

    fn data_type(&self, name: &ObjectName) -> Option<String> {
        let catalog = self.catalog;
        self.find(name, &|found| catalog.types.contains_key(found) || catalog.row_types.contains_key(found))
    }

    fn sequence(&self, text: &str) -> Option<String> {
        let name = sequence_name(text).ok()?;
        self.path.find(&name, |found| self.catalog.sequences.contains_key(found))
    }
}

/// Lets names follow what they are the names of.
pub(super) struct Follow<'m> {
    /// Relations by where they stand: a name may be that of a WITH query too.
    pub places: Vec<(Span, String)>,
    /// The new name in the catalog of what has another one now.
    pub moved: &'m dyn Fn(&str) -> Option<String>,
}

impl Follow<'_> {
    fn follow(&self, name: &ObjectName) -> Option<String> {
        let name = table_name(name).ok()?;
        (self.moved)(&SearchPath::default().find_or_missing(&name, |found| (self.moved)(found).is_some()))
    }
}

impl Renaming for Follow<'_> {
    fn is_relation(&self, span: Span) -> bool {
        self.places.iter().any(|(place, _)| *place == span)
    }

    fn relation(&self, _: &ObjectName, span: Span) -> Option<String> {
        let (_, relation) = self.places.iter().find(|(place, _)| *place == span)?;
        (self.moved)(relation)
    }

    fn routine(&self, name: &ObjectName) -> Option<String> {
        self.follow(name)
    }

    fn data_type(&self, name: &ObjectName) -> Option<String> {
        self.follow(name)
    }

    fn sequence(&self, text: &str) -> Option<String> {
        (self.moved)(&stored_sequence_name(text).ok()?)
    }
}
