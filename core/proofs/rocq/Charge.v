(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* One call: what a packet, a review or an arrival does to the level. No rounding is left out: positions are exact integers,
   in units of 2^-shift ns, and every term by which the counted service and the level differ has a name. *)
From Coq Require Import ZArith Lia Bool.
From Pss Require Import Pss.
Open Scope Z_scope.

(* ---- the pace: 8e9 * 2^shift / rate to within half a unit of a number of 32 bits, so within 2^-32 of itself ---- *)

Lemma digits_exact steps : forall rate m rest s,
  0 < rate -> 0 <= m -> 0 <= rest < rate -> 0 <= s -> m * rate + rest = 8000000000 * 2 ^ s ->
  let '(m', rest', s') := digits steps rate m rest s in
  0 <= m' /\ 0 <= rest' < rate /\ s <= s' /\ m' * rate + rest' = 8000000000 * 2 ^ s' /\
  (2 ^ 31 <= m' \/ s' = s + Z.of_nat steps) /\ (m < 2 ^ 32 -> m' < 2 ^ 32).
Proof.
  induction steps as [|steps IH]; intros rate m rest s Hrate Hm Hrest Hs Hexact.
  - cbn [digits]. repeat split; try lia.
  - cbn [digits]. destruct (Z.ltb_spec m (2 ^ 31)) as [Hsmall|Hlarge].
    2: repeat split; try lia.
    assert (Hpow : 2 ^ (s + 1) = 2 * 2 ^ s) by (rewrite Z.pow_add_r by lia; lia).
    destruct (Z.leb_spec (rate - rest) rest) as [Hcarry|Hcarry].
    + specialize (IH rate (2 * m + 1) (rest - (rate - rest)) (s + 1)).
      destruct (digits steps rate (2 * m + 1) (rest - (rate - rest)) (s + 1)) as [[m' rest'] s'].
      destruct IH as (A & B & C & E & F & G); try lia.
    + specialize (IH rate (2 * m + 0) (rest + rest) (s + 1)).
      destruct (digits steps rate (2 * m + 0) (rest + rest) (s + 1)) as [[m' rest'] s'].
      destruct IH as (A & B & C & E & F & G); try lia.
Qed.

Theorem pace_near rate : 2 <= rate <= 2 ^ 40 ->
  let p := pace_of rate in
  0 <= shift p /\ 2 ^ 31 <= mult p < 2 ^ 32 /\
  2 ^ 32 * Z.abs (mult p * rate - 8000000000 * 2 ^ shift p) <= 8000000000 * 2 ^ shift p.
Proof.
  intros Hrate. unfold pace_of.
  destruct (Z.eqb_spec rate 0); [lia|].
  pose proof (Z.div_mod 8000000000 rate ltac:(lia)) as Hdiv.
  pose proof (Z.mod_pos_bound 8000000000 rate ltac:(lia)) as Hmod.
  assert (Hquotient : 0 <= 8000000000 / rate < 2 ^ 32) by
    (split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]).
  pose proof (digits_exact 63 rate (8000000000 / rate) (8000000000 mod rate) 0) as H.
  destruct (digits 63 rate (8000000000 / rate) (8000000000 mod rate) 0) as [[m rest] s].
  destruct H as (Hm & Hrest & Hs & Hexact & Hend & Hbound); try lia.
  specialize (Hbound ltac:(lia)).
  assert (H31 : 2 ^ 31 <= m).
  { destruct Hend as [Hend|Hend]; [exact Hend|].
    destruct (Z.le_gt_cases (2 ^ 31) m) as [|Hless]; [assumption|exfalso].
    subst s. change (0 + Z.of_nat 63) with 63 in Hexact.
    assert (m * rate <= 2 ^ 31 * 2 ^ 40) by (apply Z.mul_le_mono_nonneg; lia).
    change (8000000000 * 2 ^ 63) with 73786976294838206464000000000 in Hexact.
    change (2 ^ 31 * 2 ^ 40) with 2361183241434822606848 in *. lia. }
  assert (Hp : 0 < 2 ^ s) by (apply Z.pow_pos_nonneg; lia).
  assert (Hbig : 2 ^ 31 * rate <= 8000000000 * 2 ^ s) by nia.
  destruct (Z.ltb_spec 0 rest) as [Hr0|Hr0]; destruct (Z.leb_spec (rate - rest) rest) as [Hr1|Hr1];
    cbn [andb].
  1: { destruct (Z.ltb_spec 0 s) as [Hs0|Hs0]; destruct (Z.leb_spec (2 ^ 32) (m + 1)) as [H32|H32]; cbn [andb mult shift].
    2, 4: split; [lia|split; [lia|rewrite Z.abs_eq; lia]].
    - assert (Heq : m + 1 = 2 ^ 32) by lia. rewrite Heq.
      change (2 ^ 32 / 2) with (2 ^ 31).
      assert (Hpow : 2 ^ s = 2 * 2 ^ (s - 1)) by (rewrite <- Z.pow_succ_r by lia; f_equal; lia).
      split; [lia|]. split; [lia|]. rewrite Z.abs_eq; lia.
    - exfalso. assert (s = 0) by lia. subst s. change (2 ^ 0) with 1 in *. nia. }
  all: assert (H32 : (2 ^ 32 <=? m) = false) by (apply Z.leb_gt; lia); rewrite H32, andb_false_r; cbn [mult shift].
  all: split; [lia|split; [lia|rewrite Z.abs_neq; lia]].
Qed.

(* ---- positions ---- *)

Definition unit_of (q : queue) : Z := 2 ^ shift (pace_q q).
Definition pos (q : queue) : Z := tat q * unit_of q + frac q.
Definition cost_of (q : queue) (bytes : Z) : Z := bytes * mult (pace_q q).

Definition sound (q : queue) : Prop :=
  0 <= frac q < unit_of q /\ 0 <= shift (pace_q q) /\ 0 <= mult (pace_q q) /\ 0 <= resume q.

Lemma unit_pos q : sound q -> 0 < unit_of q.
Proof. intros (H & _). lia. Qed.

Lemma review_keeps q now :
  pos (review q now) = pos q /\ unit_of (review q now) = unit_of q /\ pace_q (review q now) = pace_q q /\
  resume (review q now) = resume q /\ full (review q now) = full q /\ mark (review q now) = mark q /\
  tat (review q now) = tat q /\ frac (review q now) = frac q.
Proof. unfold review. destruct (low q && (due q <=? now)); repeat split. Qed.

Lemma review_sound q now : sound q -> sound (review q now).
Proof. unfold sound, review. destruct (low q && (due q <=? now)); intros H; exact H. Qed.

(* A queue that is still at its low level after a review is ahead of LR. *)
Lemma low_is_ahead q now : sound q -> mark q = 0 -> 0 <= now -> low (review q now) = true ->
  unit_of q * (now + resume q) < pos q.
Proof.
  intros Hq Hmark Hnow. unfold review.
  destruct (low q) eqn:Hlow; cbn [andb]; [|rewrite Hlow; discriminate].
  destruct (Z.leb_spec (due q) now) as [Hdue|Hdue]; [intros H; discriminate H|]. intros _.
  unfold due, excess in Hdue. rewrite Hmark in Hdue.
  destruct (Z.ltb_spec (resume q) (tat q)) as [Hlt|Hlt].
  - destruct (Z.leb_spec (tat q - resume q) 0); [lia|].
    pose proof (unit_pos q Hq). destruct Hq as (Hf & _). unfold pos. nia.
  - cbn in Hdue. lia.
Qed.

(* The cut at 0: what a call adds to a level that has fallen below 0. *)
Definition cut (q : queue) (now : Z) : Z := Z.max 0 (unit_of q * now - pos q).

(* What goes uncharged above LM at the low level. *)
Definition uncharged (q : queue) (now tx_ns bytes : Z) : Z :=
  pos q + cut q now + cost_of q bytes - pos (charge false q now tx_ns bytes).

Lemma charge_parts q now tx_ns bytes : sound q -> 0 <= bytes ->
  let after := charge false q now tx_ns bytes in
  let base := pos q + cut q now in
  sound after /\ pace_q after = pace_q q /\ resume after = resume q /\ full after = full q /\ mark after = mark q /\
  base <= pos after <= base + cost_of q bytes /\
  (low q = false -> pos after = base + cost_of q bytes) /\
  (pos after < base + cost_of q bytes -> pos after >= unit_of q * (now + full q + tx_ns)) /\
  (low after = false -> low q = false /\ tat after < now + full q + tx_ns) /\
  (low q = true -> pos after = base \/ pos after < unit_of q * (now + full q + tx_ns + 1)).
Proof.
  intros Hq Hbytes. pose proof (unit_pos q Hq) as Hu.
  destruct Hq as (Hf & Hs & Hm & Hr).
  set (base_q := if tat q <? now then set_position q now 0 else q).
  assert (Hbase : pos base_q = pos q + cut q now /\ 0 <= frac base_q < unit_of q /\ pace_q base_q = pace_q q /\
    resume base_q = resume q /\ full base_q = full q /\ mark base_q = mark q /\ low base_q = low q).
  { unfold base_q, cut, pos, unit_of in *. destruct (Z.ltb_spec (tat q) now); cbn; repeat split; try lia; nia. }
  destruct Hbase as (Hpos & Hfrac & Hpace & Hresume & Hfull & Hmark & Hlow).
  assert (Hcost : 0 <= cost_of q bytes) by (unfold cost_of; nia).
  set (cost := bytes * mult (pace_q base_q) + frac base_q).
  assert (Hcosteq : cost = cost_of q bytes + frac base_q) by (unfold cost, cost_of; rewrite Hpace; reflexivity).
  assert (Hunit : unit_of q = 2 ^ shift (pace_q base_q)) by (unfold unit_of; rewrite Hpace; reflexivity).
  assert (Hub : unit_of base_q = unit_of q) by (unfold unit_of; rewrite Hpace; reflexivity).
  pose proof (Z.div_mod cost (unit_of q) ltac:(lia)) as Hdiv.
  pose proof (Z.mod_pos_bound cost (unit_of q) ltac:(lia)) as Hrest.
  set (up := tat base_q + cost / unit_of q) in *.
  assert (Hup : up * unit_of q + cost mod unit_of q = pos base_q + cost_of q bytes).
  { unfold up, pos. rewrite Hub. nia. }
  assert (Hbp : pos base_q = tat base_q * unit_of q + frac base_q).
  { unfold pos. rewrite Hub. reflexivity. }
  set (most := now + full q + tx_ns) in *.
  assert (Hcharge : charge false q now tx_ns bytes =
    let q' := if negb (low base_q) then set_position base_q up (cost mod unit_of q)
      else if up <=? most then set_position base_q up (cost mod unit_of q)
      else if tat base_q <? most then set_position base_q most 0 else base_q in
    if negb (low q') && (most <=? tat q') then set_low q' true else q').
  { unfold charge. fold base_q. cbv zeta. fold cost. rewrite <- Hunit. reflexivity. }
  rewrite Hcharge. clear Hcharge. cbv zeta.
  assert (Keep : forall a b l, 0 <= b < unit_of q ->
    let z := set_low (set_position base_q a b) l in
    sound z /\ pace_q z = pace_q q /\ resume z = resume q /\ full z = full q /\ mark z = mark q /\
    pos z = a * unit_of q + b).
  { intros a b l Hb. unfold sound, pos, unit_of in *. cbn. rewrite Hpace. repeat split; try assumption; try lia. }
  destruct (low base_q) eqn:Hl; cbn [negb andb].
  - (* at the low level *)
    destruct (Z.leb_spec up most) as [Hfit|Hfit]; [|destruct (Z.ltb_spec (tat base_q) most) as [Hroom|Hroom]].
    + cbn [low set_position]. rewrite Hl. cbn [negb andb].
      specialize (Keep up (cost mod unit_of q) true Hrest).
      unfold set_low, set_position in Keep. cbn in Keep. unfold set_position.
      rewrite Hl. destruct Keep as (K1 & K2 & K3 & K4 & K5 & K6).
      split; [exact K1|]. cbn. repeat split; try assumption; try lia.
      all: try (intros; exfalso; lia). all: try (rewrite K6); try lia; try congruence.
      intros _. right. nia.
    + cbn [low set_position]. rewrite Hl. cbn [negb andb].
      specialize (Keep most 0 true ltac:(lia)).
      unfold set_low, set_position in Keep. cbn in Keep. unfold set_position.
      rewrite Hl. destruct Keep as (K1 & K2 & K3 & K4 & K5 & K6).
      split; [exact K1|]. cbn. repeat split; try assumption; try lia.
      all: try (rewrite K6); try lia; try congruence; try nia.
    + rewrite Hl. cbn [negb andb].
      assert (K1 : sound base_q) by (unfold sound, unit_of in *; rewrite Hpace; repeat split; lia).
      split; [exact K1|]. repeat split; try assumption; try lia.
      all: try (intros; exfalso; congruence); try nia; try congruence.
  - (* at the high level *)
    cbn [low set_position]. rewrite Hl. cbn [negb andb]. cbn [tat set_position].
    destruct (Z.leb_spec most up) as [Hcross|Hcross].
    + specialize (Keep up (cost mod unit_of q) true Hrest). cbn zeta in Keep.
      destruct Keep as (K1 & K2 & K3 & K4 & K5 & K6).
      split; [exact K1|]. repeat split; try assumption; try lia.
      all: try (rewrite K6); try lia; try congruence; cbn; try congruence.
      all: match goal with H : low (set_low _ _) = false |- _ => discriminate H end.
    + specialize (Keep up (cost mod unit_of q) false Hrest). cbn zeta in Keep.
      assert (E : set_low (set_position base_q up (cost mod unit_of q)) false =
        set_position base_q up (cost mod unit_of q)) by (unfold set_low, set_position; cbn; rewrite Hl; reflexivity).
      rewrite E in Keep.
      destruct Keep as (K1 & K2 & K3 & K4 & K5 & K6).
      split; [exact K1|]. repeat split; try assumption; try lia.
      all: try (rewrite K6); try lia; try congruence; cbn; try congruence; try lia.
Qed.
