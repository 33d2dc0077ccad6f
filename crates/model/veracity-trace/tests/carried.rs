//! What one execution leaves to the next, found without being declared.

#[expect(dead_code, reason = "the calls of other tests; not all of them are needed here")]
mod support;

use support::Script;
use veracity_trace::{
    Birth, Carry, DoubtKind, ExecutionId, NodeId, Operand, PortId, SiteId, ViewId,
};

const NODE: NodeId = NodeId(0);
const X: PortId = PortId(0);
const OUT: PortId = PortId(9);
const LINE: SiteId = SiteId(1000);

/// Code that is run once a pass: it gets its input and gives its output. Its calls have the same
/// lines on every pass.
type Code<'a> = &'a mut dyn FnMut(&mut Script, ViewId) -> ViewId;
type OwnedCode = Box<dyn FnMut(&mut Script, ViewId) -> ViewId>;

fn pass(script: &mut Script, code: Code<'_>) -> ExecutionId {
    let x = script.old();
    script.calls = 0;
    let execution = script.tape.open(NODE, false);
    script.tape.mark_input(execution, X, x);
    let y = code(script, x);
    script.tape.mark_output(execution, OUT, y, LINE);
    script.tape.close(execution);
    execution
}

/// Three passes, and what the last of them has from the one before.
fn carried(code: Code<'_>) -> (Script, ExecutionId, Carry) {
    let mut script = Script::default();
    let first = pass(&mut script, code);
    let previous = pass(&mut script, code);
    let latest = pass(&mut script, code);
    let found = script.tape.carried(&[first, previous, latest]);
    (script, latest, found)
}

fn old(slot: &mut Option<ViewId>, script: &mut Script) -> ViewId {
    *slot.get_or_insert_with(|| script.old())
}

/// A clock, a counter and a table, each asked by Python on every pass.
#[test]
fn what_leaves_for_python_is_noticed_where_it_is_of_state() {
    let (mut clock, mut counter, mut table) = (None, None, None);
    let mut cases: Vec<(&str, usize, OwnedCode)> = vec![
        (
            "a clock",
            1,
            Box::new(move |script, x| {
                let state = old(&mut clock, script);
                let now = script.compute(&[state]);
                clock = Some(now);
                let late = script.compute(&[now]);
                script.tape.escape(late, 3, LINE, 0);
                script.compute(&[x])
            }),
        ),
        (
            "a counter in place",
            1,
            Box::new(move |script, x| {
                let state = old(&mut counter, script);
                script.write(&[state]);
                script.tape.escape(state, 3, LINE, 0);
                script.compute(&[x])
            }),
        ),
        (
            "a table",
            0,
            Box::new(move |script, x| {
                let table = old(&mut table, script);
                let entry = script.compute(&[table]);
                script.tape.escape(entry, 3, LINE, 0);
                script.compute(&[x])
            }),
        ),
    ];
    for (name, count, code) in &mut cases {
        let (_, _, found) = carried(code.as_mut());
        assert_eq!(found.escapes.len(), *count, "{name}: {found:?}");
    }
}

/// What others make between passes is noted, and neither a state nor a doubt.
#[test]
fn what_is_made_anew_between_passes_is_noted() {
    let mut script = Script::default();
    let mut passes = Vec::new();
    for _ in 0..3 {
        let made = script.tensor(Birth::Seen);
        let mut code = move |script: &mut Script, x: ViewId| script.compute(&[x, made]);
        passes.push(pass(&mut script, &mut code));
    }
    let found = script.tape.carried(&passes);
    assert_eq!((found.states.len(), found.doubts.len()), (0, 0), "{found:?}");
    assert_eq!(found.made_anew.len(), 1, "{found:?}");
}

