//! Random expressions of five types. Whatever values their columns have, they do not fail: an error would come out of
//! one row or another, and in which order rows and conditions are looked at is each database's own business.

use proptest::prelude::*;
use proptest::sample::select;

/// A random piece of SQL.
pub type Sql = BoxedStrategy<String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer,
    Numeric,
    Text,
    Boolean,
    Date,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Numeric => "numeric",
            Type::Text => "text",
            Type::Boolean => "boolean",
            Type::Date => "date",
        }
    }
}

/// The columns and variables that an expression may name.
pub type Scope = Vec<(String, Type)>;

/// The columns of a table under an alias, or without one.
pub fn scope(prefix: &str, columns: &[(&str, Type)]) -> Scope {
    columns.iter().map(|(name, kind)| (format!("{prefix}{name}"), *kind)).collect()
}

pub fn literal(kind: Type) -> Sql {
    match kind {
        Type::Integer => (-9i32..10).prop_map(|number| format!("({number})")).boxed(),
        Type::Numeric => {
            (-999i32..1000, select(vec!["", "0", "00"])).prop_map(|(cents, zeros)| {
                let (sign, cents) = (if cents < 0 { "-" } else { "" }, cents.abs());
                format!("({sign}{}.{:02}{zeros})", cents / 100, cents % 100)
            })
        }
        .boxed(),
        Type::Text => "[abAB ,%_1]{0,4}".prop_map(|text| format!("'{text}'")).boxed(),
        Type::Boolean => select(vec!["true", "false"]).prop_map(str::to_string).boxed(),
        Type::Date => {
            (1u32..13, 1u32..29).prop_map(|(month, day)| format!("DATE '2024-{month:02}-{day:02}'")).boxed()
        }
    }
}

/// Expressions of each type over the same columns.
#[derive(Clone)]
pub struct Expressions {
    pub integer: Sql,
    pub numeric: Sql,
    pub text: Sql,
    pub boolean: Sql,
    pub date: Sql,
}

impl Expressions {
    /// With operators nested so deep.
    pub fn new(scope: &Scope, depth: usize) -> Expressions {
        let leaves = Expressions::leaves(scope);
        (0..depth).fold(leaves, |inner, _| inner.deeper())
    }

    pub fn of(&self, kind: Type) -> Sql {
        match kind {
            Type::Integer => self.integer.clone(),
            Type::Numeric => self.numeric.clone(),
            Type::Text => self.text.clone(),
            Type::Boolean => self.boolean.clone(),
            Type::Date => self.date.clone(),
        }
    }

    /// Also these as conditions.
    pub fn with_condition(mut self, condition: Sql) -> Expressions {
        self.boolean = prop_oneof![4 => self.boolean, 1 => condition].boxed();
        self
    }

    /// One of any type.
    pub fn any(&self) -> BoxedStrategy<(Type, String)> {
        let of = |kind| self.of(kind).prop_map(move |text| (kind, text));
        prop_oneof![of(Type::Integer), of(Type::Numeric), of(Type::Text), of(Type::Boolean), of(Type::Date)]
            .boxed()
    }

    /// Two values that compare, each in one of the types that have operators for that.
    pub fn mixed(&self) -> BoxedStrategy<(String, String)> {
        let forms = |bases: [&Sql; 2], types: &[&'static str]| {
            let types = types.to_vec();
            let base = prop_oneof![bases[0].clone(), bases[1].clone()];
            (base, select(types)).prop_map(|(value, kind)| match kind {
                "" => value,
                kind => format!("({value})::{kind}"),
            })
        };
        let numbers = || forms([&self.integer, &self.numeric], &["", "", "", "float8", "numeric"]);
        let texts = || forms([&self.text, &self.text], &["", "", "char(3)", "varchar(3)", "bpchar"]);
        let times = || forms([&self.date, &self.date], &["", "", "timestamp", "timestamptz"]);
        prop_oneof![3 => (numbers(), numbers()), 1 => (texts(), texts()), 1 => (times(), times())].boxed()
    }

    fn leaves(scope: &Scope) -> Expressions {
        let of = |kind: Type| {
            let null = Just(format!("NULL::{}", kind.name()));
            let names: Vec<String> =
                scope.iter().filter(|(_, other)| *other == kind).map(|(name, _)| name.clone()).collect();
            match names.is_empty() {
                true => prop_oneof![6 => literal(kind), 1 => null].boxed(),
                false => prop_oneof![3 => literal(kind), 6 => select(names), 1 => null].boxed(),
            }
        };
        Expressions {
            integer: of(Type::Integer),
            numeric: of(Type::Numeric),
            text: of(Type::Text),
            boolean: of(Type::Boolean),
            date: of(Type::Date),
        }
    }

