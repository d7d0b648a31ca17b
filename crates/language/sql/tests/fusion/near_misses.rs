//! What looks like an idiom and must not become one command, or not that way.

use crate::{Contract, stays};

const DEBIT: &str = "debit(k bigint, x bigint)";

#[test]
fn the_value_is_returned() {
    stays(
        "debit(k bigint, x bigint, OUT v bigint)",
        "BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "v depends on the row and is used after the change or returned",
    );
}

#[test]
fn the_value_goes_into_another_row() {
    stays(
        "empty(sender bigint, receiver bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = sender;
             UPDATE account SET balance = 0 WHERE id = sender;
             UPDATE account SET balance = balance + v WHERE id = receiver;
         END",
        "v depends on the row and is used after the change or returned",
    );
}

#[test]
fn what_was_computed_from_the_value_is_used_later() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             x := least(x, v);
             UPDATE account SET balance = balance - x WHERE id = k;
             INSERT INTO log VALUES ('took ' || x);
         END",
        "x depends on the row and is used after the change or returned",
    );
}

#[test]
fn what_was_decided_by_the_value_is_used_later() {
    stays(
        DEBIT,
        "DECLARE v bigint; line text := 'rich';
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN line := 'poor'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
             INSERT INTO log VALUES (line);
         END",
        "line depends on the row and is used after the change or returned",
    );
}

#[test]
fn the_row_is_written_in_between_by_a_key_of_another_name() {
    stays(
        "debit(k bigint, same bigint, x bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             UPDATE account SET balance = 0 WHERE id = same;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "another row, or one by another key, of account is changed in between",
    );
}

#[test]
fn another_row_is_written_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             INSERT INTO log VALUES ('before the check');
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "another row, or one by another key, of log is changed in between",
    );
}

#[test]
fn the_branch_does_more_than_raise() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN INSERT INTO log VALUES ('poor'); RETURN; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "another row, or one by another key, of log is changed in between",
    );
}

#[test]
fn another_row_in_between_has_a_key_computed_from_the_value() {
    stays(
        DEBIT,
        "DECLARE v bigint; w bigint;
         BEGIN
             SELECT ceiling INTO v FROM account WHERE id = k;
             SELECT balance INTO w FROM account WHERE id = v;
             IF w < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "the read of account in between depends on what comes before it, or may fail",
    );
}

#[test]
fn another_row_is_read_only_where_the_value_says_so() {
    stays(
        "debit(k bigint, x bigint, other bigint)",
        "DECLARE v bigint; w bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN
                 SELECT balance INTO w FROM account WHERE id = other;
                 IF w < x THEN RAISE EXCEPTION 'too little'; END IF;
             END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "the read of account in between depends on what comes before it, or may fail",
    );
}

#[test]
fn found_of_the_select_is_looked_at_later() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v >= x THEN UPDATE account SET balance = balance - x WHERE id = k; END IF;
             IF NOT FOUND THEN INSERT INTO log VALUES ('nothing'); END IF;
         END",
        "FOUND or ROW_COUNT is looked at afterwards",
    );
}

#[test]
fn found_of_an_earlier_statement_is_looked_at_in_between() {
    stays(
        DEBIT,
        "BEGIN
             UPDATE account SET status = 'x' WHERE id = x;
             IF (SELECT balance FROM account WHERE id = k) < x AND FOUND THEN RAISE EXCEPTION 'both'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "FOUND of an earlier statement is looked at between read and change",
    );
}

#[test]
fn the_update_has_another_key() {
    stays(
        "debit(k bigint, other bigint, x bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = other;
         END",
        "nothing after it changes the same row by the same key",
    );
}

#[test]
fn the_key_changes_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             k := 2;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "k, a part of the key, is assigned in between",
    );
}

#[test]
fn only_a_part_of_the_key_is_given() {
    stays(
        "take(i bigint, n bigint)",
        "DECLARE q integer;
         BEGIN
             SELECT quantity INTO q FROM stock WHERE item = i;
             IF q < n THEN RAISE EXCEPTION 'too few'; END IF;
             UPDATE stock SET quantity = quantity - 1 WHERE item = i;
         END",
        "it does not give the whole primary key",
    );
}

#[test]
fn rows_are_counted() {
    stays(
        DEBIT,
        "DECLARE n bigint;
         BEGIN
             SELECT count(*) INTO n FROM account WHERE id = k;
             IF n = 0 THEN RAISE EXCEPTION 'no account'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "it groups, sorts or limits; only a plain SELECT of one row is fused",
    );
}

