use std::time::Instant;
use veracity_compare::*;
use veracity_results::Tolerance;
use veracity_tensor::*;
fn main(){
  let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
  let mut a=Tensor::zeros(DType::F32,Shape::from([n])); let mut b=a.clone();
  let mut x=1u64; let mut r=||{x^=x<<13;x^=x>>7;x^=x<<17;(x>>40) as f32/(1u64<<24) as f32};
  for (l,q) in a.as_mut_slice::<f32>().unwrap().iter_mut().zip(b.as_mut_slice::<f32>().unwrap()){ *l=(r()+r()+r()+r()-2.0)*3.0; *q=*l*(1.0+(r()-0.5)*1e-5);}
  let t=Tolerance::new(1e-5,1e-5).unwrap();
  let s=MeasureOptions::new(t).with_threads(1);
  for (name,o) in [("stats",s.clone()),("ulp",s.clone().with_ulp_histogram()),("pct",s.clone().with_percentiles()),("full",s.clone().with_ulp_histogram().with_percentiles())]{
    let mut best=f64::MAX; for _ in 0..(200_000_000/n).clamp(5,300) { let i=Instant::now(); std::hint::black_box(measure(&a.view(),&b.view(),&o)).unwrap(); best=best.min(i.elapsed().as_secs_f64()); }
    println!("{name} {:.3} ns/pair", best*1e9/n as f64);
  }
}