    fn deeper(&self) -> Expressions {
        let of = |kind| prop_oneof![2 => self.of(kind), 5 => self.own(kind), 2 => self.choice(kind)].boxed();
        Expressions {
            integer: of(Type::Integer),
            numeric: of(Type::Numeric),
            text: of(Type::Text),
            boolean: of(Type::Boolean),
            date: of(Type::Date),
        }
    }

    /// What every type has.
    fn choice(&self, kind: Type) -> Sql {
        let (value, condition) = (self.of(kind), self.boolean.clone());
        let call = (select(vec!["coalesce", "nullif", "greatest", "least"]), value.clone(), value.clone());
        prop_oneof![
            call.prop_map(|(function, a, b)| format!("{function}({a}, {b})")),
            (condition.clone(), value.clone(), value.clone())
                .prop_map(|(condition, a, b)| format!("CASE WHEN {condition} THEN {a} ELSE {b} END")),
            (value.clone(), value.clone(), value.clone())
                .prop_map(|(a, b, c)| format!("CASE {a} WHEN {b} THEN {c} END")),
        ]
        .boxed()
    }

    fn own(&self, kind: Type) -> Sql {
        match kind {
            Type::Integer => self.own_integer(),
            Type::Numeric => self.own_numeric(),
            Type::Text => self.own_text(),
            Type::Boolean => self.own_boolean(),
            Type::Date => self.own_date(),
        }
    }

    fn own_integer(&self) -> Sql {
        let (i, n, t, d) = (&self.integer, &self.numeric, &self.text, &self.date);
        let small = select(vec!["abs", "-", "~", "+"]);
        let field = select(vec!["year", "month", "day", "dow", "doy", "quarter", "week"]);
        prop_oneof![
            4 => (i.clone(), select(vec!["+", "-", "*"]), i.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            2 => (i.clone(), select(vec!["/", "%"]), i.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} nullif({b}, 0))")),
            1 => (i.clone(), select(vec!["&", "|", "#"]), i.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            1 => (small, i.clone()).prop_map(|(function, a)| format!("({function}({a}))")),
            1 => (select(vec!["length", "octet_length", "ascii"]), t.clone())
                .prop_map(|(function, a)| format!("{function}({a})")),
            1 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("position({a} IN {b})")),
            1 => (field, d.clone()).prop_map(|(field, a)| format!("extract({field} FROM {a})::integer")),
            1 => (d.clone(), d.clone()).prop_map(|(a, b)| format!("({a} - {b}) % 100")),
            1 => n.clone().prop_map(|a| format!("(({a}) % 1000)::integer")),
        ]
        .boxed()
    }

