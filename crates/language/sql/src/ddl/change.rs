//! What a change of the schema is: one of the drafts that the statements' files read from their statements.

use crate::ddl::aggregates::AggregateDrop;
use crate::ddl::alter::TableChange;
use crate::ddl::composite_types::TypeDraft;
use crate::ddl::create_as::TableOfQuery;
use crate::ddl::index_drafts::IndexDraft;
use crate::ddl::materialized_views::MaterializedChange;
use crate::ddl::partitions::PartitionDraft;
use crate::ddl::routines::DropRoutine;
use crate::ddl::row_security::PolicyStatement;
use crate::ddl::schemas::ChangeOfSchemas;
use crate::ddl::tables::TableDraft;
use crate::ddl::triggers::TriggerChange;
use crate::ddl::views::ViewDraft;
use sqlparser::ast::Statement;
use syntax::parse::ParsedStatement;
use syntax::parse::alter_routine::AlterRoutine;
use syntax::parse::alter_type::AlterType;
use syntax::parse::comment::CommentOn;
use syntax::parse::database::DatabaseStatement;
use syntax::parse::domain::DomainChange;
use syntax::parse::governance::GovernanceCall;
use syntax::parse::partition::AlterPartition;
use syntax::parse::role::RoleStatement;
use syntax::parse::sequence::SequenceStatement;
use syntax::parse::view::AlterView;
use types::{DataType, OutputColumn, Procedure, SearchPath, UserAggregate};

/// A change of the catalog.
#[derive(Clone, Debug)]
pub(crate) enum SchemaChange {
    /// CREATE TABLE; the number is given when it runs.
    CreateTable {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The table.
        draft: Box<TableDraft>,
    },
    /// CREATE TABLE … PARTITION OF.
    CreatePartition(Box<PartitionDraft>),
    /// ALTER TABLE … ATTACH PARTITION and DETACH PARTITION; the search path is the bound's.
    AlterPartition(Box<AlterPartition>, SearchPath),
    /// CREATE TABLE … AS.
    CreateTableAs(TableOfQuery),
    /// CREATE INDEX.
    CreateIndex {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its table.
        table: String,
        /// The index.
        index: IndexDraft,
    },
    /// DROP INDEX.
    DropIndex {
        /// IF EXISTS.
        if_exists: bool,
        /// The indexes.
        names: Vec<String>,
    },
    /// ALTER TABLE.
    AlterTable {
        /// IF EXISTS.
        if_exists: bool,
        /// The table.
        name: String,
        /// What becomes of it, in order.
        changes: Vec<TableChange>,
    },
    /// DROP TABLE.
    DropTable {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The tables.
        names: Vec<String>,
    },
    /// CREATE VIEW.
    CreateView(ViewDraft),
    /// CREATE, REFRESH, ALTER and DROP MATERIALIZED VIEW.
    Materialized(Box<MaterializedChange>),
    /// ALTER VIEW … SET and RESET.
    AlterView(AlterView),
    /// DROP VIEW.
    DropView {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The views.
        names: Vec<String>,
    },
    /// CREATE SEQUENCE and its kind.
    Sequence(Box<SequenceStatement>),
    /// DROP SEQUENCE.
    DropSequence {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The sequences.
        names: Vec<String>,
    },
    /// CREATE PROCEDURE and CREATE FUNCTION.
    CreateRoutine {
        /// OR REPLACE.
        or_replace: bool,
        /// False: the body may name what comes later.
        checks_body: bool,
        /// The procedure or function.
        procedure: Procedure,
    },
    /// DROP PROCEDURE and DROP FUNCTION.
    DropRoutine(DropRoutine),
    /// CREATE TYPE.
    CreateType(TypeDraft),
    /// DROP TYPE.
    DropType {
        /// DROP DOMAIN.
        domains: bool,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The types.
        names: Vec<String>,
    },
    /// CREATE AGGREGATE.
    CreateAggregate {
        /// OR REPLACE.
        or_replace: bool,
        /// The aggregate; the type of its result is known when it is created.
        aggregate: UserAggregate,
    },
    /// DROP AGGREGATE.
    DropAggregate(AggregateDrop),
    /// CREATE ROLE, GRANT and their kind.
    Role(RoleStatement),
    /// CREATE, ALTER and DROP TRIGGER.
    Trigger(TriggerChange),
    /// CREATE, ALTER and DROP POLICY.
    Policy(PolicyStatement),
    /// COMMENT ON.
    Comment(CommentOn),
    /// CHECKPOINT.
    Checkpoint,
    /// CREATE EXTENSION of one that is built in, which changes nothing.
    CreateExtension,
    /// CREATE, ALTER and DROP SCHEMA.
    Schema(ChangeOfSchemas),
    /// CREATE and DROP DATABASE.
    Database(DatabaseStatement),
    /// `entente.approve` and its kind, which stand alone.
    Governance(Box<GovernanceCall>),
    /// One whose names are looked for by another search path than `public`.
    InSchemas(SearchPath, Box<SchemaChange>),
    /// One that names a type which an earlier change of the same script may make: bound when it is its turn.
    Later(Box<ParsedStatement>),
    /// ALTER TYPE.
    AlterType(AlterType),
    /// ALTER FUNCTION, ALTER PROCEDURE, ALTER ROUTINE.
    AlterRoutine(Box<AlterRoutine>),
    /// ALTER DOMAIN.
    AlterDomain(String, DomainChange),
}

