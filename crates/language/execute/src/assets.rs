//! Smart assets: the functions about them, and whose signatures changes of their rows need (paper 003, section 5.2.3).
//!
//! A table with an endorsement policy is one of assets: a row has an identifier, its key, and stakeholders, in the column
//! `stakeholders`. Whoever changes a row needs the signatures that the policy of the procedure asks for which does it, or that of the table
//! where none does. In a policy `old.all` and `old.any` are all, or one, of those who have a stake in the row as it was,
//! `new.all` and `new.any` of those who have one in the row as it comes; other names are organisations.

use crate::execution::Execution;
use crate::moves::Moves;
use plan::assets::AssetFunction;
use plan::table::{TablePlan, stored_policy};
use state::{RowChange, RowId};
use std::sync::Arc;
use types::{
    Array, ColumnSet, DataType, ElementType, Policy, Row, Signers, SqlError, SqlState, Value, format_value,
};
use values::broken;

/// The column that names who has a stake in a row.
const STAKEHOLDERS: &str = "stakeholders";
impl<'a> Execution<'a> {
    /// Which notes what it moves to other schemas.
    pub fn moving(mut self, moves: Option<&'a Moves>) -> Execution<'a> {
        if let Some(moves) = moves {
            moves.begin();
        }
        self.assets.moves = moves;
        self
    }

    /// Runs one of the functions about assets.
    ///
    /// # Errors
    /// `0A000` outside of schemas with members; `22004` for NULL; `55000` for a schema that the transaction has no part in; `54000` for
    /// too much.
    pub(crate) fn asset_value(
        &mut self,
        function: AssetFunction,
        arguments: &[Value],
    ) -> Result<Value, SqlError> {
        let not_here = |what: &str| {
            SqlError::unsupported(format_args!("{}() {what}", function.name()))
                .hint("Call it in a procedure of a schema with members, in a transaction of several of them.")
        };
        if function == AssetFunction::Signers {
            let signers = self.assets.signers.as_ref();
            let signers = signers.ok_or_else(|| not_here("outside of a schema with members"))?;
            let who = signers.who.iter().map(|name| Value::text(name.as_str())).collect();
            let element =
                ElementType::new(DataType::Text(None)).ok_or_else(|| broken("texts in no array"))?;
            return Ok(Value::Array(Arc::new(Array::new(element, who)?)));
        }
        if let AssetFunction::Offer(_) = function {
            let what = format_args!("{}() inside of a statement", function.name());
            return Err(SqlError::unsupported(what).hint(format!(
                "Send it alone, with a text or a parameter: SELECT {}('…')",
                function.name()
            )));
        }
        let [Value::Text(schema), what] = arguments else {
            let message = format!("{}() takes a schema's name and what moves, found NULL", function.name());
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let Some(text) = format_value(what) else {
            let message = format!("{}() moves something, found NULL", function.name());
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        if self.assets.routines == 0 {
            return Err(not_here("in a statement of a client"));
        }
        let moves =
            self.assets.moves.ok_or_else(|| not_here("in a transaction that has a part in one schema"))?;
        self.charge(1 + text.len() as u64 / 64)?;
        moves.note(function, schema, text.clone())?;
        Ok(Value::text(text))
    }

    /// Runs a routine of the catalog, whose changes need signatures by this policy.
    pub(crate) fn under_policy<R>(
        &mut self,
        policy: Option<&str>,
        run: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let policy = policy.filter(|_| self.assets.signers.is_some()).map(stored_policy).transpose()?;
        let before = self.assets.policies.len();
        self.assets.policies.extend(policy.map(Arc::new));
        self.assets.routines += 1;
        let result = run(self);
        self.assets.routines -= 1;
        self.assets.policies.truncate(before);
        result
    }

    /// How much the part has moved so far: what a block moved whose error is handled has not moved.
    pub(crate) fn moved(&self) -> usize {
        self.assets.moves.map_or(0, Moves::count)
    }

    /// Nothing has moved since that.
    pub(crate) fn undo_moves(&self, moved: usize) {
        if let Some(moves) = self.assets.moves {
            moves.truncate(moved);
        }
    }

    /// Refuses a change of a row that somebody has a stake in who would have to sign it.
    ///
    /// # Errors
    /// `42501` says whose signatures are missing.
    ///
    /// What the row was, and what the change has looked at (`uses`), is read: at its place in the order it must come to the same as here,
    /// or to nothing, and not to the change of another row.
    pub(crate) fn authorise_change(
        &mut self,
        (row, uses): (&RowId, ColumnSet),
        change: &RowChange,
    ) -> Result<(), SqlError> {
        let Some(signers) = self.assets.signers.clone() else { return Ok(()) };
        let Some(table) = self.on.programs.tables().by_id(row.table) else { return Ok(()) };
        let Some(of_table) = &table.endorsement else { return Ok(()) };
        let column = table.columns.iter().position(|column| column.name == STAKEHOLDERS);
        let columns = column.map_or(ColumnSet::EXISTS, ColumnSet::column);
        self.register_read(row.table, &row.key, columns | uses);
        let after = match change {
            RowChange::Unmatched => return Ok(()),
            RowChange::Put(row) => Some(row),
            RowChange::Delete => None,
        };
        let policy = self.assets.policies.last().cloned();
        let policy = policy.as_deref().unwrap_or(of_table);
        let before = self.current(row.table, &row.key)?;
        let asked = Asked { old: stakeholders(&before, column), new: stakeholders(&after.cloned(), column) };
        if let Some(unknown) = policy.organisations().into_iter().find(|name| Asked::is_mistaken(name)) {
            let message = format!(
                "the policy of a change of \"{}\": expected old.all, old.any, new.all or new.any, found {unknown}",
                table.name
            );
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .hint("All members together can change the policy: entente.offer(…)."));
        }
        let is_about_rows = policy.organisations().iter().any(|name| Asked::is_about_rows(name));
        if is_about_rows && column.is_none() {
            return Err(no_stakeholders(table));
        }
        if is_about_rows && asked.new.as_ref().is_some_and(Vec::is_empty) {
            return Err(nobody_has_a_stake(table));
        }
        let count = [&asked.old, &asked.new].into_iter().flatten().map(Vec::len).sum::<usize>();
        self.charge(count as u64)?;
        let Some(missing) = policy.remaining(&|name| asked.holds(name, &signers)) else { return Ok(()) };
        Err(not_signed(table, &missing, &asked, &signers))
    }
}

/// Who has a stake in a row before and behind a change; `None`: there is no such row.
struct Asked {
    old: Option<Vec<String>>,
    new: Option<Vec<String>>,
}

impl Asked {
    fn is_about_rows(name: &str) -> bool {
        matches!(name, "old.all" | "old.any" | "new.all" | "new.any")
    }

    fn is_mistaken(name: &str) -> bool {
        (name.starts_with("old.") || name.starts_with("new.")) && !Asked::is_about_rows(name)
    }

    fn holds(&self, name: &str, signers: &Signers) -> bool {
        let has_signed = |who: &String| signers.who.contains(who);
        let all = |who: &Option<Vec<String>>| who.as_ref().is_none_or(|who| who.iter().all(has_signed));
        let any = |who: &Option<Vec<String>>| who.as_ref().is_none_or(|who| who.iter().any(has_signed));
        match name {
            "old.all" => all(&self.old),
            "old.any" => any(&self.old),
            "new.all" => all(&self.new),
            "new.any" => any(&self.new),
            other => signers.who.iter().any(|who| who == other),
        }
    }
}

/// The values of a row's column: of an array its elements, of a text itself.
fn stakeholders(row: &Option<Row>, column: Option<usize>) -> Option<Vec<String>> {
    let row = row.as_ref()?;
    Some(match column.map(|column| &row[column]) {
        Some(Value::Array(array)) => array.values().iter().filter_map(format_value).collect(),
        Some(value) => format_value(value).into_iter().collect(),
        None => Vec::new(),
    })
}

fn no_stakeholders(table: &TablePlan) -> SqlError {
    let message = format!("the endorsement policy of \"{}\" is about stakeholders", table.name);
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        .detail(format!("The table has no column \"{STAKEHOLDERS}\"."))
        .hint(format!(
            "ALTER TABLE … ADD COLUMN {STAKEHOLDERS} text[], or a policy that names organisations."
        ))
}

/// Else whatever all of its stakeholders must sign nobody would have to.
fn nobody_has_a_stake(table: &TablePlan) -> SqlError {
    let message = format!("a row of \"{}\" without stakeholders", table.name);
    SqlError::new(SqlState(*b"23502"), message)
        .hint(format!("Name somebody in the column \"{STAKEHOLDERS}\": an organisation or a key."))
}

fn not_signed(table: &TablePlan, missing: &Policy, asked: &Asked, signers: &Signers) -> SqlError {
    let names = |who: &Option<Vec<String>>| who.as_ref().map_or("no row".to_string(), |who| who.join(", "));
    let message = format!("a change of a row of \"{}\" needs signatures: {missing}", table.name);
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        .detail(format!(
            "Stakeholders before: {}; behind: {}. Signed by {}.",
            names(&asked.old),
            names(&asked.new),
            signers.who.join(", ")
        ))
        .hint("Offer it with entente.offer(…); the others sign it with entente.sign(…).")
}
