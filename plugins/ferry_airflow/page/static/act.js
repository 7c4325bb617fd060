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
  const choice = (name, label, options, chosen = "") => {
    const box = field(name, label, "text");
    const select = document.createElement("select");
    Object.assign(select, { id: `f-${name}`, name });
    for (const [value, text] of options) select.add(new Option(text, value, false, value === chosen));
    one("input", box).replaceWith(select);
    return box;
  };
  class Refused extends Error {
    constructor(message, fields = {}, status = 0) {
      super(message);
      this.fields = fields; // what is wrong, by the names of the fields
      this.status = status; // of the answer
    }
  }
  const split = (text) => text.split(/[\s,]+/).filter(Boolean);
  // Names of groups, one per line: they may have blanks and commas.
  const lines = (text) => text.split("\n").map((one) => one.trim()).filter(Boolean);
  const sleep = (ms) => new Promise((resolve) => window.setTimeout(resolve, ms));
  // What there is, with a part of its name: the first names, and how many there are in all. The clusters may be slow.
  const namesOf = async (here, what, q, isBack = false) => {
    for (let times = 0; times < 20; times += 1) {
      const response = await fetch(`${api(here)}/${what}?q=${encodeURIComponent(q)}${isBack ? "&back=true" : ""}`, { headers: { Accept: "application/json" } }).catch(() => null);
      const found = response?.ok ? await response.json() : null;
      if (!found?.waiting) return found;
      await sleep(500);
    }
    return null;
  };
  // Fields for a topic and a partition offer topics of the chosen side, and the partitions of the one that is named.
  // A field for several topics (`isList`) has ticks for them: then only the partitions of a single one are offered.
  const suggest = (topic, partition, within, isBack, here, isList = false) => {
    const offered = [topic, partition].map((input) => {
      const made = Object.assign(document.createElement("datalist"), { id: `${input.id}-offered` });
      within.append(made);
      if (input === partition || !isList) input.setAttribute("list", made.id);
      return made;
    });
    const options = (values) => values.map((value) => new Option(value, value));
    let later = 0;
    const offer = async () => {
      const [asked, back] = [topic.value.trim(), isBack()];
      const found = await namesOf(here(), "topics", asked, back);
      if (topic.value.trim() !== asked || isBack() !== back) return;
      const names = found?.names || [];
      offered[0].replaceChildren(...options(names.map(([name]) => name)));
      const parts = names.find(([name]) => name === asked)?.[1] || 0;
      offered[1].replaceChildren(...options(Array.from({ length: Math.min(parts, 1000) }, (_, number) => number)));
    };
    for (const moment of ["focus", "change"]) topic.addEventListener(moment, offer);
    topic.addEventListener("input", () => {
      window.clearTimeout(later);
      later = window.setTimeout(offer, 250);
    });
    return offer;
  };
  // A field for names, and below it those that there are: the word that is typed narrows them, and a tick puts one in.
  // `of`: which names there are, if the field has another name; groups are one per line.
  const list = (name, label, value = "", of = name) => {
    const [type, parts, apart, ended] = of === "groups" ? ["textarea", lines, "\n", /\n$/] : ["text", split, " ", /[\s,]$/];
    const box = field(name, label, type, { autocomplete: "off", value });
    const input = one(`#f-${name}`, box);
    const [picks, note] = [document.createElement("div"), document.createElement("p")];
    Object.assign(picks, { className: "picks", hidden: true });
    picks.setAttribute("role", "group");
    picks.setAttribute("aria-label", `${label.split(/[ ,;]/)[0]} that there are`);
    Object.assign(note, { className: "note", hidden: true });
    note.setAttribute("role", "status");
    box.append(picks, note);
    const begun = () => (ended.test(input.value) ? "" : parts(input.value).at(-1) || "");
    const ticked = () => {
      const chosen = new Set(parts(input.value));
      for (const tick of all("input", picks)) tick.checked = chosen.has(tick.value);
    };
    let [turn, shown] = [0, null];
    const look = async (here) => {
      const q = begun();
      if (shown === q) return ticked();
      const mine = (turn += 1);
      let found = await namesOf(here, of, q);
      if (found && !found.names.length && parts(input.value).length) found = await namesOf(here, of, "");
      if (mine !== turn) return;
      shown = found && q;
      picks.replaceChildren(...(found?.names || []).map(([text, partitions]) => {
        const line = document.createElement("label");
        const tick = Object.assign(document.createElement("input"), { type: "checkbox", value: text });
        const many = Object.assign(document.createElement("span"), { className: "dim", textContent: partitions === null ? "" : `${partitions} partition${partitions === 1 ? "" : "s"}` });
        line.append(tick, Object.assign(document.createElement("span"), { textContent: text }), many);
        return line;
      }));
      picks.hidden = !picks.childNodes.length;
      const more = found ? found.total - found.names.length : 0;
      note.textContent = !found || (found.error && !found.names.length) ? `The ${of} that there are could not be read: type the names, ${of === "groups" ? "one per line" : "separated by blanks"}.` : more > 0 ? `and ${more} more: type a part of a name` : "";
      note.hidden = !note.textContent;
      ticked();
    };
    picks.addEventListener("change", ({ target }) => {
      const rest = begun();
      const chosen = parts(input.value).filter((one) => one !== target.value);
      // The word that is half typed has found it.
      if (target.checked && rest && chosen.at(-1) === rest && target.value.toLowerCase().includes(rest.toLowerCase()) && !all("input", picks).some((one) => one.value === rest)) chosen.pop();
      if (target.checked) chosen.push(target.value);
      input.value = chosen.length ? chosen.join(apart) + apart : "";
      input.setSelectionRange(input.value.length, input.value.length); // what is typed next is added
      shown = null; // the next word that is typed is asked for
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
    let later = 0;
    box.offer = (here) => {
      input.addEventListener("input", () => {
        window.clearTimeout(later);
        later = window.setTimeout(look, 250, here);
      });
      look(here);
    };
    return box;
  };
  // The first two fields are for a topic and a partition, and the fourth says of which side.
  const placed = (fields) => {
    const [topic, partition, , back] = fields.map((box) => one("input, select", box));
    // The dialog has given the focus to the first field already.
    fields[0].offer = (here) => suggest(topic, partition, fields[0], () => back.value === "true", () => here)();
    return fields;
  };
  const topicList = () => list("topics", "Topics; empty: all that the flow selects");
  // A field for topics, and one for a partition of the topic if there is one only.
  const withPartition = (topics, partition) => {
    partition.offer = (here) => suggest(one("input", topics), one("input", partition), partition, () => false, () => here, true)();
    return [topics, partition];
  };
  const local = (data, name) => {
    const time = typed(data.get(name));
    if (time.getUTCFullYear() > 0 && time.getUTCFullYear() < 10000) return time.toISOString();
    const why = `${data.get(name)} is not a time of the years 1 to 9999.`;
    throw new Refused(why, { [name]: why });
  };

  const APPROVED = "It shows its steps and checks, and waits in Airflow until an operator approves it.";
  const switching = (verb, { cluster }, text) => ({
    dangerous: verb === "failover", // what was not copied is lost
    title: verb[0].toUpperCase() + verb.slice(1), go: `Start the ${verb}`,
    text: `${text} ${APPROVED}`,
    before: { verb: "readiness", body: () => ({ verb, reverse: one("#f-reverse").value === "true" }), again: "reverse" },
    fields: [
      field("reason", "Reason, shown to the person who approves", "text", { required: true, maxLength: 500, autocomplete: "off" }),
      choice("reverse", "Start the flow back afterwards", [["true", "yes"], ["false", "no"]]),
      list("leave_groups", "Groups to leave where they are, one per line; empty: all move", "", "groups"),
      choice("dry_run", "What it does", [["false", "ask for the approval, then switch"], ["true", "only show the steps and the checks (dry run)"]]),
      field("confirm", `To confirm, type the name of the cluster that clients go to: ${cluster}`, "text", { required: true, autocomplete: "off" }),
    ],
    body: (data) => ({
      reason: data.get("reason"), reverse: data.get("reverse") === "true", leave_groups: lines(data.get("leave_groups")),
      dry_run: data.get("dry_run") === "true", confirm: data.get("confirm"),
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
        ...withPartition(topicList(), field("partition", "Partition of the one topic; empty: all", "number", { min: 0 })),
      ],
      body: (data) => ({
        mode: data.get("mode"), topics: split(data.get("topics")), ...(data.get("partition") ? { partition: data.get("partition") } : {}),
      }),
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
    "groups-sync": (_, { group = "" }) => ({
      title: "Sync groups", go: "Sync now",
      text: "Writes the offsets of consumer groups on the target, by what is copied by now. A run may copy meanwhile. Groups with members on the target are left alone.",
      fields: [
        list("groups", "Groups, one per line; empty: all that the flow selects", group && `${group}\n`),
        choice("dry_run", "What it does", [["false", "write the offsets"], ["true", "only show what would be written (dry run)"]]),
      ],
      body: (data) => ({ groups: lines(data.get("groups")), dry_run: data.get("dry_run") === "true" }),
    }),
    drill: (_, { fields }, uses = JSON.parse(fields)) => ({
      title: "Start a drill", go: "Start the drill",
      // Which fields a kind of drill has, and what they are called then.
      shown: {
        by: "kind", uses,
        names: {
          partial: {
            topics: "Topics; empty: all that the groups read",
            groups: "Groups, one per line; empty: all that read the topics",
          },
          shadow: { topics: "Topics; empty: all that the flow selects" },
        },
      },
      text: "Rehearses a failover and ends in a report. Partial and full touch production: they wait in Airflow until an operator approves them.",
      fields: [
        choice("kind", "Drill", [
          ["tabletop", "tabletop: count what a failover would lose"],
          ["shadow", "shadow: copy to scratch topics, compare, remove"],
          ["partial", "partial: some topics and their groups, on the live copies"],
          ["full", "full: move clients there and back"],
        ]),
        topicList(),
        list("groups", "Groups, one per line"),
        field("reason", "Reason, for the report, and for the person who approves", "text", { maxLength: 500, autocomplete: "off" }),
      ],
      body: (data, kind = data.get("kind"), named = (name, parts) => (uses[kind].includes(name) ? parts(data.get(name)) : [])) => ({
        kind, topics: named("topics", split), groups: named("groups", lines), reason: data.get("reason"),
      }),
    }),
    record: (topic, { partition = "0", offset = "", back = "false", lane = "" }) => ({
      title: "A record and its copy", go: "Show", shows: true,
      text: "Reads one record of each side. It shows what applications wrote: at the source as it was before any transform. Airflow's audit log gets a line.",
      fields: placed([
        field("topic", "Topic, by its name on the side of the offset", "text", { value: topic, required: true, maxLength: 249, autocomplete: "off" }),
        field("partition", "Partition", "number", { value: partition, min: 0, required: true }),
        field("offset", "Offset", "number", { value: offset, min: 0, required: true }),
        choice("back", "It is an offset of", [["false", "the source"], ["true", "the target"]], back),
        choice("style", "Show keys, values and headers as", [["text", "text"], ["json", "JSON, indented"], ["hex", "hexadecimal"]]),
      ]),
      // Numbers stay texts: offsets may be larger than those that a script can hold exactly.
      body: (data) => ({
        topic: data.get("topic").trim(), partition: data.get("partition"), offset: data.get("offset"),
        back: data.get("back") === "true", style: data.get("style"), lane,
      }),
    }),
    clear: (_, { dag, run }) => ({
      title: "Clear and continue", go: "Clear",
      text: `Airflow runs the failed tasks of ${run} again, and those after them. If none failed, it runs the skipped ones. What is committed is not copied again.`,
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
      text: `Runs omit it from the next plan on, until an operator resumes it. An active run copies what is in its plan.${topic ? "" : " If it has not written offsets of groups yet, it leaves them to the first run after the pause."}`,
      fields: [
        field("why", "Reason, shown to other operators", "text", { required: true, maxLength: 500, autocomplete: "off" }),
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
    if (!response.ok) throw new Refused(typeof found.detail === "string" ? found.detail : `The server answered ${response.status}.`, found.fields, response.status);
    return found;
  };
  const ended = async (number) => {
    let missed = 0;
    for (let wait = 150; ; wait = Math.min(1500, wait * 1.4)) {
      const response = await reach(`${root}/api/job/${encodeURIComponent(number)}`, { headers: { Accept: "application/json" } });
      const found = await response.json();
      // Another process of the API server, which does not have the job, may have answered.
      if (response.status === 404 && (missed += 1) < 20) {
        await sleep(wait);
        continue;
      }
      if (!response.ok) throw new Error(found.detail);
      if (found.done) {
        if (found.error) throw new Error(found.error);
        return found;
      }
      await sleep(wait);
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
  const blame = (input, why) => {
    right(input);
    const text = said(why, "id", `${input.id}-wrong`);
    input.after(text);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", text.id);
    input.addEventListener("input", () => right(input), { once: true });
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
      blame(input, why);
      wrong.push(input);
    }
    if (!wrong.length && !others.length) others.push(message);
    if (others.length) one("#ask-wrong").append(said(others.join(" "), "role", "alert"));
    (wrong[0] || one("#ask-go")).focus();
  };

  // Shows those fields that the chosen kind has; what was typed in the others stays, and is not sent.
  const fit = ({ shown }) => {
    if (!shown) return;
    const kind = one(`#f-${shown.by}`, ask).value;
    for (const name of new Set(Object.values(shown.uses).flat())) {
      const input = one(`#f-${name}`, ask);
      if (!input) continue;
      const box = input.closest(".field");
      box.hidden = !shown.uses[kind].includes(name);
      if (box.hidden) right(input);
      one("label", box).textContent = shown.names[kind]?.[name] || one("label", box).textContent;
    }
  };

  let asked = null; // the question that the dialog asks
  let busy = false; // whether its request is under way
  // While it is filled in the server is asked what it would refuse. A field that was not touched is not blamed.
  let [touched, checks, soon] = [new Set(), 0, 0];
  const check = async (verb, here, question) => {
    const turn = (checks += 1);
    let wrong = {};
    try {
      await send(`${api(here)}/${verb}?check=true`, question.body(new FormData(one("form", ask))));
    } catch (error) {
      wrong = error.fields || {};
    }
    if (turn !== checks || busy || !ask.open || asked !== question) return;
    for (const input of touched) {
      const why = input.value && wrong[input.name];
      if (why) blame(input, why);
      else right(input);
    }
  };
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
    window.clearTimeout(soon);
    checks += 1; // what is still being checked says nothing any more
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

  // What a question shows while it is answered: the checks that the server makes for it. They are made again when the
  // field changes on which they depend; those under way are waited for, because a user has one such request at a time.
  const checked = async (question, here) => {
    question.stale = true;
    if (question.checking) return;
    question.checking = true;
    const box = one(".checks", ask) || Object.assign(document.createElement("div"), { className: "checks scroll" });
    box.setAttribute("role", "status");
    one("#ask-fields").prepend(box);
    while (question.stale && asked === question) {
      question.stale = false;
      box.textContent = "The clusters are checked.";
      try {
        const found = await send(`${api(here)}/${question.before.verb}`, question.before.body());
        const result = found.job && !found.done ? await ended(found.job) : found;
        if (result.error) throw new Error(result.error);
        if (!question.stale) box.innerHTML = result.html; // made by the server's templates, which escape
      } catch (error) {
        const waits = error.status === 429 && ask.open; // an earlier request is still under way
        if (!waits) box.textContent = `Not checked: ${error.message}`;
        else await sleep(1000);
        question.stale ||= waits;
      }
    }
    question.checking = false;
    scrolled();
  };

  // A file that is read first: it is asked for until it is there, and the page stays. Without a script the link's own
  // page waits for it.
  const saving = new Set();
  const save = async ({ href, dataset: { save: name } }) => {
    if (saving.has(name)) return;
    saving.add(name);
    try {
      const get = () => reach(href, { headers: { Accept: "application/json" } });
      let response = await get();
      if (response.status === 503) announce({ text: `${name} is being read: the browser saves it in a moment.` });
      for (let times = 0; response.status === 503 && times < 120; times += 1) {
        await sleep(500);
        response = await get();
      }
      if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail || `The server answered ${response.status}.`);
      const made = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await response.blob()), download: name });
      made.click();
      window.setTimeout(() => URL.revokeObjectURL(made.href), 60000);
    } catch (error) {
      announce({ text: `${name} is not saved: ${error.message}` }, true);
    }
    saving.delete(name);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-save]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    save(link);
  });

  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close) close.closest("dialog").close();
    const button = event.target.closest("[data-ask]");
    if (!button) return;
    const here = button.closest("[data-flow]").dataset.flow;
    const verb = button.dataset.ask;
    // Next to the fields of a form, what is typed there is asked for.
    const of = { ...button.dataset, ...(button.form ? Object.fromEntries(new FormData(button.form)) : {}) };
    const question = questions[verb](of.topic || "", of);
    asked = question;
    waits(false);
    cleared();
    one("#ask-title").textContent = question.title;
    one("#ask-text").textContent = question.text;
    one("#ask-fields").replaceChildren(...question.fields);
    one("#ask-go").textContent = question.go;
    one("#ask-go").classList.toggle("danger", Boolean(question.dangerous));
    window.clearTimeout(soon);
    [touched, checks] = [new Set(), checks + 1];
    one("form", ask).oninput = one("form", ask).onchange = ({ target, type }) => {
      if (!target.name) return; // a tick, which fills in its field
      touched.add(target);
      if (target.name === question.shown?.by) fit(question);
      if (type === "change" && target.name === question.before?.again) checked(question, here);
      checks += 1;
      window.clearTimeout(soon);
      soon = window.setTimeout(check, type === "input" ? 600 : 0, verb, here, question);
    };
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
    fit(question);
    ask.showModal();
    if (question.before) checked(question, here);
    for (const box of question.fields) box.offer?.(here);
    (all("input, select, textarea", ask)[0] || one("#ask-go")).focus();
  });

  // A form of a page: a field that was touched is blamed while it is filled in. Sending the form asks for a page.
  const touchedIn = new WeakMap();
  document.addEventListener("input", ({ target }) => {
    const form = target.form;
    if (!form?.dataset.check) return;
    if (!touchedIn.has(form)) touchedIn.set(form, { fields: new Set(), turn: 0 });
    const its = touchedIn.get(form);
    its.fields.add(target);
    const mine = (its.turn += 1);
    window.setTimeout(async () => {
      if (mine !== its.turn) return;
      const values = new FormData(form);
      let wrong = {};
      try {
        const body = { topic: values.get("topic").trim(), partition: values.get("partition"), offset: values.get("offset"), back: values.get("back") === "true" };
        await send(`${api(one("#live").dataset.here)}/${form.dataset.check}`, body);
      } catch (error) {
        wrong = error.fields || {};
      }
      if (mine !== its.turn) return;
      for (const input of its.fields) {
        const why = input.value && wrong[input.name];
        if (why) blame(input, why);
        else right(input);
      }
    }, 600);
  });

  const [topic, partition] = [one("input#topic"), one("input#partition")];
  // Outside of what is renewed.
  if (topic && partition) suggest(topic, partition, document.body, () => one("#back")?.value === "true", () => one("#live").dataset.here);
  document.documentElement.dataset.ready = "";
})();
