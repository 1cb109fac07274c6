(* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause *)
(* Replays vectors (vectors/README.md) of pss, drr and rr in the models of Pss.v, Drr.v and Rr.v, extracted to models.ml. Every
   answer of pick and every value that a vector observes must be the model's, exactly: the model has the rounding of the C code. *)

module M = Models

let z = Big_int_Z.big_int_of_string
let unset = M.unset
let zi = Big_int_Z.big_int_of_int

let policy = ref ""

exception Wrong of string
let wrong format = Printf.ksprintf (fun text -> raise (Wrong text)) format

(* ---- parameters ---- *)

let value text = match text with
  | "unset" -> unset
  | "exact" | "keep" | "charge" -> zi 0
  | "paper" | "reset" | "ignore" -> zi 1
  | _ -> z text

let split word = match String.index_opt word '=' with
  | Some i -> String.sub word 0 i, String.sub word (i + 1) (String.length word - i - 1)
  | None -> wrong "%s has no =" word

let defaults index : M.setting = {
  level_high = zi index; level_low = unset; rate = zi 0; share = zi 0; burst = zi 20; mtu = zi 1514;
  memory = zi 100000000; set_lr = unset; set_lm = unset; credit = unset }

let set_queue (s : M.setting) word : M.setting =
  let name, text = split word in
  let v = value text in
  match name with
  | "level" -> { s with level_high = v }
  | "low_level" -> { s with level_low = v }
  | "rate" -> { s with rate = v }
  | "share" -> { s with share = v }
  | "burst" -> { s with burst = v }
  | "mtu" -> { s with mtu = v }
  | "memory" -> { s with memory = v }
  | "lr" -> { s with set_lr = v }
  | "lm" -> { s with set_lm = v }
  | "credit" -> { s with credit = v }
  | _ -> wrong "no parameter %s of a queue" name

(* ---- one file ---- *)

(* What a policy keeps: pss its state, the others the order of the eligible queues. *)
type kept = Pss of M.state | Rr of int list | Drr of M.entry list

type plane = {
  mutable state : kept option;
  mutable quanta : (Big_int_Z.big_int * Big_int_Z.big_int) array;       (* drr: quantum and level of each queue *)
  mutable link : Big_int_Z.big_int;
  mutable rows : M.setting array;
  mutable rates : Big_int_Z.big_int array;
  mutable packets : int list array;             (* lengths, the head first *)
  mutable rules : (string * Big_int_Z.big_int) list;
  mutable picked : int option
}

let counts = Hashtbl.create 16
let count name = Hashtbl.replace counts name (1 + Option.value ~default:0 (Hashtbl.find_opt counts name))

let rule plane name = match List.assoc_opt name plane.rules with
  | Some v -> Big_int_Z.sign_big_int v <> 0
  | None -> false

let set_rule plane word =
  let name, text = split word in
  if not (List.mem name ["sat"; "on_empty"; "early"]) then wrong "no parameter %s" name;
  plane.rules <- (name, value text) :: List.remove_assoc name plane.rules

let state plane = match plane.state with Some s -> s | None -> wrong "no init"

let eligible plane =
  Array.to_list (Array.mapi (fun q packets -> packets <> [] && Big_int_Z.sign_big_int plane.rates.(q) > 0) plane.packets)

let shown = function Some q -> string_of_int q | None -> "none"

let rec set_rates plane = function
  | q :: rate :: rest -> plane.rates.(int_of_string q) <- z rate; set_rates plane rest
  | [] -> ()
  | _ -> wrong "a queue without a rate"

let settings plane = Array.to_list plane.rows
let quanta plane = Array.to_list plane.quanta
let is_eligible plane q = List.nth (eligible plane) q

let set_quantum (quantum, level) word =
  let name, text = split word in
  match name with
  | "quantum" -> z text, level
  | "level" -> quantum, z text
  | _ -> wrong "no parameter %s of a queue" name

let change plane words =
  match words with
  | "queue" :: q :: words ->
    let q = int_of_string q in
    if !policy = "drr" then plane.quanta.(q) <- List.fold_left set_quantum plane.quanta.(q) words
    else plane.rows.(q) <- List.fold_left set_queue plane.rows.(q) words
  | words -> List.iter (set_rule plane) words

let length_of plane q = match plane.packets.(q) with bytes :: _ -> zi bytes | [] -> zi 0

let init plane now = match !policy with
  | "rr" -> Rr (M.rr_rated [] (eligible plane))
  | "drr" -> Drr (M.drr_rated [] (quanta plane) (eligible plane))
  | _ -> Pss (M.init now plane.link (rule plane "sat") (rule plane "on_empty") (rule plane "early")
      (settings plane) (Array.to_list (Array.map (fun packets -> packets = []) plane.packets)))

let enqueued plane now q = function
  | Pss s -> Pss (M.enqueued s now q)
  | Rr order -> Rr (M.rr_follow order q (is_eligible plane q))
  | Drr order -> Drr (M.drr_follow order (quanta plane) q (is_eligible plane q))

let pick plane now = function
  | Pss s -> let s, q = M.pick s now (eligible plane) in Pss s, q
  | Rr order -> Rr order, M.rr_pick order
  | Drr order -> let order, q = M.drr_pick order (length_of plane) in Drr order, q

let sent plane now q bytes = function
  | Pss s -> Pss (M.sent s now q (zi bytes) (plane.packets.(q) = []))
  | Rr order -> Rr (M.rr_sent order q (is_eligible plane q))
  | Drr order -> Drr (M.drr_sent order (quanta plane) q (zi bytes) (is_eligible plane q))

let dropped plane now q = function
  | Pss s -> Pss (M.dropped s now q (plane.packets.(q) = []))
  | Rr order -> Rr (M.rr_follow order q (is_eligible plane q))
  | Drr order -> Drr (M.drr_follow order (quanta plane) q (is_eligible plane q))

let rated plane now = function
  | Pss s -> Pss (M.rated s now plane.link)
  | Rr order -> Rr (M.rr_rated order (eligible plane))
  | Drr order -> Drr (M.drr_rated order (quanta plane) (eligible plane))

let changed plane now = function
  | Pss s -> Pss (M.change s now plane.link (rule plane "sat") (rule plane "on_empty") (rule plane "early") (settings plane))
  | Rr order -> Rr order
  | Drr order -> Drr (M.drr_change order (quanta plane) (eligible plane))

let observed now q = function
  | Pss s -> let credit, low = M.observe s now q in ["credit", Big_int_Z.string_of_big_int credit; "low", if low then "1" else "0"]
  | Rr _ | Drr _ -> []

let send plane now q =
  match plane.packets.(q) with
  | [] -> wrong "queue %d is empty" q
  | bytes :: rest ->
    plane.packets.(q) <- rest;
    plane.state <- Some (sent plane now q bytes (state plane));
    count "packets"

let drop plane now q =
  match List.rev plane.packets.(q) with
  | [] -> wrong "queue %d is empty" q
  | _ :: rest ->
    plane.packets.(q) <- List.rev rest;
    plane.state <- Some (dropped plane now q (state plane))

(* The packet behind the head of q becomes its head. *)
let lead plane now q behind =
  let packets = plane.packets.(q) in
  let first = List.nth packets behind in
  plane.packets.(q) <- first :: List.filteri (fun i _ -> i <> behind) packets;
  plane.state <- Some (rated plane now (state plane))

let event plane now words =
  match words with
  | ["init"] -> plane.state <- Some (init plane now)
  | ["enqueue"; q; bytes] ->
    let q = int_of_string q in
    plane.packets.(q) <- plane.packets.(q) @ [int_of_string bytes];
    plane.state <- Option.map (enqueued plane now q) plane.state
  | ["pick"; expected] ->
    let s, answer = pick plane now (state plane) in
    plane.state <- Some s;
    plane.picked <- answer;
    if shown answer <> expected then wrong "pick is %s in the vector and %s in the model" expected (shown answer);
    count "picks"
  | ["send"] -> (match plane.picked with Some q -> send plane now q | None -> wrong "nothing was picked")
  | ["send"; q] -> send plane now (int_of_string q)
  | ["drop"; q] -> drop plane now (int_of_string q)
  | ["lead"; q; behind] -> lead plane now (int_of_string q) (int_of_string behind)
  | "rate" :: words ->
    set_rates plane words;
    plane.state <- Some (rated plane now (state plane))
  | ["link"; capacity] ->
    plane.link <- z capacity;
    plane.state <- Some (rated plane now (state plane))
  | "change" :: words ->
    change plane words;
    plane.state <- Some (changed plane now (state plane))
  | "observe" :: q :: words ->
    let values = observed now (int_of_string q) (state plane) in
    List.iter (fun word ->
      let name, text = split word in
      match List.assoc_opt name values with
      | Some seen -> if seen <> text then wrong "%s is %s in the vector and %s in the model" name text seen; count "values"
      | None -> wrong "no value %s" name) words
  | words -> wrong "no operation %s" (String.concat " " words)

let line plane text =
  let text = match String.index_opt text '#' with Some i -> String.sub text 0 i | None -> text in
  match List.filter (fun word -> word <> "") (String.split_on_char ' ' (String.trim text)) with
  | [] | ["linkweir-vectors"; "1"] -> ()
  | ["policy"; ("pss" | "drr" | "rr" as name)] -> policy := name
  | ["queues"; n] ->
    let n = int_of_string n in
    plane.rows <- Array.init n defaults;
    plane.quanta <- Array.make n (zi 1514, zi 0);
    plane.packets <- Array.make n [];
    plane.rates <- Array.make n plane.link
  | ["link"; capacity] ->
    plane.link <- z capacity;
    plane.rates <- Array.map (fun _ -> plane.link) plane.rates
  | "set" :: words -> List.iter (set_rule plane) words
  | "queue" :: _ as words -> change plane words
  | "refuse" :: _ -> count "refusals left out"
  | "at" :: now :: words -> event plane (z now) words
  | word :: _ -> wrong "no line %s" word

let replay path =
  let plane = { state = None; link = zi 0; rows = [||]; quanta = [||]; rates = [||]; packets = [||]; rules = []; picked = None } in
  let file = open_in path and number = ref 0 in
  (try
    while true do
      incr number;
      line plane (input_line file)
    done
  with
  | End_of_file -> count (if Option.is_none plane.state then "vectors left out (only refusals, which check() decides)" else "vectors")
  | Wrong text -> Printf.printf "%s:%d: %s\n" path !number text; count "vectors that differ");
  close_in file

let () =
  Array.iteri (fun i path -> if i > 0 then replay path) Sys.argv;
  let names = List.sort compare (Hashtbl.fold (fun name _ names -> name :: names) counts []) in
  print_endline (String.concat ", " (List.map (fun name -> Printf.sprintf "%d %s" (Hashtbl.find counts name) name) names));
  exit (if Hashtbl.mem counts "vectors that differ" || not (Hashtbl.mem counts "vectors") then 1 else 0)
