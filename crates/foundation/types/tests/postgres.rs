//! Compares parsing, printing, arithmetic, rounding and casts with what PostgreSQL 15 gave for the same operands:
//! `data/postgres.tsv`, made by `data/postgres.sql`, and `data/addresses.tsv`, made by `data/addresses.sql`.

use types::{
    ArithmeticOperator, DataType, Numeric, SqlError, Value, absolute, arithmetic, arithmetic_result, assign,
    can_cast_explicitly, can_cast_in_assignment, cast, common_type, concatenate, format_value, negate,
    parse_value,
};

struct Expectation {
    operation: String,
    left_type: String,
    left: String,
    right_type: String,
    right: String,
    /// Type of the result, or SQLSTATE.
    result_type: String,
    /// Text of the result, or message.
    result: String,
}

impl Expectation {
    fn is_error(&self) -> bool {
        self.result_type.len() == 5
            && self.result_type.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    }
}

/// Undoes the escapes of COPY.
fn unescape(field: &str) -> String {
    let (mut text, mut characters) = (String::new(), field.chars());
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next().expect("an escape has two characters") {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            other => other,
        });
    }
    text
}

fn expectations() -> Vec<Expectation> {
    let files = [include_str!("data/postgres.tsv"), include_str!("data/addresses.tsv")];
    let rows = files.iter().flat_map(|file| file.lines()).map(|line| {
        let fields: Vec<String> = line.split('\t').map(unescape).collect();
        let [operation, left_type, left, right_type, right, result_type, result] =
            fields.try_into().expect("seven columns");
        Expectation { operation, left_type, left, right_type, right, result_type, result }
    });
    rows.collect()
}

fn data_type(name: &str) -> DataType {
    let modifier = |prefix: &str| -> Option<Vec<u32>> {
        let inside = name.strip_prefix(prefix)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inside.split(',').map(|part| part.parse().expect("a number")).collect())
    };
    match name {
        "boolean" => DataType::Boolean,
        "integer" => DataType::Integer,
        "bigint" => DataType::BigInt,
        "numeric" => DataType::Numeric(None),
        "double precision" => DataType::Double,
        "text" | "character varying" => DataType::Text(None),
        "timestamp with time zone" => DataType::TimestampTz,
        "unknown" => DataType::Unknown,
        "smallint" => DataType::SmallInt,
        "real" => DataType::Real,
        "date" => DataType::Date,
        "timestamp without time zone" => DataType::Timestamp,
        "time without time zone" => DataType::Time,
        "interval" => DataType::Interval,
        "character" => DataType::Char(None),
        "character(5)" => DataType::Char(Some(5)),
        "bytea" => DataType::Bytea,
        "uuid" => DataType::Uuid,
        "inet" => DataType::Inet,
        "cidr" => DataType::Cidr,
        "macaddr" => DataType::MacAddr,
        "bit" => DataType::Bit(None),
        "bit varying" => DataType::VarBit(None),
        "time with time zone" => DataType::TimeTz,
        _ if name.ends_with("[]") => {
            data_type(name.trim_end_matches("[]")).array().expect("a type that has arrays")
        }
        _ => {
            let length = |prefix: &str| modifier(prefix).map(|parts| parts[0]);
            let numeric = modifier("numeric").map(|parts| (parts[0] as u16, parts[1] as i16));
            let found = numeric.map(|parts| DataType::Numeric(Some(parts)));
            found
                .or_else(|| length("character varying").map(|length| DataType::Text(Some(length))))
                .or_else(|| length("bit varying").map(|length| DataType::VarBit(Some(length))))
                .or_else(|| length("bit").map(|length| DataType::Bit(Some(length))))
                .unwrap_or_else(|| panic!("unknown type {name}"))
        }
    }
}

fn operator(symbol: &str) -> Option<ArithmeticOperator> {
    Some(match symbol {
        "+" => ArithmeticOperator::Add,
        "-" => ArithmeticOperator::Subtract,
        "*" => ArithmeticOperator::Multiply,
        "/" => ArithmeticOperator::Divide,
        "%" => ArithmeticOperator::Remainder,
        _ => return None,
    })
}

