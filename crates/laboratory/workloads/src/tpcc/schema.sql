CREATE TABLE warehouse (
    w_id integer PRIMARY KEY,
    w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), w_state varchar(2), w_zip varchar(9),
    w_tax numeric(4, 4) NOT NULL,
    w_ytd numeric(12, 2) NOT NULL
);
CREATE TABLE district (
    d_w_id integer, d_id integer,
    d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), d_state varchar(2), d_zip varchar(9),
    d_tax numeric(4, 4) NOT NULL,
    d_ytd numeric(12, 2) NOT NULL,
    d_next_o_id integer NOT NULL,
    PRIMARY KEY (d_w_id, d_id)
);
CREATE TABLE customer (
    c_w_id integer, c_d_id integer, c_id integer,
    c_first varchar(16) NOT NULL, c_middle varchar(2), c_last varchar(16) NOT NULL,
    c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state varchar(2), c_zip varchar(9), c_phone varchar(16),
    c_since timestamptz, c_credit varchar(2) NOT NULL, c_credit_lim numeric(12, 2), c_discount numeric(4, 4) NOT NULL,
    c_balance numeric(12, 2) NOT NULL, c_ytd_payment numeric(12, 2) NOT NULL,
    c_payment_cnt integer NOT NULL, c_delivery_cnt integer NOT NULL,
    c_data varchar(500) NOT NULL,
    PRIMARY KEY (c_w_id, c_d_id, c_id)
);
CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE TABLE history (
    h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, h_w_id integer,
    h_date timestamptz, h_amount numeric(6, 2) NOT NULL, h_data varchar(24)
);
CREATE TABLE new_order (
    no_w_id integer, no_d_id integer, no_o_id integer,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)
);
CREATE TABLE orders (
    o_w_id integer, o_d_id integer, o_id integer,
    o_c_id integer NOT NULL, o_entry_d timestamptz, o_carrier_id integer, o_ol_cnt integer NOT NULL, o_all_local integer,
    PRIMARY KEY (o_w_id, o_d_id, o_id)
);
CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);
CREATE TABLE order_line (
    ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer,
    ol_i_id integer NOT NULL, ol_supply_w_id integer, ol_delivery_d timestamptz,
    ol_quantity integer NOT NULL, ol_amount numeric(6, 2) NOT NULL, ol_dist_info varchar(24),
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)
);
CREATE TABLE item (
    i_id integer PRIMARY KEY,
    i_im_id integer, i_name varchar(24), i_price numeric(5, 2) NOT NULL, i_data varchar(50)
);
CREATE TABLE stock (
    s_w_id integer, s_i_id integer,
    s_quantity integer NOT NULL,
    s_dist_01 varchar(24), s_dist_02 varchar(24), s_dist_03 varchar(24), s_dist_04 varchar(24), s_dist_05 varchar(24),
    s_dist_06 varchar(24), s_dist_07 varchar(24), s_dist_08 varchar(24), s_dist_09 varchar(24), s_dist_10 varchar(24),
    s_ytd integer NOT NULL, s_order_cnt integer NOT NULL, s_remote_cnt integer NOT NULL,
    s_data varchar(50),
    PRIMARY KEY (s_w_id, s_i_id)
);
