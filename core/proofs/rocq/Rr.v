(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* rr.c as a list of the eligible queues, the next one first, and its guarantee: between two packets of a queue that stays
   eligible, every other queue sends at most one. *)
From Coq Require Import List Bool Arith Lia.
Import ListNotations.

Definition without (q : nat) (order : list nat) : list nat := filter (fun p => negb (p =? q)) order.
Definition listed (order : list nat) (q : nat) : bool := existsb (Nat.eqb q) order.

(* rr_follow *)
Definition rr_follow (order : list nat) (q : nat) (eligible : bool) : list nat :=
  if eqb eligible (listed order q) then order else if eligible then order ++ [q] else without q order.

Definition rr_pick (order : list nat) : option nat := hd_error order.

(* rr_sent *)
Definition rr_sent (order : list nat) (q : nat) (eligible : bool) : list nat :=
  rr_follow (if listed order q then without q order ++ [q] else order) q eligible.

(* rr_rated: every queue in turn *)
Definition rr_rated (order : list nat) (eligible : list bool) : list nat :=
  fst (fold_left (fun acc e => (rr_follow (fst acc) (snd acc) e, S (snd acc))) eligible (order, 0)).

(* ---- the guarantee ---- *)

Definition behind (p x : nat) (order : list nat) : Prop := exists a b, order = a ++ p :: b /\ ~ In x a /\ ~ In p a.

Lemma listed_in order q : listed order q = true <-> In q order.
Proof.
  unfold listed. rewrite existsb_exists. split.
  - intros (x & Hx & E). apply Nat.eqb_eq in E. congruence.
  - intros H. exists q. split; [exact H|apply Nat.eqb_refl].
Qed.

Lemma without_app q a b : without q (a ++ b) = without q a ++ without q b.
Proof. apply filter_app. Qed.

Lemma in_without q x order : In x (without q order) <-> In x order /\ x <> q.
Proof. unfold without. rewrite filter_In, negb_true_iff, Nat.eqb_neq. tauto. Qed.

Lemma without_other q p b : q <> p -> without q (p :: b) = p :: without q b.
Proof. intros H. cbn. destruct (Nat.eqb_spec p q); [congruence|reflexivity]. Qed.

Lemma behind_append p x q order : behind p x order -> behind p x (order ++ [q]).
Proof. intros (a & b & -> & H & H'). exists a, (b ++ [q]). rewrite <- app_assoc. split; [reflexivity|tauto]. Qed.

Lemma behind_without p x q order : q <> p -> behind p x order -> behind p x (without q order).
Proof.
  intros Hq (a & b & -> & H & H'). exists (without q a), (without q b).
  rewrite without_app, without_other by exact Hq. split; [reflexivity|]. rewrite !in_without. tauto.
Qed.

Lemma behind_follow p x q e order : q <> p -> behind p x order -> behind p x (rr_follow order q e).
Proof.
  intros Hq H. unfold rr_follow. destruct (eqb e (listed order q)); [exact H|].
  destruct e; [apply behind_append; exact H|apply behind_without; assumption].
Qed.

(* An event of a queue other than p, or one of p that leaves it listed, does not bring x before p. *)
Theorem stays_behind p x q e order : q <> p -> behind p x order ->
  behind p x (rr_follow order q e) /\ behind p x (rr_sent order q e).
Proof.
  intros Hq H. split; [apply behind_follow; assumption|]. unfold rr_sent. apply behind_follow; [exact Hq|].
  destruct (listed order q); [apply behind_append, behind_without; assumption|exact H].
Qed.

(* When x has sent, it is behind p: *)
Theorem sent_is_behind p x e order : x <> p -> In p order -> behind p x (rr_sent order x e).
Proof.
  intros Hx Hp.
  assert (H : forall o, In p o -> ~ In x o -> behind p x o).
  { induction o as [|z o IH]; intros Ho Hn; [destruct Ho|].
    destruct (Nat.eq_dec z p) as [->|Hz]; [exists [], o; split; [reflexivity|split; intros []]|].
    destruct Ho as [Ho|Ho]; [congruence|].
    destruct (IH Ho (fun G => Hn (or_intror G))) as (a & b & -> & A & B).
    exists (z :: a), b. split; [reflexivity|]. split.
    - intros [G|G]; [apply Hn; left; exact G|exact (A G)].
    - intros [G|G]; [exact (Hz G)|exact (B G)]. }
  unfold rr_sent. apply behind_follow; [exact Hx|].
  destruct (listed order x) eqn:L.
  - apply behind_append. apply H; rewrite in_without; [split; [exact Hp|congruence]|intros (_ & G); congruence].
  - apply H; [exact Hp|]. intros G. apply listed_in in G. congruence.
Qed.

(* ... and is not picked before p has been. *)
Theorem behind_is_not_picked p x order : x <> p -> behind p x order -> rr_pick order <> Some x.
Proof.
  intros Hx ([|y a] & b & -> & H & _); cbn; [congruence|]. intros E. inversion E; subst. apply H. left. reflexivity.
Qed.
