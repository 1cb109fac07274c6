(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* What the link and the more urgent classes leave: the step from curves to the premise `left_over` of Guarantee.v, the
   service of the classes between the two levels of AF, and the delay of the most urgent class.

   The link has the lower service curve beta: busy from t m to t j, it carries at least beta (t j - t m) bytes. EF, all the
   classes that are more urgent than AF's high level together, has the arrival curve alpha. Decision 0 is one at which EF has
   no packet (bytes 0 = 0 if the link was idle). L is the largest packet, in bytes. *)
From Coq Require Import ZArith Lia Bool List.
From Pss Require Import Pss Charge.
Import ListNotations.
Open Scope Z_scope.

(* ---- pick names the most urgent eligible queue ---- *)

Lemma most_urgent_none rows : forall start, most_urgent rows start = None ->
  forall q s e, In (q, s, e) rows -> e = false.
Proof.
  induction rows as [|[[q s] e] rows IH]; intros start H q' s' e' Hin; [destruct Hin|].
  cbn in H. destruct e.
  - destruct (most_urgent rows (S start)) as [[? z]|]; [destruct (z <? present_level q s)|]; discriminate.
  - destruct Hin as [Hin|Hin]; [congruence|]. eapply IH; eassumption.
Qed.

Theorem most_urgent_is_least rows : forall start i l, most_urgent rows start = Some (i, l) ->
  (start <= i)%nat /\
  (exists q s, nth_error rows (i - start) = Some (q, s, true) /\ l = present_level q s) /\
  (forall q s, In (q, s, true) rows -> l <= present_level q s).
Proof.
  induction rows as [|[[q s] e] rows IH]; intros start i l H; [discriminate|].
  cbn in H. destruct e.
  - destruct (most_urgent rows (S start)) as [[j z]|] eqn:R.
    + destruct (IH _ _ _ R) as (Hj & (q1 & s1 & Hn & Hz) & Hmin).
      destruct (Z.ltb_spec z (present_level q s)); inversion H; subst; clear H.
      * split; [lia|]. split.
        -- exists q1, s1. replace (i - start)%nat with (S (i - S start)) by lia. cbn. split; [exact Hn|reflexivity].
        -- intros q' s' [E|Hin]; [inversion E; subst; lia|apply Hmin; exact Hin].
      * split; [lia|]. split.
        -- exists q, s. rewrite Nat.sub_diag. split; reflexivity.
        -- intros q' s' [E|Hin]; [inversion E; subst; lia|]. specialize (Hmin _ _ Hin). lia.
    + inversion H; subst. split; [lia|]. split.
      * exists q, s. rewrite Nat.sub_diag. split; reflexivity.
      * intros q' s' [E|Hin]; [inversion E; subst; lia|].
        pose proof (most_urgent_none rows _ R _ _ _ Hin). discriminate.
  - destruct (IH _ _ _ H) as (Hj & (q1 & s1 & Hn & Hz) & Hmin). split; [lia|]. split.
    + exists q1, s1. replace (i - start)%nat with (S (i - S start)) by lia. cbn. split; [exact Hn|exact Hz].
    + intros q' s' [E|Hin]; [discriminate|]. apply Hmin; exact Hin.
Qed.

(* ---- curves ---- *)

Inductive class := EF | AF | CS.

Section Link.

Variable t : nat -> Z.
Variable bytes : nat -> Z.
Variable class_of : nat -> class.
Variables beta alpha : Z -> Z.
Variable L : Z.

Definition of_class (c : class) (k : nat) : bool :=
  match c, class_of k with EF, EF | AF, AF | CS, CS => true | _, _ => false end.

(* bytes of decisions 0 to n - 1, all and of a class *)
Fixpoint carried (n : nat) : Z := match n with O => 0 | S n => carried n + bytes n end.
Fixpoint part (c : class) (n : nat) : Z :=
  match n with O => 0 | S n => part c n + (if of_class c n then bytes n else 0) end.

Hypothesis clock : forall k, 0 <= t k <= t (S k).
Hypothesis sizes : forall k, 0 <= bytes k <= L.
Hypothesis busy : forall m j, (m < j)%nat -> beta (t j - t m) <= carried j - carried m.
Hypothesis idle : class_of 0%nat <> EF.
(* EF is served first. Where another class is, EF has no packet, so what it sends later arrives later. *)
Hypothesis arrivals : forall m j, (m < j)%nat -> class_of m <> EF -> part EF j - part EF (S m) <= alpha (t j - t m).

Lemma time_grows i j : (i <= j)%nat -> t i <= t j.
Proof. induction 1 as [|j Hj IH]; [lia|]. pose proof (clock j). lia. Qed.

