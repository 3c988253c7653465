"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  // Charts. Expressions are interpreted (ast), so the page needs no eval.
  const options = {
    ast: true, actions: false, renderer: "svg", defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
  };
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
  const draw = async () => {
    for (const plot of document.querySelectorAll(".plot")) {
      const name = plot.dataset.chart;
      const columns = Math.max(2, Math.floor(plot.clientWidth / 140));
      const legend = { ...data.config.legend, columns, labelLimit: Math.floor(plot.clientWidth / columns) - 45 };
      const config = { ...data.config, legend, axis: { ...data.config.axis, titleLimit: plot.clientWidth - 80 } };
      try {
        const made = await window.vegaEmbed(plot, data.charts[name], { ...options, config });
        plot.querySelector("svg").setAttribute("aria-hidden", "true");
        saving(plot, made.view, name);
      } catch (error) {
        plot.textContent = "This chart could not be drawn.";
        console.error(name, error);
      }
    }
    root.dataset.drawn = "true";
  };
  // The chart library travels compressed; the policy lets it run because it knows its hash.
  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const library = make("script", await new Response(stream).text());
    document.head.append(library);
  };
  // A browser too old to unpack it keeps every table open instead.
  const vega = document.getElementById("vega");
  if (!vega || window.DecompressionStream) {
    root.classList.add("js");
    for (const one of document.querySelectorAll("details[open]")) one.open = false;
  }
  if (vega && window.DecompressionStream) unpack(vega.textContent).then(draw);

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
    if (table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const text = head.textContent;
      if (!text.trim()) return;
      const button = make("button", text);
      button.type = "button";
      head.textContent = "";
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, head, at));
    });
  }

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
      const said = (value) => (value === null ? "n/a" : value.toFixed(4));
      if (user.had) grid.append(block("History", some(user.n_had, user.had.length), user.had, null, "ul"));
      if (user.wanted) grid.append(block("Relevant", some(user.n_wanted, user.wanted.length), user.wanted, null, "ul"));
      held.models.forEach((name, at) => {
        const list = user.lists ? user.lists[at] : null;
        if (list) grid.append(block(name, said(user.values[at]), list, wanted, "ol"));
        else {
          const part = make("div"), head = make("h4", name);
          head.append(make("span", said(user.values[at])));
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
  const theme = document.getElementById("theme");
  if (theme) {
    const kinds = ["auto", "light", "dark"];
    theme.hidden = false;
    theme.addEventListener("click", () => {
      const next = kinds[(kinds.indexOf(root.dataset.theme || "auto") + 1) % 3];
      if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
      theme.textContent = `Theme: ${next}`;
    });
  }
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
