(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* The axioms of ../bits.h, ../bitmap.h, ../shifts.h, ../drr/visits.c and ../pss/reserve.c, which the provers get about shifts, masks and
   products, as theorems about the integers of Rocq. lw_bit is `bit`; an operation on uint64_t is taken modulo 2^64. *)
From Coq Require Import ZArith Lia Bool.
Open Scope Z_scope.

Definition bit (x k : Z) : Prop := Z.land (Z.shiftr x k) 1 = 1.

Lemma bit_is_testbit x k : 0 <= k -> bit x k <-> Z.testbit x k = true.
Proof.
  intros Hk. unfold bit. change 1 with (Z.ones 1) at 1. rewrite Z.land_ones by lia. change (2 ^ 1) with 2.
  rewrite Z.testbit_odd, Zmod_odd. destruct (Z.odd (Z.shiftr x k)); split; intros; try lia; discriminate.
Qed.

Lemma power x k : 0 <= k -> Z.shiftl x k = x * 2 ^ k.
Proof. intros. apply Z.shiftl_mul_pow2. lia. Qed.

Lemma power_1 k : 0 <= k -> Z.shiftl 1 k = 2 ^ k.
Proof. intros. rewrite power by lia. lia. Qed.

Theorem power_positive k : 0 <= k -> Z.shiftl 1 k >= 1.
Proof. intros. rewrite power_1 by lia. pose proof (Z.pow_pos_nonneg 2 k). lia. Qed.

Theorem power_zero : Z.shiftl 1 0 = 1.
Proof. reflexivity. Qed.

Theorem power_word k : 0 <= k <= 63 -> Z.shiftl 1 k <= 9223372036854775808.
Proof. intros. rewrite power_1 by lia. change 9223372036854775808 with (2 ^ 63). apply Z.pow_le_mono_r; lia. Qed.

Theorem power_next k l : 0 <= k -> l = k + 1 -> Z.shiftl 1 l = 2 * Z.shiftl 1 k.
Proof. intros Hk ->. rewrite !power_1 by lia. rewrite Z.pow_add_r by lia. lia. Qed.

Theorem power_64 : Z.shiftl 1 64 = 18446744073709551616.
Proof. reflexivity. Qed.

Theorem shift_right x k : 0 <= x -> 0 <= k ->
  Z.shiftr x k * Z.shiftl 1 k <= x < Z.shiftr x k * Z.shiftl 1 k + Z.shiftl 1 k /\ 0 <= Z.shiftr x k <= x.
Proof.
  intros Hx Hk. rewrite power_1, Z.shiftr_div_pow2 by lia. pose proof (Z.pow_pos_nonneg 2 k ltac:(lia) Hk).
  pose proof (Z.div_mod x (2 ^ k) ltac:(lia)). pose proof (Z.mod_pos_bound x (2 ^ k) ltac:(lia)).
  assert (0 <= x / 2 ^ k) by (apply Z.div_pos; lia). nia.
Qed.

Theorem halves x : 0 <= x -> x = Z.shiftr x 32 * 4294967296 + x mod 4294967296 /\ 0 <= Z.shiftr x 32.
Proof.
  intros Hx. rewrite Z.shiftr_div_pow2 by lia. change (2 ^ 32) with 4294967296.
  pose proof (Z.div_mod x 4294967296 ltac:(lia)). assert (0 <= x / 4294967296) by (apply Z.div_pos; lia). lia.
Qed.

Theorem upper_half x : 0 <= x -> Z.shiftl x 32 = x * 4294967296.
Proof. intros. rewrite power by lia. reflexivity. Qed.

Theorem half_product x y : 0 <= x <= 4294967295 -> 0 <= y <= 4294967295 -> x * y <= 18446744065119617025.
Proof. nia. Qed.

Theorem low_bits x y k : 0 <= x -> 0 <= k -> y = Z.shiftl 1 k - 1 -> Z.land x y = x - Z.shiftr x k * Z.shiftl 1 k.
Proof.
  intros Hx Hk ->. rewrite power_1, Z.shiftr_div_pow2 by lia.
  replace (2 ^ k - 1) with (Z.ones k) by (rewrite Z.ones_equiv; lia).
  rewrite Z.land_ones by lia. pose proof (Z.pow_pos_nonneg 2 k ltac:(lia) Hk).
  pose proof (Z.div_mod x (2 ^ k) ltac:(lia)). lia.
Qed.

Theorem low_bits_swapped x y k : 0 <= y -> 0 <= k -> x = Z.shiftl 1 k - 1 -> Z.land x y = y - Z.shiftr y k * Z.shiftl 1 k.
Proof. intros. rewrite Z.land_comm. apply low_bits; assumption. Qed.

Theorem bit_0 x : 0 <= x -> Z.land x 1 = 0 \/ Z.land x 1 = 1.
Proof.
  intros. assert (E : Z.land x 1 = x mod 2) by (change 1 with (Z.ones 1); rewrite Z.land_ones by lia; reflexivity). rewrite E.
  pose proof (Z.mod_pos_bound x 2 ltac:(lia)). lia.
Qed.

Theorem zero_bits k : 0 <= k -> ~ bit 0 k.
Proof. intros Hk. rewrite bit_is_testbit, Z.bits_0 by lia. discriminate. Qed.

Lemma above x k : 0 <= x <= 18446744073709551615 -> 64 <= k -> Z.testbit x k = false.
Proof.
  intros Hx Hk. destruct (Z.eq_dec x 0) as [->|]; [apply Z.bits_0|].
  apply Z.bits_above_log2; [lia|]. apply Z.log2_lt_pow2; [lia|].
  apply Z.lt_le_trans with (2 ^ 64); [cbn; lia|]. apply Z.pow_le_mono_r; lia.
