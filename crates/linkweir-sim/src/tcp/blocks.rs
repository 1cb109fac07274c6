// SPDX-License-Identifier: BSD-3-Clause
//! Segments that a receiver holds although earlier ones are missing, as blocks in order with gaps between them.

use std::collections::VecDeque;

use super::segment::Block;

/// Adds a segment; true if a block has it already.
pub(super) fn add(held: &mut VecDeque<Block>, sequence: u64) -> bool {
    // The first block that ends at or after `sequence`.
    let at = held.partition_point(|block| block.end < sequence);
    match held.get(at).copied() {
        Some(block) if block.start <= sequence && sequence < block.end => return true,
        Some(block) if block.end == sequence => {
            let next = held.get(at + 1).copied();
            if let Some(next) = next.filter(|next| next.start == sequence + 1) {
                held[at].end = next.end;
                held.remove(at + 1);
            } else {
                held[at].end += 1;
            }
        }
        Some(block) if block.start == sequence + 1 => held[at].start = sequence,
        _ => held.insert(
            at,
            Block {
                start: sequence,
                end: sequence + 1,
            },
        ),
    }
    false
}
