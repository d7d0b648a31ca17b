//! What programmers write, and what becomes one command.

use crate::{fuses, fuses_partly};

const DEBIT: &str = "debit(k bigint, x bigint)";

#[test]
fn balance_check_before_debit() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN
                 RAISE EXCEPTION 'account % has % and needs %', k, v, x USING HINT = 'Deposit ' || (x - v);
             END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn debit_computed_from_the_variable() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = v - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn negated_condition() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF NOT (v >= x) THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn missing_row_seen_as_null() {
    fuses(
        DEBIT,
        "DECLARE v text;
         BEGIN
             SELECT status INTO v FROM account WHERE id = k;
             IF v IS NULL THEN RAISE EXCEPTION 'no account %', k USING ERRCODE = 'P0002'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn missing_row_seen_by_found() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF NOT FOUND THEN RAISE EXCEPTION 'no account %', k; END IF;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = v - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn perform_and_found() {
    fuses(
        DEBIT,
        "BEGIN
             PERFORM 1 FROM account WHERE id = k AND status = 'open';
             IF NOT FOUND THEN RAISE EXCEPTION 'account % is not open', k; END IF;
             UPDATE account SET balance = balance + x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn exists_in_the_condition() {
    fuses(
        DEBIT,
        "BEGIN
             IF NOT EXISTS (SELECT 1 FROM account WHERE id = k) THEN RAISE no_data_found; END IF;
             UPDATE account SET balance = balance + x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn value_of_a_subquery_in_the_condition() {
    fuses(
        DEBIT,
        "BEGIN
             IF (SELECT balance FROM account WHERE id = k) < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn chain_of_elsif() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v IS NULL THEN RAISE EXCEPTION 'no balance';
             ELSIF v < 0 THEN RAISE EXCEPTION 'overdrawn by %', -v;
             ELSIF v < x THEN RAISE EXCEPTION 'too little';
             END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn two_checks_one_after_the_other() {
    fuses(
        DEBIT,
        "DECLARE v bigint; c bigint;
         BEGIN
             SELECT balance, ceiling INTO v, c FROM account WHERE id = k;
             IF v + x > c THEN RAISE EXCEPTION 'more than %', c USING ERRCODE = 'check_violation'; END IF;
             IF v + x < 0 THEN RAISE EXCEPTION USING MESSAGE = 'negative', DETAIL = 'by ' || x; END IF;
             UPDATE account SET balance = balance + x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn whole_row_in_a_record() {
    fuses(
        DEBIT,
        "DECLARE r record;
         BEGIN
             SELECT * INTO r FROM account WHERE id = k;
             IF r.status <> 'open' OR r.balance < x THEN RAISE EXCEPTION 'account % is %', k, r.status; END IF;
             UPDATE account SET balance = r.balance - x, status = 'used' WHERE id = k;
         END",
        1,
    );
}

#[test]
fn new_value_in_a_variable_of_its_own() {
    fuses(
        DEBIT,
        "DECLARE v bigint; new_balance bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             new_balance := v - x;
             IF new_balance < 0 THEN RAISE EXCEPTION 'it would be %', new_balance; END IF;
             UPDATE account SET balance = new_balance WHERE id = k;
         END",
        1,
    );
}

#[test]
fn update_in_the_branch_and_raise_in_the_other() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v >= x THEN
                 UPDATE account SET balance = balance - x WHERE id = k;
             ELSE
                 RAISE EXCEPTION 'too little';
             END IF;
         END",
        1,
    );
}

#[test]
fn update_only_where_the_condition_is_true() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v >= x THEN UPDATE account SET balance = balance - x WHERE id = k; END IF;
         END",
        1,
    );
}

#[test]
fn different_updates_in_the_branches() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             CASE WHEN v >= x THEN UPDATE account SET balance = balance - x WHERE id = k;
                  WHEN v IS NULL THEN UPDATE account SET status = 'empty' WHERE id = k;
                  ELSE UPDATE account SET status = 'blocked', ceiling = x WHERE id = k;
             END CASE;
         END",
        1,
    );
}

#[test]
fn quiet_return_before_the_update() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RETURN; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn check_before_delete() {
    fuses(
        "close(k bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v <> 0 THEN RAISE EXCEPTION '% still has %', k, v; END IF;
             DELETE FROM account WHERE id = k;
         END",
        1,
    );
}

#[test]
fn limit_from_a_constant() {
    fuses(
        "take(i bigint, n bigint)",
        "DECLARE
             most CONSTANT integer := 40;
             q integer;
         BEGIN
             SELECT quantity INTO q FROM stock WHERE item = i AND depot = 'east';
             IF q - n < 0 OR n > most THEN RAISE check_violation USING MESSAGE = 'not ' || n; END IF;
             UPDATE stock SET quantity = quantity - n WHERE item = i AND depot = 'east';
         END",
        1,
    );
}

#[test]
fn counter_counted_on_through_a_variable() {
    fuses(
        "count_on(k bigint)",
        "DECLARE n bigint;
         BEGIN
             SELECT coalesce(balance, 0) + 1 INTO n FROM account WHERE id = k;
             UPDATE account SET balance = n WHERE id = k;
         END",
        1,
    );
}

#[test]
fn strict_raises_at_its_place() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO STRICT v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn assert_instead_of_raise() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             ASSERT v >= x, 'too little';
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn division_by_zero_in_the_condition_comes_at_its_place() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF 1000 / v > x THEN RAISE EXCEPTION 'ratio'; END IF;
             UPDATE account SET balance = balance / x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn transfer_with_a_check_of_the_sender() {
    fuses(
        "transfer(sender bigint, receiver bigint, x bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = sender;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = sender;
             UPDATE account SET balance = balance + x WHERE id = receiver;
             IF NOT FOUND THEN RAISE EXCEPTION 'no receiver'; END IF;
         END",
        1,
    );
}

#[test]
fn found_of_the_update_is_guarded() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
             IF NOT FOUND THEN INSERT INTO log VALUES ('no account'); END IF;
         END",
        1,
    );
}

#[test]
fn check_after_the_update() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             UPDATE account SET balance = balance - x WHERE id = k;
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < 0 THEN RAISE EXCEPTION 'it is % now', v; END IF;
         END",
        1,
    );
}

