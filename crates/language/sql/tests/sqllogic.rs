//! The files of `slt/` are the specification of the SQL that works and of what is refused.

mod support;

use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::fmt;
use std::sync::Arc;
use support::{Database, SmallMemory, texts};
use types::{Principal, SqlError};

/// The error as the files show it: `SQLSTATE message`, and the detail of a constraint.
#[derive(Debug)]
struct Shown(SqlError);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.state, self.0.message)?;
        // The details of constraints are part of the specification; others say more than PostgreSQL's.
        match &self.0.detail {
            Some(detail) if self.0.state.0.starts_with(b"23") => write!(f, " DETAIL: {detail}")?,
            _ => {}
        }
        Ok(())
    }
}

impl std::error::Error for Shown {}

/// A database, and what a session of a gateway sends in front of its scripts: its search path.
struct Tested(Database, String);

impl DB for Tested {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        if sql.starts_with("SET search_path") {
            self.1 = format!("{sql};");
            return Ok(DBOutput::StatementComplete(0));
        }
        // Roles are the first organisation's.
        let role = sql.strip_prefix("SET ROLE ").or((sql == "RESET ROLE").then_some(""));
        if let Some(role) = role {
            self.0.principal = Principal::new(0, role);
            return Ok(DBOutput::StatementComplete(0));
        }
        let results = self.0.gateway(&format!("{}{sql}", self.1)).map_err(Shown)?;
        let Some(last) = results.last() else { return Ok(DBOutput::StatementComplete(0)) };
        if last.columns.is_empty() {
            let count = last.tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            return Ok(DBOutput::StatementComplete(count));
        }
        let mut rows = texts(last);
        // The names of the columns are part of the specification.
        rows.insert(0, last.columns.iter().map(|column| column.name.clone()).collect());
        let shown = rows.into_iter().map(|row| {
            row.into_iter().map(|text| if text.is_empty() { "(empty)".to_string() } else { text }).collect()
        });
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; last.columns.len()], rows: shown.collect() })
    }

    fn engine_name(&self) -> &str {
        "entente"
    }

    fn error_sql_state(error: &Shown) -> Option<String> {
        Some(error.0.state.to_string())
    }
}

/// Once with all rows in memory, and once with operators that hold next to nothing. Gives which operators have written then.
fn run(name: &str) -> Vec<&'static str> {
    run_with(name, &Database::default());
    let memory = SmallMemory::of(200);
    let written_by = memory.written_by.clone();
    run_with(name, &Database { scratch: Some(Arc::new(memory)), ..Database::default() });
    let written_by = written_by.lock().expect("nobody panics with it");
    written_by.keys().copied().collect()
}

/// That these operators have written files, or a second run has tested nothing of them.
fn assert_wrote(written_by: &[&str], operators: &[&str]) {
    for operator in operators {
        assert!(written_by.contains(operator), "only {written_by:?} have written, and not {operator}");
    }
}

fn run_with(name: &str, database: &Database) {
    let path = format!("tests/slt/{name}.slt");
    let mut runner = Runner::new(|| async { Ok(Tested(database.clone(), String::new())) });
    let records = sqllogictest::parse_file(&path).expect("a good file");
    let failures: Vec<String> = records
        .into_iter()
        .filter_map(|record| runner.run(record).err())
        .map(|error| error.to_string())
        .collect();
    assert!(failures.is_empty(), "with {:?}: {}", database.scratch, failures.join("\n\n"));
}

#[test]
fn array_dimensions() {
    run("array_dimensions");
}

#[test]
fn object_identifiers() {
    run("object_identifiers");
}

#[test]
fn standing_sequences() {
    run("standing_sequences");
}

#[test]
fn typed_literals() {
    run("typed_literals");
}

#[test]
fn column_privileges() {
    run("column_privileges");
}

#[test]
fn grant_options() {
    run("grant_options");
}

#[test]
fn schemas() {
    run("schemas");
}

#[test]
fn comments() {
    run("comments");
}

#[test]
fn json_types() {
    run("json_types");
}

#[test]
fn json_random() {
    run("json_random");
}

#[test]
fn json_queries() {
    run("json_queries");
}

#[test]
fn json_tables() {
    run("json_tables");
}

#[test]
fn json_operators() {
    run("json_operators");
}

#[test]
fn json_functions() {
    run("json_functions");
}

