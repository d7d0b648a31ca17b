//! The consistency conditions of the specification (3.3.2), as queries that must give no row. Each is asked warehouse
//! by warehouse: what it looks at stays small.

use crate::Condition;

/// Number of the condition in the specification, what must hold, and a query for what breaks it; `$1` is the warehouse.
const CONDITIONS: [(&str, &str, &str); 12] = [
    (
        "3.3.2.1",
        "W_YTD = sum(D_YTD)",
        "SELECT w_id FROM warehouse WHERE w_id = $1
            AND w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = $1)",
    ),
    (
        "3.3.2.2",
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "SELECT d_id FROM district d WHERE d_w_id = $1
            AND (d_next_o_id - 1 <> (SELECT max(o_id) FROM orders WHERE o_w_id = $1 AND o_d_id = d.d_id)
            OR d_next_o_id - 1 <> (SELECT coalesce(max(no_o_id), d.d_next_o_id - 1) FROM new_order
                WHERE no_w_id = $1 AND no_d_id = d.d_id))",
    ),
    (
        "3.3.2.3",
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER of the district",
        "SELECT no_d_id FROM new_order WHERE no_w_id = $1 GROUP BY no_d_id
            HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    ),
    (
        "3.3.2.4",
        "sum(O_OL_CNT) = rows in ORDER-LINE of the district",
        "SELECT d_id FROM district d WHERE d_w_id = $1
            AND (SELECT sum(o_ol_cnt) FROM orders WHERE o_w_id = $1 AND o_d_id = d.d_id)
                <> (SELECT count(*) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = d.d_id)",
    ),
    (
        "3.3.2.5",
        "O_CARRIER_ID is null if and only if NEW-ORDER has the order",
        "SELECT o_d_id, o_id FROM (SELECT o_d_id, o_id, o_carrier_id FROM orders WHERE o_w_id = $1) o
            LEFT JOIN (SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = $1) n ON no_d_id = o_d_id AND no_o_id = o_id
            WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "3.3.2.6",
        "O_OL_CNT = rows in ORDER-LINE of the order",
        "SELECT o_d_id, o_id FROM (SELECT o_d_id, o_id, o_ol_cnt FROM orders WHERE o_w_id = $1) o
            LEFT JOIN (SELECT ol_d_id, ol_o_id, count(*) AS n FROM order_line WHERE ol_w_id = $1 GROUP BY ol_d_id, ol_o_id) l
                ON ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE n IS NULL OR n <> o_ol_cnt",
    ),
    (
        "3.3.2.7",
        "OL_DELIVERY_D is null if and only if O_CARRIER_ID is",
        "SELECT o_d_id, o_id FROM (SELECT o_d_id, o_id, o_carrier_id FROM orders WHERE o_w_id = $1) o
            JOIN (SELECT ol_d_id, ol_o_id, count(*) AS n, count(ol_delivery_d) AS delivered FROM order_line
                WHERE ol_w_id = $1 GROUP BY ol_d_id, ol_o_id) l ON ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE delivered <> CASE WHEN o_carrier_id IS NULL THEN 0 ELSE n END",
    ),
    (
        "3.3.2.8",
        "W_YTD = sum(H_AMOUNT)",
        "SELECT w_id FROM warehouse WHERE w_id = $1
            AND w_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = $1)",
    ),
    (
        "3.3.2.9",
        "D_YTD = sum(H_AMOUNT)",
        "SELECT d_id FROM district JOIN (SELECT h_d_id, sum(h_amount) AS paid FROM history WHERE h_w_id = $1 GROUP BY h_d_id) h
            ON h_d_id = d_id WHERE d_w_id = $1 AND d_ytd <> paid",
    ),
    (
        "3.3.2.10",
        "C_BALANCE = delivered OL_AMOUNT - sum(H_AMOUNT)",
        "SELECT c_d_id, c_id FROM (SELECT c_d_id, c_id, c_balance FROM customer WHERE c_w_id = $1) c
            LEFT JOIN (SELECT o_d_id, o_c_id, sum(amount) AS delivered FROM
                (SELECT o_d_id, o_id, o_c_id FROM orders WHERE o_w_id = $1 AND o_carrier_id IS NOT NULL) o
                JOIN (SELECT ol_d_id, ol_o_id, sum(ol_amount) AS amount FROM order_line
                    WHERE ol_w_id = $1 AND ol_delivery_d IS NOT NULL GROUP BY ol_d_id, ol_o_id) l
                ON ol_d_id = o_d_id AND ol_o_id = o_id GROUP BY o_d_id, o_c_id) d ON o_d_id = c_d_id AND o_c_id = c_id
            LEFT JOIN (SELECT h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history WHERE h_c_w_id = $1
                GROUP BY h_c_d_id, h_c_id) h ON h_c_d_id = c_d_id AND h_c_id = c_id
            WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
    ),
    (
        "3.3.2.12",
        "C_BALANCE + C_YTD_PAYMENT = delivered OL_AMOUNT",
        "SELECT c_d_id, c_id FROM (SELECT c_d_id, c_id, c_balance + c_ytd_payment AS delivered FROM customer
                WHERE c_w_id = $1) c
            LEFT JOIN (SELECT o_d_id, o_c_id, sum(amount) AS lines FROM
                (SELECT o_d_id, o_id, o_c_id FROM orders WHERE o_w_id = $1) o
                JOIN (SELECT ol_d_id, ol_o_id, sum(ol_amount) AS amount FROM order_line
                    WHERE ol_w_id = $1 AND ol_delivery_d IS NOT NULL GROUP BY ol_d_id, ol_o_id) l
                ON ol_d_id = o_d_id AND ol_o_id = o_id GROUP BY o_d_id, o_c_id) d ON o_d_id = c_d_id AND o_c_id = c_id
            WHERE delivered <> coalesce(lines, 0)",
    ),
    (
        "counts",
        "C_PAYMENT_CNT = rows in HISTORY of the customer",
        "SELECT c_d_id, c_id FROM (SELECT c_d_id, c_id, c_payment_cnt FROM customer WHERE c_w_id = $1) c
            LEFT JOIN (SELECT h_c_d_id, h_c_id, count(*) AS n FROM history WHERE h_c_w_id = $1
                GROUP BY h_c_d_id, h_c_id) h ON h_c_d_id = c_d_id AND h_c_id = c_id
            WHERE c_payment_cnt <> coalesce(n, 0)",
    ),
];

/// The conditions, for every warehouse.
pub(super) fn conditions(warehouses: i32) -> Vec<Condition> {
    let of_warehouse = |warehouse: i32| {
        CONDITIONS.into_iter().map(move |(number, what, query)| Condition {
            name: format!("TPC-C {number}: {what}, in warehouse {warehouse}"),
            query: query.replace("$1", &warehouse.to_string()),
        })
    };
    (1..=warehouses).flat_map(of_warehouse).collect()
}
