//! What UPDATE and DELETE become, and which rows they can touch.

mod samples;

use portable::{Access, Action, Comparison, Expression, Operator, Term};
use samples::{
    ACTIVE, AMOUNT, BALANCE, BORN, CODE, ID, NAME, NOW, RATE, SEEN, SMALL, WHOLE, boolean, condition,
    constant, number, numeric, of_column, set, statement, statement_with,
};
use types::{DataType, Key, Value};

fn arithmetic(operator: Operator, left: Expression, right: Expression, data_type: DataType) -> Expression {
    Expression { term: Term::Arithmetic(operator, Box::new(left), Box::new(right)), data_type }
}

fn compared(comparison: Comparison, left: Expression, right: Expression) -> Expression {
    boolean(Term::Compared(comparison, Box::new(left), Box::new(right)))
}

fn integer(value: i32) -> Expression {
    constant(Value::Integer(value), DataType::Integer)
}

fn bigint(value: i64) -> Expression {
    constant(Value::BigInt(value), DataType::BigInt)
}

fn keys(keys: &[i32]) -> Access {
    Access::Keys(keys.iter().map(|key| Key::encode([&Value::Integer(*key)]).expect("a key")).collect())
}

#[test]
fn a_transfer_is_two_updates_by_key() {
    let sql = "UPDATE account SET balance = balance - $1 WHERE id = $2";
    let update = statement_with(sql, &[Value::Integer(5), Value::BigInt(1)]);
    let balance = arithmetic(Operator::Subtract, of_column(BALANCE), bigint(5), DataType::BigInt);
    let condition = compared(Comparison::Equal, of_column(ID), integer(1));
    assert_eq!(update.action, Action::Update { set: vec![(BALANCE, balance)], condition: Some(condition) });
    assert_eq!(update.access, keys(&[1]));
}

#[test]
fn arithmetic_has_the_types_of_postgresql() {
    let value = |sql: &str| set(&format!("UPDATE account SET {sql} WHERE id = 1")).remove(0).1;
    let whole = arithmetic(Operator::Multiply, of_column(WHOLE), integer(2), DataType::Integer);
    assert_eq!(value("whole = whole * 2"), whole);
    let small = constant(Value::SmallInt(1), DataType::SmallInt);
    let small = arithmetic(Operator::Add, of_column(SMALL), small, DataType::SmallInt);
    assert_eq!(value("small = small + 1::smallint"), small);
    let wide = Expression { data_type: DataType::BigInt, ..of_column(WHOLE) };
    let wide = arithmetic(Operator::Add, wide, bigint(1), DataType::BigInt);
    assert_eq!(value("balance = CAST(whole AS bigint) + 1"), wide);
    assert_eq!(value("amount = whole::bigint + 1"), wide, "bigint into numeric");
    let mixed = arithmetic(Operator::Add, of_column(BALANCE), of_column(SMALL), DataType::BigInt);
    let mixed = arithmetic(Operator::Subtract, bigint(3), mixed, DataType::BigInt);
    assert_eq!(value("balance = 3 - (balance + small)"), mixed);
    let rate = constant(number("1.10"), numeric(3, 2));
    let product = arithmetic(Operator::Multiply, of_column(AMOUNT), rate, numeric(13, 4));
    assert_eq!(value("amount = amount * 1.10"), product);
    let sum =
        arithmetic(Operator::Add, of_column(AMOUNT), constant(number("5"), numeric(1, 0)), numeric(11, 2));
    assert_eq!(value("amount = amount + 5"), sum);
    let with_integer = arithmetic(Operator::Subtract, of_column(WHOLE), of_column(AMOUNT), numeric(13, 2));
    assert_eq!(value("amount = whole - amount"), with_integer);
    let large = constant(number("9223372036854775808"), numeric(19, 0));
    let large = arithmetic(Operator::Add, of_column(BALANCE), large, numeric(20, 0));
    assert_eq!(value("amount = balance + 9223372036854775808"), large);
    assert_eq!(
        value("rate = rate + amount").data_type,
        numeric(61, 20),
        "as many digits before the point as either, and one more"
    );
}

