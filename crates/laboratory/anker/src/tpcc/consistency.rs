//! Consistency conditions of TPC-C (3.3.2) that Payment and New-Order could break.

use super::column::{D_NEXT_O_ID, D_YTD, H_AMOUNT, H_W_ID, O_D_ID, O_ID, O_OL_CNT, O_W_ID, W_YTD};
use super::{DISTRICT, DISTRICTS, HISTORY, NEW_ORDER, ORDER_LINE, ORDERS, Scale, WAREHOUSE};
use crate::AnkerError;
use crate::engine::Engine;

/// Checks the newest state, after a run.
///
/// # Errors
/// The first condition that does not hold.
pub(crate) fn check(engine: &Engine, scale: Scale) -> Result<(), AnkerError> {
    let value = |table, row, column| engine.newest(table, row, column);
    let broken =
        |condition: String| Err(AnkerError::Inconsistent { system: engine.system().name, condition });
    let mut paid = vec![0; scale.warehouses + 1];
    for row in 0..engine.rows(HISTORY) {
        paid[value(HISTORY, row, H_W_ID)? as usize] += value(HISTORY, row, H_AMOUNT)?;
    }
    let (mut ids, mut lines) = (vec![Vec::new(); scale.warehouses * DISTRICTS], 0);
    for row in 0..engine.rows(ORDERS) {
        let (w_id, d_id) = (value(ORDERS, row, O_W_ID)?, value(ORDERS, row, O_D_ID)?);
        ids[scale.district(w_id as usize, d_id as usize) as usize].push(value(ORDERS, row, O_ID)?);
        lines += value(ORDERS, row, O_OL_CNT)?;
    }
    for (w_id, paid) in (1..).zip(&paid[1..]) {
        let ytd = value(WAREHOUSE, w_id - 1, W_YTD)?;
        let mut of_districts = 0;
        for d_id in 1..=DISTRICTS {
            let district = scale.district(w_id, d_id) as usize;
            of_districts += value(DISTRICT, district, D_YTD)?;
            let ids = &mut ids[district];
            ids.sort_unstable();
            let next = value(DISTRICT, district, D_NEXT_O_ID)?;
            if !ids.iter().copied().eq(1..next) {
                return broken(format!("D_NEXT_O_ID of district {d_id} of warehouse {w_id} and its orders"));
            }
        }
        if ytd != of_districts || ytd != *paid {
            return broken(format!("W_YTD of warehouse {w_id}, its districts and its history"));
        }
    }
    if lines != engine.rows(ORDER_LINE) as i64 {
        return broken("O_OL_CNT and the number of order lines".to_string());
    }
    let delivered = scale.customers * 7 / 10 * DISTRICTS * scale.warehouses;
    match engine.rows(ORDERS) - engine.rows(NEW_ORDER) == delivered {
        true => Ok(()),
        false => broken("orders that are not delivered, and rows of new_order".to_string()),
    }
}