Qed.

Theorem no_bits x : 0 <= x <= 18446744073709551615 -> x <> 0 -> exists k, 0 <= k < 64 /\ bit x k.
Proof.
  intros Hx H. exists (Z.log2 x). pose proof (Z.log2_nonneg x).
  assert (Hlog : Z.log2 x < 64) by (apply Z.log2_lt_pow2; [lia|change (2 ^ 64) with 18446744073709551616; lia]).
  split; [lia|]. rewrite bit_is_testbit by lia. apply Z.bit_log2. lia.
Qed.

Lemma power_bit b k : 0 <= b -> 0 <= k -> Z.testbit (Z.shiftl 1 b) k = (k =? b).
Proof.
  intros. rewrite power_1, Z.pow2_bits_eqb by lia. destruct (Z.eqb_spec b k), (Z.eqb_spec k b); lia || reflexivity.
Qed.

Theorem or_bit x y b k : 0 <= x -> 0 <= b -> 0 <= k -> y = Z.shiftl 1 b -> (bit (Z.lor x y) k <-> bit x k \/ k = b).
Proof.
  intros Hx Hb Hk ->. rewrite !bit_is_testbit, Z.lor_spec, power_bit by lia. rewrite orb_true_iff, Z.eqb_eq. tauto.
Qed.

Theorem or_bit_swapped x y b k : 0 <= y -> 0 <= b -> 0 <= k -> x = Z.shiftl 1 b -> (bit (Z.lor x y) k <-> bit y k \/ k = b).
Proof. intros. rewrite Z.lor_comm. apply or_bit; assumption. Qed.

Theorem or_some x y b : 0 <= x -> 0 <= b -> y = Z.shiftl 1 b -> Z.lor x y >= 1.
Proof.
  intros Hx Hb Hy. pose proof (or_bit x y b b Hx Hb Hb Hy) as [_ H]. specialize (H (or_intror eq_refl)).
  assert (0 <= Z.lor x y) by (apply Z.lor_nonneg; subst; rewrite power_1 by lia; split; [lia|apply Z.pow_nonneg; lia]).
  destruct (Z.eq_dec (Z.lor x y) 0) as [E|]; [|lia]. rewrite E in H. exfalso. exact (zero_bits b Hb H).
Qed.

Theorem or_some_swapped x y b : 0 <= y -> 0 <= b -> x = Z.shiftl 1 b -> Z.lor x y >= 1.
Proof. intros. rewrite Z.lor_comm. apply or_some with b; assumption. Qed.

Theorem and_not x y b k : 0 <= x <= 18446744073709551615 -> 0 <= b < 64 -> 0 <= k ->
  y = Z.lnot (Z.shiftl 1 b) mod 18446744073709551616 -> (bit (Z.land x y) k <-> bit x k /\ k <> b).
Proof.
  intros Hx Hb Hk ->. change 18446744073709551616 with (2 ^ 64). rewrite <- Z.land_ones by lia.
  rewrite !bit_is_testbit, !Z.land_spec, Z.lnot_spec, power_bit by lia.
  destruct (Z.lt_ge_cases k 64) as [Hlow|Hhigh].
  - rewrite Z.ones_spec_low, andb_true_r by lia. rewrite andb_true_iff, negb_true_iff, Z.eqb_neq. tauto.
  - rewrite (above x k) by lia. cbn [andb]. split; [|intros [? _]]; discriminate.
Qed.

Theorem and_not_swapped x y b k : 0 <= y <= 18446744073709551615 -> 0 <= b < 64 -> 0 <= k ->
  x = Z.lnot (Z.shiftl 1 b) mod 18446744073709551616 -> (bit (Z.land x y) k <-> bit y k /\ k <> b).
Proof. intros. rewrite Z.land_comm. apply and_not; assumption. Qed.

(* Of ../drr/visits.c; ../drr/wp.c defines drr_bytes by this product. *)
Definition drr_bytes (rounds quantum : Z) : Z := rounds * quantum.

Theorem some_bytes k quantum : 0 <= k -> 0 <= quantum -> 0 <= drr_bytes k quantum.
Proof. unfold drr_bytes. nia. Qed.

Theorem one_more k l quantum : k = l + 1 -> drr_bytes k quantum = drr_bytes l quantum + quantum.
Proof. unfold drr_bytes. nia. Qed.

Theorem one_round quantum : drr_bytes 1 quantum = quantum.
Proof. unfold drr_bytes. lia. Qed.

Theorem fewer_bytes k l quantum : k <= l -> 0 <= quantum -> drr_bytes k quantum <= drr_bytes l quantum.
Proof. unfold drr_bytes. nia. Qed.

(* Of ../pss/reserve.c *)
Theorem part a b c : 0 <= a -> 0 <= b <= c -> 0 < c -> a * b / c <= a.
Proof. intros. apply Z.div_le_upper_bound; nia. Qed.

Theorem memory_part a b : 0 <= a <= 1000000000000 -> 0 <= b <= 604800000000000 -> a * b / 1000000000 <= 604800000000000000.
Proof. intros. apply Z.div_le_upper_bound; nia. Qed.

Theorem packet_part a b c : 0 <= a <= 1000000000000 -> 0 <= b <= 16777216 -> 0 < c -> a * b / c <= 16777216000000000000.
Proof. intros. apply Z.div_le_upper_bound; nia. Qed.
