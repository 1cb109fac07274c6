(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* The axioms of ../sort.h, ../pss/order.c and ../pss/ranks.c, which the provers get about counts, heaps, keys and rows without
   repetition, as theorems. An array is a function; what is written to it makes another one. *)
From Coq Require Import ZArith Lia List.
Open Scope Z_scope.

(* Of ../sort.h *)
Definition level_of (value q : Z) : Z := if value <? 0 then 0 else if 65535 <? value then q else value.

Theorem own_level value q : value > 65535 -> level_of value q = q.
Proof. unfold level_of. intros. destruct (Z.ltb_spec value 0), (Z.ltb_spec 65535 value); lia. Qed.

Theorem given_level value q : 0 <= value <= 65535 -> level_of value q = value.
Proof. unfold level_of. intros. destruct (Z.ltb_spec value 0), (Z.ltb_spec 65535 value); lia. Qed.

Theorem some_level value q : 0 <= q -> 0 <= level_of value q.
Proof. unfold level_of. intros. destruct (Z.ltb_spec value 0), (Z.ltb_spec 65535 value); lia. Qed.

Definition one (a b : Z) : Z := if a =? b then 1 else 0.

Theorem equal a : one a a = 1.
Proof. unfold one. rewrite Z.eqb_refl. reflexivity. Qed.

Theorem unequal a b : a <> b -> one a b = 0.
Proof. unfold one. intros H. apply Z.eqb_neq in H. rewrite H. reflexivity. Qed.

Fixpoint among (key : Z -> Z) (n : nat) (value : Z) : Z :=
  match n with O => 0 | S m => among key m value + one (key (Z.of_nat m)) value end.
Definition count (key : Z -> Z) (n value : Z) : Z := among key (Z.to_nat n) value.
Definition moved_at (key after : Z -> Z) (n place : Z) : Prop := forall i, 0 <= i < n -> i <> place -> after i = key i.

Theorem appended key n value : 0 <= n -> count key (n + 1) value = count key n value + one (key n) value.
Proof. intros. unfold count. replace (Z.to_nat (n + 1)) with (S (Z.to_nat n)) by lia. cbn. rewrite Z2Nat.id by lia. reflexivity. Qed.

Lemma among_some key n value : 0 <= among key n value.
Proof. induction n; cbn; [lia|]. unfold one. destruct (Z.eqb_spec (key (Z.of_nat n)) value); lia. Qed.

Theorem some key n value : 0 <= count key n value.
Proof. apply among_some. Qed.

Lemma among_unmoved key after n value : (forall i, 0 <= i < Z.of_nat n -> after i = key i) -> among after n value = among key n value.
Proof. induction n; intros H; cbn; [reflexivity|]. rewrite IHn by (intros; apply H; lia). rewrite H by lia. reflexivity. Qed.

Theorem unmoved key after n place value : n <= place -> moved_at key after n place -> count after n value = count key n value.
Proof. intros Hn H. apply among_unmoved. intros i Hi. apply H; lia. Qed.

Theorem moved key after n place value : 0 <= place < n -> moved_at key after n place ->
  count after n value = count key n value - one (key place) value + one (after place) value.
Proof.
  intros Hp H. unfold count. assert (Hn : place < Z.of_nat (Z.to_nat n)) by lia.
  assert (Hm : moved_at key after (Z.of_nat (Z.to_nat n)) place) by (intros i Hi; apply H; lia).
  clear H. revert Hn Hm. generalize (Z.to_nat n) as m. induction m as [|m IH]; intros Hn Hm; [lia|]. cbn.
  destruct (Z.eq_dec place (Z.of_nat m)) as [->|Hother].
  - rewrite (among_unmoved key after m) by (intros i Hi; apply Hm; lia). lia.
  - rewrite IH, (Hm (Z.of_nat m)) by (try (intros i Hi Hne; apply Hm); lia). lia.
Qed.

Lemma among_somewhere key n value : 0 < among key n value -> exists i, 0 <= i < Z.of_nat n /\ key i = value.
Proof.
  induction n as [|n IH]; cbn [among]; intros H; [lia|].
  destruct (Z.eq_dec (key (Z.of_nat n)) value) as [E|E]; [exists (Z.of_nat n); split; [lia|exact E]|].
  rewrite unequal in H by exact E. destruct IH as (i & Hi & Hv); [lia|]. exists i. split; [lia|exact Hv].
Qed.

Theorem somewhere key n value : 0 < count key n value -> exists i, 0 <= i < n /\ key i = value.
Proof. intros H. apply among_somewhere in H as (i & Hi & Hv). exists i. split; [lia|exact Hv]. Qed.

Definition heap (key : Z -> Z) (from n : Z) : Prop :=
  forall p c, from <= p < c -> c < n -> (c = 2 * p + 1 \/ c = 2 * p + 2) -> key c <= key p.