/// `None` where an operand is none of our values.
fn evaluate(row: &Expectation) -> Option<Result<Value, SqlError>> {
    if row.operation == "parse" {
        return Some(parse_value(&row.left, data_type(&row.left_type)));
    }
    if row.operation == "bits" {
        let bits = u64::from_str_radix(&row.left, 16).expect("hexadecimal");
        return Some(Ok(Value::Double(f64::from_bits(bits))));
    }
    let left = parse_value(&row.left, data_type(&row.left_type)).ok()?;
    match row.operation.as_str() {
        "cast" => return Some(cast(left, data_type(&row.right_type))),
        "assign" => return Some(assign(left, data_type(&row.right_type))),
        _ => {}
    }
    if row.right_type.is_empty() {
        return Some(function(&row.operation, &left, None));
    }
    let right = parse_value(&row.right, data_type(&row.right_type)).ok()?;
    Some(match operator(&row.operation) {
        Some(op) => arithmetic(op, &left, &right),
        None if row.operation == "||" => concatenate(&left, &right),
        None => match right {
            Value::Integer(digits) => function(&row.operation, &left, Some(digits)),
            _ => panic!("digits are an integer"),
        },
    })
}

fn function(name: &str, value: &Value, digits: Option<i32>) -> Result<Value, SqlError> {
    let numeric = |apply: fn(&Numeric, i32) -> Result<Numeric, SqlError>| match value {
        Value::Numeric(number) => apply(number, digits.unwrap_or(0)).map(Value::Numeric),
        other => panic!("{name}({other:?})"),
    };
    match name {
        "-" => negate(value),
        "abs" => absolute(value),
        "sign" => numeric(|number, _| Ok(number.sign())),
        "ceil" => numeric(|number, _| number.ceil()),
        "floor" => numeric(|number, _| number.floor()),
        "round" => numeric(Numeric::round),
        "trunc" => numeric(Numeric::trunc),
        _ => panic!("unknown function {name}"),
    }
}

fn complaint(row: &Expectation) -> Option<String> {
    if row.operation == "common" {
        let found = common_type(row.left.split(',').map(data_type));
        let expected = (!row.is_error()).then(|| data_type(&row.result_type));
        return (found != expected).then(|| format!("{found:?}"));
    }
    if row.operation == "assign" && row.result_type == "42804" {
        // A text value may be a literal of unknown type here, and the message names the column.
        return None;
    }
    let found = evaluate(row)?;
    match found {
        Ok(value) => {
            let text = format_value(&value).unwrap_or_default();
            let same =
                !row.is_error() && text == row.result && value.data_type() == data_type(&row.result_type);
            (!same).then(|| format!("{} {text:?}", value.data_type()))
        }
        Err(error) => {
            let same = row.result_type == error.state.to_string() && row.result == error.message;
            (!same).then(|| format!("{} {}", error.state, error.message))
        }
    }
}

#[test]
fn values_behave_as_in_postgresql() {
    let rows = expectations();
    assert!(rows.len() > 1_000);
    let mut complaints = Vec::new();
    for row in &rows {
        if let Some(found) = complaint(row) {
            complaints.push(format!(
                "{} {:?}::{} {:?}::{}: expected {} {:?}, found {found}",
                row.operation,
                row.left,
                row.left_type,
                row.right,
                row.right_type,
                row.result_type,
                row.result
            ));
        }
    }
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), rows.len(), complaints.join("\n"));
}

#[test]
fn operators_exist_for_the_types_for_which_postgresql_has_them() {
    for row in expectations() {
        let Some(op) = operator(&row.operation).filter(|_| !row.right_type.is_empty()) else {
            continue;
        };
        let found = arithmetic_result(op, data_type(&row.left_type), data_type(&row.right_type));
        if !row.is_error() {
            assert_eq!(found, Some(data_type(&row.result_type)), "{} {op} {}", row.left_type, row.right_type);
        } else if row.result_type == "42883" {
            assert_eq!(found, None, "{} {op} {}", row.left_type, row.right_type);
        }
    }
}

#[test]
fn casts_exist_where_postgresql_has_them() {
    for row in expectations() {
        let pair = |row: &Expectation| (data_type(&row.left_type), data_type(&row.right_type));
        let (from, to) = match row.operation.as_str() {
            "cast" | "assign" => pair(&row),
            _ => continue,
        };
        let (found, missing) = match row.operation.as_str() {
            "cast" => (can_cast_explicitly(from, to), "42846"),
            _ => (can_cast_in_assignment(from, to), "42804"),
        };
        assert_eq!(found, row.result_type != missing, "{} of {from} to {to}", row.operation);
    }
}
