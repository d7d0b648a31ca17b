//! The records of a procedure while it is compiled.
//!
//! A record takes the columns of whatever is assigned to it last, so which fields it has depends on the place in the
//! program. Each set of columns is a shape with slots of its own. Where ways meet that have left different shapes
//! behind, the record is mixed, and its fields cannot be named until it is assigned again.

use crate::coercion::coercion;
use crate::late::NamedRecord;
use crate::position::or_at;
use crate::shape::{Branches, LoopRecords, RecordInfo, RecordState, Shape};
use crate::target::{Coercion, Store};
use crate::variables::{VariableInfo, Variables, constant, not_assigned, to_slot};
use plan::expand_rows::expand_rows;
use plan::expression::Expression;
use plan::tables::Tables;
use sqlparser::ast as sql;
use std::cell::RefCell;
use std::rc::Rc;
use syntax::plpgsql::ast::{Declaration, Target};
use types::{DataType, SqlError};

/// Name of the hidden field that says whether a record has a row. No identifier can be this.
const ASSIGNED_FIELD: &str = "\0assigned";

impl Variables {
    /// Whether a record is declared with its columns.
    pub(super) fn is_fixed(&self, target: &Target) -> bool {
        matches!(target.parts.as_slice(), [name] if self.record(&name.text).is_some_and(|record| record.fixed))
    }

    /// A record; gives the slot of its flag. Its fields come with what is assigned to it.
    pub(super) fn declare_record(&mut self, declaration: &Declaration) -> Result<u16, SqlError> {
        let name = &declaration.name;
        if declaration.default.is_some() || declaration.not_null {
            let error = SqlError::unsupported("a default or NOT NULL for a record");
            return Err(error.at(name.position));
        }
        self.add_record(&name.text, declaration.constant).map_err(|error| or_at(error, name.position))
    }

    fn add_record(&mut self, name: &str, constant: bool) -> Result<u16, SqlError> {
        let hidden = [(ASSIGNED_FIELD.to_string(), DataType::Boolean)];
        let flag = to_slot(self.scope.declare_record(name, &hidden)?[0])?;
        self.records.push(RecordInfo {
            flag,
            name: name.to_string(),
            constant,
            shape: None,
            mixed: false,
            shapes: Vec::new(),
            changes: 0,
            fixed: false,
            assigned: false,
        });
        Ok(flag)
    }

    /// A row of a table: a record whose columns are known and NULL. Gives the slots of its fields.
    pub(super) fn declare_row(
        &mut self,
        tables: &Tables,
        declaration: &Declaration,
        of: &Target,
    ) -> Result<Vec<u16>, SqlError> {
        let fields = match of.parts.as_slice() {
            [table] => tables.columns_of(&table.text),
            [schema, table] => tables.columns_of(&format!("{}.{}", schema.text, table.text)),
            _ => Err(SqlError::unsupported("a database in %ROWTYPE")),
        };
        let fields = fields.map_err(|error| or_at(error, of.position()))?;
        self.declare_record(declaration)?;
        let index = self.records.len() - 1;
        let shape = self.define(index, &fields)?;
        let record = &mut self.records[index];
        (record.fixed, record.assigned) = (true, true);
        Ok(shape.slots.clone())
    }

    /// A row that the caller gives: a record with these columns. Gives the slots of its flag, which says whether there is a
    /// row, and of its fields.
    pub(super) fn declare_given_row(
        &mut self,
        name: &str,
        fields: &[(String, DataType)],
    ) -> Result<Vec<u16>, SqlError> {
        let flag = self.add_record(name, false)?;
        let index = self.records.len() - 1;
        let shape = self.define(index, fields)?;
        let record = &mut self.records[index];
        (record.fixed, record.assigned) = (true, true);
        Ok(std::iter::once(flag).chain(shape.slots.iter().copied()).collect())
    }

