//! The functions of the system that are there for the states of aggregates, by PostgreSQL's names.

use types::DataType;

/// A function over a state and what a row adds.
pub struct SupportFunction {
    /// Types of the arguments; `None` takes every type.
    pub arguments: Vec<Option<DataType>>,
    /// Type of the result.
    pub result: DataType,
    /// It is NULL where an argument is.
    pub is_strict: bool,
    /// Its value as SQL, of `$1` and so on.
    pub sql: &'static str,
}

const NUMERIC: DataType = DataType::Numeric(None);
const TEXT: DataType = DataType::Text(None);

/// The function of this name; `None` where there is none.
pub fn support_function(name: &str) -> Option<SupportFunction> {
    use DataType::{BigInt, Boolean, Double, Integer, SmallInt};
    let of = |arguments: &[DataType], result: DataType, is_strict: bool, sql: &'static str| {
        let arguments = arguments.iter().copied().map(Some).collect();
        Some(SupportFunction { arguments, result, is_strict, sql })
    };
    let (big_integers, doubles) = (BigInt.array()?, Double.array()?);
    match name {
        "int8inc" => of(&[BigInt], BigInt, true, "$1 + 1"),
        "int8dec" => of(&[BigInt], BigInt, true, "$1 - 1"),
        "int8inc_any" => {
            let arguments = vec![Some(BigInt), None];
            Some(SupportFunction { arguments, result: BigInt, is_strict: true, sql: "$1 + 1" })
        }
        "booland_statefunc" => of(&[Boolean, Boolean], Boolean, true, "$1 AND $2"),
        "boolor_statefunc" => of(&[Boolean, Boolean], Boolean, true, "$1 OR $2"),
        "textcat" => of(&[TEXT, TEXT], TEXT, true, "$1 || $2"),
        "text_larger" => of(&[TEXT, TEXT], TEXT, true, "greatest($1, $2)"),
        "text_smaller" => of(&[TEXT, TEXT], TEXT, true, "least($1, $2)"),
        "int2_sum" => of(&[BigInt, SmallInt], BigInt, false, "coalesce($1 + $2, $2, $1)"),
        "int4_sum" => of(&[BigInt, Integer], BigInt, false, "coalesce($1 + $2, $2, $1)"),
        "int8_sum" => of(&[NUMERIC, BigInt], NUMERIC, false, "coalesce($1 + $2, $2, $1)"),
        "int2_avg_accum" => of(&[big_integers, SmallInt], big_integers, true, "ARRAY[$1[1] + 1, $1[2] + $2]"),
        "int4_avg_accum" => of(&[big_integers, Integer], big_integers, true, "ARRAY[$1[1] + 1, $1[2] + $2]"),
        "int8_avg" => {
            of(&[big_integers], NUMERIC, true, "CASE WHEN $1[1] <> 0 THEN $1[2]::numeric / $1[1] END")
        }
        "int2int4_sum" => of(&[big_integers], BigInt, true, "CASE WHEN $1[1] <> 0 THEN $1[2] END"),
        "float8_accum" => of(
            &[doubles, Double],
            doubles,
            true,
            "ARRAY[$1[1] + 1, $1[2] + $2, CASE WHEN $1[1] > 0 THEN $1[3] + ($2 * ($1[1] + 1) - ($1[2] + $2)) \
             * ($2 * ($1[1] + 1) - ($1[2] + $2)) / (($1[1] + 1) * $1[1]) ELSE $1[3] END]",
        ),
        "float8_avg" => of(&[doubles], Double, true, "CASE WHEN $1[1] <> 0 THEN $1[2] / $1[1] END"),
        "float8_var_pop" => of(&[doubles], Double, true, "CASE WHEN $1[1] <> 0 THEN $1[3] / $1[1] END"),
        "float8_var_samp" => of(&[doubles], Double, true, "CASE WHEN $1[1] > 1 THEN $1[3] / ($1[1] - 1) END"),
        _ => operator_function(name),
    }
}

/// The functions of the operators of numbers, and the larger and the smaller of two.
fn operator_function(name: &str) -> Option<SupportFunction> {
    use DataType::{BigInt, Double, Integer, Real, SmallInt};
    const TYPES: [(&str, DataType); 5] =
        [("int2", SmallInt), ("int4", Integer), ("int8", BigInt), ("float4", Real), ("float8", Double)];
    let numeric = name.strip_prefix("numeric_").map(|rest| (NUMERIC, rest));
    let other =
        || TYPES.iter().find_map(|(prefix, data_type)| Some((*data_type, name.strip_prefix(prefix)?)));
    let (data_type, operation) = numeric.or_else(other)?;
    let sql = match (operation, data_type == NUMERIC) {
        ("pl", false) | ("add", true) => "$1 + $2",
        ("mi", false) | ("sub", true) => "$1 - $2",
        ("mul", _) => "$1 * $2",
        ("div", _) => "$1 / $2",
        ("larger", _) => "greatest($1, $2)",
        ("smaller", _) => "least($1, $2)",
        _ => return None,
    };
    let arguments = vec![Some(data_type); 2];
    Some(SupportFunction { arguments, result: data_type, is_strict: true, sql })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_operators_are_found_by_type_and_operation() {
        let types = |name| support_function(name).map(|found| (found.arguments, found.sql));
        assert_eq!(types("int4pl"), Some((vec![Some(DataType::Integer); 2], "$1 + $2")));
        assert_eq!(types("float8larger"), Some((vec![Some(DataType::Double); 2], "greatest($1, $2)")));
        assert_eq!(types("numeric_add"), Some((vec![Some(NUMERIC); 2], "$1 + $2")));
        for unknown in ["numeric_pl", "int4add", "int4", "numeric_avg_accum", ""] {
            assert_eq!(types(unknown), None, "{unknown}");
        }
    }
}
