//! Sessions and the memory they are bound to.

use veracity_diag::{Refusal, codes};
use veracity_engine::{Engine, Session};
use veracity_onnx::{Model, Node};
use veracity_tensor::{DType, Shape, SharedTensor, Tensor};

use crate::Case;
use crate::memory::{blank, read, shared, write};
use crate::trial::{Named, bind, graph, load, ports, run, told};
use crate::values::{Closeness, compare, tensor, wave};

pub(super) const CASES: &[Case] = &[
    Case { id: "bindings_of_one_session_stay_apart", run: three_bindings },
    Case { id: "a_run_reads_what_is_in_memory_then", run: rewritten_input },
    Case { id: "one_session_writes_what_the_next_reads", run: chain },
    Case { id: "two_bindings_in_turn_make_a_feedback", run: feedback },
    Case { id: "running_twice_gives_the_same_bits", run: same_bits },
    Case { id: "inputs_are_left_alone", run: inputs_untouched },
    Case { id: "one_memory_for_input_and_output_is_right_or_refused", run: in_place },
    Case { id: "one_memory_for_two_inputs", run: same_memory_twice },
    Case { id: "a_session_works_in_another_thread", run: other_thread },
    Case { id: "memory_lives_as_long_as_its_session", run: memory_outlives_its_owner },
    Case { id: "bind_refuses_a_wrong_count", run: wrong_count },
    Case { id: "bind_refuses_a_wrong_dtype", run: wrong_dtype },
    Case { id: "bind_refuses_a_wrong_shape", run: wrong_shape },
];

fn numbers(values: [f32; 2]) -> Tensor {
    tensor([2], &values)
}