Theorem first_of_heap key n : heap key 0 n -> forall i, 0 <= i < n -> key i <= key 0.
Proof.
  intros H i [Hi Hn]. revert i Hi Hn. apply (Zlt_0_ind (fun i => i < n -> key i <= key 0)). intros i IH Hi Hn.
  destruct (Z.eq_dec i 0) as [->|Hother]; [lia|].
  assert (Hd := Z.div_mod (i - 1) 2 ltac:(lia)). assert (Hr := Z.mod_pos_bound (i - 1) 2 ltac:(lia)).
  set (p := (i - 1) / 2) in *. apply Z.le_trans with (key p); [apply H; lia|apply IH; lia].
Qed.

(* Of ../pss/ranks.c *)
Definition sort_key (level low q : Z) : Z := (level * 2 + low) * 4096 + q.

Theorem parts level low q : 0 <= level -> 0 <= low < 2 -> 0 <= q < 4096 ->
  sort_key level low q mod 4096 = q /\ (sort_key level low q / 4096) mod 2 = low.
Proof.
  intros Hlevel Hlow Hq. unfold sort_key. split.
  - rewrite Z.add_comm, Z.mod_add by lia. apply Z.mod_small. lia.
  - rewrite Z.add_comm, Z.div_add by lia. rewrite (Z.div_small q) by lia.
    replace (0 + (level * 2 + low)) with (low + level * 2) by lia. rewrite Z.mod_add by lia. apply Z.mod_small. lia.
Qed.

Theorem more_urgent level low q than flow p : 0 <= level < than -> 0 <= low < 2 -> 0 <= flow < 2 -> 0 <= q < 4096 -> 0 <= p < 4096 ->
  sort_key level low q < sort_key than flow p.
Proof. unfold sort_key. lia. Qed.

Fixpoint levels (low : nat -> bool) (n : nat) : Z := match n with O => 0 | S q => levels low q + if low q then 2 else 1 end.

Theorem no_levels low : levels low 0 = 0.
Proof. reflexivity. Qed.

Theorem one_level low q : low q = false -> levels low (S q) = levels low q + 1.
Proof. intros H. cbn. rewrite H. reflexivity. Qed.

Theorem two_levels low q : low q = true -> levels low (S q) = levels low q + 2.
Proof. intros H. cbn. rewrite H. reflexivity. Qed.

(* Of ../pss/order.c *)
Theorem room (row : Z -> Z) n k q : 0 <= q < n -> (forall i j, 0 <= i < j -> j < k -> row i <> row j) ->
  (forall i, 0 <= i < k -> 0 <= row i < n /\ row i <> q) -> k < n.
Proof.
  intros Hq Honce Hapart. destruct (Z.lt_ge_cases 0 k) as [Hk|Hk]; [|lia].
  set (named := map (fun i => row (Z.of_nat i)) (seq 0 (Z.to_nat k))). set (all := map Z.of_nat (seq 0 (Z.to_nat n))).
  assert (Hin : forall x, In x named -> 0 <= x < n /\ x <> q).
  { intros x Hx. apply in_map_iff in Hx as (i & <- & Hi). apply in_seq in Hi. apply Hapart. lia. }
  assert (Hnodup : NoDup (q :: named)).
  { constructor; [intros Hx; apply Hin in Hx; lia|]. unfold named.
    assert (Hseq := seq_NoDup (Z.to_nat k) 0). revert Hseq. 
    assert (Hall : forall i, In i (seq 0 (Z.to_nat k)) -> (i < Z.to_nat k)%nat) by (intros i Hi; apply in_seq in Hi; lia).
    revert Hall. generalize (seq 0 (Z.to_nat k)) as places. induction places as [|i rest IH]; intros Hall Hseq; cbn; [constructor|].
    inversion Hseq as [|? ? Hnot Hrest]; subst. constructor; [|apply IH; [intros j Hj; apply Hall; right; exact Hj|exact Hrest]].
    intros Hx. apply in_map_iff in Hx as (j & E & Hj). assert (i <> j) by (intros ->; contradiction).
    assert (i < Z.to_nat k)%nat by (apply Hall; left; reflexivity). assert (j < Z.to_nat k)%nat by (apply Hall; right; exact Hj).
    destruct (Nat.lt_ge_cases i j); [apply (Honce (Z.of_nat i) (Z.of_nat j)); lia|apply (Honce (Z.of_nat j) (Z.of_nat i)); lia]. }
  assert (Hincl : incl (q :: named) all).
  { intros x Hx. assert (Hrange : 0 <= x < n) by (destruct Hx as [<-|Hx]; [exact Hq|apply Hin in Hx; lia]).
    apply in_map_iff. exists (Z.to_nat x). split; [lia|apply in_seq; lia]. }
  assert (Hlen := NoDup_incl_length Hnodup Hincl). cbn [length] in Hlen. unfold named, all in Hlen.
  rewrite !map_length, !seq_length in Hlen. lia.
Qed.
