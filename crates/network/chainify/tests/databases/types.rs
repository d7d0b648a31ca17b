//! Random changes through all types, on both kinds of databases: every value reads there as in the ledger.

use crate::support::{Alone, Own, Server, text_rows};
use chainify::Kind;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fmt::Write;

/// What no collation, encoding or escaping may change.
const SPECIAL: [&str; 38] = [
    "",
    " ",
    "  ",
    "a",
    "A",
    "a ",
    "a  ",
    "ä",
    "a\u{308}",
    "Ä",
    "ß",
    "ss",
    "ı",
    "I",
    "\t",
    "\n",
    "\r\n",
    "\\",
    "'",
    "\"",
    "%",
    "_",
    "\u{7f}",
    "\u{1}",
    "€",
    "😀",
    "👩‍👩‍👧",
    "e\u{301}",
    "\u{200b}",
    "\u{feff}",
    "\u{ffff}",
    "\u{10ffff}",
    "한글",
    "עברית",
    "\u{2028}",
    "V3:",
    "N",
    "ﬁ",
];

struct Random(StdRng);

impl Random {
    fn one_in(&mut self, count: u32) -> bool {
        self.0.random_range(0..count) == 0
    }

    fn text(&mut self, most: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.0.random_range(0..most.min(12)) {
            if self.one_in(2) {
                text.push_str(SPECIAL[self.0.random_range(0..SPECIAL.len())]);
            } else {
                let code = self.0.random_range(1..0x11_0000);
                text.extend(char::from_u32(code).filter(|character| *character != '\0'));
            }
        }
        text.chars().take(most).collect()
    }

    fn quoted(&mut self, most: usize) -> String {
        format!("'{}'", self.text(most).replace('\'', "''"))
    }

    fn integer(&mut self, bits: u32) -> String {
        let most = if bits == 64 { i64::MAX } else { (1 << (bits - 1)) - 1 };
        let value = match self.0.random_range(0..6) {
            0 => 0,
            1 => most,
            2 => -most - 1,
            3 => -1,
            _ => self.0.random_range(-most - 1..=most),
        };
        format!("'{value}'")
    }

    fn digits(&mut self, before: usize, behind: usize) -> String {
        let mut text = if self.one_in(2) { "'-".to_string() } else { "'".to_string() };
        let digits = |random: &mut Random, most: usize| {
            let count = if random.one_in(4) { most } else { random.0.random_range(0..=most) };
            let digits: String =
                (0..count).map(|_| char::from(b'0' + random.0.random_range(0..10_u8))).collect();
            if digits.is_empty() { "0".to_string() } else { digits }
        };
        text += &digits(self, before);
        if behind > 0 {
            text = text + "." + &digits(self, behind);
        }
        text + "'"
    }

    fn date(&mut self) -> String {
        let (year, month, day) =
            (self.0.random_range(1..10_000), self.0.random_range(1..13), self.0.random_range(1..29));
        format!("{year:04}-{month:02}-{day:02}")
    }

    fn time(&mut self) -> String {
        let [hour, minute, second] = [24, 60, 60].map(|most| self.0.random_range(0..most));
        let fraction = match self.0.random_range(0..3) {
            0 => String::new(),
            1 => format!(".{}", self.0.random_range(0..10)),
            _ => format!(".{:06}", self.0.random_range(0..1_000_000)),
        };
        format!("{hour:02}:{minute:02}:{second:02}{fraction}")
    }

    fn bytes(&mut self) -> String {
        let mut text = "'\\x".to_string();
        for _ in 0..self.0.random_range(0..20) {
            let _ = write!(text, "{:02x}", self.0.random::<u8>());
        }
        text + "'"
    }

