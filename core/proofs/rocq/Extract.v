(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* The models as an OCaml program, its integers those of zarith. *)
From Coq Require Import ZArith.
From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Pss Require Import Pss Rr Drr.
Extraction "models.ml" Pss.init Pss.pick Pss.enqueued Pss.sent Pss.dropped Pss.rated Pss.change Pss.observe
  Rr.rr_follow Rr.rr_pick Rr.rr_sent Rr.rr_rated Drr.drr_follow Drr.drr_pick Drr.drr_sent Drr.drr_rated Drr.drr_change.
