//! Origins, edges and delays, rule by rule.

mod support;

use support::{Script, row};
use veracity_trace::{
    Birth, Closed, Edge, EdgeProblemKind, Graph, NodeId, Origin, PortId, SiteId, ViewId,
};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const C: NodeId = NodeId(2);
const IN: PortId = PortId(0);
const OUT: PortId = PortId(1);
const LINE: SiteId = SiteId(1000);

/// Runs a node with one input and one output.
fn run(script: &mut Script, node: NodeId, input: ViewId) -> ViewId {
    finish(script, node, input, false).0
}

fn finish(script: &mut Script, node: NodeId, input: ViewId, light: bool) -> (ViewId, Closed) {
    let execution = script.tape.open(node, light);
    script.tape.mark_input(execution, IN, input);
    let output = script.compute(&[input]);
    script.tape.mark_output(execution, OUT, output, LINE);
    (output, script.tape.close(execution))
}

fn edge(source: NodeId, target: NodeId, delay: u32) -> Edge {
    Edge { source: (source, OUT), target: (target, IN), delay }
}

/// Assigns an output to a part of a larger buffer; gives the buffer and the part.
fn assign(script: &mut Script, out: ViewId) -> (ViewId, ViewId) {
    let old = script.old();
    let buffer = script.tape.view(script.storage(old), &row(0, 24));
    let part = script.tape.view(script.storage(old), &row(8, 8));
    script.tell(&[buffer, out], &[0], &[], |call| {
        call.identity = Some(1);
        call.part = Some(part);
    });
    (buffer, part)
}

/// Does something with an output; gives the tensor to look at.
type Plot = fn(&mut Script, ViewId) -> ViewId;

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn an_origin_holds_until_the_memory_is_written() {
    let origin = Some(Origin { node: A, execution: 0, port: OUT });
    let cases: [(&str, Plot, bool); 13] = [
        ("the output", |_, out| out, true),
        (
            "the output after a write",
            |script, out| {
                script.write(&[out]);
                out
            },
            false,
        ),
        (
            "the output after a write to a part of it",
            |script, out| {
                let part = script.part(out, 0, 1);
                script.write(&[part]);
                out
            },
            false,
        ),
        ("a part of the output", |script, out| script.part(out, 0, 4), false),
        (
            "a clone",
            |script, out| script.compute_with(&[out], |call| call.identity = Some(0)),
            true,
        ),
        (
            "a clone after a write to the output",
            |script, out| {
                let copy = script.compute_with(&[out], |call| call.identity = Some(0));
                script.write(&[out]);
                copy
            },
            true,
        ),
        (
            "a buffer that it was copied into",
            |script, out| {
                let buffer = script.old();
                script.copy(buffer, out);
                buffer
            },
            true,
        ),
        (
            "a larger buffer that it was copied into",
            |script, out| {
                let buffer = script.old();
                let mut rows = row(0, 8);
                rows.sizes.insert(0, 2);
                rows.strides.insert(0, 8);
                let buffer = script.tape.view(script.storage(buffer), &rows);
                script.copy(buffer, out);
                buffer
            },
            false,
        ),
        ("a part that it was assigned to", |script, out| assign(script, out).1, true),
        ("a buffer that it was assigned to a part of", |script, out| assign(script, out).0, false),
        (
            "a part that it was assigned to, after a write beside it",
            |script, out| {
                let (buffer, part) = assign(script, out);
                let beside = script.tape.view(script.storage(buffer), &row(0, 8));
                script.write(&[beside]);
                part
            },
            true,
        ),
        (
            "a part that it was assigned to, after a write that touches it",
            |script, out| {
                let (buffer, part) = assign(script, out);
                let across = script.tape.view(script.storage(buffer), &row(0, 9));
                script.tell(&[buffer], &[0], &[], |call| call.part = Some(across));
                part
            },
            false,
        ),
        ("a computed value", |script, out| script.compute(&[out]), false),
    ];
    for (name, plot, holds) in cases {
        let mut script = Script::default();
        let x = script.old();
        let out = run(&mut script, A, x);
        let view = plot(&mut script, out);
        assert_eq!(script.tape.origin(view), origin.filter(|_| holds), "{name}");
    }
}