Lemma part_grows c i j : (i <= j)%nat -> part c i <= part c j.
Proof. induction 1 as [|j Hj IH]; [lia|]. cbn. pose proof (sizes j). destruct (of_class c j); lia. Qed.

Lemma part_still c i j : (i <= j)%nat -> (forall k, (i <= k < j)%nat -> of_class c k = false) -> part c j = part c i.
Proof.
  induction 1 as [|j Hj IH]; intros H; [reflexivity|]. cbn. rewrite (H j ltac:(lia)). rewrite IH; [lia|].
  intros k Hk; apply H; lia.
Qed.

Lemma all_parts i j : (i <= j)%nat ->
  carried j - carried i = (part EF j - part EF i) + (part AF j - part AF i) + (part CS j - part CS i).
Proof.
  induction 1 as [|j Hj IH]; [lia|]. cbn. unfold of_class. destruct (class_of j); lia.
Qed.

(* The last decision up to i that is not EF's. *)
Lemma before_EF i : exists m, (m <= i)%nat /\ class_of m <> EF /\ forall k, (m < k <= i)%nat -> class_of k = EF.
Proof.
  induction i as [|i (m & Hm & Cm & H)].
  - exists 0%nat. repeat split; [lia|exact idle|lia].
  - destruct (class_of (S i)) eqn:C.
    + exists m. repeat split; [lia|exact Cm|]. intros k Hk.
      destruct (Nat.eq_dec k (S i)) as [->|]; [exact C|apply H; lia].
    + exists (S i). repeat split; [lia|congruence|lia].
    + exists (S i). repeat split; [lia|congruence|lia].
Qed.

Lemma not_of_class c k : class_of k <> c -> of_class c k = false.
Proof. unfold of_class. destruct c, (class_of k); congruence. Qed.

(* The service that is left for AF where CS is not served: over a window that contains the one asked for. *)
Theorem left_to_AF i j : (i < j)%nat -> (forall k, (i < k < j)%nat -> class_of k <> CS) ->
  exists w, t j - t i <= w /\ Z.max 0 (beta w - alpha w - L) <= part AF j - part AF (S i).
Proof.
  intros Hij HCS. destruct (before_EF i) as (m & Hm & Cm & HEF).
  exists (t j - t m). pose proof (time_grows m i Hm). split; [lia|].
  pose proof (part_grows AF (S i) j ltac:(lia)).
  pose proof (busy m j ltac:(lia)) as B. pose proof (arrivals m j ltac:(lia) Cm) as A.
  pose proof (all_parts (S m) j ltac:(lia)) as P. pose proof (sizes m) as Sm. cbn [carried] in P.
  assert (PA : part AF (S i) = part AF (S m)).
  { apply part_still; [lia|]. intros k Hk. apply not_of_class. rewrite HEF by lia. discriminate. }
  assert (PC : part CS j = part CS (S m)).
  { apply part_still; [lia|]. intros k Hk. apply not_of_class.
    destruct (le_lt_dec k i); [rewrite HEF by lia; discriminate|apply HCS; lia]. }
  lia.
Qed.

(* `left_over` of Guarantee.v. mult is AF's cost of a byte, u its leak in a nanosecond: rho = u / mult bytes per ns. *)
Theorem left_over_of_curves u mult D i j :
  0 <= u -> 0 <= mult ->
  (forall w, 0 <= w -> u * w - mult * Z.max 0 (beta w - alpha w - L) <= D) ->
  (i < j)%nat -> (forall k, (i < k < j)%nat -> class_of k <> CS) ->
  u * (t j - t i) - D <= mult * (part AF j - part AF (S i)).
Proof.
  intros Hu Hm HD Hij HCS. destruct (left_to_AF i j Hij HCS) as (w & Hw & H).
  pose proof (time_grows i j ltac:(lia)). specialize (HD w ltac:(lia)). nia.
Qed.

(* 3. The classes between the levels of AF, in a window in which they have packets: AF is served at its high level only,
   which `bucket` bounds (Guarantee.high_bucket). *)
Theorem between_levels u mult room i j :
  (forall m, (m < j)%nat -> mult * (part AF j - part AF (S m)) <= u * (t j - t m) + room) ->
  0 <= mult -> (i < j)%nat ->
  exists w, t j - t i <= w /\ mult * (beta w - alpha w - L) - u * w - room <= mult * (part CS j - part CS (S i)).
Proof.
  intros Hb Hm Hij. destruct (before_EF i) as (m & Hmi & Cm & HEF).
  exists (t j - t m). pose proof (time_grows m i Hmi). split; [lia|].
  pose proof (busy m j ltac:(lia)) as B. pose proof (arrivals m j ltac:(lia) Cm) as A.
  pose proof (all_parts (S m) j ltac:(lia)) as P. pose proof (sizes m) as Sm. cbn [carried] in P.
  specialize (Hb m ltac:(lia)).
  assert (PC : part CS (S i) = part CS (S m)).
  { apply part_still; [lia|]. intros k Hk. apply not_of_class. rewrite HEF by lia. discriminate. }
  rewrite PC.
  assert (beta (t j - t m) - alpha (t j - t m) - L <= (part AF j - part AF (S m)) + (part CS j - part CS (S m))) by lia.
  nia.
Qed.

(* 4. EF's delay, its own transmission included: the horizontal distance h between alpha + L and beta. Decision j sends the
   packet that arrived at a; with first in, first out, all that EF has sent since it last had no packet had arrived by a. *)
Theorem delay_of_EF h a j :
  (forall d e, 0 <= d -> beta e <= alpha d + L -> e <= d + h) ->
  class_of j = EF ->
  (forall m, (m < j)%nat -> class_of m <> EF -> t m <= a /\ part EF (S j) - part EF (S m) <= alpha (a - t m)) ->
  t (S j) - a <= h.
Proof.
  intros Hh Cj Ha. destruct (before_EF j) as (m & Hm & Cm & HEF).
  assert (m <> j) by congruence.
  destruct (Ha m ltac:(lia) Cm) as (Htm & Hpart).
  pose proof (busy m (S j) ltac:(lia)) as B. pose proof (sizes m).
  pose proof (all_parts (S m) (S j) ltac:(lia)) as P.
  assert (PA : part AF (S j) = part AF (S m)).
  { apply part_still; [lia|]. intros k Hk. apply not_of_class. rewrite HEF by lia. discriminate. }
  assert (PC : part CS (S j) = part CS (S m)).
  { apply part_still; [lia|]. intros k Hk. apply not_of_class. rewrite HEF by lia. discriminate. }
  cbn [carried] in B, P. specialize (Hh (a - t m) (t (S j) - t m) ltac:(lia)). lia.
Qed.

End Link.

(* ---- a constant link: c bytes in n ns; EF: sigma bytes and r bytes in n ns ---- *)

(* D = rho (sigma + L) / (C - r_e). *)
Theorem constant_D (beta alpha : Z -> Z) c r n sigma L u mult D :
  0 < n -> 0 <= r < c -> 0 < u -> 0 <= mult -> 0 <= sigma -> 0 <= L ->
  (forall w, 0 <= w -> c * w <= n * beta w) -> (forall w, 0 <= w -> n * alpha w <= n * sigma + r * w) ->
  u * n <= mult * (c - r) ->                    (* rho <= C - r_e *)
  u * n * (sigma + L) <= (c - r) * D ->
  forall w, 0 <= w -> u * w - mult * Z.max 0 (beta w - alpha w - L) <= D.
Proof.
  intros Hn Hr Hu Hm Hs HL Hb Ha Hrho HD w Hw.
  specialize (Hb w Hw). specialize (Ha w Hw).
  destruct (Z.le_gt_cases (u * w) D) as [|Hgt]; [nia|].
  set (v := beta w - alpha w - L) in *.
  assert (Hv : (c - r) * w - n * (sigma + L) <= n * v) by (unfold v; nia).
  assert (H1 : (c - r) * D < (c - r) * (u * w)) by nia.
  assert (H2 : 0 < (c - r) * w - n * (sigma + L)) by nia.
  assert (H3 : 0 < v) by nia.
  rewrite Z.max_r by lia.
  assert (H4 : u * ((c - r) * w - n * (sigma + L)) <= u * (n * v)) by nia.
  assert (H5 : u * (n * v) <= mult * (c - r) * v) by nia.
  assert (H6 : (c - r) * (u * w - mult * v) <= (c - r) * D) by nia.
  nia.
Qed.

(* EF's delay is at most (sigma + L) / C. *)
Theorem constant_delay (beta alpha : Z -> Z) c r n sigma L h :
  0 < n -> 0 <= r <= c -> 0 < c ->
  (forall w, c * w <= n * beta w) -> (forall w, 0 <= w -> n * alpha w <= n * sigma + r * w) ->
  n * (sigma + L) <= c * h ->
  forall d e, 0 <= d -> beta e <= alpha d + L -> e <= d + h.
Proof. intros Hn Hr Hc Hb Ha Hh d e Hd H. specialize (Hb e). specialize (Ha d Hd). nia. Qed.
