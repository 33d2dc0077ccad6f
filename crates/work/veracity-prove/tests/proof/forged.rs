//! Forged, borrowed and widened proofs: each is put into its bundle with all hashes right, as somebody
//! would who wants it to be believed.

use veracity_diag::{Code, Diagnostic, Place, codes};
use veracity_prove::{Demand, rejudge, require, save};
use veracity_results::{
    Basis, Coverage, Origin, Proof, Tolerance, TolerancePart, TolerancePolicy, Verdict,
};
use veracity_spec::Bundle;

use crate::common::accumulator;
use crate::support::{changed, checked, options, policy, recorded, with_samples};

/// What tracing noticed about the node of the bundle.
fn doubt() -> Diagnostic {
    Diagnostic::warning(codes::FROZEN_VALUE, "a branch was taken")
        .at(Place::node("sum"))
        .hint("record a pass that takes the other branch")
}

/// A bundle whose samples pass for those of Python code, and its proof.
fn proved(findings: &[Diagnostic]) -> (tempfile::TempDir, Bundle, Proof) {
    let (folder, bundle) = recorded(accumulator(), 4);
    let bundle = with_samples(&bundle, |_, metadata| {
        metadata.insert("origin".into(), "python".into());
        metadata.insert("findings".into(), serde_json::to_string(findings).unwrap());
        let policy = TolerancePolicy::new(Tolerance::new(1e-6, 0.0).unwrap());
        metadata.insert("policy".into(), serde_json::to_string(&policy).unwrap());
    });
    let proof = checked(&bundle);
    (folder, bundle, proof)
}

/// What is said about a bundle with this proof in it.
fn answer(bundle: &Bundle, proof: &Proof, demand: &Demand) -> Option<Code> {
    save(bundle, proof).unwrap();
    let bundle = Bundle::open(bundle.yaml_path()).unwrap();
    require(&bundle, demand).err().map(|refusal| refusal.first_error().code)
}

fn first_sample(proof: &mut Proof) -> &mut veracity_results::SampleProof {
    &mut proof.nodes[0].ports[0].samples[0]
}

