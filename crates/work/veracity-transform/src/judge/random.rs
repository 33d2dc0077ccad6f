//! Random numbers that are the same everywhere.

/// `SplitMix64`: small, and the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Numbers that depend on a seed and a name.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        // FNV-1a, so that each value has numbers of its own.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed ^ hash)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let number = (self.bits() >> 11) as f64;
        number / 9_007_199_254_740_992.0
    }

    /// Around 0 with variance 1: the sum of four uniform numbers. Cheap, signed, and with a bound.
    pub(super) fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let parts = [bits, bits >> 16, bits >> 32, bits >> 48];
        let sum: f64 = parts.iter().map(|part| f64::from((part & 0xffff) as u16)).sum();
        (sum / 65536.0 - 2.0) * 3.0_f64.sqrt()
    }

    /// Any sign, and a size from 2 to the `low` to 2 to the `high`, each doubling as likely.
    pub(super) fn wide(&mut self, low: i32, high: i32) -> f64 {
        let bits = self.bits();
        let steps = u64::from(high.abs_diff(low).max(1));
        let exponent = (bits >> 1) % steps;
        let fraction = 1.0 + self.unit();
        // A power of two is an exponent with nothing else: much cheaper than computing it.
        let power = i64::from(low) + 1023 + exponent.cast_signed();
        let size = fraction * f64::from_bits(power.cast_unsigned() << 52);
        if bits & 1 == 0 { size } else { -size }
    }
}