#[test]
fn fee_that_others_use_is_computed_twice() {
    fuses(
        "pay(k bigint, x bigint, till bigint)",
        "DECLARE v bigint; fee bigint; total bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             fee := x / 10 + 1;
             total := x + fee;
             IF v < total THEN RAISE EXCEPTION '% does not cover %', v, total; END IF;
             UPDATE account SET balance = balance - total WHERE id = k;
             UPDATE account SET balance = balance + fee WHERE id = till;
         END",
        1,
    );
}

#[test]
fn amount_that_changes_in_between_is_computed_in_order() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             x := x + 1;
             UPDATE account SET balance = balance - x WHERE id = k;
             INSERT INTO log VALUES ('took ' || x);
         END",
        1,
    );
}

#[test]
fn every_turn_of_a_loop_is_one_command() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             FOR i IN 1..3 LOOP
                 SELECT balance INTO v FROM account WHERE id = i;
                 IF v < x THEN RAISE EXCEPTION 'too little in %', i; END IF;
                 UPDATE account SET balance = balance - x WHERE id = i;
             END LOOP;
         END",
        1,
    );
}

#[test]
fn row_that_the_transaction_has_written_before() {
    fuses(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             UPDATE account SET balance = 50, status = 'seen' WHERE id = k AND status = 'open';
             INSERT INTO log VALUES ('x');
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
    );
}

#[test]
fn limit_read_from_another_row_is_a_read_and_a_constant_of_the_command() {
    fuses_partly(
        "take(k bigint, rules bigint, x bigint)",
        "DECLARE v bigint; least bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             SELECT ceiling INTO least FROM account WHERE id = rules;
             IF v - x < least THEN RAISE EXCEPTION 'less than %', least; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        1,
        1,
    );
}

#[test]
fn transfer_that_reads_both_rows_first() {
    fuses_partly(
        "transfer(sender bigint, receiver bigint, x bigint)",
        "DECLARE a bigint; b bigint;
         BEGIN
             SELECT balance INTO a FROM account WHERE id = sender;
             SELECT balance INTO b FROM account WHERE id = receiver;
             IF a < x THEN RAISE EXCEPTION 'too little'; END IF;
             IF b + x > 1000 THEN RAISE EXCEPTION 'too much'; END IF;
             UPDATE account SET balance = balance - x WHERE id = sender;
             UPDATE account SET balance = balance + x WHERE id = receiver;
         END",
        1,
        1,
    );
}
