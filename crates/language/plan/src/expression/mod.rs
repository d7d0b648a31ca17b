//! Expressions bound to ordinals and slots: what is evaluated at run time, without names and syntax trees.

mod analysis;
mod bind;
mod bind_advisory;
mod bind_aggregate;
mod bind_array;
mod bind_asset;
mod bind_composite;
mod bind_condition;
mod bind_enum;
mod bind_hstore;
mod bind_json;
mod bind_literal;
mod bind_name;
mod bind_notify;
mod bind_operator;
mod bind_ordered_set;
mod bind_random;
mod bind_row;
mod bind_row_comparison;
mod bind_sequence;
mod bind_session;
mod bind_subquery;
mod bind_symbol;
mod bind_time;
mod bind_user_aggregate;
mod bind_window;
mod build;
mod call;
mod capture;
mod convert;
mod copies;
mod describe;
mod enum_call;
mod environment;
mod evaluate;
mod memory;
mod names;
mod record_shape;
mod refusals;
mod relations;
mod routine;
mod routine_call;
mod routine_defaults;
mod row;
mod subquery;
mod subquery_value;
mod unordered;
pub(crate) mod written;

pub use analysis::{columns_of, is_same, may_have_detail};
pub use bind::{Binder, Source};
pub use bind_array::{Subscripts, element_of, part_assigned};
pub use bind_composite::{FieldOwner, FieldStep, field_path};
pub use bind_hstore::{hstore_assigned, one_subscript};
pub use bind_json::json_assigned;
pub(crate) use bind_session::{session_call, session_word};
pub use call::is_system_function;
pub use capture::Capture;
pub(crate) use copies::PARTS_HINT;
pub use describe::Names;
pub use environment::{Environment, QueryEnvironment, RunSubquery};
pub use memory::{KeptMemory, Memory, long_bytes, new_long_bytes, row_space, rows_space};
pub use names::{bind_data_type, bind_routine_type, bind_type_or_domain, output_name};
pub use refusals::{no_sort_operator, shortened};
pub(crate) use relations::is_of_type;
pub use relations::{Catalogued, Merged, NamedRelation, Relations};
pub use routine::{NamedArgument, shown_arguments};
pub use routine_call::RoutineCall;
pub use row::{RowForm, RowOperation, row_value};
pub use subquery::{Subquery, SubqueryForm};
use types::{ArithmeticOperator, DataType, Value};
use values::functions::Function;
use values::{Comparison, LikeForm};

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it computes.
    pub kind: Kind,
    /// Type of the result.
    pub data_type: DataType,
}

/// What an expression computes. Operands have been cast: a node meets values of the types that it was bound for.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A value.
    Constant(Value),
    /// Column of the row at hand; after grouping, column of the group.
    Column(u16),
    /// Variable or parameter.
    Slot(u16),
    /// What the enclosing query hands to this one, by number.
    Argument(u16),
    /// Column of the relations to the left of the one that is being read.
    Left(u16),
    /// In the functions of an aggregate of the ledger: its state, by number 0, and behind it what a row adds.
    State(u16),
    /// A query inside of the expression.
    Subquery(Box<Subquery>),
    /// A call of a function of the ledger.
    Call(Box<RoutineCall>),
    /// The block's time.
    Now,
    /// An explicit cast to the expression's type.
    Cast(Box<Expression>),
    /// A cast on assignment: too long a text is an error.
    Assign(Box<Expression>),
    /// `+ - * / %`
    Arithmetic(ArithmeticOperator, Box<[Expression; 2]>),
    /// `-x`
    Negate(Box<Expression>),
    /// `||`
    Concatenate(Box<[Expression; 2]>),
    /// `= <> < <= > >=`
    Compare(Comparison, Box<[Expression; 2]>),
    /// `IS [NOT] DISTINCT FROM`; the flag: distinct gives true.
    Distinct(bool, Box<[Expression; 2]>),
    /// Three-valued AND of all.
    And(Vec<Expression>),
    /// Three-valued OR of all.
    Or(Vec<Expression>),
    /// `NOT`
    Not(Box<Expression>),
    /// `IS NULL`; the flag: NULL gives true.
    IsNull(bool, Box<Expression>),
    /// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN` (`None`); the flag: being it gives true.
    IsTruth(Option<bool>, bool, Box<Expression>),
    /// First the operand, then the list; the flag: being in it gives true.
    InList(bool, Vec<Expression>),
    /// Text and pattern.
    Like(LikeForm, Box<[Expression; 2]>),
    /// Conditions with results, and the result otherwise.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// The first that is not NULL.
    Coalesce(Vec<Expression>),
    /// The largest (smallest: the flag is false) that is not NULL.
    Extreme(bool, Vec<Expression>),
    /// `format()`: the format first. It is NULL where the format is.
    Format(Vec<Expression>),
    /// A function of the table.
    Function(&'static Function, Vec<Expression>),
    /// An operation on rows.
    Row(Box<RowOperation>, Vec<Expression>),
    /// An aggregate of the query, by number; only between binding and grouping.
    Aggregate(u16),
    /// A window function of the query, by number; only between binding and what its rows are made of.
    Window(u16),
}

impl Expression {
    /// A value.
    pub fn constant(value: Value, data_type: DataType) -> Expression {
        Expression { kind: Kind::Constant(value), data_type: data_type.unrounded() }
    }

    /// A column.
    pub fn column(ordinal: usize, data_type: DataType) -> Expression {
        Expression { kind: Kind::Column(ordinal as u16), data_type: data_type.unrounded() }
    }

    /// A variable.
    pub fn slot(slot: usize, data_type: DataType) -> Expression {
        Expression { kind: Kind::Slot(slot as u16), data_type: data_type.unrounded() }
    }

    /// Type of the result.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The value, where it is a constant.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The slot, where it is nothing but a variable.
    pub fn as_slot(&self) -> Option<usize> {
        match &self.kind {
            Kind::Slot(slot) => Some(usize::from(*slot)),
            _ => None,
        }
    }
}