#[test]
fn json_rows() {
    run("json_rows");
}

#[test]
fn json_names() {
    run("json_names");
}

#[test]
fn json_equality() {
    run("json_equality");
}

#[test]
fn partitions() {
    run("partitions");
}

#[test]
fn partition_queries() {
    run("partition_queries");
}

#[test]
fn partition_keys() {
    run("partition_keys");
}

#[test]
fn partitions_attached() {
    run("partitions_attached");
}

#[test]
fn overloads() {
    run("overloads");
}

#[test]
fn tables() {
    run("tables");
}

#[test]
fn composite() {
    run("composite");
}

#[test]
fn composite_routines() {
    run("composite_routines");
}

#[test]
fn enums() {
    run("enums");
}

#[test]
fn generated_columns() {
    run("generated_columns");
}

#[test]
fn generated_keys() {
    run("generated_keys");
}

#[test]
fn domains() {
    run("domains");
}

#[test]
fn types_in_use() {
    run("types_in_use");
}

#[test]
fn changes() {
    run("changes");
}

#[test]
fn keyless_changes() {
    run("keyless_changes");
}

#[test]
fn mixed_types() {
    run("mixed_types");
}

#[test]
fn with_changes() {
    run("with_changes");
}

#[test]
fn foreign_keys_of_keys() {
    run("foreign_keys_of_keys");
}

#[test]
fn deferred_foreign_keys() {
    run("deferred_foreign_keys");
}

#[test]
fn deferrable_unique() {
    run("deferrable_unique");
}

#[test]
fn constraints_later() {
    run("constraints_later");
}

#[test]
fn primary_keys() {
    run("primary_keys");
}

#[test]
fn key_updates() {
    run("key_updates");
}

#[test]
fn queries() {
    run("queries");
}

#[test]
fn returning_others() {
    run("returning_others");
}

#[test]
fn late_records() {
    run("late_records");
}

#[test]
fn changes_by_query() {
    run("changes_by_query");
}

#[test]
fn random_queries() {
    assert_wrote(&run("random_queries"), &["UNION", "INTERSECT", "EXCEPT"]);
}

#[test]
fn recursive() {
    assert_wrote(&run("recursive"), &["WITH RECURSIVE"]);
}

#[test]
fn explain() {
    run("explain");
}

#[test]
fn explain_logical() {
    run("explain_logical");
}

#[test]
fn text() {
    run("text");
}

#[test]
fn upsert() {
    run("upsert");
}

#[test]
fn constraints() {
    run("constraints");
}

#[test]
fn more_indexes() {
    run("more_indexes");
}

#[test]
fn joins() {
    assert_wrote(&run("joins"), &["UNION", "INTERSECT", "EXCEPT"]);
}

#[test]
fn expressions() {
    run("expressions");
}

#[test]
fn functions() {
    run("functions");
}

#[test]
fn aggregates() {
    run("aggregates");
}

#[test]
fn ledger_functions() {
    run("ledger_functions");
}

#[test]
fn handlers() {
    run("handlers");
}

#[test]
fn hashes() {
    run("hashes");
}

#[test]
fn dynamic() {
    run("dynamic");
}

#[test]
fn blocks() {
    run("blocks");
}

#[test]
fn refusals() {
    run("refusals");
}

#[test]
fn dates() {
    run("dates");
}

#[test]
fn small_numbers() {
    run("small_numbers");
}

#[test]
fn arrays() {
    run("arrays");
}

#[test]
fn formatting() {
    run("formatting");
}

#[test]
fn bytes() {
    run("bytes");
}

#[test]
fn array_procedures() {
    run("array_procedures");
}

#[test]
fn numbers() {
    run("numbers");
}

#[test]
fn only_tables() {
    run("only_tables");
}

#[test]
fn window_frames() {
    assert_wrote(&run("window_frames"), &["OVER"]);
}

#[test]
fn windows() {
    assert_wrote(&run("windows"), &["OVER"]);
}

#[test]
fn user_aggregates() {
    run("user_aggregates");
}

#[test]
fn numeric_large() {
    run("numeric_large");
}

#[test]
fn numeric_special() {
    run("numeric_special");
}

#[test]
fn date_forms() {
    run("date_forms");
}

#[test]
fn pair_aggregates() {
    run("pair_aggregates");
}

