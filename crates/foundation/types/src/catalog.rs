use crate::{
    Charter, Check, ColumnSet, Commented, CompositeType, CompositeTypes, Counter, DataType, ExecutionVersion,
    ForeignKey, Generated, Governance, Index, MaterializedView, OutputColumn, Partition, Partitioning, Roles,
    RowSecurity, Schema, SchemaMembers, SearchPath, Sequence, Trigger, TypeId, View, catalog_name,
    object_name, schema_of,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, DigestWriter};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a table, never used twice in a ledger.
///
/// The entries of an index are rows too, in tables whose numbers are the index's with one of the highest bits set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableId(pub u32);

impl TableId {
    /// Numbers that tables and indexes of a ledger may get in its life.
    pub const NUMBERS_MAX: u32 = TableId::TEMPORARY;
    const TEMPORARY: u32 = 1 << 29;
    const VIEW: u32 = TableId::UNIQUE | TableId::ENTRIES;
    pub(crate) const UNIQUE: u32 = 1 << 30;
    pub(crate) const ENTRIES: u32 = 1 << 31;

    /// Whether its rows are entries of an ordered index: they follow from the rows of the index's table, so that no
    /// transaction writes them and nothing stores them.
    pub fn is_index(self) -> bool {
        self.0 & TableId::ENTRIES != 0
    }

    /// Whether its rows are those of a table that somebody has made, and not what an index has of them.
    pub fn is_made(self) -> bool {
        self.0 & (TableId::ENTRIES | TableId::UNIQUE) == 0
    }

    /// What stands for the view of this place among those of its catalog. It has no rows, and nothing stores the number.
    pub fn of_view(place: usize) -> TableId {
        TableId(TableId::VIEW | (place as u32 & !TableId::VIEW))
    }

    /// Whether it stands for a view.
    pub fn is_view(self) -> bool {
        self.0 & TableId::VIEW == TableId::VIEW
    }

    /// Whether it is a table of a session, or an index of one: no ledger has such numbers.
    pub fn is_temporary(self) -> bool {
        self.0 & TableId::TEMPORARY != 0
    }

    /// The number of the table or index, whichever of its rows these are.
    pub fn number(self) -> u32 {
        self.0 & !(TableId::ENTRIES | TableId::UNIQUE)
    }

    /// Where the ordered entries of the index of this number stand.
    pub(crate) fn of_entries(number: u32) -> TableId {
        TableId(number | TableId::ENTRIES)
    }

    /// Where the keys stand that are taken in the unique index of this number.
    pub(crate) fn of_unique(number: u32) -> TableId {
        TableId(number | TableId::UNIQUE)
    }

    /// What PostgreSQL's catalogue and `TG_RELID` call it.
    pub fn object_identifier(self) -> i32 {
        if self.is_view() {
            return 1_200_000_000 + (4 * self.number() % 50_000_000) as i32;
        }
        20_000 + (i64::from(self.0) * 4 % 1_000_000_000) as i32
    }

    /// Where the rows of advisory locks stand, under one number in every ledger: no table, index or sequence gets this last one. As
    /// long as nobody has taken a lock there are none, and the state has the same root as without them.
    pub const ADVISORY_LOCKS: TableId = TableId(TableId::NUMBERS_MAX - 1);
    /// Columns of these rows: an encoded value.
    pub const ADVISORY_COLUMNS: usize = 1;

    /// The first number of a temporary table.
    pub const FIRST_TEMPORARY: TableId = TableId(TableId::TEMPORARY);

    /// The first number of what holds the keys that rows take in unique indexes; entries of indexes follow.
    pub const FIRST_UNIQUE: TableId = TableId(TableId::UNIQUE);

    /// The first table, by number, whose rows follow from those of others.
    pub const FIRST_INDEX: TableId = TableId(TableId::ENTRIES);
}

/// A column of a table.
///
/// ```text
/// encoding: name ‖ type ‖ not null ‖ 0 | 1 ‖ default | 2 ‖ generation expression    (the first two as before there was the third)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Lower-case unless it was quoted.
    pub name: String,
    /// The type.
    pub data_type: DataType,
    /// NULL is refused.
    pub not_null: bool,
    /// The expression of DEFAULT, or the one that a generated column has its values of, as SQL.
    pub default: Option<String>,
    /// GENERATED ALWAYS AS … STORED: the expression is over the row, and the column has no other value.
    pub generated: bool,
}

