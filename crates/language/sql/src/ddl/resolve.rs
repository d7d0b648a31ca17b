//! From the names that a statement gives to those of the catalog, by the search path that counts for the statement.

use crate::ddl::alter::TableChange;
use crate::ddl::change::SchemaChange;
use crate::ddl::columns::ColumnChange;
use crate::ddl::constraints::NewConstraint;
use crate::ddl::materialized_views::MaterializedChange;
use crate::ddl::names::{Qualify, rename_in_expr, rename_in_expression_text, rename_in_type};
use crate::ddl::relations::relation_exists;
use crate::ddl::tables::TableDraft;
use crate::ddl::triggers::TriggerChange;
use plan::expression::bind_routine_type;
use sqlparser::ast::{ColumnDef, ColumnOption};
use syntax::parse::alter_type::TypeChange;
use syntax::parse::comment::CommentedObject;
use syntax::parse::domain::DomainChange;
use syntax::parse::grant::{NamedRoutine, Objects};
use syntax::parse::role::RoleStatement;
use syntax::parse::sequence::SequenceStatement;
use types::{
    Catalog, CompositeTypes, DataType, ExecutionVersion, SearchPath, SqlError, SqlState, as_given,
    object_name, split_catalog_name,
};

/// Where the names of a statement are looked for.
struct Resolver<'c> {
    catalog: &'c Catalog,
    path: &'c SearchPath,
    version: ExecutionVersion,
}

/// The change with names of the catalog in the place of those that the statement gives.
///
/// # Errors
/// `3F000` for a schema that is not there.
pub(super) fn resolved(
    catalog: &Catalog,
    (path, version): (&SearchPath, ExecutionVersion),
    change: &SchemaChange,
) -> Result<SchemaChange, SqlError> {
    let mut change = change.clone();
    Resolver { catalog, path, version }.resolve(&mut change)?;
    Ok(change)
}