#[test]
fn regular_expressions() {
    run("regular_expressions");
}

#[test]
fn set_functions() {
    run("set_functions");
}

#[test]
fn set_functions_several() {
    run("set_functions_several");
}

#[test]
fn more_aggregates() {
    run("more_aggregates");
}

#[test]
fn views() {
    run("views");
}

#[test]
fn tables_of_queries() {
    run("tables_of_queries");
}

#[test]
fn alter_table() {
    run("alter_table");
}

#[test]
fn truncate() {
    run("truncate");
}

#[test]
fn dump() {
    run("dump");
}

#[test]
fn check_option() {
    run("check_option");
}

#[test]
fn instead_of() {
    run("instead_of");
}

#[test]
fn view_others() {
    run("view_others");
}

#[test]
fn view_conflicts() {
    run("view_conflicts");
}

#[test]
fn view_changes() {
    run("view_changes");
}

#[test]
fn counting() {
    run("counting");
}

#[test]
fn sequences() {
    run("sequences");
}

#[test]
fn temporary_tables() {
    run("temporary_tables");
}

#[test]
fn locking() {
    run("locking");
}

#[test]
fn loops_and_tables() {
    run("loops_and_tables");
}

#[test]
fn nested_joins() {
    run("nested_joins");
}

#[test]
fn time_zones() {
    run("time_zones");
}

#[test]
fn triggers() {
    run("triggers");
}

#[test]
fn trigger_tables() {
    run("trigger_tables");
}

#[test]
fn trigger_cascades() {
    run("trigger_cascades");
}

#[test]
fn trigger_definitions() {
    run("trigger_definitions");
}

#[test]
fn random_triggers() {
    run("random_triggers");
}

#[test]
fn polymorphic() {
    run("polymorphic");
}

#[test]
fn cursors() {
    run("cursors");
}

#[test]
fn plpgsql_names() {
    run("plpgsql_names");
}

#[test]
fn polymorphic_rows() {
    run("polymorphic_rows");
}

#[test]
fn null_tests() {
    run("null_tests");
}

#[test]
fn random_values() {
    run("random_values");
}

#[test]
fn real_numbers() {
    run("real_numbers");
}

#[test]
fn every_file_is_run() {
    let this = include_str!("sqllogic.rs");
    let files = std::fs::read_dir("tests/slt").expect("the files are there");
    let names = files.map(|file| file.expect("a name").path());
    let names = names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let forgotten: Vec<String> = names.filter(|name| !this.contains(&format!("run(\"{name}\")"))).collect();
    assert!(forgotten.is_empty(), "nobody runs {forgotten:?}");
}

#[test]
fn partial_indexes() {
    run("partial_indexes");
}

#[test]
fn expression_indexes() {
    run("expression_indexes");
}

#[test]
fn index_details() {
    run("index_details");
}

#[test]
fn index_access() {
    run("index_access");
}

#[test]
fn random_indexes() {
    run("random_indexes");
}

#[test]
fn digits_of_seconds() {
    run("digits_of_seconds");
}

#[test]
fn addresses_bits_and_ranges() {
    run("addresses_bits_and_ranges");
}

#[test]
fn materialized_views() {
    run("materialized_views");
}

#[test]
fn subscripts_assigned() {
    run("subscripts_assigned");
}

#[test]
fn decided_columns() {
    run("decided_columns");
}

#[test]
fn with_outer_columns() {
    run("with_outer_columns");
}

#[test]
fn recursive_in_name() {
    run("recursive_in_name");
}

#[test]
fn serial_sequences() {
    run("serial_sequences");
}

#[test]
fn numerics_as_doubles() {
    run("numerics_as_doubles");
}

#[test]
fn fetching() {
    run("fetching");
}

#[test]
fn sequence_cache() {
    run("sequence_cache");
}

#[test]
fn set_operands() {
    run("set_operands");
}

#[test]
fn scalars_in_from() {
    run("scalars_in_from");
}

#[test]
fn names_of_others() {
    run("names_of_others");
}

#[test]
fn full_text_search() {
    run("full_text_search");
}

#[test]
fn inverted_indexes() {
    run("inverted_indexes");
}

#[test]
fn hstore() {
    run("hstore");
}

#[test]
fn citext() {
    run("citext");
}

#[test]
fn trigrams() {
    run("trigrams");
}
