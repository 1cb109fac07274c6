(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* drr.c, with one entry for each eligible queue, in the order of their visits, and its guarantee: while a queue stays
   eligible, `visits` complete visits send visits * quantum bytes, less what is left of its deficit: 0 to L - 1 bytes. *)
From Coq Require Import ZArith List Bool Lia.
Import ListNotations.
Open Scope Z_scope.

Record entry := {
  id : nat; quantum : Z; priority : Z; deficit : Z; fresh : bool;
  visits : Z; served : Z      (* since it became eligible: quanta granted, bytes sent. drr.c does not keep these. *)
}.

Definition most_packet := 2 ^ 20.

Definition with_deficit (e : entry) (deficit : Z) (fresh : bool) (visits served : Z) : entry :=
  {| id := id e; quantum := quantum e; priority := priority e; deficit := deficit; fresh := fresh; visits := visits;
     served := served |}.

(* drr_add of a number of quanta *)
Definition grant (e : entry) (rounds : Z) (fresh : bool) : entry :=
  with_deficit e (Z.min (deficit e + rounds * quantum e) (quantum e + most_packet)) fresh (visits e + rounds) (served e).

Definition visit (e : entry) : entry := if fresh e then grant e 1 false else e.

(* drr_turn over the entries of one level: who can send, the entries in their new order, the rounds lacking *)
Fixpoint turn (length_of : nat -> Z) (ahead passed : list entry) (rounds : Z) : option nat * list entry * Z :=
  match ahead with
  | [] => (None, passed, rounds)
  | e :: ahead =>
    let e := visit e in
    let length := length_of (id e) in
    if length <=? deficit e then (Some (id e), e :: ahead ++ passed, rounds)
    else
      let lack := length - deficit e in
      let lack := if lack <=? quantum e then 1 else (lack - 1) / quantum e + 1 in
      turn length_of ahead (passed ++ [with_deficit e (deficit e) true (visits e) (served e)]) (Z.min rounds lack)
  end.

Definition never := 2 ^ 32 - 1.

Definition pick_level (length_of : nat -> Z) (level : list entry) : option nat * list entry :=
  match turn length_of level [] never with
  | (Some q, level, _) => (Some q, level)
  | (None, level, rounds) =>
    let level := if 1 <? rounds then map (fun e => grant e (rounds - 1) (fresh e)) level else level in
    fst (turn length_of level [] never)
  end.

Definition least_priority (order : list entry) : Z := fold_right (fun e least => Z.min (priority e) least) 64 order.

Definition drr_pick (order : list entry) (length_of : nat -> Z) : list entry * option nat :=
  let at_level := fun e => priority e =? least_priority order in
  let '(q, level) := pick_level length_of (filter at_level order) in
  (level ++ filter (fun e => negb (at_level e)) order, q).

Definition joined (q : nat) (quantum priority : Z) : entry :=
  {| id := q; quantum := quantum; priority := priority; deficit := 0; fresh := true; visits := 0; served := 0 |}.

Definition leave (order : list entry) (q : nat) : list entry := filter (fun e => negb (Nat.eqb (id e) q)) order.
Definition is_listed (order : list entry) (q : nat) : bool := existsb (fun e => Nat.eqb (id e) q) order.

(* drr_follow *)
Definition drr_follow (order : list entry) (settings : list (Z * Z)) (q : nat) (eligible : bool) : list entry :=
  if eqb eligible (is_listed order q) then order
  else if eligible then
    match nth_error settings q with Some (quantum, priority) => order ++ [joined q quantum priority] | None => order end
  else leave order q.

Definition charge (e : entry) (bytes : Z) : entry :=
  with_deficit e (Z.max 0 (deficit e - bytes)) (fresh e) (visits e) (served e + bytes).

Definition drr_sent (order : list entry) (settings : list (Z * Z)) (q : nat) (bytes : Z) (eligible : bool) : list entry :=
  drr_follow (map (fun e => if Nat.eqb (id e) q then charge e bytes else e) order) settings q eligible.

(* for every queue in turn *)
Definition drr_rated (order : list entry) (settings : list (Z * Z)) (eligible : list bool) : list entry :=
  fst (fold_left (fun acc e => (drr_follow (fst acc) settings (snd acc) e, S (snd acc))) eligible (order, O)).

Definition renew (quantum' : Z) (e : entry) : entry :=
  {| id := id e; quantum := quantum'; priority := priority e; deficit := Z.min (deficit e) (quantum' + most_packet);
     fresh := fresh e; visits := visits e; served := served e |}.

