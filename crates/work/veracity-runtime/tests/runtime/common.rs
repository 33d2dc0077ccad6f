//! Bundles made in code, and the engines to run them with.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use veracity_diag::Result;
use veracity_engine::{Engine, ModelFormat};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{GraphBuilder, Node as Op};
use veracity_runtime::{EngineProvider, RunOptions, Runner};
use veracity_spec::{
    Backend, Bundle, BundleWriter, Edge, FileContent, Model, Node, PortRef, PortSpec, Spec,
};
use veracity_tensor::{DType, Tensor};

/// ONNX Runtime from the Python environment that `make setup` creates.
pub(crate) struct Ort;

impl EngineProvider for Ort {
    fn engine_for(&self, format: ModelFormat) -> Result<Arc<dyn Engine>> {
        static ENGINE: OnceLock<OrtEngine> = OnceLock::new();
        assert_eq!(format, ModelFormat::Onnx);
        let find = || {
            let search = Search { library: None, site_packages: site_packages() };
            OrtEngine::find(&search).expect("no ONNX Runtime: run `make setup` first")
        };
        Ok(Arc::new(ENGINE.get_or_init(find).clone()))
    }
}

fn site_packages() -> Vec<PathBuf> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
    let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
    pythons.map(|python| python.path().join("site-packages")).collect()
}

/// A port `node/port`.
pub(crate) fn key(text: &str) -> PortRef {
    text.parse().expect("keys in tests are written node/port")
}

/// A pipeline under construction; every port is float32 of shape `[1, 2]` unless said otherwise.
pub(crate) struct Draft {
    opset: i64,
    spec: Spec,
    models: Vec<(String, Vec<u8>)>,
    initial: BTreeMap<PortRef, Tensor>,
}

pub(crate) fn port(name: &str) -> PortSpec {
    PortSpec::new(name, DType::F32, [1, 2])
}

/// Two float32 elements in the shape of [`port`].
pub(crate) fn pair(left: f32, right: f32) -> Tensor {
    Tensor::from_slice([1, 2], &[left, right]).unwrap()
}

impl Default for Draft {
    fn default() -> Self {
        Self { opset: 20, spec: Spec::default(), models: Vec::new(), initial: BTreeMap::new() }
    }
}

impl Draft {
    /// The operator set of the nodes that follow.
    pub(crate) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// Adds a node with the given operators, all of whose ports are as in [`port`].
    pub(crate) fn node(
        mut self,
        name: &str,
        inputs: &[&str],
        outputs: &[&str],
        ops: Vec<Op>,
    ) -> Self {
        let mut graph = GraphBuilder::new(name, self.opset);
        for input in inputs {
            graph = graph.input(*input, DType::F32, [1_usize, 2]);
        }
        for op in ops {
            graph = graph.node(op);
        }
        graph = graph
            .initializer("one", &Tensor::from_slice([1], &[1.0_f32]).unwrap())
            .initializer("half", &Tensor::from_slice([1], &[0.5_f32]).unwrap());
        for output in outputs {
            graph = graph.output(*output, DType::F32, [1_usize, 2]);
        }
        let path = format!("{name}.onnx");
        self.models.push((path.clone(), graph.finish().unwrap().to_bytes().unwrap()));
        self.spec.nodes.push(Node {
            name: name.into(),
            inputs: inputs.iter().map(|name| port(name)).collect(),
            outputs: outputs.iter().map(|name| port(name)).collect(),
            model: Some(Model::unhashed(Backend::Onnx, path.parse().unwrap())),
            ..Node::default()
        });
        self
    }

    pub(crate) fn data(mut self, source: &str, target: &str) -> Self {
        self.spec.data_flow.push(Edge { source: key(source), target: key(target) });
        self
    }

    pub(crate) fn feedback(mut self, source: &str, target: &str) -> Self {
        self.spec.feedback_flow.push(Edge { source: key(source), target: key(target) });
        self
    }

    pub(crate) fn initial(mut self, target: &str, value: Tensor) -> Self {
        self.initial.insert(key(target), value);
        self
    }

    pub(crate) fn inputs(mut self, keys: &[&str]) -> Self {
        self.spec.pipeline_inputs = keys.iter().map(|text| key(text)).collect();
        self
    }

    pub(crate) fn outputs(mut self, keys: &[&str]) -> Self {
        self.spec.pipeline_outputs = keys.iter().map(|text| key(text)).collect();
        self
    }

    /// Writes the bundle; the folder lives as long as the result.
    pub(crate) fn write(self) -> (TempDir, Bundle) {
        let folder = TempDir::new().unwrap();
        let writer = BundleWriter::new(self.spec).initial_values(self.initial);
        let writer = self.models.into_iter().fold(writer, |writer, (path, bytes)| {
            writer.file(path.parse().unwrap(), FileContent::Bytes(bytes))
        });
        let bundle = writer.write(folder.path().join("bundle")).unwrap();
        (folder, bundle)
    }

    /// Writes and loads the bundle with ONNX Runtime.
    pub(crate) fn load(self, options: &RunOptions) -> Runner {
        let (_folder, bundle) = self.write();
        Runner::load(&bundle, &Ort, options).unwrap()
    }
}

/// `first: doubled = 2x`, `second: shifted = doubled + 1`, `third: out = shifted * 0.5`.
pub(crate) fn chain() -> Draft {
    chain_with_opset(20)
}

/// The chain whose last two nodes have this operator set.
pub(crate) fn chain_with_opset(opset: i64) -> Draft {
    Draft::default()
        .node("first", &["x"], &["doubled"], vec![Op::new("Add", ["x", "x"], ["doubled"])])
        .opset(opset)
        .node("second", &["in"], &["shifted"], vec![Op::new("Add", ["in", "one"], ["shifted"])])
        .node("third", &["in"], &["out"], vec![Op::new("Mul", ["in", "half"], ["out"])])
        .data("first/doubled", "second/in")
        .data("second/shifted", "third/in")
        .inputs(&["first/x"])
        .outputs(&["third/out"])
}

/// `total_out = total_in + x`, fed back, starting from (10, 20).
pub(crate) fn accumulator() -> Draft {
    Draft::default()
        .node(
            "sum",
            &["x", "total_in"],
            &["shown", "total_out"],
            vec![
                Op::new("Add", ["x", "total_in"], ["total_out"]),
                Op::new("Identity", ["total_out"], ["shown"]),
            ],
        )
        .feedback("sum/total_out", "sum/total_in")
        .initial("sum/total_in", pair(10.0, 20.0))
        .inputs(&["sum/x"])
        .outputs(&["sum/shown"])
}

/// Steps with one named input and returns one output's elements.
pub(crate) fn step(runner: &mut Runner, input: &str, value: Tensor, output: &str) -> Vec<f32> {
    let outputs = runner.run(&BTreeMap::from([(input.to_owned(), value)])).unwrap();
    outputs[output].as_slice::<f32>().unwrap().to_vec()
}
