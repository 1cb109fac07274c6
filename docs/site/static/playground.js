// SPDX-License-Identifier: BSD-3-Clause
// The playground: experiments with knobs, whose runs are computed in a worker of this page and drawn by report.js.
// `linkweirPlayground`, which the site's build writes, has the simulator, scenarios and files.
"use strict";

(() => {
  const { module, missing, scenarios, made: madeHere, files } = window.linkweirPlayground;
  const SOURCE_FOLDER = "scenarios/";
  const { made, slider, percent, promises, cellsOf, headingsOf, table, marked, forShell } = window.linkweirShown;
  const MOST_TRACE_MIB = 64; // a day with a capacity each second has 2

  // --- the experiments ---------------------------------------------------------------------------------------------------
  //
  // A knob sets `keys` of the scenario to a value, in TOML; which values there are, the simulator says of the first key, or of
  // `known`, the name that it has for this key: those of the policy's table, or for a flow's rate those from `least` to `most`.
  // A knob with `scenarios` chooses a scenario. `numbers` makes a table of an answer: its headings and rows.

  // What classes got of the rates that they are promised: by the policy itself, or else by `others`, bit/s.
  const ratesOf = (names, others = {}) => (answer) => ({
    headings: headingsOf(answer),
    rows: promises(answer, others).filter(({ name }) => names.includes(name)).map(cellsOf),
  });

  // Losses and delays of classes, as multiples of those of the first, and what the coefficients of the scenario promise.
  function ratiosOf({ classes, text }) {
    const coefficients = (key) => [...text.matchAll(new RegExp(`^${key} = (\\d+)`, "gm"))].map(([, value]) => Number(value));
    const [losses, delays] = [coefficients("loss"), coefficients("delay")];
    const times = (value) => `× ${value.toFixed(2)}`;
    return {
      headings: ["class", "loss (%)", "promised", "got", "delay (ms)", "promised", "got"],
      rows: classes.class.map((name, at) => [
        name,
        percent(classes.loss[at]), times(losses[0] / losses[at]), times(classes.loss[at] / classes.loss[0]),
        (1e3 * classes.delay_mean_s[at]).toFixed(2), times(delays[0] / delays[at]), times(classes.delay_mean_s[at] / classes.delay_mean_s[0]),
      ]),
    };
  }

  // What all vehicles lost together, and how long a packet that was sent waited at most: up to the timeout, if there is one.
  function waitsOf({ classes, text }) {
    const sum = (values) => values.reduce((all, value) => all + value, 0);
    const lost = sum(classes.loss.map((loss, at) => (loss ?? 0) * classes.arrived_pkts[at])) / sum(classes.arrived_pkts);
    const longest_ms = 1e3 * Math.max(...classes.delay_max_s);
    const [, written, unit] = /^timeout = "([\d.]+)(\w+)"/m.exec(text) ?? [];
    const timeout_ms = written * { us: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 36e5 }[unit];
    const isKept = timeout_ms > 0 ? longest_ms <= timeout_ms : undefined;
    return {
      headings: ["vehicles", "loss (%)", "promised: waits at most (ms)", "waited at most (ms)"],
      rows: [[String(classes.class.length), percent(lost), timeout_ms > 0 ? String(timeout_ms) : "–", [longest_ms.toFixed(1), isKept]]],
    };
  }

  // All classes of a scenario, with what is promised, if anything is.
  const allOf = (answer) => ratesOf(answer.classes.class)(answer);

  const PIECES = [
    {
      name: "memory",
      title: "Memory over a fade",
      words: "The link fades from 20 to 3 Mbit/s for 10 s. AF is promised 5 Mbit/s, which the fade cannot carry. The memory of its "
        + "credit decides how much of that AF gets back afterwards.",
      scenario: "pss-fade",
      knobs: [{ name: "memory", label: "memory of AF", value: "2s", keys: ["class.af.memory"] }],
      charts: ["rates", "levels-credit_bits"],
      numbers: ratesOf(["af"]),
    },
    {
      name: "voice",
      title: "Voice grows",
      words: "On a GEO link of 20 Mbit/s voice (EF) goes first, and AF is promised 5 Mbit/s. Let voice grow: which policy keeps the promise?",
      scenario: "geo",
      knobs: [
        {
          name: "policy", label: "policy", options: ["pss", "drr", "strict"], value: "pss",
          names: { pss: "PSS", drr: "DWRR", strict: "strict priority" },
          scenarios: { pss: "geo", drr: "geo-dwrr", strict: "geo-strict" },
        },
        { name: "voice", label: "voice", least: "1Mbit", most: "19Mbit", value: "10Mbit", keys: ["flow.voice.rate"] },
      ],
      charts: ["rates", "delays"],
      numbers: ratesOf(["ef", "af", "cs0"], { af: 5e6 }),
    },
    {
      name: "overload",
      title: "Overload in fixed ratios",
      words: "Eight classes send at the same rate into a link of 100 Mbit/s. Proportional differentiation (PDS) promises ratios, not "
        + "rates: under any load c8 waits longest and loses least.",
      scenario: "pds",
      knobs: [{
        name: "load", label: "rate of each class", least: "12.5Mbit", most: "18Mbit", value: "13.5Mbit",
        keys: ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"].map((name) => `flow.${name}.rate`),
        known: "flow.cbr1.rate", // these flows have no name: a key finds them by their class
      }],
      charts: ["delays", "drops"],
      numbers: ratiosOf,
    },
    {
      name: "timeout",
      title: "Late or lost",
      words: "Vehicles talk over a low satellite's fading link, which 84 of them fill. CoDeS drops what waited longer than a timeout. "
        + "While the link is just full a longer one saves packets; overloaded, it makes more of them late and loses more.",
      scenario: "leo-voice",
      knobs: [
        { name: "timeout", label: "timeout", value: "100ms", keys: ["class.vehicle.timeout"] },
        {
          name: "vehicles", label: "vehicles", options: ["60", "84", "110", "150"], value: "84",
          keys: ["class.vehicle.count", "flow.voice.count"], isNumber: true,
        },
      ],
      charts: ["delays", "drops"],
      numbers: waitsOf,
    },
    {
      name: "trace",
      title: "Your own trace",
      words: "Ten calls, telemetry (AF) and downloads (CS0) on a link that a trace describes: an LTE drive, until you choose a file of "
        + "yours or drop it here. The file stays on your computer.",
      scenario: "lte-drive",
      knobs: [{ name: "memory", label: "memory of AF", value: "10s", keys: ["class.af.memory"] }],
      charts: ["rates", "delays"],
      numbers: allOf,
      takesTrace: true,
    },
    {
      name: "edit",
      title: "Any scenario",
      words: "Choose one of the shipped scenarios, change its text and run it.",
      scenario: "fade",
      knobs: [{ name: "scenario", label: "scenario", options: Object.keys(scenarios), value: "fade", scenarios: Object.fromEntries(Object.keys(scenarios).map((name) => [name, name])) }],
      charts: null,
      numbers: allOf,
      isEdited: true,
    },
  ];

  // --- the page ----------------------------------------------------------------------------------------------------------

  const root = document.getElementById("knobs");
  const tabs = made("div", { className: "pieces" });
  const words = made("p");
  const knobs = made("div", { className: "knobs" });
  const chooser = made("input", { id: "trace-file", type: "file" });
  const traceRow = made("div", { className: "knob" }, made("label", { htmlFor: "trace-file" }, "trace"), chooser);
  const editor = made("textarea", { id: "scenario-text", spellcheck: false });
  editor.setAttribute("aria-label", "text of the scenario");
  const runIt = made("button", { type: "button", className: "does" }, "Run");
  const stopIt = made("button", { type: "button", className: "does" }, "Stop");
  const editRow = made("div", {}, editor, made("div", { className: "knob" }, runIt, stopIt));
  const state = made("p", { className: "state" });
  state.setAttribute("role", "status");
  const fault = made("p", { className: "fault", hidden: true });
  fault.setAttribute("role", "alert");
  const numbers = made("div", { className: "numbers", tabIndex: 0 });
  const toml = made("pre", { className: "toml", tabIndex: 0 });
  const saveIt = made("p");
  const command = made("pre", { className: "command" });
  const link = made("a", {}, "Link to this setting");
  const download = made("a", {}, "Download the scenario");
  const charts = made("div", {},
    made("div", { id: "legend", className: "legend" }),
    made("div", { id: "over-time" }),
    made("section", { hidden: true }, made("div", { id: "distributions" })));
  const home = made("div", {},
    made("h2", {}, "The scenario"), toml,
    made("h2", {}, "At home"), saveIt, command,
    made("p", {}, download, " · ", link));
  root.replaceChildren(tabs, words, knobs, traceRow, editRow, fault, numbers, state, charts, home);

  let piece = PIECES[0];
  let values = {};
  let simulator = null;
  let trace = null;
  let address = null;

  const valueOf = (knob, from) => {
    const value = from.get(knob.name);
    if (value === null || value === "") return knob.value;
    return knob.options && !knob.options.includes(value) ? knob.value : value;
  };

  // The experiment and the knobs that the address names.
  function fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    piece = PIECES.find(({ name }) => name === given.get("piece")) ?? PIECES[0];
    values = Object.fromEntries(piece.knobs.map((knob) => [knob.name, valueOf(knob, given)]));
    lay();
  }

  function choose(chosen) {
    piece = chosen;
    values = Object.fromEntries(piece.knobs.map((knob) => [knob.name, knob.value]));
    remember();
    lay();
  }

  function remember() {
    const hash = `#${new URLSearchParams({ piece: piece.name, ...values })}`;
    link.href = hash;
    history.replaceState(null, "", hash);
  }

  // The page of an experiment.
  function lay() {
    tabs.replaceChildren(...PIECES.map((each) => {
      const button = made("button", { type: "button", onclick: () => choose(each) }, each.title);
      button.setAttribute("aria-pressed", String(each === piece));
      return button;
    }));
    words.textContent = piece.words;
    knobs.replaceChildren();
    traceRow.hidden = !piece.takesTrace;
    editRow.hidden = !piece.isEdited;
    if (piece.isEdited) editor.value = scenarios[scenarioOf()];
    link.href = `#${new URLSearchParams({ piece: piece.name, ...values })}`;
    begin();
  }

  // Lays the knobs, whose values the simulator knows, and runs.
  async function begin() {
    if (!simulator) return;
    const of = piece;
    let answer = {};
    try {
      const asked = () => simulator.ask([...request(), "want", "knobs"]);
      if (!piece.isEdited) answer = await asked();
      if (answer?.fault && of === piece) { // a value of the address
        for (const knob of piece.knobs) if (!knob.options) values[knob.name] = knob.value;
        remember();
        answer = await asked();
      }
    } catch (error) {
      failed(error);
      return;
    }
    if (!answer || of !== piece) return;
    knobs.replaceChildren(...piece.knobs.map((knob) => laid(knob, answer.knobs ?? [])));
    run();
  }

  function laid(knob, known) {
    const id = `knob-${knob.name}`;
    if (knob.options) {
      const list = made("select", { id }, ...knob.options.map((option) => new Option(knob.names?.[option] ?? option, option)));
      list.value = values[knob.name];
      list.addEventListener("change", () => turned(knob, list.value));
      return made("div", { className: "knob" }, made("label", { htmlFor: id }, knob.label), list);
    }
    const found = known.find(({ key }) => key === (knob.known ?? knob.keys[0]));
    if (!found) return ""; // the trace is a fault, which the run shows
    const own = found.stops[found.at];
    const from = Math.max(0, found.stops.indexOf(`"${knob.least}"`));
    const to = knob.most ? found.stops.indexOf(`"${knob.most}"`) : found.stops.length - 1;
    const inside = found.at >= from && found.at <= to ? found.stops.slice(from, to + 1) : found.stops;
    const it = { id, label: knob.label, title: found.meaning, stops: inside, at: inside.indexOf(own) };
    return slider(it, (stop) => turned(knob, JSON.parse(stop))).row;
  }

  function turned(knob, value) {
    values[knob.name] = value;
    if (piece.isEdited) editor.value = scenarios[scenarioOf()];
    remember();
    run();
  }

  // --- runs ----------------------------------------------------------------------------------------------------------------

  const scenarioOf = () => piece.knobs.map((knob) => knob.scenarios?.[values[knob.name]]).find(Boolean) ?? piece.scenario;

  function request() {
    const name = scenarioOf();
    const parts = ["scenario", `${SOURCE_FOLDER}${name}.toml`, piece.isEdited ? editor.value : scenarios[name]];
    for (const knob of piece.knobs) {
      const value = knob.isNumber ? values[knob.name] : JSON.stringify(values[knob.name]);
      for (const key of knob.keys ?? []) parts.push("key", key, value);
    }
    for (const [path, content] of Object.entries(files)) parts.push("file", SOURCE_FOLDER + path, content);
    if (piece.takesTrace && trace) parts.push("trace", trace.name, trace.content);
    return parts;
  }

  async function run() {
    if (!simulator) return;
    const name = scenarioOf();
    const begun_ms = performance.now();
    const of = piece;
    let answer;
    try {
      const panels = (piece.charts ?? []).flatMap((chart) => ["panel", chart]);
      answer = await simulator.ask([...request(), ...panels, "want", "charts"], (simulatedS) => { state.textContent = `simulated ${simulatedS.toFixed(0)} s`; });
    } catch (error) {
      failed(error);
      return;
    }
    if (!answer || of !== piece) return;
    show(answer.fault?.sentence ?? "");
    if (answer.text !== undefined) describe(name, answer);
    if (answer.fault) {
      if (piece.isEdited) select(answer.fault.line);
      return;
    }
    const { headings, rows } = piece.numbers(answer);
    numbers.replaceChildren(...(rows.length ? [table(headings, rows)] : []));
    if (answer.charts) window.linkweirReport.update(answer.charts);
    const took_ms = performance.now() - begun_ms;
    const notes = answer.charts ? "" : " Charts of so many links are in the report that linkweir run writes.";
    state.textContent = `${answer.outcome.simulated_s} s simulated in ${took_ms.toFixed(0)} ms, ${answer.outcome.packets.toLocaleString("en")} packets.${notes}`;
  }

  // Shows a line of the edited text.
  function select(line) {
    if (!line) return;
    const lines = editor.value.split("\n");
    const begin = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    editor.setSelectionRange(begin, begin + (lines[line - 1] ?? "").length);
  }

  const failed = (error) => show(`The simulator failed; the next run begins with a fresh one. ${error.message}`);

  function show(sentence) {
    fault.textContent = sentence;
    fault.hidden = !sentence;
    if (sentence) state.textContent = "";
  }

  // The scenario with its changed lines marked, and how to run it elsewhere.
  function describe(name, { text, fault: wrong }) {
    toml.replaceChildren(...marked(scenarios[name], text, wrong?.line));
    const isShipped = text === scenarios[name] && !(name in madeHere);
    const file = isShipped ? `${SOURCE_FOLDER}${name}.toml` : `${SOURCE_FOLDER}${name}-changed.toml`;
    const withTrace = piece.takesTrace && trace ? ` --trace ${forShell(trace.name)}` : "";
    saveIt.textContent = isShipped ? "" : `Download the scenario and save it as ${file}, where the paths in it lead to its files.`;
    command.textContent = `linkweir run ${file}${withTrace}`;
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    download.href = address;
    download.download = file.replace(SOURCE_FOLDER, "");
  }

  // --- files and the editor -------------------------------------------------------------------------------------------------

  async function takeTrace(file) {
    if (file.size > MOST_TRACE_MIB * 2 ** 20) {
      show(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MiB; a trace has at most ${MOST_TRACE_MIB} MiB here: run it with linkweir run --trace`);
      return;
    }
    trace = { name: file.name, content: new Uint8Array(await file.arrayBuffer()) };
    run();
  }
  chooser.addEventListener("change", () => { if (chooser.files[0]) takeTrace(chooser.files[0]); });
  root.addEventListener("dragover", (event) => {
    if (!piece.takesTrace) return;
    event.preventDefault();
    root.classList.add("dropped");
  });
  root.addEventListener("dragleave", () => root.classList.remove("dropped"));
  root.addEventListener("drop", (event) => {
    if (!piece.takesTrace) return;
    event.preventDefault();
    root.classList.remove("dropped");
    if (event.dataTransfer.files[0]) takeTrace(event.dataTransfer.files[0]);
  });
  runIt.addEventListener("click", run);
  stopIt.addEventListener("click", () => {
    simulator?.stop();
    state.textContent = "stopped";
  });

  // --- the theme, which the site's menu may set -----------------------------------------------------------------------------

  function follow() {
    const chosen = document.body.dataset.theme;
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme; // the style follows the system
    window.linkweirReport?.recolour();
  }
  follow();
  addEventListener("afterprint", follow);
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });

  addEventListener("DOMContentLoaded", async () => {
    if (!module) {
      root.replaceChildren(made("p", { className: "fault" }, `This copy of the site has no simulator: ${missing}`));
      return;
    }
    fromAddress();
    addEventListener("hashchange", fromAddress);
    state.textContent = "loading the simulator";
    try {
      simulator = new window.linkweirSimulator.Simulator(await window.linkweirSimulator.compiled(module));
    } catch (error) {
      show(`This browser cannot run the simulator, which needs WebAssembly and DecompressionStream: ${error.message}`);
      return;
    }
    begin();
  });
})();