/// One node from `x` to `y`, both like `like`.
fn one_node(node: Node, like: &Tensor) -> Result<Model, String> {
    let ends: [Named<'_>; 2] = [("x", like), ("y", like)];
    graph(&ends[..1], &ends[1..]).node(node).finish().map_err(told("make"))
}

/// A session of `y = x + x`.
fn doubling(engine: &dyn Engine) -> Result<Session, String> {
    let like = numbers([0.0; 2]);
    let model = one_node(Node::new("Add", ["x", "x"], ["y"]), &like)?;
    load(engine, &model, &ports(&[("x", &like)], &[("y", &like)]))
}

fn holds(name: &str, memory: &SharedTensor, expected: [f32; 2]) -> Result<(), String> {
    compare(name, &numbers(expected), &read(memory), Closeness::Bits)
}

fn three_bindings(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let mut bound = Vec::new();
    for value in [1.0, 2.0, 3.0] {
        let (x, y) = (shared(&numbers([value, -value])), blank(&numbers([0.0; 2])));
        bound.push((bind(&mut session, &[x], std::slice::from_ref(&y))?, y, 2.0 * value));
    }
    for pick in [0, 2, 1, 2, 0] {
        let (binding, y, expected) = &bound[pick];
        write(y, &numbers([0.0; 2]));
        run(&mut session, *binding)?;
        holds("y", y, [*expected, -expected])?;
    }
    Ok(())
}

fn rewritten_input(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let (x, y) = (shared(&numbers([1.0, 2.0])), blank(&numbers([0.0; 2])));
    let binding = bind(&mut session, std::slice::from_ref(&x), std::slice::from_ref(&y))?;
    run(&mut session, binding)?;
    holds("y", &y, [2.0, 4.0])?;
    write(&x, &numbers([5.0, 6.0]));
    run(&mut session, binding)?;
    holds("y", &y, [10.0, 12.0])
}

fn chain(engine: &dyn Engine) -> Result<(), String> {
    let (mut first, mut second) = (doubling(engine)?, doubling(engine)?);
    let [x, between, y] = [[1.0, 2.0], [9.0; 2], [9.0; 2]].map(|start| shared(&numbers(start)));
    let one = bind(&mut first, std::slice::from_ref(&x), std::slice::from_ref(&between))?;
    let two = bind(&mut second, std::slice::from_ref(&between), std::slice::from_ref(&y))?;
    for value in [1.0, 3.0] {
        write(&x, &numbers([value, -value]));
        run(&mut first, one)?;
        run(&mut second, two)?;
        holds("between", &between, [2.0 * value, -2.0 * value])?;
        holds("y", &y, [4.0 * value, -4.0 * value])?;
    }
    Ok(())
}

fn feedback(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let [even, odd] = [[1.0, -1.0], [0.0; 2]].map(|start| shared(&numbers(start)));
    let pair = [even, odd];
    let forth = bind(&mut session, &pair[..1], &pair[1..])?;
    let back = bind(&mut session, &pair[1..], &pair[..1])?;
    let mut expected = 1.0;
    for tick in 0..10 {
        let (binding, written) = if tick % 2 == 0 { (forth, &pair[1]) } else { (back, &pair[0]) };
        run(&mut session, binding)?;
        expected *= 2.0;
        holds(&format!("state after tick {tick}"), written, [expected, -expected])?;
    }
    Ok(())
}

fn same_bits(engine: &dyn Engine) -> Result<(), String> {
    let (x, w) = (wave([4, 32], 4.1), wave([32, 32], 4.2));
    let model = graph(&[("x", &x)], &[("y", &x)])
        .initializer("w", &w)
        .node(Node::new("MatMul", ["x", "w"], ["m"]))
        .node(Node::new("Softmax", ["m"], ["y"]).int("axis", -1))
        .finish()
        .map_err(told("make"))?;
    let mut session = load(engine, &model, &ports(&[("x", &x)], &[("y", &x)]))?;
    let y = blank(&x);
    let binding = bind(&mut session, &[shared(&x)], std::slice::from_ref(&y))?;
    run(&mut session, binding)?;
    let first = read(&y);
    if first.bytes().iter().all(|&byte| byte == 1) {
        return Err("output \"y\" was not written".to_owned());
    }
    write(&y, &x);
    run(&mut session, binding)?;
    compare("y", &first, &read(&y), Closeness::Bits)
}

fn inputs_untouched(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let (x, y) = (shared(&numbers([1.0, 2.0])), blank(&numbers([0.0; 2])));
    let binding = bind(&mut session, std::slice::from_ref(&x), std::slice::from_ref(&y))?;
    run(&mut session, binding)?;
    holds("y", &y, [2.0, 4.0])?;
    holds("input x", &x, [1.0, 2.0])
}

/// A matrix product reads every input for every output: written in place it goes wrong.
fn in_place(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([1, 3], &[1.0_f32, 2.0, 3.0]);
    let reversed = tensor([3, 3], &[0.0_f32, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    let model = graph(&[("x", &x)], &[("y", &x)])
        .initializer("w", &reversed)
        .node(Node::new("MatMul", ["x", "w"], ["y"]))
        .finish()
        .map_err(told("make"))?;
    let mut session = load(engine, &model, &ports(&[("x", &x)], &[("y", &x)]))?;
    let memory = [shared(&x)];
    match session.bind(&memory, &memory) {
        Err(refusal) => must_be_mismatch(&refusal),
        Ok(binding) => {
            run(&mut session, binding)?;
            let expected = tensor([1, 3], &[3.0_f32, 2.0, 1.0]);
            compare("y", &expected, &read(&memory[0]), Closeness::Bits)
        }
    }
}

fn same_memory_twice(engine: &dyn Engine) -> Result<(), String> {
    let like = numbers([0.0; 2]);
    let (inputs, outputs) = ([("a", &like), ("b", &like)], [("y", &like)]);
    let model = graph(&inputs, &outputs)
        .node(Node::new("Mul", ["a", "b"], ["y"]))
        .finish()
        .map_err(told("make"))?;
    let mut session = load(engine, &model, &ports(&inputs, &outputs))?;
    let (x, y) = (shared(&numbers([3.0, -4.0])), blank(&like));
    let binding = bind(&mut session, &[x.clone(), x], std::slice::from_ref(&y))?;
    run(&mut session, binding)?;
    holds("y", &y, [9.0, 16.0])
}

fn other_thread(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let (x, y) = (shared(&numbers([1.0, 2.0])), blank(&numbers([0.0; 2])));
    let binding = bind(&mut session, &[x], std::slice::from_ref(&y))?;
    let worker = std::thread::spawn(move || {
        let outcome = run(&mut session, binding);
        (session, outcome)
    });
    let (mut session, outcome) = worker.join().map_err(|panic| format!("panicked: {panic:?}"))?;
    outcome?;
    holds("y", &y, [2.0, 4.0])?;
    run(&mut session, binding)?;
    holds("y", &y, [2.0, 4.0])
}

fn memory_outlives_its_owner(engine: &dyn Engine) -> Result<(), String> {
    let mut session = doubling(engine)?;
    let y = blank(&numbers([0.0; 2]));
    let binding = {
        let x = shared(&numbers([1.0, 2.0]));
        bind(&mut session, &[x], std::slice::from_ref(&y))?
    };
    // Takes the place of the input if the session let go of it.
    let others: Vec<_> = (0..64).map(|_| shared(&numbers([7.0, 7.0]))).collect();
    run(&mut session, binding)?;
    drop(others);
    holds("y", &y, [2.0, 4.0])
}

/// Memory of one input and one output that must be refused.
fn must_not_bind(
    engine: &dyn Engine,
    inputs: &[SharedTensor],
    outputs: &[SharedTensor],
) -> Result<(), String> {
    let mut session = doubling(engine)?;
    match session.bind(inputs, outputs) {
        Ok(_) => Err(format!("{inputs:?} to {outputs:?} was bound")),
        Err(refusal) => must_be_mismatch(&refusal),
    }
}

fn must_be_mismatch(refusal: &Refusal) -> Result<(), String> {
    match refusal.first_error().code {
        codes::ENGINE_BIND_MISMATCH => Ok(()),
        _ => Err(format!("refused for another reason: {refusal}")),
    }
}

fn memory(dtype: DType, shape: impl Into<Shape>) -> SharedTensor {
    SharedTensor::zeros(dtype, shape.into())
}

fn wrong_count(engine: &dyn Engine) -> Result<(), String> {
    let good = || memory(DType::F32, [2]);
    must_not_bind(engine, &[], &[good()])?;
    must_not_bind(engine, &[good()], &[])?;
    must_not_bind(engine, &[good(), good()], &[good()])?;
    must_not_bind(engine, &[good()], &[good(), good()])
}

fn wrong_dtype(engine: &dyn Engine) -> Result<(), String> {
    let good = || memory(DType::F32, [2]);
    must_not_bind(engine, &[memory(DType::I32, [2])], &[good()])?;
    must_not_bind(engine, &[good()], &[memory(DType::F64, [2])])
}

fn wrong_shape(engine: &dyn Engine) -> Result<(), String> {
    let good = || memory(DType::F32, [2]);
    must_not_bind(engine, &[memory(DType::F32, [3])], &[good()])?;
    must_not_bind(engine, &[memory(DType::F32, [1, 2])], &[good()])?;
    must_not_bind(engine, &[good()], &[memory(DType::F32, [2, 1])])
}
