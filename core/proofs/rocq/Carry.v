(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* A new capacity or setting: `carry` of Pss.v. The level's distance from LR keeps its bits, up to the new LR and LM. *)
From Coq Require Import ZArith Lia Bool.
From Pss Require Import Pss Charge.
Open Scope Z_scope.

(* The most that a level can be: LM and the largest packet that there can be. *)
Definition most (q : queue) : Z := full q + (max_bytes - 1) * mult (pace_q q) / 2 ^ shift (pace_q q).

(* The level that `carry` sets, from the distance before it. *)
Definition carried (q q' : queue) (x rho rho' : Z) : Z :=
  Z.min (excess (resume q') (mul_div (excess (resume q) x) rho rho') +
         Z.min (mul_div (excess x (resume q)) rho rho') (2 * max_level)) (most q').

(* pace_near gives the first two premises from 2 to 2^40 bit/s; LM is at most max_level by time_of. *)
Lemma most_bounded q : 0 <= mult (pace_q q) < 2 ^ 32 -> 0 <= shift (pace_q q) -> full q <= max_level -> most q <= 2 * max_level.
Proof.
  intros Hm Hs Hf. unfold most, max_bytes. change max_level with 4611686018427387904 in *.
  assert (Hp : 1 <= 2 ^ shift (pace_q q)) by (pose proof (Z.pow_pos_nonneg 2 (shift (pace_q q))); lia).
  assert ((2 ^ 20 - 1) * mult (pace_q q) / 2 ^ shift (pace_q q) <= (2 ^ 20 - 1) * mult (pace_q q)) by
    (apply Z.div_le_upper_bound; nia).
  lia.
Qed.

Lemma excess_max a b : excess a b = Z.max 0 (a - b).
Proof. unfold excess. destruct (Z.ltb_spec b a); lia. Qed.

(* A call without news changes nothing at all. *)
Theorem nothing_new st q x s rho now :
  snd (set_constants (link st) (best st) q s rho) = false -> fst (carry st q x s rho false now) = q.
Proof.
  unfold carry, set_constants. intros H. destruct (derive s (if share s =? 0 then best st else link st)) as [[r lr] lm].
  destruct ((rho =? r) && (resume q =? time_of lr r) && (full q =? time_of lm r)); [reflexivity|discriminate].
Qed.

(* The level after a change, of a queue that has packets or keeps what it is owed. *)
Theorem carry_sets st q x s rho renewed now q' rho' :
  carry st q x s rho renewed now = (q', rho') -> (q' = q /\ rho' = rho) \/
  (tat q' = origin q now + carried q q' x rho rho' /\ frac q' = 0 /\
   floor q' = floor_of (reset st) q' (carried q q' x rho rho') /\
   (low q' = true <-> low q = true /\ resume q' < carried q q' x rho rho')).
Proof.
  intros H. unfold carry, set_constants in H.
  destruct (derive s (if share s =? 0 then best st else link st)) as [[r lr] lm].
  assert (Low : forall a l b, a && (l <? b) = true <-> a = true /\ l < b) by
    (intros; rewrite andb_true_iff, Z.ltb_lt; reflexivity).
  destruct ((rho =? r) && (resume q =? time_of lr r) && (full q =? time_of lm r)); cbn [orb negb] in H.
  1: destruct renewed; cbn [negb] in H; [|left; inversion H; split; reflexivity].
  all: right; inversion H; subst; split; [reflexivity|]; split; [reflexivity|]; split; [reflexivity|]; apply Low.
Qed.

(* That level's distance from LR is the distance before, in bits, to within a nanosecond of the new rate, rounded towards LR; or it
   is 0, where more was owed than the new LR, or the most that there can be, where more was ahead. *)
Theorem distance_kept q q' x rho rho' :
  0 < rho -> 0 < rho' -> 0 <= x -> 0 <= resume q' <= max_level ->
  0 <= mult (pace_q q') < 2 ^ 32 -> 0 <= shift (pace_q q') -> full q' <= max_level ->
  let y := carried q q' x rho rho' in
  let before := (x - resume q) * rho in
  let after := (y - resume q') * rho' in
  (y = most q' /\ y <= resume q' + Z.max 0 (before / rho')) \/
  (x <= resume q /\ before <= after < before + rho' /\ 0 <= y) \/
  (resume q < x /\ before - rho' < after <= before) \/
  (y = 0 /\ resume q' * rho' <= - before).
Proof.
  intros Hr Hr' Hx Hres Hmult Hshift Hfull. pose proof (most_bounded q' Hmult Hshift Hfull) as Hmost. cbv zeta. unfold carried.
  set (owed := excess (resume q) x). set (ahead := excess x (resume q)).
  assert (Ho : 0 <= owed) by (unfold owed; rewrite excess_max; lia).
  assert (Ha : 0 <= ahead) by (unfold ahead; rewrite excess_max; lia).
  pose proof (Z.div_mod (owed * rho) rho' ltac:(lia)) as Do.
  pose proof (Z.mod_pos_bound (owed * rho) rho' Hr') as Mo.
  pose proof (Z.div_mod (ahead * rho) rho' ltac:(lia)) as Da.
  pose proof (Z.mod_pos_bound (ahead * rho) rho' Hr') as Ma.
  assert (Po : 0 <= owed * rho / rho') by (apply Z.div_pos; nia).
  assert (Pa : 0 <= ahead * rho / rho') by (apply Z.div_pos; nia).
  assert (Uo : mul_div owed rho rho' = Z.min unset (owed * rho / rho')) by
    (unfold mul_div; destruct (Z.leb_spec rho' 0); [lia|reflexivity]).
  assert (Ua : mul_div ahead rho rho' = Z.min unset (ahead * rho / rho')) by
    (unfold mul_div; destruct (Z.leb_spec rho' 0); [lia|reflexivity]).
  rewrite Uo, Ua, excess_max.
  change unset with 18446744073709551615. change max_level with 4611686018427387904 in *.
  set (o := owed * rho / rho') in *. set (a := ahead * rho / rho') in *.
  destruct (Z.le_gt_cases x (resume q)) as [Hside|Hside].
  - assert (ahead = 0) by (unfold ahead; rewrite excess_max; lia).
    assert (owed = resume q - x) by (unfold owed; rewrite excess_max; lia).
    assert (Hb : (x - resume q) * rho / rho' <= 0) by (apply Z.div_le_upper_bound; nia).
    assert (a = 0) by nia.
    destruct (Z.le_gt_cases (most q') (Z.max 0 (resume q' - o))) as [Hm|Hm].
    + left. lia.
    + destruct (Z.le_gt_cases (resume q') o) as [Hcut|Hcut].
      * right; right; right. split; [lia|]. nia.
      * right; left. split; [lia|]. split; [|lia].
        replace (Z.min _ (most q')) with (resume q' - o) by lia. nia.
  - assert (owed = 0) by (unfold owed; rewrite excess_max; lia).
    assert (Hahead : ahead = x - resume q) by (unfold ahead; rewrite excess_max; lia).
    assert (o = 0) by nia.
    assert (Hb : (x - resume q) * rho / rho' = a) by (unfold a; rewrite Hahead; reflexivity).
    destruct (Z.le_gt_cases (most q') (resume q' + a)) as [Hm|Hm].
    + left. rewrite Hb. lia.
    + right; right; left. split; [lia|].
      replace (Z.min _ (most q')) with (resume q' + a) by lia. nia.
Qed.