#[test]
fn what_the_last_pass_made_wrote_got_or_gave_is_a_state() {
    let (mut made, mut written, mut got, mut given) = (None, None, None, None);
    let (mut clock, mut counter, mut flag) = (None, None, None);
    let mut cases: Vec<(&str, OwnedCode)> = vec![
        (
            "made",
            Box::new(move |script, x| {
                let state = old(&mut made, script);
                let y = script.compute(&[x, state]);
                made = Some(script.compute(&[y]));
                y
            }),
        ),
        (
            "written in place",
            Box::new(move |script, x| {
                let state = old(&mut written, script);
                let y = script.compute(&[x, state]);
                script.write(&[state, y]);
                y
            }),
        ),
        (
            "its input",
            Box::new(move |script, x| {
                let state = old(&mut got, script);
                got = Some(x);
                script.compute(&[x, state])
            }),
        ),
        (
            "its output",
            Box::new(move |script, x| {
                let state = old(&mut given, script);
                let y = script.compute(&[x, state]);
                given = Some(y);
                y
            }),
        ),
        (
            "a clock that no input reaches",
            Box::new(move |script, x| {
                let state = old(&mut clock, script);
                let now = script.compute(&[state]);
                clock = Some(now);
                script.compute(&[x, now])
            }),
        ),
        (
            "a counter in place that no input reaches",
            Box::new(move |script, x| {
                let state = old(&mut counter, script);
                script.write(&[state]);
                script.compute(&[x, state])
            }),
        ),
        (
            "a flag that is made of nothing",
            Box::new(move |script, x| {
                let state = old(&mut flag, script);
                let y = script.compute(&[x, state]);
                flag = Some(script.compute(&[]));
                y
            }),
        ),
    ];
    for (name, code) in &mut cases {
        let (mut script, latest, found) = carried(code.as_mut());
        assert_eq!((found.states.len(), found.doubts.len()), (1, 0), "{name}: {found:?}");
        let ports = [(found.states[0].clone(), vec![(PortId(5), PortId(6))])];
        let program = script.tape.program_with(latest, &ports);
        let inputs: Vec<u32> = program.inputs.iter().map(|input| input.port.0).collect();
        assert!(inputs.contains(&5), "{name}: it is an input of the program");
        assert!(program.outputs.iter().any(|(port, _)| port.0 == 6), "{name}: and an output");
        assert!(program.constants.is_empty(), "{name}: no constant is left");
        script.tape.let_go(latest);
    }
}

#[test]
fn a_queue_moves_on_from_place_to_place() {
    let mut queue: Vec<ViewId> = Vec::new();
    let (mut script, latest, found) = carried(&mut |script, x| {
        if queue.is_empty() {
            queue = (0..3).map(|_| script.old()).collect();
        }
        queue.remove(0);
        queue.push(x);
        let all = queue.clone();
        script.compute(&all)
    });
    assert_eq!((found.states.len(), found.doubts.len()), (2, 0), "{found:?}");
    let ports: Vec<_> = found
        .states
        .iter()
        .zip(5..)
        .map(|(s, n)| (s.clone(), vec![(PortId(n), PortId(n + 10))]))
        .collect();
    let program = script.tape.program_with(latest, &ports);
    // The first place becomes what the second holds, the second what the input is.
    let inputs: Vec<u32> = program.inputs.iter().map(|input| input.port.0).collect();
    let of = |port: u32| program.outputs.iter().find(|(found, _)| found.0 == port).map(|(_, o)| *o);
    let place = |port: u32| Operand::Input(inputs.iter().position(|found| *found == port).unwrap());
    assert_eq!((of(15), of(16)), (Some(place(6)), Some(place(0))));
    script.tape.let_go(latest);
}

#[test]
fn what_is_the_same_memory_all_the_time_is_a_constant() {
    let (mut weight, mut table) = (None, None);
    let (_, _, found) = carried(&mut |script, x| {
        let weight = old(&mut weight, script);
        // Made on the first pass and kept: what it is made from never changes.
        let table = *table.get_or_insert_with(|| {
            let made = script.tensor(Birth::Seen);
            script.tell(&[], &[], &[made], |_| ());
            made
        });
        script.calls = 10;
        let scratch = script.tensor(Birth::Seen);
        script.tell(&[], &[], &[scratch], |_| ());
        script.write(&[scratch, x]);
        script.compute(&[x, weight, table, scratch])
    });
    assert_eq!(found, Carry::default());
}

