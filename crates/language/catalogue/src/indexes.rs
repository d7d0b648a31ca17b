//! Indexes as PostgreSQL's catalogue shows them.

use crate::objects::{Attribute, Index, IndexPart, shown_name};
use sql::{Parentheses, WrittenIndex};
use types::{Catalog, Deferral, IndexDetails, IndexMethod, KeyOrder, Table, schema_of};
use values::quote_ident;

/// The index of a primary key.
pub(crate) fn index_of_key(table: &Table, catalog: &Catalog, oid: i32) -> Index {
    let key = types::Index {
        number: 0,
        name: table.primary_key_name.clone(),
        columns: table.primary_key.clone(),
        unique: true,
        constraint: true,
        details: IndexDetails::default(),
        deferral: Deferral::Never,
        primary: true,
        method: IndexMethod::Ordered,
    };
    index(table, catalog, oid, &key)
}

/// An index of a table.
pub(crate) fn index(table: &Table, catalog: &Catalog, oid: i32, index: &types::Index) -> Index {
    let written = |parentheses| match index.is_computed() {
        true => WrittenIndex::new(table, index, catalog, parentheses).ok(),
        false => None,
    };
    let (exact, pretty) = (written(Parentheses::All), written(Parentheses::Few));
    let mut parts = Vec::new();
    let mut expressions = 0;
    for (place, ordinal) in index.columns.iter().chain(&index.details.included).enumerate() {
        let order = index.details.written.get(place).cloned().unwrap_or_default();
        let option = i64::from(order.descending) + 2 * i64::from(order.nulls_first);
        match table.columns.get(usize::from(*ordinal)) {
            Some(column) => {
                let (attribute, text) =
                    (Attribute::new(&column.name, column.data_type), quote_ident(&column.name));
                let column = i64::from(*ordinal) + 1;
                parts.push(IndexPart { column, attribute, pretty_text: text.clone(), text, option });
            }
            None => {
                let key = |written: &Option<WrittenIndex>| {
                    written.as_ref().and_then(|written| written.keys.get(expressions).cloned())
                };
                let sql = index.details.expressions.get(expressions).cloned().unwrap_or_default();
                let text = key(&exact).unwrap_or_else(|| format!("({sql})"));
                let pretty_text = key(&pretty).unwrap_or_else(|| text.clone());
                let result = exact.as_ref().and_then(|written| written.columns.get(expressions));
                let attribute = result.map_or_else(
                    || Attribute::new("expr", types::DataType::Text(None)),
                    |result| Attribute::new(&free_name(&parts, &result.name), result.data_type),
                );
                parts.push(IndexPart { column: 0, attribute, text, pretty_text, option });
                expressions += 1;
            }
        }
    }
    let predicate = |written: &Option<WrittenIndex>| {
        let text = written.as_ref().and_then(|written| written.predicate.clone());
        text.or_else(|| index.details.predicate.clone())
    };
    let keys = index.columns.len();
    let shown = Shown { index, parts: &parts };
    Index {
        immediate: !index.deferral.is_deferrable(),
        oid,
        name: index.name.clone(),
        definition: shown.definition(&full_name(table), |part| &part.text, predicate(&exact)),
        pretty_definition: shown.definition(
            &shown_name(&table.name),
            |part| &part.pretty_text,
            predicate(&pretty),
        ),
        expressions: exact
            .as_ref()
            .map(|written| joined(&written.expressions))
            .filter(|text| !text.is_empty()),
        predicate: predicate(&exact),
        nulls_not_distinct: index.details.nulls_not_distinct,
        unique: index.unique,
        primary: index.primary,
        method: index.method,
        keys,
        parts,
    }
}

/// As PostgreSQL: no two parts of an index are called the same.
fn free_name(before: &[IndexPart], name: &str) -> String {
    let numbered = |number: u32| if number == 0 { name.to_string() } else { format!("{name}{number}") };
    let is_free = |name: &String| before.iter().all(|part| part.attribute.name != *name);
    (0..).map(numbered).find(is_free).unwrap_or_default()
}

/// A list as PostgreSQL writes it, which begins a line where CASE does.
fn joined(parts: &[String]) -> String {
    parts.join(", ").replace(", \n", ",\n")
}

fn full_name(table: &Table) -> String {
    // As PostgreSQL calls it, whatever the session's number.
    let schema = if table.id.is_temporary() { "pg_temp" } else { schema_of(&table.name) };
    format!("{}.{}", quote_ident(schema), quote_ident(table.object_name()))
}

/// PostgreSQL's name of an access method.
pub(crate) fn method_name(method: IndexMethod) -> &'static str {
    match method {
        IndexMethod::Ordered => "btree",
        IndexMethod::Inverted => "gin",
    }
}

struct Shown<'a> {
    index: &'a types::Index,
    parts: &'a [IndexPart],
}

impl Shown<'_> {
    fn definition(
        &self,
        of: &str,
        text: impl Fn(&IndexPart) -> &String,
        predicate: Option<String>,
    ) -> String {
        let (keys, included) = self.parts.split_at(self.index.columns.len());
        let usual = KeyOrder::default();
        let key = |(place, part): (usize, &IndexPart)| {
            let order = self.index.details.written.get(place).unwrap_or(&usual);
            let class = order.class.as_ref().map(|class| format!(" {class}")).unwrap_or_default();
            let order = match (order.descending, order.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{}{class}{order}", text(part))
        };
        let listed = joined(&keys.iter().enumerate().map(key).collect::<Vec<_>>());
        let included: Vec<&str> = included.iter().map(|part| part.text.as_str()).collect();
        let included =
            if included.is_empty() { String::new() } else { format!(" INCLUDE ({})", included.join(", ")) };
        let nulls = if self.index.details.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
        let predicate = predicate.map(|predicate| format!(" WHERE {predicate}")).unwrap_or_default();
        format!(
            "CREATE {}INDEX {} ON {of} USING {} ({listed}){included}{nulls}{predicate}",
            if self.index.unique { "UNIQUE " } else { "" },
            quote_ident(&self.index.name),
            method_name(self.index.method),
        )
    }
}
