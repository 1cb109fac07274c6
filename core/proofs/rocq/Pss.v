(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* PSS as core/src/pss.c implements it, in integers without bounds: the transition function that Guarantee.v proves things
   about and that replay.ml runs on the vectors. Names follow pss.c. What differs from it:

   - Integers have no bounds, so no sum wraps. (Eva shows that pss.c does not wrap.) lw_mul_div alone saturates, as in C.
   - There are no ranks, no bitmap and no review_ns. pick compares the levels themselves, and every pick and departure
     looks at all low queues. pss.c looks when the first of them is due, which comes to the same.
   - The data plane hands in which queues are eligible. *)
From Coq Require Import ZArith List Bool.
Import ListNotations.
Open Scope Z_scope.

Definition unset := 2 ^ 64 - 1.
Definition second_ns := 1000000000.

Definition excess (a b : Z) : Z := if b <? a then a - b else 0.

(* lw_mul_div *)
Definition mul_div (a b c : Z) : Z :=
  if c <=? 0 then unset else Z.min unset (a * b / c).

(* ---- the pace of a rate: 8e9 * 2^shift / rate, in 32 bits ---- *)

Record pace := { mult : Z; shift : Z }.

(* One more binary digit per step. *)
Fixpoint digits (steps : nat) (rate m rest s : Z) : Z * Z * Z :=
  match steps with
  | O => (m, rest, s)
  | S steps =>
    if m <? 2 ^ 31 then
      let carry := rate - rest <=? rest in
      digits steps rate (2 * m + (if carry then 1 else 0)) (if carry then rest - (rate - rest) else rest + rest) (s + 1)
    else (m, rest, s)
  end.

Definition pace_of (rate : Z) : pace :=
  if rate =? 0 then {| mult := 0; shift := 0 |} else
  let '(m, rest, s) := digits 63 rate (8000000000 / rate) (8000000000 mod rate) 0 in
  let m := if (0 <? rest) && (rate - rest <=? rest) then m + 1 else m in
  if (0 <? s) && (2 ^ 32 <=? m) then {| mult := m / 2; shift := s - 1 |} else {| mult := m; shift := s |}.

Definition pace_ns (p : pace) (bytes : Z) : Z := bytes * mult p / 2 ^ shift p.

(* ---- a queue ---- *)

Record queue := {
  tat : Z;                (* when the credit would reach 0, in ns *)
  frac : Z;               (* of a nanosecond, in 2^-shift *)
  floor : Z;              (* while empty: the level does not fall below this *)
  resume : Z;             (* TR *)
  full : Z;               (* TM *)
  mark : Z;               (* early=ignore: nominal end of the last packet; otherwise 0 *)
  pace_q : pace;          (* of rho *)
  low : bool;
  controlled : bool;
  empty : bool
}.

Definition set_position (q : queue) (tat frac : Z) : queue :=
  {| tat := tat; frac := frac; floor := floor q; resume := resume q; full := full q; mark := mark q; pace_q := pace_q q;
     low := low q; controlled := controlled q; empty := empty q |}.

Definition set_low (q : queue) (low : bool) : queue :=
  {| tat := tat q; frac := frac q; floor := floor q; resume := resume q; full := full q; mark := mark q;
     pace_q := pace_q q; low := low; controlled := controlled q; empty := empty q |}.

Definition set_floor (q : queue) (floor : Z) (empty : bool) : queue :=
  {| tat := tat q; frac := frac q; floor := floor; resume := resume q; full := full q; mark := mark q; pace_q := pace_q q;
     low := low q; controlled := controlled q; empty := empty |}.

Definition set_mark (q : queue) (mark : Z) : queue :=
  {| tat := tat q; frac := frac q; floor := floor q; resume := resume q; full := full q; mark := mark; pace_q := pace_q q;
     low := low q; controlled := controlled q; empty := empty q |}.

Definition set_controlled (q : queue) (controlled : bool) : queue :=
  {| tat := tat q; frac := frac q; floor := floor q; resume := resume q; full := full q; mark := mark q;
     pace_q := pace_q q; low := low q && controlled; controlled := controlled; empty := empty q |}.

