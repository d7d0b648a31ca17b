//! Random statements about dates, times, intervals and doubles in sessions of other formats than the one that they begin with.

use crate::expressions::Sql;
use crate::statements::Statement;
use proptest::prelude::*;
use proptest::sample::select;

/// Zones of whole, half and quarter hours, north and south of the equator, and some without a name.
const ZONES: [&str; 10] = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Pacific/Apia",
    "5.5",
    "-7",
    "2.25",
];

/// A text of a day and a time, often near a moment at which clocks are put forward or back.
fn local() -> Sql {
    let day = select(vec![
        "2026-03-29",
        "2026-10-25",
        "2026-03-08",
        "2026-11-01",
        "2026-04-05",
        "2026-10-04",
        "2026-01-31",
        "2024-02-29",
        "2011-12-29",
        "2011-12-31",
        "1999-12-31",
        "2000-01-01",
        "1975-06-01",
        "1969-12-31",
    ]);
    let time = prop_oneof![
        (0..24u8, select(vec![0, 15, 30, 45, 59]), select(vec!["", ":00.5", ":59.999999"]))
            .prop_map(|(hour, minute, second)| format!("{hour:02}:{minute:02}{second}")),
        select(vec!["01:59:59", "02:00", "02:30", "03:00"]).prop_map(String::from),
    ];
    (day, time).prop_map(|(day, time)| format!("{day} {time}")).boxed()
}

fn instant() -> Sql {
    prop_oneof![
        3 => local().prop_map(|local| format!("timestamptz '{local}'")),
        2 => (local(), select(vec!["+00", "-05", "+05:45", "Z"]))
            .prop_map(|(local, zone)| format!("timestamptz '{local}{zone}'")),
        1 => local().prop_map(|local| format!("(timestamp '{local}')::timestamptz")),
        1 => local().prop_map(|local| format!("('{local}'::text)::timestamptz")),
        1 => local().prop_map(|local| format!("(date '{}')::timestamptz", &local[..10])),
        1 => select(vec!["infinity", "-infinity", "epoch"]).prop_map(|word| format!("timestamptz '{word}'")),
    ]
    .boxed()
}

fn interval() -> Sql {
    select(vec![
        "1 day",
        "-1 day",
        "1 month",
        "-2 months",
        "1 year",
        "24 hours",
        "-90 minutes",
        "1 mon 1 day 1 hour",
        "7 days -3 hours",
    ])
    .prop_map(|text| format!("interval '{text}'"))
    .boxed()
}

