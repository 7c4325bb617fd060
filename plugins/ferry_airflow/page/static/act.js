// Questions, requests in the reader's name, and what came of them.
"use strict";
(() => {
  const { root, one, all, api, refresh, writeTimes, labelled, scrolled, zone, typed } = window.ferry;
  const ask = one("#ask");
  const answer = one("#answer");
  if (!ask) return;

  // Shows the result of a request, with links to what its sentence names. An error, or what waits for a user, stays.
  const announce = ({ text, links = [], waits = false }, bad = false) => {
    const notice = document.createElement("div");
    if (bad) notice.className = "bad";
    const said = document.createElement("p");
    let rest = text;
    for (const { text: name, href, top } of links) {
      const at = rest.indexOf(name);
      if (at < 0) continue;
      const link = document.createElement("a");
      Object.assign(link, { textContent: name, href });
      if (top) link.target = "_top";
      said.append(rest.slice(0, at), link);
      rest = rest.slice(at + name.length);
    }
    said.append(rest);
    const dismiss = document.createElement("button");
    Object.assign(dismiss, { type: "button", className: "small", textContent: "Dismiss" });
    dismiss.addEventListener("click", () => {
      notice.remove();
      one("#main").focus({ preventScroll: true });
    });
    notice.append(said, dismiss);
    one("#notices").append(notice);
    // Not while the pointer or the keyboard is on it.
    const leave = () => (notice.matches(":hover, :focus-within") ? window.setTimeout(leave, 2000) : notice.remove());
    if (!bad && !waits) window.setTimeout(leave, links.length ? 20000 : 9000);
  };
  const field = (name, label, type, more = {}) => {
    const box = document.createElement("div");
    box.className = "field";
    const title = document.createElement("label");
    title.textContent = label;
    title.htmlFor = `f-${name}`;
    const input = document.createElement(type === "textarea" ? "textarea" : "input");
    if (type !== "textarea") input.type = type;
    Object.assign(input, { id: `f-${name}`, name, ...more });
    box.append(title, input);
    return box;
  };
  const choice = (name, label, options) => {
    const box = field(name, label, "text");
    const select = document.createElement("select");
    Object.assign(select, { id: `f-${name}`, name });
    for (const [value, text] of options) select.add(new Option(text, value));
    one("input", box).replaceWith(select);
    return box;
  };
  class Refused extends Error {
    constructor(message, fields = {}) {
      super(message);
      this.fields = fields; // what is wrong, by the names of the fields
    }
  }
  const topicList = () => field("topics", "Topics, separated by blanks; empty: all that the flow selects", "text", { autocomplete: "off" });
  const split = (text) => text.split(/[\s,]+/).filter(Boolean);
  const local = (data, name) => {
    const time = typed(data.get(name));
    if (time.getUTCFullYear() > 0 && time.getUTCFullYear() < 10000) return time.toISOString();
    const why = `${data.get(name)} is no time of the years 1 to 9999.`;
    throw new Refused(why, { [name]: why });
  };

  const APPROVED = "It shows its steps and checks, and waits in Airflow until an operator approves it.";
  const switching = (verb, { cluster }, text) => ({
    title: verb[0].toUpperCase() + verb.slice(1), go: `Start the ${verb}`,
    text: `${text} ${APPROVED}`,
    before: verb === "switchover" ? "readiness" : "", // the checks of the others are in their runs
    fields: [
      field("reason", "Reason, shown to the person who approves", "text", { required: true, maxLength: 500, autocomplete: "off" }),
      choice("reverse", "Start the flow back afterwards", [["true", "yes"], ["false", "no"]]),
      choice("dry_run", "How far", [["false", "ask for the approval, then switch"], ["true", "only show the steps and the checks (dry run)"]]),
      field("confirm", `To confirm, type the name of the cluster that clients go to: ${cluster}`, "text", { required: true, autocomplete: "off" }),
    ],
    body: (data) => ({
      reason: data.get("reason"), reverse: data.get("reverse") === "true", dry_run: data.get("dry_run") === "true", confirm: data.get("confirm"),
    }),
  });

  // The questions of the dialog, and the body of the request that each makes.
  const questions = {
    run: (topic) => ({
      title: "Start a run", go: "Run now",
      text: "A micro-run copies what the source has after the last receipts, within the flow's budgets.",
      fields: [topicList()], body: (data) => ({ topics: split(data.get("topics")) }),
    }),
    "dry-run": () => ({
      title: "Dry run", go: "Show the plan", shows: true,
      text: "Plans a run with what is there now and shows the plan. Nothing is written.",
      fields: [topicList()], body: (data) => ({ topics: split(data.get("topics")) }),
    }),
    verify: () => ({
      title: "Verify", go: "Start verifying",
      text: "Compares what was copied with its originals, in a DAG run of its own. It reads both clusters.",
      fields: [
        choice("mode", "How", [
          ["full", "full: every record"],
          ["sample", "sample: one of ten segments of each partition"],
          ["compacted", "compacted: every topic by the newest record of each key"],
        ]),
        topicList(),
      ],
      body: (data) => ({ mode: data.get("mode"), topics: split(data.get("topics")) }),
    }),
    backfill: () => ({
      title: "Start a backfill", go: "Start",
      text: "Copies the records of a window of time into a lane of its own, next to the live topics.",
      fields: [
        field("lane", "Lane", "text", {
          value: "backfill-airflow", required: true, autocomplete: "off",
          pattern: "(backfill|append)-[A-Za-z0-9][A-Za-z0-9_\\-]{0,39}", // browsers read it with the flag v: the hyphen is escaped
          title: "backfill-NAME or append-NAME, where NAME has up to 40 letters, digits, hyphens and underscores",
        }),
        field("start", `From (${zone()})`, "datetime-local", { required: true }),
        field("end", `To, before (${zone()})`, "datetime-local", { required: true }),
        topicList(),
      ],
      body: (data) => ({ lane: data.get("lane"), start: local(data, "start"), end: local(data, "end"), topics: split(data.get("topics")) }),
    }),
    drill: () => ({
      title: "Start a drill", go: "Start the drill",
      text: "Rehearses a failover and ends in a report. Partial and full touch production: they wait in Airflow until an operator approves them.",
      fields: [
        choice("kind", "Drill", [
          ["tabletop", "tabletop: count what a failover would lose"],
          ["shadow", "shadow: copy to scratch topics, compare, remove"],
          ["partial", "partial: some topics and their groups, on the live copies"],
          ["full", "full: move clients there and back"],
        ]),
        topicList(),
        field("groups", "Groups, separated by blanks (partial)", "text", { autocomplete: "off" }),
        field("reason", "Reason, shown to the person who approves", "text", { maxLength: 500, autocomplete: "off" }),
      ],
      body: (data) => ({ kind: data.get("kind"), topics: split(data.get("topics")), groups: split(data.get("groups")), reason: data.get("reason") }),
    }),
    clear: (_, { dag, run }) => ({
      title: "Clear and continue", go: "Clear",
      text: `Airflow runs the failed tasks of ${run} again, and those after them. What is committed is not copied again.`,
      fields: [], body: () => ({ dag, run }),
    }),
    readiness: () => ({
      title: "Readiness", go: "Check now",
      text: "Checks whether the target could take over now, as the first step of a switchover does. Nothing is written.",
      fields: [], body: () => ({}), shows: true,
    }),
    switchover: (_, of) => switching("switchover", of, `Moves clients to ${of.cluster} as planned: nothing is lost.`),
    failover: (_, of) => switching("failover", of, `Moves clients to ${of.cluster}, although the other cluster may be gone. What is lost is counted.`),
    failback: (_, of) => switching("failback", of, `Moves clients back to ${of.cluster}, after what the other cluster got since the switch is there.`),
    pause: (topic) => ({
      title: topic ? `Pause topic ${topic}` : "Pause the flow", go: "Pause",
      text: "Runs omit it from the next plan on, until an operator resumes it. A run under way is not changed.",
      fields: [
        field("why", "Why, shown to other operators", "text", { required: true, maxLength: 500, autocomplete: "off" }),
        field("until", `Until (${zone()}; empty: until resumed)`, "datetime-local"),
      ],
      body: (data) => ({ topic, why: data.get("why"), ...(data.get("until") ? { until: local(data, "until") } : {}) }),
    }),
    resume: (topic) => ({
      title: topic ? `Resume topic ${topic}` : "Resume the flow", go: "Resume",
      text: "The next run copies it from where it was left.", fields: [], body: () => ({ topic }),
    }),
  };

  const reach = (address, request) => fetch(address, request).catch(() => {
    throw new Error("Airflow's API server does not answer. Whether the request was carried out is not known: check before you ask again.");
  });
  const send = async (address, body) => {
    const response = await reach(address, {
      method: "POST", credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-Ferry-Request": "1", Accept: "application/json" },
      body: JSON.stringify(body),
    });
    const found = await response.json().catch(() => ({}));
    if (!response.ok) throw new Refused(typeof found.detail === "string" ? found.detail : `The server answered ${response.status}.`, found.fields);
    return found;
  };
  const ended = async (number) => {
    let missed = 0;
    for (let wait = 150; ; wait = Math.min(1500, wait * 1.4)) {
      const response = await reach(`${root}/api/job/${encodeURIComponent(number)}`, { headers: { Accept: "application/json" } });
      const found = await response.json();
      // Another process of the API server, which does not have the job, may have answered.
      if (response.status === 404 && (missed += 1) < 20) {
        await new Promise((resolve) => window.setTimeout(resolve, wait));
        continue;
      }
      if (!response.ok) throw new Error(found.detail);
      if (found.done) {
        if (found.error) throw new Error(found.error);
        return found;
      }
      await new Promise((resolve) => window.setTimeout(resolve, wait));
    }
  };
  const show = (title, html) => {
    one("#answer-title").textContent = title;
    one("#answer-body").innerHTML = html; // made by the server's templates, which escape
    if (!answer.open) answer.showModal();
    writeTimes();
    labelled();
    scrolled();
  };

  // What was typed stays until it is accepted. The error of a field is shown at the field, which gets the focus and has
  // the error as its description. All other errors are an alert above the buttons.
  const right = (input) => {
    one(`#${input.id}-wrong`)?.remove();
    for (const name of ["aria-invalid", "aria-describedby"]) input.removeAttribute(name);
  };
  const cleared = () => {
    one("#ask-wrong").replaceChildren();
    for (const input of all("[aria-invalid]", ask)) right(input);
  };
  const said = (text, name, value) => {
    const made = Object.assign(document.createElement("p"), { className: "wrong", textContent: text });
    made.setAttribute(name, value);
    return made;
  };
  const complain = ({ message, fields = {} }) => {
    cleared();
    const others = [];
    const wrong = [];
    for (const [name, why] of Object.entries(fields)) {
      const input = one(`#f-${CSS.escape(name)}`, ask);
      if (!input) {
        others.push(why);
        continue;
      }
      const text = said(why, "id", `${input.id}-wrong`);
      input.after(text);
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", text.id);
      input.addEventListener("input", () => right(input), { once: true });
      wrong.push(input);
    }
    if (!wrong.length && !others.length) others.push(message);
    if (others.length) one("#ask-wrong").append(said(others.join(" "), "role", "alert"));
    (wrong[0] || one("#ask-go")).focus();
  };

  let asked = null; // the question that the dialog asks
  let busy = false; // whether its request is under way
  const waits = (is) => {
    busy = is;
    one("#ask-leave").textContent = is ? "Close" : "Cancel"; // what is under way is not taken back
    one("#ask-go").setAttribute("aria-disabled", String(is));
    one("#ask-state").textContent = "";
  };
  const perform = async (verb, here, question, body) => {
    const there = () => ask.open && asked === question;
    const planned = question.shows;
    waits(true);
    const patience = window.setTimeout(() => {
      if (there()) one("#ask-state").textContent = "The clusters are being asked.";
    }, 600);
    try {
      const found = await send(`${api(here)}/${verb}`, body);
      const result = found.job && !found.done ? await ended(found.job) : found;
      if (result.error) throw new Error(result.error);
      const left = !there();
      if (!left) ask.close();
      if (!planned) announce(result);
      else if (!left) show(question.title, result.html);
    } catch (error) {
      if (there()) {
        waits(false);
        complain(error);
      } else if (!planned) announce({ text: error.message }, true);
    }
    window.clearTimeout(patience);
    await refresh(true);
  };

  // What a question shows while it is answered: the checks that the server makes for it.
  const checked = async (question, here) => {
    const box = Object.assign(document.createElement("div"), { className: "checks", textContent: "The clusters are checked." });
    box.setAttribute("role", "status");
    one("#ask-fields").prepend(box);
    try {
      const found = await send(`${api(here)}/${question.before}`, {});
      const result = found.job && !found.done ? await ended(found.job) : found;
      if (result.error) throw new Error(result.error);
      box.innerHTML = result.html; // made by the server's templates, which escape
    } catch (error) {
      box.replaceChildren(said(`Not checked: ${error.message}`, "class", "wrong"));
    }
  };

  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close) close.closest("dialog").close();
    const button = event.target.closest("[data-ask]");
    if (!button) return;
    const here = button.closest("[data-flow]").dataset.flow;
    const verb = button.dataset.ask;
    const question = questions[verb](button.dataset.topic || "", button.dataset);
    asked = question;
    waits(false);
    cleared();
    one("#ask-title").textContent = question.title;
    one("#ask-text").textContent = question.text;
    one("#ask-fields").replaceChildren(...question.fields);
    one("#ask-go").textContent = question.go;
    one("form", ask).onsubmit = (submitted) => {
      submitted.preventDefault();
      if (busy) return;
      cleared();
      try {
        perform(verb, here, question, question.body(new FormData(submitted.target)));
      } catch (error) {
        complain(error); // what was typed cannot be sent
      }
    };
    if (question.before) checked(question, here);
    ask.showModal();
    (all("input, select", ask)[0] || one("#ask-go")).focus();
  });
  document.documentElement.dataset.ready = "";
})();
