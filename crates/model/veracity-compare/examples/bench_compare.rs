//! How fast `measure` is, as ratios to reading the same memory, from one interleaved run.
//!
//! `cargo run --release -p veracity-compare --example bench_compare [-- --json] [--millions N]`
#![expect(clippy::print_stdout, reason = "a benchmark reports to its reader")]
#![expect(clippy::cast_precision_loss, reason = "rates are for people")]

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use veracity_compare::{MeasureOptions, measure};
use veracity_results::Tolerance;
use veracity_tensor::{DType, Shape, Tensor};

/// Threads for reading and for measuring.
const THREADS: usize = 2;

/// Rounds; each runs every contender once, and the fastest round of each counts.
const ROUNDS: usize = 7;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let millions = arguments
        .iter()
        .position(|argument| argument == "--millions")
        .and_then(|at| arguments.get(at + 1)?.parse().ok())
        .unwrap_or(64_usize);
    let (reference, candidate) = tensors(millions * 1024 * 1024);
    let bytes = (reference.bytes().len() + candidate.bytes().len()) as f64;

    let before = memory_kib("VmRSS:");
    let tolerance = Tolerance::new(1e-5, 1e-5).expect("both are finite and positive");
    let statistics = MeasureOptions::new(tolerance).with_threads(THREADS);
    let full = statistics.clone().with_ulp_histogram().with_percentiles();
    let mut best = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let contenders: [&dyn Fn(); 3] = [
            &|| read(&[reference.bytes(), candidate.bytes()]),
            &|| drop(black_box(measure(&reference.view(), &candidate.view(), &statistics))),
            &|| drop(black_box(measure(&reference.view(), &candidate.view(), &full))),
        ];
        for (best, contender) in best.iter_mut().zip(contenders) {
            let start = Instant::now();
            contender();
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let extra_mib = memory_kib("VmHWM:").saturating_sub(before) as f64 / 1024.0;
    report(json, bytes, best, extra_mib);
}

fn report(json: bool, bytes: f64, [read, statistics, full]: [f64; 3], extra_mib: f64) {
    let rows = [
        ("read_gb_per_s", bytes / read / 1e9),
        ("stats_gb_per_s", bytes / statistics / 1e9),
        ("stats_to_read", read / statistics),
        ("full_gb_per_s", bytes / full / 1e9),
        ("full_secs", full),
        ("peak_extra_mb", extra_mib),
    ];
    if json {
        let fields: Vec<String> =
            rows.iter().map(|(what, value)| format!("\"{what}\": {value}")).collect();
        println!("{{{}}}", fields.join(", "));
    } else {
        for (what, value) in rows {
            println!("{what:<16} {value:>8.3}");
        }
    }
}

/// Values around 1 and a candidate that is off by a few units in the last place.
fn tensors(elements: usize) -> (Tensor, Tensor) {
    let shape = Shape::from([elements]);
    let mut reference = Tensor::zeros(DType::F32, shape.clone());
    let mut candidate = Tensor::zeros(DType::F32, shape);
    let (left, right) = (reference.as_mut_slice::<f32>(), candidate.as_mut_slice::<f32>());
    let (left, right) = (left.expect("float32"), right.expect("float32"));
    let mut random = Random(1);
    for (left, right) in left.iter_mut().zip(right) {
        let spread: f32 = (0..4).map(|_| random.next()).sum::<f32>() - 2.0;
        *left = spread * 3.0;
        *right = *left * (1.0 + (random.next() - 0.5) * 1e-5);
    }
    (reference, candidate)
}

/// Xorshift: good enough to fill memory with.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32
    }
}

/// Reads all bytes with [`THREADS`] threads and does as little as possible with them.
fn read(sides: &[&[u8]]) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for side in sides {
                    let part = side.len() / THREADS;
                    black_box(sum(&side[thread * part..(thread + 1) * part]));
                }
            });
        }
    });
}

fn sum(bytes: &[u8]) -> u64 {
    let (lines, _) = bytes.as_chunks::<64>();
    let mut sums = [0_u64; 8];
    for line in lines {
        let (words, _) = line.as_chunks::<8>();
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}

/// A line of `/proc/self/status`, in KiB; 0 where there is no such file.
fn memory_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