    fn own_numeric(&self) -> Sql {
        let (i, n) = (&self.integer, &self.numeric);
        let one = select(vec!["abs", "ceil", "floor", "round", "trunc", "sign", "-"]);
        prop_oneof![
            4 => (n.clone(), select(vec!["+", "-", "*"]), n.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            2 => (n.clone(), select(vec!["/", "%"]), n.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} nullif({b}, 0))")),
            1 => (n.clone(), select(vec!["+", "-", "*"]), i.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            1 => (one, n.clone()).prop_map(|(function, a)| format!("({function}({a}))")),
            1 => (select(vec!["round", "trunc"]), n.clone(), -2i32..6)
                .prop_map(|(function, a, digits)| format!("{function}({a}, {digits})")),
            1 => i.clone().prop_map(|a| format!("{a}::numeric")),
            1 => n.clone().prop_map(|a| format!("sqrt(abs({a}))")),
        ]
        .boxed()
    }

    fn own_text(&self) -> Sql {
        let (i, t) = (&self.integer, &self.text);
        let one = select(vec!["upper", "lower", "trim", "reverse", "initcap", "btrim", "quote_literal"]);
        let shown =
            prop_oneof![self.integer.clone(), self.numeric.clone(), self.boolean.clone(), self.date.clone(),];
        prop_oneof![
            3 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            2 => (one, t.clone()).prop_map(|(function, a)| format!("{function}({a})")),
            2 => shown.prop_map(|a| format!("({a})::text")),
            1 => (t.clone(), i.clone(), i.clone()).prop_map(|(a, b, c)| format!("substr({a}, {b}, abs({c}))")),
            1 => (select(vec!["left", "right"]), t.clone(), i.clone())
                .prop_map(|(function, a, b)| format!("{function}({a}, {b})")),
            1 => (select(vec!["lpad", "rpad"]), t.clone(), i.clone(), t.clone())
                .prop_map(|(function, a, b, c)| format!("{function}({a}, {b} % 9, {c})")),
            1 => (select(vec!["replace", "translate", "concat"]), t.clone(), t.clone(), t.clone())
                .prop_map(|(function, a, b, c)| format!("{function}({a}, {b}, {c})")),
            1 => (t.clone(), i.clone()).prop_map(|(a, b)| format!("repeat({a}, {b} % 4)")),
            1 => (t.clone(), t.clone(), i.clone())
                .prop_map(|(a, b, c)| format!("split_part({a}, {b}, 1 + abs({c} % 3))")),
            1 => (t.clone(), i.clone(), t.clone())
                .prop_map(|(a, b, c)| format!("concat_ws({a}, {b}, {c})")),
            1 => (t.clone(), i.clone()).prop_map(|(a, b)| format!("format('%s|%L|%s', {a}, {a}, {b})")),
            1 => self.date.clone().prop_map(|a| format!("to_char({a}, 'DD.MM.YYYY Day')")),
        ]
        .boxed()
    }

    fn own_boolean(&self) -> Sql {
        let (i, t, b) = (&self.integer, &self.text, &self.boolean);
        let pair = prop_oneof![
            (i.clone(), i.clone()),
            (self.numeric.clone(), self.numeric.clone()),
            (i.clone(), self.numeric.clone()),
            (t.clone(), t.clone()),
            (self.date.clone(), self.date.clone()),
            (b.clone(), b.clone()),
        ];
        let comparison =
            select(vec!["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
        let test = select(vec!["IS NULL", "IS NOT NULL"]);
        let truth = select(vec!["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"]);
        prop_oneof![
            5 => (pair.clone(), comparison).prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            3 => (b.clone(), select(vec!["AND", "OR"]), b.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            1 => b.clone().prop_map(|a| format!("(NOT {a})")),
            1 => (pair, test).prop_map(|((a, _), test)| format!("({a} {test})")),
            1 => (b.clone(), truth).prop_map(|(a, test)| format!("({a} {test})")),
            1 => (i.clone(), select(vec!["IN", "NOT IN"]), i.clone(), i.clone())
                .prop_map(|(a, operator, b, c)| format!("({a} {operator} ({b}, {c}))")),
            1 => (i.clone(), i.clone(), i.clone())
                .prop_map(|(a, b, c)| format!("({a} = ANY (ARRAY[{b}, {c}]))")),
            1 => (i.clone(), i.clone(), i.clone()).prop_map(|(a, b, c)| format!("({a} BETWEEN {b} AND {c})")),
            1 => (t.clone(), select(vec!["LIKE", "NOT LIKE", "ILIKE"]), t.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            3 => self.own_mixed(),
            1 => (i.clone(), t.clone(), i.clone(), t.clone(), select(vec!["=", "<", ">="]))
                .prop_map(|(a, b, c, d, operator)| format!("(({a}, {b}) {operator} ({c}, {d}))")),
        ]
        .boxed()
    }

    /// Comparisons across types.
    fn own_mixed(&self) -> Sql {
        let comparisons = vec!["=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];
        let pair = self.mixed();
        let two = (pair.clone(), pair.clone(), select(vec!["=", "<>", "<", ">="]));
        prop_oneof![
            3 => (pair.clone(), select(comparisons)).prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            1 => (pair.clone(), select(vec!["IN", "NOT IN"]))
                .prop_map(|((a, b), operator)| format!("({a} {operator} ({b}, {b}))")),
            1 => (pair.clone(), select(vec!["= ANY", "<> ALL", "< ANY", ">= ALL"]))
                .prop_map(|((a, b), operator)| format!("({a} {operator} (ARRAY[{b}, {b}]))")),
            1 => two.prop_map(|((a, b), (c, d), operator)| format!("(({a}, {c}) {operator} ({b}, {d}))")),
            1 => pair.clone().prop_map(|(a, b)| format!("(CASE {a} WHEN {b} THEN 1 ELSE 2 END = 1)")),
            1 => pair.clone().prop_map(|(a, b)| format!("(nullif({a}, {b}) IS NULL)")),
            1 => pair.prop_map(|(a, b)| format!("({a} BETWEEN {b} AND {b})")),
        ]
        .boxed()
    }

    fn own_date(&self) -> Sql {
        let (i, d) = (&self.integer, &self.date);
        let field = select(vec!["week", "month", "quarter", "year"]);
        prop_oneof![
            2 => (d.clone(), select(vec!["+", "-"]), i.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b} % 1000)")),
            1 => (field, d.clone()).prop_map(|(field, a)| format!("date_trunc('{field}', {a})::date")),
            1 => (d.clone(), 0u32..15)
                .prop_map(|(a, months)| format!("({a} + INTERVAL '{months} months')::date")),
        ]
        .boxed()
    }
}
