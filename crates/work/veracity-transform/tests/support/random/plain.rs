//! Operators one by one, and what does nothing at all.

use veracity_onnx::{Dim, Function, GraphBuilder, Node};

use super::{Made, Pattern, code};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("unary", unary),
    ("unary again", unary),
    ("binary", binary),
    ("binary with a constant", with_constant),
    ("softmax", softmax),
    ("identity", identity),
    ("dropout", dropout),
    ("twins", twins),
    ("casts", casts),
    ("cast like", cast_like),
    ("where", choice),
    ("variadic", variadic),
    ("reduction", reduction),
    ("if with an input", branches_on_input),
    ("if with a constant", branches_on_constant),
    ("function", function),
    ("dead", dead),
];

fn unary(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let all = [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Abs",
        "Neg",
        "Softplus",
        "HardSigmoid",
        "LeakyRelu",
        "Elu",
        "Erf",
        "Sin",
        "Cos",
        "Softsign",
    ];
    let op_type = *made.rng.choose(&all);
    let name = made.op(op_type, &[&value.name]);
    made.give(name, &value.dims)
}

fn binary(made: &mut Made) -> bool {
    let Some(one) = made.pick(|_| true) else { return false };
    let Some(two) = made.pick(|dims| dims == one.dims) else { return false };
    let op_type = *made.rng.choose(&["Add", "Sub", "Mul", "Max", "Min"]);
    let name = made.op(op_type, &[&one.name, &two.name]);
    made.give(name, &one.dims)
}

/// A scalar, one number in each of the last or second axis, or all of them, on either side.
fn with_constant(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let mut dims = value.dims.clone();
    match made.rng.below(4) {
        0 => dims.clear(),
        1 => drop(dims.drain(..dims.len() - 1)),
        2 => dims[0] = 1,
        _ => dims = [vec![dims[1]], vec![1; dims.len() - 2]].concat(),
    }
    let op_type = *made.rng.choose(&["Add", "Sub", "Mul", "Div"]);
    let constant = match made.rng.below(3) {
        0 => made.weight(&dims, |rng| *rng.choose(&[1.0, 2.0, 0.5, 4.0])),
        1 => made.weight(&dims, |_| if op_type == "Mul" || op_type == "Div" { 1.0 } else { 0.0 }),
        _ => made.weight(&dims, |rng| 1.5 + rng.number()),
    };
    let swapped = made.rng.one_in(3) && op_type != "Div";
    let inputs = if swapped { [&constant, &value.name] } else { [&value.name, &constant] };
    let name = made.op(op_type, &inputs.map(String::as_str));
    made.give(name, &value.dims)
}

fn softmax(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let op_type = *made.rng.choose(&["Softmax", "LogSoftmax"]);
    let name = made.op_with(op_type, &[&value.name], |node| node.int("axis", -1));
    made.give(name, &value.dims)
}

fn identity(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let name = made.op("Identity", &[&value.name]);
    made.give(name, &value.dims)
}

fn dropout(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let ratio = made.number(0.3);
    let name = if made.rng.one_in(2) {
        let training = made.truth(false);
        made.op("Dropout", &[&value.name, &ratio, &training])
    } else {
        made.op("Dropout", &[&value.name])
    };
    made.give(name, &value.dims)
}

/// The same node twice.
fn twins(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let op_type = *made.rng.choose(&["Tanh", "Relu", "Abs"]);
    let (one, two) = (made.op(op_type, &[&value.name]), made.op(op_type, &[&value.name]));
    let sum = made.op("Add", &[&one, &two]);
    made.give(one, &value.dims);
    made.give(sum, &value.dims)
}

fn casts(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let to = code(made.float);
    let mut name = value.name.clone();
    // By way of the wider type, which holds every number of the narrower one.
    if made.rng.one_in(2) {
        name = made.op_with("Cast", &[&name], |node| node.int("to", 11));
    }
    let name = made.op_with("Cast", &[&name], |node| node.int("to", to));
    made.give(name, &value.dims)
}

