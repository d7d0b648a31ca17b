//! The grammar that scripts are read in: sqlparser's of PostgreSQL, and what that reads otherwise than PostgreSQL.

use sqlparser::ast::{BinaryOperator, DataType, Expr, TypedString};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;
use types::ExecutionVersion;

/// PostgreSQL's grammar.
///
/// `a IS DISTINCT FROM b AND c` is read as `(a IS DISTINCT FROM b) AND c`, where sqlparser takes everything behind FROM
/// for one operand. So did execution version 1.
#[derive(Debug)]
pub(crate) struct Grammar {
    dialect: PostgreSqlDialect,
    version: ExecutionVersion,
}

static VERSION_1: Grammar = Grammar { dialect: PostgreSqlDialect {}, version: ExecutionVersion::V1 };
static VERSION_2: Grammar = Grammar { dialect: PostgreSqlDialect {}, version: ExecutionVersion::V2 };
static VERSION_13: Grammar = Grammar { dialect: PostgreSqlDialect {}, version: ExecutionVersion::V13 };
static VERSION_16: Grammar = Grammar { dialect: PostgreSqlDialect {}, version: ExecutionVersion::V16 };

impl Grammar {
    /// The one of a version of the rules of execution.
    pub fn of(version: ExecutionVersion) -> &'static Grammar {
        match version {
            ExecutionVersion::V1 => &VERSION_1,
            // The same since then.
            ExecutionVersion::V2
            | ExecutionVersion::V3
            | ExecutionVersion::V4
            | ExecutionVersion::V5
            | ExecutionVersion::V6
            | ExecutionVersion::V7
            | ExecutionVersion::V8
            | ExecutionVersion::V9
            | ExecutionVersion::V10
            | ExecutionVersion::V11
            | ExecutionVersion::V12 => &VERSION_2,
            ExecutionVersion::V13 | ExecutionVersion::V14 | ExecutionVersion::V15 => &VERSION_13,
            ExecutionVersion::V16 => &VERSION_16,
        }
    }
}

/// The keyword that a token is.
fn keyword_of(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Whether a parenthesis comes next, and inside of it a query in parentheses with UNION or its kind behind.
fn begins_set_operation(parser: &Parser<'_>) -> bool {
    // There is no white space among the tokens, and to skip it would take the longer the farther a token is away.
    let token = |at: usize| parser.peek_nth_token_no_skip(at).token;
    let keyword = |at: usize| keyword_of(&token(at));
    if token(0) != Token::LParen || token(1) != Token::LParen {
        return false;
    }
    let first = (1..).find(|at| token(*at) != Token::LParen).unwrap_or_default();
    if !matches!(keyword(first), Keyword::SELECT | Keyword::WITH | Keyword::VALUES) {
        return false;
    }
    // Behind the inner parenthesis that opens first.
    let mut depth = 0_usize;
    for at in 1.. {
        match token(at) {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => {
                return matches!(keyword(at + 1), Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT);
            }
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            _ => {}
        }
    }
    false
}

/// Words behind which an expression begins.
const IN_FRONT: [Keyword; 5] =
    [Keyword::ALL, Keyword::CASE, Keyword::DISTINCT, Keyword::NOT, Keyword::VARIADIC];

/// A literal in quotes behind the name of its type, where that is no word of the grammar; `None` where something else comes next.
fn parse_typed_literal(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let token = |at: usize| parser.peek_nth_token_no_skip(at).token;
    let is_name = |at: usize| match token(at) {
        Token::Word(word) => word.quote_style.is_some() || !IN_FRONT.contains(&word.keyword),
        _ => false,
    };
    let mut at = 0;
    while is_name(at) && token(at + 1) == Token::Period {
        at += 2;
    }
    if !is_name(at) || !matches!(token(at + 1), Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))
    {
        return None;
    }
    let named = parser.maybe_parse(|parser| match parser.parse_data_type()? {
        named @ DataType::Custom(..) => Ok(named),
        other => Err(ParserError::ParserError(format!("{other} is read elsewhere"))),
    });
    let data_type = named.transpose()?;
    Some(data_type.and_then(|data_type| {
        let value = parser.parse_value()?;
        Ok(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }))
    }))
}

