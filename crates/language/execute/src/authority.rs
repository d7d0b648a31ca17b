//! What the role may do in whose name a transaction runs.
//!
//! What a statement or a routine's body needs is known when it is bound, and asked for as a whole when it begins: also for what a
//! routine would not have come to. A view and a SECURITY DEFINER routine need nothing of the role but that it may use them.
//!
//! A gateway decides who connects, the ledger what they may do. Passwords stay in the node's folder. Roles and grants
//! are in the catalog (`types::Roles`), and a transaction names its role under the client's signature
//! (`types::Transaction::role`), so every node holds every execution against them. An organisation's administrator is
//! not in the catalog and may do everything that its organisation may. What is needed is noted by the binder as
//! relations and calls are found (`plan::needs`). Inside of a view nothing is noted.

use crate::context::{Authority, SignedBy};
use crate::execution::Execution;
use crate::row_security::no_copy;
use plan::in_execution::runs_in_execution;
use plan::needs::{Needs, RelationNeed};
use plan::statement::find_rows;
use types::{PUBLIC_SCHEMA, Principal, Privileges, Securable, SqlError, SqlState, object_name, schema_of};

/// `42501` for somebody who is no administrator and changes the schema.
pub fn refuse_schema_change(principal: &Principal) -> Result<(), SqlError> {
    if principal.is_administrator() {
        return Ok(());
    }
    let message = "permission denied for schema public";
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        .hint("Schema, roles and privileges are changed by the administrator, who connects under the organisation's name."))
}