impl BorshSerialize for Column {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (&self.name, self.data_type, self.not_null).serialize(writer)?;
        match &self.default {
            Some(expression) if self.generated => (2_u8, expression).serialize(writer),
            default => default.serialize(writer),
        }
    }
}

impl BorshDeserialize for Column {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Column> {
        let (name, data_type, not_null) = <(String, DataType, bool)>::deserialize_reader(reader)?;
        let kind = u8::deserialize_reader(reader)?;
        let default = match kind {
            0 => None,
            1 | 2 => Some(String::deserialize_reader(reader)?),
            found => {
                let message = format!("expected a kind of default, 0 to 2, found {found}");
                return Err(borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message));
            }
        };
        Ok(Column { name, data_type, not_null, default, generated: kind == 2 })
    }
}

/// A table's definition.
///
/// ```text
/// encoding: the fields in order; of the last three
///           0 | 1 ‖ endorsement                       (as before there was row security)
///           2 ‖ row security | 3 ‖ endorsement ‖ row security
///           4 more: ‖ partitioning
///           8 more: ‖ materialized view
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its number.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// Ordinals of the primary key's columns, in key order. Empty: the table has no primary key, and every row gets
    /// a hidden one from (height, index of its transaction in the block, draw), which keeps the order of insertion.
    pub primary_key: Vec<u16>,
    /// Name of the primary key's constraint.
    pub primary_key_name: String,
    /// CHECK constraints, in the order of their names, which is the order in which PostgreSQL evaluates them.
    pub checks: Vec<Check>,
    /// Who must endorse what writes to it, as a policy's text: its effects, where transactions are executed before they are ordered;
    /// scripts, by agreeing to them, where databases execute those after ordering.
    pub endorsement: Option<String>,
    /// Which of its rows a role sees and may write.
    pub row_security: RowSecurity,
    /// Its partitions, if it is partitioned.
    pub partitioning: Option<Arc<Partitioning>>,
    /// The query whose rows it holds, if it is a materialized view.
    pub materialized: Option<Arc<MaterializedView>>,
}

impl BorshSerialize for Table {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (self.id, &self.name, &self.columns, &self.primary_key).serialize(writer)?;
        (&self.primary_key_name, &self.checks).serialize(writer)?;
        let has_security = self.row_security != RowSecurity::default();
        let parts = u8::from(self.endorsement.is_some()) + if has_security { 2 } else { 0 };
        let parts = parts + if self.partitioning.is_some() { 4 } else { 0 };
        let kind = parts + if self.materialized.is_some() { 8 } else { 0 };
        kind.serialize(writer)?;
        if let Some(endorsement) = &self.endorsement {
            endorsement.serialize(writer)?;
        }
        if has_security {
            self.row_security.serialize(writer)?;
        }
        if let Some(partitioning) = &self.partitioning {
            partitioning.as_ref().serialize(writer)?;
        }
        if let Some(materialized) = &self.materialized {
            materialized.as_ref().serialize(writer)?;
        }
        Ok(())
    }
}

impl BorshDeserialize for Table {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Table> {
        let invalid = |message: String| borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message);
        let (id, name, columns, primary_key) =
            <(TableId, String, Vec<Column>, Vec<u16>)>::deserialize_reader(reader)?;
        let (primary_key_name, checks) = <(String, Vec<Check>)>::deserialize_reader(reader)?;
        let kind = u8::deserialize_reader(reader)?;
        if kind > 15 {
            return Err(invalid(format!("expected what else a table has, 0 to 15, found {kind}")));
        }
        let endorsement = if kind & 1 == 1 { Some(String::deserialize_reader(reader)?) } else { None };
        let row_security = match kind & 2 {
            0 => RowSecurity::default(),
            _ => RowSecurity::deserialize_reader(reader)?,
        };
        if kind & 2 == 2 && row_security == RowSecurity::default() {
            return Err(invalid("expected row security, found none".to_string()));
        }
        let partitioning = match kind & 4 {
            0 => None,
            _ => Some(Arc::new(Partitioning::deserialize_reader(reader)?)),
        };
        let materialized = match kind & 8 {
            0 => None,
            _ => Some(Arc::new(MaterializedView::deserialize_reader(reader)?)),
        };
        Ok(Table {
            id,
            name,
            columns,
            primary_key,
            primary_key_name,
            checks,
            endorsement,
            row_security,
            partitioning,
            materialized,
        })
    }
}