#[test]
fn a_mirror_has_the_origin_that_it_was_given() {
    let mut script = Script::default();
    let x = script.old();
    let out = run(&mut script, A, x);
    let mirror = script.old();
    script.tape.adopt_origin(out, mirror);
    assert_eq!(script.tape.origin(mirror).map(|origin| origin.node), Some(A));
}

#[test]
fn an_output_is_the_value_at_its_mark() {
    let mut script = Script::default();
    let x = script.old();
    let execution = script.tape.open(A, false);
    script.tape.mark_input(execution, IN, x);
    let out = script.compute(&[x]);
    script.tape.mark_output(execution, OUT, out, LINE);
    script.write(&[out]);
    script.tape.close(execution);
    assert_eq!(script.tape.origin(out), None, "the memory has another value by now");
}

/// Does something with an output and a copy of it.
type Happening = fn(&mut Script, ViewId, ViewId);

#[test]
fn a_copy_is_the_output_even_when_it_was_made_before_the_mark() {
    let cases: [(&str, Happening, bool); 3] = [
        ("nothing", |_, _, _| (), true),
        (
            "the copy is written",
            |script, _, copy| {
                script.write(&[copy]);
            },
            false,
        ),
        (
            "the output is written before its mark",
            |script, out, _| {
                script.write(&[out]);
            },
            false,
        ),
    ];
    for (name, happens, holds) in cases {
        let mut script = Script::default();
        let (x, buffer) = (script.old(), script.old());
        let execution = script.tape.open(A, false);
        script.tape.mark_input(execution, IN, x);
        let out = script.compute(&[x]);
        script.copy(buffer, out);
        happens(&mut script, out, buffer);
        script.tape.mark_output(execution, OUT, out, LINE);
        script.tape.close(execution);
        let origin = Some(Origin { node: A, execution: 0, port: OUT });
        assert_eq!(script.tape.origin(buffer), origin.filter(|_| holds), "{name}");
    }
}

#[test]
fn an_input_says_whether_it_is_an_output_or_was_computed_from_one() {
    let mut script = Script::default();
    let x = script.old();
    let (out, first) = finish(&mut script, A, x, false);
    assert_eq!((first.inputs[0].origin, first.inputs[0].glue), (None, None));
    let (_, direct) = finish(&mut script, B, out, false);
    assert_eq!(direct.inputs[0].origin, Some(Origin { node: A, execution: 0, port: OUT }));
    assert_eq!(direct.inputs[0].glue, None);
    let line = SiteId(script.calls + 1);
    let glue = script.compute(&[out]);
    let (_, computed) = finish(&mut script, C, glue, false);
    assert_eq!((computed.inputs[0].origin, computed.inputs[0].glue), (None, Some(line)));
}

/// Ticks of a pipeline: the graph that they amount to.
type Ticks = fn(&mut Script);

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn the_delay_is_the_number_of_ticks_between_output_and_input() {
    let cases: [(&str, Ticks, Vec<Edge>); 7] = [
        (
            "an earlier node in the same tick",
            |script| {
                for _ in 0..3 {
                    let x = script.old();
                    let a = run(script, A, x);
                    run(script, B, a);
                }
            },
            vec![edge(A, B, 0)],
        ),
        (
            "a node's own output",
            |script| {
                let mut state = script.old();
                for _ in 0..3 {
                    state = run(script, A, state);
                }
            },
            vec![edge(A, A, 1)],
        ),
        (
            "a node's own output of two ticks ago",
            |script| {
                let mut states = vec![script.old(), script.old()];
                for tick in 0..4 {
                    let next = run(script, A, states[tick]);
                    states.push(next);
                }
            },
            vec![edge(A, A, 2)],
        ),
        (
            "a later node in the tick before",
            |script| {
                let mut back = script.old();
                for _ in 0..3 {
                    run(script, A, back);
                    let x = script.old();
                    back = run(script, B, x);
                }
            },
            vec![edge(B, A, 1)],
        ),
        (
            "an earlier node in the tick before",
            |script| {
                let mut before = script.old();
                for _ in 0..3 {
                    let x = script.old();
                    let a = run(script, A, x);
                    run(script, B, before);
                    before = a;
                }
            },
            vec![edge(A, B, 1)],
        ),
        (
            "a node that starts late",
            |script| {
                let mut back = script.old();
                for tick in 0..5 {
                    let a = run(script, A, back);
                    back = a;
                    if tick >= 2 {
                        run(script, B, a);
                    }
                }
            },
            vec![edge(A, A, 1), edge(A, B, 0)],
        ),
        (
            "a late node that feeds an early one",
            |script| {
                let mut back = script.old();
                for tick in 0..6 {
                    run(script, A, back);
                    if tick >= 2 {
                        let x = script.old();
                        back = run(script, B, x);
                    }
                }
            },
            vec![edge(B, A, 1)],
        ),
    ];
    for (name, ticks, expected) in cases {
        let mut script = Script::default();
        ticks(&mut script);
        let Graph { edges, problems, .. } = script.tape.graph();
        assert_eq!((edges, problems), (expected, vec![]), "{name}");
    }
}

