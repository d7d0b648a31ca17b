//! Functions that there are not, on purpose.

use types::ExecutionVersion;

/// What execution version 7 has of them.
const SINCE_7: [&str; 19] = [
    "random",
    "gen_random_uuid",
    "uuid_generate_v4",
    "clock_timestamp",
    "statement_timestamp",
    "row_to_json",
    "to_json",
    "to_jsonb",
    "array_to_json",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
    "json_object",
    "jsonb_object",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
];

/// What execution version 8 has of them.
const SINCE_8: [&str; 7] = [
    "current_user",
    "session_user",
    "user",
    "current_role",
    "current_database",
    "current_schema",
    "current_catalog",
];

/// A function whose value differs between nodes or depends on the session, and what to use instead.
pub fn refused(name: &str, version: ExecutionVersion) -> Option<&'static str> {
    let has = |since, names: &[&str]| version >= since && names.contains(&name);
    if has(ExecutionVersion::V7, &SINCE_7)
        || has(ExecutionVersion::V8, &SINCE_8)
        || has(ExecutionVersion::V10, &["current_time"])
    {
        return None;
    }
    if version >= ExecutionVersion::V7 && name.starts_with("jsonb_path_") {
        return Some("There are no SQL/JSON paths: use ->, #>, @> and jsonb_array_elements().");
    }
    Some(match name {
        "random" | "setseed" | "random_normal" => "Pass a random number as an argument.",
        "gen_random_uuid" | "uuid_generate_v4" | "uuid_generate_v1" => "Pass the identifier as an argument.",
        "row_to_json" | "to_json" | "to_jsonb" | "array_to_json" | "json_build_object"
        | "jsonb_build_object" | "json_build_array" | "jsonb_build_array" | "json_object"
        | "jsonb_object" | "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" => {
            "There is no JSON: give rows, a composite type or an array, or make a text with format()."
        }
        "clock_timestamp" | "statement_timestamp" | "timeofday" => "Use now(), the time of the block.",
        "current_time" => "Use localtime, the time of the block.",
        "pg_sleep" | "txid_current" | "pg_backend_pid" | "pg_current_xact_id" => {
            "Every node must compute the same; leave it out."
        }
        "current_user" | "session_user" | "user" | "current_role" | "version" | "current_database"
        | "current_schema" | "current_catalog" => "It depends on the session; pass it as an argument.",
        _ => return None,
    })
}
