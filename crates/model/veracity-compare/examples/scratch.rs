//! x
use std::time::Instant;
use veracity_compare::*;
use veracity_results::Tolerance;
use veracity_tensor::*;
fn hwm(f: &str) -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .find(|l| l.starts_with(f))
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let kind = std::env::args().nth(2).unwrap();
    let mut a = Tensor::zeros(DType::F32, Shape::from([n]));
    let mut b = a.clone();
    let mut x = 1u64;
    let mut r = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 40) as f32 / (1u64 << 24) as f32
    };
    for (l, q) in a.as_mut_slice::<f32>().unwrap().iter_mut().zip(b.as_mut_slice::<f32>().unwrap())
    {
        *l = (r() + r() + r() + r() - 2.0) * 3.0;
        *q = match kind.as_str() {
            "cont" => (r() + r() + r() - 2.0).exp(),
            "shift" => *l + 1.0,
            "equal" => *l,
            "const" => {
                *l = 1.0;
                2.5
            }
            "nan" => f32::NAN,
            _ => {
                if r() < 0.5 {
                    *l
                } else {
                    r()
                }
            }
        };
    }
    let t = Tolerance::new(1e-5, 1e-5).unwrap();
    let s = MeasureOptions::new(t).with_threads(2);
    for (name, o) in
        [("stats", s.clone()), ("full", s.clone().with_ulp_histogram().with_percentiles())]
    {
        let before = hwm("VmRSS:");
        let mut best = f64::MAX;
        let mut m = None;
        for _ in 0..3 {
            let i = Instant::now();
            m = Some(measure(&a.view(), &b.view(), &o).unwrap());
            best = best.min(i.elapsed().as_secs_f64());
        }
        println!(
            "{kind} {name} {:.3} s {:.2} GB/s extra {} MiB {:?}",
            best,
            n as f64 * 8e-9 / best,
            (hwm("VmHWM:") - before) / 1024,
            m.unwrap().percentiles
        );
    }
}