impl SchemaChange {
    /// Whether it runs a query, on the schema as it is before.
    pub fn runs_a_query(&self) -> bool {
        match self.without_path().1 {
            SchemaChange::CreateTableAs(_) => true,
            SchemaChange::Materialized(change) => change.runs_a_query(),
            _ => false,
        }
    }

    /// The search path, and the change itself.
    pub(super) fn without_path(&self) -> (SearchPath, &SchemaChange) {
        match self {
            SchemaChange::InSchemas(path, change) => (path.clone(), change),
            change => (SearchPath::default(), change),
        }
    }

    /// Whether it makes a table.
    pub fn creates_table(&self) -> bool {
        match self.without_path().1 {
            SchemaChange::CreateTable { .. }
            | SchemaChange::CreateTableAs(_)
            | SchemaChange::CreatePartition(_) => true,
            SchemaChange::Materialized(change) => matches!(**change, MaterializedChange::Create { .. }),
            SchemaChange::Later(statement) => match statement.as_ref() {
                ParsedStatement::Sql(statement) => matches!(statement.as_ref(), Statement::CreateTable(_)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it grants or revokes privileges, which roles may do.
    pub fn is_grant(&self) -> bool {
        matches!(self.without_path().1, SchemaChange::Role(RoleStatement::Privileges(_)))
    }

    /// What it is called where it must stand outside of a transaction block, if it must.
    pub fn stands_outside_of_blocks(&self) -> Option<&'static str> {
        match self.without_path().1 {
            SchemaChange::Checkpoint => Some("CHECKPOINT"),
            SchemaChange::Database(DatabaseStatement::Create { .. }) => Some("CREATE DATABASE"),
            SchemaChange::Database(DatabaseStatement::Drop { .. }) => Some("DROP DATABASE"),
            _ => None,
        }
    }

    /// Whether it takes what depends on it along.
    pub(super) fn cascades(&self) -> bool {
        match self {
            SchemaChange::DropTable { cascade, .. }
            | SchemaChange::DropView { cascade, .. }
            | SchemaChange::DropSequence { cascade, .. }
            | SchemaChange::DropType { cascade, .. } => *cascade,
            SchemaChange::Materialized(change) => {
                matches!(**change, MaterializedChange::Drop { cascade: true, .. })
            }
            SchemaChange::Schema(change) => change.cascades(),
            _ => false,
        }
    }
}

/// The columns of what `entente.approve` and its kind give: one with the function's name.
pub(crate) fn call_columns(call: &GovernanceCall) -> Vec<OutputColumn> {
    vec![OutputColumn { name: call.function.to_string(), data_type: DataType::Text(None) }]
}
