//! TPC-C as the paper runs it beside its questions (2.6.2): Payment, New-Order and Order-Status on all nine tables.
//!
//! Every value is a 64-bit number: amounts are cents, taxes and discounts ten thousandths, and a number stands for a text. Rows of
//! tables that do not grow are found by arithmetic, others by an index.

mod consistency;
mod inputs;
mod population;
mod questions;
mod transactions;

pub(crate) use consistency::check;
pub(crate) use inputs::{Access, Inputs};
pub(crate) use population::load;
pub(crate) use questions::{QUESTIONS, question};
pub(crate) use transactions::run;

use crate::table::TableShape;

pub(crate) const WAREHOUSE: usize = 0;
pub(crate) const DISTRICT: usize = 1;
pub(crate) const CUSTOMER: usize = 2;
pub(crate) const HISTORY: usize = 3;
pub(crate) const NEW_ORDER: usize = 4;
pub(crate) const ORDERS: usize = 5;
pub(crate) const ORDER_LINE: usize = 6;
pub(crate) const ITEM: usize = 7;
pub(crate) const STOCK: usize = 8;

/// Indexes: customers of a district by name, orders of a customer, the first line of an order.
pub(crate) const CUSTOMERS_BY_NAME: usize = 0;
pub(crate) const ORDERS_OF_CUSTOMER: usize = 1;
pub(crate) const LINES_OF_ORDER: usize = 2;
pub(crate) const INDEXES: usize = 3;

/// Columns of the tables.
pub(crate) mod column {
    pub(crate) const W_ID: usize = 0;
    pub(crate) const W_NAME: usize = 1;
    pub(crate) const W_TAX: usize = 2;
    pub(crate) const W_YTD: usize = 3;

    pub(crate) const D_NAME: usize = 2;
    pub(crate) const D_TAX: usize = 3;
    pub(crate) const D_YTD: usize = 4;
    pub(crate) const D_NEXT_O_ID: usize = 5;

    pub(crate) const C_W_ID: usize = 0;
    pub(crate) const C_D_ID: usize = 1;
    pub(crate) const C_ID: usize = 2;
    pub(crate) const C_LAST: usize = 3;
    pub(crate) const C_CREDIT: usize = 4;
    pub(crate) const C_DISCOUNT: usize = 5;
    pub(crate) const C_BALANCE: usize = 6;
    pub(crate) const C_YTD_PAYMENT: usize = 7;
    pub(crate) const C_PAYMENT_CNT: usize = 8;
    pub(crate) const C_DATA: usize = 9;

    pub(crate) const H_W_ID: usize = 4;
    pub(crate) const H_AMOUNT: usize = 6;

    pub(crate) const O_ID: usize = 0;
    pub(crate) const O_D_ID: usize = 1;
    pub(crate) const O_W_ID: usize = 2;
    pub(crate) const O_C_ID: usize = 3;
    pub(crate) const O_ENTRY_D: usize = 4;
    pub(crate) const O_CARRIER_ID: usize = 5;
    pub(crate) const O_OL_CNT: usize = 6;

    pub(crate) const OL_D_ID: usize = 1;
    pub(crate) const OL_W_ID: usize = 2;
    pub(crate) const OL_I_ID: usize = 4;
    pub(crate) const OL_SUPPLY_W_ID: usize = 5;
    pub(crate) const OL_DELIVERY_D: usize = 6;
    pub(crate) const OL_QUANTITY: usize = 7;
    pub(crate) const OL_AMOUNT: usize = 8;

    pub(crate) const I_NAME: usize = 1;
    pub(crate) const I_PRICE: usize = 2;
    pub(crate) const I_DATA: usize = 3;

    pub(crate) const S_W_ID: usize = 0;
    pub(crate) const S_DIST_01: usize = 2;
    pub(crate) const S_DATA: usize = 12;
    pub(crate) const S_QUANTITY: usize = 13;
    pub(crate) const S_YTD: usize = 14;
    pub(crate) const S_ORDER_CNT: usize = 15;
    pub(crate) const S_REMOTE_CNT: usize = 16;
}

