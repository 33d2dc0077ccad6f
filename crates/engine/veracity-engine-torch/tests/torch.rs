//! The engine against Python torch: same modules, same bytes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/lib.rs"]
mod support;

use std::fs;
use std::num::NonZeroUsize;
use std::slice::from_ref;

use support::{
    Call, buffers, calls_of, cases, engine, file_of, fill, from_memory, load, memory_of, models,
    on_cpu, ports, ports_of, program_of, read,
};
use veracity_diag::{Code, Refusal, codes};
use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, Session,
    SessionOptions,
};
use veracity_tensor::{DType, SharedTensor, Tensor};

const F32: DType = DType::F32;
const I64: DType = DType::I64;

/// Runs every call in turn on one binding, and hands each call with its outputs to `check`.
fn replay(session: &mut Session, calls: &[Call], check: impl Fn(&Call, &[Tensor])) {
    let ports = ports_of(&calls[0]);
    let (inputs, outputs) = (buffers(&ports.inputs), buffers(&ports.outputs));
    let binding = session.bind(&inputs, &outputs).unwrap();
    for call in calls {
        for (buffer, value) in inputs.iter().zip(&call.inputs) {
            fill(buffer, value.bytes());
        }
        session.run(binding).unwrap_or_else(|refusal| panic!("{refusal}"));
        check(call, &outputs.iter().map(read).collect::<Vec<_>>());
        for (buffer, value) in inputs.iter().zip(&call.inputs) {
            assert_eq!(read(buffer), *value, "the model wrote into its input");
        }
    }
}

fn refused(result: Result<impl Sized, Refusal>, code: Code, what: &str) -> String {
    let Err(refusal) = result else { panic!("{what} was accepted") };
    let error = refusal.first_error();
    assert_eq!(error.code, code, "{what}: {error}");
    error.message.clone()
}

#[test]
fn every_module_gives_the_bytes_that_python_got() {
    let cases = cases();
    assert!(cases.len() >= 30, "only {} modules were made", cases.len());
    for level in [OptimizationLevel::None, OptimizationLevel::All] {
        let options = SessionOptions { optimization: level, ..on_cpu() };
        for (name, calls) in &cases {
            for source in [file_of(name), memory_of(name)] {
                let session = engine().load(&source, &ports_of(&calls[0]), &options);
                let mut session = session.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                assert_eq!(session.device(), "cpu");
                replay(&mut session, calls, |call, outputs| {
                    assert_eq!(outputs, call.outputs, "{name} at {level:?}");
                });
            }
        }
    }
}

#[test]
fn the_device_of_choice_gives_the_same_values() {
    for (name, calls) in cases() {
        let options = SessionOptions::default();
        let mut session = engine().load(&file_of(&name), &ports_of(&calls[0]), &options).unwrap();
        replay(&mut session, &calls, |call, outputs| {
            for (output, reference) in outputs.iter().zip(&call.outputs) {
                assert_close(output, reference, &name);
            }
        });
    }
}

#[test]
fn code_that_names_a_gpu_runs_where_there_is_none() {
    let calls = calls_of("makes_on_cpu");
    for source in [file_of("makes_on_gpu"), memory_of("makes_on_gpu")] {
        let mut session = engine().load(&source, &ports_of(&calls[0]), &on_cpu()).unwrap();
        replay(&mut session, &calls, |call, outputs| assert_eq!(outputs, call.outputs));
    }
}

