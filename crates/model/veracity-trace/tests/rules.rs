//! What belongs to a program, and what is told about it, rule by rule.

mod support;

use support::{Script, row};
use veracity_trace::{
    Birth, ExecutionId, NodeId, OpId, Operand, PortId, Problem, SiteId, Slice, Step, ViewId,
};

const NODE: NodeId = NodeId(0);
const OTHER: NodeId = NodeId(1);
const X: PortId = PortId(0);
const Z: PortId = PortId(1);
const OUT: PortId = PortId(9);
const LINE: SiteId = SiteId(1000);

/// The lines of a program, in order, with `view` and `copy` for the steps that are no calls.
fn lines(slice: &Slice) -> Vec<String> {
    let name = |step: &Step| match step {
        Step::Call { site, .. } => site.0.to_string(),
        Step::View { .. } => "view".to_owned(),
        Step::Copy { .. } => "copy".to_owned(),
    };
    slice.steps.iter().map(name).collect()
}

/// What the call at a line works on.
fn operands(slice: &Slice, line: u32) -> Vec<Operand> {
    let at_line = |step: &Step| match step {
        Step::Call { site, operands, .. } if site.0 == line => Some(operands.clone()),
        _ => None,
    };
    slice.steps.iter().find_map(at_line).expect("the line is in the program")
}

/// An execution with one input of eight elements.
fn begun() -> (Script, ExecutionId, ViewId) {
    let mut script = Script::default();
    let x = script.old();
    let execution = script.tape.open(NODE, false);
    script.tape.mark_input(execution, X, x);
    (script, execution, x)
}

#[test]
fn only_calls_that_lead_to_an_output_are_in_the_program() {
    let (mut script, node, x) = begun();
    let a = script.compute(&[x]);
    let _dead = script.compute(&[a]);
    let b = script.compute(&[a, x]);
    script.tape.mark_output(node, OUT, b, LINE);
    let closed = script.tape.close(node);
    assert_eq!(lines(&closed.slice), ["1", "3"]);
    let first = Operand::Step { step: 0, output: 0 };
    assert_eq!(operands(&closed.slice, 3), [first, Operand::Input(0)]);
    assert_eq!(closed.slice.outputs, [(OUT, Operand::Step { step: 1, output: 0 })]);
    assert_eq!(closed.problems, []);
}

#[test]
fn a_call_that_no_input_reaches_gives_a_constant() {
    let (mut script, node, x) = begun();
    let weight = script.old();
    let scaled = script.compute(&[weight]);
    let reached = script.tell(&[scaled, x], &[], &[], |_| ());
    assert_eq!(reached.constants, [0], "the front keeps what the input meets");
    let a = script.compute(&[x, scaled]);
    script.tape.mark_output(node, OUT, a, LINE);
    let slice = script.tape.close(node).slice;
    assert_eq!(lines(&slice), ["3"]);
    assert_eq!(slice.constants[0].storage, script.storage(scaled));
}

#[test]
fn a_call_outside_of_every_execution_is_no_event() {
    let mut script = Script::default();
    let weight = script.old();
    assert_eq!(script.tell(&[weight], &[], &[], |_| ()).event, None);
}

#[test]
fn a_write_through_an_alias_that_nobody_saw_is_in_the_program() {
    let (mut script, node, x) = begun();
    let a = script.compute(&[x]);
    let middle = script.part(a, 2, 3);
    script.write(&[middle, x]);
    let b = script.compute(&[a]);
    script.tape.mark_output(node, OUT, b, LINE);
    let closed = script.tape.close(node);
    assert_eq!(lines(&closed.slice), ["1", "view", "2", "3"]);
    let Step::View { base, base_geometry, geometry, .. } = &closed.slice.steps[1] else {
        panic!("a view comes second")
    };
    assert_eq!(*base, Operand::Step { step: 0, output: 0 });
    assert_eq!(base_geometry.as_deref(), Some(&row(0, 8)));
    assert_eq!(**geometry, row(2, 3));
}

