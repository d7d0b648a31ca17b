//! Names in SQL: of types, and of the columns of a result.

use crate::expression::refusals::shortened;
use sqlparser::ast::{self, Expr};
use syntax::names::{name_of, table_name};
use syntax::parse::routine::TYPE_OF_COLUMN;
use types::{
    CompositeTypes, DataType, ElementType, ExecutionVersion, Polymorphic, RangeType, SqlError, SqlState,
    TimeType, limits,
};

/// The type that SQL writes.
///
/// # Errors
/// `0A000` names a type that is not supported, `42704` one that does not exist, `22023` a precision that cannot be.
pub fn bind_data_type(types: &CompositeTypes, data_type: &ast::DataType) -> Result<DataType, SqlError> {
    let bound = bind_type_or_domain(types, data_type)?;
    match bound {
        DataType::Domain(_) => {
            let what = format!("the domain {} here", types.name_of(bound));
            let base = types.name_of(types.base_of(bound));
            let may = match types.rules() >= ExecutionVersion::V9 {
                true => "Columns, variables, parameters, results and casts",
                false => "Columns and casts",
            };
            Err(SqlError::unsupported(what).hint(format!(
                "{may} may have domains. Use {base}, and cast where values are to be checked."
            )))
        }
        known => Ok(known),
    }
}

/// The same where it may be a domain.
///
/// # Errors
/// As [`bind_data_type`].
pub fn bind_type_or_domain(types: &CompositeTypes, data_type: &ast::DataType) -> Result<DataType, SqlError> {
    use ast::{DataType as Sql, ExactNumberInfo as Info, TimezoneInfo};
    if types.rules() >= ExecutionVersion::V10
        && let Some(known) = type_of_time(data_type)
    {
        return Ok(known);
    }
    Ok(match data_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::Int(None) | Sql::Integer(None) | Sql::Int4(None) => DataType::Integer,
        Sql::BigInt(None) | Sql::Int8(None) => DataType::BigInt,
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => numeric_type(info)?,
        Sql::DoublePrecision | Sql::Float8 | Sql::Float(Info::None) => DataType::Double,
        Sql::Float(Info::Precision(25..=53)) => DataType::Double,
        Sql::Text => DataType::Text(None),
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => {
            match character_length(length, "varchar")? {
                Some(length) => DataType::Text(Some(length)),
                None if types.rules() < ExecutionVersion::V2 => DataType::Text(None),
                None => DataType::VARCHAR,
            }
        }
        // A precision of 6 digits says nothing: that is how exact they are.
        Sql::Timestamp(None | Some(6), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::TimestampTz
        }
        Sql::Timestamp(None | Some(6), _) => DataType::Timestamp,
        Sql::Time(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time,
        // Without a length it is one bit.
        Sql::Bit(length) if types.rules() >= ExecutionVersion::V10 => {
            DataType::Bit(Some(bit_length(*length, "bit")?.unwrap_or(1)))
        }
        Sql::BitVarying(length) | Sql::VarBit(length) if types.rules() >= ExecutionVersion::V10 => {
            DataType::VarBit(bit_length(*length, "varbit")?)
        }
        Sql::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            return Err(
                SqlError::unsupported("the type time with time zone").hint("Use time or timestamptz.")
            );
        }
        Sql::Date => DataType::Date,
        Sql::Interval { fields: None, precision: None | Some(6) } => DataType::Interval,
        Sql::Real | Sql::Float4 | Sql::Float(Info::Precision(1..=24)) => DataType::Real,
        Sql::SmallInt(None) | Sql::Int2(None) => DataType::SmallInt,
        Sql::Char(length) | Sql::Character(length) => char_type(length)?,
        Sql::Bytea => DataType::Bytea,
        Sql::Uuid => DataType::Uuid,
        Sql::JSON if types.rules() >= ExecutionVersion::V7 => DataType::Json,
        Sql::JSONB if types.rules() >= ExecutionVersion::V7 => DataType::Jsonb,
        Sql::TsVector if types.rules() >= ExecutionVersion::V15 => DataType::TsVector,
        Sql::TsQuery if types.rules() >= ExecutionVersion::V15 => DataType::TsQuery,
        Sql::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => array_type(types, element)?,
        Sql::Custom(name, modifiers) if modifiers.is_empty() => named_type(types, name)?,
        other => {
            let name = other.to_string().to_ascii_lowercase();
            // Names of other databases' types, such as uint64, are names here as any other.
            if types.rules() >= ExecutionVersion::V13
                && let Some(known) = types.find(&name)
            {
                return Ok(known.data_type());
            }
            let error = SqlError::unsupported(format_args!("the type {}", shortened(&name)));
            return Err(match name.as_str() {
                "json" | "jsonb" => error.hint("Use text, or columns of their own."),
                _ => error,
            });
        }
    })
}

