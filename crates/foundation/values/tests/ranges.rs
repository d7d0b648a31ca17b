//! Compares ranges with what PostgreSQL 15 gave: `data/ranges.tsv`, made by `data/ranges.sql`. `RANGES` names another file of the same
//! kind.

use types::{
    DataType, ExecutionVersion, RangeType, SqlError, SqlState, Value, can_cast_explicitly,
    can_cast_implicitly, cast, format_value, parse_value,
};
use values::functions::{range_intersection, range_union_all, resolve};

/// What a line of the file says; `None` is NULL.
struct Expectation {
    operation: String,
    left: (String, Option<String>),
    right: (String, Option<String>),
    /// Type of the result, or SQLSTATE.
    result_type: String,
    /// Text of the result, or message, detail and hint.
    result: Option<String>,
}

/// Undoes the escapes of COPY.
fn unescape(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let (mut text, mut characters) = (String::new(), field.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next().map(|escaped| if escaped == 't' { '\t' } else { escaped })),
            other => text.push(other),
        }
    }
    Some(text)
}

fn expectations() -> Vec<Expectation> {
    let text = match std::env::var("RANGES") {
        Ok(path) => std::fs::read_to_string(path).expect("a file"),
        Err(_) => include_str!("data/ranges.tsv").to_string(),
    };
    let rows = text.lines().map(|line| {
        let fields: Vec<Option<String>> = line.split('\t').map(unescape).collect();
        let [operation, left_type, left, right_type, right, result_type, result] =
            fields.try_into().expect("seven columns");
        Expectation {
            operation: operation.expect("it has a name"),
            left: (left_type.expect("it has a type"), left),
            right: (right_type.unwrap_or_default(), right),
            result_type: result_type.expect("it has a type"),
            result,
        }
    });
    rows.collect()
}

fn data_type(name: &str) -> DataType {
    if let Some(element) = name.strip_suffix("[]") {
        return data_type(element).array().expect("a type that has arrays");
    }
    let known = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Numeric(None),
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::Text(None),
        DataType::Unknown,
    ];
    let ranges =
        RangeType::ALL.into_iter().flat_map(|known| [DataType::Range(known), DataType::Multirange(known)]);
    known.into_iter().chain(ranges).find(|known| known.to_string() == name).expect(name)
}

fn operand((data_type_name, text): &(String, Option<String>)) -> Result<(DataType, Value), SqlError> {
    let data_type = data_type(data_type_name);
    let value = text.as_ref().map(|text| parse_value(text, data_type)).transpose()?;
    Ok((data_type, value.unwrap_or_default()))
}

/// What a call of a function or operator gives, and of which type.
fn called(name: &str, operands: Vec<(DataType, Value)>) -> Result<(DataType, Value), SqlError> {
    let types: Vec<DataType> = operands.iter().map(|(data_type, _)| *data_type).collect();
    let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "there is no such function");
    let signature = resolve(name, &types, ExecutionVersion::NEWEST)?.ok_or_else(missing)?;
    if !types.iter().zip(&signature.arguments).all(|(from, to)| can_cast_implicitly(*from, *to)) {
        return Err(missing());
    }
    let values = operands.into_iter().zip(&signature.arguments).map(|((_, value), to)| cast(value, *to));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let value = match signature.function.is_strict() && values.iter().any(Value::is_null) {
        true => Value::Null,
        false => signature.function.call(&values, signature.result)?,
    };
    Ok((signature.result, value))
}

/// A range of two bounds, of which the type of the right one says which are in it.
fn constructed(row: &Expectation) -> Result<(DataType, Value), SqlError> {
    let DataType::Range(range_type) = data_type(&row.left.0) else { panic!("a type of ranges") };
    let bound = |text: &Option<String>| operand(&(range_type.element().to_string(), text.clone()));
    let flags = match row.right.0.as_str() {
        "NULL" => Value::Null,
        flags => Value::text(flags),
    };
    let operands = vec![bound(&row.left.1)?, bound(&row.right.1)?, (DataType::Text(None), flags)];
    called(&row.left.0, operands)
}

fn evaluate(row: &Expectation) -> Result<(DataType, Value), SqlError> {
    if row.operation == "construct" {
        return constructed(row);
    }
    let left = operand(&row.left)?;
    match row.operation.as_str() {
        "parse" => return Ok(left),
        "cast" => {
            let target = data_type(&row.right.0);
            if !can_cast_explicitly(left.0, target) {
                return Err(SqlError::new(SqlState(*b"42846"), "there is no such cast"));
            }
            return Ok((target, cast(left.1, target)?));
        }
        "range_agg" | "range_intersect_agg" => {
            let Value::Array(array) = left.1 else { panic!("an array") };
            let element = array.element().data_type();
            return match (row.operation.as_str(), element) {
                ("range_agg", DataType::Range(known) | DataType::Multirange(known)) => {
                    Ok((DataType::Multirange(known), range_union_all(array.values())?))
                }
                _ => {
                    let mut known = array.values().iter().filter(|value| !value.is_null());
                    let first = known.next().cloned().unwrap_or(Value::Null);
                    Ok((element, known.try_fold(first, |common, next| range_intersection(&common, next))?))
                }
            };
        }
        _ => {}
    }
    if row.right.0.is_empty() {
        return called(&row.operation, vec![left]);
    }
    let right = operand(&row.right)?;
    if row.operation.ends_with("_cmp") {
        let order = left.1.compare(&right.1).expect("not NULL");
        return Ok((DataType::Integer, Value::Integer(order as i32)));
    }
    called(&row.operation, vec![left, right])
}

/// What is not as it was there.
fn complaint(row: &Expectation) -> Option<String> {
    let (found_type, found) = match evaluate(row) {
        // A boolean as a cast to text writes it.
        Ok((data_type, Value::Boolean(truth))) => (data_type.to_string(), Some(truth.to_string())),
        Ok((data_type, value)) => (data_type.to_string(), format_value(&value)),
        Err(error) => {
            let parts = [Some(error.message), error.detail, error.hint].into_iter().flatten();
            (error.state.to_string(), Some(parts.collect::<Vec<_>>().join(" / ")))
        }
    };
    let is_missing = matches!(row.result_type.as_str(), "42883" | "42846");
    let same = found_type == row.result_type && (is_missing || found == row.result);
    (!same).then(|| format!("{found_type} {found:?}"))
}

#[test]
fn ranges_behave_as_in_postgresql() {
    let rows = expectations();
    assert!(rows.len() > 1_000);
    let describe = |row: &Expectation, found: String| {
        let (operation, left, right) = (&row.operation, &row.left, &row.right);
        let expected = (&row.result_type, &row.result);
        format!("{operation} {left:?} {right:?}: expected {expected:?}, found {found}")
    };
    let complaints: Vec<String> =
        rows.iter().filter_map(|row| complaint(row).map(|found| describe(row, found))).collect();
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), rows.len(), complaints.join("\n"));
}