#[test]
fn a_part_of_an_input_is_taken_from_the_input_even_when_it_was_made_before_the_mark() {
    let (mut script, node, x) = begun();
    let part = script.part(x, 4, 2);
    let a = script.compute(&[part]);
    script.tape.mark_output(node, OUT, a, LINE);
    let closed = script.tape.close(node);
    assert_eq!(lines(&closed.slice), ["view", "1"]);
    assert_eq!(closed.problems, []);
}

#[test]
fn an_input_seen_as_another_type_of_elements_is_still_the_input() {
    let (mut script, node, x) = begun();
    let (storage, _) = script.tape.geometry(x);
    let mut geometry = row(0, 8);
    geometry.element += 1;
    let bits = script.tape.view(storage, &geometry);
    script.tell(&[x], &[], &[bits], |_| ());
    let a = script.compute(&[bits]);
    script.tape.mark_output(node, OUT, a, LINE);
    let closed = script.tape.close(node);
    assert_eq!(closed.problems, []);
    assert_eq!(lines(&closed.slice), ["1", "2"]);
    assert_eq!(operands(&closed.slice, 1), [Operand::Input(0)]);
}

#[test]
fn a_mark_hides_what_came_before_it() {
    let (mut script, node, x) = begun();
    let a = script.compute(&[x]);
    script.tape.mark_input(node, Z, a);
    let b = script.compute(&[a]);
    script.tape.mark_output(node, OUT, b, LINE);
    let closed = script.tape.close(node);
    assert_eq!(lines(&closed.slice), ["2"]);
    assert_eq!(closed.slice.inputs.iter().map(|input| input.port).collect::<Vec<_>>(), [Z]);
    let used: Vec<bool> = closed.inputs.iter().map(|fact| fact.used).collect();
    assert_eq!(used, [false, true]);
}

#[test]
fn inputs_and_constants_that_the_program_writes_are_declared_as_written() {
    let (mut script, node, x) = begun();
    let (table, weight) = (script.old(), script.old());
    script.write(&[table, x]);
    script.write(&[x, table, weight]);
    script.tape.mark_output(node, OUT, x, LINE);
    let slice = script.tape.close(node).slice;
    assert!(slice.inputs[0].written);
    let written: Vec<(bool, u32)> =
        slice.constants.iter().map(|constant| (constant.written, constant.count)).collect();
    assert_eq!(written, [(true, 0), (false, 0)]);
}