Definition set_levels (q : queue) (resume full : Z) (pace_q : pace) : queue :=
  {| tat := tat q; frac := frac q; floor := floor q; resume := resume; full := full; mark := mark q; pace_q := pace_q;
     low := low q; controlled := controlled q; empty := empty q |}.

Definition origin (q : queue) (now : Z) : Z := Z.max (mark q) now.

Definition level (q : queue) (now : Z) : Z :=
  let level := excess (tat q) (origin q now) in
  if empty q then Z.max level (floor q) else level.

Definition due (q : queue) : Z :=
  let due := excess (tat q) (resume q) in
  if due <=? mark q then 0 else due.

(* pss_review for one queue *)
Definition review (q : queue) (now : Z) : queue :=
  if low q && (due q <=? now) then set_low q false else q.

(* pss_charge without early=ignore and without the last packet of a queue; tx_ns is the packet's nominal time *)
Definition charge (paper : bool) (q : queue) (now tx_ns bytes : Z) : queue :=
  let most := now + full q + tx_ns in
  let q := if tat q <? now then set_position q now 0 else q in
  let unit := 2 ^ shift (pace_q q) in
  let cost := bytes * mult (pace_q q) + frac q in
  let up := tat q + cost / unit in
  let rest := cost mod unit in
  let q :=
    if negb (low q) then set_position q (if paper && (most <? up) then most else up) rest
    else if up <=? most then set_position q up rest
    else if tat q <? most then set_position q most 0
    else q in
  if negb (low q) && (most <=? tat q) then set_low q true else q.

(* early=ignore: the time that the last packet gained does not count *)
Definition ignore_gain (q : queue) (now tx_ns : Z) : queue :=
  set_mark (set_position q (excess (tat q) (excess (mark q) now)) (frac q)) (now + tx_ns).

Definition floor_of (reset : bool) (q : queue) (level : Z) : Z := if reset then resume q else Z.min level (resume q).

(* ---- the scheduler ---- *)

Record setting := {
  level_high : Z; level_low : Z;  (* level_low: unset for a plain queue *)
  rate : Z; share : Z; burst : Z; mtu : Z; memory : Z; set_lr : Z; set_lm : Z; credit : Z
}.

Record state := {
  seen : Z;
  tx : pace;
  link : Z;
  best : Z;
  paper : bool; reset : bool; ignore : bool;
  queues : list queue;
  settings : list setting;
  rhos : list Z
}.

Definition max_credit := 2 ^ 60.
Definition max_level := 2 ^ 62.
Definition max_bytes := 2 ^ 20.

(* pss_derive: rho, LR, LM *)
Definition derive (s : setting) (link : Z) : Z * Z * Z :=
  let mtu_bits := 8 * mtu s in
  let rho := if rate s =? 0 then mul_div link (share s) 1000000 else rate s in
  let rho := Z.max rho 10 in
  let lr := if set_lr s >? max_credit
    then Z.max (mul_div rho (memory s) second_ns) (mul_div rho (2 * mtu_bits) link) else set_lr s in
  let lm := if set_lm s >? max_credit
    then lr + mul_div ((burst s - 1) * mtu_bits) (excess link rho) link else set_lm s in
  (rho, lr, lm).

Definition time_of (bits rho : Z) : Z := Z.min (mul_div bits second_ns rho) max_level.

(* pss_set_constants: the queue, its rho, and whether anything has changed *)
Definition set_constants (st_link st_best : Z) (q : queue) (s : setting) (rho : Z) : queue * Z * bool :=
  let '(rho', lr, lm) := derive s (if share s =? 0 then st_best else st_link) in
  let resume' := time_of lr rho' in
  let full' := time_of lm rho' in
  if (rho =? rho') && (resume q =? resume') && (full q =? full') then (q, rho, false)
  else (set_levels q resume' full' (pace_of rho'), rho', true).

(* pss_stand *)
Definition stand (reset : bool) (q : queue) (level now : Z) : queue :=
  let most := full q + (max_bytes - 1) * mult (pace_q q) / 2 ^ shift (pace_q q) in
  let level := Z.min level most in
  let q := set_position q (origin q now + level) 0 in
  let q := set_floor q (floor_of reset q level) (empty q) in
  set_low q (low q && (resume q <? level)).

(* pss_carry *)
Definition carry (st : state) (q : queue) (level : Z) (s : setting) (rho : Z) (renewed : bool) (now : Z) : queue * Z :=
  let owed := excess (resume q) level in
  let ahead := excess level (resume q) in
  let '(q, rho', changed) := set_constants (link st) (best st) q s rho in
  if negb (changed || renewed) then (q, rho') else
  let owed := mul_div owed rho rho' in
  let ahead := Z.min (mul_div ahead rho rho') (2 * max_level) in
  (stand (reset st) q (excess (resume q) owed + ahead) now, rho').

(* pss_begin *)
Definition begin (st : state) (q : queue) (s : setting) (rho credit now : Z) : queue * Z :=
  let '(q, rho, _) := set_constants (link st) (best st) q s rho in
  let level := if credit =? unset then resume q else time_of credit rho in
  let q := set_position q (now + level) 0 in
  let q := set_mark q 0 in
  let q := set_floor q (floor_of (reset st) q level) (empty q) in
  (set_controlled (set_low q false) true, rho).

Definition blank : queue :=
  {| tat := 0; frac := 0; floor := 0; resume := 0; full := 0; mark := 0; pace_q := {| mult := 0; shift := 0 |};
     low := false; controlled := false; empty := true |}.

Definition with_queues (st : state) (seen : Z) (queues : list queue) : state :=
  {| seen := seen; tx := tx st; link := link st; best := best st; paper := paper st; reset := reset st;
     ignore := ignore st; queues := queues; settings := settings st; rhos := rhos st |}.

(* pss_follow *)
Definition follow (st : state) (link_bps : Z) : state :=
  if link_bps =? 0 then st else
  {| seen := seen st; tx := pace_of link_bps; link := link_bps; best := Z.max (best st) link_bps; paper := paper st;
     reset := reset st; ignore := ignore st; queues := queues st; settings := settings st; rhos := rhos st |}.

Definition with_rules (st : state) (paper reset ignore : bool) : state :=
  {| seen := seen st; tx := tx st; link := link st; best := best st; paper := paper; reset := reset; ignore := ignore;
     queues := queues st; settings := settings st; rhos := rhos st |}.

Definition with_rows (st : state) (now : Z) (rows : list (queue * setting * Z)) : state :=
  {| seen := now; tx := tx st; link := link st; best := best st; paper := paper st; reset := reset st;
     ignore := ignore st; queues := map (fun row => fst (fst row)) rows; settings := map (fun row => snd (fst row)) rows;
     rhos := map snd rows |}.

Definition rows (st : state) : list (queue * setting * Z) := combine (combine (queues st) (settings st)) (rhos st).

Definition is_plain (s : setting) : bool := level_low s =? unset.

(* pss_init; `empties` says which queues are empty *)
Definition init (now link_bps : Z) (paper reset ignore : bool) (settings : list setting) (empties : list bool) : state :=
  let st := follow {| seen := now; tx := {| mult := 0; shift := 0 |}; link := 0; best := 0; paper := paper; reset := reset;
    ignore := ignore; queues := []; settings := []; rhos := [] |} link_bps in
  with_rows st now (map (fun row : setting * bool =>
    let (s, is_empty) := row in
    let '(q, rho) := if is_plain s then (blank, 0) else begin st blank s 0 (credit s) now in
    (set_floor q (floor q) is_empty, s, rho)) (combine settings empties)).

Definition clock (st : state) (now : Z) : Z := Z.max (seen st) now.

Definition present_level (q : queue) (s : setting) : Z := if low q then level_low s else level_high s.

(* The most urgent eligible queue, by its present level: its index. *)
Fixpoint most_urgent (rows : list (queue * setting * bool)) (index : nat) : option (nat * Z) :=
  match rows with
  | [] => None
  | (q, s, eligible) :: rows =>
    let rest := most_urgent rows (S index) in
    if eligible then
      match rest with
      | Some (_, urgency) => if urgency <? present_level q s then rest else Some (index, present_level q s)
      | None => Some (index, present_level q s)
      end
    else rest
  end.

Definition pick (st : state) (now : Z) (eligible : list bool) : state * option nat :=
  let now := clock st now in
  let reviewed := map (fun q => review q now) (queues st) in
  (with_queues st now reviewed, option_map fst (most_urgent (combine (combine reviewed (settings st)) eligible) 0)).

Definition update (index : nat) (change : queue -> queue) (queues : list queue) : list queue :=
  match nth_error queues index with
  | Some q => firstn index queues ++ change q :: skipn (S index) queues
  | None => queues
  end.

(* pss_enqueued *)
Definition arrive (q : queue) (now : Z) : queue :=
  if negb (empty q) then q else
  let least := origin q now + floor q in
  let q := if controlled q && (tat q <? least) then set_position q least 0 else q in
  set_floor q (floor q) false.

Definition enqueued (st : state) (now : Z) (index : nat) : state :=
  let now := clock st now in
  with_queues st now (update index (fun q => arrive q now) (queues st)).

(* pss_saturate *)
Definition saturate (q : queue) (now : Z) : queue :=
  let most := origin q now + full q in
  if controlled q && (most <? tat q) then set_position q most (frac q) else q.

(* pss_charge and pss_shrink of the queue that sent; `last`: it is empty now *)
Definition depart (st : state) (q : queue) (now bytes : Z) (last : bool) : queue :=
  if controlled q then
    let tx_ns := pace_ns (tx st) bytes in
    let q := if ignore st then ignore_gain q now tx_ns else q in
    let q := charge (paper st) q now tx_ns bytes in
    if last then set_floor q (floor_of (reset st) q (excess (tat q) (now + tx_ns))) true else q
  else if last then set_floor q (floor q) true else q.

Definition sent (st : state) (now : Z) (index : nat) (bytes : Z) (last : bool) : state :=
  let now := clock st now in
  let limited := if paper st then map (fun q => saturate q now) (queues st) else queues st in
  let reviewed := map (fun q => review q now) limited in
  with_queues st now (update index (fun q => depart st q now bytes last) reviewed).

(* pss_dropped; `last`: the queue is empty now *)
Definition dropped (st : state) (now : Z) (index : nat) (last : bool) : state :=
  let now := clock st now in
  with_queues st now (update index (fun q =>
    if negb last || empty q then q
    else set_floor q (floor_of (reset st) q (level q now)) true) (queues st)).

(* pss_rated *)
Definition rated (st : state) (now link_bps : Z) : state :=
  let now := clock st now in
  if (link_bps =? 0) || (link_bps =? link st) then with_queues st now (queues st) else
  let followed := follow st link_bps in
  with_rows followed now (map (fun row : queue * setting * Z =>
    let '(q, s, rho) := row in
    if controlled q && (negb (share s =? 0) || negb (best followed =? best st)) then
      let '(q, rho) := carry followed q (level q now) s rho false now in (q, s, rho)
    else (q, s, rho)) (rows st)).

Definition same_setting (a b : setting) : bool :=
  (level_high a =? level_high b) && (level_low a =? level_low b) && (rate a =? rate b) && (share a =? share b) &&
  (burst a =? burst b) && (mtu a =? mtu b) && (memory a =? memory b) && (set_lr a =? set_lr b) &&
  (set_lm a =? set_lm b) && (credit a =? credit b).

(* pss_change *)
Definition change (st : state) (now link_bps : Z) (paper' reset' ignore' : bool) (settings' : list setting) : state :=
  let now := clock st now in
  let rules := negb (eqb (reset st) reset') || negb (eqb (ignore st) ignore') in
  let st' := follow (with_rules st paper' reset' ignore') link_bps in
  with_rows st' now (map (fun row : queue * setting * Z * setting =>
    let '(q, old, rho, s) := row in
    let renewed := rules || negb (same_setting old s) in
    let level := level q now in
    let q := if ignore' then q else set_mark q 0 in
    let '(q, rho) :=
      if is_plain s then (set_controlled q false, rho)
      else if controlled q then carry st' q level s rho renewed now
      else begin st' q s rho unset now in
    (q, s, rho)) (combine (rows st) settings')).

Definition observe (st : state) (now : Z) (index : nat) : Z * bool :=
  let now := Z.max now (seen st) in
  match nth_error (queues st) index, nth_error (rhos st) index with
  | Some q, Some rho =>
    (if controlled q then Z.min (mul_div (level q now) rho second_ns) (2 ^ 63 - 1) else 0, low q)
  | _, _ => (0, false)
  end.
