//! From syntax trees to bound statements: names and types are settled here, once.
//!
//! ```text
//!  syntax trees ──bind──▶ BoundStatement (Expression, BoundSelect, UpdatePlan, …) ──▶ execute
//!      ▲            └─ queries: LogicalPlan ─ rules ─▶ BoundSelect
//!      ▲                        │
//!  Tables, Routines ◀── types::Catalog
//! ```
//!
//! What is bound is data: it can be printed (EXPLAIN), analysed and run. An [`expression::Expression`] is evaluated here
//! too, because constants are folded while binding; what it needs of a running query (subqueries, functions) comes
//! through [`expression::RunSubquery`].

pub mod advisory;
pub mod aggregate;
pub mod assets;
pub mod bind_indexes;
mod bind_partitions;
pub mod bind_tables;
pub mod command;
pub mod computed_index;
pub mod condition;
pub mod constraint;
pub mod domains;
pub mod expand_rows;
pub mod expression;
mod immutable;
mod implied;
pub mod in_execution;
mod key_description;
pub mod logical;
pub mod needs;
pub mod notify;
pub mod overload;
pub mod partition_conditions;
pub mod partitions;
pub mod polymorphic;
pub mod predicate;
pub mod random;
pub mod routines;
pub mod row_check;
mod row_functions;
pub mod row_locking;
pub mod row_security;
pub mod scope;
pub mod sequence;
pub mod session_facts;
pub mod statement;
pub mod table;
mod table_check;
pub mod table_triggers;
pub mod tables;
pub mod trigger;
mod unordered;
pub mod view;
pub mod window;
pub mod written_index;
pub mod written_sql;
