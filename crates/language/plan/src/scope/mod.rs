//! Names that expressions may use besides columns: variables of PL/pgSQL and parameters `$n`.

mod excerpt;

use crate::needs::{Needs, RelationNeed};
use crate::polymorphic::Callee;
use crate::routines::Routines;
use crate::row_locking::RowLocking;
use crate::view::Noted;
pub use excerpt::ScopeExcerpt;
use sqlparser::tokenizer::Span;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use syntax::names::position_in;
use syntax::plpgsql::ast::NameConflict;
use types::{DataType, ExecutionVersion, Privileges, Securable, SqlError, SqlState, limits};

/// Which slot of the frame a name stands for.
///
/// Blocks nest; the innermost declaration of a name wins; `label.name` finds the variable of the block with that label.
/// Slots are never used twice, so that a frame is one vector for the whole procedure.
#[derive(Clone, Default)]
pub struct VariableScope {
    /// Innermost last.
    blocks: Vec<Block>,
    /// By slot.
    types: Vec<DataType>,
    /// Slot of `$1`, `$2`, … in a procedure.
    positions: Vec<usize>,
    /// Types of `$1`, `$2`, … in a script, [`DataType::Unknown`] until a use tells. `None` in a procedure.
    script: Option<RefCell<Vec<DataType>>>,
    /// The text that the spans of the syntax tree point into.
    source: Option<Arc<str>>,
    /// Functions that expressions may call.
    routines: Routines,
    /// Those that have been bound as calls.
    called: RefCell<BTreeSet<Callee>>,
    /// What has been bound needs these privileges.
    needed: RefCell<BTreeMap<Securable, Privileges>>,
    /// Columns of tables and views that are looked at or written.
    columns: RefCell<BTreeMap<String, BTreeMap<String, Privileges>>>,
    /// What a name is that is a column and a variable.
    conflict: NameConflict,
    /// What a query that becomes a view looks at.
    noted: Option<RefCell<Noted>>,
    /// Functions of the triggers of tables that are changed.
    fired: RefCell<BTreeSet<Callee>>,
    /// The rows of the statement that a trigger fires at, as relations.
    transition_tables: Vec<TransitionTable>,
    /// The slot of an array whose subscripts begin at 0.
    from_zero: Option<usize>,
    /// Nodes of the operands that were bound several times.
    pub(crate) copies: Cell<usize>,
    /// With what a statement reads the past.
    reads_past: Cell<Option<&'static str>>,
    /// Whether a constant stands for where the session looks for names, or for a setting.
    folds_session: Cell<bool>,
    /// Where relations stand whose rows FOR UPDATE or its kind asks for, and how.
    locked: RefCell<Vec<(Span, RowLocking)>>,
    /// How the first of these clauses is called that asks for rows of the ledger.
    lock: Cell<Option<&'static str>>,
    /// It asks for those of all relations: it is the scope of a view that it asks for.
    locks_all: Option<RowLocking>,
}

/// The rows of the statement that a trigger fires at, before or after it.
#[derive(Clone, Debug)]
pub struct TransitionTable {
    name: String,
    /// By which an execution knows the rows.
    pub number: usize,
    /// Names and types.
    pub columns: Vec<(String, DataType)>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    label: Option<String>,
    variables: Vec<(String, usize)>,
    records: Vec<(String, Vec<(String, usize)>)>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Position in the frame.
    pub slot: usize,
    /// The declared type.
    pub data_type: DataType,
}

impl VariableScope {
    /// The scope of a procedure, with one unlabelled outermost block.
    pub fn for_procedure(source: Option<Arc<str>>) -> VariableScope {
        VariableScope { blocks: vec![Block::default()], source, ..VariableScope::default() }
    }

    /// The scope of a script: parameters only, those beyond `types` are inferred.
    pub fn for_script(types: &[DataType], source: &str) -> VariableScope {
        VariableScope {
            script: Some(RefCell::new(types.to_vec())),
            source: Some(Arc::from(source)),
            ..VariableScope::default()
        }
    }

    /// With these functions.
    pub fn with_routines(mut self, routines: &Routines) -> VariableScope {
        self.routines = routines.clone();
        self
    }

    /// Decides what names are that are both columns and variables.
    pub fn decide_conflicts(&mut self, conflict: NameConflict) {
        self.conflict = conflict;
    }

    /// Notes what a query that becomes a view looks at.
    pub fn noting(mut self) -> VariableScope {
        self.noted = Some(RefCell::default());
        self
    }

    /// What has been noted so far.
    pub fn noted(&self) -> Noted {
        self.noted.as_ref().map(|noted| noted.borrow().clone()).unwrap_or_default()
    }

