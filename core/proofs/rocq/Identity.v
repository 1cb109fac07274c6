(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* The identity behind every guarantee: counted service = rho dt + dx, over any sequence of calls. *)
From Coq Require Import ZArith Lia Bool List.
From Pss Require Import Pss Charge.
Import ListNotations.
Open Scope Z_scope.

(* What a call can do to a controlled queue without early=ignore and with sat=exact. *)
Inductive call :=
  | Look (now : Z)                                      (* pick, or another queue sends *)
  | Send (now tx_ns bytes : Z) (last : bool)            (* this queue sends a packet; `last`: it is empty after it *)
  | Arrive (now : Z)                                    (* a packet joins this queue *)
  | Drop (now : Z) (last : bool).                       (* a packet of this queue is dropped *)

Definition depart_exact (reset : bool) (q : queue) (now tx_ns bytes : Z) (last : bool) : queue :=
  let q := charge false (review q now) now tx_ns bytes in
  if last then set_floor q (floor_of reset q (excess (tat q) (now + tx_ns))) true else q.

Definition step (reset : bool) (q : queue) (c : call) : queue :=
  match c with
  | Look now => review q now
  | Send now tx_ns bytes last => depart_exact reset q now tx_ns bytes last
  | Arrive now => arrive q now
  | Drop now last => if negb last || empty q then q else set_floor q (floor_of reset q (level q now)) true
  end.

(* depart_exact is what the scheduler does. *)
Lemma depart_is_exact st q now bytes last :
  controlled q = true -> paper st = false -> ignore st = false ->
  depart st (review q now) now bytes last = depart_exact (reset st) q now (pace_ns (tx st) bytes) bytes last.
Proof.
  intros Hc Hp Hi. unfold depart, depart_exact. rewrite Hp, Hi.
  replace (controlled (review q now)) with true; [reflexivity|].
  unfold review. destruct (low q && (due q <=? now)); cbn; congruence.
Qed.

(* The terms of one call. *)
Definition counted_1 (q : queue) (c : call) : Z := match c with Send _ _ bytes _ => cost_of q bytes | _ => 0 end.
Definition cut_1 (q : queue) (c : call) : Z := match c with Send now _ _ _ => cut (review q now) now | _ => 0 end.
Definition uncharged_1 (q : queue) (c : call) : Z :=
  match c with Send now tx_ns bytes _ => uncharged (review q now) now tx_ns bytes | _ => 0 end.
Definition floor_1 (q : queue) (c : call) : Z :=
  match c with
  | Arrive now =>
    if empty q && controlled q && (tat q <? origin q now + floor q)
    then unit_of q * (origin q now + floor q) - pos q else 0
  | _ => 0
  end.

Fixpoint run (reset : bool) (q : queue) (calls : list call) : queue :=
  match calls with [] => q | c :: calls => run reset (step reset q c) calls end.

Fixpoint total (term : queue -> call -> Z) (reset : bool) (q : queue) (calls : list call) : Z :=
  match calls with [] => 0 | c :: calls => term q c + total term reset (step reset q c) calls end.

Definition valid (c : call) : Prop := match c with Send _ _ bytes _ => 0 <= bytes | _ => True end.

Lemma set_floor_keeps q f e : pos (set_floor q f e) = pos q /\ unit_of (set_floor q f e) = unit_of q /\
  (sound q -> sound (set_floor q f e)).
Proof. unfold sound. repeat split; intros; cbn; tauto. Qed.

Lemma step_identity reset q c : sound q -> valid c ->
  sound (step reset q c) /\ pace_q (step reset q c) = pace_q q /\
  pos (step reset q c) = pos q + counted_1 q c - uncharged_1 q c + cut_1 q c + floor_1 q c /\
  0 <= counted_1 q c /\ 0 <= uncharged_1 q c /\ 0 <= cut_1 q c /\ 0 <= floor_1 q c /\
  (match c with Send now _ _ _ => low (review q now) = false | _ => True end -> uncharged_1 q c = 0).