impl Table {
    /// Ordinal of a column.
    pub fn ordinal(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Its name without the schema.
    pub fn object_name(&self) -> &str {
        object_name(&self.name)
    }

    /// The name in the catalog of an index of this name, which stands in the table's schema.
    pub fn index_name(&self, index: &str) -> String {
        catalog_name(schema_of(&self.name), index)
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> ColumnSet {
        self.primary_key.iter().fold(ColumnSet::EMPTY, |set, c| set | ColumnSet::column(usize::from(*c)))
    }
}

/// How an argument travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ParameterMode {
    /// `IN`
    In,
    /// `OUT`
    Out,
    /// `INOUT`
    InOut,
    /// `VARIADIC`: any number of arguments, which it gets as an array.
    Variadic,
}

impl ParameterMode {
    /// A caller gives arguments for it.
    pub fn is_input(self) -> bool {
        self != ParameterMode::Out
    }

    /// It is given back.
    pub fn is_output(self) -> bool {
        matches!(self, ParameterMode::Out | ParameterMode::InOut)
    }
}

/// A parameter of a procedure.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Parameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// How it travels.
    pub mode: ParameterMode,
    /// Its type.
    pub data_type: DataType,
    /// The expression of DEFAULT, as SQL.
    pub default: Option<String>,
}

/// What the body of a procedure or function is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Language {
    /// `LANGUAGE plpgsql`
    #[default]
    PlPgSql,
    /// `LANGUAGE sql`: statements, of which the last gives the result.
    Sql,
}

/// What a function promises about its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Volatility {
    /// It may change rows, and is called for every row.
    #[default]
    Volatile,
    /// It changes nothing and gives the same for the same arguments within a statement.
    Stable,
    /// It gives the same for the same arguments for ever.
    Immutable,
}

/// What a function gives.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FunctionResult {
    /// `void`
    Void,
    /// A value of this type.
    Value(DataType),
    /// Its OUT and INOUT parameters, the columns of `TABLE (…)` among them.
    Outputs,
    /// Rows whose columns every call names: `record`.
    Record,
    /// `trigger`: the row that the table gets, of whatever table the trigger is on.
    Trigger,
}

/// What makes a function of a procedure.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Function {
    /// What it gives.
    pub result: FunctionResult,
    /// It gives any number of these: `SETOF`, `TABLE`.
    pub is_set: bool,
    /// What it promises.
    pub volatility: Volatility,
    /// It is not run where an argument is NULL: its result is NULL then.
    pub is_strict: bool,
}

/// A stored procedure or function. Plans are made from `body` when it is created or loaded.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Procedure {
    /// Its name, with its schema as in the catalog.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// What it gives where it is a function; `None`: it is a procedure.
    pub function: Option<Function>,
    /// The language of the body.
    pub language: Language,
    /// The text between the dollar quotes.
    pub body: String,
    /// Who must endorse its calls, as a policy's text; `None`: whom the charter names.
    pub endorsement: Option<String>,
    /// It may do what the administrator may who has made it, whoever calls it: SECURITY DEFINER.
    pub security_definer: bool,
    /// Where names without a schema are looked for in the body: as when it was created, or as its SET search_path says.
    pub search_path: SearchPath,
    /// Another routine had its name already: in the catalog the types of its arguments stand behind the name.
    pub overload: bool,
}

impl Procedure {
    /// The parameters that a caller of a function gives arguments for.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().filter(|parameter| parameter.mode.is_input())
    }

    /// The parameters that it gives back.
    pub fn outputs(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().filter(|parameter| parameter.mode.is_output())
    }
}

/// An aggregate of the ledger: a state, and functions that take it on and make the result of it. They are functions of the
/// ledger or of the system, found by their names when the aggregate is used.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct UserAggregate {
    /// Its name, which no procedure and no function has.
    pub name: String,
    /// The types of its arguments; `None` takes every type.
    pub arguments: Vec<Option<DataType>>,
    /// The function that gives the next state for a state and the arguments of a row.
    pub transition: String,
    /// The type of the state.
    pub state: DataType,
    /// The state before the first row, as text; without one it is NULL.
    pub initial: Option<String>,
    /// The function that gives the result for the last state; without one that is the result.
    pub result: Option<String>,
    /// The last function takes NULLs of the types of the arguments besides.
    pub result_takes_arguments: bool,
    /// The type of the result.
    pub data_type: DataType,
}

