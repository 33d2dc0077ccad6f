//! Measurements against a naive float64 implementation, for every dtype and every way of cutting.
#![expect(clippy::cast_precision_loss, reason = "test data is small")]
#![expect(clippy::float_cmp, reason = "what is exact is compared exactly")]

use half::{bf16, f16};
use proptest::prelude::*;
use veracity_results::Tolerance;
use veracity_tensor::{DType, Shape, Tensor};

use super::*;
use crate::simd::InstructionSet;

mod naive;

use naive::{naive, naive_percentiles};

/// Bits that make a float of each kind: zeros, denormals, ordinary and huge numbers, infinities,
/// NaN of both kinds.
const F32_BITS: [u32; 14] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0xbf80_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xff80_0001,
];

fn any_element(dtype: DType) -> BoxedStrategy<Vec<u8>> {
    let any_f32 = prop_oneof![
        3 => -4.0_f32..4.0,
        2 => prop::sample::select(F32_BITS.to_vec()).prop_map(f32::from_bits),
        1 => any::<u32>().prop_map(f32::from_bits),
    ];
    let any_f64 = prop_oneof![
        3 => -4.0_f64..4.0,
        2 => prop::sample::select(vec![
            0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, f64::MAX, f64::MIN, f64::INFINITY,
            f64::NEG_INFINITY, f64::NAN, -f64::NAN,
        ]),
        1 => any::<u64>().prop_map(f64::from_bits),
    ];
    let bytes = |size: usize| prop::collection::vec(any::<u8>(), size);
    match dtype {
        DType::F16 => any_f32.prop_map(|v| f16::from_f32(v).to_ne_bytes().to_vec()).boxed(),
        DType::BF16 => any_f32.prop_map(|v| bf16::from_f32(v).to_ne_bytes().to_vec()).boxed(),
        DType::F32 => any_f32.prop_map(|v| v.to_ne_bytes().to_vec()).boxed(),
        DType::F64 => any_f64.prop_map(|v| v.to_ne_bytes().to_vec()).boxed(),
        DType::Bool => (0_u8..2).prop_map(|v| vec![v]).boxed(),
        _ => bytes(dtype.size()).boxed(),
    }
}

/// Two tensors in which about half of the pairs are equal, or nearly all: then whole tiles are.
fn any_pair(max: usize) -> impl Strategy<Value = (Tensor, Tensor)> {
    let share_differing = prop::sample::select(vec![0.5, 0.03]);
    (prop::sample::select(DType::ALL.to_vec()), 0..=max, share_differing)
        .prop_flat_map(|(dtype, len, share_differing)| {
            let other = prop::option::weighted(share_differing, any_element(dtype));
            let element = (any_element(dtype), other);
            (Just(dtype), prop::collection::vec(element, len))
        })
        .prop_map(|(dtype, pairs)| {
            let shape = || Shape::from([pairs.len()]);
            let left: Vec<u8> = pairs.iter().flat_map(|(left, _)| left.clone()).collect();
            let right = pairs.iter().map(|(left, right)| right.as_ref().unwrap_or(left));
            let right: Vec<u8> = right.flatten().copied().collect();
            let tensor = |bytes: &[u8]| Tensor::from_bytes(dtype, shape(), bytes).unwrap();
            (tensor(&left), tensor(&right))
        })
}

fn any_tolerance() -> impl Strategy<Value = Tolerance> {
    let part = || prop::sample::select(vec![0.0, 1e-300, 1e-6, 0.1, 1.0, 1e300]);
    (part(), part()).prop_map(|(atol, rtol)| Tolerance::new(atol, rtol).unwrap())
}

/// A plan of pieces so small that a few dozen elements have many of them.
fn small_plan(set: InstructionSet, threads: usize) -> Plan {
    Plan { set, threads, block: 32, tile: 16, direct_limit: 8, sample: 64, collect_limit: 1000 }
}

fn options(tolerance: Tolerance) -> MeasureOptions {
    MeasureOptions::new(tolerance).with_ulp_histogram().with_percentiles()
}

/// Every bit of a measurement, so that even `-0` and `0` differ.
fn every_bit(measurement: &Measurement) -> String {
    format!("{measurement:?}")
}

