(() => {
  const { root, data, make } = frame;
  const get = (id) => document.getElementById(id);
  const table = get("table");

  // The runs in the order of the rows; values are packed as 64-bit floats, one metric after the other.
  const values = new Float64Array(frame.bytes(data.values).buffer);
  const metrics = data.metrics.map((metric) => metric.name);
  const heads = ["run", "finished", "hash", "users", "conventions", ...metrics];
  const fixed = heads.length - metrics.length;
  const runs = data.runs.map(([file, name, finished, sha256, users, conventions, cautions], at) => ({
    file, name, finished, sha256, users, conventions, at,
    id: file || name,
    cautions: cautions.map((number) => data.cautions[number]),
    row: table.tBodies[0].rows[at],
    value: (metric) => values[metric * data.runs.length + at],
  }));
  for (const run of runs) {
    run.words = [run.name, run.file, run.finished.replace("T", " "), run.sha256, run.conventions, ...run.cautions].join("\n").toLowerCase();
  }
  const moment = (run) => run.finished.slice(0, 16).replace("T", " ");
  const byId = new Map(runs.map((run) => [run.id, run]));
  const format = (number) => (Number.isNaN(number) ? "" : number.toFixed(4).replace("-0.0000", "0.0000"));

  // What is chosen, kept in the address so that it can be sent and survives a reload.
  const few = metrics.slice(0, 8), most = 100;
  const usual = () => ({ sort: "finished", down: true, find: "", columns: few, ticks: [], only: false, over: "", who: "", theme: "auto", all: false });
  let state = usual();
  const read = () => {
    state = usual();
    if (!location.hash.includes("=")) return;
    const fields = new URLSearchParams(location.hash.slice(1));
    if (heads.includes(fields.get("sort"))) state.sort = fields.get("sort");
    if (fields.has("sort")) state.down = fields.get("down") === "1";
    state.find = fields.get("find") ?? "";
    if (fields.has("metric")) state.columns = metrics.filter((name) => fields.getAll("metric").includes(name));
    state.ticks = fields.getAll("run").filter((id) => byId.has(id));
    state.only = fields.get("only") === "1";
    state.all = fields.get("all") === "1";
    state.over = fields.get("over") ?? "";
    state.who = fields.get("name") ?? "";
    if (["light", "dark"].includes(fields.get("theme"))) state.theme = fields.get("theme");
  };
  const keep = () => {
    const fields = new URLSearchParams();
    if (state.sort !== "finished" || !state.down) fields.append("sort", state.sort);
    if (fields.has("sort") && state.down) fields.append("down", "1");
    if (state.find) fields.append("find", state.find);
    if (state.columns.join("\n") !== few.join("\n")) for (const name of state.columns.length ? state.columns : [""]) fields.append("metric", name);
    for (const id of state.ticks) fields.append("run", id);
    if (state.only) fields.append("only", "1");
    if (state.all) fields.append("all", "1");
    if (state.over) fields.append("over", state.over);
    if (state.who) fields.append("name", state.who);
    if (state.theme !== "auto") fields.append("theme", state.theme);
    history.replaceState(null, "", `#${fields}`);
  };

  // The table: which rows, in which order, with which columns.
  const key = (run) => {
    const place = heads.indexOf(state.sort);
    return place >= fixed ? run.value(place - fixed) : [run.name, run.finished, run.sha256, run.users, run.conventions][place];
  };
  const missing = (value) => value === "" || Number.isNaN(value);
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  const sorted = (some) => {
    const keyed = some.map((run) => ({ run, key: key(run) }));
    keyed.sort((a, b) => {
      if (missing(a.key) || missing(b.key)) return missing(a.key) - missing(b.key) || a.run.at - b.run.at;
      return (state.down ? -1 : 1) * compare(a.key, b.key) || a.run.at - b.run.at;
    });
    return keyed.map((one) => one.run);
  };
  const shown = () => {
    const words = state.find.toLowerCase().split(/\s+/).filter((word) => word.replace("-", ""));
    return runs.filter((run) => words.every((word) => (word.startsWith("-") && word.length > 1 ? !run.words.includes(word.slice(1)) : run.words.includes(word)))
      && (!state.only || state.ticks.includes(run.id)));
  };
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [sheet];
  const quote = (text) => `"${[...text].map((letter) => (/[A-Za-z0-9]/.test(letter) ? letter : `\\${letter.codePointAt(0).toString(16)} `)).join("")}"`;
  const labels = heads.map((name, at) => `@media (max-width: 40rem) { #table td:nth-child(${at + 1})::before { content: ${quote(name)}; } }`).join("\n");
  const showColumns = () => {
    const hidden = metrics.flatMap((name, at) => (state.columns.includes(name) ? [] : [`#table tr > :nth-child(${fixed + at + 1})`]));
    sheet.replaceSync(labels + (hidden.length ? `\n.board.ready :is(${hidden.join(", ")}) { display: none; }` : ""));
    document.querySelector("#columns summary").textContent = `Metrics: ${state.columns.length} of ${metrics.length}`;
    for (const box of document.querySelectorAll(".boxes input")) box.checked = state.columns.includes(box.value);
  };
  const showRows = () => {
    const some = sorted(shown()), count = (number) => number.toLocaleString("en");
    const rows = state.all ? some : some.slice(0, most);
    table.tBodies[0].replaceChildren(...rows.map((run) => run.row));
    get("more").hidden = rows.length === some.length;
    get("more").textContent = `Show all ${count(some.length)}`;
    get("count").textContent = [some.length === runs.length ? "" : `${count(some.length)} of `, `${count(runs.length)} runs`, rows.length === some.length ? "" : `, the first ${count(rows.length)} shown`].join("");
    get("find").value = state.find;
    get("only").checked = state.only;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      head.setAttribute("aria-sort", heads[at] !== state.sort ? "none" : state.down ? "descending" : "ascending");
    });
    get("by").value = state.sort;
    get("turn").textContent = state.down ? "Descending" : "Ascending";
  };
  const showTicks = () => {
    for (const run of runs) {
      const on = state.ticks.includes(run.id);
      run.row.classList.toggle("ticked", on);
      run.box.checked = on;
    }
    get("bar").hidden = !state.ticks.length;
    get("ticked").textContent = `${state.ticks.length} ticked`;
    showPair();
  };
  const change = (part, ...shows) => {
    Object.assign(state, part);
    for (const show of shows) show();
    keep();
  };

  // Two runs side by side. Nothing is tested here: the command that does is shown.
  const quoted = (file) => {
    const path = data.folder + file, safe = path.startsWith("-") ? `./${path}` : path;
    return /^[\w@%+=:,./-]+$/.test(safe) ? safe : `'${safe.replaceAll("'", "'\\''")}'`;
  };
  const differences = (a, b) => {
    const part = (name) => [data.questions[name][a.at], data.questions[name][b.at]];
    const differ = (name) => part(name)[0] !== part(name)[1];
    const conflict = (name) => differ(name) && !part(name).includes(null);
    const count = (run) => run.users.toLocaleString("en");
    const lines = [];
    if (part("users").includes(null)) lines.push("Whether they have the same users and the same truth is not known: one of them does not say.");
    else if (differ("users")) lines.push(`Other users: ${count(a)} in the first and ${count(b)} in the second, not the same ones. These are means of different people.`);
    else if (part("truth").includes(null)) lines.push("The same users; whether they have the same truth is not known.");
    else if (differ("truth")) lines.push("Another truth: the same users, but not the same relevant items.");
    if (differ("conventions")) lines.push(`Other conventions: ${a.conventions} and ${b.conventions}. recsys explain says which decision moved which number.`);
    if (conflict("catalogue")) lines.push("Another catalogue: metrics of all items are not comparable.");
    for (const [name, of] of Object.entries(data.asked)) if (conflict(name)) lines.push(`Another question: the first ${of[a.at]}, and the second ${of[b.at]}.`);
    return lines;
  };
  const showPair = () => {
    const box = get("two");
    box.textContent = "";
    const chosen = state.ticks.map((id) => byId.get(id));
    get("pair").classList.toggle("empty", chosen.length < 2);
    if (chosen.length < 2) {
      box.append(make("p", chosen.length ? "Tick one more run in the table." : "Tick two runs in the table to see their values side by side.", "lead"));
      return;
    }
    const [a, b] = chosen;
    if (chosen.length > 2) box.append(make("p", `${chosen.length} runs are ticked; the first two are shown.`, "lead"));
    const lines = differences(a, b);
    if (lines.length) {
      const note = make("div", undefined, "caution");
      note.setAttribute("role", "note");
      note.append(make("p", "These runs answer different questions. [different_questions]"), ...lines.map((line) => make("p", line)));
      box.append(note);
    }
    const scroll = make("div", undefined, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Two runs side by side");
    const made = make("table"), head = make("thead"), body = make("tbody");
    const line = (first, cells) => {
      const row = make("tr"), start = make("th", first);
      start.scope = "row";
      row.append(start, ...cells.map((cell) => make("td", cell, "n")));
      return row;
    };
    const top = make("tr");
    for (const [at, text] of ["metric", a.name, b.name, "second − first", "in %"].entries()) {
      const cell = make("th", text, at ? "n" : "");
      cell.scope = "col";
      const run = [undefined, a, b][at];
      for (const fact of run ? [moment(run), run.sha256.slice(0, 8), `${run.users.toLocaleString("en")} users`] : []) cell.append(make("span", fact, "small"));
      top.append(cell);
    }
    head.append(top);
    metrics.forEach((name, at) => {
      const first = a.value(at), second = b.value(at);
      if (Number.isNaN(first) && Number.isNaN(second)) return;
      const gap = second - first, sign = (text) => (text === "" || text.startsWith("-") || !Number(text) ? text : `+${text}`);
      const share = Number.isFinite(gap / first) ? sign(((100 * gap) / Math.abs(first)).toFixed(1).replace("-0.0", "0.0")) : "";
      body.append(line(name, [format(first), format(second), sign(format(gap)), share].map((text) => text.replace("-", "−"))));
    });
    made.append(head, body);
    scroll.append(made);
    const controls = make("div", undefined, "controls"), swap = make("button", "Swap"), clear = make("button", "Untick all");
    swap.type = clear.type = "button";
    swap.addEventListener("click", () => change({ ticks: [state.ticks[1], state.ticks[0], ...state.ticks.slice(2)] }, showTicks));
    clear.addEventListener("click", () => change({ ticks: [], only: false }, showTicks, showRows));
    controls.append(swap, clear);
    box.append(scroll, controls);
    for (const run of [a, b]) for (const caution of run.cautions) box.append(make("p", `${run.name}: ${caution}`, "word"));
    const word = make("p", "Differences of means, without a test. ", "word");
    if (a.file && b.file) word.append("Whether they are more than chance: ", make("code", `recsys compare ${quoted(a.file)} ${quoted(b.file)}`));
    else word.append("Whether they are more than chance, recsys.compare says.");
    box.append(word);
  };

  // Export: what the table shows, all digits.
  const spreadsheet = (cell) => {
    const text = cell === null ? "" : String(cell);
    const runnable = typeof cell === "string" && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text);
    const harmless = runnable ? `'${text}` : text;
    return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  };
  const save = (kind) => {
    const columns = metrics.map((name, at) => [name, at]).filter(([name]) => state.columns.includes(name));
    const names = ["run", "file", "finished", "sha256", "users", "conventions", ...columns.map(([name]) => name)];
    const rows = sorted(shown()).map((run) => [run.name, run.file, run.finished, run.sha256, run.users, run.conventions,
      ...columns.map(([, at]) => (Number.isFinite(run.value(at)) ? run.value(at) : null))]);
    const text = kind === "csv"
      ? [names, ...rows].map((row) => row.map(spreadsheet).join(",")).join("\n") + "\n"
      : `${JSON.stringify(rows.map((row) => Object.fromEntries(row.map((cell, at) => [names[at], cell]))), null, 1)}\n`;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }));
    link.download = `runs.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // Over time. The charts travel compressed.
  const plot = get("plot"), over = get("over"), who = get("who");
  // One name alone: its points and labels, and the rules of its own changes. Charts write some names with other blanks.
  const plain = (text) => text.replaceAll("\u200b", "").replace(/\s+/g, " ").trim();
  const alone = (spec, name, moments) => {
    const kept = (row) => (row.model === undefined ? moments.some((when) => String(row.x).startsWith(when)) : plain(row.model) === plain(name));
    if (spec.data) spec.data.values = spec.data.values.filter(kept);
    for (const layer of spec.layer ?? []) alone(layer, name, moments);
  };
  const draw = async () => {
    const metric = over.value = Object.hasOwn(data.charts, state.over) ? state.over : Object.keys(data.charts)[0];
    const changes = [...document.querySelectorAll("#changes tbody tr")];
    const name = who.value = [...who.options].some((option) => option.value === state.who) ? state.who : "";
    for (const row of changes) row.hidden = row.dataset.metric !== metric || (name !== "" && row.cells[0].textContent !== name);
    const some = changes.filter((row) => !row.hidden);
    get("level").textContent = some.length ? "" : `No change of level of ${metric} beyond the noise.`;
    if (get("changes")) get("changes").hidden = !some.length;
    if (!window.DecompressionStream) return;
    await frame.load();
    const made = JSON.parse(await frame.unpack(data.charts[metric]));
    if (over.value !== metric || who.value !== name) return;
    if (name) alone(made, name, some.map((row) => row.cells[2].textContent.replace(" ", "T")));
    await frame.embed(plot, made, data.config, plot.clientWidth);
    plot.setAttribute("aria-label", `${metric} over time of ${name || "each name"}.`);
    root.dataset.drawn = `${metric} ${name}`.trim();
  };

  const showAll = () => {
    frame.paint(state.theme);
    if (table) for (const show of [showColumns, showRows, showTicks]) show();
    if (over) draw();
  };

  // Controls.
  if (table) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = make("button", head.textContent.trim());
      button.type = "button";
      head.textContent = "";
      head.append(button);
      const rises = at < fixed ? at !== 1 && at !== 3 : data.metrics[at - fixed].better !== "higher";
      button.addEventListener("click", () => change({ sort: heads[at], down: state.sort === heads[at] ? !state.down : !rises }, showRows));
      get("by").append(make("option", heads[at]));
    });
    for (const run of runs) {
      run.box = make("input");
      run.box.type = "checkbox";
      run.box.setAttribute("aria-label", `Tick ${run.name}, ${moment(run)}`);
      run.row.cells[0].prepend(run.box);
      run.row.cells[0].title = run.file;
      run.box.addEventListener("change", () => {
        const others = state.ticks.filter((id) => id !== run.id);
        change({ ticks: run.box.checked ? [...others, run.id] : others }, showTicks);
        if (state.only) showRows();
      });
    }
    for (const name of metrics) {
      const label = make("label"), box = make("input");
      box.type = "checkbox";
      box.value = name;
      label.append(box, ` ${name}`);
      document.querySelector(".boxes").append(label);
      box.addEventListener("change", () => change({ columns: metrics.filter((one) => (one === name ? box.checked : state.columns.includes(one))) }, showColumns));
    }
    get("more").addEventListener("click", () => change({ all: true }, showRows));
    window.addEventListener("beforeprint", () => change({ all: true }, showRows));
    get("all").addEventListener("click", () => change({ columns: metrics }, showColumns));
    get("none").addEventListener("click", () => change({ columns: [] }, showColumns));
    get("find").addEventListener("input", () => change({ find: get("find").value }, showRows));
    get("only").addEventListener("change", () => change({ only: get("only").checked }, showRows));
    get("by").addEventListener("change", () => change({ sort: get("by").value }, showRows));
    get("turn").addEventListener("click", () => change({ down: !state.down }, showRows));
    for (const button of document.querySelectorAll(".export button")) button.addEventListener("click", () => save(button.dataset.kind));
  }
  over?.addEventListener("change", () => change({ over: over.value }, draw));
  who?.addEventListener("change", () => change({ who: who.value }, draw));
  frame.theme((theme) => change({ theme }));
  // Links within the page must not overwrite what the address keeps.
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const aim = get(link.hash.slice(1));
      aim.tabIndex = -1;
      aim.focus({ preventScroll: true });
      aim.scrollIntoView();
    });
  }
  window.addEventListener("hashchange", () => { read(); showAll(); });
  document.addEventListener("click", (event) => { if (get("columns") && !get("columns").contains(event.target)) get("columns").open = false; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && get("columns")) get("columns").open = false; });
  document.body.classList.add("ready");
  root.classList.add("js");
  read();
  showAll();
  // A reload, if one was asked for; not while the search has the focus.
  const reload = () => { if (document.activeElement === get("find")) setTimeout(reload, 1000); else location.reload(); };
  if (data.refresh) setTimeout(reload, 1000 * data.refresh);
})();
