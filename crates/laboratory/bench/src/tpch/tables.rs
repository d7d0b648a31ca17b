//! The eight tables of TPC-H: their types and keys, and PostgreSQL's indexes beside the keys.

use super::rows;
use crate::side_by_side::Table;

/// All of them, what others refer to first.
pub(super) fn tables(scale: f64) -> Vec<Table> {
    vec![
        Table {
            name: "region",
            definition: "CREATE TABLE region (r_regionkey bigint PRIMARY KEY, r_name char(25) NOT NULL, \
                         r_comment varchar(152) NOT NULL)",
            postgres_indexes: &[],
            rows: Box::new(|| Box::new(rows::regions())),
        },
        Table {
            name: "nation",
            definition: "CREATE TABLE nation (n_nationkey bigint PRIMARY KEY, n_name char(25) NOT NULL, \
                         n_regionkey bigint NOT NULL, n_comment varchar(152) NOT NULL)",
            postgres_indexes: &[],
            rows: Box::new(|| Box::new(rows::nations())),
        },
        Table {
            name: "part",
            definition: "CREATE TABLE part (p_partkey bigint PRIMARY KEY, p_name varchar(55) NOT NULL, \
                         p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, \
                         p_size integer NOT NULL, p_container char(10) NOT NULL, \
                         p_retailprice numeric(15,2) NOT NULL, p_comment varchar(23) NOT NULL)",
            postgres_indexes: &[],
            rows: Box::new(move || Box::new(rows::parts(scale))),
        },
        Table {
            name: "supplier",
            definition: "CREATE TABLE supplier (s_suppkey bigint PRIMARY KEY, s_name char(25) NOT NULL, \
                         s_address varchar(40) NOT NULL, s_nationkey bigint NOT NULL, s_phone char(15) NOT NULL, \
                         s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL)",
            postgres_indexes: &[],
            rows: Box::new(move || Box::new(rows::suppliers(scale))),
        },
        Table {
            name: "partsupp",
            definition: "CREATE TABLE partsupp (ps_partkey bigint NOT NULL, ps_suppkey bigint NOT NULL, \
                         ps_availqty integer NOT NULL, ps_supplycost numeric(15,2) NOT NULL, \
                         ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey))",
            postgres_indexes: &["CREATE INDEX ON partsupp (ps_suppkey)"],
            rows: Box::new(move || Box::new(rows::parts_of_suppliers(scale))),
        },
        Table {
            name: "customer",
            definition: "CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_name varchar(25) NOT NULL, \
                         c_address varchar(40) NOT NULL, c_nationkey bigint NOT NULL, c_phone char(15) NOT NULL, \
                         c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, \
                         c_comment varchar(117) NOT NULL)",
            postgres_indexes: &[],
            rows: Box::new(move || Box::new(rows::customers(scale))),
        },
        Table {
            name: "orders",
            definition: "CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, \
                         o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, \
                         o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, \
                         o_shippriority integer NOT NULL, o_comment varchar(79) NOT NULL)",
            postgres_indexes: &["CREATE INDEX ON orders (o_custkey)"],
            rows: Box::new(move || Box::new(rows::orders(scale))),
        },
        Table { postgres_indexes: &["CREATE INDEX ON lineitem (l_partkey, l_suppkey)"], ..line_items(scale) },
    ]
}

/// `lineitem` alone, with no index but its key.
pub(crate) fn line_items(scale: f64) -> Table {
    Table {
        name: "lineitem",
        definition: "CREATE TABLE lineitem (l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, \
                     l_suppkey bigint NOT NULL, l_linenumber integer NOT NULL, l_quantity numeric(15,2) NOT NULL, \
                     l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, \
                     l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, \
                     l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
                     l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, \
                     l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber))",
        postgres_indexes: &[],
        rows: Box::new(move || Box::new(rows::line_items(scale))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Value, format_value};

    fn line(row: &[Value]) -> String {
        let cell = |value| format_value(value).unwrap_or_default().trim_end_matches(' ').to_string();
        row.iter().map(cell).collect::<Vec<_>>().join("|")
    }

    /// What dbgen of the specification writes at scale 1, and how many rows it writes at scale 0.01.
    const KNOWN: [(&str, usize, &str); 8] = [
        (
            "region",
            5,
            "0|AFRICA|lar deposits. blithely final packages cajole. regular waters are final requests. \
             regular accounts are according to",
        ),
        ("nation", 25, "0|ALGERIA|0| haggle. carefully final deposits detect slyly agai"),
        (
            "part",
            2_000,
            "1|goldenrod lavender spring chocolate lace|Manufacturer#1|Brand#13|PROMO BURNISHED COPPER|7|JUMBO PKG|\
             901.00|ly. slyly ironi",
        ),
        (
            "supplier",
            100,
            "1|Supplier#000000001| N kD4on9OM Ipw3,gf0JBoQDd7tgrzrddZ|17|27-918-335-1736|5755.94|\
             each slyly above the careful",
        ),
        (
            "partsupp",
            8_000,
            "1|2|3325|771.64|, even theodolites. regular, final theodolites eat after the carefully pending foxes. \
             furiously regular deposits sleep slyly. carefully bold realms above the ironic dependencies haggle \
             careful",
        ),
        (
            "customer",
            1_500,
            "1|Customer#000000001|IVhzIApeRb ot,c,E|15|25-989-741-2988|711.56|BUILDING|\
             to the even, regular platelets. regular, ironic epitaphs nag e",
        ),
        (
            "orders",
            15_000,
            "1|36901|O|173665.47|1996-01-02|5-LOW|Clerk#000000951|0|nstructions sleep furiously among",
        ),
        (
            "lineitem",
            60_175,
            "1|155190|7706|1|17.00|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|\
             DELIVER IN PERSON|TRUCK|egular courts above the",
        ),
    ];

    #[test]
    fn first_rows_are_those_of_dbgen() {
        let found: Vec<(&str, String)> = tables(1.0)
            .iter()
            .map(|table| (table.name, (table.rows)().next().map(|row| line(&row)).unwrap_or_default()))
            .collect();
        assert_eq!(found, KNOWN.map(|(name, _, first)| (name, first.to_string())));
    }

    #[test]
    fn there_are_as_many_rows_as_dbgen_writes() {
        let found: Vec<(&str, usize)> =
            tables(0.01).iter().map(|table| (table.name, (table.rows)().count())).collect();
        assert_eq!(found, KNOWN.map(|(name, rows, _)| (name, rows)));
    }

    #[test]
    fn line_items_at_a_small_scale_are_those_of_dbgen() {
        let rows: Vec<Vec<Value>> = (line_items(0.001).rows)().collect();
        assert_eq!(rows.len(), 6_005);
        let (numbers, texts) = ("1|156|4|1|17.00|17954.55|0.04|0.02|N|O", "egular courts above the");
        let dates = "1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON|TRUCK";
        assert_eq!(line(&rows[0]), format!("{numbers}|{dates}|{texts}"));
        let padded = |column: usize| format_value(&rows[0][column]).unwrap_or_default();
        assert_eq!(padded(13), "DELIVER IN PERSON        ");
        assert_eq!(padded(14), "TRUCK     ");
    }
}