/// Something that is said of an instant.
fn saying() -> Sql {
    let field = select(vec![
        "hour",
        "minute",
        "day",
        "dow",
        "isodow",
        "doy",
        "week",
        "month",
        "quarter",
        "year",
        "epoch",
        "timezone",
        "timezone_hour",
        "timezone_minute",
        "julian",
    ]);
    let unit = select(vec!["minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century"]);
    let target = select(vec!["date", "time", "timestamp", "text", "varchar(14)"]);
    let template = select(vec![
        "YYYY-MM-DD HH24:MI:SS TZ",
        "HH12 AM OF",
        "TZH:TZM",
        "Day DDD tz",
        "YYYY-MM-DD\"T\"HH24:MI:SS.US",
    ]);
    let whole = select(vec![
        "to_json({})",
        "to_jsonb({})",
        "ROW({}, 1)::text",
        "ARRAY[{}, NULL]::text",
        "json_build_object('at', {})",
        "concat('at ', {})",
        "format('%s', {})",
        "quote_literal({}::text)",
        "'at ' || {}",
        "({})::text::timestamptz",
        "array_to_string(ARRAY[{}], ',')",
        "isfinite({})",
        "array_to_json(ARRAY[{}])",
        "json_agg({})",
        "string_agg(({})::text, ',')",
        "max({})",
        "({}) AT TIME ZONE 'Asia/Tokyo'",
        "row_to_json(ROW({}))",
        "nullif({}, now())",
    ]);
    prop_oneof![
        3 => instant(),
        2 => (instant(), select(vec!["+", "-"]), interval()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        2 => (instant(), target).prop_map(|(a, target)| format!("({a})::{target}")),
        2 => (field, instant()).prop_map(|(field, a)| format!("extract({field} FROM {a})")),
        2 => (unit.clone(), instant()).prop_map(|(unit, a)| format!("date_trunc('{unit}', {a})")),
        1 => (unit, instant()).prop_map(|(unit, a)| format!("date_trunc('{unit}', {a}, 'Asia/Tokyo')")),
        2 => (instant(), template).prop_map(|(a, template)| format!("to_char({a}, '{template}')")),
        // Of infinities PostgreSQL 15 gives years.
        1 => (local(), instant()).prop_map(|(a, b)| match b.contains("infinity") {
            true => format!("age(timestamptz '{a}', timestamptz '{a}')"),
            false => format!("age(timestamptz '{a}', {b})"),
        }),
        1 => (instant(), instant()).prop_map(|(a, b)| format!("({a}) - ({b})")),
        1 => (instant(), select(vec!["=", "<", ">="]), local())
            .prop_map(|(a, operator, b)| format!("({a}) {operator} timestamp '{b}'")),
        1 => (instant(), select(vec!["=", "<", ">="]), local())
            .prop_map(|(a, operator, b)| format!("({a}) {operator} date '{}'", &b[..10])),
        1 => (1..13u8, 1..29u8, 0..24u8).prop_map(|(month, day, hour)| {
            format!("make_timestamptz(2026, {month}, {day}, {hour}, 30, 1.5)")
        }),
        1 => local().prop_map(|local| format!("to_timestamp('{}', 'YYYY-MM-DD HH24:MI')", &local[..16])),
        3 => (whole, instant()).prop_map(|(whole, a)| whole.replace("{}", &a)),
    ]
    .boxed()
}

/// A date or a timestamp whose numbers are read in the order of the session.
fn day() -> Sql {
    let text = select(vec![
        "2026-03-29",
        "1/8/1999",
        "8-1-99",
        "01/02/03",
        "18/1/99",
        "99-01-08",
        "Jan 8 99",
        "8 Jan 1999",
        "08-Jan-99",
        "99 Jan 8",
        "1999.008",
        "0044-03-15 BC",
        "infinity",
        "20260131",
        "12.11.10",
        "5874897-12-31",
    ]);
    prop_oneof![
        text.clone().prop_map(|text| format!("date '{text}'")),
        text.prop_map(|text| format!("timestamp '{text}'")),
        local().prop_map(|local| format!("timestamp '{local}'")),
    ]
    .boxed()
}

fn span() -> Sql {
    prop_oneof![
        interval(),
        select(vec![
            "0",
            "1-2",
            "-1-2",
            "-1-2 3 4:05:06",
            "1 -2:30",
            "-1 day 2 hours",
            "PT5M",
            "-3 days",
            "-0.5 seconds",
            "90 seconds"
        ])
        .prop_map(|text| format!("interval '{text}'")),
        (-30i32..30, -40i32..40, -100_000_000i64..100_000_000).prop_map(|(months, days, microseconds)| {
            format!(
                "make_interval(months => {months}, days => {days}, secs => {})",
                microseconds as f64 / 1e3
            )
        }),
    ]
    .boxed()
}

fn double() -> Sql {
    let special = select(vec![
        "0", "-0", "NaN", "Infinity", "1e300", "-1e-300", "123456.7", "0.1", "1e15", "1e-5", "99999.95",
    ]);
    let number =
        prop_oneof![special.prop_map(String::from), any::<f64>().prop_map(|number| format!("{number:e}"))];
    prop_oneof![
        number.clone().prop_map(|number| format!("float8 '{number}'")),
        select(vec!["0", "0.1", "3.14159265", "1e30", "1e-30", "123456.7", "16777217"])
            .prop_map(|number| format!("float4 '{number}'")),
        number.prop_map(|number| format!("float8 '{number}' / 3")),
    ]
    .boxed()
}

/// Something of one of these types, alone or inside of something else.
fn value() -> Sql {
    let whole = select(vec![
        "{}",
        "({})::text",
        "ARRAY[{}]",
        "ROW({}, 'x')",
        "to_json({})",
        "'<' || ({})::text || '>'",
        "concat({})",
    ]);
    (whole, prop_oneof![day(), span(), double(), instant()])
        .prop_map(|(whole, a)| whole.replace("{}", &a))
        .boxed()
}

/// Settings of a session, and what is asked in it.
pub fn sessions() -> BoxedStrategy<(Vec<(&'static str, &'static str)>, Statement)> {
    let about_instants = prop_oneof![
        6 => prop::collection::vec(saying(), 1..4).prop_filter_map("aggregates stand alone", |all| {
            let aggregates = |one: &String| ["json_agg", "string_agg", "max("].iter().any(|name| one.starts_with(name));
            (all.len() == 1 || !all.iter().any(aggregates)).then(|| format!("SELECT {}", all.join(", ")))
        }),
        1 => (instant(), select(vec!["1 day", "12 hours", "1 month"])).prop_map(|(a, step)| {
            let a = if a.contains("infinity") { "timestamptz '2026-03-28 12:00'".to_string() } else { a };
            format!("SELECT s, s::date FROM generate_series({a}, {a} + interval '3 days', interval '{step}') AS s")
        }),
        1 => prop::collection::vec(instant(), 2..8).prop_map(|all| {
            let rows: Vec<String> = all.iter().map(|one| format!("({one})")).collect();
            format!("SELECT i::date, count(*), min(i) FROM (VALUES {}) AS v (i) GROUP BY i::date ORDER BY i::date", rows.join(", "))
        }),
    ];
    let zoned =
        (select(ZONES.to_vec()), about_instants).prop_map(|(zone, sql)| (vec![("TimeZone", zone)], sql));
    let styles = select(vec![
        "ISO, DMY",
        "ISO, YMD",
        "SQL, MDY",
        "SQL, DMY",
        "SQL, YMD",
        "Postgres, MDY",
        "Postgres, DMY",
        "Postgres, YMD",
        "German",
        "German, YMD",
    ]);
    let intervals = select(vec!["postgres", "postgres_verbose", "sql_standard", "iso_8601"]);
    let digits = select(vec!["0", "-3", "-15", "3", "1"]);
    let styled = (styles, intervals, digits, select(ZONES.to_vec()), value()).prop_map(
        |(style, intervals, digits, zone, value)| {
            let settings = vec![
                ("DateStyle", style),
                ("IntervalStyle", intervals),
                ("extra_float_digits", digits),
                ("TimeZone", zone),
            ];
            (settings, format!("SELECT {value}"))
        },
    );
    prop_oneof![zoned, styled]
        .prop_map(|(settings, sql)| (settings, Statement { sql, ordered: true }))
        .boxed()
}