    /// A query reads the table or view of this name in the catalog, which stands at this place.
    pub fn note_relation(&self, name: &str, span: Span) {
        if let Some(noted) = &self.noted {
            let mut noted = noted.borrow_mut();
            noted.relations.insert(name.to_string());
            noted.places.push((span, name.to_string()));
        }
    }

    /// FOR UPDATE or its kind asks for the rows of the relation at this place.
    pub(crate) fn note_locked(&self, span: Span, locking: RowLocking) {
        self.locked.borrow_mut().push((span, locking));
    }

    /// What FOR UPDATE or its kind is called that asks for rows of the ledger; the first one counts.
    pub(crate) fn note_lock(&self, strength: &'static str) {
        self.lock.set(self.lock.get().or(Some(strength)));
    }

    /// The first that has been noted, which is forgotten.
    pub(crate) fn take_lock(&self) -> Option<&'static str> {
        self.lock.take()
    }

    /// How they do, all of them together; `None` where none does.
    pub(crate) fn locking(&self, span: Span) -> Option<RowLocking> {
        let locked = self.locked.borrow();
        let here = locked.iter().filter(|(known, _)| *known == span).map(|(_, locking)| *locking);
        here.chain(self.locks_all).reduce(RowLocking::and)
    }

    /// The scope of a view whose rows one asks for, or does not.
    #[must_use]
    pub(crate) fn locking_all(self, locks_all: Option<RowLocking>) -> VariableScope {
        VariableScope { locks_all, ..self }
    }

    /// The `*` at this place stands for these columns.
    pub fn note_wildcard(&self, span: Span, paths: impl FnOnce() -> Vec<Vec<String>>) {
        if let Some(noted) = &self.noted {
            noted.borrow_mut().wildcards.push((span, paths()));
        }
    }

    /// What a name is that is both a column and a variable.
    pub fn conflict(&self) -> NameConflict {
        self.conflict
    }

    /// Functions that expressions may call.
    pub fn routines(&self) -> &Routines {
        &self.routines
    }

    /// The rules that expressions are bound with: code that differs between versions asks here.
    pub fn version(&self) -> ExecutionVersion {
        self.routines.version()
    }

    /// A statement uses this table or view.
    pub fn note_use(&self, relation: &str, privileges: Privileges) {
        let mut needed = self.needed.borrow_mut();
        let known = needed.entry(Securable::Relation(relation.to_string())).or_default();
        *known = *known | privileges;
    }

    /// A change looks at rows of the table. From version 10 on the columns that it looks at are noted instead.
    pub fn note_reading(&self, relation: &str) {
        if self.version() < ExecutionVersion::V10 {
            self.note_use(relation, Privileges::SELECT);
        }
    }

    /// A statement looks at a column of a table or view, or writes it. Before version 10 only whole tables had privileges, which are
    /// noted where the statement names them.
    pub fn note_column(&self, relation: &str, column: &str, privileges: Privileges) {
        if self.version() < ExecutionVersion::V10 {
            return;
        }
        self.note_use(relation, privileges);
        let mut all = self.columns.borrow_mut();
        let columns = all.entry(relation.to_string()).or_default();
        match columns.get_mut(column) {
            Some(known) => *known = *known | privileges,
            None => drop(columns.insert(column.to_string(), privileges)),
        }
    }

    /// What running all that has been bound needs.
    pub fn needs(&self) -> Needs {
        let columns = self.columns.borrow();
        let need = |(relation, privileges): (&Securable, &Privileges)| {
            let columns = match relation {
                Securable::Relation(name) => columns.get(name),
                _ => None,
            };
            let columns = columns.into_iter().flatten().map(|(name, used)| (name.clone(), *used)).collect();
            RelationNeed { relation: relation.clone(), privileges: *privileges, columns }
        };
        let relations = self.needed.borrow().iter().map(need).collect();
        let called = self.called();
        let fired = self.fired.borrow();
        let involved: BTreeSet<Callee> = called.iter().chain(fired.iter()).cloned().collect();
        let involved = involved.into_iter().collect();
        Needs { relations, called: called.into(), involved }
    }

    /// Triggers that call these functions may fire at a statement.
    pub fn note_fired(&self, functions: impl IntoIterator<Item = Callee>) {
        self.fired.borrow_mut().extend(functions);
    }

    /// The rows of the statement that a trigger fires at are a relation of this name.
    pub fn add_transition_table(&mut self, name: &str, number: usize, columns: &[(String, DataType)]) {
        let table = TransitionTable { name: name.to_string(), number, columns: columns.to_vec() };
        self.transition_tables.push(table);
    }

    /// The relation of this name, where it has the rows of the statement that a trigger fires at.
    pub fn transition_table(&self, name: &str) -> Option<&TransitionTable> {
        self.transition_tables.iter().find(|table| table.name == name)
    }

    /// Subscripts of the array in this slot begin at 0.
    pub fn count_from_zero(&mut self, slot: usize) {
        self.from_zero = Some(slot);
    }

    /// Whether subscripts of the array in this slot begin at 0.
    pub fn counts_from_zero(&self, slot: usize) -> bool {
        self.from_zero == Some(slot)
    }

    /// A statement reads a table as it was at an earlier height.
    ///
    /// # Errors
    /// `0A000` in what the ledger keeps: other nodes may keep other heights.
    pub fn note_past(&self) -> Result<(), SqlError> {
        self.note_reading_past("AS OF HEIGHT")
    }

    /// A statement asks what became of a row.
    ///
    /// # Errors
    /// As [`VariableScope::note_past`].
    pub fn note_history(&self) -> Result<(), SqlError> {
        self.note_reading_past("entente.history")
    }

    fn note_reading_past(&self, what: &'static str) -> Result<(), SqlError> {
        if self.script.is_none() || self.noted.is_some() {
            let error =
                SqlError::unsupported(format_args!("{what} in a function, procedure, trigger or view"));
            return Err(error.hint("Other nodes may keep less of the past. Use it in a SELECT of its own."));
        }
        self.reads_past.set(Some(what));
        Ok(())
    }

    /// With what a statement reads the past, if it does.
    pub fn reads_past(&self) -> Option<&'static str> {
        self.reads_past.get()
    }

    /// A constant stands for where the session looks for names, or for a setting.
    pub(crate) fn note_folded_session(&self) {
        self.folds_session.set(true);
    }

    /// Whether one does.
    pub(crate) fn folds_session(&self) -> bool {
        self.folds_session.get()
    }

    /// A statement calls this function or procedure.
    pub fn note_call(&self, routine: &Callee) {
        let mut called = self.called.borrow_mut();
        if !called.contains(routine) {
            called.insert(routine.clone());
        }
    }

    /// What has been bound as calls so far.
    pub fn called(&self) -> Vec<Callee> {
        self.called.borrow().iter().cloned().collect()
    }

    /// Opens a block inside the current one.
    pub fn push_block(&mut self, label: Option<String>) {
        self.blocks.push(Block { label, ..Block::default() });
    }

    /// Closes the innermost block: its names are unknown from now on, its slots stay taken.
    pub fn pop_block(&mut self) {
        self.blocks.pop();
    }

    /// How many blocks are open.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Declares a variable in the innermost block and gives its slot.
    ///
    /// # Errors
    /// `42601` where the block has that name already.
    pub fn declare(&mut self, name: &str, data_type: DataType) -> Result<usize, SqlError> {
        self.check_duplicate(name)?;
        let slot = self.add_slot(data_type);
        self.innermost().variables.push((name.to_string(), slot));
        Ok(slot)
    }

    /// Declares the next parameter: `$n`, and its name where it has one.
    ///
    /// # Errors
    /// `42601` where the name is taken.
    pub fn declare_parameter(&mut self, name: &str, data_type: DataType) -> Result<usize, SqlError> {
        let slot = if name.is_empty() { self.add_slot(data_type) } else { self.declare(name, data_type)? };
        self.positions.push(slot);
        Ok(slot)
    }

    /// Declares a row variable in the innermost block: one slot per field, reached as `name.field`. Gives the slots.
    ///
    /// # Errors
    /// `42601` where the block has that name already.
    pub fn declare_record(
        &mut self,
        name: &str,
        fields: &[(String, DataType)],
    ) -> Result<Vec<usize>, SqlError> {
        self.check_duplicate(name)?;
        let named: Vec<(String, usize)> =
            fields.iter().map(|(field, data_type)| (field.clone(), self.add_slot(*data_type))).collect();
        let slots = named.iter().map(|(_, slot)| *slot).collect();
        self.innermost().records.push((name.to_string(), named));
        Ok(slots)
    }

    /// Takes slots for values of these types.
    pub fn add_slots(&mut self, fields: &[(String, DataType)]) -> Vec<usize> {
        fields.iter().map(|(_, data_type)| self.add_slot(*data_type)).collect()
    }

    /// Gives the row variable whose first field stands in the slot `first`, and its aliases, these fields behind that one:
    /// a record of PL/pgSQL has those of what is assigned to it.
    pub fn set_fields(&mut self, first: usize, fields: &[(String, usize)]) {
        let records = self.blocks.iter_mut().flat_map(|block| &mut block.records);
        for (_, known) in records.filter(|(_, known)| known.first().is_some_and(|field| field.1 == first)) {
            known.truncate(1);
            known.extend_from_slice(fields);
        }
    }

    /// Declares another name for a variable in the innermost block.
    ///
    /// # Errors
    /// `42601` where the block has that name already.
    pub fn declare_alias(&mut self, name: &str, slot: usize) -> Result<(), SqlError> {
        self.check_duplicate(name)?;
        self.innermost().variables.push((name.to_string(), slot));
        Ok(())
    }

    /// Declares another name for a row variable in the innermost block.
    ///
    /// # Errors
    /// `42601` where the block has that name already.
    pub fn declare_record_alias(&mut self, name: &str, record: &str) -> Result<(), SqlError> {
        self.check_duplicate(name)?;
        let mut records = self.blocks.iter().rev().flat_map(|block| &block.records);
        let fields = records.find(|(known, _)| known == record).map(|(_, fields)| fields.clone());
        self.innermost().records.push((name.to_string(), fields.unwrap_or_default()));
        Ok(())
    }

    fn check_duplicate(&mut self, name: &str) -> Result<(), SqlError> {
        let block = self.innermost();
        let taken = block.variables.iter().any(|(known, _)| known == name)
            || block.records.iter().any(|(known, _)| known == name);
        if taken {
            let message = format!("duplicate declaration of \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(())
    }

    fn innermost(&mut self) -> &mut Block {
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        self.blocks.last_mut().expect("there is one now")
    }

    fn add_slot(&mut self, data_type: DataType) -> usize {
        self.types.push(data_type);
        self.types.len() - 1
    }

    /// Values that a frame of this scope holds.
    pub fn slots(&self) -> usize {
        self.types.len()
    }

    /// The variable of this name: one part, or `label.name`, `record.field` or `label.record.field`.
    pub fn resolve(&self, parts: &[&str]) -> Option<Variable> {
        let slot = self.blocks.iter().rev().find_map(|block| match parts {
            [name] => find(&block.variables, name),
            [qualifier, name] => block
                .records
                .iter()
                .find(|(record, _)| record == qualifier)
                .and_then(|(_, fields)| find(fields, name))
                .or_else(|| {
                    (block.label.as_deref() == Some(*qualifier)).then(|| find(&block.variables, name))?
                }),
            [label, qualifier, name] if block.label.as_deref() == Some(*label) => {
                let mut records = block.records.iter();
                find(&records.find(|(record, _)| record == qualifier)?.1, name)
            }
            _ => None,
        })?;
        Some(Variable { slot, data_type: self.types[slot] })
    }

    /// True where `name` is a row variable.
    pub fn is_record(&self, name: &str) -> bool {
        self.blocks.iter().any(|block| block.records.iter().any(|(record, _)| record == name))
    }

    /// Fields of the innermost row variable of this name, with their slots, in the order of declaration.
    pub fn record_fields(&self, name: &str) -> Option<Vec<(String, Variable)>> {
        let (_, fields) = self
            .blocks
            .iter()
            .rev()
            .find_map(|block| block.records.iter().find(|(known, _)| known == name))?;
        let variable = |slot: usize| Variable { slot, data_type: self.types[slot] };
        Some(fields.iter().map(|(field, slot)| (field.clone(), variable(*slot))).collect())
    }

    /// The parameter `$number`.
    ///
    /// # Errors
    /// `42P02` where there is none.
    pub fn parameter(&self, number: usize) -> Result<Variable, SqlError> {
        let known = 1..=limits::parameters_max(self.version());
        if let Some(types) = self.script.as_ref().filter(|_| known.contains(&number)) {
            let mut types = types.borrow_mut();
            if types.len() < number {
                types.resize(number, DataType::Unknown);
            }
            return Ok(Variable { slot: number - 1, data_type: types[number - 1] });
        }
        match number.checked_sub(1).and_then(|index| self.positions.get(index)) {
            Some(slot) => Ok(Variable { slot: *slot, data_type: self.types[*slot] }),
            None => {
                let message = format!("there is no parameter ${number}");
                Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message))
            }
        }
    }

    /// A use told the type of a script's parameter.
    pub fn infer(&self, slot: usize, data_type: DataType) {
        if let Some(types) = &self.script
            && let Some(known) = types.borrow_mut().get_mut(slot)
            && *known == DataType::Unknown
        {
            *known = data_type;
        }
    }

    /// Types of a script's parameters as far as they are known.
    pub fn parameter_types(&self) -> Vec<DataType> {
        self.script.as_ref().map(|types| types.borrow().clone()).unwrap_or_default()
    }

    /// Position of a span's begin in the source, in characters from 1.
    pub fn position(&self, span: Span) -> Option<u32> {
        position_in(self.source.as_deref()?, span.start)
    }

    /// The error at the span's position, where the source is known.
    pub fn located(&self, error: SqlError, span: Span) -> SqlError {
        match self.position(span) {
            Some(position) if error.position.is_none() => error.at(position),
            _ => error,
        }
    }
}

fn find(variables: &[(String, usize)], name: &str) -> Option<usize> {
    variables.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
}
