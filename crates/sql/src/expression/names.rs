//! Names in SQL: of types, and of the columns of a result.

use super::shortened;
use crate::scope::name_of;
use sqlparser::ast::{self, Expr};
use types::{DataType, SqlError, SqlState, limits};

/// The type that SQL writes.
///
/// # Errors
/// `0A000` names a type that is not supported, `42704` one that does not exist, `22023` a precision that cannot be.
pub(crate) fn bind_data_type(data_type: &ast::DataType) -> Result<DataType, SqlError> {
    use ast::{DataType as Sql, ExactNumberInfo as Info, TimezoneInfo};
    Ok(match data_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::Int(None) | Sql::Integer(None) | Sql::Int4(None) => DataType::Integer,
        Sql::BigInt(None) | Sql::Int8(None) => DataType::BigInt,
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => numeric_type(info)?,
        Sql::DoublePrecision | Sql::Float8 | Sql::Float(Info::None) => DataType::Double,
        Sql::Float(Info::Precision(25..=53)) => DataType::Double,
        Sql::Text => DataType::Text(None),
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => text_type(length)?,
        Sql::Timestamp(None, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => DataType::TimestampTz,
        Sql::Timestamp(Some(6), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => DataType::TimestampTz,
        Sql::Timestamp(None, _) => {
            return Err(
                SqlError::unsupported("the type timestamp without time zone").hint("Use timestamptz.")
            );
        }
        Sql::Real | Sql::Float4 | Sql::Float(_) => {
            return Err(SqlError::unsupported("the type real").hint("Use double precision."));
        }
        Sql::SmallInt(_) | Sql::Int2(_) => {
            return Err(SqlError::unsupported("the type smallint").hint("Use integer."));
        }
        Sql::Char(_) | Sql::Character(_) => {
            return Err(SqlError::unsupported("the type character").hint("Use varchar(n) or text."));
        }
        Sql::Custom(name, modifiers) if modifiers.is_empty() => {
            match name.to_string().to_ascii_lowercase().as_str() {
                "serial" | "bigserial" | "smallserial" => {
                    return Err(SqlError::unsupported(format_args!("the type {name}"))
                    .hint("Choose keys in the client, or leave the primary key out: rows keep the order of insertion."));
                }
                other => {
                    let message = format!("type \"{other}\" does not exist");
                    return Err(SqlError::new(SqlState(*b"42704"), message));
                }
            }
        }
        other => {
            let name = other.to_string().to_ascii_lowercase();
            return Err(SqlError::unsupported(format_args!("the type {}", shortened(&name))));
        }
    })
}

fn numeric_type(info: &ast::ExactNumberInfo) -> Result<DataType, SqlError> {
    let (precision, scale) = match info {
        ast::ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ast::ExactNumberInfo::Precision(precision) => (*precision, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let max = limits::NUMERIC_PRECISION_MAX;
    let error = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), _) if precision == 0 || precision > max => {
            error(format!("NUMERIC precision {precision} must be between 1 and {max}"))
        }
        (Ok(precision), Ok(scale)) if scale <= precision => Ok(DataType::Numeric(Some((precision, scale)))),
        (Ok(precision), _) => error(format!("NUMERIC scale {scale} must be between 0 and {precision}")),
        (Err(_), _) => error(format!("NUMERIC precision {precision} must be between 1 and {max}")),
    }
}

fn text_type(length: &Option<ast::CharacterLength>) -> Result<DataType, SqlError> {
    match length {
        None => Ok(DataType::Text(None)),
        Some(ast::CharacterLength::IntegerLength { length, unit: None }) => match u32::try_from(*length) {
            Ok(0) => {
                let message = "length for type varchar must be at least 1";
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
            Ok(length) if length <= 10_485_760 => Ok(DataType::Text(Some(length))),
            _ => {
                let message = "length for type varchar cannot exceed 10485760";
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        },
        Some(other) => Err(SqlError::unsupported(format_args!("the type varchar({other})"))),
    }
}

/// The name that PostgreSQL gives an output column without AS.
pub(crate) fn output_name(expr: &Expr) -> String {
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
    let name = match bind_data_type(data_type).ok()? {
        DataType::Boolean => "bool",
        DataType::Integer => "int4",
        DataType::BigInt => "int8",
        DataType::Numeric(_) => "numeric",
        DataType::Double => "float8",
        DataType::Text(_) => match data_type {
            ast::DataType::Text => "text",
            _ => "varchar",
        },
        DataType::TimestampTz => "timestamptz",
        DataType::Unknown => return None,
    };
    Some(name.to_string())
}