/// The tables, views and procedures of a ledger at one height. A change makes a new catalog with the next version.
#[derive(Clone, Debug, PartialEq, Eq, Default, BorshSerialize, BorshDeserialize)]
pub struct Catalog {
    /// Counts the changes.
    pub version: u64,
    /// Schemas by name, `public` left out. Names below have their schema in front unless it is `public`.
    pub schemas: BTreeMap<String, Schema>,
    /// The number that the next table or index gets.
    pub next_table: u32,
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Indexes by table, in the order of their numbers; no entry for a table without any.
    pub indexes: BTreeMap<TableId, Vec<Index>>,
    /// FOREIGN KEY constraints by the table that references, in the order of their numbers; as `indexes`.
    pub foreign_keys: BTreeMap<TableId, Vec<ForeignKey>>,
    /// Triggers by table and by their names; no entry for a table without any.
    pub triggers: BTreeMap<TableId, BTreeMap<String, Arc<Trigger>>>,
    /// Views by name.
    pub views: BTreeMap<String, Arc<View>>,
    /// Sequences by name.
    pub sequences: BTreeMap<String, Arc<Sequence>>,
    /// Procedures and functions by name, and by the types of their arguments where several have one ([`Procedure::key`]).
    pub procedures: BTreeMap<String, Arc<Procedure>>,
    /// Aggregates by name.
    pub aggregates: BTreeMap<String, Arc<UserAggregate>>,
    /// Roles, and what they may do.
    pub roles: Roles,
    /// The number that the next composite type gets.
    pub next_type: u32,
    /// Composite types by name, those of relations left out.
    pub types: BTreeMap<String, Arc<CompositeType>>,
    /// Numbers of the types of the rows of tables and views, by the relation's name.
    pub row_types: BTreeMap<String, TypeId>,
    /// What COMMENT ON says.
    pub comments: BTreeMap<Commented, String>,
    /// Height of the newest block with a CHECKPOINT, which makes it one that nodes make a checkpoint of; 0: none has one.
    pub checkpoint: u64,
    /// The charters, and what waits for the members' consent.
    pub governance: Governance,
}

impl Catalog {
    /// That of a new ledger: empty, under its charter.
    pub fn founded(charter: Arc<Charter>) -> Catalog {
        Catalog { governance: Governance::founded(charter), ..Catalog::default() }
    }

    /// That of what stands in a schema with members, which these alone have: empty, under the charter that they execute it with.
    pub fn of_schema(name: &str, members: &SchemaMembers, charter: Arc<Charter>) -> Catalog {
        let schemas = BTreeMap::from([(name.to_string(), Schema::default())]);
        // Queries may look at several schemas at a time, so types of different ones have different numbers, as tables have.
        let own_types = charter.execution_version >= ExecutionVersion::V7.number();
        let next_type = if own_types { members.first_table() } else { 0 };
        Catalog { schemas, next_table: members.first_table(), next_type, ..Catalog::founded(charter) }
    }

    /// Where a schema with members is older than execution version 7: from now on its types have numbers that no other schema's have.
    pub fn number_types_apart(&mut self) {
        if self.own_schema().is_some() && self.next_type < SchemaMembers::TABLES_FROM {
            self.next_type = SchemaMembers::first_table_of(self.next_table);
        }
    }

    /// The schema that this is the catalog of alone; `None`: it is the ledger's.
    pub fn own_schema(&self) -> Option<&str> {
        // A session that has temporary tables counts above all of them.
        let own = (SchemaMembers::TABLES_FROM..TableId::NUMBERS_MAX).contains(&self.next_table);
        self.schemas.keys().next().map(String::as_str).filter(|_| own)
    }

    /// The members of a schema, where it has any.
    pub fn members_of(&self, schema: &str) -> Option<&Arc<SchemaMembers>> {
        self.schemas.get(schema)?.members.as_ref()
    }

    /// Digest of the canonical encoding.
    pub fn digest(&self) -> Digest {
        let mut writer = DigestWriter::default();
        borsh::to_writer(&mut writer, self).expect("hashing cannot fail");
        writer.finish()
    }

