(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* What a controlled queue (AF) is guaranteed in one of its backlogged periods, and what it may take from the classes below it.

   Decision k is made at t k: the link is free, every low queue is looked at, and one packet starts, of AF (own k, len k bytes)
   or of another class. Decision 0 is the last one before AF had a packet, or any later one; from decision 1 on AF is backlogged.
   Service and levels are in the unit of the code, 2^-shift ns of rho; Identity.counted_bits gives bits. *)
From Coq Require Import ZArith Lia Bool.
From Pss Require Import Pss Charge Identity.
Open Scope Z_scope.

Section Period.

Variable q : nat -> queue.              (* before decision k *)
Variable t : nat -> Z.
Variable own : nat -> bool.
Variable len tx_ns : nat -> Z.

Definition seen_at (k : nat) : queue := review (q k) (t k).
Definition high (k : nat) : Prop := low (seen_at k) = false.

Hypothesis steps : forall k, q (S k) = if own k then charge false (seen_at k) (t k) (tx_ns k) (len k) else seen_at k.
Hypothesis clock : forall k, 0 <= t k <= t (S k).
Hypothesis lengths : forall k, 0 <= len k /\ 0 <= tx_ns k.
Hypothesis sound_0 : sound (q 0%nat).
Hypothesis charged : mark (q 0%nat) = 0.        (* early=charge *)
Hypothesis ordered : resume (q 0%nat) <= full (q 0%nat).

Definition u := unit_of (q 0%nat).
Definition TR := resume (q 0%nat).
Definition TM := full (q 0%nat).
Definition cost (k : nat) : Z := if own k then cost_of (q 0%nat) (len k) else 0.

(* served n: counted service of decisions 0 to n - 1 *)
Fixpoint served (n : nat) : Z := match n with O => 0 | S n => served n + cost n end.

(* ... of those made at the high level *)
Fixpoint served_high (n : nat) : Z :=
  match n with O => 0 | S n => served_high n + (if low (seen_at n) then 0 else cost n) end.

Lemma same_constants k : sound (q k) /\ pace_q (q k) = pace_q (q 0%nat) /\ resume (q k) = TR /\ full (q k) = TM /\ mark (q k) = 0.
Proof.
  induction k as [|k (S1 & P1 & R1 & F1 & M1)]; [repeat split; auto; apply sound_0|].
  rewrite (steps k). unfold seen_at.
  destruct (review_keeps (q k) (t k)) as (_ & _ & P2 & R2 & F2 & M2 & _).
  pose proof (review_sound (q k) (t k) S1) as S2.
  destruct (own k).
  - destruct (charge_parts _ (t k) (tx_ns k) (len k) S2 (proj1 (lengths k))) as (S3 & P3 & R3 & F3 & M3 & _).
    repeat split; try congruence; apply S3.
  - repeat split; try congruence; apply S2.
Qed.

Lemma same_unit k : unit_of (q k) = u.
Proof. destruct (same_constants k) as (_ & P & _). unfold u, unit_of. rewrite P. reflexivity. Qed.

Lemma u_pos : 0 < u.
Proof. exact (unit_pos _ sound_0). Qed.

Lemma cost_nonneg k : 0 <= cost k.
Proof. unfold cost, cost_of. destruct (own k); [|lia]. destruct sound_0 as (_ & _ & M & _). pose proof (lengths k). nia. Qed.

(* One decision. *)
Lemma advance k :
  pos (q k) <= pos (q (S k)) <= Z.max (pos (q k)) (u * t k) + cost k /\
  (own k = false -> pos (q (S k)) = pos (q k)) /\
  (u * t k <= pos (q k) -> pos (q (S k)) <= pos (q k) + cost k) /\
  (high k -> pos (q k) + cost k <= pos (q (S k))) /\
  (low (seen_at k) = true -> u * (t k + TR) < pos (q k)).