/// Districts of a warehouse.
pub(crate) const DISTRICTS: usize = 10;

/// Orders that a run may add; it ends with an error that says so where that is too few.
const NEW_ORDERS_MAX: usize = 16_000_000;

/// How large the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) warehouses: usize,
    /// Customers of a district, 3,000 in the specification. There are as many orders at first.
    pub(crate) customers: usize,
    /// Items, 100,000 in the specification.
    pub(crate) items: usize,
}

impl Scale {
    pub(crate) fn shapes(self) -> [TableShape; 9] {
        let districts = self.warehouses * DISTRICTS;
        let orders = districts * self.customers;
        let shape = |name, columns, keys, rows_max| TableShape { name, columns, keys, rows_max };
        [
            shape("warehouse", &["w_id", "w_name", "w_tax", "w_ytd"], 3, self.warehouses),
            shape("district", &["d_w_id", "d_id", "d_name", "d_tax", "d_ytd", "d_next_o_id"], 4, districts),
            shape("customer", &CUSTOMER_COLUMNS, 6, orders),
            shape("history", &HISTORY_COLUMNS, 0, orders + 2 * NEW_ORDERS_MAX),
            shape("new_order", &["no_o_id", "no_d_id", "no_w_id"], 3, orders + NEW_ORDERS_MAX),
            shape("orders", &ORDERS_COLUMNS, 5, orders + NEW_ORDERS_MAX),
            shape("order_line", &ORDER_LINE_COLUMNS, 6, 15 * orders + 11 * NEW_ORDERS_MAX),
            shape("item", &["i_id", "i_name", "i_price", "i_data"], 4, self.items),
            shape("stock", &STOCK_COLUMNS, 13, self.warehouses * self.items),
        ]
    }

    /// The row of a district; warehouses and districts count from 1.
    pub(crate) fn district(self, w_id: usize, d_id: usize) -> u32 {
        ((w_id - 1) * DISTRICTS + d_id - 1) as u32
    }

    /// The row of a customer.
    pub(crate) fn customer(self, w_id: usize, d_id: usize, c_id: usize) -> u32 {
        self.district(w_id, d_id) * self.customers as u32 + c_id as u32 - 1
    }

    /// The row of an item in a warehouse's stock.
    pub(crate) fn stock(self, w_id: usize, i_id: usize) -> u32 {
        ((w_id - 1) * self.items + i_id - 1) as u32
    }
}

/// The key of customers by their name.
fn name_key(district: u32, last: i64) -> u64 {
    u64::from(district) << 32 | last as u64
}

/// The key of an order's lines.
fn order_key(district: u32, o_id: i64) -> u64 {
    u64::from(district) << 32 | o_id as u64
}

const CUSTOMER_COLUMNS: [&str; 10] = [
    "c_w_id",
    "c_d_id",
    "c_id",
    "c_last",
    "c_credit",
    "c_discount",
    "c_balance",
    "c_ytd_payment",
    "c_payment_cnt",
    "c_data",
];
const HISTORY_COLUMNS: [&str; 7] =
    ["h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_date", "h_amount"];
const ORDERS_COLUMNS: [&str; 8] =
    ["o_id", "o_d_id", "o_w_id", "o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt", "o_all_local"];
const ORDER_LINE_COLUMNS: [&str; 10] = [
    "ol_o_id",
    "ol_d_id",
    "ol_w_id",
    "ol_number",
    "ol_i_id",
    "ol_supply_w_id",
    "ol_delivery_d",
    "ol_quantity",
    "ol_amount",
    "ol_dist_info",
];
const STOCK_COLUMNS: [&str; 17] = [
    "s_w_id",
    "s_i_id",
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
    "s_data",
    "s_quantity",
    "s_ytd",
    "s_order_cnt",
    "s_remote_cnt",
];
