// What the pages do by themselves: times in Airflow's zone, figures that stay fresh, charts, questions and answers.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Figures, as the server writes them (filters.py) -----------------------------------------------------------------
  const number = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const size = (bytes) => {
    let [left, unit] = [bytes, 0];
    for (; left >= 1000 && unit < 5; unit += 1) left /= 1000;
    return `${unit === 0 || left >= 100 ? left.toFixed(0) : Number(left.toPrecision(3))} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
  };
  const duration = (seconds) => {
    if (seconds > 0 && seconds < 0.1) return "under 0.1 s";
    if (seconds < 10) return seconds ? `${seconds.toFixed(1)} s` : "0 s";
    let left = Math.floor(seconds);
    const parts = [];
    for (const [size, unit] of units) {
      const count = Math.floor(left / size);
      left %= size;
      if (count || parts.length) parts.push(count ? `${count} ${unit}` : "");
      if (parts.length === 2) break;
    }
    return parts.filter(Boolean).join(" ");
  };
  const rate = (bytes) => `${size(bytes)}/s`;

  // Times -----------------------------------------------------------------------------------------------------------
  // The zone that was chosen in Airflow, which keeps it in the browser. Where none was chosen, Airflow shows the zone of
  // the browser, and so does a page inside Airflow. Outside of Airflow it is UTC. Each page names the zone.
  const ZONE = "timezone";
  const chosenZone = () => {
    try {
      return JSON.parse(window.localStorage.getItem(ZONE));
    } catch {
      return null;
    }
  };
  const digits = Object.fromEntries(["year", "month", "day", "hour", "minute", "second"].map((part) => [part, "2-digit"]));
  const clockIn = (timeZone) => {
    try {
      const options = { ...digits, year: "numeric", hourCycle: "h23", calendar: "gregory", numberingSystem: "latn", timeZone };
      return typeof timeZone === "string" && new Intl.DateTimeFormat("en", options);
    } catch {
      return null; // no zone that this browser has
    }
  };
  const shownZone = () => {
    const framed = document.documentElement.classList.contains("framed");
    return clockIn(chosenZone()) || (framed && clockIn(Intl.DateTimeFormat().resolvedOptions().timeZone)) || clockIn("UTC");
  };
  let clock = shownZone();
  const zone = () => clock.resolvedOptions().timeZone;
  const partsOf = (at) => Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, value]));
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const moment = (at) => {
    const { year, month, day, hour, minute, second } = partsOf(at);
    return `${Number(day)} ${months[month - 1]} ${year}, ${hour}:${minute}:${second}`;
  };
  // What a clock in the zone shows, for the charts; and the time at which it shows what was typed.
  const wall = (at) => {
    const { year, month, day, hour, minute, second } = partsOf(at);
    const rest = String(at.getUTCMilliseconds()).padStart(3, "0");
    return `${year.padStart(4, "0")}-${month}-${day} ${hour}:${minute}:${second}.${rest}`;
  };
  const typed = (text) => {
    const naive = Date.parse(`${text}Z`);
    const ahead = (ms) => Date.parse(`${wall(new Date(ms)).replace(" ", "T")}Z`) - ms;
    return new Date(Number.isNaN(naive) ? naive : naive - ahead(naive - ahead(naive)));
  };
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const length = (seconds) => {
    const [size, unit] = units.find(([size]) => seconds >= size) || [1, "s"];
    return `${Math.floor(seconds / size)} ${unit}`;
  };
  const OLD_SECONDS = 300; // as the server calls a flow stale
  const writeTimes = (within = document) => {
    for (const time of all("time[datetime], tspan[datetime]", within)) { // a map has no time, only text
      const at = new Date(time.getAttribute("datetime"));
      if (Number.isNaN(at.getTime())) continue; // an impossible time stays as it is
      if ("ago" in time.dataset) {
        const seconds = (Date.now() - at) / 1000;
        const due = "due" in time.dataset && seconds >= -1; // it waits for the run before it
        const text = due ? "now" : seconds < -1 ? `in ${length(-seconds)}` : seconds < 3 ? "now" : `${length(seconds)} ago`;
        if (time.textContent !== text) time.textContent = text;
        if (time.closest(".age")) time.classList.toggle("old", seconds > OLD_SECONDS);
      } else if ("lasts" in time.dataset) {
        const text = length(Math.max(0, (Date.now() - at) / 1000));
        if (time.textContent !== text) time.textContent = text;
      } else if (!time.dataset.local) {
        time.dataset.local = "yes";
        time.textContent = moment(at);
      }
      if (!time.dataset.titled && time.tagName === "TIME") {
        time.dataset.titled = "yes";
        time.title = `${moment(at)} (${at.toISOString()})`;
      }
    }
  };

  // On a narrow screen a row is a card (ferry.css): each figure has the title of its column ----------------------------
  // Some browsers take a table that is not displayed as one for mere text: the roles keep it a table to screen readers.
  const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  const roleOf = ({ tagName, scope }) => ROLES[tagName] || (scope === "col" ? "columnheader" : "rowheader");
  const titleOf = (head) => {
    const copy = head.cloneNode(true);
    for (const one of all("[aria-hidden], .visually-hidden", copy)) one.remove();
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const labelled = (within = document) => {
    for (const table of all(".scroll > table", within)) {
      const titles = all("thead th", table).map(titleOf);
      if (!titles.length || table.closest("figure")) continue;
      table.dataset.cards = "";
      for (const one of [table, ...all("thead, tbody, tr, th, td", table)]) one.setAttribute("role", roleOf(one));
      for (const row of all("tbody tr", table)) {
        let column = 0;
        for (const cell of row.cells) {
          if (titles[column] && cell.colSpan === 1) cell.dataset.label = titles[column];
          column += cell.colSpan;
        }
      }
    }
  };

  // What is too wide or too long is scrolled, by the keyboard as well ------------------------------------------------
  const scrolled = () => {
    for (const box of all(".scroll, .sheet")) {
      const overflows = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      if (!overflows) {
        if (box.dataset.scrolled) for (const name of ["tabindex", "role", "aria-label", "data-scrolled"]) box.removeAttribute(name);
      } else if (!box.hasAttribute("tabindex")) {
        const title = one("h1, h2, figcaption", box.closest("section, figure, dialog, main") || document);
        box.dataset.scrolled = "yes";
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", `${title ? title.textContent.trim() : "Table"}, to be scrolled`);
      }
    }
  };

  // Tabs that are wider than the screen are scrolled to the one that is open.
  const toOpenTab = () => {
    const [tabs, open] = [one(".tabs"), one(".tabs [aria-current]")];
    if (open) tabs.scrollLeft += open.getBoundingClientRect().right - tabs.getBoundingClientRect().right + tabs.clientWidth / 4;
  };

  // Charts ----------------------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const day = "\n%-d %b %Y"; // on a line of its own, where it changes
  const stops = [
    { dtickrange: [null, 30000], value: `%H:%M:%S${day}` },
    { dtickrange: [60000, 43200000], value: `%H:%M${day}` },
    { dtickrange: [86400000, null], value: "%-d %b\n%Y" },
  ];
  const isNarrow = () => document.documentElement.clientWidth <= 560; // as in ferry.css
  const layout = (more) => ({
    margin: { l: 56, r: 10, t: 8, b: 34 }, // automargin of the axes makes room for what is beyond it of their labels
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("soft") },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line-strong"), font: { color: colour("ink") } },
    hovermode: "x unified",
    showlegend: false,
    bargap: 0.35,
    ...more,
    xaxis: { type: "date", showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "solid", spikecolor: colour("line-strong"), tickformatstops: stops, hoverformat: "%-d %b %Y, %H:%M:%S", gridcolor: colour("line"), linecolor: colour("line-strong"), zeroline: false, nticks: isNarrow() ? 3 : 6, tickangle: 0, automargin: true, ...(more.xaxis || {}) },
    yaxis: { gridcolor: colour("line"), zerolinecolor: colour("line-strong"), rangemode: "tozero", nticks: 5, automargin: true, ticklabelstandoff: 6, ...(more.yaxis || {}) },
  });
  const at = (ms) => new Date(ms);
  const line = (x, y, name, more = {}) => ({
    x, y, name, type: "scatter", mode: "lines", connectgaps: false,
    line: { color: colour("accent"), width: 2, shape: "hv" }, marker: { color: colour("accent"), size: 7 },
    ...more,
  });
  // What is under the line, where there is one: Plotly's own filling continues where the line is broken.
  const under = (rows, name) => {
    const [x, y] = [[], []];
    const add = (time, value) => [x.push(time), y.push(value)];
    rows.forEach(([time, value], index) => {
      const [before, after] = [rows[index - 1], rows[index + 1]];
      if (time === null) return add(null, null);
      if (!before?.[0]) add(time, 0);
      else add(time, before[1]);
      add(time, value);
      if (!after?.[0]) add(time, 0);
    });
    return { x, y, name, type: "scatter", mode: "none", fill: "toself", fillcolor: colour("accent-soft"), hoverinfo: "skip" };
  };
  // A step that people count in, so that there are some ticks up to the highest figure.
  const decimal = (most) => {
    const [rough, ten] = [most / 4.5, 10 ** Math.floor(Math.log10(most / 4.5))];
    return Math.max(1, [1, 2, 5, 10].map((times) => times * ten).find((step) => step >= rough * 0.999) || 1);
  };
  const times = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const ticks = (most, write) => {
    const step = (write === duration && (times.find((one) => most / one <= 4.5) || 86400 * decimal(most / 86400))) || decimal(most || 1);
    const tickvals = Array.from({ length: Math.floor(most / step) + 2 }, (_, index) => index * step);
    return { tickvals, ticktext: tickvals.map(write) };
  };
  // The recovery point: drawn unless the figures would then be too flat to read.
  const bound = (limit, most, write) => {
    if (limit === null) return {};
    const isNear = limit <= 4 * most;
    const text = `recovery point ${write(limit)}${isNear ? "" : ", far above"}`;
    const place = isNear ? { y: limit, yanchor: "bottom" } : { yref: "paper", y: 1, yanchor: "top" };
    const tone = colour("warn");
    return {
      annotations: [{ xref: "paper", x: 0, xanchor: "left", showarrow: false, font: { color: tone, size: 11 }, text, ...place }],
      shapes: isNear ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: { color: tone, width: 1.5, dash: "dash" } }] : [],
      range: isNear ? [0, Math.max(most, limit * 1.12) * 1.05 || 1] : null,
    };
  };
  const span = (runs) => {
    // Bars of a tenth of the way between two runs at least, so that they can be seen.
    if (runs.length < 2) return 60000;
    return Math.max(1000, (runs[runs.length - 1].at - runs[0].at) / Math.max(12, runs.length * 1.6));
  };
  const bars = (runs, values, name, more = {}) => ({
    x: runs.map((run) => at(run.at)), y: values, name, type: "bar", width: runs.map(() => span(runs)),
    marker: { color: colour("accent") }, ...more,
  });
  // What was measured, and figures of the runs that ran while no page was open. The two are not taken at the same moments,
  // so they are two lines, and neither is drawn across a time of the other.
  const lagChart = (data, column, ofRun, name, write, limit = null) => {
    const unknown = [null, null];
    const measured = data.lag.map((point) => (point && point[column] !== null ? [at(point[0]), point[column]] : unknown));
    const byRuns = [];
    let before = 0;
    for (const run of ofRun ? data.runs : []) {
      const [time, value] = ofRun(run);
      if (run.measured || value === null) continue;
      if (before && data.lag.some((point) => point && before < point[0] && point[0] < run.at)) byRuns.push(unknown);
      before = run.at;
      byRuns.push([at(time), value]);
    }
    // Of a flow, the lag of topics that are paused is a line of its own: a pause is not taken for a slow flow.
    const paused = data.lag.some((point) => point && point[4]);
    const held = paused ? data.lag.map((point) => (point && point[column + 3] !== null ? [at(point[0]), point[column + 3]] : unknown)) : [];
    // A line of one point cannot be seen: it gets a dot.
    const alone = measured.map((point, index) => point[0] && !measured[index - 1]?.[0] && !measured[index + 1]?.[0]);
    const given = (rows, how) => rows.filter((row) => row[0]).map((row) => [...row, how]);
    const apart = given(held, "measured, of paused topics").filter((row) => row[1]);
    const rows = [...given(byRuns, "of a run"), ...given(measured, "measured"), ...apart].sort((a, b) => a[0] - b[0]);
    const drawn = (rows, name, more) => line(rows.map((row) => row[0]), rows.map((row) => row[1]), name, {
      text: rows.map((row) => (row[0] ? write(row[1]) : null)), hovertemplate: `${name}: %{text}<extra></extra>`, mode: "lines+markers", ...more,
    });
    return {
      head: ["Time", name[0].toUpperCase() + name.slice(1), "How"],
      rows,
      write,
      limit,
      most: Math.max(0, ...rows.map((row) => row[1])),
      traces: () => [
        under(measured, `${name}, area`),
        drawn(held, `${name}, of paused topics`, { mode: "lines", line: { color: colour("held"), width: 1.5, dash: "dash", shape: "hv" } }),
        drawn(byRuns, `${name}, of a run`, { line: { color: colour("accent"), width: 1, dash: "dot", shape: "hv" } }),
        drawn(measured, name, { marker: { color: colour("accent"), size: alone.map((is) => (is ? 7 : 0)) } }),
      ].filter((trace) => trace.x.length),
    };
  };
  // An active run lasts until now, however long ago its last receipt was written.
  const isActive = (run) => run.condition === "busy";
  const lasted = (run, now) => (isActive(run) ? Math.max(0, now - run.at) / 1000 : run.seconds);
  // A figure of a run some of whose receipts the ledger has forgotten, in words, as the pages have it.
  const known = (run, value, write) => (run.records ? `at least ${write(value)}` : "not known");
  // `more.none`: what a value of 0 means; `more.grows`: an active run's value still does.
  const ofRuns = (runs, head, columns, values, name, write, more = {}, inWords = (run, value) => (more.grows && isActive(run) ? `${write(value)} so far` : run.uncounted ? known(run, value, write) : value ? null : more.none)) => ({
    head,
    rows: runs.map((run, index) => [at(run.at), inWords(run, values[index]) || values[index], ...columns.map((column) => run[column])]),
    leads: runs.map((run) => run.run),
    write,
    limit: null,
    most: Math.max(0, ...values),
    traces: () => [bars(runs, values.map((value) => Math.max(value, more.least || 0)), name, {
      customdata: runs.map((run) => run.run), text: values.map((value, index) => `${more.said ? `${runs[index][more.said]}: ` : ""}${inWords(runs[index], value) || write(value)}`),
      textposition: "none", hovertemplate: "%{text}<extra></extra>",
      ...(more.condition && { marker: { color: runs.map((run) => colour(run.condition)) } }),
    })],
  });
  const recipes = {
    lag: (data) => lagChart(data, 3, (run) => [run.at + run.seconds * 1000, run.latency], "age of the oldest", duration, data.limits.lag),
    due: (data) => lagChart(data, 1, (run) => [run.at, run.due], "lag in records", number, data.limits.due),
    bytes: (data) => lagChart(data, 2, null, "lag in bytes", size),
    throughput: ({ runs }) => {
      const timed = runs.filter((run) => run.seconds > 0 && !run.uncounted);
      return ofRuns(timed, ["Run", "Bytes per second", "Records"], ["records"], timed.map((run) => run.bytes / run.seconds), "bytes per second", rate);
    },
    timeline: ({ runs, to }) => ofRuns(runs, ["Started", "Took", "State", "Refused"], ["state", "refused"], runs.map((run) => lasted(run, to)), "took", duration,
      { least: 0.05, said: "state", condition: true, none: "not known", grows: true }),
  };
  const addressOf = (run, { here, range } = one("#live").dataset) => `${here}/run/${encodeURIComponent(run)}${range === "all" ? "" : `?range=${range}`}`;
  const asTable = (figure, recipe) => {
    let details = one("details", figure);
    if (!details) {
      details = document.createElement("details");
      details.innerHTML = "<summary>As a table</summary><div class=scroll></div>";
      figure.append(details);
    }
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const name of recipe.head) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    const body = table.createTBody();
    const times = new Map(); // two rows may be equal, such as two readings within one second
    for (const [index, values] of [...recipe.rows.entries()].slice(-100).reverse()) {
      const row = body.insertRow();
      const said = values.map((value) => (value instanceof Date ? value.getTime() : value)).join();
      times.set(said, (times.get(said) || 0) + 1);
      row.id = `${figure.dataset.chart}:${said}${times.get(said) > 1 ? `:${times.get(said)}` : ""}`;
      for (const [column, value] of values.entries()) {
        let cell = row.insertCell();
        if (!column && recipe.leads) {
          cell = cell.appendChild(document.createElement("a"));
          cell.href = addressOf(recipe.leads[index]);
        }
        cell.textContent = value instanceof Date ? moment(value) : typeof value !== "number" ? value : (column === 1 ? recipe.write : number)(value);
      }
    }
    const selected = selection();
    window.Idiomorph.morph(one(".scroll", details), table, { morphStyle: "innerHTML" });
    selected();
    if (!details.dataset.heard) {
      details.dataset.heard = "yes";
      details.addEventListener("toggle", scrolled);
    }
  };
  // The axis of time, the same for all charts of a page.
  const axis = (data) => {
    const { from, to } = data;
    const edge = Math.max((to - from) / 100, span(data.runs) / 2); // so that the first and the last bar are whole
    if (to - from > 60000) return { range: [wall(at(from - edge)), wall(at(to + edge))] };
    // A few points of a moment: two minutes around them, rather than labels with milliseconds that do not fit.
    const middle = Math.round((from + to) / 2000) * 1000;
    const away = (ms) => wall(at(middle + ms));
    return { range: [away(-60000), away(60000)], tickvals: [away(-30000), away(0), away(30000)], tickformat: "%H:%M:%S" };
  };
  // Times in which a cluster did not answer, or something was paused, as bands with their names, and as a list; and on
  // charts of lag the runs that had something to copy, at the bottom.
  const MOST_NAMED = 6;
  const TONES = { outage: "bad", pause: "held" };
  const named = ({ mark, of }) => (mark === "outage" ? `${of} did not answer` : `${of || "the flow"} was paused`);
  // An outage in words: when it is known, and what is not known of its beginning and end. Less than a minute is not said.
  const APART_MS = 60000;
  const isSometime = (spell) => spell.mark === "outage" && spell.from === spell.to && spell.after === spell.from;
  const inWords = (spell) => {
    if (isSometime(spell)) {
      return `${named(spell)} at some time after ${moment(at(spell.from))}${spell.before === null ? "; whether it has ended is not known" : `, and before ${moment(at(spell.before))}`}`;
    }
    const until = spell.to === null ? " until now" : ` to ${moment(at(spell.to))}`;
    const parts = [`${named(spell)} ${spell.from === spell.to ? "at" : "from"} ${moment(at(spell.from))}${spell.from === spell.to ? "" : until}`];
    if (spell.mark !== "outage") return parts[0];
    if (spell.after === null) parts.push("when it began is not known");
    else if (spell.from - spell.after > APART_MS) parts.push(`it began after ${moment(at(spell.after))}`);
    if (spell.to && spell.before === null) parts.push("whether it has ended is not known");
    else if (spell.to && spell.before - spell.to > APART_MS) parts.push(`it ended before ${moment(at(spell.before))}`);
    return parts.join("; ");
  };
  const MOST_SPELLS = 20;
  const listed = (data) => {
    const details = one("[data-spells]");
    if (!details) return;
    details.hidden = !data.spells.length;
    one("summary", details).textContent = `Outages and pauses: ${number(data.spells.length)}`;
    const newest = [...data.spells].sort((a, b) => b.from - a.from);
    const texts = newest.slice(0, MOST_SPELLS).map((spell) => `${inWords(spell)}.`);
    if (newest.length > texts.length) texts.push(`And ${number(newest.length - texts.length)} older ones.`);
    const lines = texts.map((text) => Object.assign(document.createElement("li"), { textContent: text }));
    const list = one("ul", details);
    if (lines.map((line) => line.textContent).join() !== all("li", list).map((line) => line.textContent).join()) list.replaceChildren(...lines);
  };
  const marks = (data, figure) => {
    const within = (time) => wall(at(Math.min(Math.max(time, data.from), data.to)));
    const band = (spell, from, to, opacity) => ({
      type: "rect", layer: "below", yref: "paper", y0: 0, y1: 1, x0: within(from), x1: within(to),
      fillcolor: colour(`${TONES[spell.mark]}-soft`), opacity, line: { width: 0 },
    });
    // Paler: where it is not known whether the cluster answered.
    const pale = (spell, from, to) => (spell.mark === "outage" && to - from > APART_MS ? [band(spell, from, to, 0.4)] : []);
    const leastWide = (data.to - data.from) / 400; // what only one poll saw has no length
    const bands = data.spells.flatMap((spell) => [
      ...pale(spell, spell.after ?? spell.from, spell.from),
      ...(isSometime(spell) ? [] : [band(spell, spell.from, Math.max(spell.to ?? data.to, spell.from + leastWide), 1)]),
      ...pale(spell, spell.to ?? data.to, spell.before ?? data.to),
    ]);
    const names = data.spells.slice(-MOST_NAMED).map((spell, index) => ({
      x: within(spell.from), xanchor: spell.from > (data.from + data.to) / 2 ? "right" : "left", yref: "paper", y: 1 - index * 0.09, yanchor: "top", showarrow: false,
      text: named(spell), font: { size: 10, color: colour(TONES[spell.mark]) },
    }));
    const ofRuns = ["lag", "due", "bytes"].includes(figure.dataset.chart) ? data.runs.filter((run) => !run.idle) : [];
    const ticks = ofRuns.map((run) => ({
      type: "rect", yref: "paper", y0: 0, y1: 0.025, x0: wall(at(run.at)), x1: wall(at(run.at + Math.max(lasted(run, data.to) * 1000, leastWide))),
      fillcolor: colour(run.condition), line: { width: 0 },
    }));
    return { shapes: [...bands, ...ticks], annotations: names };
  };
  // The time under the pointer is marked on the other charts of the page, too.
  const pointed = (plot, time) => {
    for (const other of all("figure[data-chart] .plot")) {
      if (other === plot || !other.data) continue; // nothing is drawn in it
      if (time === null) window.Plotly.Fx.unhover(other, {});
      else {
        const { xaxis, yaxis } = other._fullLayout;
        window.Plotly.Fx.hover(other, { xpx: xaxis.d2p(time), ypx: yaxis._length / 2 }, "xy", true);
      }
    }
  };
  const draw = (figure, data) => {
    const recipe = recipes[figure.dataset.chart](data);
    const plot = one(".plot", figure);
    plot.setAttribute("role", "img");
    const older = data.spells.length - MOST_NAMED;
    const newest = data.spells.slice(-MOST_NAMED).map((spell) => `; ${inWords(spell)}`).join("");
    const spells = `${newest}${older > 0 ? `; older outages and pauses: ${number(older)}` : ""}`;
    plot.setAttribute("aria-label", `${one("figcaption", figure).textContent}: ${recipe.rows.length} points${recipe.limit === null ? "" : `, recovery point ${recipe.write(recipe.limit)}`}${spells}; below as a table`);
    asTable(figure, recipe);
    if (!window.Plotly) {
      if (!parsed) return; // it is on its way
      plot.textContent = "The chart library is not installed with Airflow's API server; the figures are in the table.";
      return;
    }
    if (!recipe.rows.length) {
      window.Plotly.purge(plot);
      empty(figure, "Nothing to show yet.");
      return;
    }
    if (one(".empty", plot)) plot.replaceChildren();
    const { range, ...lines } = bound(recipe.limit, recipe.most, recipe.write);
    const yaxis = { minallowed: 0, ...ticks(range ? range[1] : recipe.most, recipe.write), ...(range && { range }) };
    const marked = marks(data, figure);
    for (const part of ["shapes", "annotations"]) lines[part] = [...marked[part], ...(lines[part] || [])];
    // Plotly writes a date in the browser's zone, and a text as it is.
    const shown = recipe.traces().map((trace) => ({ ...trace, x: trace.x.map((one) => (one instanceof Date ? wall(one) : one)) }));
    window.Plotly.react(plot, shown, layout({ ...lines, yaxis, xaxis: axis(data) }), { displayModeBar: false, responsive: true });
    plot.classList.toggle("leads", Boolean(recipe.leads));
    for (const heard of ["plotly_click", "plotly_hover", "plotly_unhover"]) plot.removeAllListeners(heard);
    plot.on("plotly_hover", ({ xvals }) => pointed(plot, xvals[0]));
    plot.on("plotly_unhover", () => pointed(plot, null));
    if (recipe.leads) {
      plot.on("plotly_click", ({ points }) => {
        const run = points.find((point) => point.customdata)?.customdata;
        if (run) window.location.assign(addressOf(run));
      });
    }
  };
  let [drawn, parsed] = [[], false];
  const fetched = async (address) => {
    try {
      const answer = await fetch(address);
      return answer.ok ? await answer.json() : null;
    } catch {
      return null; // no server answered
    }
  };
  const empty = (figure, words) => {
    one(".plot", figure).innerHTML = `<div class="empty"><p>${words}</p></div>`;
  };
  const charts = async () => {
    const figures = all("figure[data-chart]");
    if (!figures.length) return;
    const here = one("#live").dataset.here;
    const asked = new Map();
    for (const figure of figures) asked.set(queryOf(figure), null);
    for (const query of asked.keys()) asked.set(query, await fetched(`${api(here)}/series${query}`));
    for (const figure of figures) {
      const data = asked.get(queryOf(figure));
      if (data) draw(figure, data);
      else if (!one(".plot", figure).childNodes.length) empty(figure, "The figures did not come: the page asks again.");
    }
    const some = [...asked.values()].find(Boolean);
    if (some) listed(some);
    drawn = figures.map((figure) => [figure, asked.get(queryOf(figure))]).filter(([, data]) => data);
  };
  const queryOf = ({ dataset: { topic, partition } }) => {
    const query = `?range=${one("#live").dataset.range}`;
    if (!topic) return query;
    return `${query}&topic=${encodeURIComponent(topic)}${partition ? `&partition=${partition}` : ""}`;
  };
  const api = (here) => here.replace(`${root}/flow/`, `${root}/api/flow/`);
  const redraw = () => drawn.forEach(([figure, data]) => draw(figure, data));
  document.addEventListener("ferry:theme", redraw);

  // Figures that stay fresh -----------------------------------------------------------------------------------------
  // The server renders; only what differs is put in place, so that what is selected, scrolled, open or read out stays.
  const EVERY_MS = 5000;
  const fresh = ["#live-state", "#live-also", "#live-why", ".head .actions", ".tabs", "#live"];
  const OF_SCROLLED = ["tabindex", "role", "aria-label", "data-scrolled"];
  const callbacks = {
    // The error of a field stays at it.
    beforeNodeRemoved: (old) => !(old.matches && old.matches('.wrong[id$="-wrong"]')),
    // Charts are drawn here, and what is in a field is the reader's.
    beforeNodeMorphed: (old) => !(old.matches && old.matches("figure[data-chart], [data-spells], input, select, textarea")),
    beforeAttributeUpdated: (name, element) =>
      !(name === "open" && element.tagName === "DETAILS") && !(name === "aria-describedby" && element === explained) && !(element.dataset.scrolled && OF_SCROLLED.includes(name)),
  };
  const selection = () => {
    // A row that moves up or down loses it: it is put back where its ends are still there.
    const chosen = window.getSelection();
    const [text, ends] = [String(chosen), [chosen.anchorNode, chosen.anchorOffset, chosen.focusNode, chosen.focusOffset]];
    return () => {
      if (!text || String(chosen) === text || !ends[0].isConnected || !ends[2].isConnected) return;
      const size = (node) => (node.nodeType === Node.TEXT_NODE ? node.length : node.childNodes.length);
      if (ends[1] <= size(ends[0]) && ends[3] <= size(ends[2])) chosen.setBaseAndExtent(...ends);
    };
  };
  const keyOf = (element) => element.id || `${element.dataset.ask}|${element.dataset.topic}|${element.getAttribute("href")}|${element.getAttribute("aria-label")}`;
  // What is shown is of the last answer: when several answers are missed, nothing may be shown as healthy.
  const [MISSES, PATIENCE_MS] = [3, 15000];
  let [missed, renewed] = [0, new Date()];
  const REASONS = {
    403: "You may not see this any more (403): ask for the permission in Airflow.",
    404: "This is not there any more (404): the file of the flows may have changed.",
  };
  const renewedNow = () => {
    [missed, renewed] = [0, new Date()];
    document.body.classList.remove("stale");
    one("#not-fresh")?.remove();
  };
  const miss = (why) => {
    missed += 1;
    if (missed < MISSES) return;
    document.body.classList.add("stale");
    const made = document.createElement("div");
    made.innerHTML = '<strong>This page shows what was known at <time></time></strong><p></p>';
    Object.assign(made, { id: "not-fresh", className: "banner bad", role: "alert" });
    one("time", made).dateTime = renewed.toISOString();
    one("p", made).textContent = `${why} It asks again every ${EVERY_MS / 1000} seconds.`;
    writeTimes(made);
    const old = one("#not-fresh");
    if (!old) one("#main").prepend(made);
    else if (old.textContent !== made.textContent) old.replaceChildren(...made.childNodes);
  };
  const asked = async () => {
    try {
      const answer = await fetch(window.location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(PATIENCE_MS) });
      return { status: answer.status, ok: answer.ok, text: await answer.text() };
    } catch {
      return null;
    }
  };
  const refresh = async (force = false) => {
    const live = one("#live");
    if (!live || (document.hidden && !force)) return;
    const answer = await asked();
    if (!answer || (!answer.ok && answer.status !== 401)) {
      miss(!answer ? "Airflow's API server does not answer." : REASONS[answer.status] || `Airflow's API server answers ${answer.status}: its log shows why.`);
      return;
    }
    const next = new DOMParser().parseFromString(answer.text, "text/html");
    if (answer.status === 401 || !one("#live", next)) {
      window.location.reload(); // to sign in, or because there is no flow any more
      return;
    }
    renewedNow();
    writeTimes(next);
    labelled(next);
    const focused = document.activeElement;
    const selected = selection();
    for (const selector of fresh) {
      const [old, made] = [one(selector), one(selector, next)];
      if (old && made && !old.isEqualNode(made)) window.Idiomorph.morph(old, made, { callbacks });
    }
    if (document.activeElement !== focused && focused !== document.body) {
      const again = focused.isConnected ? focused : all("a, button, summary, [tabindex]").find((element) => keyOf(element) === keyOf(focused));
      again?.focus({ preventScroll: true });
    }
    selected();
    writeTimes();
    scrolled();
    await charts();
  };

  // Terms: what one means is next to it under the pointer, with the keyboard on it, and at the first tap --------------
  const tip = one("#tip");
  let [explained, leaving] = [null, 0];
  const hideTip = () => {
    explained?.removeAttribute("aria-describedby");
    explained = null;
    tip?.hidePopover?.();
  };
  const showTip = (term) => {
    window.clearTimeout(leaving);
    if (term === explained || !tip?.showPopover) return;
    hideTip();
    explained = term;
    tip.textContent = term.dataset.means;
    term.setAttribute("aria-describedby", "tip");
    tip.showPopover();
    place();
  };
  const place = () => {
    if (!explained) return;
    const [at, size, edge] = [explained.getBoundingClientRect(), tip.getBoundingClientRect(), document.documentElement.clientWidth];
    const below = at.bottom + 6;
    tip.style.left = `${Math.max(8, Math.min(at.left, edge - size.width - 8))}px`;
    tip.style.top = `${below + size.height < window.innerHeight ? below : Math.max(8, at.top - size.height - 6)}px`;
  };
  const over = ({ target }) => {
    const term = target.closest?.("a.term");
    window.clearTimeout(leaving);
    if (term) showTip(term);
    else if (!tip?.contains(target) && explained && explained !== document.activeElement) leaving = window.setTimeout(hideTip, 200);
  };
  document.addEventListener("pointerover", (event) => event.pointerType !== "touch" && over(event));
  document.addEventListener("focusin", ({ target }) => (target.matches("a.term:focus-visible") ? showTip(target) : hideTip()));
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hideTip());
  // As in Airflow: to the field that filters the list.
  document.addEventListener("keydown", (event) => {
    const field = one("#q");
    if (!field || event.key?.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || one("dialog[open]")) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  document.addEventListener("click", (event) => {
    const term = event.target.closest("a.term");
    const reads = event.pointerType === "touch" && term && term !== explained;
    if (reads) event.preventDefault();
    if (reads) showTip(term);
    else hideTip();
  });
  window.addEventListener("scroll", place, { capture: true, passive: true });

  // Airflow's frame lets no link out of it; Airflow's own document does, and it is of the same origin.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[target]");
    if (!link || !document.documentElement.classList.contains("framed")) return;
    event.preventDefault();
    const outer = window.parent.document;
    const made = outer.createElement("a");
    made.href = link.href;
    if (link.target === "_blank") Object.assign(made, { target: "_blank", rel: "noopener" });
    outer.body.append(made);
    made.click();
    made.remove();
  });

  const nameZone = () => {
    const name = one("#zone");
    if (name) name.textContent = zone();
  };
  window.addEventListener("storage", ({ key }) => {
    if (key !== ZONE && key !== null) return;
    clock = shownZone();
    nameZone();
    for (const time of all("time[datetime]")) for (const done of ["local", "titled"]) delete time.dataset[done];
    writeTimes();
    redraw();
  });

  window.ferry = { root, one, all, api, refresh, writeTimes, labelled, scrolled, zone, typed, write: { number, size, duration } };
  nameZone();
  writeTimes();
  labelled();
  window.setInterval(writeTimes, 1000);
  // The library of charts is large: buttons and figures do not wait for it.
  document.addEventListener("DOMContentLoaded", () => {
    parsed = true; // and every script has run that could be loaded
    charts();
  });
  scrolled();
  toOpenTab();
  window.addEventListener("resize", scrolled);
  if (one("#live")) {
    // The first reading takes a moment: until then ask more often.
    const beat = () => window.setTimeout(async () => {
      try {
        await refresh();
      } catch {
        // a chart could not be drawn again; a banner shows errors of the page itself
      }
      beat();
    }, Number(one("#live").dataset.live) && !one("[data-waiting]") ? EVERY_MS : 700);
    beat();
  }
})();
