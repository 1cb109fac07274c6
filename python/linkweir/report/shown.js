// SPDX-License-Identifier: BSD-3-Clause
// What pages with knobs show: sliders, what classes were promised and got, and the scenario with its changed lines. The answers
// are those of simulator.js; a knob is one of the answer's `knobs`, whose `stops` are values in TOML.
"use strict";

(() => {
  const KEPT = 0.995; // of a promised rate, as a class's packets do not fill the window to its end

  function made(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name in element && name !== "list") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // --- sliders ---------------------------------------------------------------------------------------------------------

  // A value in TOML as people read it.
  function read(stop) {
    if (stop.startsWith('"')) return JSON.parse(stop);
    return /^[{[]/.test(stop) ? "as given, over time" : stop;
  }

  // A row with a slider or, for words, a list; `turned` is called with the stop that is chosen. `show` puts it at a stop.
  function slider({ id, label, title = "", stops, at }, turned) {
    const name = made("label", { htmlFor: id, title }, label);
    if (stops.every((stop) => /^"[a-z]/.test(stop))) {
      const list = made("select", { id }, ...stops.map((stop, place) => new Option(read(stop), place)));
      list.addEventListener("change", () => turned(stops[list.value]));
      const show = (stop) => { list.value = stops.indexOf(stop); };
      show(stops[at]);
      return { row: made("div", { className: "knob" }, name, list), show };
    }
    const shown = made("output", { htmlFor: id });
    const range = made("input", { id, type: "range", min: 0, max: stops.length - 1, step: 1, title });
    const tell = () => {
      shown.textContent = read(stops[range.value]);
      range.setAttribute("aria-valuetext", shown.textContent);
    };
    const show = (stop) => {
      range.value = stops.indexOf(stop);
      tell();
    };
    show(stops[at]);
    range.addEventListener("input", () => {
      tell();
      turned(stops[range.value]);
    });
    return { row: made("div", { className: "knob" }, name, range, shown), show };
  }

  // --- numbers ---------------------------------------------------------------------------------------------------------

  const mbit = (bps) => (bps / 1e6).toFixed(2);
  const percent = (part) => (100 * part).toFixed(1);

  // Of a class, which may be called `constructor`.
  const own = (rates, name) => (Object.hasOwn(rates, name) ? rates[name] : undefined);

  // Of each class what it got of the rate that it is promised: by the policy itself, or else by `others`, bit/s. A class whose
  // flows send less than that need only get what they offer. In a network another link may be what holds a class back: no verdict.
  function promises({ classes, promised, open_loop: openLoop, outcome }, others = {}) {
    const window_s = outcome.simulated_s - outcome.warmup_s;
    return classes.class.map((name, at) => {
      const link = classes.link?.[at];
      const got_bps = classes.rate_bps[at];
      const promised_bps = own(promised, link === undefined ? name : `${link}: ${name}`) ?? own(others, name);
      const offered_bps = openLoop.includes(name) ? 8 * classes.arrived_bytes[at] / window_s : Infinity;
      const isJudged = promised_bps !== undefined && link === undefined && offered_bps > 0;
      const isKept = isJudged ? got_bps >= KEPT * Math.min(promised_bps, offered_bps) : undefined;
      return { at, link, name, promised_bps, got_bps, isKept };
    });
  }

  // Cells of a class: its name, what it is promised and what it got.
  function cellsOf({ link, name, promised_bps: promised, got_bps: got, isKept }) {
    const begin = link === undefined ? [name] : [link, name];
    return [...begin, promised === undefined ? "–" : mbit(promised), [mbit(got), isKept]];
  }

  const headingsOf = ({ classes }) => [...(classes.link ? ["link"] : []), "class", "promised (Mbit/s)", "got (Mbit/s)"];

  // Rows of headings and cells, which are texts or [text, whether a promise was kept].
  function table(headings, rows) {
    const head = made("tr", {}, ...headings.map((heading) => made("th", { scope: "col" }, heading)));
    const lines = rows.map((row) => made("tr", {}, ...row.map((cell) => {
      if (!Array.isArray(cell)) return made("td", {}, cell);
      const [text, kept] = cell;
      if (kept === undefined) return made("td", {}, text);
      return made("td", { className: kept ? "kept" : "missed", title: kept ? "the promise is kept" : "the promise is missed" }, text);
    })));
    return made("table", {}, made("thead", {}, head), made("tbody", {}, ...lines));
  }

  // --- the scenario ------------------------------------------------------------------------------------------------------

  // The lines of a text with those marked that another text does not have, and the line of a fault.
  function marked(before, after, wrongLine) {
    const old = before.split("\n");
    const lines = after.split("\n");
    const isLonger = lines.length > old.length;
    let at = 0;
    return lines.map((line, number) => {
      const isSame = line === old[at];
      const isAdded = !isSame && isLonger && lines[number + 1] === old[at];
      if (!isAdded) at += 1;
      const isWrong = wrongLine === number + 1;
      return isSame && !isWrong ? `${line}\n` : made("mark", { className: isWrong ? "missed" : "" }, `${line}\n`);
    });
  }

  // A relative path as a shell takes it.
  const forShell = (path) => (/^[\w.][\w./-]*$/.test(path) ? path : `'./${path.replaceAll("'", "'\\''")}'`);

  window.linkweirShown = { made, read, slider, mbit, percent, promises, cellsOf, headingsOf, table, marked, forShell };
})();