Definition change_one (order : list entry) (settings : list (Z * Z)) (q : nat) (eligible : bool) : list entry :=
  match nth_error settings q with
  | Some (quantum', priority') =>
    let order := map (fun e => if Nat.eqb (id e) q then renew quantum' e else e) order in
    if existsb (fun e => Nat.eqb (id e) q && negb (priority e =? priority')) order
    then drr_follow (leave order q) settings q eligible else order
  | None => order
  end.

Definition drr_change (order : list entry) (settings : list (Z * Z)) (eligible : list bool) : list entry :=
  fst (fold_left (fun acc e => (change_one (fst acc) settings (snd acc) e, S (snd acc))) eligible (order, O)).

(* ---- the guarantee ---- *)

Section Deficits.

Variable L : Z.                                   (* the largest packet *)
Hypothesis L_small : 0 < L <= most_packet.
Variable length_of : nat -> Z.
Hypothesis lengths : forall q, 0 <= length_of q <= L.

(* Holds between any two calls for every eligible queue. *)
Definition good (e : entry) : Prop :=
  0 < quantum e /\ 0 <= deficit e < L + quantum e /\ served e + deficit e = visits e * quantum e /\
  (fresh e = true -> deficit e < L).

Lemma good_joined q quantum priority : 0 < quantum -> good (joined q quantum priority).
Proof. intros H. unfold good, joined. cbn. repeat split; try lia. Qed.

Lemma good_visit e : good e -> good (visit e) /\ id (visit e) = id e.
Proof.
  unfold good, visit. intros (A & B & C & D). destruct (fresh e) eqn:F; [|rewrite F; tauto].
  specialize (D eq_refl). unfold grant, with_deficit. rewrite Z.mul_1_l, Z.min_l by lia. cbn -[Z.mul Z.add].
  repeat split; try lia; try nia; try (intros X; discriminate X).
Qed.

(* What a turn leaves: the deficits are as the guarantee says, and where no queue could send, each one lacks more than the
   rounds that will be skipped. *)
Definition lacks (rounds : Z) (e : entry) : Prop :=
  fresh e = true /\ deficit e + (rounds - 1) * quantum e < length_of (id e).

Lemma good_turn ahead : forall passed rounds q order rounds',
  0 < rounds -> turn length_of ahead passed rounds = (q, order, rounds') ->
  Forall good ahead -> Forall good passed -> Forall (lacks rounds) passed ->
  Forall good order /\ 0 < rounds' <= rounds /\
  (q = None -> Forall (lacks rounds') order) /\
  (forall i, q = Some i -> exists e rest, order = e :: rest /\ id e = i /\ length_of i <= deficit e).
Proof.
  induction ahead as [|e ahead IH]; intros passed rounds q order rounds' Hr H Ha Hp Hl; cbn [turn] in H.
  - inversion H; subst. repeat split; try lia; try assumption; try discriminate. intros _; exact Hl.
  - inversion Ha as [|? ? He Hrest]; subst. destruct (good_visit e He) as (Hv & Hid).
    destruct (Z.leb_spec (length_of (id (visit e))) (deficit (visit e))) as [Hfits|Hlack].
    + inversion H; subst. repeat split; try lia; try discriminate.
      * constructor; [exact Hv|]. apply Forall_app; split; assumption.
      * intros i Hi. inversion Hi; subst. eexists. eexists. split; [reflexivity|].
        split; [reflexivity|exact Hfits].
    + set (v := visit e) in *.
      set (lack := if length_of (id v) - deficit v <=? quantum v then 1
        else (length_of (id v) - deficit v - 1) / quantum v + 1) in *.
      assert (Hq : 0 < quantum v) by apply Hv.
      assert (Hlack' : 0 < lack /\ (lack - 1) * quantum v < length_of (id v) - deficit v).
      { unfold lack. destruct (Z.leb_spec (length_of (id v) - deficit v) (quantum v)); [split; lia|].
        pose proof (Z.div_mod (length_of (id v) - deficit v - 1) (quantum v) ltac:(lia)).
        pose proof (Z.mod_pos_bound (length_of (id v) - deficit v - 1) (quantum v) Hq).
        split; [|nia]. assert (0 <= (length_of (id v) - deficit v - 1) / quantum v) by (apply Z.div_pos; lia). lia. }
      pose proof (lengths (id v)) as Hlen.
      destruct (IH _ (Z.min rounds lack) _ _ _ ltac:(lia) H Hrest) as (G & R & N & S).
      * apply Forall_app; split; [exact Hp|]. constructor; [|constructor].
        unfold good in *. cbn. repeat split; try lia.
      * apply Forall_app; split.
        -- eapply Forall_impl; [|exact (Forall_and Hp Hl)]. cbn. intros z (Gz & Fz & Lz). split; [exact Fz|].
           assert (0 < quantum z) by apply Gz. nia.
        -- constructor; [|constructor]. unfold lacks. cbn. split; [reflexivity|]. nia.
      * repeat split; try lia; try assumption.
Qed.

Lemma good_skip rounds e : 1 < rounds -> good e -> lacks rounds e -> good (grant e (rounds - 1) (fresh e)).
Proof.
  intros Hr (A & B & C & D) (F & G). pose proof (lengths (id e)).
  unfold good, grant, with_deficit. rewrite Z.min_l by nia. cbn -[Z.mul Z.add Z.sub]. repeat split; nia.
Qed.

Theorem good_pick_level level : Forall good level -> Forall good (snd (pick_level length_of level)).
Proof.
  intros H. unfold pick_level.
  destruct (turn length_of level [] never) as [[q order] rounds] eqn:T.
  destruct (good_turn level [] never q order rounds ltac:(unfold never; lia) T H (Forall_nil _) (Forall_nil _))
    as (G & R & N & _).
  destruct q as [q|]; [exact G|]. specialize (N eq_refl).
  set (skipped := if 1 <? rounds then map (fun e => grant e (rounds - 1) (fresh e)) order else order).
  assert (Gs : Forall good skipped).
  { unfold skipped. destruct (Z.ltb_spec 1 rounds); [|exact G]. apply Forall_map.
    eapply Forall_impl; [|exact (Forall_and G N)]. cbn. intros e (Ge & Le). apply good_skip; assumption. }
  destruct (turn length_of skipped [] never) as [[q' order'] rounds'] eqn:T'.
  destruct (good_turn skipped [] never q' order' rounds' ltac:(unfold never; lia) T' Gs (Forall_nil _) (Forall_nil _))
    as (G' & _). exact G'.
Qed.

Theorem good_pick order : Forall good order -> Forall good (fst (drr_pick order length_of)).
Proof.
  intros H. unfold drr_pick.
  pose proof (good_pick_level (filter (fun e => priority e =? least_priority order) order)) as P.
  destruct (pick_level length_of (filter (fun e => priority e =? least_priority order) order)) as [q level].
  cbn in *. apply Forall_app. split.
  - apply P. apply Forall_forall. intros e He. apply filter_In in He. rewrite Forall_forall in H. apply H, He.
  - apply Forall_forall. intros e He. apply filter_In in He. rewrite Forall_forall in H. apply H, He.
Qed.

(* The queue that pick named sends its head, which fits. *)
Lemma good_charge e bytes : 0 <= bytes <= deficit e -> good e -> good (charge e bytes).
Proof.
  intros Hb (A & B & C & D). unfold good, charge. cbn. rewrite Z.max_r by lia.
  repeat split; try lia. intros F. specialize (D F). lia.
Qed.

Theorem good_follow order settings q eligible :
  Forall (fun s => 0 < fst s) settings -> Forall good order -> Forall good (drr_follow order settings q eligible).
Proof.
  intros Hs H. unfold drr_follow. destruct (eqb eligible (is_listed order q)); [exact H|].
  destruct eligible.
  - destruct (nth_error settings q) as [[quantum' priority']|] eqn:N; [|exact H].
    apply Forall_app. split; [exact H|]. constructor; [|constructor]. apply good_joined.
    apply nth_error_In in N. rewrite Forall_forall in Hs. apply (Hs _ N).
  - apply Forall_forall. intros e He. apply filter_In in He. rewrite Forall_forall in H. apply H, He.
Qed.

(* After complete visits k and k' of a queue that stays eligible, the bytes sent between differ from (k' - k) quanta by L - 1 at
   most. *)
Theorem sent_in_visits before after :
  good before -> good after -> quantum after = quantum before -> fresh before = true -> fresh after = true ->
  Z.abs ((served after - served before) - (visits after - visits before) * quantum before) <= L - 1.
Proof. intros (A & B & C & D) (A' & B' & C' & D') E F F'. specialize (D F). specialize (D' F'). rewrite E in *. lia. Qed.

End Deficits.
