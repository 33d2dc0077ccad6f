//! Made-up inputs of many kinds: what clips, rounds, compares, counts or looks up behaves otherwise
//! at numbers that no normal distribution ever gives.

use std::collections::BTreeMap;

use veracity_onnx::{Dim, Model, ValueInfo};
use veracity_tensor::{DType, Shape, Tensor};

use crate::convert::{floats, integers};
use crate::domain::{FARTHEST, in_type, shown_ranges, whole_in_type};
use crate::pair::Inputs;
use crate::random::Random;

/// Draws of one kind.
const RUNS: u64 = 6;
/// Values of an index or a counter that are gone through one by one.
const SWEPT: i64 = 1024;
/// Draws of a sweep, at most.
const MOST_SWEEPS: i64 = 1024;
/// Constants of a model with more elements are weights.
const MOST_ELEMENTS: usize = 8;
/// Numbers that are taken from a model.
const MOST_NUMBERS: usize = 64;
/// Elements of an input that is drawn; larger ones take long.
const MOST_DRAWN: usize = 1 << 20;
/// The size of axes without a size of their own: one hides what goes along them.
const SIZES: [usize; 2] = [3, 1];

/// How floats are drawn.
#[derive(Clone, Copy, Debug)]
enum Floats {
    /// Around zero, so wide.
    Wide(f64),
    /// On one side of zero.
    OneSided(f64),
    /// Halves and whole numbers: where rounding turns.
    Halves,
    /// Numbers that the models compare with and clip at, and their neighbours.
    Numbers,
    /// One such number everywhere.
    OneNumber,
    /// Few values, each of them often.
    Ties,
    /// Zeros, and a few others.
    Sparse,
    /// The same for every input of one shape.
    Shared,
    /// With NaN and infinities among them; only for models that ask for those.
    NotFinite,
}

/// How integers are drawn that are no index of a table.
#[derive(Clone, Copy, Debug)]
enum Whole {
    Between(i64, i64),
    /// Integers that stand in the models, and their neighbours.
    Numbers,
    /// Beyond the types that are narrower.
    Large,
}

const KINDS: [(&str, Floats, Whole); 20] = [
    ("of width 1", Floats::Wide(1.0), Whole::Between(0, 15)),
    ("of width 8", Floats::Wide(8.0), Whole::Between(-20, 20)),
    ("at and beside the models' own numbers", Floats::Numbers, Whole::Numbers),
    ("one number of the models everywhere", Floats::OneNumber, Whole::Numbers),
    ("halves and whole numbers", Floats::Halves, Whole::Between(-3, 3)),
    ("that tie", Floats::Ties, Whole::Between(0, 1)),
    ("mostly zero", Floats::Sparse, Whole::Between(-1, 1)),
    ("the same for every input", Floats::Shared, Whole::Between(0, 3)),
    ("of width 0.001", Floats::Wide(1e-3), Whole::Between(0, 300)),
    ("of width 1e-5", Floats::Wide(1e-5), Whole::Between(-300, 300)),
    ("of width 100", Floats::Wide(100.0), Whole::Between(-1000, 1000)),
    ("of width 3000", Floats::Wide(3000.0), Whole::Large),
    ("all negative or all positive", Floats::OneSided(2.0), Whole::Between(-5, -1)),
    ("on one side of zero, and large", Floats::OneSided(500.0), Whole::Between(1, 100)),
    ("of width 1e5", Floats::Wide(1e5), Whole::Large),
    ("of width 0.1", Floats::Wide(0.1), Whole::Between(0, 15)),
    ("of width 0.01", Floats::Wide(1e-2), Whole::Numbers),
    ("of width 30", Floats::Wide(30.0), Whole::Between(-50, 50)),
    ("that tie, again", Floats::Ties, Whole::Between(-2, 2)),
    ("at the models' own numbers, again", Floats::Numbers, Whole::Numbers),
];

const LARGE: [i64; 8] =
    [(1 << 24) + 1, (1 << 31) + 5, (1 << 33) + 7, -(1 << 31) - 3, 65_537, 300, -200, (1 << 53) + 1];

/// Draws of one kind, to be run one after the other.
pub(super) struct Group {
    pub(super) said: String,
    pub(super) draws: Vec<Inputs>,
}

/// Makes up inputs for two models.
pub(super) struct Draws<'a> {
    infos: Vec<ValueInfo>,
    /// Of integers that are an index of something.
    ranges: BTreeMap<String, (i64, i64)>,
    numbers: Vec<f64>,
    whole: Vec<i64>,
    asks_for_nan: bool,
    /// Whether integers may be beyond what float32 holds. Exporters of torch go through that.
    pub(super) takes_large: bool,
    sizes: &'a BTreeMap<String, usize>,
    seed: u64,
}

