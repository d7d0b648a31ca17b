//! The variables of a procedure while it is compiled: what they hold, what they refuse, who uses them.

use crate::late_records::LateRecords;
use crate::position::or_at;
use crate::shape::{LoopRecords, RecordInfo};
use plan::expression::{FieldOwner, FieldStep, bind_data_type, bind_type_or_domain, field_path};
use plan::routines::Routines;
use plan::scope::VariableScope;
use plan::tables::Tables;
use sqlparser::ast as sql;
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::names::name_of;
use syntax::plpgsql::ast::{Declaration, DeclaredType, Name, NameConflict, Target};
use types::{CompositeTypes, DataType, ExecutionVersion, Language, SqlError, SqlState, TypeId};

/// What is known of a slot that has a name.
#[derive(Clone, Debug)]
pub(super) struct VariableInfo {
    /// Where it stands in the frame.
    pub slot: u16,
    /// As it is declared.
    pub name: String,
    /// As it is declared; of a domain the type that it is of.
    pub data_type: DataType,
    /// The domain that it is declared with: what is assigned is held against it.
    pub domain: Option<DataType>,
    /// CONSTANT
    pub constant: bool,
    /// NOT NULL
    pub not_null: bool,
}

impl VariableInfo {
    /// The number of that domain.
    pub fn domain_number(&self) -> Option<TypeId> {
        match self.domain {
            Some(DataType::Domain(id)) => Some(id),
            _ => None,
        }
    }

    /// The type that assigned values become values of.
    pub fn assigned_type(&self) -> DataType {
        self.domain.unwrap_or(self.data_type)
    }
}

/// The names in an expression or statement that ask for something first.
#[derive(Clone, Debug, Default)]
pub(super) struct NamesUsed {
    /// It reads FOUND.
    pub found: bool,
    /// Flag and name of each record that may have no row yet.
    pub unassigned_records: Vec<(u16, Box<str>)>,
}

/// The variables of a procedure.
pub(super) struct Variables {
    pub(super) scope: VariableScope,
    pub(super) by_slot: Vec<Option<VariableInfo>>,
    pub(super) records: Vec<RecordInfo>,
    /// The loops around the statement that is compiled, and what records they began with.
    pub(super) loops: Vec<LoopRecords>,
    /// Slot of FOUND.
    pub(super) found: u16,
    /// The records whose columns running tells.
    pub(super) late: LateRecords,
}

impl Variables {
    /// FOUND, and an empty block for the parameters, which has the procedure's name as its label.
    pub(super) fn new(
        procedure: &str,
        body: Arc<str>,
        routines: &Routines,
        language: Language,
        late: LateRecords,
    ) -> Result<Variables, SqlError> {
        let scope = VariableScope::for_procedure(Some(body)).with_routines(routines);
        let scope = match language {
            Language::PlPgSql => scope,
            Language::Sql => {
                let mut scope = scope;
                scope.decide_conflicts(NameConflict::Column);
                scope
            }
        };
        let (by_slot, records, loops) = (Vec::new(), Vec::new(), Vec::new());
        let mut variables = Variables { scope, by_slot, records, loops, found: 0, late };
        variables.found = variables.declare_plain("found", DataType::Boolean)?;
        variables.scope.push_block(Some(procedure.to_string()));
        Ok(variables)
    }

    /// The scope that expressions are bound in.
    pub(super) fn scope(&self) -> &VariableScope {
        &self.scope
    }

    /// Names by slot; empty where a slot has none.
    pub(super) fn names(&self) -> Box<[Box<str>]> {
        let name = |info: &Option<VariableInfo>| info.as_ref().map_or("", |info| info.name.as_str()).into();
        self.by_slot.iter().map(name).collect()
    }

    /// Values in the frame.
    ///
    /// # Errors
    /// 54000 for more than an instruction can name.
    pub(super) fn slots(&self) -> Result<usize, SqlError> {
        to_slot(self.scope.slots()).map(usize::from)
    }

    /// Opens a block.
    pub(super) fn push_block(&mut self, label: Option<&Name>) {
        self.scope.push_block(label.map(|label| label.text.clone()));
    }

    /// How many are open.
    pub(super) fn blocks(&self) -> usize {
        self.scope.blocks()
    }

    /// Closes those behind so many.
    pub(super) fn back_to_blocks(&mut self, count: usize) {
        while self.scope.blocks() > count {
            self.scope.pop_block();
        }
    }

