#![allow(unsafe_code, missing_docs)]
use std::{fs, io::BufRead};
use veracity_engine::*;
use veracity_engine_embedded::EmbeddedEngine;
use veracity_tensor::*;
fn port(l: &str) -> Port {
    let p: Vec<&str> = l.split(' ').collect();
    let d: Vec<usize> =
        if p[2] == "-" { vec![] } else { p[2].split(',').map(|x| x.parse().unwrap()).collect() };
    Port::new(p[0], DType::from_name(p[1]).unwrap(), Shape::new(d).unwrap())
}
fn main() {
    let level = match std::env::args().nth(2).as_deref() {
        Some("none") => OptimizationLevel::None,
        Some("basic") => OptimizationLevel::Basic,
        _ => OptimizationLevel::All,
    };
    let out = std::env::args().nth(1).unwrap();
    for dir in std::io::stdin().lock().lines() {
        let dir = dir.unwrap();
        let name = dir.rsplit('/').next().unwrap().to_owned();
        let ins = fs::read_to_string(format!("{dir}/in.txt")).unwrap();
        let outs = fs::read_to_string(format!("{dir}/out.txt")).unwrap();
        let ports = Ports {
            inputs: ins.lines().map(port).collect(),
            outputs: outs.lines().map(port).collect(),
        };
        let source = ModelSource {
            format: ModelFormat::Onnx,
            bytes: ModelBytes::File(format!("{dir}/model.onnx").into()),
        };
        let options = SessionOptions { optimization: level, ..SessionOptions::default() };
        let r = (|| {
            let mut s =
                EmbeddedEngine.load(&source, &ports, &options).map_err(|e| format!("load {e}"))?;
            let i: Vec<SharedTensor> = ports
                .inputs
                .iter()
                .zip(ins.lines())
                .map(|(p, l)| {
                    let t = SharedTensor::zeros(p.dtype, p.shape.clone());
                    let b = fs::read(l.split(' ').nth(3).unwrap()).unwrap();
                    unsafe { t.bytes_mut() }.copy_from_slice(&b);
                    t
                })
                .collect();
            let o: Vec<SharedTensor> = ports
                .outputs
                .iter()
                .map(|p| SharedTensor::zeros(p.dtype, p.shape.clone()))
                .collect();
            let b = s.bind(&i, &o).map_err(|e| format!("bind {e}"))?;
            for _ in 0..2 {
                s.run(b).map_err(|e| format!("run {e}"))?;
            }
            fs::create_dir_all(format!("{out}/{name}")).unwrap();
            for (j, t) in o.iter().enumerate() {
                fs::write(format!("{out}/{name}/o{j}.bin"), unsafe { t.bytes() }).unwrap();
            }
            Ok::<(), String>(())
        })();
        println!("{name}\t{}", r.err().unwrap_or_else(|| "OK".into()).replace('\n', " | "));
    }
}
