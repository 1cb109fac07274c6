// SPDX-License-Identifier: BSD-3-Clause
// The knobs of a report: the run is computed again in a worker of the page, with other values of some keys. The page brings all
// that this takes; nothing is fetched.
"use strict";

(() => {
  const { made, slider, mbit, percent, promises, cellsOf, headingsOf, table, marked, forShell } = window.linkweirShown;
  const { Simulator, compiled, inflated } = window.linkweirSimulator;
  const brought = JSON.parse(document.getElementById("brought").textContent);
  const OPEN = 12; // more knobs than this are folded, but those of the first table
  const AT_ONCE = 5e6; // a run of more events is not repeated before a knob is turned
  const root = document.getElementById("knobs");
  const knobs = made("div");
  const again = made("button", { type: "button", className: "does", hidden: true }, "As it was run");
  const stop = made("button", { type: "button", className: "does", hidden: true }, "Stop");
  const fault = made("p", { className: "fault", hidden: true });
  fault.setAttribute("role", "alert");
  const numbers = made("div", { className: "numbers", tabIndex: 0 });
  const state = made("p", { className: "state" });
  state.setAttribute("role", "status");
  const toml = made("pre", { className: "toml", tabIndex: 0 });
  const saveIt = made("p", { className: "below" });
  const command = made("pre", { className: "command" });
  const download = made("a", {}, "Download the changed scenario");
  const home = made("div", { hidden: true }, made("h3", {}, "The changed scenario"), toml, saveIt, command, made("p", {}, download));
  root.replaceChildren(knobs, made("div", { className: "knob" }, again, stop), fault, numbers, state, home);

  const folder = brought.file.slice(0, brought.file.lastIndexOf("/") + 1);
  const changedFile = `${folder}scenario-changed.toml`;
  const changes = new Map(); // values of keys that are not the scenario's, in TOML
  const sliders = [];
  let simulator = null;
  let files = [];
  let address = null;

  function request() {
    const parts = ["scenario", brought.file, brought.text, "points", String(brought.points), ...files];
    for (const [name, { sent_bytes: sent }] of Object.entries(brought.classes)) parts.push("sent", name, String(sent));
    for (const [key, value] of changes) parts.push("key", key, value);
    return parts;
  }

  function show(sentence) {
    fault.textContent = sentence;
    fault.hidden = !sentence;
    if (sentence) state.textContent = "";
  }

  function turned(knob, value) {
    if (value === knob.stops[knob.at]) changes.delete(knob.key);
    else changes.set(knob.key, value);
    run();
  }

  function lay(found) {
    const tables = new Map();
    found.forEach((knob, number) => {
      const { row, show: put } = slider({ ...knob, id: `knob-${number}`, label: knob.name, title: knob.meaning }, (value) => turned(knob, value));
      row.dataset.key = knob.key;
      sliders.push(() => put(knob.stops[knob.at]));
      if (!tables.has(knob.table)) tables.set(knob.table, []);
      tables.get(knob.table).push(row);
    });
    knobs.replaceChildren(...[...tables].map(([name, rows], number) => (
      made("details", { open: number === 0 || found.length <= OPEN }, made("summary", {}, name), ...rows)
    )));
    if (!found.length) knobs.textContent = "Neither the policy nor the flows of this scenario have a value that a knob could change.";
  }

  async function run() {
    again.hidden = !changes.size;
    const turns = JSON.stringify([...changes]);
    const isCurrent = () => turns === JSON.stringify([...changes]);
    const begun_ms = performance.now();
    stop.hidden = false;
    let answer;
    try {
      answer = await simulator.ask([...request(), "want", "charts"], (simulatedS) => { state.textContent = `simulated ${simulatedS.toFixed(0)} s`; });
    } catch (error) {
      stop.hidden = true;
      show(`The simulator failed; the next run begins with a fresh one. ${error.message}`);
      return;
    }
    if (!answer || !isCurrent()) return;
    stop.hidden = true;
    show(answer.fault?.sentence ?? "");
    if (answer.text !== undefined) describe(answer);
    if (answer.fault) return;
    draw(answer);
    const took_ms = performance.now() - begun_ms;
    state.textContent = differs(answer)
      ? "The page's simulator does not give the numbers of this run: it was built from other sources. Build it again, and write this report again."
      : `${answer.outcome.simulated_s} s simulated in ${took_ms.toFixed(0)} ms, ${answer.outcome.packets.toLocaleString("en")} packets.${answer.charts ? "" : " The charts stay as they are: the network has many links."}`;
  }

  // Whether a run without changes has other rates than the report's.
  function differs({ classes }) {
    if (changes.size) return false;
    return promises({ classes, promised: {}, open_loop: [], outcome: {} }).some((row) => row.got_bps !== before(row));
  }

  const before = ({ link, name }) => brought.classes[link === undefined ? name : `${link}: ${name}`]?.rate_bps;

  function draw(answer) {
    const { classes } = answer;
    const rows = promises(answer).map((row) => [
      ...cellsOf(row), mbit(before(row)), percent(classes.loss[row.at]),
      classes.delay_mean_s[row.at] === null ? "–" : (1e3 * classes.delay_mean_s[row.at]).toFixed(2),
    ]);
    numbers.replaceChildren(table([...headingsOf(answer), "got in the report's run", "loss (%)", "delay (ms)"], rows));
    if (answer.charts) window.linkweirReport.update(answer.charts);
  }

  // The scenario with its changed lines marked, and how to run it elsewhere.
  function describe({ text, fault: wrong }) {
    home.hidden = !changes.size;
    toml.replaceChildren(...marked(brought.text, text, wrong?.line));
    const mark = toml.querySelector("mark");
    if (mark) toml.scrollTop = mark.offsetTop - toml.offsetTop - toml.clientHeight / 3;
    saveIt.textContent = `Save it as ${changedFile}, in the same folder as the run's own scenario, then run it:`;
    command.textContent = `linkweir run ${forShell(changedFile)}`;
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    download.href = address;
    download.download = "scenario-changed.toml";
  }

  again.addEventListener("click", () => {
    changes.clear();
    for (const put of sliders) put();
    run();
  });
  stop.addEventListener("click", () => {
    simulator.stop();
    stop.hidden = true;
    state.textContent = "stopped";
  });

  async function begin() {
    state.textContent = "loading the simulator";
    try {
      simulator = new Simulator(await compiled(brought.module));
      const contents = await Promise.all(Object.values(brought.files).map(inflated));
      files = Object.keys(brought.files).flatMap((name, at) => ["file", `${folder}${name}`, contents[at]]);
      const answer = await simulator.ask([...request(), "want", "knobs"]);
      if (answer.fault) {
        show(answer.fault.sentence);
        return;
      }
      lay(answer.knobs);
    } catch (error) {
      show(`This browser cannot run the simulator, which needs WebAssembly and DecompressionStream: ${error.message}`);
      return;
    }
    state.textContent = "Turn a knob: the run begins then.";
    if (brought.events <= AT_ONCE) run();
  }
  begin();
})();