#[test]
fn a_constant_that_changes_unseen_by_the_node_is_another_constant() {
    let (mut script, node, x) = begun();
    let weight = script.old();
    let a = script.compute(&[x, weight]);
    assert!(script.tape.must_snapshot(weight, &[weight]), "the node read the old content");
    script.write(&[weight]);
    let b = script.compute(&[a, weight]);
    script.tape.mark_output(node, OUT, b, LINE);
    let slice = script.tape.close(node).slice;
    assert_eq!(slice.constants.iter().map(|constant| constant.count).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_written_constant_seen_through_several_views_is_one_flat_storage() {
    let (mut script, node, x) = begun();
    let table = script.old();
    let (head, tail) = (script.part(table, 0, 4), script.part(table, 4, 4));
    script.write(&[head, x]);
    let a = script.compute(&[x, tail, table]);
    script.tape.mark_output(node, OUT, a, LINE);
    let slice = script.tape.close(node).slice;
    assert_eq!(slice.constants.len(), 1);
    assert_eq!(slice.constants[0].view, None);
    assert_eq!(lines(&slice), ["view", "1", "view", "view", "2"]);
}

#[test]
fn memory_that_is_replaced_before_it_is_read_has_no_content_and_no_past() {
    let (mut script, node, x) = begun();
    let scratch = script.tensor(Birth::Unseen);
    script.write(&[scratch, x]);
    script.copy(scratch, x);
    let a = script.compute(&[scratch]);
    script.tape.mark_output(node, OUT, a, LINE);
    let closed = script.tape.close(node);
    assert_eq!(lines(&closed.slice), ["2", "3"], "the first write is dead");
    assert!(!closed.slice.constants[0].read);
    assert_eq!(closed.problems, []);
}

#[test]
fn an_output_that_is_written_later_is_copied_at_its_mark() {
    let (mut script, node, x) = begun();
    let a = script.compute(&[x]);
    script.tape.mark_output(node, OUT, a, LINE);
    script.write(&[a, x]);
    script.tape.mark_output(node, Z, a, LINE);
    let slice = script.tape.close(node).slice;
    assert_eq!(lines(&slice), ["1", "copy", "2"]);
    assert_eq!(slice.outputs[0], (OUT, Operand::Step { step: 1, output: 0 }));
    assert_eq!(slice.outputs[1], (Z, Operand::Step { step: 0, output: 0 }));
}

#[test]
fn a_result_that_could_share_memory_stays_separate_when_a_write_would_show() {
    for (name, writes_result) in [("the result", true), ("the argument", false)] {
        let (mut script, node, x) = begun();
        let a = script.compute(&[x]);
        let b = script.compute_with(&[a], |call| call.may_alias = true);
        script.write(&[if writes_result { b } else { a }, x]);
        let c = script.compute(&[a, b]);
        script.tape.mark_output(node, OUT, c, LINE);
        let slice = script.tape.close(node).slice;
        assert_eq!(lines(&slice), ["1", "2", "copy", "3", "4"], "{name} is written");
    }
    let (mut script, node, x) = begun();
    let a = script.compute_with(&[x], |call| call.may_alias = true);
    script.tape.mark_output(node, OUT, a, LINE);
    assert_eq!(lines(&script.tape.close(node).slice), ["1"], "nothing is written");
}

/// Tells calls on the input; gives the output.
type Plot = fn(&mut Script, ExecutionId, ViewId) -> ViewId;

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_problem_is_told_with_its_line() {
    let cases: [(&str, Plot, Problem); 8] = [
        (
            "a value of a node that still runs",
            |script, _, x| {
                let other = script.tape.open(OTHER, false);
                let y = script.old();
                script.tape.mark_input(other, X, y);
                let theirs = script.compute(&[y]);
                script.compute(&[x, theirs])
            },
            Problem::Mixed { site: SiteId(2), other: OTHER },
        ),
        (
            "an output that no input reaches",
            |script, _, _| script.old(),
            Problem::OutputUntraced { port: OUT },
        ),
        (
            "a value of a finished node",
            |script, _, x| {
                let other = script.tape.open(OTHER, false);
                let y = script.old();
                script.tape.mark_input(other, X, y);
                let theirs = script.compute(&[y]);
                script.tape.abandon(other);
                script.compute(&[x, theirs])
            },
            Problem::UnmarkedUse { site: SiteId(2), origin_node: Some(OTHER) },
        ),
        (
            "memory that nobody saw being made",
            |script, _, x| {
                let unseen = script.tensor(Birth::Unseen);
                script.compute(&[x, unseen])
            },
            Problem::BornUnseen { site: SiteId(1) },
        ),
        (
            "a tensor that is an input only in part",
            |script, node, x| {
                let y = script.old();
                let head = script.part(y, 0, 4);
                script.tape.mark_input(node, Z, head);
                script.compute(&[x, y])
            },
            Problem::PartlyInput { site: SiteId(1), port: Z },
        ),
        (
            "a write to one of two inputs on the same memory",
            |script, node, x| {
                let head = script.part(x, 0, 4);
                script.tape.mark_input(node, Z, head);
                script.write(&[head]);
                script.compute(&[x])
            },
            Problem::InputsOverlap { site: SiteId(1), ports: (Z, X) },
        ),
        (
            "a write to an input that shows one place twice",
            |script, node, x| {
                let y = script.old();
                let mut twice = row(0, 4);
                twice.sizes.insert(0, 2);
                twice.strides.insert(0, 0);
                let twice = script.tape.view(script.storage(y), &twice);
                script.tape.mark_input(node, Z, twice);
                let head = script.part(y, 0, 4);
                script.write(&[head, x]);
                script.compute(&[twice])
            },
            Problem::InputsOverlap { site: SiteId(1), ports: (Z, Z) },
        ),
        (
            "a random draw",
            |script, _, x| script.compute_with(&[x], |call| call.blind = true),
            Problem::Random { site: SiteId(1), op: OpId(1) },
        ),
    ];
    for (name, plot, expected) in cases {
        let (mut script, node, x) = begun();
        let output = plot(&mut script, node, x);
        script.tape.mark_output(node, OUT, output, LINE);
        assert_eq!(script.tape.close(node).problems, [expected], "{name}");
    }
}

#[test]
fn what_looks_like_a_problem_and_is_none_is_not_told() {
    let cases: [(&str, Plot); 6] = [
        ("two inputs on the same memory that nobody writes", |script, node, x| {
            let head = script.part(x, 0, 4);
            script.tape.mark_input(node, Z, head);
            script.compute(&[x, head])
        }),
        ("two halves of one storage, one of them written", |script, node, x| {
            let y = script.old();
            let (head, tail) = (script.part(y, 0, 4), script.part(y, 4, 4));
            script.tape.mark_input(node, Z, head);
            script.tape.mark_input(node, PortId(2), tail);
            script.write(&[head, x]);
            script.compute(&[head, tail])
        }),
        ("a problem on a line that leads to no output", |script, _, x| {
            let unseen = script.tensor(Birth::Unseen);
            script.compute(&[x, unseen]);
            script.compute_with(&[x], |call| call.blind = true);
            script.compute(&[x])
        }),
        ("a buffer of which another node filled another part", |script, _, x| {
            let buffer = script.old();
            let (head, tail) = (script.part(buffer, 0, 4), script.part(buffer, 4, 4));
            let other = script.tape.open(OTHER, false);
            let y = script.old();
            script.tape.mark_input(other, X, y);
            script.write(&[head, y]);
            script.tape.abandon(other);
            script.write(&[tail, x]);
            script.compute(&[tail])
        }),
        ("a buffer of another node that is replaced first", |script, _, x| {
            let other = script.tape.open(OTHER, false);
            let y = script.old();
            script.tape.mark_input(other, X, y);
            let buffer = script.compute(&[y]);
            script.tape.abandon(other);
            script.copy(buffer, x);
            script.compute(&[buffer])
        }),
        ("a value of another node that is marked", |script, node, x| {
            let other = script.tape.open(OTHER, false);
            let y = script.old();
            script.tape.mark_input(other, X, y);
            let theirs = script.compute(&[y]);
            script.tape.mark_input(node, Z, theirs);
            script.compute(&[x, theirs])
        }),
    ];
    for (name, plot) in cases {
        let (mut script, node, x) = begun();
        let output = plot(&mut script, node, x);
        script.tape.mark_output(node, OUT, output, LINE);
        assert_eq!(script.tape.close(node).problems, [], "{name}");
    }
}

#[test]
fn what_a_node_left_in_its_own_buffer_is_no_value_of_another_node() {
    let mut script = Script::default();
    let buffer = script.old();
    for _ in 0..2 {
        let x = script.old();
        let node = script.tape.open(NODE, false);
        script.tape.mark_input(node, X, x);
        script.write(&[buffer, x]);
        script.tape.mark_output(node, OUT, buffer, LINE);
        assert_eq!(script.tape.close(node).problems, []);
    }
}

#[test]
fn a_mark_can_be_taken_back_until_the_memory_is_written() {
    let (mut script, node, x) = begun();
    let (kept, buffer) = (script.old(), script.old());
    script.tape.mark_input(node, Z, buffer);
    script.tape.mark_input(node, PortId(2), kept);
    let a = script.compute(&[x, buffer]);
    script.write(&[kept, a]);
    script.tape.mark_output(node, OUT, kept, LINE);
    assert!(script.tape.drop_input(node, Z));
    assert!(!script.tape.drop_input(node, PortId(2)));
    let closed = script.tape.close(node);
    assert_eq!(operands(&closed.slice, 1), [Operand::Input(0), Operand::Constant(0)]);
    let ports: Vec<PortId> = closed.inputs.iter().map(|fact| fact.port).collect();
    assert_eq!(ports, [X, PortId(2)]);
    assert!(script.tape.must_snapshot(buffer, &[buffer]), "it was read as a constant");
}

#[test]
fn a_snapshot_is_taken_when_a_write_would_lose_a_constant() {
    let (mut script, _, x) = begun();
    let (buffer, weight, made) = (script.old(), script.old(), script.compute(&[x]));
    script.compute(&[x, weight]);
    let beside = script.old();
    let tape = &script.tape;
    assert!(tape.must_snapshot(weight, &[weight]), "read as a constant");
    assert!(tape.must_snapshot(buffer, &[buffer, x]), "the write is in the program");
    assert!(tape.must_snapshot(beside, &[beside]), "it may be carried over from the last pass");
    assert!(!tape.must_snapshot(x, &[x, weight]), "an input");
    assert!(!tape.must_snapshot(made, &[made, x]), "made in the program");
    script.write(&[buffer, x]);
    assert!(!script.tape.must_snapshot(buffer, &[buffer, x]), "the content before is kept already");
}

#[test]
fn what_follows_from_inputs_is_known_for_each_tensor() {
    let (mut script, node, x) = begun();
    let a = script.compute_with(&[x], |call| call.ragged = true);
    let b = script.compute(&[a]);
    let weight = script.old();
    let number = {
        let storage = script.tape.storage(Birth::Seen);
        let mut scalar = row(0, 1);
        scalar.sizes.clear();
        scalar.strides.clear();
        script.tape.view(storage, &scalar)
    };
    script.tell(&[a], &[], &[number], |_| ());
    let tape = &mut script.tape;
    assert!([x, a, b, number].iter().all(|view| tape.is_traced(*view)));
    assert!(!tape.is_traced(weight));
    assert!(!tape.is_derived(x), "a mark alone computes nothing");
    assert!(tape.is_derived(b) && !tape.is_derived(weight));
    assert!(tape.is_ragged(b) && !tape.is_ragged(x));
    assert!(!tape.is_ragged(number), "a number has no size");
    assert!(tape.escape(b, 7, LINE, 42));
    assert!(!tape.escape(weight, 7, LINE, 42));
    tape.mark_output(node, OUT, b, LINE);
    let closed = tape.close(node);
    assert_eq!(closed.escapes.len(), 1);
    assert_eq!((closed.escapes[0].view, closed.escapes[0].fingerprint), (b, 42));
    assert!(!tape.is_traced(b) && tape.is_derived(b));
}

#[test]
fn events_are_released_when_no_open_execution_can_need_them() {
    let (mut script, first, x) = begun();
    let a = script.compute(&[x]);
    let second = script.tape.open(OTHER, false);
    script.tape.mark_input(second, X, a);
    let b = script.compute(&[a]);
    script.tape.mark_output(first, OUT, a, LINE);
    script.tape.mark_output(second, OUT, b, LINE);
    assert_eq!(script.tape.close(first).released.0, 0, "it is held");
    assert_eq!(script.tape.let_go(first).0, 1);
    assert!(script.tape.has_open());
    let last = script.tape.close(second);
    assert_eq!((last.released.0, lines(&last.slice)), (1, vec!["2".to_owned()]));
    assert_eq!(script.tape.let_go(second).0, 2);
    assert!(!script.tape.is_busy());
}

#[test]
fn memory_may_go_while_the_program_needs_it() {
    let (mut script, node, x) = begun();
    let a = script.compute(&[x]);
    let b = script.compute(&[a]);
    script.tape.forget(script.storage(a));
    script.tape.mark_output(node, OUT, b, LINE);
    assert_eq!(lines(&script.tape.close(node).slice), ["1", "2"]);
}

#[test]
fn a_light_execution_records_no_calls() {
    let mut script = Script::default();
    let x = script.old();
    let node = script.tape.open(NODE, true);
    script.tape.mark_input(node, X, x);
    let a = script.tensor(Birth::Seen);
    assert_eq!(script.tell(&[x], &[], &[a], |_| ()).event, None);
    script.tape.mark_output(node, OUT, a, LINE);
    let closed = script.tape.close(node);
    assert!(closed.slice.steps.is_empty() && closed.problems.is_empty());
    assert!(script.tape.origin(a).is_some());
}
