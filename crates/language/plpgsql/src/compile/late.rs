//! Compiling what looks at records whose columns are told when the program runs ([`crate::late`]).

use crate::compile::compiler::Compiler;
use crate::late::{Late, LateRow, LateRows, LateStatement, LateValue, Wanted};
use crate::position::or_at;
use crate::program::{Instruction, RowsSource};
use crate::target::RowTarget;
use crate::variables::constant;
use plan::expand_rows::expand_rows;
use plan::expression;
use sqlparser::ast as sql;
use std::cell::RefCell;
use std::collections::BTreeSet;
use syntax::parse::parse_query;
use syntax::plpgsql::ast::{Expression, IntoClause, Target};
use types::{DataType, ExecutionVersion, SqlError};

impl Compiler<'_> {
    /// The records told late that a syntax tree looks at, by number.
    pub(crate) fn late_records<T: sql::Visit + sql::VisitMut + Clone>(&self, tree: &T) -> Vec<u16> {
        if self.variables.late.is_empty() {
            return Vec::new();
        }
        let found = RefCell::new(BTreeSet::new());
        let note = |name: &str| {
            if let Some(record) = self.variables.late_record(name) {
                found.borrow_mut().insert(record);
            }
        };
        let _ = sql::visit_expressions(tree, |expression| {
            let names = match expression {
                sql::Expr::Identifier(name) => std::slice::from_ref(name),
                sql::Expr::CompoundIdentifier(names) => names.as_slice(),
                _ => &[],
            };
            // A label may stand before the record.
            for name in names.iter().take(2) {
                if let Ok(name) = syntax::names::name_of(name) {
                    note(&name);
                }
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        // `record.*` is no expression.
        expand_rows(&mut tree.clone(), &|name| {
            note(name);
            None
        });
        found.into_inner().into_iter().collect()
    }

    /// What is to be bound when it runs; `None` where it can be bound now.
    fn late(&mut self, statement: &sql::Statement) -> Result<Option<Late>, SqlError> {
        let records = self.late_records(statement);
        if records.is_empty() {
            return Ok(None);
        }
        let statement = self.variables.expanded(statement).unwrap_or_else(|| statement.clone());
        let used = self.variables.names_used(&statement)?;
        self.prepare(&used);
        let text = statement.to_string();
        let scope = self.variables.scope().excerpt(&text);
        Ok(Some(Late { statement, scope, records: records.into(), length: text.len() as u64 }))
    }

    /// An expression that looks at such a record, in a variable of its own; `None` where it looks at none.
    pub(crate) fn late_value(
        &mut self,
        value: &Expression,
        wanted: Wanted,
        what: &str,
    ) -> Result<Option<expression::Expression>, SqlError> {
        if self.late_records(&value.expression).is_empty() {
            return Ok(None);
        }
        let mut query = parse_query("SELECT 1", ExecutionVersion::NEWEST)?;
        if let sql::SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![sql::SelectItem::UnnamedExpr(value.expression.clone())];
        }
        let query = self.late(&sql::Statement::Query(Box::new(query)));
        let Some(query) = query.map_err(|error| or_at(error, value.position))? else { return Ok(None) };
        let data_type = match wanted {
            Wanted::Type(data_type) => data_type,
            Wanted::Shown | Wanted::Itself => DataType::Text(None),
        };
        let name = format!("__late_{}__", self.here());
        let slot = self.variables.declare_plain(&name, data_type)?;
        self.emit(Instruction::LateValue(Box::new(LateValue { query, slot, wanted, what: what.into() })));
        Ok(Some(expression::Expression::slot(usize::from(slot), data_type)))
    }

    /// A statement of SQL that looks at such a record; false where it looks at none.
    pub(crate) fn late_statement(
        &mut self,
        statement: &sql::Statement,
        into: Option<&IntoClause>,
        is_performed: bool,
    ) -> Result<bool, SqlError> {
        let Some(statement) = self.late(statement)? else { return Ok(false) };
        let target = match into {
            None => None,
            Some(into) => {
                let target = self.dynamic_target(&into.targets, None, "a statement", into.strict)?;
                Some((target.target, target.wanted))
            }
        };
        let late = LateStatement { statement, target, is_performed };
        self.emit(Instruction::LateStatement(Box::new(late)));
        self.emit_packed();
        Ok(true)
    }

    /// The rows of a query that looks at such a record; `None` where it looks at none.
    pub(crate) fn late_rows(
        &mut self,
        statement: &sql::Statement,
        wanted: Option<Box<[DataType]>>,
    ) -> Result<Option<RowsSource>, SqlError> {
        let late = self.late(statement)?;
        Ok(late.map(|statement| RowsSource::Late(Box::new(LateRows { statement, wanted }))))
    }

    /// The whole of such a record as the value of RETURN or RETURN NEXT; `None` where the value is another one.
    pub(crate) fn late_row(
        &mut self,
        value: &Expression,
        data_type: DataType,
        is_next: bool,
    ) -> Result<Option<expression::Expression>, SqlError> {
        let sql::Expr::Identifier(name) = &value.expression else { return Ok(None) };
        let name = syntax::names::name_of(name)?;
        if self.variables.scope().resolve(&[name.as_str()]).is_some() {
            return Ok(None);
        }
        let Some(record) = self.variables.late_record(&name) else { return Ok(None) };
        let known = self.tables.routines().types().of(data_type);
        let fields = known.map(|known| known.fields.iter().map(|field| field.data_type).collect());
        let variable = format!("__late_{}__", self.here());
        let slot = self.variables.declare_plain(&variable, data_type)?;
        let flag = self.variables.records[usize::from(record)].flag;
        let row = LateRow { record, flag, slot, data_type, fields, is_next };
        self.emit(Instruction::LateRow(Box::new(row)));
        Ok(Some(expression::Expression::slot(usize::from(slot), data_type)))
    }

    /// Such a record as where a row goes; `None` where the target is another one.
    pub(crate) fn late_target(&self, target: &Target, strict: bool) -> Result<Option<RowTarget>, SqlError> {
        let [name] = target.parts.as_slice() else { return Ok(None) };
        if !self.variables.is_record(target) {
            return Ok(None);
        }
        let Some(number) = self.variables.late_record(&name.text) else { return Ok(None) };
        let record = &self.variables.records[usize::from(number)];
        if record.is_constant() {
            return Err(constant(&name.text).at(target.position()));
        }
        Ok(Some(RowTarget { stores: Box::default(), flag: Some(record.flag), strict, record: Some(number) }))
    }

    /// Refuses what would have to be bound before the columns of such a record are known.
    pub(crate) fn refuse_late<T: sql::Visit + sql::VisitMut + Clone>(
        &self,
        tree: &T,
    ) -> Result<(), SqlError> {
        match self.late_records(tree).first() {
            None => Ok(()),
            Some(record) => {
                let name = &self.variables.records[usize::from(*record)].name;
                let what = format_args!("record \"{name}\" here, whose columns only running tells,");
                Err(SqlError::unsupported(what).hint("Assign its field to a variable first."))
            }
        }
    }
}
