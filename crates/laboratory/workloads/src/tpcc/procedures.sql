-- 2.4: an order of 5 to 15 lines. Items, supplying warehouses and quantities come as lists with commas.
CREATE PROCEDURE tpcc_new_order(
    warehouse_id integer, district_id integer, customer_id integer, line_count integer,
    items text, suppliers text, quantities text,
    OUT order_id integer, OUT total numeric
) LANGUAGE plpgsql AS $$
DECLARE
    warehouse_tax  numeric;
    district_tax   numeric;
    discount       numeric;
    last_name      text;
    credit         text;
    item_number    integer;
    supplier       integer;
    quantity       integer;
    price          numeric;
    amount         numeric(6, 2);
    dist_info      text;
    remote         integer;
    all_local      integer := 1;
BEGIN
    SELECT w_tax INTO warehouse_tax FROM warehouse WHERE w_id = warehouse_id;
    SELECT c_discount, c_last, c_credit INTO discount, last_name, credit FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
    SELECT d_tax INTO district_tax FROM district WHERE d_w_id = warehouse_id AND d_id = district_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = warehouse_id AND d_id = district_id
        RETURNING d_next_o_id - 1 INTO order_id;
    FOR line IN 1..line_count LOOP
        IF split_part(suppliers, ',', line)::integer <> warehouse_id THEN
            all_local := 0;
        END IF;
    END LOOP;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (warehouse_id, district_id, order_id, customer_id, now(), NULL, line_count, all_local);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (warehouse_id, district_id, order_id);
    total := 0;
    FOR line IN 1..line_count LOOP
        item_number := split_part(items, ',', line)::integer;
        supplier := split_part(suppliers, ',', line)::integer;
        quantity := split_part(quantities, ',', line)::integer;
        SELECT i_price INTO price FROM item WHERE i_id = item_number;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'Item number is not valid' USING ERRCODE = 'P0002';
        END IF;
        SELECT CASE district_id
                WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
            INTO dist_info FROM stock WHERE s_w_id = supplier AND s_i_id = item_number;
        remote := CASE WHEN supplier = warehouse_id THEN 0 ELSE 1 END;
        UPDATE stock SET
                s_quantity = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity ELSE s_quantity - quantity + 91 END,
                s_ytd = s_ytd + quantity,
                s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + remote
            WHERE s_w_id = supplier AND s_i_id = item_number;
        amount := quantity * price;
        total := total + amount;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
            VALUES (warehouse_id, district_id, order_id, line, item_number, supplier, NULL, quantity, amount, dist_info);
    END LOOP;
    total := total * (1 - discount) * (1 + warehouse_tax + district_tax);
END
$$;

-- 2.5: a customer pays, known by number, or by last name where the number is 0.
CREATE PROCEDURE tpcc_payment(
    warehouse_id integer, district_id integer, customer_warehouse integer, customer_district integer,
    customer_id integer, last_name text, cents integer,
    OUT paid_by integer, OUT balance numeric
) LANGUAGE plpgsql AS $$
DECLARE
    amount         numeric(6, 2) := cents / 100.0;
    warehouse_name text;
    district_name  text;
    same_name      integer;
BEGIN
    SELECT w_name INTO warehouse_name FROM warehouse WHERE w_id = warehouse_id;
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = warehouse_id;
    SELECT d_name INTO district_name FROM district WHERE d_w_id = warehouse_id AND d_id = district_id;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = warehouse_id AND d_id = district_id;
    IF customer_id = 0 THEN
        SELECT count(*) INTO same_name FROM customer
            WHERE c_w_id = customer_warehouse AND c_d_id = customer_district AND c_last = last_name;
        SELECT c_id INTO paid_by FROM customer
            WHERE c_w_id = customer_warehouse AND c_d_id = customer_district AND c_last = last_name
            ORDER BY c_first OFFSET (same_name - 1) / 2 LIMIT 1;
    ELSE
        paid_by := customer_id;
    END IF;
    UPDATE customer SET
            c_balance = c_balance - amount,
            c_ytd_payment = c_ytd_payment + amount,
            c_payment_cnt = c_payment_cnt + 1,
            c_data = CASE WHEN c_credit = 'BC'
                THEN substr(paid_by || ' ' || customer_district || ' ' || customer_warehouse || ' ' || district_id || ' '
                    || warehouse_id || ' ' || amount || ' ' || c_data, 1, 500)
                ELSE c_data END
        WHERE c_w_id = customer_warehouse AND c_d_id = customer_district AND c_id = paid_by
        RETURNING c_balance INTO balance;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (paid_by, customer_district, customer_warehouse, district_id, warehouse_id, now(), amount,
            warehouse_name || '    ' || district_name);
END
$$;

-- 2.6: the last order of a customer, and how many of its lines have been delivered.
CREATE PROCEDURE tpcc_order_status(
    warehouse_id integer, district_id integer, customer_id integer, last_name text,
    OUT balance numeric, OUT order_id integer, OUT carrier integer, OUT line_count integer, OUT delivered integer
) LANGUAGE plpgsql AS $$
DECLARE
    same_name integer;
    asked_by  integer := customer_id;
BEGIN
    IF customer_id = 0 THEN
        SELECT count(*) INTO same_name FROM customer
            WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = last_name;
        SELECT c_id INTO asked_by FROM customer
            WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = last_name
            ORDER BY c_first OFFSET (same_name - 1) / 2 LIMIT 1;
    END IF;
    SELECT c_balance INTO balance FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = asked_by;
    SELECT o_id, o_carrier_id INTO order_id, carrier FROM orders
        WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_c_id = asked_by
        ORDER BY o_id DESC LIMIT 1;
    SELECT count(*), count(ol_delivery_d) INTO line_count, delivered FROM order_line
        WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id;
END
$$;

-- 2.7: delivers the oldest order of every district that has one.
CREATE PROCEDURE tpcc_delivery(warehouse_id integer, carrier integer, OUT delivered integer) LANGUAGE plpgsql AS $$
DECLARE
    order_id    integer;
    customer_id integer;
    amount      numeric;
BEGIN
    delivered := 0;
    FOR district_id IN 1..10 LOOP
        SELECT no_o_id INTO order_id FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id
            ORDER BY no_o_id LIMIT 1;
        IF FOUND THEN
            DELETE FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id AND no_o_id = order_id;
            SELECT o_c_id INTO customer_id FROM orders
                WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_id = order_id;
            UPDATE orders SET o_carrier_id = carrier
                WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_id = order_id;
            SELECT sum(ol_amount) INTO amount FROM order_line
                WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id;
            UPDATE order_line SET ol_delivery_d = now()
                WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id;
            UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
            delivered := delivered + 1;
        END IF;
    END LOOP;
END
$$;

-- 2.8: items of the last 20 orders of a district of which there are few.
CREATE PROCEDURE tpcc_stock_level(warehouse_id integer, district_id integer, threshold integer, OUT low integer) LANGUAGE plpgsql AS $$
DECLARE
    next_order integer;
BEGIN
    SELECT d_next_o_id INTO next_order FROM district WHERE d_w_id = warehouse_id AND d_id = district_id;
    SELECT count(DISTINCT s_i_id) INTO low FROM order_line
        JOIN stock ON s_w_id = warehouse_id AND s_i_id = ol_i_id
        WHERE ol_w_id = warehouse_id AND ol_d_id = district_id
            AND ol_o_id >= next_order - 20 AND ol_o_id < next_order
            AND s_quantity < threshold;
END
$$;
