//! The rows at the beginning (4.3.3), portion by portion, the same for every run.

use super::{DISTRICTS, Tpcc};
use crate::Rows;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use types::{Numeric, Value};

/// Rows of a portion: long ones, and short ones.
const LONG_ROWS: usize = 200;
const SHORT_ROWS: usize = 1_000;
/// What every customer has paid at the beginning, in cents.
const FIRST_PAYMENT: i64 = 1_000;
/// Microseconds since 2000-01-01 of what was there at the beginning: 2026-01-01.
const BEGINNING: i64 = 820_540_800_000_000;

/// 4.3.2.3: a last name for a number from 0 to 999.
pub(super) fn last_name(number: i32) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// What the customers of a warehouse have paid at the beginning, in cents: its W_YTD.
pub(super) fn warehouse_cents(tpcc: &Tpcc) -> i128 {
    i128::from(DISTRICTS) * i128::from(tpcc.customers) * i128::from(FIRST_PAYMENT)
}

pub(super) fn portions(tpcc: &Tpcc) -> Box<dyn Iterator<Item = Rows> + '_> {
    let items = in_portions(ITEM, LONG_ROWS, 1..=tpcc.items, item);
    let warehouses = (1..=tpcc.warehouses).flat_map(move |warehouse| {
        let places =
            [Rows { table: WAREHOUSE.0, columns: WAREHOUSE.1, rows: vec![warehouse_row(tpcc, warehouse)] }];
        let districts = in_portions(DISTRICT, SHORT_ROWS, 1..=DISTRICTS, move |district| {
            district_row(tpcc, warehouse, district)
        });
        let stock = in_portions(STOCK, LONG_ROWS, 1..=tpcc.items, move |item| stock_row(warehouse, item));
        let of_districts = (1..=DISTRICTS).flat_map(move |district| of_district(tpcc, warehouse, district));
        places.into_iter().chain(districts).chain(stock).chain(of_districts)
    });
    Box::new(items.chain(warehouses))
}

/// A table and its columns.
type Table = (&'static str, &'static [&'static str]);

const ITEM: Table = ("item", &["i_id", "i_im_id", "i_name", "i_price", "i_data"]);
const WAREHOUSE: Table = (
    "warehouse",
    &["w_id", "w_name", "w_street_1", "w_street_2", "w_city", "w_state", "w_zip", "w_tax", "w_ytd"],
);
const DISTRICT: Table = (
    "district",
    &[
        "d_w_id",
        "d_id",
        "d_name",
        "d_street_1",
        "d_street_2",
        "d_city",
        "d_state",
        "d_zip",
        "d_tax",
        "d_ytd",
        "d_next_o_id",
    ],
);
const STOCK: Table = (
    "stock",
    &[
        "s_w_id",
        "s_i_id",
        "s_quantity",
        "s_dist_01",
        "s_dist_02",
        "s_dist_03",
        "s_dist_04",
        "s_dist_05",
        "s_dist_06",
        "s_dist_07",
        "s_dist_08",
        "s_dist_09",
        "s_dist_10",
        "s_ytd",
        "s_order_cnt",
        "s_remote_cnt",
        "s_data",
    ],
);
const CUSTOMER: Table = (
    "customer",
    &[
        "c_w_id",
        "c_d_id",
        "c_id",
        "c_first",
        "c_middle",
        "c_last",
        "c_street_1",
        "c_street_2",
        "c_city",
        "c_state",
        "c_zip",
        "c_phone",
        "c_since",
        "c_credit",
        "c_credit_lim",
        "c_discount",
        "c_balance",
        "c_ytd_payment",
        "c_payment_cnt",
        "c_delivery_cnt",
        "c_data",
    ],
);
const HISTORY: Table =
    ("history", &["h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_date", "h_amount", "h_data"]);
const ORDERS: Table = (
    "orders",
    &["o_w_id", "o_d_id", "o_id", "o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt", "o_all_local"],
);
const NEW_ORDER: Table = ("new_order", &["no_w_id", "no_d_id", "no_o_id"]);
const ORDER_LINE: Table = (
    "order_line",
    &[
        "ol_w_id",
        "ol_d_id",
        "ol_o_id",
        "ol_number",
        "ol_i_id",
        "ol_supply_w_id",
        "ol_delivery_d",
        "ol_quantity",
        "ol_amount",
        "ol_dist_info",
    ],
);

/// Rows that are made one by one.
fn in_portions<'t>(
    (table, columns): Table,
    size: usize,
    numbers: std::ops::RangeInclusive<i32>,
    row: impl Fn(i32) -> Vec<Value> + 't,
) -> impl Iterator<Item = Rows> + 't {
    let mut numbers = numbers.peekable();
    std::iter::from_fn(move || {
        numbers.peek()?;
        let rows = numbers.by_ref().take(size).map(&row).collect();
        Some(Rows { table, columns, rows })
    })
}

