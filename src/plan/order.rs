//! The order of a block and the seed of a trial: algorithms that must never change, since a run that is resumed, or
//! repeated years later, relies on them.
//!
//! - The generator is xoshiro256** (Blackman and Vigna, 2018), seeded with the 32 bytes of
//!   SHA-256("sweep order" ‖ seed ‖ block), numbers as 8 bytes little-endian.
//! - The shuffle is Fisher and Yates's from the last element down; index `j` in `0..n` is the high half of the 128-bit
//!   product of `n` and a draw, without rejection: the bias is below n/2^64.
//! - The seed of a trial is the first 8 bytes, little-endian, of SHA-256("sweep trial" ‖ seed ‖ repetition ‖ cell id).

use rand::Rng as _;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256StarStar;
use sha2::{Digest, Sha256};

/// The numbers `0..cells` in the order of this block.
pub(super) fn of_block(seed: u64, block: u32, cells: usize) -> Vec<usize> {
    let mut hasher = Sha256::new();
    hasher.update(b"sweep order");
    hasher.update(seed.to_le_bytes());
    hasher.update(u64::from(block).to_le_bytes());
    let mut random = Xoshiro256StarStar::from_seed(hasher.finalize().into());
    let mut order: Vec<usize> = (0..cells).collect();
    for last in (1..cells).rev() {
        let draw = u128::from(random.next_u64()) * (last as u128 + 1);
        order.swap(last, (draw >> 64) as usize);
    }
    order
}

/// The seed of one trial.
pub(super) fn trial_seed(seed: u64, cell: &str, repetition: u32) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(b"sweep trial");
    hasher.update(seed.to_le_bytes());
    hasher.update(u64::from(repetition).to_le_bytes());
    hasher.update(cell.as_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by an independent implementation of the description above; a change breaks every run that is resumed.
    #[test]
    fn the_order_is_the_same_for_ever() {
        assert_eq!(of_block(1, 1, 8), [3, 7, 4, 6, 1, 5, 0, 2]);
        assert_eq!(of_block(1, 2, 8), [2, 3, 7, 0, 1, 5, 4, 6]);
        assert_eq!(of_block(2, 1, 8), [5, 4, 3, 6, 7, 0, 2, 1]);
    }

    #[test]
    fn the_seeds_are_the_same_for_ever() {
        assert_eq!(
            trial_seed(1, "cpu=250m,memory=64Mi,swap=0", 1),
            5447109335387420812
        );
        assert_eq!(trial_seed(1, "direct", 3), 4400954116717742667);
    }

    #[test]
    fn every_position_is_equally_likely() {
        let blocks = 6000;
        let mut first = [0u32; 6];
        for block in 1..=blocks {
            if let Some(count) = of_block(9, block, 6)
                .first()
                .and_then(|c| first.get_mut(*c))
            {
                *count += 1;
            }
        }
        // 1000 expected, standard deviation 29: seven of them.
        assert!(first.iter().all(|n| (800..1200).contains(n)), "{first:?}");
    }
}
