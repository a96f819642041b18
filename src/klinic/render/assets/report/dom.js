// Elements, words and numbers. Text goes in as text only: nothing that a log says can become markup.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const SVG = "http://www.w3.org/2000/svg";

  // What the reader chose; it outlives an update.
  K.state = {
    lang: "en",
    theme: "auto",
    axis: "step",
    log: false,
    smooth: 0,
    zoom: null,
    run: 0,
    open: {},
    query: "",
    plane: "reward",
  };

  function fill(node, props, children) {
    for (const [key, value] of Object.entries(props || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "text") node.textContent = value;
      else if (key === "on") for (const [name, act] of Object.entries(value)) node.addEventListener(name, act);
      else if (key === "value" || key === "checked") node[key] = value;
      else node.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(2)) if (child !== null && child !== undefined && child !== "") node.append(child);
    return node;
  }

  K.el = (tag, props, ...children) => fill(document.createElement(tag), props, children);
  K.svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

  // A text of the document: a string, or one in each language.
  K.text = (both) => (both === null || both === undefined ? "" : typeof both === "string" ? both : both[K.state.lang]);

  // A sentence of the page itself.
  K.say = (key, values) => {
    const found = (K.words[K.state.lang] || K.words.en)[key] || key;
    return found.replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole));
  };

  K.figure = (value) => {
    if (value === null || value === undefined) return "";
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
    if (size >= 1e4) return String(Math.round(value));
    return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
  };

  // A place on the x axis in words: a step, hours and minutes, or tokens.
  K.placed = (x, kind) => {
    if (kind === "time") {
      const minutes = Math.round(x / 60);
      if (x < 120) return `${Math.round(x)} s`;
      return minutes < 120 ? `${minutes} min` : `${K.figure(x / 3600)} h`;
    }
    if (kind === "tokens") {
      for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (x >= size) return K.figure(x / size) + unit;
    }
    return String(Math.round(x));
  };

  // A disclosure that stays open over an update, and fills itself when it is first opened.
  K.fold = (key, summary, make, props) => {
    const body = K.el("div", { class: "fold-body" });
    let made = false;
    const open = () => {
      if (!made) body.append(...[make()].flat());
      made = true;
    };
    const details = K.el("details", { ...props, open: Boolean(K.state.open[key]) }, K.el("summary", {}, summary), body);
    if (details.open) open();
    details.addEventListener("toggle", () => {
      K.state.open[key] = details.open;
      if (!details.open) return;
      open();
      K.settle(); // what it holds is in the page now, so its width is known
    });
    return details;
  };

  K.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--k-${name}`).trim();
})();
