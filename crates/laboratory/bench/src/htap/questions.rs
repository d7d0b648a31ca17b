//! Analytical queries of the CH-benCHmark, which ask TPC-C's own tables what TPC-H asks: eight of those that need no other tables.

/// A query.
pub(super) struct Question {
    /// As in the CH-benCHmark.
    pub(super) id: &'static str,
    pub(super) text: &'static str,
}

/// In the order in which they are asked.
pub(super) const QUESTIONS: [Question; 8] = [
    Question {
        id: "ch1",
        text: "SELECT ol_number, sum(ol_quantity) AS sum_qty, sum(ol_amount) AS sum_amount, \
               avg(ol_quantity) AS avg_qty, avg(ol_amount) AS avg_amount, count(*) AS count_order \
               FROM order_line WHERE ol_delivery_d > timestamptz '1900-01-01 00:00:00+00' \
               GROUP BY ol_number ORDER BY ol_number",
    },
    Question {
        id: "ch4",
        text: "SELECT o_ol_cnt, count(*) AS order_count FROM orders WHERE EXISTS (SELECT * FROM order_line \
               WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id AND ol_delivery_d >= o_entry_d) \
               GROUP BY o_ol_cnt ORDER BY o_ol_cnt",
    },
    Question {
        id: "ch6",
        text: "SELECT sum(ol_amount) AS revenue FROM order_line \
               WHERE ol_delivery_d >= timestamptz '1900-01-01 00:00:00+00' AND ol_quantity BETWEEN 1 AND 100000",
    },
    Question {
        id: "ch12",
        text: "SELECT o_ol_cnt, sum(CASE WHEN o_carrier_id = 1 OR o_carrier_id = 2 THEN 1 ELSE 0 END) AS high_line_count, \
               sum(CASE WHEN o_carrier_id <> 1 AND o_carrier_id <> 2 THEN 1 ELSE 0 END) AS low_line_count \
               FROM orders, order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
               AND o_entry_d <= ol_delivery_d GROUP BY o_ol_cnt ORDER BY o_ol_cnt",
    },
    Question {
        id: "ch13",
        text: "SELECT c_count, count(*) AS custdist FROM (SELECT c_id, count(o_id) FROM customer LEFT OUTER JOIN orders \
               ON (c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id AND o_carrier_id > 8) GROUP BY c_id) \
               AS c_orders (c_id, c_count) GROUP BY c_count ORDER BY custdist DESC, c_count DESC",
    },
    Question {
        id: "ch14",
        text: "SELECT 100.00 * sum(CASE WHEN i_data LIKE 'a%' THEN ol_amount ELSE 0 END) / (1 + sum(ol_amount)) \
               AS promo_revenue FROM order_line, item WHERE ol_i_id = i_id",
    },
    Question {
        id: "ch18",
        text: "SELECT c_last, c_id, o_id, o_entry_d, o_ol_cnt, sum(ol_amount) FROM customer, orders, order_line \
               WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id \
               AND ol_o_id = o_id GROUP BY o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt \
               HAVING sum(ol_amount) > 200 ORDER BY sum(ol_amount) DESC, o_entry_d, o_w_id, o_d_id, o_id LIMIT 100",
    },
    Question {
        id: "ch19",
        text: "SELECT sum(ol_amount) AS revenue FROM order_line, item WHERE (ol_i_id = i_id AND i_data LIKE '%a' \
               AND ol_quantity BETWEEN 1 AND 10 AND i_price BETWEEN 1 AND 400 AND ol_w_id IN (1, 2, 3)) \
               OR (ol_i_id = i_id AND i_data LIKE '%b' AND ol_quantity BETWEEN 1 AND 10 \
               AND i_price BETWEEN 1 AND 400 AND ol_w_id IN (1, 2, 4)) \
               OR (ol_i_id = i_id AND i_data LIKE '%c' AND ol_quantity BETWEEN 1 AND 10 \
               AND i_price BETWEEN 1 AND 400 AND ol_w_id IN (1, 5, 3))",
    },
];