type Forge = fn(&mut Proof);
type Forgery = (&'static str, Forge, Code);

const INCONSISTENT: Code = codes::PROOF_INCONSISTENT;

#[rustfmt::skip]
const FORGERIES: &[Forgery] = &[
    ("a node is gone", |p| { p.nodes.pop(); }, INCONSISTENT),
    ("a node twice", |p| p.nodes.push(p.nodes[0].clone()), INCONSISTENT),
    ("a node of another name", |p| p.nodes[0].node = "other".into(), INCONSISTENT),
    ("an output is gone", |p| { p.nodes[0].ports.pop(); }, INCONSISTENT),
    ("an output of another name", |p| p.nodes[0].ports[0].port = "sum/other".into(), INCONSISTENT),
    ("a sample is gone", |p| { p.nodes[0].ports[0].samples.pop(); }, INCONSISTENT),
    ("all samples are gone", |p| p.nodes[0].ports[0].samples.clear(), INCONSISTENT),
    ("a sample in the middle is gone", |p| { p.nodes[0].ports[0].samples.remove(1); }, INCONSISTENT),
    ("more samples are counted", |p| p.nodes[0].samples += 1, INCONSISTENT),
    ("fresh inputs are counted", |p| p.nodes[0].fresh = 200, INCONSISTENT),
    ("a fresh sample is made up", |p| {
        let mut made = first_sample(p).clone();
        made.label = "fresh 0".into();
        p.nodes[0].ports[0].samples.push(made);
    }, INCONSISTENT),
    ("a measurement is gone", |p| first_sample(p).measurement = None, INCONSISTENT),
    ("another shape", |p| first_sample(p).reference = "float32[9]".into(), INCONSISTENT),
    ("the model gave another shape", |p| first_sample(p).candidate = "float32[9]".into(), INCONSISTENT),
    ("elements outside", |p| first_sample(p).measurement.as_mut().unwrap().outside = 1, INCONSISTENT),
    ("a large error", |p| first_sample(p).measurement.as_mut().unwrap().max_abs = 1.0, INCONSISTENT),
    ("a mean above the largest", |p| first_sample(p).measurement.as_mut().unwrap().mean_abs = 1e-7, INCONSISTENT),
    ("NaN on one side", |p| first_sample(p).measurement.as_mut().unwrap().non_finite.mismatching = 1, INCONSISTENT),
    ("a mean above the root of the mean square", |p| {
        let measured = first_sample(p).measurement.as_mut().unwrap();
        (measured.differing, measured.max_abs) = (1, 1e-7);
        (measured.mean_abs, measured.rms) = (9e-8, 1e-8);
    }, INCONSISTENT),
    ("NaN in both that nobody counted", |p| first_sample(p).measurement.as_mut().unwrap().non_finite.matching_nan = 2, INCONSISTENT),
    ("fewer elements compared", |p| first_sample(p).measurement.as_mut().unwrap().compared -= 1, INCONSISTENT),
    ("a tolerance that would be needed", |p| first_sample(p).measurement.as_mut().unwrap().min_atol = 5.0, INCONSISTENT),
    ("a range of the model", |p| first_sample(p).measurement.as_mut().unwrap().candidate_range = Some((-100.0, 100.0)), INCONSISTENT),
    ("a range of the reference", |p| {
        let measured = first_sample(p).measurement.as_mut().unwrap();
        measured.reference_range = measured.reference_range.map(|(low, high)| (low - 0.5, high));
        measured.candidate_range = measured.reference_range;
        measured.max_abs_reference += 1.0;
    }, INCONSISTENT),
    ("numbers of another sample", |p| {
        let other = p.nodes[0].ports[0].samples[1].measurement.clone();
        first_sample(p).measurement = other;
    }, INCONSISTENT),
    ("a worst element that is not there", |p| {
        let worst = veracity_results::Worst { index: vec![7, 7, 7], reference: 0.0, candidate: 0.0 };
        first_sample(p).measurement.as_mut().unwrap().worst = Some(worst);
    }, INCONSISTENT),
    ("distances that do not add up", |p| first_sample(p).measurement.as_mut().unwrap().ulp_histogram = vec![1, 9], INCONSISTENT),
    ("an error at a tick", |p| p.rollout.ports[0].over_time.max_abs[0] = 7.0, INCONSISTENT),
    ("errors of one tick", |p| p.rollout.ports[0].over_time.max_abs.truncate(1), INCONSISTENT),
    ("errors over time that are none of its ticks'", |p| {
        p.rollout.ports[0].over_time.max_abs.iter_mut().for_each(|error| *error = 1e-9);
    }, INCONSISTENT),
    ("a roll-out of another episode", |p| {
        let measured = &mut p.rollout.ports[0].measurement;
        measured.reference_range = Some((1.0, 2.0));
        measured.candidate_range = measured.reference_range;
        measured.max_abs_reference = 2.0;
    }, INCONSISTENT),
    ("another range over time", |p| {
        let measured = &mut p.rollout.ports[0].measurement;
        measured.reference_range = measured.reference_range.map(|(low, high)| (low - 0.5, high));
        measured.candidate_range = measured.reference_range;
    }, INCONSISTENT),
    ("a worst element over time that nobody recorded", |p| {
        let worst = veracity_results::Worst { index: vec![0, 0], reference: 77.0, candidate: 77.0 };
        p.rollout.ports[0].measurement.worst = Some(worst);
    }, INCONSISTENT),
    ("NaN over time that nobody recorded", |p| {
        let measured = &mut p.rollout.ports[0].measurement;
        measured.compared -= 1;
        measured.non_finite.reference_nan = 1;
        measured.non_finite.candidate_nan = 1;
        measured.non_finite.matching_nan = 1;
        p.policy.equal_nan = true;
    }, INCONSISTENT),
    ("infinities that nobody recorded", |p| {
        let measured = first_sample(p).measurement.as_mut().unwrap();
        measured.compared -= 1;
        measured.ulp_histogram = vec![measured.compared];
        measured.non_finite.reference_inf = 1;
        measured.non_finite.candidate_inf = 1;
        measured.non_finite.matching_inf = 1;
    }, INCONSISTENT),
    ("a relative error of nothing", |p| first_sample(p).measurement.as_mut().unwrap().max_rel = 0.5, INCONSISTENT),
    ("a distance of nothing", |p| first_sample(p).measurement.as_mut().unwrap().max_ulp = 3, INCONSISTENT),
    ("a distance that is too short", |p| {
        let measured = first_sample(p).measurement.as_mut().unwrap();
        let there = measured.reference_range.unwrap().1;
        (measured.differing, measured.max_abs, measured.max_rel) = (1, 1e-7, 1e-7 / there.abs());
        (measured.mean_abs, measured.rms, measured.min_atol) = (1e-8, 1e-8, 1e-7);
        measured.max_ulp = 1;
        measured.ulp_histogram = vec![measured.compared - 1, 1];
        let index = vec![0; 2];
        measured.worst = Some(veracity_results::Worst { index, reference: there / 1e6, candidate: there / 1e6 + 1e-7 });
    }, INCONSISTENT),
    ("more resets", |p| p.rollout.resets += 1, INCONSISTENT),
    ("more passes", |p| p.nodes[0].passes = Some(1000), INCONSISTENT),
    ("planted faults that nobody planted", |p| {
        p.nodes[0].adequacy = Some(veracity_results::Adequacy { planted: 60, found: 60, ..Default::default() });
    }, INCONSISTENT),
    ("a reason for few draws", |p| p.nodes[0].fresh_note = Some("it was enough".into()), INCONSISTENT),
    ("another seed", |p| p.reference.seed = Some(8), INCONSISTENT),
    ("other sources", |p| { p.reference.sources.insert("sum".into(), "other.py:1".into()); }, INCONSISTENT),
    ("another name of the pipeline", |p| p.pipeline.as_mut().unwrap().name = "other".into(), INCONSISTENT),
    ("another rate of the pipeline", |p| p.pipeline.as_mut().unwrap().rate_hz = Some(1000.0), INCONSISTENT),
    ("an edge of the pipeline is gone", |p| { p.pipeline.as_mut().unwrap().edges.pop(); }, INCONSISTENT),
    ("an output of the pipeline is gone", |p| { p.pipeline.as_mut().unwrap().outputs.pop(); }, INCONSISTENT),
    ("no elements", |p| first_sample(p).measurement.as_mut().unwrap().elements = 0, INCONSISTENT),
    ("measured by another tolerance", |p| {
        first_sample(p).measurement.as_mut().unwrap().tolerance = Tolerance::new(1.0, 0.0).unwrap();
    }, INCONSISTENT),
    ("a port judged by another tolerance", |p| {
        p.nodes[0].ports[0].tolerance = Tolerance::new(1.0, 0.0).unwrap();
    }, INCONSISTENT),
    ("another policy than the ports", |p| {
        p.policy = TolerancePolicy::new(Tolerance::new(1e-7, 0.0).unwrap());
    }, INCONSISTENT),
    ("another basis", |p| p.policy.basis = Basis::Auto, INCONSISTENT),
    ("counts", |p| p.coverage.proved += 1, INCONSISTENT),
    ("no counts", |p| p.coverage = Coverage::default(), INCONSISTENT),
    ("the roll-out is gone", |p| p.rollout = veracity_results::RolloutProof::default(), INCONSISTENT),
    ("a port of the roll-out is gone", |p| { p.rollout.ports.pop(); }, INCONSISTENT),
    ("a port of the roll-out of another role", |p| {
        p.rollout.ports[0].role = veracity_results::Role::Inner;
    }, INCONSISTENT),
    ("more ticks", |p| p.rollout.ticks += 1, INCONSISTENT),
    ("more steps", |p| p.rollout.steps += 100, INCONSISTENT),
    ("elements of the roll-out outside", |p| p.rollout.ports[0].measurement.outside = 1, INCONSISTENT),
    ("the roll-out judged by another tolerance", |p| {
        p.rollout.ports[0].tolerance = Tolerance::new(1.0, 0.0).unwrap();
    }, INCONSISTENT),
    ("values that were not tried", |p| p.inputs[0].range = Some((-1e6, 1e6)), INCONSISTENT),
    ("more values than there are", |p| p.inputs[0].samples += 1, INCONSISTENT),
    ("inputs are gone", |p| p.inputs.clear(), INCONSISTENT),
    ("nothing ran it", |p| p.environment.sessions.clear(), INCONSISTENT),
    ("made with something else", |p| p.reference.made_with = "torch 9".into(), INCONSISTENT),
    ("a made-up assumption", |p| p.nodes[0].assumptions.push(doubt()), INCONSISTENT),
    ("another description", |p| p.subject.description_sha256 = "0".repeat(64), codes::PROOF_STALE),
    ("another model", |p| p.subject.models[0].sha256 = "0".repeat(64), codes::PROOF_STALE),
    ("a model is gone", |p| p.subject.models.clear(), codes::PROOF_STALE),
    ("a file is gone", |p| p.subject.files.clear(), codes::PROOF_STALE),
    ("another version of the format", |p| p.schema_version = "2.0".into(), codes::PROOF_UNREADABLE),
    ("an older version of the format", |p| p.schema_version = "0.9".into(), codes::PROOF_UNREADABLE),
    ("made of a run of the bundle", |p| p.reference.origin = Origin::Runtime, codes::PROOF_NEGATIVE),
];

#[test]
fn the_proof_that_is_forged_is_good() {
    let (_folder, bundle, proof) = proved(&[]);
    assert_eq!(proof.verdict, Verdict::Proved);
    assert_eq!(answer(&bundle, &proof, &Demand::default()), None);
}

#[test]
fn forged_proofs_are_refused() {
    let (_folder, bundle, proof) = proved(&[]);
    for (name, forge, code) in FORGERIES {
        let mut forged = proof.clone();
        forge(&mut forged);
        assert!(forged != proof, "{name}");
        assert_eq!(answer(&bundle, &forged, &Demand::default()), Some(*code), "{name}");
    }
}

#[test]
fn assumptions_cannot_be_taken_out() {
    let (_folder, bundle, proof) = proved(&[doubt()]);
    assert_eq!(proof.verdict, Verdict::Conditional);
    assert_eq!(answer(&bundle, &proof, &Demand::default()), Some(codes::PROOF_CONDITIONAL));
    let accepting = Demand { accept_conditional: true, ..Demand::default() };
    assert_eq!(answer(&bundle, &proof, &accepting), None);
    let cleared: [(&str, Forge); 4] = [
        ("the verdict alone", |p| p.verdict = Verdict::Proved),
        ("verdicts", raise),
        ("verdicts and assumptions", |p| {
            raise(p);
            p.assumptions.clear();
            p.nodes.iter_mut().for_each(|node| node.assumptions.clear());
        }),
        ("verdicts, assumptions and findings", |p| {
            raise(p);
            p.assumptions.clear();
            p.findings.clear();
            p.nodes.iter_mut().for_each(|node| node.assumptions.clear());
        }),
    ];
    for (name, clear) in cleared {
        let mut forged = proof.clone();
        clear(&mut forged);
        for demand in [Demand::default(), accepting] {
            assert_eq!(answer(&bundle, &forged, &demand), Some(INCONSISTENT), "{name}");
        }
    }
}

fn raise(proof: &mut Proof) {
    proof.verdict = Verdict::Proved;
    proof.rollout.verdict = Some(Verdict::Proved);
    for node in &mut proof.nodes {
        node.verdict = Verdict::Proved;
        node.ports.iter_mut().for_each(|port| port.verdict = Verdict::Proved);
    }
    proof.coverage = Coverage::of(proof.rows().iter().map(|row| row.verdict));
}

#[test]
fn a_disproved_bundle_cannot_be_raised() {
    let (_folder, bundle, _) = proved(&[]);
    let bundle = with_samples(&bundle, |tensors, _| {
        let tensor = tensors.get_mut("recorded/sum/out/shown").unwrap();
        tensor.as_mut_slice::<f32>().unwrap()[0] += 1.0;
    });
    let mut forged = checked(&bundle);
    assert_eq!(forged.verdict, Verdict::Disproved);
    raise(&mut forged);
    forged.nodes[0].ports.iter_mut().flat_map(|port| &mut port.samples).for_each(|sample| {
        sample.verdict = Verdict::Proved;
        sample.reasons.clear();
    });
    assert_eq!(answer(&bundle, &forged, &Demand::default()), Some(INCONSISTENT));
}

#[test]
fn a_wider_tolerance_than_the_exported_one_is_refused_unless_it_is_allowed() {
    let (_folder, bundle, _) = proved(&[]);
    let wide = veracity_prove::check(&bundle, &crate::common::Ort, &options(1e-2)).unwrap();
    assert_eq!(wide.verdict, Verdict::Proved);
    assert_eq!(answer(&bundle, &wide, &Demand::default()), Some(codes::PROOF_TOO_WIDE));
    let ceiling = |atol| Demand { ceiling: Tolerance::new(atol, 0.0).ok(), ..Demand::default() };
    assert_eq!(answer(&bundle, &wide, &ceiling(1e-3)), Some(codes::PROOF_TOO_WIDE));
    assert_eq!(answer(&bundle, &wide, &ceiling(1e-2)), None);
    // What lies in the bundle does not widen what comes after it.
    let again = veracity_prove::check(
        &Bundle::open(bundle.yaml_path()).unwrap(),
        &crate::common::Ort,
        &veracity_prove::CheckOptions::default(),
    );
    assert_eq!(again.unwrap().policy.default, Tolerance::new(1e-6, 0.0).unwrap());
}

#[test]
fn a_proof_that_was_judged_again_holds_together() {
    let (_folder, bundle, proof) = proved(&[]);
    let ceiling = |atol| Demand { ceiling: Tolerance::new(atol, 0.0).ok(), ..Demand::default() };
    assert_eq!(answer(&bundle, &rejudge(&proof, &policy(1e-7)), &Demand::default()), None);
    let wide = rejudge(&proof, &policy(1e-2));
    assert_eq!(answer(&bundle, &wide, &Demand::default()), Some(codes::PROOF_TOO_WIDE));
    assert_eq!(answer(&bundle, &wide, &ceiling(1e-2)), None);
}

/// As `policy` says, and each element of an output by a tolerance of its own.
fn by_elements(atol: f64, parts: &[f64]) -> TolerancePolicy {
    let part = |&atol| TolerancePart { elements: 1, tolerance: Tolerance::new(atol, 0.0).unwrap() };
    let parts = [("sum/shown".to_owned(), parts.iter().map(part).collect())];
    TolerancePolicy { parts: parts.into(), ..policy(atol) }
}

#[test]
fn a_tolerance_for_all_elements_does_not_stand_for_those_of_each() {
    let (_folder, bundle, _) = proved(&[]);
    let exported = by_elements(1e-2, &[1e-6, 1e-2]);
    let bundle = with_samples(&bundle, |tensors, metadata| {
        metadata.insert("policy".into(), serde_json::to_string(&exported).unwrap());
        let shown = tensors.get_mut("recorded/sum/out/shown").unwrap();
        shown.as_mut_slice::<f32>().unwrap()[0] += 1e-3;
    });
    let given = |tolerance: TolerancePolicy| {
        let tolerance = veracity_prove::ToleranceChoice::Given(tolerance);
        let options = veracity_prove::CheckOptions { tolerance, ..options(0.0) };
        veracity_prove::check(&bundle, &crate::common::Ort, &options).unwrap()
    };
    assert_eq!(given(exported.clone()).verdict, Verdict::Disproved);
    let whole = given(policy(1e-2));
    assert_eq!(whole.verdict, Verdict::Proved);
    assert_eq!(answer(&bundle, &whole, &Demand::default()), Some(codes::PROOF_TOO_WIDE));
    // Nobody measured what is asked now, however often it is asked.
    let again = rejudge(&whole, &exported);
    assert_eq!(again.verdict, Verdict::NotComparable);
    assert_eq!(rejudge(&again, &exported).verdict, Verdict::NotComparable);
    // What held by the same tolerances holds, and what is within the finest of them.
    let known = by_elements(1e-2, &[5e-3, 1e-2]);
    assert_eq!(rejudge(&given(known.clone()), &known).verdict, Verdict::Proved);
    assert_eq!(rejudge(&whole, &known).verdict, Verdict::Proved);
}

#[test]
fn a_proof_of_another_bundle_is_refused() {
    let (_folder, bundle, proof) = proved(&[]);
    let (_other, renamed) = changed(&bundle, |spec, _| spec.configs.frequency = Some(50.0));
    assert_eq!(answer(&renamed, &proof, &Demand::default()), Some(codes::PROOF_STALE));
    let (_other, begun) = changed(&bundle, |_, initial| {
        for value in initial.values_mut() {
            value.as_mut_slice::<f32>().unwrap()[0] += 1.0;
        }
    });
    assert_eq!(answer(&begun, &proof, &Demand::default()), Some(codes::PROOF_STALE));
}

/// All hashes are made anew, so that only the values themselves tell.
#[test]
fn initial_values_that_were_not_recorded_are_refused() {
    let (_folder, bundle, proof) = proved(&[]);
    let (_other, begun) = changed(&bundle, |_, initial| {
        for value in initial.values_mut() {
            value.as_mut_slice::<f32>().unwrap()[0] += 1.0;
        }
    });
    let forged = Proof { subject: veracity_prove::subject(&begun), ..proof };
    assert_eq!(answer(&begun, &forged, &Demand::default()), Some(INCONSISTENT));
}

#[test]
fn replaced_samples_are_refused() {
    let (_folder, bundle, proof) = proved(&[]);
    let bundle = with_samples(&bundle, |tensors, _| {
        for tensor in tensors.values_mut() {
            tensor.as_mut_slice::<f32>().unwrap().fill(0.0);
        }
    });
    assert_eq!(answer(&bundle, &proof, &Demand::default()), Some(codes::PROOF_STALE));
    // With the hash of the new samples put into the old proof.
    let mut forged = proof;
    forged.subject = checked(&bundle).subject;
    assert_eq!(answer(&bundle, &forged, &Demand::default()), Some(INCONSISTENT));
}