    /// Closes it.
    pub(super) fn pop_block(&mut self) {
        self.scope.pop_block();
    }

    pub(super) fn remember(&mut self, slot: usize, info: VariableInfo) {
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        self.by_slot[slot] = Some(info);
    }

    /// A parameter.
    pub(super) fn declare_parameter(&mut self, name: &str, data_type: DataType) -> Result<u16, SqlError> {
        if name == "found" {
            // PostgreSQL accepts it and hides it behind its own FOUND.
            return Err(
                SqlError::unsupported("a parameter with the name of FOUND").hint("Choose another name.")
            );
        }
        let (data_type, domain) = self.split_domain(data_type);
        let slot = self.scope.declare_parameter(name, data_type)?;
        let info = VariableInfo {
            slot: to_slot(slot)?,
            name: name.to_string(),
            data_type,
            domain,
            constant: false,
            not_null: false,
        };
        self.remember(slot, info);
        to_slot(slot)
    }

    /// What a variable of this type holds, and the domain that it is of.
    fn split_domain(&self, data_type: DataType) -> (DataType, Option<DataType>) {
        let domain = matches!(data_type, DataType::Domain(_)).then_some(data_type);
        (self.scope.routines().types().base_of(data_type), domain)
    }

    /// A variable that refuses nothing.
    pub(super) fn declare_plain(&mut self, name: &str, data_type: DataType) -> Result<u16, SqlError> {
        let slot = self.scope.declare(name, data_type)?;
        let info = VariableInfo {
            slot: to_slot(slot)?,
            name: name.to_string(),
            data_type,
            domain: None,
            constant: false,
            not_null: false,
        };
        self.remember(slot, info);
        to_slot(slot)
    }

    /// A scalar variable of a DECLARE section.
    pub(super) fn declare(
        &mut self,
        declaration: &Declaration,
        data_type: DataType,
    ) -> Result<u16, SqlError> {
        let name = &declaration.name;
        let (data_type, domain) = self.split_domain(data_type);
        let declared = self.scope.declare(&name.text, data_type);
        let slot = declared.map_err(|error| or_at(error, name.position))?;
        let info = VariableInfo {
            slot: to_slot(slot)?,
            name: name.text.clone(),
            data_type,
            domain,
            constant: declaration.constant,
            not_null: declaration.not_null,
        };
        self.remember(slot, info);
        to_slot(slot)
    }

    /// Another name for a variable, a record or a parameter.
    ///
    /// # Errors
    /// `42704` where there is no such variable, `42601` where the name is taken.
    pub(super) fn declare_alias(&mut self, name: &Name, target: &Target) -> Result<(), SqlError> {
        let parts: Vec<&str> = target.parts.iter().map(|part| part.text.as_str()).collect();
        let declared = match self.is_record(target) {
            true => self.scope.declare_record_alias(&name.text, parts[0]),
            false => {
                let unknown = |_| {
                    let message = format!("variable \"{}\" does not exist", target.text());
                    SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(target.position())
                };
                let slot = usize::from(self.scalar(target).map_err(unknown)?.slot);
                self.scope.declare_alias(&name.text, slot)
            }
        };
        declared.map_err(|error| or_at(error, name.position))
    }

    /// Subscripts of the array in this slot begin at 0.
    pub(super) fn count_from_zero(&mut self, slot: u16) {
        self.scope.count_from_zero(usize::from(slot));
    }

    /// The rows of a statement, as a relation with the columns of its table.
    pub(super) fn add_transition_table(&mut self, name: &str, number: usize, columns: &[(String, DataType)]) {
        self.scope.add_transition_table(name, number, columns);
    }

    /// What names are that are both variables and columns.
    pub(super) fn decide_conflicts(&mut self, conflict: NameConflict) {
        self.scope.decide_conflicts(conflict);
    }

    /// The type of a declaration; `None` for a record.
    pub(super) fn declared_type(
        &self,
        tables: &Tables,
        declaration: &Declaration,
    ) -> Result<Option<DataType>, SqlError> {
        match &declaration.declared {
            DeclaredType::Record | DeclaredType::Row(_) => Ok(None),
            DeclaredType::Scalar(data_type, position) => {
                let types = self.scope.routines().types();
                let bound = match self.scope.routines().version() >= ExecutionVersion::V9 {
                    true => bind_type_or_domain(types, data_type),
                    false => bind_data_type(types, data_type),
                };
                bound.map(Some).map_err(|error| or_at(error, *position))
            }
            DeclaredType::Cursor { .. } | DeclaredType::Alias(_) => Ok(Some(DataType::RefCursor)),
            DeclaredType::Like(target) => {
                self.type_of(tables, target).map(Some).map_err(|error| or_at(error, target.position()))
            }
        }
    }

