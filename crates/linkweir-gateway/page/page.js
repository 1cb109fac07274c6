// SPDX-License-Identifier: BSD-3-Clause
// Asks the gateway once a second what it does, and draws it. Nothing is fetched from anywhere else.
"use strict";

const PERIOD_MS = 1000;
const MOST_S = 1800;
const COLOURS = 8;
const byId = (id) => document.getElementById(id);

const state = {
  shows: [], // {t_s, show}, oldest first
  peer: null,
  span_s: 300,
  paused: false,
  chart: null,
  drawn: "", // what the chart was made for
};

// --- figures for people ----------------------------------------------------------------------------------------------

// Three digits, and more only before the point.
function scaled(value, steps) {
  const [factor, unit] = steps.find(([least]) => value >= least) ?? steps[steps.length - 1];
  const figure = value / factor;
  return `${figure.toFixed(factor === 1 || figure >= 100 ? 0 : figure >= 10 ? 1 : 2)} ${unit}`;
}
const rate = (bps) => scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
const time = (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);

// --- what is shown ----------------------------------------------------------------------------------------------------

const peerOf = (show) => show.peers.find((peer) => peer.name === state.peer) || show.peers[0];

// Level of a class: of pss the low one while its state says so.
function levelOf(row, at) {
  const high = row.parameters.level ?? at;
  return row.state.low === 1 ? row.parameters.low_level ?? high : high;
}

// Bits per second of each class between two answers; null where there is no earlier one or the gateway was restarted.
function ratesOf(before, now) {
  const peer = peerOf(now.show);
  const old = before && before.show.uptime_s < now.show.uptime_s
    ? before.show.peers.find((other) => other.name === peer.name) : undefined;
  const between_s = old ? now.show.uptime_s - before.show.uptime_s : 0;
  const bps = (value, earlier) => (old && between_s > 0 ? ((value - earlier) * 8) / between_s : null);
  return {
    classes: peer.classes.map((row) => {
      const earlier = old && old.classes.find((other) => other.name === row.name);
      return earlier ? bps(row.sent_bytes, earlier.sent_bytes) : null;
    }),
    received: old ? bps(peer.received_bytes, old.received_bytes) : null,
  };
}

function cell(row, text) {
  const made = document.createElement("td");
  made.textContent = text;
  row.append(made);
}

function showClasses(peer, rates) {
  const levels = peer.classes.map(levelOf);
  const order = [...levels].sort((one, two) => one - two);
  const levelled = peer.classes.some((row) => "level" in row.parameters || "low" in row.state);
  byId("classes").replaceChildren(...peer.classes.map((row, at) => {
    const line = document.createElement("tr");
    line.dataset.class = row.name;
    const name = document.createElement("th");
    name.scope = "row";
    name.className = `k${at % COLOURS}`;
    name.textContent = row.name;
    line.append(name);
    cell(line, levelled ? `${order.indexOf(levels[at]) + 1}` : "–");
    cell(line, levelled ? `${levels[at]}${"low" in row.state && "low_level" in row.parameters ? (row.state.low ? " (low)" : " (high)") : ""}` : "–");
    cell(line, rates.classes[at] === null ? "–" : rate(rates.classes[at]));
    cell(line, `${row.backlog_pkts}`);
    for (const ns of [row.recent_p50_ns, row.recent_p99_ns, row.recent_max_ns]) cell(line, time(ns));
    cell(line, `${row.dropped_limit_pkts + row.dropped_policy_pkts + row.dropped_age_pkts}`);
    cell(line, Object.entries(row.state).map(([key, value]) => `${key} ${value}`).join(", "));
    return line;
  }));
}

function showPeers(show) {
  const names = show.peers.map((peer) => peer.name);
  const select = byId("peer");
  const known = [...select.options].map((option) => option.value);
  if (names.join("\n") !== known.join("\n")) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
    if (!names.includes(state.peer)) state.peer = names[0] ?? null;
    select.value = state.peer;
  }
}