/// What an exporter writes around constants.
fn cast_like(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    if made.opset < 15 {
        return false;
    }
    let wide = made.op_with("Constant", &[], |node| node.float("value_float", 1.25));
    let like = made.op("CastLike", &[&wide, &value.name]);
    let name = made.op("Mul", &[&value.name, &like]);
    made.give(name, &value.dims)
}

/// `x > 0 ? x : x / 2`, which makes no step.
fn choice(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let (zero, half) = (made.number(0.0), made.number(0.5));
    let less = made.op("Mul", &[&value.name, &half]);
    let above = made.op("Greater", &[&value.name, &zero]);
    let name = if made.rng.one_in(2) {
        let below = made.op("Not", &[&above]);
        made.op("Where", &[&below, &less, &value.name])
    } else {
        made.op("Where", &[&above, &value.name, &less])
    };
    made.give(name, &value.dims)
}

fn variadic(made: &mut Made) -> bool {
    let Some(one) = made.pick(|_| true) else { return false };
    let Some(two) = made.pick(|dims| dims == one.dims) else { return false };
    let op_type = *made.rng.choose(&["Sum", "Max", "Min", "Mean"]);
    let many = 1 + made.rng.below(3);
    let inputs = [one.name.as_str(), &two.name, &one.name];
    let name = made.op(op_type, &inputs[..many]);
    made.give(name, &one.dims)
}

fn reduction(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() > 2) else { return false };
    let op_type = *made.rng.choose(&["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]);
    let keep = made.rng.one_in(2);
    let name = made.reduce(op_type, &value.name, &[-1], keep);
    let (last, mut dims) = (value.dims.len() - 1, value.dims);
    if keep {
        dims[last] = 1;
    } else {
        dims.pop();
    }
    made.give(name, &dims)
}

/// Two branches that read values from around them; one holds a weight of its own.
fn branches(made: &mut Made, condition: &str) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let shared = made.matrix(&[1]);
    // The first axis may be of any size: a branch that names one says what is not so.
    let open = vec![Dim::Unknown; value.dims.len()];
    let mut branch = |op_type: &str| {
        let (inner, out) = (made.name(), made.name());
        GraphBuilder::new("branch", made.opset)
            .node(Node::new(op_type, [value.name.as_str(), &shared], [inner.as_str()]))
            .node(Node::new("Identity", [inner.as_str()], [out.as_str()]))
            .output(out, made.float, open.clone())
    };
    let (then, other) = (branch("Add"), branch("Mul"));
    let name = made.op_with("If", &[condition], |node| {
        node.graph("then_branch", then).graph("else_branch", other)
    });
    made.give(name, &value.dims)
}

fn branches_on_input(made: &mut Made) -> bool {
    let flag = made.flag();
    branches(made, flag)
}

fn branches_on_constant(made: &mut Made) -> bool {
    let condition = made.rng.one_in(2);
    let condition = made.truth(condition);
    branches(made, &condition)
}

fn function(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let opset = made.opset;
    made.function("Bent", || {
        let bent = Node::new("LeakyRelu", ["a"], ["t"]).float("alpha", 0.0).refer("alpha", "slope");
        Function::new(("own", "Bent"), opset, ["a"], ["b"])
            .defaults(Node::new("", [""; 0], [""; 0]).float("slope", 0.25))
            .node(bent)
            .node(Node::new("Neg", ["t"], ["b"]))
    });
    let slope = made.rng.one_in(2);
    let name = made.op_with("Bent", &[&value.name], |node| {
        let node = node.domain("own");
        if slope { node.float("slope", 0.75) } else { node }
    });
    made.give(name, &value.dims)
}

fn dead(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let name = made.op("Exp", &[&value.name]);
    made.op("Neg", &[&name]);
    true
}