#[test]
fn values_take_the_types_of_their_columns() {
    let value = |sql: &str| set(&format!("UPDATE account SET {sql}")).remove(0).1;
    assert_eq!(value("code = 'ab'"), constant(Value::text("ab"), DataType::Text(Some(4))));
    assert_eq!(value("born = '2020-02-29'"), constant(Value::Date(7_364), DataType::Date));
    assert_eq!(value("amount = 2"), constant(number("2.00"), numeric(10, 2)));
    assert_eq!(value("seen = now()"), constant(Value::TimestampTz(NOW), DataType::TimestampTz));
    assert_eq!(value("name = NULL"), constant(Value::Null, DataType::Text(Some(100))));
    assert_eq!(value("name = DEFAULT"), constant(Value::Null, DataType::Text(Some(100))));
    assert_eq!(value("name = code"), of_column(CODE));
    assert_eq!(value("code = name"), of_column(NAME));
    assert_eq!(value("balance = small"), of_column(SMALL));
    assert_eq!(value("amount = whole"), of_column(WHOLE));
    assert_eq!(value("active = NOT active"), boolean(Term::Not(Box::new(of_column(ACTIVE)))));
    let joined = Term::Concatenated(vec![
        of_column(NAME),
        constant(Value::text("-"), DataType::Text(None)),
        of_column(CODE),
    ]);
    assert_eq!(
        value("name = name || ('-' || code)"),
        Expression { term: joined, data_type: DataType::Text(None) }
    );
}

#[test]
fn one_of_several_values_has_the_type_of_all() {
    let value = |sql: &str| set(&format!("UPDATE account SET {sql}")).remove(0).1;
    let coalesce = |parts, data_type| Expression { term: Term::Coalesce(parts), data_type };
    assert_eq!(
        value("balance = COALESCE(balance, 0)"),
        coalesce(vec![of_column(BALANCE), bigint(0)], DataType::BigInt)
    );
    let zero = constant(number("0"), numeric(1, 0));
    assert_eq!(
        value("amount = coalesce(amount, 0)"),
        coalesce(vec![of_column(AMOUNT), zero], numeric(10, 2))
    );
    assert_eq!(value("rate = coalesce(rate, amount)").data_type, numeric(60, 20));
    let positive = compared(Comparison::Greater, of_column(BALANCE), bigint(0));
    let text = |text: &str| constant(Value::text(text), DataType::Text(Some(4)));
    let case = Term::Case {
        branches: vec![(positive.clone(), text("good"))],
        otherwise: Some(Box::new(text("bad"))),
    };
    let case = Expression { term: case, data_type: DataType::Text(Some(4)) };
    assert_eq!(value("code = CASE WHEN balance > 0 THEN 'good' ELSE 'bad' END"), case);
    let reduced = arithmetic(Operator::Subtract, of_column(BALANCE), bigint(1), DataType::BigInt);
    let branches = vec![(positive, reduced)];
    let case = Expression { term: Term::Case { branches, otherwise: None }, data_type: DataType::BigInt };
    assert_eq!(value("balance = CASE WHEN balance > 0 THEN balance - 1 END"), case);
    let null = value("balance = CASE WHEN active THEN NULL ELSE balance END");
    let Term::Case { branches, .. } = null.term else { panic!("a CASE") };
    assert_eq!(branches[0].1, constant(Value::Null, DataType::BigInt));
}

#[test]
fn conditions_are_trees_without_needless_levels() {
    let less = compared(Comparison::Less, of_column(SMALL), constant(Value::SmallInt(5), DataType::SmallInt));
    let active = of_column(ACTIVE);
    let null = boolean(Term::IsNull { of: Box::new(of_column(NAME)), negated: true });
    assert_eq!(
        condition("small < 5 AND (active AND name IS NOT NULL)"),
        boolean(Term::And(vec![less.clone(), active.clone(), null.clone()]))
    );
    assert_eq!(condition("5 > small OR active"), {
        let turned =
            compared(Comparison::Greater, constant(Value::SmallInt(5), DataType::SmallInt), of_column(SMALL));
        boolean(Term::Or(vec![turned, active]))
    });
    let low = compared(Comparison::GreaterOrEqual, of_column(AMOUNT), constant(number("1"), numeric(1, 0)));
    let high = compared(Comparison::LessOrEqual, of_column(AMOUNT), constant(number("2.5"), numeric(2, 1)));
    let both = boolean(Term::And(vec![low, high]));
    assert_eq!(condition("amount BETWEEN 1 AND 2.5"), both);
    assert_eq!(condition("amount NOT BETWEEN 1 AND 2.5"), boolean(Term::Not(Box::new(both))));
    let dates = vec![constant(Value::Date(0), DataType::Date), constant(Value::Date(1), DataType::Date)];
    let found = boolean(Term::In(Box::new(of_column(BORN)), dates));
    assert_eq!(condition("born IN ('2000-01-01', date '2000-01-02')"), found);
    assert_eq!(
        condition("born NOT IN ('2000-01-01', date '2000-01-02')"),
        boolean(Term::Not(Box::new(found)))
    );
}

