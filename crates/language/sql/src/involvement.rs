//! What a transaction may run, and whose policies must hold for that.

use crate::library::{Involved, Involvement, Library};
use plan::polymorphic::Callee;
use plan::statement::find_rows;
use plan::table::stored_policy;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use types::{DataType, Payload, SessionStep, SqlError, SqlState, Value};

/// Procedures that one call may involve where their policies must hold.
const INVOLVED_MAX: usize = 256;

impl Library {
    /// What a transaction may run, directly or not.
    ///
    /// # Errors
    /// More than 256 procedures; what is wrong with a script.
    pub fn involved(&self, payload: &Payload) -> Result<Involvement, SqlError> {
        let procedure = match payload.call() {
            Payload::Call { procedure, arguments } => &self.called_procedure(procedure, arguments)?,
            Payload::Script { sql, parameters } => {
                let (called, statements) = self.called_by_script(sql, parameters)?;
                return Ok(Involvement { procedures: self.find_involved(&called)?, statements });
            }
            Payload::Insert { table, .. } => {
                let procedures = self.find_involved(&self.called_by_insert(table))?;
                return Ok(Involvement { procedures, statements: true });
            }
            Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. }
            | Payload::Agreed(_) => {
                return Ok(Involvement { procedures: self.find_involved(&[])?, statements: false });
            }
            Payload::Session { steps, .. } => {
                let (mut all, mut statements) = (Vec::new(), false);
                for step in steps {
                    let (called, more) = match step {
                        SessionStep::Run { .. } | SessionStep::RunGiven { .. } => {
                            let Some(script) = self.script_of(step)? else { continue };
                            (script.calls().to_vec(), !script.only_calls())
                        }
                        SessionStep::Insert { table, .. } => (self.called_by_insert(table), true),
                        SessionStep::Savepoint(_) | SessionStep::RollbackTo(_) | SessionStep::Release(_) => {
                            continue;
                        }
                    };
                    statements |= more;
                    all.extend(called);
                    // Many statements call the same.
                    all.sort_unstable();
                    all.dedup();
                }
                return Ok(Involvement { procedures: self.find_involved(&all)?, statements });
            }
        };
        if let Some(known) = self.involved.lock().unwrap_or_else(PoisonError::into_inner).get(procedure) {
            return Ok(Involvement { procedures: known.clone(), statements: false });
        }
        let found = self.find_involved(&[Callee::named(procedure)])?;
        if !found.is_empty() {
            let mut known = self.involved.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(procedure.clone(), found.clone());
        }
        Ok(Involvement { procedures: found, statements: false })
    }

    /// What a script calls, and whether it does anything else.
    fn called_by_script(&self, sql: &str, parameters: &[Value]) -> Result<(Vec<Callee>, bool), SqlError> {
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        let script = self.script(sql, &types)?;
        Ok((script.calls().to_vec(), !script.only_calls()))
    }

    /// What the defaults of a table's columns call, and its triggers.
    fn called_by_insert(&self, table: &str) -> Vec<Callee> {
        let mut called = Vec::new();
        let Ok((table, _)) = find_rows(self.tables(), table) else { return called };
        called.extend(self.tables().fired_by(&table));
        for default in table.columns.iter().filter_map(|column| column.default.as_ref()) {
            default.visit_calls(&mut |call| called.push(call.callee.clone()));
        }
        called
    }

    pub(crate) fn find_involved(&self, called: &[Callee]) -> Result<Arc<[Involved]>, SqlError> {
        let mut waiting: Vec<Callee> = called.to_vec();
        let mut seen: BTreeSet<Callee> = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            if !self.catalog().procedures.contains_key(next.name.as_ref()) || !seen.insert(next.clone()) {
                continue;
            }
            if seen.len() > INVOLVED_MAX {
                let message = format!(
                    "the transaction may involve more than {INVOLVED_MAX} procedures, whose policies would have to hold"
                );
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            if let Ok(compiled) = self.routine(&next.name, next.actual) {
                waiting.extend_from_slice(compiled.calls());
            }
            self.triggers.visit_calls(&next.name, &mut |called| waiting.push(called.clone()));
        }
        let names: BTreeSet<Arc<str>> = seen.into_iter().map(|callee| callee.name).collect();
        let involve = |name: &Arc<str>| {
            let text = self.catalog().procedures[name.as_ref()].endorsement.as_deref();
            Ok(Involved { procedure: name.to_string(), policy: text.map(stored_policy).transpose()? })
        };
        names.iter().map(involve).collect()
    }
}