Proof.
  intros Hq Hc. destruct c as [now|now tx_ns bytes last|now|now last]; cbn [step counted_1 cut_1 uncharged_1 floor_1 valid] in *.
  - destruct (review_keeps q now) as (A & _ & B & _). rewrite A, B.
    repeat split; try lia; apply (review_sound q now Hq).
  - destruct (review_keeps q now) as (A & U & B & _).
    pose proof (review_sound q now Hq) as Hr.
    destruct (charge_parts (review q now) now tx_ns bytes Hr Hc) as (S & P & _ & _ & _ & W & Hi & _).
    assert (Hcost : cost_of (review q now) bytes = cost_of q bytes) by (unfold cost_of; rewrite B; reflexivity).
    assert (Hnn : 0 <= cost_of q bytes) by (unfold cost_of; destruct Hq as (_ & _ & M & _); nia).
    unfold depart_exact, uncharged. rewrite Hcost in *. rewrite A in *.
    destruct last; cbn zeta.
    all: repeat (match goal with |- context [pos (set_floor ?a ?b ?d)] =>
      destruct (set_floor_keeps a b d) as (-> & _ & Hsf) end).
    all: split; [try apply Hsf; exact S|]. all: cbn [pace_q set_floor]. all: rewrite P, B.
    all: repeat split; try lia; try (unfold cut; lia); intros L; rewrite (Hi L); lia.
  - unfold arrive. destruct (empty q); cbn [negb andb]; [|repeat split; try lia; apply Hq].
    destruct (controlled q); cbn [andb].
    2: destruct (set_floor_keeps q (floor q) false) as (-> & _ & Hsf); split; [exact (Hsf Hq)|cbn; repeat split; lia].
    destruct (Z.ltb_spec (tat q) (origin q now + floor q)) as [Hl|Hl].
    + pose proof (unit_pos q Hq). destruct Hq as (F & Hs & M & R).
      unfold sound, pos, unit_of in *. cbn. repeat split; try lia. nia.
    + destruct (set_floor_keeps q (floor q) false) as (-> & _ & Hsf); split; [exact (Hsf Hq)|cbn; repeat split; lia].
  - destruct (negb last || empty q); [repeat split; try lia; apply Hq|].
    destruct (set_floor_keeps q (floor_of reset q (level q now)) true) as (-> & _ & Hsf).
    split; [exact (Hsf Hq)|cbn; repeat split; lia].
Qed.

(* The level at an instant: what the position is ahead of it, in 2^-shift ns. Its unit leaks once per unit of time. *)
Definition x_of (q : queue) (now : Z) : Z := pos q - unit_of q * now.

Theorem identity reset calls : forall q, sound q -> Forall valid calls ->
  let after := run reset q calls in
  let all term := total term reset q calls in
  sound after /\ pace_q after = pace_q q /\
  0 <= all uncharged_1 /\ 0 <= all cut_1 /\ 0 <= all floor_1 /\
  forall t0 t1,
    all counted_1 = unit_of q * (t1 - t0) + (x_of after t1 - x_of q t0) + all uncharged_1 - all cut_1 - all floor_1.
Proof.
  induction calls as [|c calls IH]; intros q Hq Hv; cbn [run total].
  - cbn. repeat split; try lia; try apply Hq. intros t0 t1. unfold x_of. lia.
  - inversion Hv as [|? ? Hc Hrest]; subst.
    destruct (step_identity reset q c Hq Hc) as (S & P & E & A & B & C & D & _).
    destruct (IH (step reset q c) S Hrest) as (S' & P' & B' & C' & D' & E').
    cbn zeta in *. split; [exact S'|]. split; [congruence|].
    repeat split; try lia. intros t0 t1. specialize (E' t0 t1).
    assert (U : unit_of (step reset q c) = unit_of q) by (unfold unit_of; rewrite P; reflexivity).
    assert (U' : unit_of (run reset (step reset q c) calls) = unit_of q) by (unfold unit_of; rewrite P'; rewrite P; reflexivity).
    unfold x_of in *. rewrite U, U' in *. lia.
Qed.

(* Counted service in bits: rho * cost / 2^shift ns is 8 bits for each byte, to within 2^-32 of it. *)
Theorem counted_bits rho bytes : 2 <= rho <= 2 ^ 40 -> 0 <= bytes ->
  let p := pace_of rho in
  2 ^ 32 * Z.abs (rho * (bytes * mult p) - bytes * 8000000000 * 2 ^ shift p) <= bytes * 8000000000 * 2 ^ shift p.
Proof.
  intros Hrho Hbytes. cbn zeta. destruct (pace_near rho Hrho) as (_ & _ & H).
  replace (rho * (bytes * mult (pace_of rho)) - bytes * 8000000000 * 2 ^ shift (pace_of rho))
    with (bytes * (mult (pace_of rho) * rho - 8000000000 * 2 ^ shift (pace_of rho))) by ring.
  rewrite Z.abs_mul, (Z.abs_eq bytes) by lia. nia.
Qed.
