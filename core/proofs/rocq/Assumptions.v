(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* Prints what each theorem rests on. The build fails unless each is "Closed under the global context": no axiom at all. *)
From Pss Require Import Pss Charge Identity Guarantee Link LessMemory Rr Drr Bits Sort.

Print Assumptions pace_near.
Print Assumptions charge_parts.
Print Assumptions depart_is_exact.
Print Assumptions identity.
Print Assumptions counted_bits.
Print Assumptions level_floor.
Print Assumptions never_cut.
Print Assumptions reserved_from_LR.
Print Assumptions reserved_strict.
Print Assumptions reserved_delay.
Print Assumptions high_bucket.
Print Assumptions level_most.
Print Assumptions most_urgent_is_least.
Print Assumptions left_over_of_curves.
Print Assumptions between_levels.
Print Assumptions delay_of_EF.
Print Assumptions constant_D.
Print Assumptions constant_delay.
Print Assumptions less_memory_lacks_ever_more.
Print Assumptions enough_memory_lacks_D.
Print Assumptions stays_behind.
Print Assumptions sent_is_behind.
Print Assumptions behind_is_not_picked.
Print Assumptions good_turn.
Print Assumptions good_pick.
Print Assumptions good_charge.
Print Assumptions good_follow.
Print Assumptions sent_in_visits.

Print Assumptions zero_bits.
Print Assumptions no_bits.
Print Assumptions bit_0.
Print Assumptions or_bit_swapped.
Print Assumptions or_some_swapped.
Print Assumptions and_not_swapped.
Print Assumptions power_positive.
Print Assumptions power_zero.
Print Assumptions power_word.
Print Assumptions shift_right.
Print Assumptions low_bits_swapped.
Print Assumptions some_bytes.
Print Assumptions one_more.
Print Assumptions one_round.
Print Assumptions fewer_bytes.
Print Assumptions part.

Print Assumptions own_level.
Print Assumptions given_level.
Print Assumptions some_level.
Print Assumptions equal.
Print Assumptions unequal.
Print Assumptions moved.
Print Assumptions unmoved.
Print Assumptions appended.
Print Assumptions some.
Print Assumptions somewhere.
Print Assumptions first_of_heap.
Print Assumptions parts.
Print Assumptions more_urgent.
Print Assumptions no_levels.
Print Assumptions one_level.
Print Assumptions two_levels.
Print Assumptions room.
