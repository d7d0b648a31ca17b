//! Random network addresses, strings of bits, times with zones and ranges: how they sort, what their operators and functions give.

use crate::expressions::Sql;
use crate::statements::Statement;
use proptest::prelude::*;
use proptest::sample::select;

const RANGES: [(&str, [&str; 6]); 6] = [
    ("int4", ["-2", "1", "2", "3", "7", "2147483647"]),
    ("int8", ["-2", "1", "2", "3", "7", "9223372036854775807"]),
    ("num", ["-2", "1.0", "1.00", "1.5", "3", "NaN"]),
    ("date", ["2026-01-01", "2026-01-02", "2026-01-05", "2027-02-03", "infinity", "-infinity"]),
    (
        "ts",
        ["2026-01-01", "2026-01-01 12:00", "2026-01-05", "2026-01-05 00:00:00.5", "infinity", "-infinity"],
    ),
    ("tstz", ["2026-01-01", "2026-01-01 12:00+02", "2026-01-05", "2027-01-01", "infinity", "-infinity"]),
];

/// The type of the elements of ranges, as SQL names it.
fn element(range: &str) -> &'static str {
    match range {
        "int4" => "integer",
        "int8" => "bigint",
        "num" => "numeric",
        "date" => "date",
        "ts" => "timestamp",
        _ => "timestamptz",
    }
}

/// Which type of ranges a case is about.
fn kind() -> BoxedStrategy<(&'static str, [&'static str; 6])> {
    select(&RANGES[..]).boxed()
}

/// The text of a range, which may have its bounds in the wrong order.
fn range_text(bounds: [&'static str; 6]) -> Sql {
    let bound = || prop_oneof![4 => select(bounds.to_vec()), 1 => Just("")];
    let brackets = (select(vec!["[", "("]), select(vec!["]", ")"]));
    let written = (bound(), bound(), brackets)
        .prop_map(|(lower, upper, (open, close))| format!("{open}{lower},{upper}{close}"));
    prop_oneof![8 => written, 1 => Just("empty".to_string())].boxed()
}

fn range((name, bounds): (&'static str, [&'static str; 6])) -> Sql {
    range_text(bounds).prop_map(move |text| format!("'{text}'::{name}range")).boxed()
}

fn multirange((name, bounds): (&'static str, [&'static str; 6])) -> Sql {
    prop::collection::vec(range_text(bounds), 0..4)
        .prop_map(move |ranges| format!("'{{{}}}'::{name}multirange", ranges.join(",")))
        .boxed()
}

fn of_ranges(kind: (&'static str, [&'static str; 6])) -> Sql {
    let (name, bounds) = kind;
    let value = || select(bounds.to_vec()).prop_map(move |value| format!("'{value}'::{}", element(name)));
    let any = || prop_oneof![range(kind), multirange(kind)];
    prop_oneof![
        6 => (any(), select(vec!["@>", "<@", "&&", "<<", ">>", "&<", "&>", "-|-"]), any())
            .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        3 => (range(kind), select(vec!["+", "*", "-", "=", "<", ">=", "<>"]), range(kind))
            .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        3 => (multirange(kind), select(vec!["+", "*", "-", "=", "<", ">="]), multirange(kind))
            .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        2 => (any(), value()).prop_map(|(range, value)| format!("{range} @> {value}")),
        1 => (any(), value()).prop_map(|(range, value)| format!("{value} <@ {range}")),
        2 => (select(vec!["lower", "upper", "isempty", "lower_inc", "upper_inc", "lower_inf", "upper_inf"]), any())
            .prop_map(|(function, range)| format!("{function}({range})")),
        1 => (range(kind), range(kind)).prop_map(|(a, b)| format!("range_merge({a}, {b})")),
        1 => multirange(kind).prop_map(|ranges| format!("range_merge({ranges})")),
        1 => range(kind).prop_map(|range| format!("multirange({range})")),
        1 => (range(kind), range(kind)).prop_map(move |(a, b)| format!("{name}multirange({a}, {b})")),
        2 => (value(), value(), select(vec!["", ", '[]'", ", '(]'", ", '()'", ", '[)'", ", 'x'"]))
            .prop_map(move |(a, b, form)| format!("{name}range({a}, {b}{form})")),
        1 => any().prop_map(|range| format!("{range}::text")),
    ]
    .boxed()
}

