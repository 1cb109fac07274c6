(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* Why reserved_strict needs LR >= D: with less memory the lack has no bound. A run of the model, computed.

   rho 8 Gbit/s, link 16 Gbit/s, packets of 10 bytes (5 ns), LR = 0, LM = 10 bytes. EF sends four packets back to back at
   each multiple of 60 ns; AF and CS are always backlogged. EF keeps below 40 bytes + 2/3 byte per ns, so
   D = 1 * (40 + 10) / (2 - 2/3) = 37.5 bytes. *)
From Coq Require Import ZArith List Bool.
From Pss Require Import Pss Charge.
Open Scope Z_scope.

Definition small : queue :=
  {| tat := 0; frac := 0; floor := 0; resume := 0; full := 10; mark := 0; pace_q := {| mult := 1; shift := 0 |};
     low := false; controlled := true; empty := false |}.

(* steps, time, EF's packets sent, AF's service, AF's queue *)
Fixpoint play (steps : nat) (now ef af : Z) (q : queue) : Z * Z :=
  match steps with
  | O => (now, af)
  | S steps =>
    let q := review q now in
    if ef <? 4 * (now / 60 + 1) then play steps (now + 5) (ef + 1) af q
    else if low q then play steps (now + 5) ef af q
    else play steps (now + 5) ef (af + 10) (charge false q now 5 10)
  end.

Definition lack (q : queue) (steps : nat) : Z := let (now, af) := play steps 0 0 0 q in now - af.

Example less_memory_lacks_ever_more : lack small 1200 >= 20 * 38.
Proof. vm_compute. discriminate. Qed.

(* The same run with LR = 38 bytes: never more than D, here after each of the first 300 packets. *)
Definition enough : queue := set_levels (set_position small 38 0) 38 48 (pace_q small).

Fixpoint all_below (steps : nat) (most : Z) : bool :=
  match steps with O => true | S n => (lack enough n <=? most) && all_below n most end.

Example enough_memory_lacks_D : all_below 300 37 = true.
Proof. vm_compute. reflexivity. Qed.