impl<'a> Draws<'a> {
    /// Inputs that are `weights` are not made up.
    pub(super) fn new(
        models: [&Model; 2],
        weights: &BTreeMap<String, Tensor>,
        sizes: &'a BTreeMap<String, usize>,
        seed: u64,
    ) -> Self {
        let (mut numbers, mut whole) = (Vec::new(), Vec::new());
        for model in models {
            for name in model.constant_names() {
                let small = |held: &Tensor| held.shape().elements() <= MOST_ELEMENTS;
                let Some(held) = model.constant(&name).filter(small) else { continue };
                numbers.extend(floats(&held).unwrap_or_default());
                whole.extend(integers(&held).unwrap_or_default());
            }
        }
        numbers.retain(|number: &f64| number.abs() < FARTHEST);
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.truncate(MOST_NUMBERS);
        whole.sort_unstable();
        whole.dedup();
        whole.truncate(MOST_NUMBERS);
        let shown = shown_ranges(models[0]).into_iter();
        let ranges = shown.filter_map(|(name, range)| Some((name, range?))).collect();
        let asks_for_nan = models.iter().any(|model| {
            model.nodes().iter().any(|node| ["IsNaN", "IsInf"].contains(&node.op_type.as_str()))
        });
        let is_given = |info: &ValueInfo| !weights.contains_key(&info.name);
        let infos = models[0].inputs().into_iter().filter(is_given).collect();
        Self { infos, ranges, numbers, whole, asks_for_nan, takes_large: true, sizes, seed }
    }