fn close(left: f64, right: f64) -> bool {
    left == right || (left - right).abs() <= 1e-12 * left.abs().max(right.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_measurement_is_what_its_documentation_says(
        (reference, candidate) in any_pair(100),
        tolerance in any_tolerance(),
    ) {
        let plan = small_plan(InstructionSet::best(), 1);
        let options = options(tolerance);
        let measured = measure_with(&reference.view(), &candidate.view(), &options, plan).unwrap();
        let mut expected = naive(&reference, &candidate, tolerance);
        prop_assert!(close(measured.mean_abs, expected.mean_abs), "{measured:?}\n{expected:?}");
        prop_assert!(close(measured.rms, expected.rms), "{measured:?}\n{expected:?}");
        (expected.mean_abs, expected.rms) = (measured.mean_abs, measured.rms);
        prop_assert_eq!(every_bit(&measured), every_bit(&expected));
    }

    #[test]
    fn threads_and_instructions_never_show(
        (reference, candidate) in any_pair(300),
        tolerance in any_tolerance(),
    ) {
        let with = |set, threads| {
            let plan = small_plan(set, threads);
            let options = options(tolerance);
            measure_with(&reference.view(), &candidate.view(), &options, plan).unwrap()
        };
        let expected = every_bit(&with(InstructionSet::best(), 1));
        for set in InstructionSet::available() {
            prop_assert_eq!(&every_bit(&with(set, 1)), &expected, "{:?}", set);
        }
        for threads in [2, 3, 7] {
            prop_assert_eq!(&every_bit(&with(InstructionSet::best(), threads)), &expected);
        }
    }

    #[test]
    fn min_atol_passes_when_judged(
        (reference, candidate) in any_pair(60),
        tolerance in any_tolerance(),
    ) {
        let (reference, candidate) = (reference.view(), candidate.view());
        let first = measure(&reference, &candidate, &MeasureOptions::new(tolerance)).unwrap();
        prop_assume!(first.min_atol.is_finite());
        let wider = Tolerance::new(first.min_atol, tolerance.rtol()).unwrap();
        let again = measure(&reference, &candidate, &MeasureOptions::new(wider)).unwrap();
        prop_assert_eq!(again.outside, 0);
    }

    #[test]
    fn percentiles_are_exact_whatever_the_limits(
        values in prop::collection::vec(prop_oneof![
            4 => prop::sample::select(vec![0.0, 0.5, 0.500_000_1, 0.25, 7.0]),
            1 => 0.0_f64..1e-3,
            1 => 0.0_f64..1e300,
        ], 0..400),
        (sample, collect_limit) in (8_usize..64, prop::sample::select(vec![1_usize, 5, 1000])),
    ) {
        let reference = Tensor::zeros(DType::F64, Shape::from([values.len()]));
        let candidate = Tensor::from_slice([values.len()], &values).unwrap();
        let mut plan = small_plan(InstructionSet::best(), 2);
        (plan.sample, plan.collect_limit) = (sample, collect_limit);
        let options = options(Tolerance::EXACT);
        let measured = measure_with(&reference.view(), &candidate.view(), &options, plan).unwrap();
        let expected = naive_percentiles(values);
        prop_assert_eq!(format!("{:?}", measured.percentiles), format!("{expected:?}"));
    }
}

#[test]
fn sizes_around_lanes_tiles_and_blocks_are_measured_whole() {
    for count in [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129] {
        let reference = Tensor::zeros(DType::F32, Shape::from([count]));
        let candidate = Tensor::from_slice([count], &vec![0.5_f32; count]).unwrap();
        for set in InstructionSet::available() {
            let options = options(Tolerance::EXACT);
            let plan = small_plan(set, 2);
            let measured =
                measure_with(&reference.view(), &candidate.view(), &options, plan).unwrap();
            assert_eq!(measured.outside, count as u64, "{count}");
            assert_eq!(measured.compared, count as u64, "{count}");
            let half = if count == 0 { 0.0 } else { 0.5 };
            assert_eq!((measured.mean_abs, measured.rms), (half, half), "{count}");
            assert_eq!(measured.percentiles.map(|p| p.p99), (count > 0).then_some(0.5), "{count}");
        }
    }
}

#[test]
fn real_pieces_give_what_small_pieces_give() {
    let count = 300_000;
    let wave = |index: usize, scale: f32| (index as f32 * 0.37).sin() * scale;
    let reference: Vec<f32> = (0..count).map(|index| wave(index, 3.0)).collect();
    let mut candidate: Vec<f32> = (0..count).map(|index| wave(index, 3.000_01)).collect();
    candidate[131_071] = f32::NAN;
    let (reference, candidate) = (
        Tensor::from_slice([300, 1000], &reference).unwrap(),
        Tensor::from_slice([300, 1000], &candidate).unwrap(),
    );
    let tolerance = Tolerance::new(1e-6, 1e-6).unwrap();
    let expected = naive(&reference, &candidate, tolerance);
    let options = options(tolerance);
    let measured = measure(&reference.view(), &candidate.view(), &options).unwrap();
    assert!(measured.outside > 0 && measured.outside < measured.compared);
    assert_eq!(measured.non_finite.first_mismatch, Some(vec![131, 71]));
    assert_eq!(measured.percentiles, expected.percentiles);
    assert_eq!(measured.outside, expected.outside);
    assert_eq!(measured.worst, expected.worst);
    for threads in [1, 2, 3, 7] {
        let options = options.clone().with_threads(threads);
        let again = measure(&reference.view(), &candidate.view(), &options).unwrap();
        assert_eq!(every_bit(&again), every_bit(&measured), "{threads} threads");
    }
}

#[test]
fn a_scalar_has_an_empty_index() {
    let (reference, candidate) =
        (Tensor::from_slice([], &[1.0_f64]).unwrap(), Tensor::from_slice([], &[3.0_f64]).unwrap());
    let measured =
        measure(&reference.view(), &candidate.view(), &options(Tolerance::EXACT)).unwrap();
    let worst = Worst { index: vec![], reference: 1.0, candidate: 3.0 };
    assert_eq!(measured.worst, Some(worst));
    assert_eq!(measured.percentiles.unwrap().p50, 2.0);
}

#[test]
fn differences_of_64_bit_integers_are_exact() {
    let reference = Tensor::from_slice([3], &[i64::MIN, i64::MAX, 1 << 60]).unwrap();
    let candidate = Tensor::from_slice([3], &[i64::MIN, i64::MAX - 1, (1 << 60) + 1]).unwrap();
    let options = MeasureOptions::new(Tolerance::EXACT);
    let measured = measure(&reference.view(), &candidate.view(), &options).unwrap();
    assert_eq!((measured.differing, measured.outside, measured.max_abs), (2, 2, 1.0));
    assert_eq!(measured.max_ulp, 0);
}

#[test]
fn strided_and_misaligned_memory_is_measured_like_a_copy() {
    let values: Vec<f32> = (0_u8..240).map(f32::from).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut shifted = vec![0];
    shifted.extend(&bytes);
    let shape = Shape::from([12, 20]);
    let transposed = TensorView::strided(DType::F32, &shape, &[1, 12], 0, &bytes).unwrap();
    let reversed = TensorView::strided(DType::F32, &shape, &[-20, 1], 880, &bytes).unwrap();
    let repeated = TensorView::strided(DType::F32, &shape, &[0, 1], 0, &bytes).unwrap();
    let misaligned = TensorView::new(DType::F32, &shape, &shifted[1..]).unwrap();
    let reference = TensorView::new(DType::F32, &shape, &bytes).unwrap();
    let options = options(Tolerance::new(0.0, 0.5).unwrap());
    let plan = small_plan(InstructionSet::best(), 2);
    for view in [transposed, reversed, repeated, misaligned] {
        let copy = view.to_tensor();
        let measured = measure_with(&reference, &view, &options, plan).unwrap();
        let expected = measure_with(&reference, &copy.view(), &options, plan).unwrap();
        assert_eq!(every_bit(&measured), every_bit(&expected));
    }
}

#[test]
fn other_shapes_and_dtypes_are_refused_and_nothing_is_broadcast() {
    let tensor = |dtype, dims: &[usize]| Tensor::zeros(dtype, Shape::new(dims).unwrap());
    let reference = tensor(DType::F32, &[2, 3]);
    let shape = codes::COMPARE_SHAPE_DIFFERS;
    let dtype = codes::COMPARE_DTYPE_DIFFERS;
    for (candidate, expected) in [
        (tensor(DType::F32, &[1, 3]), &[shape][..]),
        (tensor(DType::F32, &[3]), &[shape]),
        (tensor(DType::F32, &[]), &[shape]),
        (tensor(DType::F32, &[6]), &[shape]),
        (tensor(DType::F32, &[2, 0]), &[shape]),
        (tensor(DType::F64, &[2, 3]), &[dtype]),
        (tensor(DType::I32, &[3, 2]), &[dtype, shape]),
    ] {
        let options = MeasureOptions::new(Tolerance::EXACT);
        let refusal = measure(&reference.view(), &candidate.view(), &options).unwrap_err();
        let found: Vec<_> = refusal.diagnostics().iter().map(|reason| reason.code).collect();
        assert_eq!(found, expected, "{}", candidate.shape());
    }
}