/// Equal bytes, or float32 within what another device may round differently.
fn assert_close(output: &Tensor, reference: &Tensor, name: &str) {
    let (Some(candidate), Some(expected)) = (output.as_slice::<f32>(), reference.as_slice::<f32>())
    else {
        return assert_eq!(output, reference, "{name}");
    };
    for (candidate, expected) in candidate.iter().zip(expected) {
        let close =
            (candidate - expected).abs() <= 2e-3 || candidate.to_bits() == expected.to_bits();
        assert!(
            close || (candidate.is_nan() && expected.is_nan()),
            "{name}: {candidate} {expected}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_when_loading() {
    for (name, ports, fragment) in [
        ("mlp", ports(&[], &[(F32, &[1, 12])]), "has no declared input"),
        ("mlp", ports(&[(F32, &[1, 48]), (F32, &[1])], &[(F32, &[1, 12])]), "takes 1 argument"),
        ("mlp", ports(&[(F32, &[1, 48])], &[]), "returns 1 tensor"),
        ("tuple_output", ports(&[(F32, &[2, 3])], &[(F32, &[2, 3])]), "returns 2 tensors"),
        ("named_pair", ports(&[(F32, &[2, 3])], &[(F32, &[2, 3])]), "returns 2 tensors"),
        ("needs_float", ports(&[(F32, &[3]), (F32, &[])], &[(F32, &[3])]), "`scale` of `forward`"),
        ("no_forward", ports(&[(F32, &[3])], &[(F32, &[3])]), "no method `forward`"),
    ] {
        let result = engine().load(&file_of(name), &ports, &on_cpu());
        let message = refused(result, codes::ENGINE_LOAD_FAILED, name);
        assert!(message.contains(fragment), "{name}: {message}");
    }
}

#[test]
fn results_that_were_not_declared_are_refused() {
    for (name, input, output, message) in [
        (
            "mlp",
            &[1, 48][..],
            (I64, &[1, 12][..]),
            "output 0 is float32 [1, 12], declared is int64 [1, 12]",
        ),
        ("mlp", &[1, 48], (F32, &[12]), "output 0 is float32 [1, 12], declared is float32 [12]"),
        (
            "mlp",
            &[2, 48],
            (F32, &[1, 12]),
            "output 0 is float32 [2, 12], declared is float32 [1, 12]",
        ),
        ("list_output", &[3], (F32, &[3]), "the model returned 2 tensors, 1 output declared"),
        ("dict_output", &[3], (F32, &[3]), "output 0 is a GenericDict, not a tensor"),
        ("float_output", &[3], (F32, &[]), "output 0 is a Double, not a tensor"),
        ("sparse_output", &[3], (F32, &[3]), "output 0 is not a dense tensor"),
    ] {
        let ports = ports(&[(F32, input)], &[output]);
        let mut session = load(name, &ports);
        let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
        // Twice: a refusal must not be a matter of the first run.
        for _ in 0..2 {
            let said = refused(session.run(binding), codes::ENGINE_OUTPUT_MISMATCH, name);
            assert_eq!(said, message, "{name}");
        }
    }
}

#[test]
fn a_mismatch_names_the_port() {
    let ports = ports(&[(F32, &[2, 3])], &[(F32, &[2, 3]), (F32, &[2])]);
    let mut session = load("tuple_output", &ports);
    let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
    let refusal = session.run(binding).unwrap_err();
    assert_eq!(refusal.first_error().place.port.as_deref(), Some("out1"));
}

#[test]
fn shapes_are_checked_on_every_run() {
    let ports = ports(&[(F32, &[3])], &[(I64, &[2, 1])]);
    let mut session = load("non_zero", &ports);
    let (inputs, outputs) = (buffers(&ports.inputs), buffers(&ports.outputs));
    let binding = session.bind(&inputs, &outputs).unwrap();
    for (values, fits) in
        [([1.0_f32, 0.0, 2.0], true), ([1.0, 1.0, 1.0], false), ([0.0, 3.0, 4.0], true)]
    {
        fill(&inputs[0], Tensor::from_slice([3], &values).unwrap().bytes());
        assert_eq!(session.run(binding).is_ok(), fits, "{values:?}");
    }
    assert_eq!(read(&outputs[0]).as_slice::<i64>().unwrap(), [1, 2]);
}

#[test]
fn an_error_of_the_model_is_passed_on_and_forgotten() {
    let ports = ports(&[(F32, &[2])], &[(F32, &[2])]);
    let mut session = load("raises_on_negative", &ports);
    let (inputs, outputs) = (buffers(&ports.inputs), buffers(&ports.outputs));
    let binding = session.bind(&inputs, &outputs).unwrap();

    fill(&inputs[0], Tensor::from_slice([2], &[-1.0_f32, 4.0]).unwrap().bytes());
    let message = refused(session.run(binding), codes::ENGINE_RUN_FAILED, "a negative value");
    assert!(message.ends_with("negative values are not supported"), "{message}");

    fill(&inputs[0], Tensor::from_slice([2], &[1.0_f32, 4.0]).unwrap().bytes());
    session.run(binding).unwrap();
    assert_eq!(read(&outputs[0]).as_slice::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn shapes_that_the_model_cannot_take_are_an_error_of_the_run() {
    let ports = ports(&[(F32, &[1, 47])], &[(F32, &[1, 12])]);
    let mut session = load("mlp", &ports);
    let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
    let message = refused(session.run(binding), codes::ENGINE_RUN_FAILED, "47 instead of 48");
    assert!(message.contains("47"), "{message}");
}

#[test]
fn memory_that_does_not_fit_its_port_is_refused() {
    let ports = ports(&[(F32, &[1, 48])], &[(F32, &[1, 12])]);
    let mut session = load("mlp", &ports);
    let zeros = |dtype, dims: [usize; 2]| vec![SharedTensor::zeros(dtype, dims.into())];
    let (input, output) = (zeros(F32, [1, 48]), zeros(F32, [1, 12]));
    for (what, inputs, outputs) in [
        ("no input", vec![], output.clone()),
        ("two outputs", input.clone(), [output.clone(), output.clone()].concat()),
        ("dtype of the input", zeros(DType::F64, [1, 48]), output.clone()),
        ("shape of the output", input.clone(), zeros(F32, [12, 1])),
    ] {
        refused(session.bind(&inputs, &outputs), codes::ENGINE_BIND_MISMATCH, what);
    }
}

#[test]
fn three_bindings_are_used_in_turn() {
    let calls = calls_of("mlp");
    let ports = ports_of(&calls[0]);
    let mut session = load("mlp", &ports);
    let bound: Vec<_> = calls[..3]
        .iter()
        .map(|call| {
            let (inputs, outputs) = (buffers(&ports.inputs), buffers(&ports.outputs));
            fill(&inputs[0], call.inputs[0].bytes());
            (session.bind(&inputs, &outputs).unwrap(), outputs)
        })
        .collect();
    for _ in 0..3 {
        for ((binding, outputs), call) in bound.iter().zip(&calls) {
            session.run(*binding).unwrap();
            assert_eq!(read(&outputs[0]), call.outputs[0]);
            fill(&outputs[0], &[0; 48]);
        }
    }
}

#[test]
fn a_chain_goes_through_one_piece_of_memory() {
    let ports = ports(&[(F32, &[3])], &[(F32, &[3])]);
    let [first, middle, last] = [0; 3].map(|_| SharedTensor::zeros(F32, [3].into()));
    let mut chain: Vec<_> =
        [("writes_in_place", &first, &middle), ("weighted_once", &middle, &last)]
            .into_iter()
            .map(|(name, input, output)| {
                let mut session = load(name, &ports);
                let binding = session.bind(from_ref(input), from_ref(output)).unwrap();
                (session, binding)
            })
            .collect();
    for value in [1.0_f32, 5.0] {
        fill(&first, Tensor::from_slice([3], &[value; 3]).unwrap().bytes());
        for (session, binding) in &mut chain {
            session.run(*binding).unwrap();
        }
        assert_eq!(read(&last).as_slice::<f32>().unwrap(), [(value + 1.0) * 3.0; 3]);
    }
}

#[test]
fn one_memory_for_input_and_output_is_refused() {
    let ports = ports(&[(F32, &[3])], &[(F32, &[3])]);
    let value = SharedTensor::zeros(F32, [3].into());
    let mut session = load("weighted_once", &ports);
    let refusal = session.bind(from_ref(&value), from_ref(&value)).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::ENGINE_BIND_MISMATCH);
}

#[test]
fn the_session_keeps_its_memory_alive() {
    let ports = ports(&[(F32, &[3])], &[(F32, &[3])]);
    let mut session = load("remembers", &ports);
    let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
    for _ in 0..3 {
        session.run(binding).unwrap();
    }
}

#[test]
fn sessions_of_one_file_do_not_share_state() {
    let calls = calls_of("counter");
    for _ in 0..2 {
        let mut session = load("counter", &ports_of(&calls[0]));
        replay(&mut session, &calls, |call, outputs| {
            assert_eq!(outputs, call.outputs);
        });
    }
}

#[test]
fn a_session_moves_between_threads() {
    let calls = calls_of("gru");
    let mut session = load("gru", &ports_of(&calls[0]));
    for call in calls {
        session = std::thread::spawn(move || {
            replay(&mut session, &[call], |call, outputs| {
                assert_eq!(outputs, call.outputs);
            });
            session
        })
        .join()
        .unwrap();
    }
}

#[test]
fn sessions_load_and_run_side_by_side() {
    std::thread::scope(|scope| {
        for name in ["mlp", "gru", "counter", "conv"] {
            scope.spawn(move || {
                let calls = calls_of(name);
                let mut session = load(name, &ports_of(&calls[0]));
                replay(&mut session, &calls, |call, outputs| {
                    assert_eq!(outputs, call.outputs, "{name}");
                });
            });
        }
    });
}

#[test]
fn broken_files_are_refused() {
    let whole = fs::read(models().join("mlp.pt")).unwrap();
    let ports = ports_of(&calls_of("mlp")[0]);
    let mut sources: Vec<_> = [0, 1, 100, whole.len() / 2, whole.len() - 1]
        .map(|len| (format!("the first {len} bytes"), from_memory(&whole[..len])))
        .into();
    sources.push(("text".to_owned(), from_memory(b"this is not an archive at all")));
    sources.push(("a file that is not there".to_owned(), file_of("no_such_module")));
    for (what, source) in sources {
        refused(engine().load(&source, &ports, &on_cpu()), codes::ENGINE_LOAD_FAILED, &what);
    }
}

#[test]
fn the_file_is_named_when_loading_fails() {
    let ports = ports(&[(F32, &[3])], &[(F32, &[3])]);
    let Err(refusal) = engine().load(&file_of("no_such_module"), &ports, &on_cpu()) else {
        panic!("a file that is not there was loaded");
    };
    let file = refusal.first_error().place.file.clone().unwrap();
    assert!(file.ends_with("no_such_module.pt"), "{file}");
}

#[test]
fn options_that_cannot_be_met_are_refused() {
    let ports = ports_of(&calls_of("mlp")[0]);
    let load = |options: &SessionOptions| engine().load(&file_of("mlp"), &ports, options);
    let device = SessionOptions { device: Device::Cuda(999), ..on_cpu() };
    refused(load(&device), codes::DEVICE_UNAVAILABLE, "GPU 999");
    let threads = SessionOptions { threads: NonZeroUsize::MAX, ..on_cpu() };
    refused(load(&threads), codes::OPTION_INVALID, "too many threads");
}

#[test]
fn other_formats_are_refused() {
    let engine = engine();
    assert!([ModelFormat::TorchScript, ModelFormat::Pt2].map(|f| engine.supports(f)) == [true; 2]);
    assert!(!engine.supports(ModelFormat::Onnx));
    let source = ModelSource { format: ModelFormat::Onnx, ..file_of("mlp") };
    let result = engine.load(&source, &ports(&[], &[]), &on_cpu());
    refused(result, codes::ENGINE_UNSUPPORTED_FORMAT, "another format");
}

#[test]
fn every_exported_program_gives_the_bytes_that_python_got() {
    let mut count = 0;
    for (name, calls) in cases() {
        let Some(file) = program_of(&name) else { continue };
        let ModelBytes::File(path) = &file.bytes else { unreachable!("programs are files") };
        let memory = ModelBytes::Memory(fs::read(path).unwrap().into());
        for source in [&file, &ModelSource { format: ModelFormat::Pt2, bytes: memory }] {
            let session = engine().load(source, &ports_of(&calls[0]), &SessionOptions::default());
            let mut session = session.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            assert_eq!(session.device(), "cpu");
            replay(&mut session, &calls, |call, outputs| {
                assert_eq!(outputs, call.outputs, "{name}");
            });
        }
        count += 1;
    }
    assert!(count >= 20, "only {count} programs were made");
}

#[test]
fn a_program_that_is_none_or_does_not_fit_is_refused() {
    let program = program_of("tuple_output").unwrap();
    for bytes in [&b""[..], b"no archive", &fs::read(models().join("mlp.pt")).unwrap()] {
        let source =
            ModelSource { format: ModelFormat::Pt2, bytes: ModelBytes::Memory(bytes.into()) };
        let result = engine().load(&source, &ports(&[], &[]), &on_cpu());
        refused(result, codes::ENGINE_LOAD_FAILED, "no program");
    }
    let on_gpu = SessionOptions { device: Device::Cuda(0), ..on_cpu() };
    let part = program_of("part_of_a_table").unwrap();
    let result = engine().load(&part, &ports(&[], &[]), &on_cpu());
    refused(
        result,
        codes::ENGINE_LOAD_FAILED,
        "a constant that begins in the middle of its memory",
    );
    let result = engine().load(&program, &ports(&[], &[]), &on_gpu);
    refused(result, codes::DEVICE_UNAVAILABLE, "a program on a GPU");
    for (ports, code) in [
        (ports(&[(F32, &[2, 3])], &[(F32, &[2, 3])]), codes::ENGINE_OUTPUT_MISMATCH),
        (ports(&[(F32, &[2, 3])], &[(F32, &[2, 3]), (F32, &[2])]), codes::ENGINE_OUTPUT_MISMATCH),
        (ports(&[], &[(F32, &[2, 3]), (I64, &[2])]), codes::ENGINE_RUN_FAILED),
        (
            ports(&[(F32, &[2, 3]), (F32, &[2, 3])], &[(F32, &[2, 3]), (I64, &[2])]),
            codes::ENGINE_RUN_FAILED,
        ),
    ] {
        let mut session = engine().load(&program, &ports, &on_cpu()).unwrap();
        let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
        let what = format!("{} inputs, {} outputs", ports.inputs.len(), ports.outputs.len());
        refused(session.run(binding), code, &what);
    }
}

#[test]
fn the_version_is_torchs_own() {
    assert_eq!(engine().name(), "torch");
    let version = engine().version();
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
}