    fn uuid(&mut self) -> String {
        let number = self.0.random::<u128>();
        let text = format!("{number:032x}");
        format!("'{}-{}-{}-{}-{}'", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
    }

    fn or_null(&mut self, value: String) -> String {
        if self.one_in(10) { "NULL".to_string() } else { value }
    }

    /// Values of all columns but the key.
    fn values(&mut self) -> Vec<String> {
        let timestamp = |random: &mut Random| format!("'{} {}'", random.date(), random.time());
        let boolean = ["true", "false"][usize::from(self.one_in(2))].to_string();
        let values = [
            self.integer(16),
            self.integer(32),
            self.integer(64),
            self.digits(16, 4),
            self.digits(38, 0),
            boolean,
            self.quoted(40),
            self.quoted(4000),
            format!("'{}'", self.date()),
            timestamp(self),
            format!("{}::timestamptz", timestamp(self)),
            self.bytes(),
            self.uuid(),
        ];
        values.into_iter().map(|value| self.or_null(value)).collect()
    }
}

impl Random {
    /// A statement that changes a row, if there is one.
    fn change(&mut self, keys: &mut Vec<String>, number: usize) -> String {
        let choice = if keys.is_empty() { 0 } else { self.0.random_range(0..10) };
        if choice < 5 {
            let key = format!("{}, {}", self.0.random_range(-5..200), self.quoted(40));
            let (values, names) = (self.values().join(", "), COLUMNS.join(", "));
            let insert = format!(
                "INSERT INTO everything (k1, k2, {names}) VALUES ({key}, {values}) ON CONFLICT (k1, k2) DO UPDATE SET c_i = 5;\n"
            );
            keys.push(key);
            return insert;
        }
        let known = self.0.random_range(0..keys.len());
        let key = keys[known].clone();
        match choice {
            5..=7 => {
                let values = self.values();
                let first = self.0.random_range(0..COLUMNS.len());
                let last = self.0.random_range(first..COLUMNS.len());
                let set = (first..=last).map(|column| format!("{} = {}", COLUMNS[column], values[column]));
                let set = set.collect::<Vec<_>>().join(", ");
                format!("UPDATE everything SET {set} WHERE (k1, k2) = ({key});\n")
            }
            8 => {
                keys.swap_remove(known);
                format!("DELETE FROM everything WHERE (k1, k2) = ({key});\n")
            }
            // The key changes.
            _ => {
                let (k1, k2) = (1000 + number, self.quoted(40));
                keys[known] = format!("{k1}, {k2}");
                format!("UPDATE everything SET k1 = {k1}, k2 = {k2} WHERE (k1, k2) = ({key});\n")
            }
        }
    }
}

const COLUMNS: [&str; 13] =
    ["c_si", "c_i", "c_bi", "c_n", "c_n0", "c_b", "c_vc", "c_tx", "c_d", "c_ts", "c_tz", "c_by", "c_u"];

/// Everything as text that means the same in all three.
fn select(kind: Option<Kind>) -> String {
    let time = |name: &str, zone: &str| match kind {
        None | Some(Kind::Postgres) => format!("to_char({name}{zone}, 'YYYY-MM-DD HH24:MI:SS.US')"),
        Some(Kind::MariaDb) => format!("DATE_FORMAT({name}, '%Y-%m-%d %H:%i:%s.%f')"),
    };
    let hex_of_text = |name: &str| match kind {
        None | Some(Kind::Postgres) => format!("encode(convert_to({name}, 'UTF8'), 'hex')"),
        Some(Kind::MariaDb) => format!("LOWER(HEX({name}))"),
    };
    let (boolean, bytes) = match kind {
        None | Some(Kind::Postgres) => {
            ("CASE WHEN c_b THEN '1' WHEN NOT c_b THEN '0' END", "encode(c_by, 'hex')")
        }
        Some(Kind::MariaDb) => ("c_b", "LOWER(HEX(c_by))"),
    };
    let (k2, vc, tx) = (hex_of_text("k2"), hex_of_text("c_vc"), hex_of_text("c_tx"));
    let (ts, tz) = (time("c_ts", ""), time("c_tz", " AT TIME ZONE 'UTC'"));
    let order = if kind == Some(Kind::MariaDb) { "k1, k2" } else { "k1, convert_to(k2, 'UTF8')" };
    format!(
        "SELECT k1, {k2}, c_si, c_i, c_bi, c_n, c_n0, {boolean}, {vc}, {tx}, c_d, {ts}, {tz}, {bytes}, c_u FROM everything ORDER BY {order}"
    )
}

fn changes(count: usize, seed: u64) {
    let servers = [Kind::Postgres, Kind::MariaDb].map(|kind| (kind, Server::start(kind)));
    let mut ledgers: Vec<(Kind, Alone, Own)> = Vec::new();
    for (kind, server) in &servers {
        let address = server.database("shop");
        let mut alone = Alone::new();
        alone.start(Some(Alone::options(&address, &["everything"])));
        alone
            .client()
            .batch_execute(
                "CREATE TABLE everything (k1 integer, k2 varchar(40), c_si smallint, c_i integer, c_bi bigint, c_n numeric(20,4), \
                 c_n0 numeric(38,0), c_b boolean, c_vc varchar(40), c_tx text, c_d date, c_ts timestamp, c_tz timestamptz, c_by bytea, \
                 c_u uuid, PRIMARY KEY (k1, k2))",
            )
            .expect("created");
        ledgers.push((*kind, alone, Own::connect(&address)));
    }
    let mut random = Random(StdRng::seed_from_u64(seed));
    let mut keys: Vec<String> = Vec::new();
    let mut done = 0;
    while done < count {
        let mut script = String::new();
        for _ in 0..40 {
            done += 1;
            script += &random.change(&mut keys, done);
        }
        for (_, alone, _) in &ledgers {
            alone.client().batch_execute(&script).unwrap_or_else(|error| panic!("{error:?}: {script}"));
        }
    }
    for (kind, alone, own) in &mut ledgers {
        alone.wait_level();
        let expected = text_rows(&mut alone.client(), &select(None));
        let found = own.rows(&select(Some(*kind)));
        assert!(expected.len() > count / 20, "{}", expected.len());
        let difference = expected.iter().zip(&found).find(|(expected, found)| expected != found);
        assert_eq!((difference, found.len()), (None, expected.len()), "{kind:?}, seed {seed}");
        let scans = alone.status().scans;
        let status = alone.wait("two comparisons of all rows", |status| status.scans > scans + 1);
        assert_eq!(status.strange_rows, 0, "{kind:?}: {status:?}");
        alone.stop();
    }
}

#[test]
fn changes_through_all_types_read_the_same_everywhere() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    changes(number("TYPE_CHANGES", 4_000) as usize, number("TYPE_SEED", 1));
}