/// A generator of its own for every row, so that rows do not depend on one another.
fn generator(kind: u64, place: [i32; 3]) -> StdRng {
    let [a, b, c] = place.map(|number| number as u64);
    StdRng::seed_from_u64(kind << 60 | a << 40 | b << 32 | c)
}

fn text(random: &mut StdRng, from: usize, to: usize) -> Value {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let length = random.random_range(from..=to);
    let letters = (0..length).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]));
    Value::text(letters.collect::<String>())
}

fn digits(random: &mut StdRng, length: usize) -> String {
    (0..length).map(|_| char::from(b'0' + random.random_range(0..10u8))).collect()
}

fn numeric(mantissa: i64, scale: u8) -> Value {
    Value::Numeric(Numeric::new(i128::from(mantissa), scale))
}

/// One in ten is an original (4.3.3.1).
fn data(random: &mut StdRng) -> Value {
    let Value::Text(data) = text(random, 26, 50) else { return Value::Null };
    if random.random_range(0..10) > 0 {
        return Value::Text(data);
    }
    let at = random.random_range(0..=data.len() - 8);
    Value::text([&data[..at], "ORIGINAL", &data[at + 8..]].concat())
}

fn item(number: i32) -> Vec<Value> {
    let random = &mut generator(1, [0, 0, number]);
    vec![
        Value::Integer(number),
        Value::Integer(random.random_range(1..=10_000)),
        text(random, 14, 24),
        numeric(random.random_range(100..=10_000), 2),
        data(random),
    ]
}

/// Name, streets, city, state and zip.
fn address(random: &mut StdRng) -> [Value; 5] {
    let zip = format!("{}11111", digits(random, 4));
    [text(random, 10, 20), text(random, 10, 20), text(random, 10, 20), text(random, 2, 2), Value::text(zip)]
}

fn warehouse_row(tpcc: &Tpcc, warehouse: i32) -> Vec<Value> {
    let random = &mut generator(2, [warehouse, 0, 0]);
    let mut row = vec![Value::Integer(warehouse), text(random, 6, 10)];
    row.extend(address(random));
    row.push(numeric(random.random_range(0..=2_000), 4));
    row.push(numeric(warehouse_cents(tpcc) as i64, 2));
    row
}

fn district_row(tpcc: &Tpcc, warehouse: i32, district: i32) -> Vec<Value> {
    let random = &mut generator(3, [warehouse, district, 0]);
    let mut row = vec![Value::Integer(warehouse), Value::Integer(district), text(random, 6, 10)];
    row.extend(address(random));
    row.push(numeric(random.random_range(0..=2_000), 4));
    row.push(numeric(i64::from(tpcc.customers) * FIRST_PAYMENT, 2));
    row.push(Value::Integer(tpcc.customers + 1));
    row
}

fn stock_row(warehouse: i32, item: i32) -> Vec<Value> {
    let random = &mut generator(4, [warehouse, 0, item]);
    let mut row =
        vec![Value::Integer(warehouse), Value::Integer(item), Value::Integer(random.random_range(10..=100))];
    row.extend((0..10).map(|_| text(random, 24, 24)));
    row.extend([0, 0, 0].map(Value::Integer));
    row.push(data(random));
    row
}