    /// The slot of a record's flag, and its fields as they stand; none as long as nothing has told what they are.
    ///
    /// # Errors
    /// 42601 where there is no such record, 0A000 where its rows may have different columns.
    pub(super) fn record_values(&self, target: &Target) -> Result<(u16, Vec<Expression>), SqlError> {
        let record = target.parts.first().and_then(|name| self.record(&name.text));
        let record = record.ok_or_else(|| self.not_assignable(target))?;
        if record.mixed {
            return Err(self.mixed(&record.name).at(target.position()));
        }
        self.note_shape_used(record);
        let fields = record.shape.iter().flat_map(|shape| shape.slots.iter().zip(&shape.fields));
        let value = |(slot, (_, data_type)): (&u16, &(String, DataType))| {
            Expression::slot(usize::from(*slot), *data_type)
        };
        Ok((record.flag, fields.map(value).collect()))
    }

    /// The slot of the flag of the record that a field belongs to.
    pub(super) fn flag_of(&self, field: &Target) -> Option<u16> {
        match field.parts.as_slice() {
            [record, _] => self.record(&record.text).map(|record| record.flag),
            _ => None,
        }
    }

    /// An expression or statement with its whole rows written out; `None` where it has none.
    pub(super) fn expanded<T: sql::Visit + sql::VisitMut + Clone>(&self, tree: &T) -> Option<T> {
        if self.records.is_empty() {
            return None;
        }
        let fields = |name: &str| {
            let shape = self.record(name)?.shape.as_ref()?;
            Some(shape.fields.iter().map(|(field, _)| field.clone()).collect::<Vec<String>>())
        };
        let mut expanded = tree.clone();
        expand_rows(&mut expanded, &fields);
        Some(expanded)
    }

    /// Gives a record these fields, from here on.
    fn define(&mut self, index: usize, fields: &[(String, DataType)]) -> Result<Rc<Shape>, SqlError> {
        let known = self.records[index].shapes.iter().find(|shape| shape.fields == fields).cloned();
        let shape = match known {
            Some(known) => known,
            None => self.new_shape(index, fields)?,
        };
        self.records[index].changes += 1;
        self.set_shape(index, Some(shape.clone()), false);
        Ok(shape)
    }

    fn new_shape(&mut self, index: usize, fields: &[(String, DataType)]) -> Result<Rc<Shape>, SqlError> {
        let name = self.records[index].name.clone();
        let slots = self.scope.add_slots(fields);
        let slots = slots.into_iter().map(to_slot).collect::<Result<Vec<u16>, SqlError>>()?;
        for (slot, (field, data_type)) in slots.iter().zip(fields) {
            let info = VariableInfo {
                slot: *slot,
                name: format!("{name}.{field}"),
                data_type: *data_type,
                domain: None,
                constant: false,
                not_null: false,
            };
            self.remember(usize::from(*slot), info);
        }
        let shape = Rc::new(Shape { fields: fields.to_vec(), slots });
        self.records[index].shapes.push(shape.clone());
        Ok(shape)
    }

    /// The fields that can be named from here on.
    fn set_shape(&mut self, index: usize, shape: Option<Rc<Shape>>, mixed: bool) {
        let record = &mut self.records[index];
        record.mixed = mixed;
        if same_shape(&record.shape, &shape) {
            return;
        }
        let named: Vec<(String, usize)> = match &shape {
            Some(shape) => {
                let slots = shape.slots.iter().map(|slot| usize::from(*slot));
                shape.fields.iter().map(|(name, _)| name.clone()).zip(slots).collect()
            }
            None => Vec::new(),
        };
        self.scope.set_fields(usize::from(record.flag), &named);
        record.shape = shape;
    }

    /// Names and types of a record's fields; `None` where nothing has told them.
    ///
    /// # Errors
    /// 42601 where there is no such record.
    pub(super) fn fields(&self, target: &Target) -> Result<Option<Vec<(String, DataType)>>, SqlError> {
        let [name] = target.parts.as_slice() else { return Err(self.not_assignable(target)) };
        let record = self.record(&name.text).ok_or_else(|| self.not_assignable(target))?;
        self.note_shape_used(record);
        Ok(record.shape.as_ref().map(|shape| shape.fields.clone()))
    }