Proof.
  destruct (same_constants k) as (S1 & P1 & R1 & F1 & M1).
  destruct (review_keeps (q k) (t k)) as (A & B & P2 & R2 & F2 & M2 & _).
  pose proof (review_sound (q k) (t k) S1) as S2. pose proof (same_unit k) as U. pose proof (cost_nonneg k) as Hc.
  assert (Hlow : low (seen_at k) = true -> u * (t k + TR) < pos (q k)).
  { intros Hl. rewrite <- U, <- R1. apply (low_is_ahead (q k) (t k) S1 M1 (proj1 (clock k)) Hl). }
  rewrite (steps k). unfold seen_at, high in *. unfold cost in *.
  destruct (own k).
  - destruct (charge_parts _ (t k) (tx_ns k) (len k) S2 (proj1 (lengths k))) as (S3 & P3 & R3 & F3 & M3 & W & H & _).
    unfold cut in *. rewrite A, B, U in *.
    assert (C : cost_of (review (q k) (t k)) (len k) = cost_of (q 0%nat) (len k)) by (unfold cost_of; congruence).
    rewrite C in *. split; [lia|]. split; [discriminate|]. split; [lia|]. split; [|exact Hlow].
    intros L. rewrite (H L). lia.
  - unfold seen_at. rewrite A. repeat split; try lia; try assumption.
Qed.

Lemma pos_grows i j : (i <= j)%nat -> pos (q i) <= pos (q j).
Proof. induction 1 as [|j Hj IH]; [lia|]. destruct (advance j) as (H & _). lia. Qed.

Lemma time_grows i j : (i <= j)%nat -> t i <= t j.
Proof. induction 1 as [|j Hj IH]; [lia|]. pose proof (clock j). lia. Qed.

Lemma served_grows i j : (i <= j)%nat -> served i <= served j.
Proof. induction 1 as [|j Hj IH]; [lia|]. cbn [served]. pose proof (cost_nonneg j). lia. Qed.

(* While it is at its high level, all that the queue sends is charged. *)
Lemma high_is_charged i j : (i <= j)%nat -> (forall k, (i <= k < j)%nat -> high k) ->
  served j - served i <= pos (q j) - pos (q i).