#[test]
fn what_cannot_be_followed_is_a_doubt() {
    let (mut filled, mut outside, mut zero, mut bias) = (None, None, None, None);
    let mut cases: Vec<(&str, DoubtKind, OwnedCode)> = vec![
        (
            "the first pass fills it from its input",
            DoubtKind::FilledFromInput,
            Box::new(move |script, x| {
                let before = filled.replace(x).unwrap_or(x);
                script.compute(&[x, before])
            }),
        ),
        (
            "the first pass writes it by another name, and later ones do not",
            DoubtKind::FilledFromInput,
            Box::new(move |script, x| {
                let zero = old(&mut zero, script);
                script.write(&[zero, x]);
                let y = script.compute(&[bias.unwrap_or(zero)]);
                bias = Some(y);
                script.compute(&[y, zero])
            }),
        ),
    ];
    for (name, kind, code) in &mut cases {
        let (_, _, found) = carried(code.as_mut());
        assert_eq!(found.doubts.iter().map(|one| one.kind).collect::<Vec<_>>(), [*kind], "{name}");
    }
    // Glue: computed from the output after the pass.
    let mut script = Script::default();
    let mut step = |script: &mut Script| {
        let mut given = None;
        let state = *outside.get_or_insert_with(|| script.old());
        let id = pass(script, &mut |script, x| {
            let y = script.compute(&[x, state]);
            given = Some(y);
            y
        });
        outside = given.map(|y| script.compute(&[y]));
        id
    };
    let passes = [step(&mut script), step(&mut script), step(&mut script)];
    let found = script.tape.carried(&passes);
    assert_eq!(
        found.doubts.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [DoubtKind::MadeOutside]
    );
}

#[test]
fn a_state_that_is_written_between_passes_is_told_by_its_line() {
    let mut script = Script::default();
    let state = script.old();
    let mut code = |script: &mut Script, x: ViewId| {
        script.write(&[state, x]);
        script.compute(&[state])
    };
    script.write(&[state]); // before the first pass: that is how it begins
    let mut passes: Vec<_> = (0..3).map(|_| pass(&mut script, &mut code)).collect();
    let found = script.tape.carried(&passes);
    let spot = found.states[0].spot;
    assert_eq!(script.tape.written_between(&passes, spot), None);
    script.write(&[state]);
    passes.push(pass(&mut script, &mut code));
    assert!(script.tape.written_between(&passes, spot).is_some());
}

#[test]
fn a_history_that_began_with_one_tensor_is_not_filled_at_once() {
    let mut queue: Vec<ViewId> = Vec::new();
    let mut script = Script::default();
    let mut code = |script: &mut Script, x: ViewId| {
        if queue.is_empty() {
            queue = vec![script.old(); 3];
        }
        queue.remove(0);
        queue.push(x);
        let all = queue.clone();
        script.compute(&all)
    };
    let passes: Vec<_> = (0..4).map(|_| pass(&mut script, &mut code)).collect();
    let early = script.tape.carried(&passes[..2]);
    assert_eq!(early.doubts.iter().map(|d| d.kind).collect::<Vec<_>>(), [DoubtKind::NotFilled]);
    let late = script.tape.carried(&passes);
    assert_eq!((late.states.len(), late.doubts.len()), (2, 0), "{late:?}");
}

#[test]
fn a_value_that_is_under_way_for_several_passes_is_a_chain_of_states() {
    let mut line: Vec<ViewId> = Vec::new();
    let mut began: Vec<ViewId> = Vec::new();
    let mut script = Script::default();
    let mut code = |script: &mut Script, x: ViewId| {
        if line.is_empty() {
            line = (0..3).map(|_| script.old()).collect();
            began = line.clone();
        }
        line.push(x);
        let oldest = line.remove(0);
        script.compute(&[x, oldest])
    };
    let passes: Vec<_> = (0..5).map(|_| pass(&mut script, &mut code)).collect();
    // As long as no value has arrived all that is seen is memory that moves on.
    for seen in 2..4 {
        let early = script.tape.carried(&passes[..seen]);
        assert_eq!(early.doubts.iter().map(|d| d.kind).collect::<Vec<_>>(), [DoubtKind::NotFilled]);
        assert!(early.states.is_empty());
    }
    let found = script.tape.carried(&passes);
    assert_eq!((found.states.len(), found.doubts.len()), (1, 0), "{found:?}");
    let state = found.states[0].clone();
    let beginning: Vec<_> = state.beginning.iter().map(|one| one.map(|one| one.view)).collect();
    assert_eq!(beginning, began.iter().map(|one| Some(*one)).collect::<Vec<_>>());
    let ports: Vec<_> = (0..3).map(|n| (PortId(20 + n), PortId(30 + n))).collect();
    let program = script.tape.program_with(passes[4], &[(state, ports)]);
    let inputs: Vec<u32> = program.inputs.iter().map(|input| input.port.0).collect();
    let of = |port: u32| program.outputs.iter().find(|(found, _)| found.0 == port).map(|(_, o)| *o);
    let place = |port: u32| Operand::Input(inputs.iter().position(|found| *found == port).unwrap());
    assert_eq!((of(30), of(31), of(32)), (Some(place(21)), Some(place(22)), Some(place(0))));
}