impl Resolver<'_> {
    fn resolve(&self, change: &mut SchemaChange) -> Result<(), SqlError> {
        match change {
            SchemaChange::CreateTable { draft, .. } => self.table_draft(draft),
            SchemaChange::CreatePartition(_) | SchemaChange::AlterPartition(..) => {
                self.partition_change(change)
            }
            SchemaChange::CreateTableAs(draft) => {
                draft.search_path = self.path.clone();
                self.new_name(&mut draft.name)
            }
            SchemaChange::CreateIndex { table, index, .. } => {
                self.relation(table)?;
                if let Some(name) = &mut index.name {
                    *name = object_name(name).to_string();
                }
                index.texts_mut().try_for_each(|text| self.text(text))
            }
            SchemaChange::AlterTable { if_exists, name, changes } => {
                self.relation_if(*if_exists, name)?;
                changes.iter_mut().try_for_each(|change| self.table_change(change))
            }
            SchemaChange::DropIndex { if_exists, names }
            | SchemaChange::DropTable { if_exists, names, .. }
            | SchemaChange::DropView { if_exists, names, .. }
            | SchemaChange::DropSequence { if_exists, names, .. } => {
                names.iter_mut().try_for_each(|name| self.relation_if(*if_exists, name))
            }
            SchemaChange::CreateView(draft) => {
                draft.search_path = self.path.clone();
                self.new_name(&mut draft.name)
            }
            SchemaChange::Materialized(change) => self.materialized(change),
            SchemaChange::AlterView(alter) => self.relation_if(alter.if_exists, &mut alter.name),
            SchemaChange::Sequence(statement) => self.sequence(statement),
            SchemaChange::CreateRoutine { procedure, .. } => {
                for default in procedure.parameters.iter_mut().filter_map(|one| one.default.as_mut()) {
                    self.text(default)?;
                }
                self.new_name(&mut procedure.name)
            }
            SchemaChange::AlterRoutine(alter) => self.one_of(&mut alter.routine),
            SchemaChange::DropRoutine(drop) => {
                let if_exists = drop.if_exists;
                drop.names.iter_mut().try_for_each(|(name, _)| self.routine(if_exists, name))
            }
            SchemaChange::CreateType(_)
            | SchemaChange::DropType { .. }
            | SchemaChange::AlterType(_)
            | SchemaChange::AlterDomain(..) => self.type_change(change),
            SchemaChange::CreateAggregate { aggregate, .. } => {
                self.routine(true, &mut aggregate.transition)?;
                aggregate.result.iter_mut().try_for_each(|name| self.routine(true, name))?;
                self.new_name(&mut aggregate.name)
            }
            SchemaChange::DropAggregate(drop) => {
                let if_exists = drop.if_exists;
                drop.names.iter_mut().try_for_each(|(name, _)| self.routine(if_exists, name))
            }
            SchemaChange::Trigger(change) => self.trigger(change),
            SchemaChange::Policy(statement) => {
                statement.texts_mut().try_for_each(|text| self.text(text))?;
                self.relation_if(statement.is_if_exists(), &mut statement.table)
            }
            SchemaChange::Role(RoleStatement::Privileges(statement)) => self.objects(&mut statement.objects),
            SchemaChange::Role(RoleStatement::Owner { objects: Some(objects), .. }) => self.objects(objects),
            SchemaChange::Comment(comment) => self.commented(&mut comment.object),
            SchemaChange::Role(_)
            | SchemaChange::Database(_)
            | SchemaChange::Schema(_)
            | SchemaChange::Checkpoint
            | SchemaChange::CreateExtension
            | SchemaChange::Governance(_)
            | SchemaChange::Later(_)
            | SchemaChange::InSchemas(..) => Ok(()),
        }
    }

    fn materialized(&self, change: &mut MaterializedChange) -> Result<(), SqlError> {
        match change {
            MaterializedChange::Create { draft, .. } => {
                draft.search_path = self.path.clone();
                self.new_name(&mut draft.name)
            }
            MaterializedChange::Refresh(refresh) => self.relation(&mut refresh.name),
            MaterializedChange::Alter { if_exists, name, .. } => self.relation_if(*if_exists, name),
            MaterializedChange::Drop { if_exists, names, .. } => {
                names.iter_mut().try_for_each(|name| self.relation_if(*if_exists, name))
            }
        }
    }

    fn partition_change(&self, change: &mut SchemaChange) -> Result<(), SqlError> {
        match change {
            SchemaChange::CreatePartition(draft) => {
                draft.search_path = self.path.clone();
                self.relation(&mut draft.parent)?;
                self.new_name(&mut draft.name)
            }
            SchemaChange::AlterPartition(alter, path) => {
                *path = self.path.clone();
                self.relation_if(alter.if_exists, &mut alter.table)?;
                self.relation(&mut alter.partition)
            }
            _ => Ok(()),
        }
    }

    fn type_change(&self, change: &mut SchemaChange) -> Result<(), SqlError> {
        match change {
            SchemaChange::CreateType(draft) => {
                draft.texts().try_for_each(|text| self.text(text))?;
                self.new_name(&mut draft.name)
            }
            SchemaChange::DropType { if_exists, names, .. } => {
                names.iter_mut().try_for_each(|name| self.data_type(*if_exists, name))
            }
            SchemaChange::AlterDomain(name, change) => {
                match change {
                    DomainChange::SetSchema(schema) => self.catalog.check_schema(schema)?,
                    DomainChange::Default(Some(text)) | DomainChange::AddCheck(_, text, _) => {
                        self.text(text)?
                    }
                    _ => {}
                }
                self.data_type(false, name)
            }
            SchemaChange::AlterType(alter) => {
                if let TypeChange::SetSchema(schema) = &alter.change {
                    self.catalog.check_schema(schema)?;
                }
                self.data_type(false, &mut alter.name)
            }
            _ => Ok(()),
        }
    }

    fn commented(&self, object: &mut CommentedObject) -> Result<(), SqlError> {
        match object {
            CommentedObject::Relation(_, name)
            | CommentedObject::Column(name, _)
            | CommentedObject::Constraint(name, _)
            | CommentedObject::Trigger(name, _) => self.relation(name),
            CommentedObject::Routine(_, routine) => self.one_of(routine),
            CommentedObject::Type(name) => {
                self.find(false, name, &|found| self.catalog.types.contains_key(found))
            }
            CommentedObject::Schema(_) => Ok(()),
        }
    }

    /// A type, also one of the rows of a relation.
    fn data_type(&self, if_exists: bool, name: &mut String) -> Result<(), SqlError> {
        let is_there = |found: &str| {
            self.catalog.types.contains_key(found) || self.catalog.row_types.contains_key(found)
        };
        self.find(if_exists, name, &is_there)
    }

    fn objects(&self, objects: &mut Objects) -> Result<(), SqlError> {
        match objects {
            Objects::Tables(names) | Objects::Relations(names) | Objects::Sequences(names) => {
                names.iter_mut().try_for_each(|name| self.relation(name))
            }
            Objects::Type(_, name) => self.data_type(false, name),
            Objects::Routines(routines) => routines.iter_mut().try_for_each(|one| self.one_of(one)),
            Objects::AllTables(schemas)
            | Objects::AllSequences(schemas)
            | Objects::AllRoutines(schemas)
            | Objects::Schemas(schemas) => {
                schemas.iter().try_for_each(|schema| self.catalog.check_schema(schema))
            }
        }
    }

    fn sequence(&self, statement: &mut SequenceStatement) -> Result<(), SqlError> {
        let options = match statement {
            SequenceStatement::Create { name, options, .. } => {
                self.new_name(name)?;
                options
            }
            SequenceStatement::Alter { if_exists, name, options } => {
                self.relation_if(*if_exists, name)?;
                options
            }
            SequenceStatement::Rename { if_exists, name, .. } => return self.relation_if(*if_exists, name),
            SequenceStatement::AddIdentity { table, options, .. } => {
                self.relation(table)?;
                options
            }
        };
        options.owner.iter_mut().flatten().try_for_each(|(table, _)| self.relation(table))
    }

    fn new_name(&self, name: &mut String) -> Result<(), SqlError> {
        *name = self.path.name_new(self.catalog, name)?;
        Ok(())
    }

    fn find(
        &self,
        if_exists: bool,
        name: &mut String,
        is_there: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqlError> {
        if name.contains('.') && !if_exists {
            self.catalog.check_schema(split_catalog_name(name).0)?;
        }
        *name = self.path.find_or_missing(name, is_there);
        Ok(())
    }

    fn relation(&self, name: &mut String) -> Result<(), SqlError> {
        self.relation_if(false, name)
    }

    fn relation_if(&self, if_exists: bool, name: &mut String) -> Result<(), SqlError> {
        if self.catalog.tables.get(name).is_some_and(|table| table.id.is_temporary()) {
            return Ok(());
        }
        self.find(if_exists, name, &|found| relation_exists(self.catalog, found))
    }

    fn routine(&self, if_exists: bool, name: &mut String) -> Result<(), SqlError> {
        self.find(if_exists, name, &|found| self.catalog.has_routine(found))
    }

    /// A routine by its name, and by the types of its arguments where they are given.
    fn one_of(&self, routine: &mut NamedRoutine) -> Result<(), SqlError> {
        self.routine(false, &mut routine.name)?;
        let Some(types) = &routine.types else {
            let count = self.catalog.overloads(&routine.name).count();
            if count > 1 {
                let message = format!("function name \"{}\" is not unique", routine.name);
                return Err(SqlError::new(SqlState(*b"42725"), message)
                    .hint("Specify the argument list to select the function unambiguously."));
            }
            if let Some((key, _)) = self.catalog.overloads(&routine.name).next() {
                routine.name = key.clone();
            }
            return Ok(());
        };
        let known = CompositeTypes::new(self.catalog).with_rules(self.version).with_search_path(self.path);
        let types = types.iter().map(|one| bind_routine_type(&known, one).map(DataType::family));
        let types = types.collect::<Result<Vec<DataType>, SqlError>>()?;
        let mut overloads = self.catalog.overloads(&routine.name);
        match overloads.find(|(_, one)| one.input_types() == types) {
            Some((key, _)) => routine.name = key.clone(),
            None if self.catalog.aggregates.contains_key(&routine.name) => {}
            None => {
                let types: Vec<String> = types.iter().map(|one| known.name_of(*one)).collect();
                let message =
                    format!("function {}({}) does not exist", as_given(&routine.name), types.join(", "));
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            }
        }
        Ok(())
    }

    fn trigger(&self, change: &mut TriggerChange) -> Result<(), SqlError> {
        match change {
            TriggerChange::Create(draft) => {
                self.relation(&mut draft.table)?;
                let function = &mut draft.trigger.function;
                self.routine(false, function)?;
                let mut overloads = self.catalog.overloads(function);
                if let Some((key, _)) = overloads.find(|(_, one)| one.inputs().next().is_none()) {
                    *function = key.clone();
                }
                if let Some(condition) = draft.condition.as_mut().filter(|_| !self.path.is_default()) {
                    rename_in_expr(condition, &self.qualify());
                    draft.trigger.condition = Some(condition.to_string());
                }
                Ok(())
            }
            TriggerChange::Drop { if_exists, table, .. } => self.relation_if(*if_exists, table),
            TriggerChange::Rename { table, .. } => self.relation(table),
        }
    }

    fn table_draft(&self, draft: &mut TableDraft) -> Result<(), SqlError> {
        let given = draft.table.name.clone();
        self.new_name(&mut draft.table.name)?;
        for foreign_key in &mut draft.foreign_keys {
            match foreign_key.parent == given {
                true => foreign_key.parent.clone_from(&draft.table.name),
                false => self.relation(&mut foreign_key.parent)?,
            }
        }
        if let Some((relation, _)) = &mut draft.like {
            self.relation(relation)?;
        }
        draft.unnamed_checks.iter_mut().try_for_each(|text| self.text(text))?;
        draft.table.checks.iter_mut().try_for_each(|check| self.text(&mut check.condition))?;
        let defaults = draft.table.columns.iter_mut().filter_map(|column| column.default.as_mut());
        defaults.into_iter().try_for_each(|text| self.text(text))
    }

    fn table_change(&self, change: &mut TableChange) -> Result<(), SqlError> {
        match change {
            TableChange::AddConstraint(constraint) => match constraint.as_mut() {
                NewConstraint::ForeignKey(draft) => self.relation(&mut draft.parent),
                NewConstraint::Check(_, condition, _) => self.text(condition),
                NewConstraint::Unique(_) | NewConstraint::PrimaryKey(_) => Ok(()),
            },
            TableChange::AddColumn { definition, .. } => self.column(definition),
            TableChange::AlterColumn { change: ColumnChange::Default(Some(text)), .. } => self.text(text),
            TableChange::AlterColumn { change: ColumnChange::Type(_, Some(using)), .. } => {
                if !self.path.is_default() {
                    rename_in_expr(using, &self.qualify());
                }
                Ok(())
            }
            TableChange::SetSchema(schema) => self.catalog.check_schema(schema),
            _ => Ok(()),
        }
    }

    fn column(&self, definition: &mut ColumnDef) -> Result<(), SqlError> {
        // Version 7 looked for the type in `public` alone.
        if self.version >= ExecutionVersion::V8 && !self.path.is_default() {
            rename_in_type(&mut definition.data_type, &self.qualify());
        }
        for option in &mut definition.options {
            match &mut option.option {
                ColumnOption::Default(expr) if !self.path.is_default() => {
                    rename_in_expr(expr, &self.qualify());
                }
                ColumnOption::Generated { generation_expr: Some(expr), .. } if !self.path.is_default() => {
                    rename_in_expr(expr, &self.qualify());
                }
                ColumnOption::Check(check) if !self.path.is_default() => {
                    rename_in_expr(&mut check.expr, &self.qualify());
                }
                ColumnOption::ForeignKey(foreign_key) => {
                    let mut parent = syntax::names::table_name(&foreign_key.foreign_table)?;
                    self.relation(&mut parent)?;
                    foreign_key.foreign_table = crate::ddl::names::written(&parent);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn qualify(&self) -> Qualify<'_> {
        Qualify { catalog: self.catalog, path: self.path, version: self.version, places: &[] }
    }

    fn text(&self, text: &mut String) -> Result<(), SqlError> {
        match self.path.is_default() {
            true => Ok(()),
            false => rename_in_expression_text(text, &self.qualify()),
        }
    }
}