    /// Names of a record's fields.
    ///
    /// # Errors
    /// As [`Variables::fields`]; 55000 where no row can have been assigned yet, 0A000 where rows of different columns may
    /// have been.
    pub(super) fn field_names(&self, target: &Target) -> Result<Vec<String>, SqlError> {
        let fields = self.fields(target)?.ok_or_else(|| {
            let name = target.text();
            let is_mixed = self.record(&name).is_some_and(|record| record.mixed);
            if is_mixed { self.mixed(&name) } else { not_assigned(&name) }
        })?;
        Ok(fields.into_iter().map(|(name, _)| name).collect())
    }

    /// What naming a field of a record ends with whose rows may have different columns, where running does not tell them.
    pub(super) fn mixed(&self, name: &str) -> SqlError {
        self.note_late(name);
        mixed(name)
    }

    /// Only running tells the columns of the record of this name.
    pub(super) fn note_late(&self, name: &str) {
        if let Some(index) = self.record_index(name) {
            self.late.note(index);
        }
    }

    /// The number of the innermost record of this name, where running tells its columns.
    pub(super) fn late_record(&self, name: &str) -> Option<u16> {
        let index = self.record_index(name).filter(|index| self.late.has(*index))?;
        u16::try_from(index).ok()
    }

    /// All records, by number.
    pub(super) fn named_records(&self) -> Box<[NamedRecord]> {
        let named =
            |record: &RecordInfo| NamedRecord { flag: record.flag, name: record.name.as_str().into() };
        self.records.iter().map(named).collect()
    }

    /// Index of the innermost record of this name.
    fn record_index(&self, name: &str) -> Option<usize> {
        let fields = self.scope.record_fields(name)?;
        let flag = fields.first()?.1.slot;
        self.records.iter().position(|record| usize::from(record.flag) == flag)
    }

    pub(super) fn record(&self, name: &str) -> Option<&RecordInfo> {
        self.record_index(name).map(|index| &self.records[index])
    }

    /// True where a target is a record and nothing else.
    pub(super) fn is_record(&self, target: &Target) -> bool {
        match target.parts.as_slice() {
            [name] => {
                self.scope.resolve(&[name.text.as_str()]).is_none() && self.record(&name.text).is_some()
            }
            _ => false,
        }
    }

    /// A record gets rows with these columns: stores for each, and the slot of its flag.
    ///
    /// # Errors
    /// 22005 for a CONSTANT, 42804 where a declared column cannot get what is assigned.
    pub(super) fn assign_record(
        &mut self,
        target: &Target,
        columns: &[(String, DataType)],
    ) -> Result<(Vec<Store>, u16), SqlError> {
        let name = &target.parts[0].text;
        let position = target.position();
        let Some(index) = self.record_index(name) else { return Err(self.not_assignable(target)) };
        if self.late.has(index) {
            let what =
                format_args!("assigning to the whole record \"{name}\", whose columns only running tells,");
            return Err(SqlError::unsupported(what).hint("Use SELECT … INTO.").at(position));
        }
        if self.records[index].constant {
            return Err(constant(name).at(position));
        }
        let shape = match self.records[index].shape.clone() {
            Some(shape) if self.records[index].fixed => {
                let found =
                    |position: usize| columns.get(position).map_or(DataType::Unknown, |column| column.1);
                let mut stores = Vec::with_capacity(shape.fields.len());
                for (position, ((field, data_type), slot)) in
                    shape.fields.iter().zip(&shape.slots).enumerate()
                {
                    let what = format!("field \"{field}\" of \"{name}\"");
                    let coercion = coercion(found(position), *data_type, &what);
                    let coercion = coercion.map_err(|error| or_at(error, target.position()))?;
                    stores.push(Store { slot: *slot, coercion, not_null: None, domain: None });
                }
                return Ok((stores, self.records[index].flag));
            }
            Some(shape) if shape.fields == columns => shape,
            _ => self.define(index, columns)?,
        };
        let record = &mut self.records[index];
        record.assigned = true;
        let store =
            |slot: &u16| Store { slot: *slot, coercion: Coercion::None, not_null: None, domain: None };
        Ok((shape.slots.iter().map(store).collect(), record.flag))
    }

