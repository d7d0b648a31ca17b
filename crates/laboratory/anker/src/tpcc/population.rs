//! The tables at the beginning (TPC-C 4.3.3), with consistent sums for any number of customers.

use super::{
    CUSTOMER, CUSTOMERS_BY_NAME, DISTRICT, DISTRICTS, HISTORY, INDEXES, ITEM, LINES_OF_ORDER, NEW_ORDER,
    ORDER_LINE, ORDERS, ORDERS_OF_CUSTOMER, STOCK, Scale, WAREHOUSE, name_key, order_key,
};
use crate::AnkerError;
use crate::engine::Engine;
use crate::system::System;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// What each customer has paid at first, in cents.
const FIRST_PAYMENT: i64 = 1_000;

/// An engine with all tables filled.
pub(crate) fn load(system: System, scale: Scale, seed: u64) -> Result<Engine, AnkerError> {
    let mut engine = Engine::new(system, &scale.shapes(), INDEXES)?;
    let mut random = StdRng::seed_from_u64(seed);
    let items = (1..=scale.items as i64).map(|i_id| {
        let price = random.random_range(100..=10_000);
        ([i_id, random.random_range(0..i64::MAX), price, random.random_range(0..i64::MAX)], None)
    });
    engine.load(ITEM, items)?;
    let district_ytd = scale.customers as i64 * FIRST_PAYMENT;
    for w_id in 1..=scale.warehouses {
        let warehouse = [w_id as i64, w_id as i64, random.random_range(0..=2_000), 10 * district_ytd];
        engine.load(WAREHOUSE, [(warehouse, None)].into_iter())?;
        load_stock(&mut engine, scale, w_id, &mut random)?;
        for d_id in 1..=DISTRICTS {
            let (tax, next) = (random.random_range(0..=2_000), scale.customers as i64 + 1);
            let district = [w_id as i64, d_id as i64, d_id as i64, tax, district_ytd, next];
            engine.load(DISTRICT, [(district, None)].into_iter())?;
            load_customers(&mut engine, scale, (w_id, d_id), &mut random)?;
            load_orders(&mut engine, scale, (w_id, d_id), &mut random)?;
        }
    }
    Ok(engine)
}

fn load_stock(engine: &mut Engine, scale: Scale, w_id: usize, random: &mut StdRng) -> Result<(), AnkerError> {
    let rows = (1..=scale.items as i64).map(|i_id| {
        let mut row = [0; 17];
        (row[0], row[1]) = (w_id as i64, i_id);
        let text: i64 = random.random_range(0..1 << 40);
        row[2..13].iter_mut().zip(0..).for_each(|(value, number)| *value = text + number);
        row[13] = random.random_range(10..=100);
        (row, None)
    });
    engine.load(STOCK, rows).map(drop)
}

fn load_customers(
    engine: &mut Engine,
    scale: Scale,
    (w_id, d_id): (usize, usize),
    random: &mut StdRng,
) -> Result<(), AnkerError> {
    let district = scale.district(w_id, d_id);
    let (w_id, d_id) = (w_id as i64, d_id as i64);
    let customers = (1..=scale.customers as i64).map(|c_id| {
        let last = if c_id <= 1_000 { c_id - 1 } else { random.random_range(0..1_000) };
        // One of ten has a bad credit.
        let credit = i64::from(random.random_range(0..10) != 0);
        let discount = random.random_range(0..=5_000);
        let row = [w_id, d_id, c_id, last, credit, discount, -FIRST_PAYMENT, FIRST_PAYMENT, 1, 0];
        (row, Some((CUSTOMERS_BY_NAME, name_key(district, last))))
    });
    engine.load(CUSTOMER, customers)?;
    let history =
        (1..=scale.customers as i64).map(|c_id| ([c_id, d_id, w_id, d_id, w_id, 0, FIRST_PAYMENT], None));
    engine.load(HISTORY, history).map(drop)
}

fn load_orders(
    engine: &mut Engine,
    scale: Scale,
    (w, d): (usize, usize),
    random: &mut StdRng,
) -> Result<(), AnkerError> {
    let (district, w_id, d_id) = (scale.district(w, d), w as i64, d as i64);
    let mut customers: Vec<usize> = (1..=scale.customers).collect();
    customers.shuffle(random);
    // The newest three of ten orders are not delivered yet.
    let delivered = scale.customers * 7 / 10;
    for (c_id, o_id) in customers.into_iter().zip(1_i64..) {
        let (is_delivered, lines) = (o_id as usize <= delivered, random.random_range(5..=15));
        let carrier = if is_delivered { random.random_range(1..=10) } else { 0 };
        let order = [o_id, d_id, w_id, c_id as i64, 0, carrier, lines, 1];
        let customer = u64::from(scale.customer(w, d, c_id));
        engine.load(ORDERS, [(order, Some((ORDERS_OF_CUSTOMER, customer)))].into_iter())?;
        if !is_delivered {
            engine.load(NEW_ORDER, [([o_id, d_id, w_id], None)].into_iter())?;
        }
        let lines = (1..=lines).map(|number| {
            let item = random.random_range(1..=scale.items as i64);
            let amount = if is_delivered { 0 } else { random.random_range(1..=999_999) };
            let row = [o_id, d_id, w_id, number, item, w_id, i64::from(is_delivered), 5, amount, item];
            (row, (number == 1).then(|| (LINES_OF_ORDER, order_key(district, o_id))))
        });
        engine.load(ORDER_LINE, lines)?;
    }
    Ok(())
}