    /// The type of `variable%TYPE` or `table.column%TYPE`.
    fn type_of(&self, tables: &Tables, target: &Target) -> Result<DataType, SqlError> {
        let parts: Vec<&str> = target.parts.iter().map(|part| part.text.as_str()).collect();
        if let Some(variable) = self.scope.resolve(&parts) {
            let declared = self.at_slot(variable.slot).map(VariableInfo::assigned_type);
            return Ok(declared.unwrap_or(variable.data_type));
        }
        let of_schema;
        let parts = match parts.as_slice() {
            [schema, table, column] => {
                of_schema = format!("{schema}.{table}");
                vec![of_schema.as_str(), *column]
            }
            other => other.to_vec(),
        };
        match parts.as_slice() {
            [table, column] => {
                let columns = tables.columns_of(table)?;
                let found = columns.iter().find(|(name, _)| name == column).ok_or_else(|| {
                    let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
                })?;
                Ok(found.1)
            }
            [_] => {
                let message = format!("variable \"{}\" does not exist", target.text());
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
            _ => Err(SqlError::unsupported("a database in %TYPE")),
        }
    }

    /// The scalar variable that an assignment names.
    ///
    /// # Errors
    /// 42601 where there is none, 22005 for a CONSTANT, 0A000 for a whole record.
    pub(super) fn assignable(&self, target: &Target) -> Result<VariableInfo, SqlError> {
        let info = self.scalar(target)?;
        match info.constant {
            true => Err(constant(&info.name).at(target.position())),
            false => Ok(info),
        }
    }

    /// The scalar variable of this name, which may be a CONSTANT.
    ///
    /// # Errors
    /// 42601 where there is none, 0A000 for a whole record.
    pub(super) fn scalar(&self, target: &Target) -> Result<VariableInfo, SqlError> {
        let parts: Vec<&str> = target.parts.iter().map(|part| part.text.as_str()).collect();
        let position = target.position();
        let by_number = match parts.as_slice() {
            [text] => text.strip_prefix('$').and_then(|number| number.parse().ok()),
            _ => None,
        };
        let slot = match by_number {
            Some(number) => Some(self.scope.parameter(number).map_err(|error| or_at(error, position))?.slot),
            None => self.scope.resolve(&parts).map(|variable| variable.slot),
        };
        let Some(slot) = slot else { return Err(self.not_assignable(target)) };
        if let Some(record) = self.records.iter().find(|record| record.has(slot)) {
            self.note_shape_used(record);
        }
        self.by_slot.get(slot).cloned().flatten().ok_or_else(|| self.not_assignable(target))
    }

    /// The variable of a composite type and the way to its field that an assignment names; `None` where it names none.
    ///
    /// # Errors
    /// 42703 for a field that there is not, 22005 for a CONSTANT.
    pub(super) fn composite_field(
        &self,
        types: &CompositeTypes,
        target: &Target,
    ) -> Result<Option<(VariableInfo, Vec<FieldStep>)>, SqlError> {
        let parts: Vec<&str> = target.parts.iter().map(|part| part.text.as_str()).collect();
        if self.scope.resolve(&parts).is_some() {
            return Ok(None);
        }
        for length in (1..parts.len()).rev() {
            let Some(variable) = self.scope.resolve(&parts[..length]) else { continue };
            if types.of(variable.data_type).is_none() {
                continue;
            }
            let Some(info) = self.at_slot(variable.slot).cloned() else { continue };
            if info.constant {
                return Err(constant(&info.name));
            }
            let owner = FieldOwner::Variable(parts[length - 1]);
            let path = field_path(types, owner, variable.data_type, &parts[length..]);
            return path.map(|path| Some((info, path)));
        }
        Ok(None)
    }

    /// The variable that stands in a slot.
    pub(super) fn at_slot(&self, slot: usize) -> Option<&VariableInfo> {
        self.by_slot.get(slot)?.as_ref()
    }

    pub(super) fn not_assignable(&self, target: &Target) -> SqlError {
        let position = target.position();
        match target.parts.as_slice() {
            [name] if self.record(&name.text).is_some() => {
                SqlError::unsupported("assigning to a whole record other than by SELECT INTO or FOR")
                    .at(position)
            }
            [record, field] if self.record(&record.text).is_some_and(|record| record.shape.is_some()) => {
                no_field(&record.text, &field.text).at(position)
            }
            [record, _] if self.late_record(&record.text).is_some() => {
                let what = format_args!(
                    "assigning a field of record \"{}\", whose columns only running tells,",
                    record.text
                );
                SqlError::unsupported(what).hint("Declare it as table%ROWTYPE.").at(position)
            }
            [record, _] if self.record(&record.text).is_some_and(|record| record.mixed) => {
                self.mixed(&record.text).at(position)
            }
            [record, _] if self.record(&record.text).is_some() => not_assigned(&record.text).at(position),
            _ => {
                let message = format!("\"{}\" is not a known variable", target.text());
                SqlError::new(SqlState::SYNTAX_ERROR, message).at(position)
            }
        }
    }

    /// What the names in an expression or statement ask for.
    ///
    /// # Errors
    /// 42703 for a field that a record does not have, 55000 for a record that cannot have a row yet, 0A000 for one whose rows
    /// may have different columns.
    pub(super) fn names_used<T: sql::Visit>(&self, tree: &T) -> Result<NamesUsed, SqlError> {
        let mut used = NamesUsed::default();
        let flow = sql::visit_expressions(tree, |expression| {
            let checked = match expression {
                sql::Expr::Identifier(name) => self.name_used(&[name], &mut used),
                sql::Expr::CompoundIdentifier(names) => {
                    self.name_used(&names.iter().collect::<Vec<_>>(), &mut used)
                }
                _ => Ok(()),
            };
            match checked {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        match flow {
            ControlFlow::Continue(()) => Ok(used),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn name_used(&self, names: &[&sql::Ident], used: &mut NamesUsed) -> Result<(), SqlError> {
        let Some(first) = names.first() else { return Ok(()) };
        let names: Vec<String> = names.iter().map(|name| name_of(name)).collect::<Result<_, _>>()?;
        let parts: Vec<&str> = names.iter().map(String::as_str).collect();
        let resolved = self.scope.resolve(&parts);
        used.found |= resolved.is_some_and(|variable| variable.slot == usize::from(self.found));
        let of_label = match (parts.as_slice(), resolved) {
            ([_, _, _], Some(variable)) => self.records.iter().find(|record| record.has(variable.slot)),
            _ => None,
        };
        let Some(record) = of_label.or_else(|| self.record(parts[0])) else { return Ok(()) };
        if self.late_record(parts[0]).is_some() {
            return Ok(());
        }
        let error = match (parts.as_slice(), resolved) {
            ([_], None) if record.shape.is_some() => {
                self.note_shape_used(record);
                return Ok(());
            }
            ([_], None) if record.mixed => self.mixed(&record.name),
            ([_], None) => not_assigned(&record.name),
            ([_, field], None) => match &record.shape {
                Some(_) => no_field(&record.name, field),
                None if record.mixed => self.mixed(&record.name),
                None => not_assigned(&record.name),
            },
            (_, Some(variable)) => {
                let is_field = record.has(variable.slot);
                if is_field {
                    self.note_shape_used(record);
                }
                let known = used.unassigned_records.iter().any(|(flag, _)| *flag == record.flag);
                if is_field && !record.assigned && !known {
                    used.unassigned_records.push((record.flag, record.name.as_str().into()));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        Err(self.scope.located(error, first.span))
    }
}

/// A position in the frame as instructions hold it.
pub(super) fn to_slot(slot: usize) -> Result<u16, SqlError> {
    u16::try_from(slot).map_err(|_| {
        let message = format!("a procedure has more than {} variables and fields", u16::MAX);
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    })
}

/// What assigning to a CONSTANT ends with.
pub(super) fn constant(name: &str) -> SqlError {
    SqlError::new(SqlState(*b"22005"), format!("variable \"{name}\" is declared CONSTANT"))
}

fn no_field(record: &str, field: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("record \"{record}\" has no field \"{field}\""))
}

/// What reading a record without a row ends with.
pub(super) fn not_assigned(record: &str) -> SqlError {
    SqlError::new(SqlState(*b"55000"), format!("record \"{record}\" is not assigned yet"))
        .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}