    /// The indexes of a table.
    pub fn indexes_of(&self, table: TableId) -> &[Index] {
        self.indexes.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The FOREIGN KEY constraints of a table.
    pub fn foreign_keys_of(&self, table: TableId) -> &[ForeignKey] {
        self.foreign_keys.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The triggers of a table, in the order in which they fire.
    pub fn triggers_of(&self, table: TableId) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.get(&table).into_iter().flat_map(BTreeMap::values)
    }

    /// Numbers under which rows stand: those of tables, of sequences that count, of the entries of indexes, and of advisory locks.
    pub fn row_tables(&self) -> impl Iterator<Item = TableId> {
        let entries = self.indexes.values().flatten().flat_map(Index::tables);
        let counters = self.counters().map(|counter| counter.table);
        let tables = self.tables.values().map(|table| table.id);
        tables.chain(entries).chain(counters).chain([TableId::ADVISORY_LOCKS])
    }

    /// Numbers of what has rows of its own and is no table, with the columns of these rows: sequences that count, computed
    /// indexes, and advisory locks. Their rows are in the state's tree, without a definition.
    pub fn kept_besides_tables(&self) -> impl Iterator<Item = (TableId, usize)> {
        let counters = self.counters().map(|counter| (counter.table, Counter::COLUMNS));
        let computed = self.indexes.values().flatten().filter(|index| index.is_computed());
        let computed = computed.map(|index| (index.computed_entries(), Index::ENTRY_COLUMNS));
        counters.chain(computed).chain([(TableId::ADVISORY_LOCKS, TableId::ADVISORY_COLUMNS)])
    }

    /// Those of the sequences that count.
    pub fn counters(&self) -> impl Iterator<Item = &Counter> {
        self.sequences.values().filter_map(|sequence| sequence.counter.as_ref())
    }

    /// The columns of the table or view of this name.
    pub fn columns_of(&self, name: &str) -> Option<Vec<OutputColumn>> {
        if let Some(view) = self.views.get(name) {
            return Some(view.columns.clone());
        }
        let columns = self.tables.get(name)?.columns.iter();
        let column =
            |column: &Column| OutputColumn { name: column.name.clone(), data_type: column.data_type };
        Some(columns.map(column).collect())
    }

    /// What an identity column takes; `None` where the column is none.
    pub fn identity(&self, table: TableId, column: usize) -> Option<Generated> {
        let owners = self.sequences.values().filter_map(|sequence| sequence.owner.as_ref());
        let mut owners = owners.filter(|owner| owner.table == table && usize::from(owner.column) == column);
        owners.find_map(|owner| owner.identity)
    }

    /// Whether there is a procedure, a function or an aggregate of this name.
    pub fn has_routine(&self, name: &str) -> bool {
        self.procedures.contains_key(name)
            || self.aggregates.contains_key(name)
            || self.overloads(name).next().is_some()
    }

    /// The table as its rows are stored: its columns have the types that domains are of in the place of these.
    pub fn without_domains<'t>(&self, table: &'t Table) -> Cow<'t, Table> {
        let is_domain = |column: &Column| matches!(column.data_type, DataType::Domain(_));
        if !table.columns.iter().any(is_domain) {
            return Cow::Borrowed(table);
        }
        let types = CompositeTypes::new(self);
        let mut table = table.clone();
        table.columns.iter_mut().for_each(|column| column.data_type = types.base_of(column.data_type));
        Cow::Owned(table)
    }

    /// The partition of this name, and the table whose rows it has.
    pub fn partition(&self, name: &str) -> Option<(&Arc<Table>, &Partition)> {
        let find = |table| {
            let table: &Arc<Table> = table;
            Some((table, table.partitioning.as_ref()?.partitions.get(name)?))
        };
        // A partition is a view of the catalog.
        self.views.get(name)?;
        self.tables.values().find_map(find)
    }

    /// All queries with a name: those of views, and those whose rows materialized views hold.
    pub fn queries(&self) -> impl Iterator<Item = &View> {
        let materialized = self.tables.values().filter_map(|table| table.materialized.as_deref());
        self.views.values().map(Arc::as_ref).chain(materialized.map(|one| &one.view))
    }

    /// The same, to change them.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut View> {
        let tables = self.tables.values_mut().filter(|table| table.materialized.is_some());
        let materialized = tables.filter_map(|table| Arc::make_mut(table).materialized.as_mut());
        let materialized = materialized.map(|one| &mut Arc::make_mut(one).view);
        self.views.values_mut().map(Arc::make_mut).chain(materialized)
    }

    /// The materialized view of this name, with the table that it is.
    pub fn materialized_view(&self, name: &str) -> Option<(&Arc<Table>, &MaterializedView)> {
        let table = self.tables.get(name)?;
        Some((table, table.materialized.as_deref()?))
    }

    /// The table with this number.
    pub fn table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id == id)
    }
}