#[test]
fn a_pass_that_was_not_recorded_leaves_a_gap_in_the_beginning() {
    let mut line: Vec<ViewId> = Vec::new();
    let mut script = Script::default();
    let mut code = |script: &mut Script, x: ViewId| {
        if line.is_empty() {
            line = vec![script.old(); 3];
        }
        line.push(x);
        let oldest = line.remove(0);
        script.compute(&[x, oldest])
    };
    let passes: Vec<_> = (0..4).map(|_| pass(&mut script, &mut code)).collect();
    let found = script.tape.carried(&[passes[0], passes[1], passes[3]]);
    assert_eq!((found.states.len(), found.doubts.len()), (1, 0), "{found:?}");
    let seen: Vec<_> = found.states[0].beginning.iter().map(Option::is_some).collect();
    assert_eq!(seen, [true, true, false]);
}

#[test]
fn a_value_that_is_read_after_unlike_numbers_of_passes_is_a_doubt() {
    let mut kept: Option<ViewId> = None;
    let mut number = 0;
    let mut script = Script::default();
    let mut code = |script: &mut Script, x: ViewId| {
        let state = old(&mut kept, script);
        number += 1;
        if number % 2 == 0 {
            kept = Some(x);
        }
        script.compute(&[x, state])
    };
    let passes: Vec<_> = (0..6).map(|_| pass(&mut script, &mut code)).collect();
    let kinds = |found: Carry| found.doubts.iter().map(|one| one.kind).collect::<Vec<_>>();
    assert_eq!(kinds(script.tape.carried(&passes[..4])), [DoubtKind::Irregular]);
    assert_eq!(kinds(script.tape.carried(&passes)), [DoubtKind::Irregular]);
}

#[test]
fn buffers_that_are_other_memory_on_every_pass_are_followed_by_what_writes_them() {
    let (mut buffer, mut front, mut back) = (None, None, None);
    let mut cases: Vec<(&str, OwnedCode)> = vec![
        (
            "a new buffer each time",
            Box::new(move |script, x| {
                let before = old(&mut buffer, script);
                let y = script.compute(&[x, before]);
                let made = script.tensor(Birth::Seen);
                script.tell(&[], &[], &[made], |_| ());
                script.write(&[made, x]);
                buffer = Some(made);
                y
            }),
        ),
        (
            "two that change places",
            Box::new(move |script, x| {
                let (read, written) = (old(&mut front, script), old(&mut back, script));
                let y = script.compute(&[x, read]);
                script.copy(written, y);
                (front, back) = (Some(written), Some(read));
                y
            }),
        ),
    ];
    for (name, code) in &mut cases {
        let (mut script, latest, found) = carried(code.as_mut());
        assert_eq!((found.states.len(), found.doubts.len()), (1, 0), "{name}: {found:?}");
        let state = found.states[0].clone();
        let before = script.tape.geometry(state.latest.view).0;
        assert_ne!(script.tape.geometry(state.next).0, before, "{name}: it becomes other memory");
        script.tape.let_go(latest);
    }
}

#[test]
fn a_table_that_the_first_pass_computed_is_a_constant() {
    let (mut weight, mut table) = (None, None);
    let (_, _, found) = carried(&mut |script, x| {
        let weight = old(&mut weight, script);
        let made = *table.get_or_insert_with(|| script.compute(&[weight]));
        script.calls = 10;
        script.compute(&[x, made])
    });
    assert_eq!(found, Carry::default());
}