function draw() {
  const now = state.shows[state.shows.length - 1];
  if (!now) return;
  const { show } = now;
  showPeers(show);
  byId("device").textContent = show.device;
  byId("about").textContent = `${show.policy}, ${show.mode}, version ${show.version}, up ${show.uptime_s.toFixed(0)} s`;
  const peer = peerOf(show);
  if (!peer) return;
  const rates = ratesOf(state.shows[state.shows.length - 2], now);
  const sum = rates.classes.reduce((total, bps) => total + (bps ?? 0), 0);
  byId("capacity").textContent = rate(peer.capacity_bps);
  byId("rate").textContent = rate(sum);
  byId("received").textContent = rates.received === null ? "–" : rate(rates.received);
  const paths = (peer.paths ?? []).map((path) => `${path.name} ${path.in_use ? rate(path.capacity_bps) : "not used"}`);
  const place = paths.length ? paths.join(", ") : peer.endpoint ?? "an unknown endpoint";
  byId("endpoint").textContent = `${place}${peer.session === false ? ", no session" : ""}`;
  showClasses(peer, rates);
  drawChart(peer);
}

// --- the chart ----------------------------------------------------------------------------------------------------------

function columns(peer) {
  const last_s = state.shows[state.shows.length - 1].t_s;
  const times = [];
  const values = [[], ...peer.classes.map(() => [])];
  state.shows.forEach((now, at) => {
    if (now.t_s < last_s - state.span_s) return;
    const shown = now.show.peers.find((other) => other.name === peer.name);
    if (!shown) return;
    const rates = ratesOf(state.shows[at - 1], now).classes;
    times.push(now.t_s - last_s);
    values[0].push(shown.capacity_bps / 1e6);
    peer.classes.forEach((row, k) => {
      const place = shown.classes.findIndex((other) => other.name === row.name);
      values[k + 1].push(place < 0 || rates[place] === null ? null : rates[place] / 1e6);
    });
  });
  return [times, ...values];
}

function drawChart(peer) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const width = byId("chart").clientWidth;
  const wanted = JSON.stringify([peer.name, peer.classes.map((row) => row.name), colour("--ink"), width]);
  if (state.drawn !== wanted) {
    if (state.chart) state.chart.destroy();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const shown = (plot, value) => (value === null ? "–" : `${value.toFixed(3)} Mbit/s`);
    state.chart = new uPlot({
      width,
      height: 300,
      scales: { x: { time: false, range: () => [-state.span_s, 0] }, y: { range: (plot, least, most) => [0, Math.max(most ?? 0, 0.001) * 1.05] } },
      axes: [{ ...axis, label: "s" }, { ...axis, label: "Mbit/s", size: 70 }],
      series: [
        { label: "at", value: (plot, value) => (value === null ? "–" : `${value.toFixed(0)} s`) },
        { label: "capacity", stroke: colour("--faint"), dash: [6, 4], width: 1, value: shown, points: { show: false } },
        ...peer.classes.map((row, at) => ({
          label: row.name, stroke: colour(`--c${at % COLOURS}`), width: 2, value: shown, points: { show: false },
        })),
      ],
    }, columns(peer), byId("chart"));
    state.drawn = wanted;
  } else {
    state.chart.setData(columns(peer));
  }
}

// --- asking and being asked ---------------------------------------------------------------------------------------------

async function ask() {
  try {
    const answer = await fetch("show.json", { cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const show = await answer.json();
    if (!state.paused) {
      state.shows.push({ t_s: Date.now() / 1000, show });
      while (state.shows.length > MOST_S) state.shows.shift();
      byId("state").textContent = "";
      draw();
    }
  } catch (error) {
    byId("state").textContent = `No figures: ${error.message}`;
  }
  setTimeout(ask, PERIOD_MS);
}

function pause() {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  draw();
}

byId("pause").addEventListener("click", pause);
byId("theme").addEventListener("click", theme);
byId("peer").addEventListener("change", (event) => { state.peer = event.target.value; draw(); });
byId("span").addEventListener("change", (event) => { state.span_s = Number(event.target.value); draw(); });
byId("controls").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target instanceof HTMLSelectElement) return;
  if (event.key === "p") pause();
  if (event.key === "t") theme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", draw);
ask();