/// An array of a type.
fn array_type(types: &CompositeTypes, element: &ast::DataType) -> Result<DataType, SqlError> {
    let element = bind_data_type(types, element)?;
    if element == DataType::RefCursor {
        return Err(SqlError::unsupported("an array of refcursor"));
    }
    match element {
        // However many dimensions a type says, an array has those that it has.
        DataType::Array(_) if types.rules() >= ExecutionVersion::V16 => Ok(element),
        _ => element
            .array()
            .ok_or_else(|| SqlError::unsupported("an array of more than one dimension").hint("Use a table.")),
    }
}

/// A type that is known by its name alone.
fn named_type(types: &CompositeTypes, name: &ast::ObjectName) -> Result<DataType, SqlError> {
    let name = match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => name_of(name)?,
        [ast::ObjectNamePart::Identifier(schema), ast::ObjectNamePart::Identifier(name)] => {
            match name_of(schema)?.as_str() {
                "pg_catalog" => name_of(name)?,
                schema => format!("{schema}.{}", name_of(name)?),
            }
        }
        _ => name.to_string().to_ascii_lowercase(),
    };
    Ok(match (name.as_str(), types.find(&name)) {
        ("bpchar", _) => DataType::Char(None),
        ("record", _) => DataType::Record,
        ("refcursor", _) => DataType::RefCursor,
        (_, Some(known)) => known.data_type(),
        ("json", None) if !is_newer_than(types.rules(), DataType::Json) => DataType::Json,
        ("jsonb", None) if !is_newer_than(types.rules(), DataType::Jsonb) => DataType::Jsonb,
        // The name of a configuration or dictionary is a text.
        ("regconfig" | "regdictionary", None) if types.rules() >= ExecutionVersion::V15 => {
            DataType::Text(None)
        }
        (other, None) => {
            match type_named(other).or_else(|| array_named(other)).or_else(|| of_extension(other)) {
                Some(known) if !is_newer_than(types.rules(), known) => known,
                _ => {
                    let message = format!("type \"{other}\" does not exist");
                    return Err(SqlError::new(SqlState(*b"42704"), message));
                }
            }
        }
    })
}

/// Whether older rules of execution do not have the type.
pub(super) fn is_newer_than(rules: ExecutionVersion, data_type: DataType) -> bool {
    let one = data_type.element().unwrap_or(data_type);
    (one.is_json() && rules < ExecutionVersion::V7)
        || (one.is_of_version_10() && rules < ExecutionVersion::V10)
        || (one.is_of_version_15() && rules < ExecutionVersion::V15)
        || (one.is_of_version_16() && rules < ExecutionVersion::V16)
}

/// A type of an extension in the schema where PostgreSQL makes these, unless somebody says otherwise.
fn of_extension(name: &str) -> Option<DataType> {
    name.strip_prefix("public.").and_then(type_named).filter(|known| known.is_of_extension())
}

fn array_named(name: &str) -> Option<DataType> {
    ElementType::from_array_name(name).map(DataType::Array)
}

/// A type that came with version 10 or later, by PostgreSQL's name for it.
fn type_named(name: &str) -> Option<DataType> {
    let simple = [
        DataType::Inet,
        DataType::Cidr,
        DataType::MacAddr,
        DataType::Bit(Some(1)),
        DataType::VarBit(None),
        DataType::TimeTz,
        DataType::TsVector,
        DataType::TsQuery,
        DataType::Hstore,
        DataType::Citext,
        DataType::Oid,
    ];
    let known = simple.into_iter().find(|known| known.internal_name() == name);
    known.or_else(|| RangeType::type_where(|(_, known)| known == name))
}

