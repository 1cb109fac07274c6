// SPDX-License-Identifier: BSD-3-Clause
// Draws the charts of a run: at first those of the JSON in the page, if it has any, then those that `draw` and `update` are
// given. Nothing is fetched.
"use strict";

(() => {
  const COLOURS = 4;
  const DASHES = [[], [9, 4], [2, 3], [9, 3, 2, 3]]; // lines 1 to 4, 5 to 8, and so on
  const BOUNDS = { upper: [6, 3], lower: [1, 2] }; // LM and LR
  const LEFT_PX = 78; // the same for all panels, so that they line up
  const MOST_IN_TIP = 12;
  const FONT = "12px system-ui, sans-serif";
  const PRINT_PX = 680; // the width of a page of A4 between its margins

  // --- numbers for people ---------------------------------------------------------------------------------------------

  const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const compact = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: "compact" });
  const figure = (value) => (value == null ? "–" : (Math.abs(value) < 1e5 ? precise : compact).format(value));
  const unitOf = (label) => (/\(([^()]*)\)$/.exec(label) || ["", ""])[1];

  // The marks of a logarithmic axis: 1, 2 and 5 times powers of ten, or powers alone, or every second one and so on, as
  // there is room for their numbers.
  function logSplits(plot, axis, least, most) {
    const along = plot.axes[axis].side % 2 === 0;
    const room_px = (along ? plot.bbox.width : plot.bbox.height) / devicePixelRatio / Math.log10(most / least);
    const need_px = along ? 52 : 18;
    const parts = room_px * Math.log10(2) >= need_px ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(need_px / room_px));
    const found = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
      if (power % every) continue;
      for (const part of parts) {
        const value = Number(`${part}e${power}`);
        if (value >= least && value <= most) found.push(value);
      }
    }
    return found;
  }

  // --- colours, which follow the theme ----------------------------------------------------------------------------------

  const theme = {};
  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "faint", "line", "area", "shade", "c0", "c1", "c2", "c3"]) {
      theme[name] = style.getPropertyValue(`--${name}`).trim();
    }
  }
  // Of lines that are equal, the first is whole and each further one leaves more room for those below it.
  const TURN = 10;
  const turnOf = ([place, count]) => (place === 0 ? [] : [TURN * (count - place), TURN * place]);
  const colourOf = (number) => `c${number % COLOURS}`;
  const dashOf = (number) => DASHES[Math.floor(number / COLOURS) % DASHES.length];

  // --- the legend: an entry for each line, a click hides or shows it ------------------------------------------------------

  function made(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // What a line looks like; a bar for an area.
  function sample(number, thick = 3, colour = colourOf(number)) {
    const dashes = dashOf(number).join(" ");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 30 10");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const places = { x1: 0, x2: 30, y1: 5, y2: 5, "stroke-width": thick, "stroke-dasharray": dashes };
    for (const [name, value] of Object.entries(places)) line.setAttribute(name, value);
    line.style.stroke = `var(--${colour})`;
    svg.append(line);
    return svg;
  }

  function markOf(line, number) {
    if (line.look === "area") return sample(0, 10, "faint");
    if (line.look === "guide") return sample(0, 1, "faint");
    if (line.look === "points") return sample(0, 8);
    return sample(number, line.look in BOUNDS ? 1 : 3);
  }

  // A key for each of `entries`, which have a label and a mark and may be off. The first `shown` are visible, the others
  // folded away and off. Returns the set of the numbers of the entries that are on; `changed` is called after each click.
  function legend(host, entries, shown, what, changed) {
    const on = new Set();
    const keys = entries.map(({ label, mark, off }, number) => {
      if (number < shown && !off) on.add(number);
      const key = made("button", "key");
      key.type = "button";
      key.append(mark, label);
      key.title = "Click: hide or show. Double-click: show this one alone.";
      key.addEventListener("click", () => {
        if (on.has(number)) on.delete(number);
        else on.add(number);
        update();
      });
      key.addEventListener("dblclick", () => choose([number]));
      return key;
    });
    function update() {
      keys.forEach((key, number) => key.setAttribute("aria-pressed", String(on.has(number))));
      changed();
    }
    function choose(numbers) {
      on.clear();
      for (const number of numbers) on.add(number);
      update();
    }
    keys.forEach((key, number) => key.setAttribute("aria-pressed", String(on.has(number))));
    host.append(...keys.slice(0, shown));
    const tool = (text, numbers) => {
      const button = made("button", "tool", text);
      button.type = "button";
      button.addEventListener("click", () => choose(numbers));
      host.append(button);
    };
    if (entries.length > 2) {
      tool("show all", [...entries.keys()]);
      tool("hide all", []);
    }
    if (entries.length > shown) {
      tool(`show the first ${shown}`, [...entries.keys()].slice(0, shown));
      const details = made("details");
      const more = made("div", "more");
      more.append(...keys.slice(shown));
      details.append(made("summary", "", `${(entries.length - shown).toLocaleString("en")} more ${what}`), more);
      host.append(details);
    }
    return on;
  }

  // --- a panel -----------------------------------------------------------------------------------------------------------

  // A run over one link has its classes and panels in `data`; of a network each link has its own, and one is drawn at a time.
  let data = null;
  let links = [];
  let drawn = null;
  const panels = [];
  let classesOn = new Set();

  // A line of a class is numbered as its class is; the others of a panel by themselves, after the classes if it has any.
  function look(line, own, panel) {
    const before = panel.lines.some((other) => other.of !== null) ? drawn.classes.length : 0;
    const number = line.of ?? before + own.filter((other) => other.look === "line").indexOf(line);
    const stroke = () => theme[colourOf(Math.max(number, 0))];
    if (line.look === "area") return { number, stroke: () => theme.area, fill: () => theme.area, width: 0 };
    if (line.look === "guide") return { number, stroke: () => theme.faint, width: 1 };
    if (line.look === "points") return { number, stroke, width: 0, points: { show: true, size: 6, fill: stroke } };
    if (line.look in BOUNDS) return { number, stroke, width: 1, dash: BOUNDS[line.look] };
    return { number, stroke, width: 1.6, dash: line.turn ? turnOf(line.turn) : dashOf(number) };
  }

  function pathsOf(panel, line) {
    if (line.look === "points") return () => null;
    const stepped = panel.steps && !(line.look in BOUNDS) && line.look !== "guide";
    return stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  }

  // The columns that uPlot draws; a line that never changes is written as one value.
  function columnsOf(panel) {
    return [panel.x, ...panel.lines.map(({ y }) => (Array.isArray(y) ? y : panel.x.map(() => y)))];
  }

  // A logarithmic axis of less than a decade has hardly any marks.
  function hasLogX(panel) {
    return panel.logX && panel.x[panel.x.length - 1] > 10 * panel.x[0];
  }

  function valueRange(it) {
    return (plot, least, most) => {
      const { panel } = it;
      if (panel.yRange) {
        const [low, high] = panel.yRange;
        return [low, high + (high - low) * 0.02];
      }
      if (least == null || most == null) return panel.logY ? [0.1, 10] : [0, 1];
      if (panel.logY) return [least / 1.5, Math.max(most * 1.5, least * 10)];
      if (panel.fromZero && least >= 0) return [0, most > 0 ? most * 1.05 : 1];
      const room = (most - least || Math.abs(most) || 1) * 0.06;
      return [least - room, most + room];
    };
  }

  function shadeWarmup(plot) {
    if (!(data.warmup > 0)) return;
    const left = Math.max(plot.valToPos(0, "x", true), plot.bbox.left);
    const right = Math.min(plot.valToPos(data.warmup, "x", true), plot.bbox.left + plot.bbox.width);
    if (right <= left) return;
    const { ctx } = plot;
    ctx.save();
    ctx.fillStyle = theme.shade;
    ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
    ctx.restore();
  }

  function build(panel, host) {
    const own = panel.lines.filter((line) => line.of === null);
    const frame = made("figure", "panel");
    frame.dataset.panel = panel.name;
    frame.append(made("figcaption", "", panel.title));
    const holder = made("div", "plot");
    const tip = made("div", "tip");
    const keys = made("div", "own");
    frame.append(keys, holder);
    const note = made("p", "below", panel.note);
    note.hidden = !panel.note;
    frame.append(note);
    host.append(frame);

    const it = { panel, holder, note, plot: null, own, ownOn: new Set(), looks: [], hovered: false };
    it.looks = panel.lines.map((line) => look(line, own, panel));
    const entries = own.map((line) => {
      const { number } = it.looks[panel.lines.indexOf(line)];
      return { label: line.label, off: line.off, mark: markOf(line, number) };
    });
    if (own.length) it.ownOn = legend(keys, entries, data.shown, "lines", () => show(it));
    const axis = {
      stroke: () => theme.ink, font: FONT, labelFont: FONT, labelSize: 20,
      grid: { stroke: () => theme.line, width: 1 }, ticks: { stroke: () => theme.line, width: 1 },
    };
    const log = { splits: logSplits, filter: (plot, splits) => splits };
    const values = (plot, splits) => splits.map(figure);
    const isLogX = hasLogX(panel);

    it.plot = new uPlot({
      width: Math.max(holder.clientWidth, 200),
      height: 230,
      padding: [8, 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, dist: 6 },
        points: { size: 7 },
        ...(panel.overTime ? { sync: { key: "time" } } : {}),
      },
      scales: {
        x: { time: false, distr: isLogX ? 3 : 1, range: (plot, least, most) => [least, most] },
        y: { distr: panel.logY ? 3 : 1, range: valueRange(it) },
      },
      axes: [
        { ...axis, label: panel.xLabel, size: 34, values, ...(isLogX ? log : {}) },
        { ...axis, label: panel.yLabel, size: LEFT_PX - 20, values, ...(panel.logY ? log : {}) },
      ],
      series: [
        { label: panel.xLabel },
        ...panel.lines.map((line, at) => {
          const { number, ...drawn } = it.looks[at];
          return {
            label: line.label, show: isOn(it, line), paths: pathsOf(panel, line), points: { show: false },
            spanGaps: line.look in BOUNDS, ...drawn,
          };
        }),
      ],
      hooks: {
        drawClear: panel.overTime ? [shadeWarmup] : [],
        setCursor: [(plot) => showTip(it, tip)],
        setScale: [(plot, key) => { if (key === "x") zoomed(it); }],
      },
    }, columnsOf(panel), holder);
    holder.append(tip);
    it.plot.over.addEventListener("mouseenter", () => { it.hovered = true; });
    it.plot.over.addEventListener("mouseleave", () => { it.hovered = false; tip.style.display = "none"; });
    followFinger(it);
    panels.push(it);
  }

  // A finger that moves sideways drags as a mouse does; one that moves up or down scrolls the page.
  function followFinger(it) {
    const { over } = it.plot;
    let down = null; // where it was put down
    const mouse = (kind, { clientX, clientY }) => over.dispatchEvent(
      new MouseEvent(kind, { bubbles: true, clientX, clientY, button: 0, buttons: 1, movementX: 1 }));
    const on = (kind, then) => over.addEventListener(kind, (event) => {
      if (event.pointerType === "touch") then(event);
    });
    on("pointerdown", (event) => {
      down = event;
      it.hovered = true;
      mouse("mousemove", event);
      mouse("mousedown", event);
    });
    on("pointermove", (event) => mouse("mousemove", event));
    on("pointerup", (event) => mouse("mouseup", event));
    on("pointercancel", () => { // the page scrolls: as if nothing had been dragged
      mouse("mousemove", down);
      mouse("mouseup", down);
    });
  }

  function isOn(it, line) {
    if (line.of !== null) return classesOn.has(line.of);
    return it.ownOn.has(it.own.indexOf(line));
  }

  function show(it) {
    if (!it.plot) return;
    it.plot.batch(() => it.panel.lines.forEach((line, at) => {
      const on = isOn(it, line);
      if (it.plot.series[at + 1].show !== on) it.plot.setSeries(at + 1, { show: on });
    }));
  }

  // --- values under the cursor ---------------------------------------------------------------------------------------------

  function showTip(it, tip) {
    const unit = unitOf(it.panel.yLabel);
    const { idx, left } = it.plot.cursor;
    if (!it.hovered || idx == null || left < 0) {
      tip.style.display = "none";
      return;
    }
    const rows = it.panel.lines
      .map((line, at) => ({ line, at, value: it.plot.data[at + 1][idx] }))
      .filter(({ at, value }) => it.plot.series[at + 1].show && value != null)
      .sort((one, two) => two.value - one.value);
    const table = made("table");
    for (const { line, at, value } of rows.slice(0, MOST_IN_TIP)) {
      const row = made("tr");
      const cell = made("td");
      cell.append(markOf(line, it.looks[at].number));
      row.append(cell, made("td", "", line.label), made("td", "", `${figure(value)} ${unit}`));
      table.append(row);
    }
    const more = rows.length - MOST_IN_TIP;
    const words = it.panel.xLabel.replace(/ \(.*/, "");
    const parts = [made("div", "", `${words} ${figure(it.plot.data[0][idx])} ${unitOf(it.panel.xLabel)}`), table];
    if (more > 0) parts.push(made("div", "", `and ${more} more`));
    tip.replaceChildren(...parts);
    tip.style.display = "block";
    const half = it.plot.over.clientWidth / 2;
    const offset = LEFT_PX + left;
    tip.style.left = left < half ? `${offset + 12}px` : "auto";
    tip.style.right = left < half ? "auto" : `${it.holder.clientWidth - offset + 12}px`;
  }

  // --- zoom, size, theme and paper ------------------------------------------------------------------------------------------

  const reset = made("button", "tool", "reset zoom");
  reset.type = "button";
  reset.hidden = true;
  reset.addEventListener("click", () => {
    for (const { plot, panel } of panels) plot.setScale("x", { min: panel.x[0], max: panel.x[panel.x.length - 1] });
  });
  function zoomed(it) {
    if (!it.plot) return;
    reset.hidden = panels.every(({ plot, panel }) => {
      const { min, max } = plot.scales.x;
      return !(min > panel.x[0] || max < panel.x[panel.x.length - 1]);
    });
  }

  function fit(width_px) {
    for (const { plot, holder } of panels) {
      const width = width_px ?? Math.max(holder.clientWidth, 200);
      plot.batch(() => plot.setSize({ width, height: 230 })); // at once: paper does not wait
      plot.redraw();
    }
  }
  function recolour() {
    readTheme();
    for (const { plot } of panels) plot.batch(() => plot.redraw(false, true));
  }

  readTheme();
  const overTime = document.getElementById("over-time");
  const distributions = document.getElementById("distributions");

  // Draws the charts of a run in place of those that are there.
  function draw(report) {
    data = report;
    links = data.links ?? [data];
    drawLink(links[0]);
  }

  // Draws the charts of another run. Where it has the same lines, only their values change: what is hidden and the part of the
  // time that is shown stay.
  function update(report) {
    const others = report.links ?? [report];
    const at = links.indexOf(drawn);
    if (at < 0 || shapeOf(drawn) !== shapeOf(others[at])) {
      draw(report);
      return;
    }
    data = report;
    links = others;
    drawn = links[at];
    panels.forEach((it, number) => {
      const [least, most] = endsOf(it.panel);
      const { min, max } = it.plot.scales.x;
      const isZoomed = min > least || max < most;
      const panel = drawn.panels[number];
      const [from, to] = endsOf(panel);
      it.panel = panel;
      it.own = panel.lines.filter((line) => line.of === null);
      it.looks = panel.lines.map((line) => look(line, it.own, panel));
      it.note.textContent = panel.note;
      it.note.hidden = !panel.note;
      it.plot.axes[1].label = panel.yLabel;
      it.plot.batch(() => {
        it.looks.forEach(({ dash }, at) => { it.plot.series[at + 1].dash = dash; });
        it.plot.setData(columnsOf(it.panel), false);
        it.plot.setScale("x", isZoomed ? { min, max } : { min: from, max: to });
      });
    });
  }

  const isDistribution = (panel) => panel.name.startsWith("distribution-");
  const endsOf = (panel) => [panel.x[0], panel.x[panel.x.length - 1]];

  // What must be the same so that charts can keep their lines.
  function shapeOf(link) {
    if (!link) return "";
    const lines = (panel) => panel.lines.map(({ label, of, look }) => [label, of, look]);
    const shape = (panel) => [panel.name, panel.title, hasLogX(panel), panel.logY, lines(panel)];
    return JSON.stringify([link.name, link.classes, link.panels.map(shape)]);
  }

  function drawLink(link) {
    drawn = link;
    for (const { plot } of panels.splice(0)) plot.destroy();
    for (const place of [overTime, distributions]) place.replaceChildren();
    const host = document.getElementById("legend");
    host.replaceChildren();
    if (data.links) host.append(selector());
    const drawnClasses = link.panels.some((panel) => panel.lines.some((line) => line.of !== null));
    const entries = link.classes.map((label, number) => ({ label, mark: sample(number) }));
    classesOn = drawnClasses ? legend(host, entries, data.shown, "classes", () => panels.forEach(show)) : new Set();
    host.append(reset);
    reset.hidden = true;
    distributions.parentElement.hidden = !link.panels.some(isDistribution); // before they are built, which takes their width
    for (const panel of link.panels) build(panel, isDistribution(panel) ? distributions : overTime);
  }

  // The list of links, of which one is drawn; with few links all names are in sight.
  function selector() {
    const FEW = 8;
    const choose = (at) => {
      drawLink(links[at]);
      document.querySelector("#legend [aria-pressed='true'], #legend select")?.focus();
    };
    if (links.length > FEW) {
      const list = made("select");
      list.setAttribute("aria-label", "link");
      links.forEach(({ name }, at) => list.append(new Option(name, at, false, links[at] === drawn)));
      list.addEventListener("change", () => choose(list.value));
      const label = made("label", "links", "link ");
      label.append(list);
      return label;
    }
    const row = made("div", "links");
    row.append(...links.map((link, at) => {
      const button = made("button", "tab", link.name);
      button.type = "button";
      button.setAttribute("aria-pressed", String(link === drawn));
      button.addEventListener("click", () => choose(at));
      return button;
    }));
    return row;
  }

  const inPage = document.getElementById("data");
  if (overTime && inPage) draw(JSON.parse(inPage.textContent));
  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    fit();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    recolour();
    fit(PRINT_PX);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    recolour();
    fit();
  });
  window.linkweirReport = { panels, draw, update, recolour, get data() { return data; } };
})();