/// `OPERATOR(pg_catalog.=) ANY (…)` and its kind behind an operand, which sqlparser reads of operators without a schema only; `None` where
/// something else comes next.
fn parse_quantified(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    // A schema, a period and an operator.
    const PARTS_MAX: usize = 3;
    let token = |at: usize| parser.peek_nth_token_no_skip(at).token;
    let keyword = |at: usize| keyword_of(&token(at));
    if keyword(0) != Keyword::OPERATOR || token(1) != Token::LParen {
        return None;
    }
    let parts: Vec<Token> =
        (2..).map(token).take(PARTS_MAX).take_while(|part| *part != Token::RParen).collect();
    let close = 2 + parts.len();
    let quantifier = keyword(close + 1);
    if token(close) != Token::RParen
        || !matches!(quantifier, Keyword::ANY | Keyword::ALL | Keyword::SOME)
        || token(close + 2) != Token::LParen
    {
        return None;
    }
    (0..close + 2).for_each(|_| drop(parser.next_token()));
    let names = parts.iter().filter(|part| **part != Token::Period).map(Token::to_string).collect();
    let compare_op = BinaryOperator::PGCustomBinaryOperator(names);
    let left = Box::new(left.clone());
    Some(parser.parse_prefix().map(|right| {
        let right = Box::new(match right {
            Expr::Nested(inner) => *inner,
            other => other,
        });
        match quantifier {
            Keyword::ALL => Expr::AllOp { left, compare_op, right },
            _ => Expr::AnyOp { left, compare_op, right, is_some: quantifier == Keyword::SOME },
        }
    }))
}

/// What is as in sqlparser.
macro_rules! as_it_is {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            self.dialect.$name()
        })*
    };
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        self.dialect.dialect()
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, FROM, IS, NOT};
        if self.version < ExecutionVersion::V2 {
            return None;
        }
        if self.version >= ExecutionVersion::V16
            && let Some(quantified) = parse_quantified(parser, expr)
        {
            return Some(quantified);
        }
        let form = if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        let right = parser.parse_subexpr(precedence);
        Some(right.map(|right| form(Box::new(expr.clone()), Box::new(right))))
    }

    /// `((SELECT 1) UNION (SELECT 2))` as a value, where sqlparser takes the inner parentheses for those of an expression. So did
    /// version 12. And `mood 'happy'`, which it reads only where the type is a word of the grammar. So did version 15.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if self.version >= ExecutionVersion::V16
            && let Some(literal) = parse_typed_literal(parser)
        {
            return Some(literal);
        }
        if self.version < ExecutionVersion::V13 || !begins_set_operation(parser) {
            return None;
        }
        let _ = parser.next_token();
        let query = parser.parse_query().and_then(|query| {
            parser.expect_token(&Token::RParen)?;
            Ok(Expr::Subquery(query))
        });
        Some(query)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.dialect.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        self.dialect.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        self.dialect.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.dialect.is_identifier_part(character)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.dialect.is_reserved_for_identifier(keyword)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        self.dialect.is_custom_operator_part(character)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        self.dialect.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.dialect.prec_value(precedence)
    }

    /// In PostgreSQL a name is one. With expressions as names sqlparser reads each argument twice, so that every call inside
    /// another one doubles the time: 16 of them took 236 ms.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    as_it_is!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );
}

#[cfg(test)]
mod tests {
    use crate::parse::parse_script;
    use types::ExecutionVersion;

    #[test]
    fn what_is_nested_is_read_once() {
        // Read twice at each level nobody would live to see the end of it.
        let levels = [
            ("coalesce(a, ", ")"),
            ("f(a => ", ")"),
            ("(", ")"),
            ("(a + ", ")"),
            ("CASE WHEN a THEN ", " END"),
            ("CAST(", " AS int)"),
            ("ARRAY[", "]"),
            ("ROW(1, ", ")"),
            ("(SELECT ", ")"),
            ("EXTRACT(year FROM ", ")"),
            ("- ", ""),
            ("NOT ", ""),
            ("a IN (", ")"),
            ("EXISTS (SELECT ", ")"),
            ("sum(a) FILTER (WHERE ", ")"),
            ("a[", "]"),
        ];
        for version in [ExecutionVersion::V1, ExecutionVersion::NEWEST] {
            for (before, behind) in levels {
                let sql = format!("SELECT {}b{}", before.repeat(40), behind.repeat(40));
                // Whether that is a statement is another question.
                let _ = parse_script(&sql, version);
            }
        }
        let named = parse_script("SELECT make_interval(days => 3, hours => 2)", ExecutionVersion::NEWEST);
        assert_eq!(named.expect("it is one").len(), 1);
    }
}