/// A type of time that came with version 10: one with a zone, or with digits of a second.
fn type_of_time(data_type: &ast::DataType) -> Option<DataType> {
    use ast::{DataType as Sql, TimezoneInfo as Zone};
    let (of, digits) = match data_type {
        Sql::Timestamp(Some(digits), Zone::WithTimeZone | Zone::Tz) => (TimeType::TimestampTz, *digits),
        Sql::Timestamp(Some(digits), _) => (TimeType::Timestamp, *digits),
        Sql::Time(digits, Zone::WithTimeZone | Zone::Tz) => (TimeType::TimeTz, digits.unwrap_or(6)),
        Sql::Time(Some(digits), _) => (TimeType::Time, *digits),
        Sql::Interval { fields: None, precision: Some(digits) } => (TimeType::Interval, *digits),
        _ => return None,
    };
    Some(of.rounded(second_digits(digits)))
}

/// Digits of a second: PostgreSQL takes more than six for six, with a warning.
fn second_digits(digits: u64) -> u8 {
    digits.min(6) as u8
}

/// The length of a type of bits.
fn bit_length(length: Option<u64>, name: &str) -> Result<Option<u32>, SqlError> {
    let error = |what: &str| {
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("length for type {name} {what}")))
    };
    match length.map(u32::try_from) {
        None => Ok(None),
        Some(Ok(0)) => error("must be at least 1"),
        Some(Ok(length)) if length as usize <= types::text_bytes_max() => Ok(Some(length)),
        Some(_) => error(&format!("cannot exceed {}", types::text_bytes_max())),
    }
}

/// The type of a parameter or result of a function, which may be polymorphic.
///
/// # Errors
/// As [`bind_data_type`].
pub fn bind_routine_type(types: &CompositeTypes, data_type: &ast::DataType) -> Result<DataType, SqlError> {
    let bind = |data_type: &ast::DataType| match types.rules() >= ExecutionVersion::V9 {
        true => bind_type_or_domain(types, data_type),
        false => bind_data_type(types, data_type),
    };
    let ast::DataType::Custom(name, modifiers) = data_type else { return bind(data_type) };
    if modifiers.first().is_some_and(|modifier| modifier == TYPE_OF_COLUMN) {
        return type_of_column(types, name);
    }
    let name = name.to_string().to_ascii_lowercase();
    match (Polymorphic::named(&name), name.as_str()) {
        (Some(polymorphic), _) if modifiers.is_empty() => Ok(DataType::Polymorphic(polymorphic)),
        (
            _,
            "anyrange"
            | "anymultirange"
            | "anyenum"
            | "anycompatiblerange"
            | "anycompatiblemultirange"
            | "\"any\"",
        ) => Err(SqlError::unsupported(format_args!("the type {name}"))),
        _ => bind(data_type),
    }
}

/// `table.column%TYPE`
fn type_of_column(types: &CompositeTypes, name: &ast::ObjectName) -> Result<DataType, SqlError> {
    let mut parts = name.0.clone();
    let column = parts.pop();
    let column = column.as_ref().and_then(|part| part.as_ident()).filter(|_| !parts.is_empty());
    let Some(column) = column else {
        let message = format!("improper %TYPE reference (too few dotted names): {name}");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    };
    let (relation, column) = (table_name(&ast::ObjectName(parts))?, name_of(column)?);
    let known = types.find(&relation).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{relation}\" does not exist"))
    })?;
    known.field(&column).map(|(_, data_type)| data_type).ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