fn address() -> Sql {
    let v4 = (
        select(vec!["10.0.0.0", "10.1.2.3", "10.1.2.4", "192.168.7.0", "255.255.255.255", "0.0.0.0"]),
        0..34,
    );
    let v6 = (
        select(vec![
            "::",
            "::1",
            "2001:db8::",
            "2001:db8::a:0:0:1",
            "::ffff:10.1.2.3",
            "fe80::1:2",
            "1:2:3:4:5:6:7:8",
        ]),
        prop_oneof![0..130i32, Just(64), Just(128)],
    );
    let plain = |(address, prefix): (&'static str, i32)| match prefix % 3 {
        0 => address.to_string(),
        _ => format!("{address}/{prefix}"),
    };
    prop_oneof![v4.prop_map(plain), v6.prop_map(plain)].boxed()
}

fn inet() -> Sql {
    (address(), select(vec!["inet", "inet", "inet", "cidr"]))
        .prop_map(|(address, name)| format!("'{address}'::{name}"))
        .boxed()
}

fn of_addresses() -> Sql {
    let functions =
        vec!["abbrev", "broadcast", "family", "host", "hostmask", "masklen", "netmask", "network", "text"];
    let mac = || {
        select(vec![
            "08:00:2b:01:02:03",
            "ff-ff-ff-00-00-01",
            "0800.2b01.0203",
            "08002b:010203",
            "08002b01020",
        ])
    };
    prop_oneof![
        4 => (inet(), select(vec!["<<", "<<=", ">>", ">>=", "&&", "=", "<", ">=", "<>"]), inet())
            .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        3 => (select(functions), inet()).prop_map(|(function, a)| format!("{function}({a})")),
        1 => (inet(), select(vec!["&", "|", "-"]), inet()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (inet(), select(vec!["+", "-"]), -300..70_000i64).prop_map(|(a, op, b)| format!("{a} {op} ({b})")),
        1 => inet().prop_map(|a| format!("~ {a}")),
        1 => (inet(), 0..40).prop_map(|(a, length)| format!("set_masklen({a}, {length})")),
        1 => (inet(), inet()).prop_map(|(a, b)| format!("inet_merge({a}, {b})")),
        1 => (inet(), inet()).prop_map(|(a, b)| format!("inet_same_family({a}, {b})")),
        2 => (inet(), select(vec!["text", "varchar", "inet", "cidr"])).prop_map(|(a, to)| format!("{a}::{to}")),
        1 => (mac(), select(vec!["&", "|", "=", "<"]), mac())
            .prop_map(|(a, op, b)| format!("'{a}'::macaddr {op} '{b}'::macaddr")),
        1 => mac().prop_map(|a| format!("trunc('{a}'::macaddr)")),
        1 => mac().prop_map(|a| format!("~ '{a}'::macaddr")),
    ]
    .boxed()
}

fn bits() -> Sql {
    let digits = || prop::collection::vec(select(vec!["0", "1"]), 0..20).prop_map(|digits| digits.concat());
    let hexadecimal =
        prop::collection::vec(select(vec!["0", "7", "a", "F"]), 0..4).prop_map(|digits| digits.concat());
    prop_oneof![
        3 => digits().prop_map(|digits| format!("B'{digits}'")),
        1 => hexadecimal.prop_map(|digits| format!("X'{digits}'")),
        1 => digits().prop_map(|digits| format!("'{digits}'::varbit")),
        1 => (digits(), 1..12).prop_map(|(digits, length)| format!("B'{digits}'::bit({length})")),
        1 => (digits(), 1..12).prop_map(|(digits, length)| format!("B'{digits}'::varbit({length})")),
    ]
    .boxed()
}

fn of_bits() -> Sql {
    prop_oneof![
        3 => (bits(), select(vec!["&", "|", "#", "||", "=", "<", ">="]), bits())
            .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (bits(), select(vec!["<<", ">>"]), -3..25).prop_map(|(a, op, b)| format!("{a} {op} ({b})")),
        1 => bits().prop_map(|a| format!("~ {a}")),
        1 => (select(vec!["length", "bit_length", "octet_length", "bit_count"]), bits())
            .prop_map(|(function, a)| format!("{function}({a})")),
        1 => (bits(), -1..20).prop_map(|(a, at)| format!("get_bit({a}, {at})")),
        1 => (bits(), -1..20, 0..3).prop_map(|(a, at, bit)| format!("set_bit({a}, {at}, {bit})")),
        1 => (bits(), -3..12, -1..9).prop_map(|(a, from, count)| format!("substring({a}, {from}, {count})")),
        1 => (bits(), bits(), 0..9).prop_map(|(a, b, from)| format!("overlay({a} placing {b} from {from})")),
        1 => (bits(), bits()).prop_map(|(a, b)| format!("position({a} in {b})")),
        1 => (bits(), select(vec!["integer", "bigint", "text"])).prop_map(|(a, to)| format!("{a}::{to}")),
        1 => (-300i64..300, 1..40).prop_map(|(number, length)| format!("({number})::integer::bit({length})")),
    ]
    .boxed()
}

fn time() -> Sql {
    let time = select(vec!["00:00", "12:34:56.789", "23:59:59.999999", "24:00", "04:05 pm", "7:8:9"]);
    let zone = select(vec!["+00", "-07", "+05:45", "+02:03:04", "Z", "-15:59", "+16"]);
    (time, zone).prop_map(|(time, zone)| format!("'{time}{zone}'::timetz")).boxed()
}

fn of_times() -> Sql {
    let interval = || select(vec!["1 hour", "-90 minutes", "1 day", "25 hours", "1 mon 0.000001 s"]);
    prop_oneof![
        2 => (time(), select(vec!["=", "<", ">=", "<>"]), time()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (time(), select(vec!["+", "-"]), interval()).prop_map(|(a, op, b)| format!("{a} {op} interval '{b}'")),
        1 => (select(vec!["hour", "minute", "second", "timezone", "timezone_hour", "timezone_minute", "epoch", "day"]), time())
            .prop_map(|(field, a)| format!("extract({field} from {a})")),
        1 => (time(), select(vec!["UTC", "+03", "-04:30"])).prop_map(|(a, zone)| format!("{a} AT TIME ZONE '{zone}'")),
        1 => time().prop_map(|a| format!("date '2026-03-29' + {a}")),
        1 => (time(), select(vec!["time", "text", "timetz"])).prop_map(|(a, to)| format!("{a}::{to}")),
        1 => Just("'12:00'::time::timetz".to_string()),
        1 => Just("'2026-07-01 12:00+02'::timestamptz::timetz".to_string()),
    ]
    .boxed()
}

/// A query over several values of one type.
fn of_many(values: Sql, aggregates: Vec<&'static str>) -> Sql {
    prop::collection::vec(values, 2..9)
        .prop_flat_map(move |values| {
            let rows: Vec<String> = values.iter().map(|value| format!("({value})")).collect();
            let rows = rows.join(", ");
            let mut sqls = vec![
                format!("SELECT v FROM (VALUES {rows}) AS t (v) ORDER BY v, v::text"),
                format!("SELECT count(DISTINCT v) FROM (VALUES {rows}) AS t (v)"),
                format!("SELECT count(*) FROM (VALUES {rows}) AS t (v) GROUP BY v ORDER BY v"),
                format!("SELECT array_agg(v ORDER BY v DESC, v::text) FROM (VALUES {rows}) AS t (v)"),
            ];
            sqls.extend(aggregates.iter().map(|of| format!("SELECT {of}(v) FROM (VALUES {rows}) AS t (v)")));
            select(sqls)
        })
        .boxed()
}

/// One statement about values of these types.
pub fn statements() -> BoxedStrategy<Statement> {
    let single = prop_oneof![
        4 => kind().prop_flat_map(of_ranges),
        3 => of_addresses(),
        3 => of_bits(),
        2 => of_times(),
    ];
    let single = single.prop_map(|operation| format!("SELECT {operation} AS v"));
    let many = prop_oneof![
        kind().prop_flat_map(|kind| of_many(range(kind), vec!["range_agg", "range_intersect_agg"])),
        kind().prop_flat_map(|kind| of_many(multirange(kind), vec!["range_agg", "range_intersect_agg"])),
        of_many(address().prop_map(|address| format!("'{address}'::inet")).boxed(), vec!["min", "max"]),
        of_many(time(), vec!["min", "max"]),
        prop::collection::vec(select(vec!["0", "1"]), 5).prop_flat_map(|_| {
            let digits = prop::collection::vec(select(vec!["0", "1"]), 5).prop_map(|digits| digits.concat());
            of_many(
                digits.prop_map(|digits| format!("B'{digits}'")).boxed(),
                vec!["bit_and", "bit_or", "bit_xor"],
            )
        }),
        kind().prop_flat_map(|kind| {
            multirange(kind).prop_map(|ranges| format!("SELECT r FROM unnest({ranges}) AS r"))
        }),
    ];
    let sql = prop_oneof![1 => many, 3 => single];
    sql.prop_map(|sql| Statement { sql, ordered: true }).boxed()
}
