"use strict";
// What the pages share; each goes on with a script of its own.
const frame = (() => {
  const root = document.documentElement;
  const make = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  const bytes = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpack = (packed) => new Response(new Blob([bytes(packed)]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  // The chart library travels compressed; the policy lets it run because it knows its hash.
  const vega = document.getElementById("vega");
  let library;
  const load = () => (library ??= unpack(vega.textContent).then((text) => document.head.append(make("script", text))));
  // Expressions are interpreted (ast), so a page needs no eval.
  const embed = async (plot, spec, config, width) => {
    const columns = Math.max(2, Math.floor(width / 140));
    const legend = { ...config.legend, columns, labelLimit: Math.floor(width / columns) - 45 };
    const made = await window.vegaEmbed(plot, spec, {
      mode: "vega-lite", ast: true, actions: false, renderer: "svg", defaultStyle: false,
      tooltip: { disableDefaultStyle: true, theme: "page" }, config: { ...config, legend },
    });
    plot.querySelector("svg").setAttribute("aria-hidden", "true");
    return made.view;
  };
  const themes = ["auto", "light", "dark"], button = document.getElementById("theme");
  const paint = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  const theme = (shown) => {
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % 3];
      paint(next);
      shown?.(next);
    });
  };
  return { root, data: JSON.parse(document.getElementById("data").textContent), make, bytes, unpack, vega, load, embed, paint, theme };
})();