#[test]
fn constants_take_the_type_of_what_they_are_compared_with() {
    let right = |sql: &str| match condition(sql).term {
        Term::Compared(_, _, right) => *right,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(right("balance = 5"), bigint(5));
    assert_eq!(right("balance = '5'"), bigint(5));
    assert_eq!(right("whole = 5::bigint"), integer(5));
    assert_eq!(right("whole < 5.5"), constant(number("5.5"), numeric(2, 1)));
    assert_eq!(right("amount = '1.005'"), constant(number("1.005"), numeric(4, 3)), "it is not rounded");
    assert_eq!(right("amount = 0.05"), constant(number("0.05"), numeric(2, 2)));
    assert_eq!(right("code = 'ab'"), constant(Value::text("ab"), DataType::Text(Some(4))));
    assert_eq!(
        right("code = 'abcde'"),
        constant(Value::text("abcde"), DataType::Text(None)),
        "it is not cut off"
    );
    assert_eq!(right("seen <= now()"), constant(Value::TimestampTz(NOW), DataType::TimestampTz));
    assert_eq!(right("active = 't'"), constant(Value::Boolean(true), DataType::Boolean));
    assert_eq!(right("balance = NULL"), constant(Value::Null, DataType::BigInt));
    assert_eq!(right("small = whole"), of_column(WHOLE));
    assert_eq!(right("whole = rate"), of_column(RATE));
    assert_eq!(right("seen = seen"), of_column(SEEN));
    assert_eq!(right("account.balance = public.account.balance"), of_column(BALANCE));
    let aliased = statement("UPDATE account AS a SET balance = a.balance + 1 WHERE a.id = 1");
    assert_eq!(aliased.access, keys(&[1]));
}

#[test]
fn rows_are_known_by_their_whole_keys() {
    let access = |sql: &str| statement(&format!("DELETE FROM account WHERE {sql}")).access;
    for sql in [
        "id = 1",
        "1 = id",
        "(id = '1') AND active",
        "name = 'a' AND id = 1 AND balance > 5",
        "id = 1 AND id = 2",
    ] {
        assert_eq!(access(sql), keys(&[1]), "{sql}");
    }
    assert_eq!(access("id IN (1, 2, 3)"), keys(&[1, 2, 3]));
    assert_eq!(access("active AND id IN (3, 2)"), keys(&[3, 2]));
    for sql in [
        "id > 1",
        "id = 1 OR id = 2",
        "NOT id = 1",
        "id = NULL",
        "id = 1.0",
        "id = whole",
        "id::bigint = 1",
        "id NOT IN (1)",
        "balance = 1",
        "id = 1 OR active",
        "COALESCE(id, 0) = 1",
    ] {
        assert_eq!(access(sql), Access::Table, "{sql}");
    }
    assert_eq!(statement("DELETE FROM account").access, Access::Table);
    assert_eq!(statement("UPDATE account SET balance = 1").access, Access::Table);
    let entry = |sql: &str| statement(&format!("DELETE FROM s.entry WHERE {sql}")).access;
    let key = Key::encode(&[Value::text("a"), Value::BigInt(2)]).expect("a key");
    assert_eq!(entry("number = 2 AND ledger = 'a'"), Access::Keys(vec![key]));
    assert_eq!(entry("number = 2"), Access::Table);
    assert_eq!(entry("number IN (2) AND ledger = 'a'"), Access::Table);
    assert_eq!(
        entry(&format!("number = 2 AND ledger = '{}'", "a".repeat(3_000))),
        Access::Table,
        "no row has it"
    );
}

#[test]
fn arithmetic_in_a_condition_stands_behind_the_whole_key() {
    let by_key = compared(Comparison::Equal, of_column(ID), integer(1));
    let left = arithmetic(Operator::Subtract, of_column(BALANCE), bigint(5), DataType::BigInt);
    let enough = compared(Comparison::GreaterOrEqual, left, bigint(0));
    let both = boolean(Term::And(vec![by_key, enough]));
    assert_eq!(condition("id = 1 AND balance - 5 >= 0"), both);
    assert_eq!(condition("balance - 5 >= 0 AND id = 1"), both, "the key is looked at first");
    let update =
        "UPDATE account SET active = CASE WHEN balance + 1 > 5 THEN TRUE ELSE FALSE END WHERE id IN (1, 2)";
    assert_eq!(statement(update).access, keys(&[1, 2]));
}