fn of_district(tpcc: &Tpcc, warehouse: i32, district: i32) -> impl Iterator<Item = Rows> + '_ {
    let place = move |number| [warehouse, district, number];
    let customers =
        in_portions(CUSTOMER, LONG_ROWS, 1..=tpcc.customers, move |number| customer_row(tpcc, place(number)));
    let history =
        in_portions(HISTORY, SHORT_ROWS, 1..=tpcc.customers, move |number| history_row(place(number)));
    // Every customer has ordered once, in an order of their own (4.3.3.1).
    let mut ordered_by: Vec<i32> = (1..=tpcc.customers).collect();
    ordered_by.shuffle(&mut generator(5, place(0)));
    let first_open = first_open(tpcc);
    let orders = in_portions(ORDERS, SHORT_ROWS, 1..=tpcc.customers, move |number| {
        let customer = ordered_by[number as usize - 1];
        order_row(place(number), customer, number >= first_open)
    });
    let open = in_portions(NEW_ORDER, SHORT_ROWS, first_open..=tpcc.customers, move |number| {
        place(number).map(Value::Integer).to_vec()
    });
    let orders_at_once = 64;
    let (table, columns) = ORDER_LINE;
    let lines = (1..=tpcc.customers).step_by(orders_at_once).map(move |first| {
        let last = (first + orders_at_once as i32 - 1).min(tpcc.customers);
        let rows = (first..=last).flat_map(|number| order_lines(tpcc, place(number), number >= first_open));
        Rows { table, columns, rows: rows.collect() }
    });
    customers.chain(history).chain(orders).chain(open).chain(lines)
}

/// The last three of ten orders of a district are not delivered yet.
fn first_open(tpcc: &Tpcc) -> i32 {
    tpcc.customers - tpcc.customers * 3 / 10 + 1
}

fn customer_row(tpcc: &Tpcc, place: [i32; 3]) -> Vec<Value> {
    let random = &mut generator(6, place);
    let number = place[2];
    let name = match number {
        1..=1_000 => number - 1,
        _ => tpcc.non_uniform(random, 255, 0, 0, tpcc.names() - 1),
    };
    let mut row = place.map(Value::Integer).to_vec();
    row.extend([text(random, 8, 16), Value::text("OE"), Value::text(last_name(name))]);
    row.extend(address(random));
    row.push(Value::text(digits(random, 16)));
    row.push(Value::TimestampTz(BEGINNING));
    row.push(Value::text(if random.random_range(0..10) == 0 { "BC" } else { "GC" }));
    row.push(numeric(5_000_000, 2));
    row.push(numeric(random.random_range(0..=5_000), 4));
    row.extend([numeric(-FIRST_PAYMENT, 2), numeric(FIRST_PAYMENT, 2)]);
    row.extend([1, 0].map(Value::Integer));
    row.push(text(random, 300, 500));
    row
}

fn history_row(place: [i32; 3]) -> Vec<Value> {
    let random = &mut generator(7, place);
    let [warehouse, district, customer] = place;
    let mut row = [customer, district, warehouse, district, warehouse].map(Value::Integer).to_vec();
    row.extend([Value::TimestampTz(BEGINNING), numeric(FIRST_PAYMENT, 2), text(random, 12, 24)]);
    row
}

/// How many lines an order has: the first thing that its generator gives.
fn line_count(place: [i32; 3]) -> (i32, StdRng) {
    let mut random = generator(8, place);
    (random.random_range(5..=15), random)
}

fn order_row(place: [i32; 3], customer: i32, open: bool) -> Vec<Value> {
    let (lines, mut random) = line_count(place);
    let carrier = random.random_range(1..=10);
    let mut row = place.map(Value::Integer).to_vec();
    row.extend([Value::Integer(customer), Value::TimestampTz(BEGINNING)]);
    row.push(if open { Value::Null } else { Value::Integer(carrier) });
    row.extend([lines, 1].map(Value::Integer));
    row
}

fn order_lines(tpcc: &Tpcc, place: [i32; 3], open: bool) -> Vec<Vec<Value>> {
    let (lines, mut random) = line_count(place);
    let mut line = |number| {
        let mut row = place.map(Value::Integer).to_vec();
        let item = random.random_range(1..=tpcc.items);
        row.extend([number, item, place[0]].map(Value::Integer));
        row.push(if open { Value::Null } else { Value::TimestampTz(BEGINNING) });
        row.push(Value::Integer(5));
        row.push(numeric(if open { random.random_range(1..=999_999) } else { 0 }, 2));
        row.push(text(&mut random, 24, 24));
        row
    };
    (1..=lines).map(&mut line).collect()
}
