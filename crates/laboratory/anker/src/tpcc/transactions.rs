//! Payment, New-Order and Order-Status (TPC-C 2.4 to 2.6), chosen with equal probability.

use super::column::*;
use super::{
    CUSTOMER, CUSTOMERS_BY_NAME, DISTRICT, HISTORY, ITEM, Inputs, LINES_OF_ORDER, NEW_ORDER, ORDER_LINE,
    ORDERS, ORDERS_OF_CUSTOMER, STOCK, WAREHOUSE, name_key, order_key,
};
use crate::AnkerError;
use crate::engine::{Engine, Transaction};
use crate::predicate::{Condition, Predicate, Rows};

/// Runs one transaction; gives whether it committed. One of a hundred New-Orders is taken back by its client.
pub(crate) fn run(engine: &Engine, inputs: &mut Inputs) -> Result<bool, AnkerError> {
    match inputs.between(1, 3) {
        1 => payment(engine, inputs).map(|()| true),
        2 => new_order(engine, inputs),
        _ => order_status(engine, inputs).map(|()| true),
    }
}

fn equal(column: usize, value: i64) -> Condition {
    Condition { column, from: value, to: value }
}

fn bits(columns: &[usize]) -> u64 {
    columns.iter().fold(0, |bits, column| bits | 1 << column)
}

/// The row of a customer, of whom six of ten are named by their last name: the one in the middle of those.
fn find_customer(
    transaction: &mut Transaction<'_>,
    inputs: &mut Inputs,
    (w_id, d_id): (usize, usize),
) -> Result<u32, AnkerError> {
    let scale = inputs.scale;
    if !inputs.percent(60) {
        return Ok(scale.customer(w_id, d_id, inputs.customer()));
    }
    let last = inputs.last_name();
    let conditions = vec![equal(C_W_ID, w_id as i64), equal(C_D_ID, d_id as i64), equal(C_LAST, last)];
    let rows = Rows::Where(conditions);
    transaction.register(Predicate { table: CUSTOMER, rows, columns: bits(&[C_ID]) })?;
    let key = name_key(scale.district(w_id, d_id), last);
    let middle =
        transaction.look(CUSTOMERS_BY_NAME, CUSTOMER, key, |rows| rows.get(rows.len() / 2).copied())?;
    middle.ok_or_else(|| AnkerError::unknown("a customer of every name", format_args!("none of {last}")))
}

fn payment(engine: &Engine, inputs: &mut Inputs) -> Result<(), AnkerError> {
    let (w_id, d_id) = inputs.home();
    let amount = inputs.between(100, 500_000) as i64;
    let mut transaction = engine.begin();
    let (warehouse, district) = ((w_id - 1) as u32, inputs.scale.district(w_id, d_id));
    transaction.read(WAREHOUSE, warehouse, W_NAME)?;
    let ytd = transaction.read(WAREHOUSE, warehouse, W_YTD)?;
    transaction.write(WAREHOUSE, warehouse, W_YTD, ytd + amount)?;
    transaction.read(DISTRICT, district, D_NAME)?;
    let ytd = transaction.read(DISTRICT, district, D_YTD)?;
    transaction.write(DISTRICT, district, D_YTD, ytd + amount)?;
    // Fifteen of a hundred customers are of another warehouse.
    let of = match inputs.percent(15) {
        true => (inputs.other_warehouse(w_id), inputs.between(1, super::DISTRICTS)),
        false => (w_id, d_id),
    };
    let customer = find_customer(&mut transaction, inputs, of)?;
    let mut add = |column, value| -> Result<(), AnkerError> {
        let before = transaction.read(CUSTOMER, customer, column)?;
        transaction.write(CUSTOMER, customer, column, before + value)
    };
    add(C_BALANCE, -amount)?;
    add(C_YTD_PAYMENT, amount)?;
    add(C_PAYMENT_CNT, 1)?;
    if transaction.read(CUSTOMER, customer, C_CREDIT)? == 0 {
        let data = transaction.read(CUSTOMER, customer, C_DATA)?;
        transaction.write(CUSTOMER, customer, C_DATA, data.wrapping_mul(31).wrapping_add(amount))?;
    }
    let c_id = transaction.read(CUSTOMER, customer, C_ID)?;
    let history = vec![c_id, of.1 as i64, of.0 as i64, d_id as i64, w_id as i64, inputs.date(), amount];
    transaction.insert(HISTORY, history, None)?;
    transaction.commit().map(drop)
}