    /// What is known of every record here.
    pub(super) fn record_states(&self) -> Vec<RecordState> {
        let state = |record: &RecordInfo| RecordState {
            shape: record.shape.clone(),
            mixed: record.mixed,
            changes: record.changes,
            assigned: record.assigned,
        };
        self.records.iter().map(state).collect()
    }

    /// What was known at that place is known here: what is between has not run.
    pub(super) fn restore(&mut self, before: &[RecordState]) {
        for (index, state) in before.iter().enumerate() {
            self.set_shape(index, state.shape.clone(), state.mixed);
            self.records[index].assigned = self.records[index].fixed || state.assigned;
        }
    }

    /// A part of the program has ended that may have been left anywhere, or not have run at all.
    pub(super) fn left_anywhere(&mut self, before: &[RecordState]) {
        for (index, state) in before.iter().enumerate() {
            let record = &self.records[index];
            let only = record.shapes.len() == 1 && !state.mixed;
            let (shape, mixed) = match record.changes - state.changes {
                0 => (state.shape.clone(), state.mixed),
                // Either this or nothing.
                _ if only => (record.shapes.first().cloned(), false),
                _ => (None, true),
            };
            self.set_shape(index, shape, mixed);
            self.records[index].assigned = self.records[index].fixed || state.assigned;
        }
    }

    /// A loop begins.
    pub(super) fn enter_loop(&mut self) {
        let before = self.record_states();
        self.loops.push(LoopRecords { before, used: RefCell::default() });
    }

    /// It ends.
    ///
    /// # Errors
    /// 0A000 where it uses fields of rows from in front of it, and assigns rows of other columns: its next turn would
    /// use those.
    pub(super) fn leave_loop(&mut self) -> Result<(), SqlError> {
        let Some(left) = self.loops.pop() else { return Ok(()) };
        for index in left.used.into_inner() {
            let record = &self.records[index];
            if record.changes > left.before[index].changes && record.shapes.len() > 1 {
                self.late.note(index);
                return Err(mixed(&record.name));
            }
        }
        Ok(())
    }

    /// The fields of a record are used.
    pub(super) fn note_shape_used(&self, record: &RecordInfo) {
        let Some(index) = self.records.iter().position(|known| known.flag == record.flag) else { return };
        for around in &self.loops {
            let before = around.before.get(index);
            if before.is_some_and(|before| same_shape(&before.shape, &record.shape)) {
                around.used.borrow_mut().insert(index);
            }
        }
    }
}

impl Branches {
    /// Ways part.
    pub fn new(variables: &Variables) -> Branches {
        Branches { before: variables.record_states(), ends: Vec::new() }
    }

    /// The end of one of them: the next one begins. `goes_on`: it comes to where they meet.
    pub fn end(&mut self, variables: &mut Variables, goes_on: bool) {
        if goes_on {
            self.ends.push(variables.record_states());
        }
        variables.restore(&self.before);
    }

    /// They meet.
    pub fn meet(self, variables: &mut Variables) {
        for index in 0..self.before.len() {
            let mut ends = self.ends.iter().map(|end| &end[index]);
            let is_mixed = ends.clone().any(|end| end.mixed);
            let first = ends.clone().find_map(|end| end.shape.clone());
            let differs = ends.any(|end| end.shape.is_some() && !same_shape(&end.shape, &first));
            match (self.ends.is_empty(), is_mixed || differs) {
                (true, _) => {}
                (false, true) => variables.set_shape(index, None, true),
                (false, false) => variables.set_shape(index, first, false),
            }
        }
    }
}

fn same_shape(a: &Option<Rc<Shape>>, b: &Option<Rc<Shape>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// What naming a field of a record ends with whose rows may have different columns.
fn mixed(record: &str) -> SqlError {
    SqlError::unsupported(format_args!("rows of different columns in record \"{record}\""))
        .hint("Declare another record for the other query.")
}