impl<'a> Execution<'a> {
    /// In the name of this principal.
    pub fn acting_as(mut self, principal: &Principal) -> Execution<'a> {
        self.on.authority = Authority::of(principal);
        self.on.signed_by = SignedBy::new(principal, self.on.authority.as_ref());
        self.assets.signers = principal.signers.clone();
        self
    }

    /// Refuses what the role may not do.
    ///
    /// # Errors
    /// `42501` names the first thing.
    pub fn authorise(&self, needs: &Needs) -> Result<(), SqlError> {
        let Some(authority) = &self.on.authority else { return Ok(()) };
        needs.relations.iter().try_for_each(|need| self.require_of_relation(authority, need))?;
        for called in needs.called.iter().filter(|called| !runs_in_execution(&called.name)) {
            self.require(authority, &Securable::Routine(called.name.to_string()), Privileges::EXECUTE)?;
        }
        Ok(())
    }

    /// Refuses to insert rows that a client sends, if the role may not, or if policies would have to be asked. `columns`: those that
    /// it sends.
    ///
    /// # Errors
    /// `42501`, `0A000`
    pub fn authorise_insert(&self, table: &str, columns: &[String]) -> Result<(), SqlError> {
        if let Some(authority) = &self.on.authority {
            let relation = Securable::Relation(table.to_string());
            let columns = columns.iter().map(|column| (column.clone(), Privileges::INSERT)).collect();
            let need = RelationNeed { relation, privileges: Privileges::INSERT, columns };
            self.require_of_relation(authority, &need)?;
        }
        match find_rows(self.on.programs.tables(), table) {
            Ok((plan, _)) => self.refuse_row_security(&plan, no_copy),
            Err(_) => Ok(()),
        }
    }

    /// Refuses to look at a sequence (`SELECT`), or to set its last value (`UPDATE`), if the role may not.
    ///
    /// # Errors
    /// `42501`
    pub(super) fn authorise_sequence(&self, sequence: &str, wanted: Privileges) -> Result<(), SqlError> {
        let Some(authority) = &self.on.authority else { return Ok(()) };
        self.require(authority, &Securable::Relation(sequence.to_string()), wanted)
    }

    /// Refuses to call a routine, if the role may not.
    ///
    /// # Errors
    /// `42501`
    pub fn authorise_call(&self, routine: &str) -> Result<(), SqlError> {
        let Some(authority) = &self.on.authority else { return Ok(()) };
        self.require(authority, &Securable::Routine(routine.to_string()), Privileges::EXECUTE)
    }

    /// Refuses what the role may neither do with a table or view as a whole nor with the columns that it is about.
    fn require_of_relation(&self, authority: &Authority, need: &RelationNeed) -> Result<(), SqlError> {
        let catalog = self.on.programs.catalog();
        let Securable::Relation(name) = &need.relation else {
            return self.require(authority, &need.relation, need.privileges);
        };
        let missing = need.privileges.without(catalog.roles.privileges(&authority.role, &need.relation));
        if missing.is_empty() || catalog.roles.columns_of(name).next().is_none() {
            return self.require(authority, &need.relation, need.privileges);
        }
        let mut wanted = need.privileges;
        for one in [Privileges::SELECT, Privileges::INSERT, Privileges::UPDATE] {
            let mut columns = need.columns.iter().filter(|(_, used)| used.contains(one)).peekable();
            let may = match columns.peek() {
                None => catalog.roles.privileges_on_columns(&authority.role, name).contains(one),
                Some(_) => columns.all(|(column, _)| {
                    let column = Securable::column(name, column);
                    catalog.roles.privileges(&authority.role, &column).contains(one)
                }),
            };
            if may && missing.contains(one) {
                wanted = wanted.without(one);
            }
        }
        self.require(authority, &need.relation, wanted)
    }

    fn require(&self, authority: &Authority, object: &Securable, wanted: Privileges) -> Result<(), SqlError> {
        let catalog = self.on.programs.catalog();
        if let Securable::Relation(name) | Securable::Routine(name) = object {
            // What the role may not look for, it does not come to.
            let schema = Securable::Schema(schema_of(name).to_string());
            if schema_of(name) != PUBLIC_SCHEMA || catalog.roles.grants.contains_key(&schema) {
                self.require(authority, &schema, Privileges::USAGE)?;
            }
        }
        let missing = wanted.without(catalog.roles.privileges(&authority.role, object));
        let Some(first) = missing.names().next() else { return Ok(()) };
        let is_temporary = |name: &String| {
            let table = catalog.tables.get(name).or_else(|| Some(catalog.partition(name)?.0));
            table.is_some_and(|table| table.id.is_temporary())
        };
        if let Securable::Relation(name) = object
            && is_temporary(name)
        {
            return Ok(());
        }
        let (kind, name) = match object {
            Securable::Schema(name) => ("schema", name),
            Securable::Column(name, _) => ("column", name),
            Securable::Relation(name) if catalog.partition(name).is_some() => ("table", name),
            Securable::Relation(name) if catalog.views.contains_key(name) => ("view", name),
            Securable::Relation(name) if catalog.sequences.contains_key(name) => ("sequence", name),
            Securable::Relation(name) => ("table", name),
            Securable::Routine(name) => match catalog.procedures.get(name) {
                Some(routine) if routine.function.is_some() => ("function", name),
                Some(_) => ("procedure", name),
                None if catalog.aggregates.contains_key(name) => ("aggregate", name),
                // It does not exist, which running it will say.
                None => return Ok(()),
            },
        };
        let on = match object {
            // PostgreSQL grants on aggregates as on functions.
            Securable::Routine(_) if kind == "aggregate" => format!("function {name}"),
            Securable::Routine(_) => format!("{kind} {name}"),
            Securable::Schema(_) => format!("SCHEMA {name}"),
            Securable::Relation(_) if kind == "sequence" => format!("sequence {name}"),
            Securable::Relation(_) | Securable::Column(..) => name.clone(),
        };
        let hint = match self.catalog_has(&authority.role) {
            true => format!("An administrator may GRANT {first} ON {on} TO {}.", authority.role),
            false => format!("The role \"{}\" has been dropped.", authority.role),
        };
        let shown = match object {
            Securable::Routine(name) => catalog.procedures.get(name).map_or(name, |routine| &routine.name),
            _ => name,
        };
        let message = format!("permission denied for {kind} {}", object_name(shown));
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).hint(hint))
    }

    fn catalog_has(&self, role: &str) -> bool {
        self.on.programs.catalog().roles.by_name.contains_key(role)
    }
}