fn numeric_type(info: &ast::ExactNumberInfo) -> Result<DataType, SqlError> {
    let (precision, scale) = match info {
        ast::ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ast::ExactNumberInfo::Precision(precision) => (*precision, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let most = limits::NUMERIC_PRECISION_MAX;
    let error = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    let Some(precision) = u16::try_from(precision).ok().filter(|precision| (1..=most).contains(precision))
    else {
        return error(format!("NUMERIC precision {precision} must be between 1 and {most}"));
    };
    match i16::try_from(scale).ok().filter(|scale| scale.unsigned_abs() <= most) {
        Some(scale) => Ok(DataType::Numeric(Some((precision, scale)))),
        None => error(format!("NUMERIC scale {scale} must be between -{most} and {most}")),
    }
}

/// Without a length it is one character.
fn char_type(length: &Option<ast::CharacterLength>) -> Result<DataType, SqlError> {
    Ok(DataType::Char(Some(character_length(length, "char")?.unwrap_or(1))))
}

fn character_length(length: &Option<ast::CharacterLength>, name: &str) -> Result<Option<u32>, SqlError> {
    let error = |what: &str| {
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("length for type {name} {what}")))
    };
    match length {
        None => Ok(None),
        Some(ast::CharacterLength::IntegerLength { length, unit: None }) => match u32::try_from(*length) {
            Ok(0) => error("must be at least 1"),
            Ok(length) if length <= 10_485_760 => Ok(Some(length)),
            _ => error("cannot exceed 10485760"),
        },
        Some(other) => Err(SqlError::unsupported(format_args!("the type {name}({other})"))),
    }
}

/// The name that PostgreSQL gives an output column without AS.
pub fn output_name(expr: &Expr) -> String {
    figured_name(expr).map_or_else(|| "?column?".to_string(), |(name, _)| name)
}

/// Name and strength: a name that comes from a cast or CASE yields to one from inside of it.
fn figured_name(expr: &Expr) -> Option<(String, u8)> {
    let strong = |name: &str| Some((name.to_string(), 2));
    match expr {
        Expr::Identifier(name) => Some((name_of(name).unwrap_or_default(), 2)),
        Expr::CompoundIdentifier(parts) => Some((parts.last().and_then(|p| name_of(p).ok())?, 2)),
        Expr::Subquery(query) => name_of_query(query),
        Expr::Exists { .. } => strong("exists"),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured_name(inner),
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?;
            Some((name_of(name).unwrap_or_default(), 2))
        }
        Expr::Cast { expr, data_type, .. } => match figured_name(expr) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some((internal_type_name(data_type)?, 1)),
        },
        Expr::TypedString(typed) => Some((internal_type_name(&typed.data_type)?, 1)),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured_name) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some(("case".to_string(), 1)),
        },
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Expr::Extract { .. } => strong("extract"),
        Expr::Interval(_) => Some(("interval".to_string(), 1)),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Array(_) => strong("array"),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(Expr::Identifier(name)) => name_of(name).ok(),
                _ => None,
            });
            field.map_or_else(|| figured_name(root), |field| Some((field, 2)))
        }
        Expr::Tuple(_) => strong("row"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        _ => None,
    }
}

/// The name of the first column of a query's output.
fn name_of_query(query: &ast::Query) -> Option<(String, u8)> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            ast::SetExpr::Select(select) => {
                return match select.projection.first()? {
                    ast::SelectItem::ExprWithAlias { alias, .. } => Some((name_of(alias).ok()?, 2)),
                    ast::SelectItem::UnnamedExpr(expr) => figured_name(expr),
                    _ => None,
                };
            }
            ast::SetExpr::Query(inner) => inner.body.as_ref(),
            ast::SetExpr::SetOperation { left, .. } => left.as_ref(),
            ast::SetExpr::Values(_) => return Some(("column1".to_string(), 2)),
            _ => return None,
        };
    }
}

fn internal_type_name(data_type: &ast::DataType) -> Option<String> {
    let known = bind_data_type(&CompositeTypes::default(), data_type);
    if known.is_err() {
        return match data_type {
            ast::DataType::Custom(name, _) => name.0.last().and_then(|name| name_of(name.as_ident()?).ok()),
            ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => {
                internal_type_name(element)
            }
            // A type of the ledger that is named as one of another database.
            other => {
                Some(other.to_string().to_ascii_lowercase()).filter(|name| !name.contains([' ', '(', '[']))
            }
        };
    }
    let name = match (known.ok()?, data_type) {
        (DataType::Unknown, _) => return None,
        (DataType::Text(None), ast::DataType::Text) => "text",
        (DataType::Text(_), _) => "varchar",
        // A cast to an array has the name of its elements' type.
        (DataType::Array(element), _) => element.data_type().internal_name(),
        (bound, _) => bound.internal_name(),
    };
    Some(name.to_string())
}