/// PostgreSQL has all types that the ledger has, but for composite ones.
#[test]
fn types_that_postgresql_alone_has_read_the_same_there() {
    let server = Server::start(Kind::Postgres);
    let address = server.database("shop");
    let mut alone = Alone::new();
    alone.start(Some(Alone::options(&address, &["others"])));
    let mut client = alone.client();
    client
        .batch_execute(
            "CREATE TABLE others (n numeric, d double precision, r real, i interval, t time, c char(5), a integer[], b text[], \
             v varchar, day date, at timestamptz, host inet, net cidr, card macaddr, flag bit(3), more varbit, tz timetz, up tstzrange, \
             ports int4multirange, short timestamp(3), PRIMARY KEY (n, v))",
        )
        .expect("created");
    let rows = [
        r#"1.50, 0.1, 0.1, '1 year 2 mons -3 days 04:05:06.7', '24:00:00', 'ab', '{1,NULL,-3}', '{"a b",NULL,"\\\"",""}', '', 'infinity', '-infinity', '10.1.2.3/8', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', '', '12:00+02', '[2026-01-01,)', '{[1,3),[5,9]}', '2026-01-01 00:00:00.0005'"#,
        "'NaN', 'NaN', 'Infinity', '00:00:00', '00:00:00.000001', '', '{}', '{}', 'x', '0044-03-15 BC', '2026-01-01 00:00:00.5+02', '::1', '2001:db8::/32', NULL, B'000', B'1011', '24:00-08', 'empty', '{}', NULL",
        "-0.000, '-0', 1e-40, '-1780000 years', '12:00', '     ', NULL, '{NULL}', '\t', '12026-05-05', '0001-01-01 BC'",
        r#"1e40, 1e308, 3e38, NULL, NULL, NULL, '{2147483647}', '{"{}",","}', 'gone', NULL, NULL"#,
    ];
    for row in rows {
        let inserted = client.batch_execute(&format!("INSERT INTO others VALUES ({row})"));
        inserted.unwrap_or_else(|error| panic!("{row}: {error:?}"));
    }
    alone.wait_level();
    client.batch_execute("UPDATE others SET n = n * 1.0, r = 2, i = i * 2 WHERE v <> '\t'").expect("updated");
    client.batch_execute("DELETE FROM others WHERE v = 'gone'").expect("deleted");
    alone.wait_level();
    let scans = alone.status().scans;
    let status = alone.wait("two comparisons of all rows", |status| status.scans > scans + 1);
    assert_eq!(status.strange_rows, 0, "{status:?}");
    let all = "SELECT * FROM others ORDER BY v";
    let mut own = Own::connect(&address);
    own.run("SET timezone = 'UTC'; SET intervalstyle = 'postgres'");
    client.batch_execute("SET timezone = 'UTC'").expect("set");
    let found = own.rows(all);
    assert_eq!((text_rows(&mut client, all), found.len()), (found, 3));
    alone.stop();
}