#[test]
fn nodes_that_run_into_each_other_are_counted_when_the_consumer_ends() {
    let mut script = Script::default();
    let mut before = script.old();
    for _ in 0..4 {
        let consumer = script.tape.open(B, false);
        script.tape.mark_input(consumer, IN, before);
        let result = script.compute(&[before]);
        let x = script.old();
        before = run(&mut script, A, x);
        script.tape.mark_output(consumer, OUT, result, LINE);
        script.tape.close(consumer);
    }
    let graph = script.tape.graph();
    assert_eq!((graph.edges, graph.order), (vec![edge(A, B, 1)], vec![A, B]));
}

#[test]
fn a_source_that_is_not_the_same_every_time_is_a_problem() {
    let first = (A, OUT);
    let cases: [(&str, Ticks, EdgeProblemKind); 3] = [
        (
            "another age",
            |script| {
                let (x, y) = (script.old(), script.old());
                let old = run(script, A, x);
                run(script, B, old);
                run(script, A, y);
                run(script, B, old);
            },
            EdgeProblemKind::DelayVaries { source: first, delays: (0, 1), executions: (0, 1) },
        ),
        (
            "another output",
            |script| {
                let (x, y) = (script.old(), script.old());
                let a = run(script, A, x);
                run(script, B, a);
                let c = run(script, C, y);
                run(script, B, c);
            },
            EdgeProblemKind::SourceVaries { sources: (first, (C, OUT)), executions: (0, 1) },
        ),
        (
            "no output",
            |script| {
                let (x, y) = (script.old(), script.old());
                let a = run(script, A, x);
                run(script, B, a);
                run(script, A, y);
                let z = script.old();
                run(script, B, z);
            },
            EdgeProblemKind::SourceLost { source: first, execution: 1 },
        ),
    ];
    for (name, ticks, expected) in cases {
        let mut script = Script::default();
        ticks(&mut script);
        let graph = script.tape.graph();
        let problems: Vec<_> =
            graph.problems.iter().map(|problem| (problem.target, problem.kind)).collect();
        assert_eq!(problems, [((B, IN), expected)], "{name}");
        assert!(!graph.edges.iter().any(|edge| edge.target == (B, IN)), "{name}");
    }
}

#[test]
fn what_light_executions_publish_is_no_evidence() {
    let mut script = Script::default();
    let mut state = script.old();
    for _ in 0..2 {
        state = run(&mut script, A, state);
    }
    for _ in 0..3 {
        (state, _) = finish(&mut script, A, state, true);
    }
    let unknown = script.tensor(Birth::Unseen);
    run(&mut script, A, unknown);
    let graph = script.tape.graph();
    assert_eq!((graph.edges, graph.problems), (vec![edge(A, A, 1)], vec![]));
}

#[test]
fn what_was_published_before_calls_went_unseen_is_no_evidence() {
    let mut script = Script::default();
    let x = script.old();
    let out = run(&mut script, A, x);
    run(&mut script, B, out);
    script.tape.resume();
    // Somebody may have written into it in the meantime: this is not a delay of one tick.
    run(&mut script, A, x);
    run(&mut script, B, out);
    let graph = script.tape.graph();
    assert_eq!(graph.edges, [edge(A, B, 0)]);
    assert_eq!(graph.problems, []);
}

#[test]
fn an_output_that_is_read_on_two_passes_is_told_apart() {
    let mut script = Script::default();
    let x = script.old();
    let out = run(&mut script, A, x);
    run(&mut script, B, out);
    assert_eq!(script.tape.graph().reused, []);
    run(&mut script, B, out);
    assert_eq!(script.tape.graph().reused, [edge(A, B, 0)]);
}
