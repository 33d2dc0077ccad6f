//! What a proof in a bundle is worth after the bundle changed.

use veracity_diag::codes;
use veracity_prove::{Demand, Standing, require, save, seal, standing};
use veracity_results::Verdict;
use veracity_spec::Bundle;

use crate::common::{accumulator, chain};
use crate::support::{changed, checked, recorded, with_samples};

/// A bundle with a proof, against samples that pass for those of Python code.
fn proved() -> (tempfile::TempDir, Bundle) {
    let (folder, bundle) = recorded(chain(), 3);
    let bundle = with_samples(&bundle, |_, metadata| {
        metadata.insert("origin".into(), "python".into());
    });
    save(&bundle, &checked(&bundle)).unwrap();
    let bundle = Bundle::open(bundle.yaml_path()).unwrap();
    (folder, bundle)
}

#[test]
fn a_saved_proof_is_good_and_every_file_still_has_its_hash() {
    let (_folder, bundle) = proved();
    assert_eq!(standing(&bundle).unwrap(), Standing::Good);
    bundle.verify().unwrap();
    require(&bundle, &Demand::default()).unwrap();
    // Saving again replaces it.
    save(&bundle, &checked(&bundle)).unwrap();
    assert_eq!(standing(&Bundle::open(bundle.yaml_path()).unwrap()).unwrap(), Standing::Good);
}

#[test]
fn a_bundle_without_proof_is_refused_where_one_is_required() {
    let (_folder, bundle) = recorded(chain(), 1);
    assert_eq!(standing(&bundle).unwrap(), Standing::Missing);
    assert_eq!(
        require(&bundle, &Demand::default()).unwrap_err().first_error().code,
        codes::PROOF_MISSING
    );
}

#[test]
fn a_swapped_model_makes_the_proof_stale_until_it_is_checked_again() {
    let (_folder, bundle) = proved();
    let root = bundle.root();
    std::fs::copy(root.join("first.onnx"), root.join("kept.onnx")).unwrap();
    let mut bytes = std::fs::read(root.join("first.onnx")).unwrap();
    // An unknown field at the end of a protobuf message changes nothing but the bytes.
    bytes.extend_from_slice(&[0xfa, 0x7f, 0x00]);
    std::fs::write(root.join("first.onnx"), bytes).unwrap();
    assert!(bundle.verify().is_err());
    let sealed = seal(&bundle).unwrap();
    assert_eq!(sealed.changed, ["first.onnx"]);
    assert!(matches!(sealed.proof, Standing::Stale(_)), "{:?}", sealed.proof);
    let bundle = Bundle::open(bundle.yaml_path()).unwrap();
    bundle.verify().unwrap();
    assert_eq!(
        require(&bundle, &Demand::default()).unwrap_err().first_error().code,
        codes::PROOF_STALE
    );
    save(&bundle, &checked(&bundle)).unwrap();
    require(&Bundle::open(bundle.yaml_path()).unwrap(), &Demand::default()).unwrap();
}

#[test]
fn other_wiring_and_other_samples_make_the_proof_stale() {
    let (_folder, bundle) = proved();
    let (_other, rewired) = changed(&bundle, |spec, _| spec.configs.frequency = Some(50.0));
    assert!(matches!(standing(&rewired).unwrap(), Standing::Stale(_)));
    let resampled = with_samples(&bundle, |_, metadata| {
        metadata.insert("note".into(), "edited".into());
    });
    assert!(matches!(standing(&resampled).unwrap(), Standing::Stale(_)));
}

#[test]
fn a_proof_against_its_own_run_is_not_enough() {
    let (_folder, bundle) = recorded(chain(), 2);
    save(&bundle, &checked(&bundle)).unwrap();
    let bundle = Bundle::open(bundle.yaml_path()).unwrap();
    assert_eq!(standing(&bundle).unwrap(), Standing::OnlyRepeats);
    assert_eq!(
        require(&bundle, &Demand::default()).unwrap_err().first_error().code,
        codes::PROOF_NEGATIVE
    );
}

#[test]
fn a_proof_that_was_edited_is_taken_out_by_sealing() {
    let (_folder, bundle) = proved();
    let path = bundle.root().join("proof.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + " ").unwrap();
    assert!(bundle.verify().is_err());
    let sealed = seal(&bundle).unwrap();
    assert_eq!((sealed.changed, sealed.proof), (vec!["proof.json".into()], Standing::Missing));
}

#[test]
fn a_disproved_bundle_is_refused() {
    let (_folder, bundle) = recorded(accumulator(), 3);
    let bundle = with_samples(&bundle, |tensors, _| {
        let tensor = tensors.get_mut("recorded/sum/out/shown").unwrap();
        tensor.as_mut_slice::<f32>().unwrap()[0] += 1.0;
    });
    save(&bundle, &checked(&bundle)).unwrap();
    let bundle = Bundle::open(bundle.yaml_path()).unwrap();
    assert_eq!(standing(&bundle).unwrap(), Standing::Negative(Verdict::Disproved));
    assert_eq!(
        require(&bundle, &Demand::default()).unwrap_err().first_error().code,
        codes::PROOF_NEGATIVE
    );
}
