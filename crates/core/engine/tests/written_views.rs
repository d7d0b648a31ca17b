//! What is written through views: under every protocol that executes after ordering, and for any number of threads, random
//! transactions end as in a serial run. What views with CHECK OPTION refuse is not there, and INSTEAD OF triggers keep two tables in step.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use sql::{Library, prepare};
use state::PlainState;
use std::sync::Arc;
use support::histories::{PROTOCOLS, after, library, numbered, run_random_histories_on_threads};
use support::script;
use types::{Payload, Value};

const HISTORIES: u64 = 60;

/// Items, whose kinds are looked up, and orders in two tables that a view shows as one.
const SCHEMA: [&str; 12] = [
    "CREATE TABLE kind (k int PRIMARY KEY)",
    "CREATE TABLE item (id int PRIMARY KEY, n int, k int)",
    "CREATE VIEW small AS SELECT id, n, k FROM item WHERE n < 4 WITH CHECK OPTION",
    "CREATE VIEW known AS SELECT id, n, k FROM small WHERE EXISTS (SELECT 1 FROM kind WHERE kind.k = small.k) WITH LOCAL CHECK OPTION",
    "CREATE TABLE head (id int PRIMARY KEY, lines int)",
    "CREATE TABLE line (head int, place int, amount int, PRIMARY KEY (head, place))",
    "CREATE VIEW sale AS SELECT h.id, l.place, l.amount, h.lines FROM head h JOIN line l ON l.head = h.id",
    "CREATE FUNCTION sell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM line WHERE head = OLD.id AND place = OLD.place;
            IF NOT FOUND THEN RETURN NULL; END IF;
            UPDATE head SET lines = lines - 1 WHERE id = OLD.id;
        END IF;
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        INSERT INTO head VALUES (NEW.id, 1) ON CONFLICT (id) DO UPDATE SET lines = head.lines + 1;
        INSERT INTO line VALUES (NEW.id, NEW.place, NEW.amount);
        RETURN NEW;
    END $$",
    "CREATE TRIGGER sell INSTEAD OF INSERT OR UPDATE OR DELETE ON sale FOR EACH ROW EXECUTE FUNCTION sell()",
    "CREATE VIEW large AS SELECT id, place, amount FROM sale WHERE amount > 1 WITH CHECK OPTION",
    "CREATE FUNCTION restock(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        UPDATE known SET n = n + a WHERE id = b;
        RETURN 1;
    EXCEPTION WHEN with_check_option_violation THEN
        UPDATE item SET n = 0 WHERE id = b;
        RETURN 0;
    END $$",
    "CREATE PROCEDURE discount(a int, b int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE large SET amount = amount - 1 WHERE id = a;
        DELETE FROM sale WHERE place = b AND amount < 3;
    END $$",
];

/// One statement with small numbers in the place of `#`.
fn statement(random: &mut StdRng) -> String {
    let templates = [
        "INSERT INTO small VALUES (#, #, #)",
        "INSERT INTO known VALUES (#, #, #)",
        "INSERT INTO known VALUES (#, #, #) ON CONFLICT (id) DO UPDATE SET n = known.n + excluded.n",
        "INSERT INTO known VALUES (#, #, #) ON CONFLICT DO NOTHING",
        "UPDATE small SET n = n + 1 WHERE id = #",
        "UPDATE small SET n = n - 1",
        "UPDATE known SET k = # WHERE n < # RETURNING id, k",
        "UPDATE known SET id = id + # WHERE id = #",
        "DELETE FROM known WHERE id = #",
        "INSERT INTO kind VALUES (#) ON CONFLICT DO NOTHING",
        "DELETE FROM kind WHERE k = #",
        "SELECT restock(#, #)",
        "INSERT INTO sale (id, place, amount) VALUES (#, #, #)",
        "INSERT INTO sale (id, place, amount) VALUES (#, #, #), (#, #, #)",
        "INSERT INTO large VALUES (#, #, #) RETURNING *",
        "UPDATE sale SET amount = amount + # WHERE place = #",
        "UPDATE sale SET place = place + 1 WHERE id = # RETURNING lines",
        "UPDATE large SET amount = #, id = # WHERE id = # AND place = #",
        "DELETE FROM sale WHERE id = # AND amount > #",
        "DELETE FROM large WHERE place = #",
        "CALL discount(#, #)",
        "SELECT sum(amount) FROM sale WHERE id = #",
    ];
    let template = templates.choose(random).expect("there are some");
    numbered(template, random, 1..=4)
}

fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let count = [1, 1, 2, 2].choose(random).expect("four");
    let statements: Vec<String> = (0..*count).map(|_| statement(random)).collect();
    Arc::new(script(&statements.join("; ")))
}

fn initial(random: &mut StdRng, library: &Arc<Library>) -> PlainState {
    let kinds = Arc::new(script("INSERT INTO kind VALUES (1), (2)"));
    after(library, std::iter::once(kinds).chain((0..9).map(|_| transaction(random))))
}

/// Every head has as many lines as it says, and no item is one that the views refuse.
fn check_rows(library: &Arc<Library>, state: &PlainState) {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM head WHERE lines <> (SELECT count(*) FROM line WHERE head = head.id))
        AND NOT EXISTS (SELECT 1 FROM item WHERE n >= 4)";
    let prepared = prepare(library, sql, &[]).expect("it binds");
    let results = prepared.query(state, &[], 100_000, 0).expect("it runs");
    assert_eq!(results[0].rows, [[Value::Boolean(true)]]);
}

#[test]
fn random_changes_of_views_end_as_in_a_serial_run_for_any_number_of_threads() {
    let library = library(&SCHEMA);
    let begin = |random: &mut StdRng| initial(random, &library);
    let check = |state: &PlainState| check_rows(&library, state);
    let counts = run_random_histories_on_threads(&library, (HISTORIES, &[1, 4]), begin, transaction, check);
    eprintln!("{PROTOCOLS:?}: {counts:?} committed");
    for committed in counts {
        assert!(committed > 600, "{committed} committed");
    }
}
