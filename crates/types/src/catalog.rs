use crate::{ColumnSet, DataType};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, DigestWriter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a table, never used twice in a ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableId(pub u32);

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Column {
    /// Lower-case unless it was quoted.
    pub name: String,
    /// The type.
    pub data_type: DataType,
    /// NULL is refused.
    pub not_null: bool,
    /// The expression of DEFAULT, as SQL.
    pub default: Option<String>,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Check {
    /// The name that an error shows.
    pub name: String,
    /// The condition, as SQL.
    pub condition: String,
}

/// A table's definition.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
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
    /// Who must endorse what writes to it, where transactions are executed before they are ordered: a policy's text.
    pub endorsement: Option<String>,
}

impl Table {
    /// Ordinal of a column.
    pub fn ordinal(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
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
    /// A row of the table of this name.
    Table(String),
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
    /// Its name.
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
}

impl Procedure {
    /// The parameters that a caller of a function gives arguments for.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().filter(|parameter| parameter.mode != ParameterMode::Out)
    }

    /// The parameters that it gives back.
    pub fn outputs(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().filter(|parameter| parameter.mode != ParameterMode::In)
    }
}

/// The tables and procedures of a ledger at one height. A change makes a new catalog with the next version.
#[derive(Clone, Debug, PartialEq, Eq, Default, BorshSerialize, BorshDeserialize)]
pub struct Catalog {
    /// Counts the changes.
    pub version: u64,
    /// The number that the next table gets.
    pub next_table: u32,
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Procedures and functions by name; one per name.
    pub procedures: BTreeMap<String, Arc<Procedure>>,
}

impl Catalog {
    /// Digest of the canonical encoding.
    pub fn digest(&self) -> Digest {
        let mut writer = DigestWriter::default();
        borsh::to_writer(&mut writer, self).expect("hashing cannot fail");
        writer.finish()
    }

    /// The table with this number.
    pub fn table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id == id)
    }
}