fn new_order(engine: &Engine, inputs: &mut Inputs) -> Result<bool, AnkerError> {
    let scale = inputs.scale;
    let (w_id, d_id) = inputs.home();
    let (lines, is_taken_back) = (inputs.between(5, 15), inputs.percent(1));
    let (c_id, district) = (inputs.customer(), scale.district(w_id, d_id));
    let customer = scale.customer(w_id, d_id, c_id);
    let mut transaction = engine.begin();
    transaction.read(WAREHOUSE, (w_id - 1) as u32, W_TAX)?;
    transaction.read(DISTRICT, district, D_TAX)?;
    let o_id = transaction.read(DISTRICT, district, D_NEXT_O_ID)?;
    transaction.write(DISTRICT, district, D_NEXT_O_ID, o_id + 1)?;
    for column in [C_DISCOUNT, C_LAST, C_CREDIT] {
        transaction.read(CUSTOMER, customer, column)?;
    }
    let mut all_local = 1;
    for number in 1..=lines {
        if is_taken_back && number == lines {
            // The last item does not exist.
            return Ok(false);
        }
        let supplier = if inputs.percent(1) { inputs.other_warehouse(w_id) } else { w_id };
        all_local &= i64::from(supplier == w_id);
        let line = OrderLine { o_id, d_id, w_id, number, supplier };
        order_line(&mut transaction, inputs, line)?;
    }
    let (w, d) = (w_id as i64, d_id as i64);
    let order = vec![o_id, d, w, c_id as i64, inputs.date(), 0, lines as i64, all_local];
    transaction.insert(ORDERS, order, Some((ORDERS_OF_CUSTOMER, u64::from(customer))))?;
    transaction.insert(NEW_ORDER, vec![o_id, d, w], None)?;
    transaction.commit().map(|_| true)
}

struct OrderLine {
    o_id: i64,
    d_id: usize,
    w_id: usize,
    number: usize,
    supplier: usize,
}

fn order_line(
    transaction: &mut Transaction<'_>,
    inputs: &mut Inputs,
    line: OrderLine,
) -> Result<(), AnkerError> {
    let OrderLine { o_id, d_id, w_id, number, supplier } = line;
    let (i_id, quantity) = (inputs.item(), inputs.between(1, 10) as i64);
    let (item, stock) = ((i_id - 1) as u32, inputs.scale.stock(supplier, i_id));
    let price = transaction.read(ITEM, item, I_PRICE)?;
    transaction.read(ITEM, item, I_NAME)?;
    transaction.read(ITEM, item, I_DATA)?;
    let left = transaction.read(STOCK, stock, S_QUANTITY)?;
    let information = transaction.read(STOCK, stock, S_DIST_01 + d_id - 1)?;
    transaction.read(STOCK, stock, S_DATA)?;
    let refill = if left - quantity < 10 { 91 } else { 0 };
    transaction.write(STOCK, stock, S_QUANTITY, left - quantity + refill)?;
    let remote = i64::from(supplier != w_id);
    for (column, more) in [(S_YTD, quantity), (S_ORDER_CNT, 1), (S_REMOTE_CNT, remote)] {
        if more != 0 {
            let before = transaction.read(STOCK, stock, column)?;
            transaction.write(STOCK, stock, column, before + more)?;
        }
    }
    let (w, d) = (w_id as i64, d_id as i64);
    let amount = quantity * price;
    let row = vec![o_id, d, w, number as i64, i_id as i64, supplier as i64, 0, quantity, amount, information];
    let key = order_key(inputs.scale.district(w_id, d_id), o_id);
    transaction.insert(ORDER_LINE, row, (number == 1).then_some((LINES_OF_ORDER, key)))
}

fn order_status(engine: &Engine, inputs: &mut Inputs) -> Result<(), AnkerError> {
    let (w_id, d_id) = inputs.home();
    let mut transaction = engine.begin();
    let customer = find_customer(&mut transaction, inputs, (w_id, d_id))?;
    let c_id = transaction.read(CUSTOMER, customer, C_ID)?;
    transaction.read(CUSTOMER, customer, C_BALANCE)?;
    // The newest order of the customer: a later one would have changed the answer.
    let conditions = vec![equal(O_D_ID, d_id as i64), equal(O_W_ID, w_id as i64), equal(O_C_ID, c_id)];
    let rows = Rows::Where(conditions);
    transaction.register(Predicate { table: ORDERS, rows, columns: bits(&[O_ID]) })?;
    let key = u64::from(customer);
    let order = transaction.look(ORDERS_OF_CUSTOMER, ORDERS, key, |rows| rows.last().copied())?;
    let Some(order) = order else { return transaction.commit().map(drop) };
    let o_id = transaction.read(ORDERS, order, O_ID)?;
    transaction.read(ORDERS, order, O_ENTRY_D)?;
    transaction.read(ORDERS, order, O_CARRIER_ID)?;
    let lines = transaction.read(ORDERS, order, O_OL_CNT)?;
    let key = order_key(inputs.scale.district(w_id, d_id), o_id);
    let first = transaction.look(LINES_OF_ORDER, ORDER_LINE, key, |rows| rows.last().copied())?;
    // Without isolation two orders may have one number, and the other one's lines may be fewer.
    let end = |first: u32| (first + lines as u32).min(transaction.rows(ORDER_LINE));
    for line in first.map_or(0..0, |first| first..end(first)) {
        for column in [OL_I_ID, OL_SUPPLY_W_ID, OL_QUANTITY, OL_AMOUNT, OL_DELIVERY_D] {
            transaction.read(ORDER_LINE, line, column)?;
        }
    }
    transaction.commit().map(drop)
}