#[test]
fn a_loop_runs_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             WHILE v > 10 LOOP v := v - 10; END LOOP;
             IF v = 5 THEN RAISE EXCEPTION 'five'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "there is a loop in between",
    );
}

#[test]
fn the_loop_is_left_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             FOR i IN 1..3 LOOP
                 SELECT balance INTO v FROM account WHERE id = k;
                 EXIT WHEN v < x;
                 UPDATE account SET balance = balance - x WHERE id = k;
             END LOOP;
         END",
        "the block, loop or procedure may be left in between",
    );
}

#[test]
fn a_return_in_between_skips_more_than_the_update() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RETURN; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
             INSERT INTO log VALUES ('done');
         END",
        "the block, loop or procedure may be left in between",
    );
}

#[test]
fn a_procedure_is_called_in_between() {
    let mut contract = Contract::new("note()", "BEGIN INSERT INTO log VALUES ('note'); END");
    contract
        .fused
        .run(
            "CREATE PROCEDURE debit(k bigint, x bigint) LANGUAGE plpgsql AS $$
             DECLARE v bigint;
             BEGIN
                 SELECT balance INTO v FROM account WHERE id = k;
                 CALL note();
                 IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
                 UPDATE account SET balance = balance - x WHERE id = k;
             END $$",
        )
        .expect("it compiles");
    let lines = contract.fused.rows("EXPLAIN CALL debit(1, 2)").concat();
    assert!(
        lines.contains(&"  not avoided: a procedure or function is called in between".to_string()),
        "{lines:?}"
    );
    assert!(lines.contains(&"Call: note, explained by EXPLAIN CALL note(…)".to_string()), "{lines:?}");
}

#[test]
fn constraints_are_set_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             SET CONSTRAINTS ALL IMMEDIATE;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "constraints are set in between",
    );
}

#[test]
fn returning_shows_the_row() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k RETURNING balance INTO v;
         END",
        "the change shows the row by RETURNING",
    );
}

#[test]
fn row_count_is_asked_in_between() {
    stays(
        DEBIT,
        "DECLARE v bigint; n bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             GET DIAGNOSTICS n = ROW_COUNT;
             IF n = 0 THEN RAISE EXCEPTION 'no account'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "ROW_COUNT is asked in between",
    );
}

#[test]
fn the_row_is_inserted_where_it_is_missing() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF NOT FOUND THEN
                 INSERT INTO account VALUES (k, x);
             ELSE
                 UPDATE account SET balance = v + x WHERE id = k;
             END IF;
         END",
        "another row, or one by another key, of account is changed in between",
    );
}

#[test]
fn the_row_is_updated_in_one_case_and_deleted_in_another() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v = x THEN
                 DELETE FROM account WHERE id = k;
             ELSE
                 UPDATE account SET balance = balance - x WHERE id = k;
             END IF;
         END",
        "the row is updated in one case and deleted in another",
    );
}

#[test]
fn the_update_is_also_reached_without_the_read() {
    stays(
        DEBIT,
        "DECLARE v bigint := 5;
         BEGIN
             IF x > 0 THEN SELECT balance INTO v FROM account WHERE id = k; END IF;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k;
         END",
        "the change can be reached without the read",
    );
}

#[test]
fn the_row_is_only_read() {
    stays(
        DEBIT,
        "DECLARE v text;
         BEGIN
             SELECT status INTO v FROM account WHERE id = k;
             IF v <> 'open' THEN RAISE EXCEPTION 'closed'; END IF;
             INSERT INTO log VALUES ('open');
         END",
        "nothing after it changes the same row by the same key",
    );
}

#[test]
fn a_loop_over_rows_reads_them() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             FOR v IN SELECT balance FROM account WHERE id = k LOOP
                 IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
                 UPDATE account SET balance = balance - x WHERE id = k;
             END LOOP;
         END",
        "a FOR loop goes through its rows",
    );
}

/// A handler would make an error at the command's place another execution.
#[test]
fn a_handler_encloses_it() {
    stays(
        DEBIT,
        "DECLARE v bigint;
         BEGIN
             BEGIN
                 SELECT balance INTO v FROM account WHERE id = k;
                 IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
                 UPDATE account SET balance = balance - x WHERE id = k;
             EXCEPTION WHEN others THEN INSERT INTO log VALUES ('failed');
             END;
         END",
        "an EXCEPTION block encloses it or stands in between",
    );
}