Proof.
  induction 1 as [|j Hj IH]; intros Hk; [lia|]. cbn [served].
  destruct (advance j) as (_ & _ & _ & H & _). specialize (H (Hk j ltac:(lia))).
  specialize (IH (fun k Hk' => Hk k ltac:(lia))). lia.
Qed.

(* Where no level is cut, no more than what it sends is charged. *)
Lemma uncut_is_served i j : (i <= j)%nat -> (forall k, (i <= k < j)%nat -> u * t k <= pos (q k)) ->
  pos (q j) - pos (q i) <= served j - served i.
Proof.
  induction 1 as [|j Hj IH]; intros Hk; [lia|]. cbn [served].
  destruct (advance j) as (_ & _ & H & _). specialize (H (Hk j ltac:(lia))).
  specialize (IH (fun k Hk' => Hk k ltac:(lia))). lia.
Qed.

(* The last decision after s, up to j, that finds the queue at its low level, if there is one. *)
Lemma last_low s j : (s <= j)%nat ->
  (forall k, (s < k <= j)%nat -> high k) \/
  (exists i, (s < i <= j)%nat /\ low (seen_at i) = true /\ forall k, (i < k <= j)%nat -> high k).
Proof.
  induction 1 as [|j Hj IH]; [left; lia|].
  destruct (low (seen_at (S j))) eqn:L.
  - right. exists (S j). repeat split; try lia; assumption.
  - destruct IH as [IH|(i & Hi & Li & IH)].
    + left. intros k Hk. destruct (Nat.eq_dec k (S j)) as [->|]; [exact L|apply IH; lia].
    + right. exists i. repeat split; try lia; try assumption.
      intros k Hk. destruct (Nat.eq_dec k (S j)) as [->|]; [exact L|apply IH; lia].
Qed.

(* What the link and the more urgent classes leave to AF at its high level: in a stretch of decisions that find it there, it
   lacks D at most. Link.v derives this from the link's service curve and the arrival curve of the more urgent classes. *)
Variable D : Z.
Hypothesis left_over : forall i j, (i < j)%nat -> (forall k, (i < k <= j)%nat -> high k) ->
  u * (t j - t i) - D <= served j - served (S i).

Lemma D_nonneg i : high (S i) -> 0 <= D.
Proof.
  intros H. pose proof (left_over i (S i) ltac:(lia) ltac:(intros k Hk; replace k with (S i) by lia; exact H)).
  pose proof (clock i). pose proof u_pos. nia.
Qed.

(* ---- 1. enough memory: the level never falls below LR - D, so with LR >= D it is never cut ---- *)

(* From any decision s that finds the level at LR or above. *)
Theorem level_floor s j : (s < j)%nat -> 0 <= D -> u * (t s + TR) <= pos (q s) -> u * t j + (u * TR - D) <= pos (q j).
Proof.
  intros Hsj HD Hs. destruct (last_low s j ltac:(lia)) as [Hh|(i & Hi & Li & Hh)].
  - pose proof (left_over s j Hsj Hh). destruct (advance s) as (G & _).
    pose proof (high_is_charged (S s) j ltac:(lia) ltac:(intros k Hk; apply Hh; lia)). nia.
  - destruct (advance i) as (G & _ & _ & _ & A). specialize (A Li).
    destruct (Nat.eq_dec i j) as [->|]; [nia|].
    pose proof (left_over i j ltac:(lia) Hh).
    pose proof (high_is_charged (S i) j ltac:(lia) ltac:(intros k Hk; apply Hh; lia)). nia.
Qed.

Hypothesis enough : D <= u * TR.        (* LR >= D *)

Theorem never_cut s j : (s < j)%nat -> 0 <= D -> u * (t s + TR) <= pos (q s) -> cut (q j) (t j) = 0.
Proof.
  intros Hsj HD Hs. pose proof (level_floor s j Hsj HD Hs). unfold cut. rewrite same_unit. lia.
Qed.

(* ---- 2. the reserved class ---- *)

(* From LR: at most D is lacking, at every decision of the period. *)
Theorem reserved_from_LR j : (0 < j)%nat -> 0 <= D -> own 0%nat = false -> pos (q 0%nat) = u * (t 0%nat + TR) ->
  u * (t j - t 0%nat) - D <= served j.
Proof.
  intros Hj HD H0 HLR.
  assert (served 1 = 0) by (cbn; unfold cost; rewrite H0; lia).
  destruct (last_low 0 j ltac:(lia)) as [Hh|(i & Hi & Li & Hh)].
  - pose proof (left_over 0 j Hj Hh). lia.
  - destruct (advance i) as (_ & _ & _ & _ & A). specialize (A Li).
    assert (W : pos (q i) - pos (q 0%nat) <= served i - served 0).
    { apply uncut_is_served; [lia|]. intros k Hk. pose proof u_pos. destruct sound_0 as (_ & _ & _ & R).
      destruct (Nat.eq_dec k 0) as [->|]; [unfold TR in *; nia|].
      pose proof (level_floor 0 k ltac:(lia) HD ltac:(lia)). lia. }
    cbn [served] in W. pose proof (served_grows i (S i) ltac:(lia)).
    destruct (Nat.eq_dec i j) as [->|]; [nia|]. pose proof (left_over i j ltac:(lia) Hh). nia.
Qed.

(* The first cut after s, if there is one before i. *)
Lemma cut_or_not s i : (s <= i)%nat ->
  (forall k, (s < k < i)%nat -> u * t k <= pos (q k)) \/
  (exists c, (s < c < i)%nat /\ pos (q c) < u * t c /\ forall k, (c < k < i)%nat -> u * t k <= pos (q k)).
Proof.
  induction 1 as [|i Hi IH]; [left; lia|].
  destruct (Z.lt_ge_cases (pos (q i)) (u * t i)) as [C|C].
  - destruct (Nat.eq_dec s i) as [->|]; [left; lia|].
    right. exists i. repeat split; try lia.
  - destruct IH as [IH|(c & Hc & Lc & IH)].
    + left. intros k Hk. destruct (Nat.eq_dec k i) as [->|]; [lia|apply IH; lia].
    + right. exists c. repeat split; try lia. intros k Hk. destruct (Nat.eq_dec k i) as [->|]; [lia|apply IH; lia].
Qed.

(* Strict service: in any part of a backlogged period, wherever the level is at its beginning and however the period began. *)
Theorem reserved_strict s j M : (s < j)%nat -> 0 <= D -> pos (q (S s)) <= u * t s + M ->
  u * (t j - t s) - Z.max D (M - u * TR + D) <= served j - served (S s).
Proof.
  intros Hsj HD HM.
  destruct (last_low s j ltac:(lia)) as [Hh|(i & Hi & Li & Hh)].
  { pose proof (left_over s j Hsj Hh). lia. }
  destruct (advance i) as (_ & _ & _ & _ & A). specialize (A Li).
  pose proof (served_grows i (S i) ltac:(lia)) as Gi.
  assert (Tail : u * (t j - t i) - D <= served j - served i).
  { destruct (Nat.eq_dec i j) as [->|]; [nia|]. pose proof (left_over i j ltac:(lia) Hh). lia. }
  destruct (cut_or_not s i ltac:(lia)) as [Hno|(c & Hc & Lc & Hno)].
  - pose proof (uncut_is_served (S s) i ltac:(lia) ltac:(intros k Hk; apply Hno; lia)). nia.
  - (* a cut at c: until then the queue was at its high level, or the level could not have been cut *)
    assert (Hhc : forall k, (s < k <= c)%nat -> high k).
    { destruct (last_low s c ltac:(lia)) as [Hhc|(l & Hl & Ll & _)]; [exact Hhc|exfalso].
      destruct (advance l) as (_ & _ & _ & _ & Al). specialize (Al Ll).
      destruct (Nat.eq_dec l c) as [->|]; [destruct sound_0 as (_ & _ & _ & R); pose proof u_pos; unfold TR in *; nia|].
      pose proof (level_floor l c ltac:(lia) HD ltac:(lia)). lia. }
    pose proof (left_over s c ltac:(lia) Hhc) as Before.
    assert (After : pos (q i) - u * t c <= served i - served c).
    { destruct (advance c) as (G & _).
      pose proof (uncut_is_served (S c) i ltac:(lia) ltac:(intros k Hk; apply Hno; lia)) as W.
      cbn [served] in W. lia. }
    assert (u * t c - u * t s - D <= served c - served (S s)) by lia.
    nia.
Qed.

(* The delay of a packet that arrives at `a`, when the arrivals since t s, its own included, are at most sigma + rho (a - t s):
   if it has not begun to leave by decision j, then t j is less than T + sigma / rho after its arrival. *)
Theorem reserved_delay s j M a sigma arrived :
  (s < j)%nat -> 0 <= D -> pos (q (S s)) <= u * t s + M ->
  arrived <= sigma + u * (a - t s) -> served j - served (S s) < arrived ->
  u * (t j - a) < Z.max D (M - u * TR + D) + sigma.
Proof. intros Hsj HD HM Ha Hw. pose proof (reserved_strict s j M Hsj HD HM). nia. Qed.

End Period.

Section Bucket.

(* ---- 3. between the levels: at its high level AF is a leaky bucket of M - m and rho ---- *)

Variable q : nat -> queue.
Variable t : nat -> Z.
Variable own : nat -> bool.
Variable len tx_ns : nat -> Z.
Hypothesis steps : forall k,
  q (S k) = if own k then charge false (seen_at q t k) (t k) (tx_ns k) (len k) else seen_at q t k.
Hypothesis clock : forall k, 0 <= t k <= t (S k).
Hypothesis lengths : forall k, 0 <= len k /\ 0 <= tx_ns k.
Hypothesis sound_0 : sound (q 0%nat).
Hypothesis charged : mark (q 0%nat) = 0.

Let u := unit_of (q 0%nat).
Let served_high := served_high q t own len.

Theorem high_bucket i j m M : (i <= j)%nat ->
  u * t i + m <= pos (q i) -> pos (q (S j)) <= u * t j + M ->
  served_high (S j) - served_high i <= u * (t j - t i) + (M - m).
Proof.
  intros Hij Hm HM.
  assert (G : forall n, (i <= n)%nat -> served_high n - served_high i <= pos (q n) - pos (q i)).
  { induction 1 as [|n Hn IH]; [lia|]. unfold served_high in *. cbn [Guarantee.served_high].
    destruct (advance q t own len tx_ns steps clock lengths sound_0 charged n) as ((A & _) & _ & _ & H & _).
    unfold high in H. destruct (low (seen_at q t n)); [lia|]. specialize (H eq_refl). lia. }
  specialize (G (S j) ltac:(lia)). lia.
Qed.

(* The greatest level. `late` is how much sooner than its nominal end a packet of AF may be followed by the next decision: 0 on
   a link that is as fast as reported, and one packet time where packets are pulled in bursts. L is the largest cost of a packet.
   Right after any packet the level is at most LM + L, or LM + L + rho late. *)
Variables L late : Z.
Hypothesis largest : forall k, cost q own len k <= L.
Hypothesis not_short : forall k, u * (tx_ns k + 1) <= u * late + L.    (* rho is below the link's rate, and L costs 1 ns or more *)
Hypothesis spaced : forall k, own k = true -> t k + tx_ns k <= t (S k) + late.
Hypothesis ordered : resume (q 0%nat) < full (q 0%nat).
Hypothesis late_nonneg : 0 <= late.

Let M := u * (full (q 0%nat) + late) + L.

Theorem level_most :
  pos (q 0%nat) <= u * t 0%nat + M ->
  (low (q 0%nat) = false -> pos (q 0%nat) < u * (t 0%nat + full (q 0%nat) + late)) ->
  forall k, pos (q (S k)) <= u * t k + M.
Proof.
  intros H0 H0'.
  pose proof (unit_pos _ sound_0) as Hu. fold u in Hu.
  assert (Inv : forall k, pos (q k) <= u * t k + M /\
    (low (q k) = false -> pos (q k) < u * (t k + full (q 0%nat) + late)) /\
    pos (q (S k)) <= u * t k + M).
  2: intros k; destruct (Inv k) as (_ & _ & G); exact G.
  assert (Step : forall k, pos (q k) <= u * t k + M ->
    (low (q k) = false -> pos (q k) < u * (t k + full (q 0%nat) + late)) ->
    pos (q (S k)) <= u * t k + M /\
    (low (q (S k)) = false -> pos (q (S k)) < u * (t (S k) + full (q 0%nat) + late))).
  { intros k A B.
    destruct (same_constants q t own len tx_ns steps lengths sound_0 charged k) as (S1 & P1 & R1 & F1 & M1).
    destruct (review_keeps (q k) (t k)) as (A2 & B2 & P2 & R2 & F2 & M2 & T2 & G2).
    pose proof (review_sound (q k) (t k) S1) as S2.
    pose proof (clock k) as Hclock.
    assert (U : unit_of (q k) = u) by (unfold u, unit_of; rewrite P1; reflexivity).
    unfold TR, TM in *.
    assert (B' : low (review (q k) (t k)) = false -> pos (q k) < u * (t k + full (q 0%nat) + late)).
    { unfold review. destruct (low (q k)) eqn:Lq; cbn [andb]; [|intros _; apply B; reflexivity].
      destruct (Z.leb_spec (due (q k)) (t k)) as [Hd|Hd]; [intros _|rewrite Lq; discriminate].
      assert (tat (q k) <= t k + resume (q 0%nat)).
      { unfold due, excess in Hd. rewrite M1, R1 in Hd. destruct (Z.ltb_spec (resume (q 0%nat)) (tat (q k))); [|lia].
        destruct (Z.leb_spec (tat (q k) - resume (q 0%nat)) 0); lia. }
      unfold pos. rewrite U. destruct S1 as (Fr & _). rewrite U in Fr. nia. }
    rewrite (steps k). unfold seen_at in *.
    pose proof (largest k) as HL. pose proof (not_short k) as HX. pose proof (lengths k) as HN.
    pose proof (spaced k) as Hsp. unfold cost in HL.
    destruct (own k).
    - specialize (Hsp eq_refl).
      destruct (charge_parts _ (t k) (tx_ns k) (len k) S2 (proj1 HN)) as (S3 & P3 & R3 & F3 & M3 & W & Hh & _ & Hl & Hlo).
      unfold cut in *. rewrite A2, B2, U, F2, F1 in *.
      assert (C : cost_of (review (q k) (t k)) (len k) = cost_of (q 0%nat) (len k)) by (unfold cost_of; congruence).
      rewrite C in *.
      assert (Hcost : 0 <= cost_of (q 0%nat) (len k)) by (unfold cost_of; destruct sound_0 as (_ & _ & Mm & _); nia).
      destruct sound_0 as (_ & _ & _ & R0).
      split.
      + unfold M in *. destruct (low (review (q k) (t k))) eqn:Lr.
        * specialize (Hlo eq_refl).
          assert (Ahead : u * (t k + resume (q 0%nat)) < pos (q k)).
          { rewrite <- U, <- R1. apply (low_is_ahead (q k) (t k) S1 M1 (proj1 Hclock) Lr). }
          destruct Hlo; nia.
        * specialize (B' eq_refl). nia.
      + intros Ll. destruct (Hl Ll) as (_ & Ht). unfold pos.
        assert (U3 : unit_of (charge false (review (q k) (t k)) (t k) (tx_ns k) (len k)) = u).
        { unfold u, unit_of. rewrite P3, P2, P1. reflexivity. }
        rewrite U3. destruct S3 as (Fr & _). rewrite U3 in Fr. nia.
    - rewrite A2. split; [exact A|]. intros Ll. specialize (B' Ll). nia. }
  induction k as [|k (I1 & I2 & I3)].
  - repeat split; try assumption. apply Step; assumption.
  - destruct (Step k I1 I2) as (J1 & J2). pose proof (clock k) as Hclock.
    assert (J3 : pos (q (S k)) <= u * t (S k) + M) by nia.
    repeat split; try assumption. apply Step; assumption.
Qed.

End Bucket.
