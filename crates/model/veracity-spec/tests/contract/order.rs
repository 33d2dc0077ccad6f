//! A permutation of names is reported exactly, and the written map undoes it.

use proptest::prelude::*;
use veracity_diag::codes;
use veracity_spec::contract::{Findings, compare};
use veracity_spec::{Description, Direction, ReorderMap};

use crate::support::{bundle, robot};

fn yaml(names: &[String]) -> String {
    let (count, names) = (names.len(), names.join(", "));
    let port = |name: &str| {
        format!(
            "    - name: {name}\n      dtype: float32\n      shape: [1, {count}]\n      \
             element_names: [[{names}]]\n"
        )
    };
    format!(
        "models:\n  policy:\n    inputs:\n{}    outputs:\n{}    parameters: {{model_path: null, backend: null}}\npipeline:\n  \
         inputs: {{policy: [observed]}}\n  outputs: {{policy: [wanted]}}\nsystem information:\n  \
         leapp config version: '1.3'\n",
        port("observed"),
        port("wanted")
    )
}

fn found(ours: &[String], theirs: &[String]) -> Findings {
    let list = theirs.join(", ");
    let port = |key: &str| format!("{key}: {{element_names: [{list}]}}");
    let text =
        format!("inputs: {{{}}}\noutputs: {{{}}}\n", port("observed"), port("policy/wanted"));
    compare(&bundle(&yaml(ours), &[]).0, &robot(&text), 0.0)
}

fn taken<T: Clone>(values: &[T], take: &[usize]) -> Vec<T> {
    take.iter().map(|&position| values[position].clone()).collect()
}

fn names_and_order() -> impl Strategy<Value = (Vec<String>, Vec<usize>)> {
    prop::collection::hash_set("[a-z]{1,3}_[0-9]{1,2}", 1..20).prop_flat_map(|names| {
        let names: Vec<String> = names.into_iter().collect();
        let order: Vec<usize> = (0..names.len()).collect();
        (Just(names), Just(order).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_permutation_is_reported_exactly_and_the_map_inverts_it(
        (ours, order) in names_and_order(),
    ) {
        let theirs = taken(&ours, &order);
        let findings = found(&ours, &theirs);
        let is_identity = order.is_sorted();
        let codes: Vec<_> = findings.diagnostics.iter().map(|found| found.code).collect();
        if is_identity {
            prop_assert!(codes.is_empty() && findings.reorder.is_empty());
            return Ok(());
        }
        prop_assert_eq!(codes, [codes::ELEMENT_ORDER; 2]);
        let described = Description::from_yaml("policy.yaml", yaml(&ours).into()).unwrap();
        let written = findings.reorder.to_yaml();
        let map = ReorderMap::from_yaml("map.yaml", written.clone().into()).unwrap();
        prop_assert!(map.check(&described.spec).is_ok(), "{}", written);
        prop_assert_eq!(&map.entries, &findings.reorder.entries);
        for entry in &map.entries {
            // Values in the robot's order become values in the bundle's, and back again.
            match entry.direction {
                Direction::Input => prop_assert_eq!(taken(&theirs, &entry.take), ours.clone()),
                Direction::Output => prop_assert_eq!(taken(&ours, &entry.take), theirs.clone()),
            }
        }
        prop_assert_eq!(taken(&map.entries[0].take, &map.entries[1].take), (0..ours.len()).collect::<Vec<_>>());
    }

    #[test]
    fn names_that_only_one_side_has_are_told_and_give_no_map(
        (ours, order) in names_and_order(),
        position in any::<prop::sample::Index>(),
    ) {
        let mut theirs = taken(&ours, &order);
        let place = position.index(theirs.len());
        let lost = std::mem::replace(&mut theirs[place], "an_other_name".to_owned());
        let findings = found(&ours, &theirs);
        let codes: Vec<_> = findings.diagnostics.iter().map(|found| found.code).collect();
        let pair = [codes::ELEMENT_MISSING, codes::ELEMENT_EXTRA];
        prop_assert_eq!(codes, [pair, pair].concat());
        let expected = format!("lacks {lost:?}");
        prop_assert!(findings.diagnostics[0].message.ends_with(&expected));
        prop_assert!(findings.reorder.is_empty());
    }
}
