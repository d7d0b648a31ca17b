//! A naive model: whole states in memory, and questions over them row by row.

use anker::{Question, TableShape};

/// Two tables of integers: one is updated, and grows; the other is small.
pub const SHAPES: [TableShape; 2] = [
    TableShape { name: "facts", columns: &["id", "kind", "amount", "count"], keys: 1, rows_max: 40_000 },
    TableShape { name: "kinds", columns: &["kind"], keys: 0, rows_max: 100 },
];

/// Rows of all tables.
pub type State = [Vec<Vec<i64>>; 2];

/// The questions that are compared.
pub fn questions() -> Vec<Question> {
    let groups =
        |by, sums: &[usize], among| Question::Groups { table: 0, by, groups: 8, sums: sums.to_vec(), among };
    vec![
        groups(Some(1), &[], Some((1, 0))),
        groups(Some(1), &[2], None),
        groups(Some(1), &[2, 3], None),
        groups(None, &[], None),
        groups(None, &[3, 2], None),
        Question::Whole { table: 0 },
        Question::Whole { table: 1 },
    ]
}

/// What a question comes to.
#[allow(dead_code, reason = "one of the tests that share this file compares no answers")]
pub fn model(question: &Question, state: &State) -> Vec<Vec<i64>> {
    match question {
        Question::Whole { table } => {
            let mut checksum = 0_i64;
            for column in 0..SHAPES[*table].columns.len() {
                let sum = state[*table].iter().fold(0_i64, |sum, row| sum.wrapping_add(row[column]));
                checksum = checksum.wrapping_mul(31).wrapping_add(sum);
            }
            vec![vec![state[*table].len() as i64, checksum]]
        }
        Question::Groups { table, by, groups, sums, among } => {
            let mut answer = vec![vec![0_i64; 1 + sums.len()]; groups + 1];
            for row in &state[*table] {
                let place = |value: i64| {
                    if (0..*groups as i64).contains(&value) { value as usize } else { *groups }
                };
                let group = by.map_or(0, |column| place(row[column]));
                let is_among = |(other, column): (usize, usize)| {
                    state[other].iter().any(|row| place(row[column]) == group)
                };
                if among.is_none_or(is_among) {
                    answer[group][0] += 1;
                    for (sum, column) in answer[group][1..].iter_mut().zip(sums) {
                        *sum = sum.wrapping_add(row[*column]);
                    }
                }
            }
            answer
        }
    }
}
