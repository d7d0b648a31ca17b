//! SHA-256 of many short messages, one by one and in lanes: `cargo run --release -p crypto --example lanes`.

use crypto::{Sha256Batch, sha256};
use std::hint::black_box;
use std::time::Instant;

const MESSAGES: usize = 4_096;
const ROUNDS: usize = 41;

/// Nanoseconds per message, median over the rounds.
fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e9 / MESSAGES as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    println!("bytes  one by one  in lanes  (ns per message)");
    for length in [40, 65, 100, 180, 400] {
        let messages: Vec<Vec<u8>> = (0..MESSAGES).map(|number| vec![number as u8; length]).collect();
        let single = median(|| {
            for message in &messages {
                black_box(sha256(&[message]));
            }
        });
        let lanes = median(|| {
            let mut batch = Sha256Batch::new();
            messages.iter().for_each(|message| batch.push(&[message]));
            black_box(batch.finish());
        });
        println!("{length:5}  {single:10.0}  {lanes:8.0}");
    }
}
