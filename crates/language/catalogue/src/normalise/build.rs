//! Parts of syntax trees.

use sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Value,
};

/// A text.
pub(crate) fn literal(text: &str) -> Expr {
    cast(Expr::value(Value::SingleQuotedString(text.to_string())), DataType::Text)
}

/// A number.
pub(crate) fn number(number: i64) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// A sum.
pub(crate) fn plus(left: Expr, right: i64) -> Expr {
    let (op, right) = match right {
        0.. => (BinaryOperator::Plus, number(right)),
        _ => (BinaryOperator::Minus, number(-right)),
    };
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

/// `expr::data_type`
pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::DoubleColon, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A call.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args =
        arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// An array of texts.
pub(crate) fn texts(texts: &[String]) -> Expr {
    let texts = texts.iter().map(|text| literal(text)).collect();
    cast(array(texts), array_type(DataType::Text))
}

/// The type of arrays.
pub(crate) fn array_type(element: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None))
}

/// `ARRAY[…]`
pub(crate) fn array(elem: Vec<Expr>) -> Expr {
    Expr::Array(Array { elem, named: true })
}
