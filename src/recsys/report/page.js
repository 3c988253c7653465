(() => {
  const { root, data, make, vega } = frame;

  // Charts.
  const take = (href, name) => {
    const link = make("a");
    link.href = href;
    link.download = name;
    link.click();
  };
  const saving = (plot, view, name) => {
    const row = make("p", undefined, "save");
    for (const kind of ["svg", "png"]) {
      const button = make("button", `Save ${kind.toUpperCase()}`);
      button.type = "button";
      button.addEventListener("click", () => view.toImageURL(kind, kind === "png" ? 2 : 1).then((url) => take(url, `${name}.${kind}`)));
      row.append(button);
    }
    plot.after(row);
  };
  // Several panels: as many columns as have room, rows of equal length, panels that fill the width.
  const fit = (spec, width, least = 1) => {
    if (!spec.concat) return spec;
    const { panel, labels } = spec.usermeta, n = spec.concat.length;
    const most = Math.max(least, Math.floor((width + spec.spacing) / (panel + labels + spec.spacing)));
    const columns = Math.ceil(n / Math.ceil(n / most));
    const wide = Math.max(80, Math.floor((width + spec.spacing) / columns) - spec.spacing - labels);
    return { ...spec, columns, concat: spec.concat.map((one) => ({ ...one, width: wide })) };
  };
  const paper = 680; // the width of a printed page
  const views = [];
  const embed = (plot, spec, width, least) => {
    const axis = { ...data.config.axis, titleLimit: width - 80 };
    return frame.embed(plot, fit(spec, width, least), { ...data.config, axis }, width);
  };
  const draw = async () => {
    for (const plot of document.querySelectorAll(".plot")) {
      const name = plot.dataset.chart, spec = data.charts[name];
      try {
        const view = await embed(plot, spec, plot.clientWidth);
        saving(plot, view, name);
        if (spec.concat) {
          // Columns cannot change when the page is printed, so paper has a picture of its own.
          const copy = make("div", undefined, "plot paper");
          plot.after(copy);
          const rows = Math.max(1, Math.floor(780 / (spec.concat[0].height + 90))); // below the headings of a page
          await embed(copy, spec, paper, Math.max(Math.min(2, spec.concat.length), Math.ceil(spec.concat.length / rows)));
        } else views.push([plot, view]);
      } catch (error) {
        plot.textContent = "This chart could not be drawn.";
        console.error(name, error);
      }
    }
    root.dataset.drawn = "true";
  };
  const resize = (width) => { for (const [plot, view] of views) view.width(width || plot.clientWidth).run(); };
  const folds = [...document.querySelectorAll("details.fold")];
  window.addEventListener("beforeprint", () => {
    resize(paper);
    for (const one of folds) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    resize(0);
    for (const one of folds) one.open = false;
  });
  // A browser too old to unpack the chart library keeps every table open instead.
  if (!vega || window.DecompressionStream) {
    root.classList.add("js");
    // The numbers of a chart that is alone have room next to it.
    const others = matchMedia("(min-width: 72rem)").matches ? ":not(.charts.one > figure:not(.wide) > details)" : "";
    for (const one of document.querySelectorAll(`details[open]${others}`)) one.open = false;
  }
  if (vega && window.DecompressionStream) frame.load().then(draw);

  // Sorting: a click on a heading, numbers by value, text by letters; empty cells stay last.
  const key = (row, at) => row.cells[at].dataset.key ?? row.cells[at].textContent.trim().toLowerCase();
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  };
  const empty = (text) => text === "" || text === "nan";
  const sort = (table, head, at) => {
    const down = head.getAttribute("aria-sort") === "ascending" || (head.getAttribute("aria-sort") === "none" && head.classList.contains("n"));
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row, at) }));
    rows.sort((a, b) => {
      if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key) || a.place - b.place;
      return (down ? -1 : 1) * compare(a.key, b.key) || a.place - b.place;
    });
    body.append(...rows.map((one) => one.row));
  };
  for (const table of document.querySelectorAll("main table")) {
    const n = table.tBodies[0].rows.length;
    const names = [...table.tHead.rows[0].cells].map((head) => head.firstChild.textContent.trim());
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((one, at) => { if (at) one.dataset.head = names[at]; });
    if (n < 2) continue;
    if (n > 4 && table.id !== "ranking") {
      // On a phone, where rows are cards, a long table is opened by a button.
      const all = make("button", `Show all ${n} rows`, "all");
      all.type = "button";
      table.classList.add("short");
      table.after(all);
      all.addEventListener("click", () => { table.classList.remove("short"); all.remove(); });
    }
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const text = head.firstChild.textContent;
      if (!text.trim()) return;
      const button = make("button", text);
      button.type = "button";
      head.firstChild.replaceWith(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, head, at));
    });
  }

  // Choices: metric, cut-off and group of users. Every number was computed before; the script picks
  // and formats. The state is in the address, so that a link shows the same.
  const percent = (value) => `${value < 0 ? "-" : "+"}${Math.abs(value).toFixed(1)}`;
  const signed = (value) => `${value < 0 ? "-" : "+"}${Math.abs(value).toFixed(4)}`;
  const whole = (number) => number.toLocaleString("en-US");
  const fragment = () => {
    const state = new Map();
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      try {
        if (at > 0) state.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
        else if (part) state.set("", decodeURIComponent(part));
      } catch { /* no name is written so */ }
    }
    return state;
  };
  const chooser = (held) => {
    const box = document.getElementById("choices"), says = document.getElementById("chosen");
    const table = document.getElementById("ranking"), title = document.getElementById("ranking-title");
    const pick = Object.fromEntries(["metric", "k", "group"].map((name) => [name, document.getElementById(`choose-${name}`)]));
    const everyone = "all users";
    const headline = held.metrics[held.headline];
    const families = [...new Set(held.metrics.filter((one) => one.rows).map((one) => one.family))];
    const groupName = (group) => `${group.by}: ${group.name}`;
    const option = (select, text, value = text) => {
      const made = make("option", text);
      made.value = value;
      select.append(made);
    };
    const cuts = (family) => held.metrics.filter((one) => one.family === family && one.rows).map((one) => (one.k === null ? "" : String(one.k)));
    const fillCuts = (wanted) => {
      const all = cuts(pick.metric.value);
      pick.k.replaceChildren();
      for (const cut of all) option(pick.k, cut || "none", cut);
      const usual = headline.k ?? 10;
      const near = all.reduce((best, cut) => (Math.abs(cut - usual) < Math.abs(best - usual) ? cut : best), all[0]);
      pick.k.value = all.includes(String(wanted)) ? String(wanted) : near;
      pick.k.disabled = all.length < 2;
    };
    const only = () => {
      const locked = pick.group.value !== everyone;
      if (locked) {
        pick.metric.value = headline.family;
        fillCuts(headline.k ?? "");
      }
      pick.metric.disabled = locked;
      pick.k.disabled = locked || pick.k.options.length < 2;
    };
    const span = (name, text) => make("span", text, name);
    const bit = (name, style) => {
      const made = make("i", undefined, name);
      Object.assign(made.style, style);
      return made;
    };
    const cell = (head, text, smalls = [], drawn = null, key = null, tone = "") => {
      const made = make("td", undefined, `n ${tone}`.trim());
      made.dataset.head = head;
      if (key !== null) made.dataset.key = key;
      made.append(span("v", text));
      if (drawn) made.append(drawn);
      for (const line of smalls) if (line) made.append(span("small", line));
      return made;
    };
    const show = () => {
      const group = held.groups.find((one) => groupName(one) === pick.group.value);
      const metric = held.metrics.find((one) => one.family === pick.metric.value && String(one.k ?? "") === pick.k.value) || headline;
      const of = group || metric, base = held.reference;
      const row = (model) => of.rows[model];
      const rows = of.order.map(row).filter(Boolean);
      const unit = rows.length > 0 && rows.every((one) => one[0] !== null && one[1] !== null && one[2] !== null);
      const triple = (one) => (unit ? one.slice(0, 3) : one.slice(3, 6));
      const ends = rows.flatMap(triple).filter((value) => value !== null).concat(0);
      const low = Math.min(...ends), reach = Math.max(...ends) - low || 1;
      const place = (value) => `${((100 * (value - low)) / reach).toFixed(1)}%`;
      const top = Math.max(...of.values.map((value) => value[0] ?? 0));
      const tied = new Set(group || metric !== headline ? [] : held.tied);
      const heads = ["model", metric.name, `${unit ? "lift over" : "difference from"} ${held.models[base]}`, "adjusted p", held.effect, "won / tied / lost"];
      const lines = of.order.map((model, at) => {
        const line = make("tr", undefined, at === 0 ? "leader" : "");
        const name = make("th", undefined, at === 0 ? "first" : tied.has(model) ? "tied" : "");
        name.scope = "row";
        name.append(span("v", held.models[model]));
        if (model === held.baseline) name.append(span("small", "baseline"));
        if (tied.has(model)) name.append(span("small", "ties with the best"));
        const [value, from, to] = of.values[model];
        const bar = span("bar");
        bar.append(bit("", { width: `${top > 0 && value > 0 ? ((100 * value) / top).toFixed(1) : 0}%` }));
        line.append(name, cell(heads[1], value === null ? "n/a" : value.toFixed(4), [from === null ? "" : `[${from.toFixed(4)}, ${to.toFixed(4)}]`], bar, value ?? "nan"));
        const one = row(model);
        if (!one) {
          for (const head of heads.slice(2)) line.append(cell(head, "", [], null, "nan"));
          return line;
        }
        const [middle, left, right] = triple(one);
        const write = unit ? percent : signed;
        const word = one[11] === null ? "" : held.words[one[11]];
        const tone = word === "better" || word === "worse" ? word : "unclear";
        const forest = span("forest");
        forest.append(bit("zero", { left: place(0) }));
        if (left !== null && right !== null) forest.append(bit("reach", { left: place(left), width: `${((100 * (right - left)) / reach).toFixed(1)}%` }));
        if (middle !== null) forest.append(bit("dot", { left: place(middle) }));
        const mark = word ? `${{ better: "▲", worse: "▼", higher: "▲", lower: "▼" }[word] || "≈"} ${word}` : "";
        line.append(cell(heads[2], middle === null ? "n/a" : `${write(middle)}${unit ? "%" : ""}`, [left === null || right === null ? "" : `[${write(left)}, ${write(right)}]`, mark], forest, middle ?? "nan", tone));
        const p = one[6];
        line.append(cell(heads[3], p === null ? "" : p < 1e-4 ? "< 0.0001" : String(Number(p.toPrecision(2))), [], null, p ?? "nan"));
        line.append(cell(heads[4], one[7] === null ? "" : one[7].toFixed(2), [], null, one[7] ?? "nan"));
        if (one[8] === null) line.append(cell(heads[5], "", [], null, "nan"));
        else {
          const counts = one.slice(8, 11), total = counts.reduce((a, b) => a + b, 0) || 1, shares = span("outcomes");
          counts.forEach((count, which) => shares.append(bit(["won", "same", "lost"][which], { width: `${((100 * count) / total).toFixed(1)}%` })));
          line.append(cell(heads[5], counts.map(whole).join(" / "), [], shares, counts[0] / total));
        }
        return line;
      });
      table.tBodies[0].replaceChildren(...lines);
      [...table.tHead.rows[0].cells].forEach((head, at) => {
        head.setAttribute("aria-sort", "none");
        (head.querySelector("button") || head.firstChild).textContent = heads[at];
      });
      const metricHelp = table.tHead.rows[0].cells[1].querySelector(".mark");
      if (metricHelp) {
        const entry = data.words[metric.name];
        metricHelp.hidden = !entry;
        if (entry) {
          metricHelp.setAttribute("href", `#${entry}`);
          metricHelp.title = document.getElementById(entry).querySelector("dd").textContent;
          metricHelp.setAttribute("aria-label", `What is ${metric.name}?`);
        }
      }
      const text = `The models on ${metric.name}, against ${held.models[base]}${group ? `, where ${groupName(group)}` : ""}`;
      title.textContent = text;
      table.caption.textContent = text;
      table.closest(".scroll").setAttribute("aria-label", text);
      table.closest("section").querySelector(".files").hidden = !isDefault();
      const first = held.models[of.order[0]];
      const ties = held.tied.map((model) => held.models[model]);
      says.textContent = group
        ? `${first} has the best ${metric.name} of the ${whole(group.n)} users where ${groupName(group)}; ${group.ahead === null ? "no other model" : held.models[group.ahead]} is shown to be ahead of ${held.models[0]} there. Tests and intervals of differences hold for all groups and models together.`
        : metric.beyond
          ? `${metric.name} describes what is shown; more of it is not better as such.`
          : metric !== headline
            ? `${first} is ahead on ${metric.name}, a secondary metric: it is corrected with the other metrics and changes nothing on ${headline.name}.`
            : `${first} is ahead on ${metric.name}${ties.length ? `; ${ties.join(", ")} ${ties.length > 1 ? "tie" : "ties"} with it` : ", clearly ahead of every other"}. ${held.correction}.`;
    };
    const isDefault = () => pick.metric.value === headline.family && pick.k.value === String(headline.k ?? "") && pick.group.value === everyone;
    const remember = (section) => {
      const parts = section ? [encodeURIComponent(section)] : [];
      if (!isDefault()) for (const name of ["metric", "k", "group"]) if (pick[name].value && !(name === "group" && pick.group.value === everyone)) parts.push(`${name}=${encodeURIComponent(pick[name].value)}`);
      history.replaceState(null, "", `#${parts.join("&")}`);
    };
    const read = () => {
      const state = fragment();
      const set = (name, wanted, otherwise) => {
        pick[name].value = wanted ?? otherwise;
        if (pick[name].selectedIndex < 0) pick[name].value = otherwise;
      };
      set("group", state.get("group"), everyone);
      set("metric", state.get("metric"), headline.family);
      fillCuts(state.get("k") ?? (state.has("metric") ? "" : headline.k ?? ""));
      only();
      show();
      if (state.get("")) document.getElementById(state.get(""))?.scrollIntoView();
    };
    for (const family of families) option(pick.metric, family);
    option(pick.group, everyone);
    for (const by of new Set(held.groups.map((one) => one.by))) {
      const part = make("optgroup");
      part.label = by;
      for (const one of held.groups) if (one.by === by) option(part, `${one.name} (${whole(one.n)})`, groupName(one));
      pick.group.append(part);
    }
    pick.group.parentElement.hidden = !held.groups.length;
    pick.metric.addEventListener("change", () => fillCuts(pick.k.value));
    pick.group.addEventListener("change", only);
    for (const select of Object.values(pick)) select.addEventListener("change", () => { show(); remember(); });
    document.getElementById("choose-default").addEventListener("click", () => { history.replaceState(null, "", "#"); read(); });
    // A link to a section keeps what was chosen.
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (!link || event.defaultPrevented) return;
      const target = document.getElementById(link.getAttribute("href").slice(1));
      const fold = target?.closest("details");
      if (fold) fold.open = true;
      if (!target || isDefault()) return;
      event.preventDefault();
      remember(target.id);
      target.scrollIntoView();
      if (link.classList.contains("skip")) target.focus();
    });
    window.addEventListener("hashchange", read);
    box.hidden = says.hidden = false;
    read();
  };
  if (data.selection && data.selection.metrics[data.selection.headline].rows) chooser(data.selection);

  // What a word means, when it is pointed at or focused; the link leads to the same words at the end.
  const tip = make("div");
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  let shown = null;
  const place = () => {
    const at = shown.getBoundingClientRect(), size = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(at.left, root.clientWidth - size.width - 8))}px`;
    tip.style.top = `${at.bottom + size.height + 8 > root.clientHeight ? at.top - size.height - 6 : at.bottom + 6}px`;
  };
  const explain = (term) => {
    if (shown) { shown.title = tip.textContent; shown.removeAttribute("aria-describedby"); }
    shown = term;
    tip.hidden = !term;
    if (!term) return;
    tip.textContent = term.title;
    term.removeAttribute("title");
    term.setAttribute("aria-describedby", "tip");
    place();
  };
  const near = (event) => (event.target.closest ? event.target.closest(".term") : null);
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, (event) => { const term = near(event); if (term !== shown) explain(term); });
  document.addEventListener("focusout", () => explain(null));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") explain(null); });
  document.addEventListener("scroll", () => {
    if (shown) { if (shown.matches(":hover, :focus")) place(); else explain(null); }
  }, { passive: true });

  // The user inspector.
  const inspect = (held) => {
    const box = document.getElementById("inspector");
    const why = document.getElementById("why"), who = document.getElementById("who"), person = document.getElementById("person");
    box.hidden = false;
    const kinds = ["all", ...new Set(held.users.flatMap((user) => user.why))];
    const count = (kind) => held.users.filter((user) => kind === "all" || user.why.includes(kind)).length;
    for (const kind of kinds) {
      const option = make("option", `${kind} (${count(kind)})`);
      option.value = kind;
      why.append(option);
    }
    const block = (name, aside, numbers, wanted, tag) => {
      const part = make("div"), head = make("h4", name), list = make(tag);
      head.append(make("span", aside));
      for (const number of numbers) {
        const [title, id] = held.items[number];
        const line = make("li", title);
        if (id) line.append(" ", make("small", id));
        if (wanted && wanted.has(number)) {
          line.className = "hit";
          line.append(make("span", " relevant", "unseen"));
        }
        list.append(line);
      }
      part.append(head, list);
      if (!numbers.length) part.append(make("p", "nothing", "word"));
      return part;
    };
    const show = () => {
      const user = held.users[Number(who.value)];
      const grid = make("div", undefined, "person");
      const wanted = new Set(user.wanted || []);
      const some = (all, shown) => (all > shown ? `${shown} of ${all}` : `${all}`);
      const digits = (value) => (value === null ? "n/a" : value.toFixed(4));
      if (user.had) grid.append(block("History", some(user.n_had, user.had.length), user.had, null, "ul"));
      if (user.wanted) grid.append(block("Relevant", some(user.n_wanted, user.wanted.length), user.wanted, null, "ul"));
      held.models.forEach((name, at) => {
        const list = user.lists ? user.lists[at] : null;
        if (list) grid.append(block(name, digits(user.values[at]), list, wanted, "ol"));
        else {
          const part = make("div"), head = make("h4", name);
          head.append(make("span", digits(user.values[at])));
          part.append(head);
          grid.append(part);
        }
      });
      person.replaceChildren(make("p", `User ${user.id}: ${user.why.join(", ")}`, "word"), grid);
    };
    const choose = () => {
      who.replaceChildren();
      held.users.forEach((user, at) => {
        if (why.value !== "all" && !user.why.includes(why.value)) return;
        const option = make("option", user.id);
        option.value = String(at);
        who.append(option);
      });
      show();
    };
    const step = (by) => {
      const n = who.options.length;
      who.selectedIndex = (who.selectedIndex + by + n) % n;
      show();
    };
    why.addEventListener("change", choose);
    who.addEventListener("change", show);
    document.getElementById("before").addEventListener("click", () => step(-1));
    document.getElementById("after").addEventListener("click", () => step(1));
    choose();
  };
  if (data.inspector && data.inspector.users.length) inspect(data.inspector);

  // Theme, and which section is being read.
  frame.theme();
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (!one.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(one.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main section")) if (links.has(section.id)) watcher.observe(section);
})();