    /// All of them, the most telling first.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        let named =
            |info: &ValueInfo| info.dims.iter().flatten().any(|dim| !matches!(dim, Dim::Fixed(_)));
        let free = self.sizes.is_empty() && self.infos.iter().any(named);
        let sizes: &[usize] = if free { &SIZES } else { &SIZES[1..] };
        let kinds = KINDS.iter().enumerate().flat_map(move |(number, kind)| {
            sizes.iter().map(move |&size| self.group(number as u64, kind, size))
        });
        let not_finite = ("with NaN and infinities", Floats::NotFinite, Whole::Between(0, 15));
        let asked = self.asks_for_nan.then(|| self.group(KINDS.len() as u64, &not_finite, 1));
        let all = std::iter::once(self.sweep()).chain(asked).chain(kinds);
        all.filter(|group| !group.draws.is_empty())
    }

    fn group(&self, number: u64, kind: &(&str, Floats, Whole), size: usize) -> Group {
        let (said, floats, whole) = *kind;
        let draws = (0..RUNS).filter_map(|run| self.draw(number * RUNS + run, floats, whole, size));
        Group { said: format!("floats {said}"), draws: draws.collect() }
    }

    fn draw(&self, run: u64, floats: Floats, whole: Whole, size: usize) -> Option<Inputs> {
        let mut inputs = Inputs::new();
        for info in &self.infos {
            let shape = self.shape(info, size)?;
            let label = if matches!(floats, Floats::Shared) {
                shape.to_string()
            } else {
                info.name.clone()
            };
            let mut random = Random::new(self.seed.wrapping_add(run), &label);
            let dtype = info.dtype?;
            let tensor = if dtype.is_float() {
                in_type(&shape, &self.floats(shape.elements(), floats, &mut random), dtype)
            } else if dtype == DType::Bool {
                // Both, all or none of them.
                let most = [0.5, 1.0, 0.0][usize::try_from(run % 3).unwrap_or(0)];
                let of = |_| i64::from(random.unit() < most);
                whole_in_type(&shape, &(0..shape.elements()).map(of).collect::<Vec<_>>(), dtype)
            } else {
                let of = |_| self.integer(&info.name, whole, run, &mut random);
                let mut values: Vec<i64> = (0..shape.elements()).map(of).collect();
                self.leave_range(&info.name, run, &mut values);
                whole_in_type(&shape, &fitting(&values, dtype), dtype)
            };
            inputs.insert(info.name.clone(), tensor);
        }
        Some(inputs)
    }

    /// Puts one index beside its range, on some of the runs: an engine may take it all the same.
    fn leave_range(&self, name: &str, run: u64, values: &mut [i64]) {
        let range = self.ranges.get(name).copied();
        if let (Some((low, high)), Some(first), 2) = (range, values.first_mut(), run % 3) {
            *first = [low - 1, -1, high + 1][usize::try_from(run / 3 % 3).unwrap_or(0)];
        }
    }

    /// Goes through the values of every integer input, one after the other.
    fn sweep(&self) -> Group {
        let is_whole = |info: &&ValueInfo| {
            info.dtype.is_some_and(|dtype| !dtype.is_float() && dtype != DType::Bool)
        };
        let swept: Vec<&ValueInfo> = self.infos.iter().filter(is_whole).collect();
        let runs = swept.iter().filter_map(|info| {
            let (low, high) = self.swept(&info.name);
            let count = i64::try_from(self.shape(info, 1)?.elements().max(1)).ok()?;
            Some((high - low + count) / count)
        });
        let runs = runs.max().unwrap_or(0).min(MOST_SWEEPS);
        let draws = (0..runs).filter_map(|run| {
            let kind = Floats::Wide(1.0);
            let mut inputs = self.draw(run.cast_unsigned(), kind, Whole::Between(0, 1), 1)?;
            for info in &swept {
                let shape = self.shape(info, 1)?;
                let count = i64::try_from(shape.elements()).ok()?;
                let (low, high) = self.swept(&info.name);
                let of = |index: i64| low + (run * count + index) % (high - low + 1);
                let values: Vec<i64> = (0..count).map(of).collect();
                let dtype = info.dtype?;
                let tensor = whole_in_type(&shape, &fitting(&values, dtype), dtype);
                inputs.insert(info.name.clone(), tensor);
            }
            Some(inputs)
        });
        Group { said: "integers one after the other".to_owned(), draws: draws.collect() }
    }

    fn swept(&self, name: &str) -> (i64, i64) {
        self.ranges.get(name).copied().unwrap_or((0, SWEPT - 1))
    }

    fn integer(&self, name: &str, kind: Whole, run: u64, random: &mut Random) -> i64 {
        if let Some((low, high)) = self.ranges.get(name).copied() {
            // Indices count from the end as well.
            let low = if run % 2 == 1 && low == 0 { -high - 1 } else { low };
            return between(low, high, random);
        }
        match kind {
            Whole::Between(low, high) => between(low, high, random),
            Whole::Numbers if !self.whole.is_empty() => {
                let one = random.below(self.whole.len() as u64);
                let beside = between(-1, 1, random);
                self.whole[usize::try_from(one).unwrap_or(0)].saturating_add(beside)
            }
            Whole::Numbers => between(0, 15, random),
            Whole::Large if !self.takes_large => between(-1000, 1000, random),
            Whole::Large => {
                let one = random.below(LARGE.len() as u64);
                LARGE[usize::try_from(one).unwrap_or(0)]
            }
        }
    }

    fn floats(&self, count: usize, kind: Floats, random: &mut Random) -> Vec<f64> {
        let side = if random.bits() & 1 == 0 { 1.0 } else { -1.0 };
        let number = self.number(random);
        let few = [random.normal(), random.normal()];
        let mut one = || match kind {
            Floats::Wide(width) => random.normal() * width,
            Floats::OneSided(width) => random.normal().abs() * width * side,
            Floats::Halves => 0.5 * small(random, 8),
            Floats::Numbers => match random.below(3) {
                0 => random.normal(),
                1 => self.number(random),
                _ => {
                    self.number(random) * (1.0 + small(random, 1) * 1e-3) + small(random, 1) * 1e-3
                }
            },
            Floats::OneNumber => number,
            Floats::Ties => few[usize::from(random.bits() & 1 == 0)],
            Floats::Sparse if random.below(3) > 0 => 0.0,
            Floats::NotFinite if random.below(3) == 0 => {
                [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
                    [usize::try_from(random.below(3)).unwrap_or(0)]
            }
            Floats::Sparse | Floats::Shared | Floats::NotFinite => random.normal(),
        };
        (0..count).map(|_| one()).collect()
    }

    fn number(&self, random: &mut Random) -> f64 {
        if self.numbers.is_empty() {
            return 0.0;
        }
        self.numbers[usize::try_from(random.below(self.numbers.len() as u64)).unwrap_or(0)]
    }

    fn shape(&self, info: &ValueInfo, size: usize) -> Option<Shape> {
        let of = |dim: &Dim| match dim {
            Dim::Fixed(size) => *size,
            Dim::Named(name) => self.sizes.get(name).copied().unwrap_or(size),
            Dim::Unknown => size,
        };
        let shape = Shape::new(info.dims.as_ref()?.iter().map(of).collect::<Vec<usize>>())?;
        (shape.elements() <= MOST_DRAWN).then_some(shape)
    }
}

/// A small whole number of either sign.
#[expect(clippy::cast_precision_loss, reason = "it is small")]
fn small(random: &mut Random, most: i64) -> f64 {
    between(-most, most, random) as f64
}

fn between(low: i64, high: i64, random: &mut Random) -> i64 {
    let size = u64::try_from(high - low).unwrap_or(0) + 1;
    low + random.below(size).cast_signed()
}

/// The values, those that a type does not hold replaced by the nearest that it does.
fn fitting(values: &[i64], dtype: DType) -> Vec<i64> {
    let (low, high) = match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I16 => (-32_768, 32_767),
        DType::U16 => (0, 65_535),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::U32 => (0, i64::from(u32::MAX)),
        DType::U64 => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    };
    values.iter().map(|value| (*value).clamp(low, high)).collect()
}
