//! The queries, in words that all systems read.

/// A query.
pub(super) struct Query {
    /// As records name it.
    pub(super) id: &'static str,
    pub(super) sql: &'static str,
    /// The largest table that it reads.
    pub(super) largest: &'static str,
}

/// All of them.
pub(super) const QUERIES: [Query; 7] = [
    Query { id: "count_sum", sql: "SELECT count(*), sum(n) FROM t", largest: "t" },
    Query {
        id: "filter",
        sql: "SELECT count(*), sum(n) FROM t WHERE n < 500000000 AND i > 100",
        largest: "t",
    },
    Query { id: "group_int", sql: "SELECT i, count(*), sum(n) FROM t GROUP BY i ORDER BY i", largest: "t" },
    Query { id: "group_text", sql: "SELECT s, count(*), sum(d) FROM t GROUP BY s ORDER BY s", largest: "t" },
    Query { id: "join", sql: "SELECT count(*), sum(t.n + u.v) FROM u JOIN t ON t.id = u.t_id", largest: "u" },
    Query {
        id: "q1",
        sql: "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, \
              sum(l_extendedprice) AS sum_base_price, \
              sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, \
              sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, \
              avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, \
              count(*) AS count_order FROM lineitem \
              WHERE l_shipdate <= date '1998-12-01' - interval '90' day \
              GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
        largest: "lineitem",
    },
    Query {
        id: "q6",
        sql: "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem \
              WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year \
              AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
        largest: "lineitem",
    },
];
