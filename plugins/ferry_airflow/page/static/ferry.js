// What the pages do by themselves: times in the reader's zone, figures that stay fresh, charts, questions and answers.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Times -----------------------------------------------------------------------------------------------------------
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const length = (seconds) => {
    const [size, unit] = units.find(([size]) => seconds >= size) || [1, "s"];
    return `${Math.floor(seconds / size)} ${unit}`;
  };
  const OLD_SECONDS = 300; // as the server calls a flow stale
  const writeTimes = (within = document) => {
    for (const time of all("time[datetime]", within)) {
      const at = new Date(time.dateTime);
      if ("ago" in time.dataset) {
        const seconds = (Date.now() - at) / 1000;
        const due = "due" in time.dataset && seconds >= -1; // it waits for the run before it
        const text = due ? "now" : seconds < -1 ? `in ${length(-seconds)}` : seconds < 3 ? "now" : `${length(seconds)} ago`;
        if (time.textContent !== text) time.textContent = text;
        if (time.closest(".age")) time.classList.toggle("old", seconds > OLD_SECONDS);
      } else if (!time.dataset.local) {
        time.dataset.local = "yes";
        time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
      }
      if (!time.dataset.titled) {
        time.dataset.titled = "yes";
        time.title = `${at.toLocaleString()} (${at.toISOString()})`;
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

  // Charts ----------------------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const layout = (more) => ({
    margin: { l: 56, r: 44, t: 8, b: 34 }, // half of a label stands beyond the last tick, wherever that is
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("soft") },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line-strong"), font: { color: colour("ink") } },
    hovermode: "x unified",
    showlegend: false,
    bargap: 0.35,
    ...more,
    xaxis: { type: "date", gridcolor: colour("line"), linecolor: colour("line-strong"), zeroline: false, nticks: 6, automargin: true, ...(more.xaxis || {}) },
    yaxis: { gridcolor: colour("line"), zerolinecolor: colour("line-strong"), rangemode: "tozero", nticks: 5, automargin: true, ticklabelstandoff: 6, ...(more.yaxis || {}) },
  });
  const at = (ms) => new Date(ms);
  const line = (x, y, name, more = {}) => ({
    x, y, name, type: "scatter", mode: "lines", connectgaps: false,
    line: { color: colour("accent"), width: 2, shape: "hv" }, marker: { color: colour("accent"), size: 7 },
    fill: "tozeroy", fillcolor: colour("accent-soft"), ...more,
  });
  const span = (runs) => {
    // Bars of a tenth of the way between two runs at least, so that they can be seen.
    if (runs.length < 2) return 60000;
    return Math.max(1000, (runs[runs.length - 1].at - runs[0].at) / Math.max(12, runs.length * 1.6));
  };
  const bars = (runs, values, name, more = {}) => ({
    x: runs.map((run) => at(run.at)), y: values, name, type: "bar", width: runs.map(() => span(runs)),
    marker: { color: colour("accent") }, ...more,
  });
  // What was measured, and figures of the runs that ran while nobody measured: the two are not taken at the same moments,
  // so they are two lines, and neither is drawn across a time of the other.
  const behind = (data, column, told, name, layout) => {
    const unknown = [null, null];
    const measured = data.lag.map((point) => (point && point[column] !== null ? [at(point[0]), point[column]] : unknown));
    const byRuns = [];
    let before = 0;
    for (const run of told ? data.runs : []) {
      const [time, value] = told(run);
      if (run.measured || value === null) continue;
      if (before && data.lag.some((point) => point && before < point[0] && point[0] < run.at)) byRuns.push(unknown);
      before = run.at;
      byRuns.push([at(time), value]);
    }
    // A line of one point is not to be seen: it gets a dot.
    const alone = measured.map((point, index) => point[0] && !measured[index - 1]?.[0] && !measured[index + 1]?.[0]);
    const given = (rows, how) => rows.filter((row) => row[0]).map((row) => [...row, how]);
    return {
      head: ["Time", name[0].toUpperCase() + name.slice(1), "How"],
      rows: [...given(byRuns, "told by a run"), ...given(measured, "measured")].sort((a, b) => a[0] - b[0]),
      traces: () => [
        line(byRuns.map((row) => row[0]), byRuns.map((row) => row[1]), `${name}, told by a run`, {
          mode: "lines+markers", line: { color: colour("accent"), width: 1, dash: "dot", shape: "hv" }, fill: "none",
        }),
        line(measured.map((row) => row[0]), measured.map((row) => row[1]), name, {
          mode: "lines+markers", marker: { color: colour("accent"), size: alone.map((is) => (is ? 7 : 0)) },
        }),
      ].filter((trace) => trace.x.length),
      layout,
    };
  };
  const recipes = {
    lag: (data) => behind(data, 3, (run) => [run.at + run.seconds * 1000, run.latency], "seconds behind", { yaxis: { ticksuffix: " s", minallowed: 0 } }),
    due: (data) => behind(data, 1, (run) => [run.at, run.due], "records behind", { yaxis: { minallowed: 0 } }),
    bytes: (data) => behind(data, 2, null, "bytes behind", { yaxis: { ticksuffix: "B", exponentformat: "SI", minallowed: 0 } }),
    throughput: (data) => ({
      head: ["Run", "Bytes per second", "Records"],
      rows: data.runs.filter((run) => run.seconds > 0).map((run) => [at(run.at), run.bytes / run.seconds, run.records]),
      traces: (rows) => [bars(data.runs.filter((run) => run.seconds > 0), rows.map((row) => row[1]), "bytes per second")],
      layout: { yaxis: { ticksuffix: "B/s", exponentformat: "SI", minallowed: 0 } },
    }),
    timeline: (data) => ({
      head: ["Started", "Seconds", "State", "Refused"],
      rows: data.runs.map((run) => [at(run.at), run.seconds, run.state, run.refused]),
      traces: () => [bars(data.runs, data.runs.map((run) => Math.max(run.seconds, 0.05)), "seconds", {
        marker: { color: data.runs.map((run) => colour(run.mood)) },
        text: data.runs.map((run) => run.state), textposition: "none", hovertemplate: "%{text}: %{y:.1f} s<extra></extra>",
      })],
      layout: { yaxis: { ticksuffix: " s", minallowed: 0 } },
    }),
  };
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
    for (const values of recipe.rows.slice(-100).reverse()) {
      const row = body.insertRow();
      row.id = `${figure.dataset.chart}:${values.join()}`;
      for (const value of values) {
        const text = value instanceof Date ? value.toLocaleString() : typeof value === "number" ? Number(value.toPrecision(6)).toLocaleString() : value;
        row.insertCell().textContent = text;
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
  const minute = (rows) => {
    // A few points of a moment: two minutes around them, rather than labels with milliseconds that do not fit.
    const times = rows.map((row) => Number(row[0]));
    const [from, to] = [Math.min(...times), Math.max(...times)];
    if (to - from > 60000) return { autorange: true };
    const middle = Math.round((from + to) / 2000) * 1000;
    const away = (ms) => at(middle + ms);
    return { range: [away(-60000), away(60000)], tickvals: [away(-30000), away(0), away(30000)], tickformat: "%H:%M:%S" };
  };
  const draw = (figure, data) => {
    const recipe = recipes[figure.dataset.chart](data);
    const plot = one(".plot", figure);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${one("figcaption", figure).textContent}: ${recipe.rows.length} points; below as a table`);
    asTable(figure, recipe);
    if (!window.Plotly) {
      if (!parsed) return; // it is on its way
      plot.textContent = "The chart library is not installed with Airflow's API server; the figures are in the table.";
      return;
    }
    if (!recipe.rows.length) {
      window.Plotly.purge(plot);
      plot.innerHTML = '<div class="empty"><p>Nothing to show yet.</p></div>';
      return;
    }
    if (one(".empty", plot)) plot.replaceChildren();
    window.Plotly.react(plot, recipe.traces(recipe.rows), layout({ ...recipe.layout, xaxis: minute(recipe.rows) }), { displayModeBar: false, responsive: true });
  };
  let [drawn, parsed] = [[], false];
  const charts = async () => {
    const figures = all("figure[data-chart]");
    if (!figures.length) return;
    const here = one("#live").dataset.here;
    const asked = new Map();
    for (const figure of figures) asked.set(queryOf(figure), null);
    for (const query of asked.keys()) {
      const answer = await fetch(`${api(here)}/series${query}`);
      if (!answer.ok) return;
      asked.set(query, await answer.json());
    }
    drawn = figures.map((figure) => [figure, asked.get(queryOf(figure))]);
    for (const [figure, data] of drawn) draw(figure, data);
  };
  const queryOf = ({ dataset: { topic, partition } }) => {
    if (!topic) return "";
    const query = `?topic=${encodeURIComponent(topic)}`;
    return partition ? `${query}&partition=${partition}` : query;
  };
  const api = (here) => here.replace(`${root}/flow/`, `${root}/api/flow/`);
  document.addEventListener("ferry:theme", () => drawn.forEach(([figure, data]) => draw(figure, data)));

  // Figures that stay fresh -----------------------------------------------------------------------------------------
  // The server renders; only what differs is put in place, so that what is selected, scrolled, open or read out stays.
  const EVERY_MS = 5000;
  const fresh = ["#live-state", "#live-also", "#live-why", ".head .actions", ".tabs", "#live"];
  const OF_SCROLLED = ["tabindex", "role", "aria-label", "data-scrolled"];
  const callbacks = {
    // Charts are drawn here, and what is in a field is the reader's.
    beforeNodeMorphed: (old) => !(old.matches && old.matches("figure[data-chart], input, select, textarea")),
    beforeAttributeUpdated: (name, element) =>
      !(name === "open" && element.tagName === "DETAILS") && !(element.dataset.scrolled && OF_SCROLLED.includes(name)),
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
  // What is shown is of the last answer: when several are missed, nothing of it may look well.
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
      miss(!answer ? "Airflow's API server does not answer." : REASONS[answer.status] || `Airflow's API server answers ${answer.status}: its log says why.`);
      return;
    }
    const next = new DOMParser().parseFromString(answer.text, "text/html");
    if (answer.status === 401 || !one("#live", next)) {
      window.location.reload(); // to sign in, or because there is no flow any more
      return;
    }
    renewedNow();
    writeTimes(next);
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

  window.ferry = { root, one, all, api, refresh, writeTimes, scrolled };
  writeTimes();
  window.setInterval(writeTimes, 1000);
  // The library of charts is large: buttons and figures do not wait for it.
  document.addEventListener("DOMContentLoaded", () => {
    parsed = true; // and every script has run that could be loaded
    charts();
  });
  scrolled();
  window.addEventListener("resize", scrolled);
  if (one("#live")) {
    // The first look takes a moment: until then ask more often.
    const beat = () => window.setTimeout(async () => {
      try {
        await refresh();
      } catch {
        // a chart could not be drawn anew; of the page itself its banner tells
      }
      beat();
    }, Number(one("#live").dataset.live) && !one("[data-waiting]") ? EVERY_MS : 700);
    beat();
  }
})();
