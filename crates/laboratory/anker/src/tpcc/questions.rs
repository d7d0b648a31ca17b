//! The eight questions (Figure 2.7).

use super::column::{D_TAX, D_YTD, OL_AMOUNT, OL_D_ID, OL_QUANTITY, OL_W_ID, S_QUANTITY, S_W_ID, W_ID};
use super::{DISTRICT, DISTRICTS, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, Scale, WAREHOUSE};
use crate::question::Question;

/// Their names.
pub(crate) const QUESTIONS: [&str; 8] = ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8"];

/// One of them, counted from 0. An average is a sum and a count.
pub(crate) fn question(number: usize, scale: Scale) -> Question {
    let warehouses = scale.warehouses + 1;
    let groups = |table, by, groups, sums: &[usize]| Question::Groups {
        table,
        by,
        groups,
        sums: sums.to_vec(),
        among: None,
    };
    match number {
        0 => Question::Groups {
            table: STOCK,
            by: Some(S_W_ID),
            groups: warehouses,
            sums: Vec::new(),
            among: Some((WAREHOUSE, W_ID)),
        },
        1 => groups(ORDER_LINE, Some(OL_D_ID), DISTRICTS + 1, &[OL_AMOUNT]),
        2 => groups(ORDER_LINE, Some(OL_W_ID), warehouses, &[OL_QUANTITY, OL_AMOUNT]),
        3 => Question::Whole { table: ORDERS },
        4 => Question::Whole { table: NEW_ORDER },
        5 => groups(DISTRICT, None, 1, &[D_TAX, D_YTD]),
        6 => groups(ORDER_LINE, None, 1, &[OL_AMOUNT]),
        _ => groups(STOCK, None, 1, &[S_QUANTITY]),
    }
}
