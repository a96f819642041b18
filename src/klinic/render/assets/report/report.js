// The page: mount it on an element, hand it a document, hand it the next one when the run has grown.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const el = K.el;
  let root = null;
  let documents = [];
  let group = null;
  let options = {};
  let waiting = [];
  let watcher = null;

  // Call once the element stands in the page and has a width, and again when its width changes.
  K.after = (act, host) => waiting.push([act, host]);

  // Call once when the element comes into view.
  K.seen = (node, act) => {
    node.onseen = act;
    watcher.observe(node);
  };

  function settle() {
    const now = waiting;
    waiting = [];
    for (const [act, host] of now) {
      act();
      const sizes = new ResizeObserver(() => (host.isConnected ? act() : sizes.disconnect()));
      sizes.observe(host);
    }
  }
  K.settle = settle;

  function theme() {
    if (!options.switches) return;
    if (K.state.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = K.state.theme;
  }

  function header(doc) {
    const state = K.state;
    const choose = (key, values, name) =>
      el("label", { class: "choice" }, el("span", { class: "hidden", text: K.say(key) }),
        el("select", { "data-key": key, on: { change: (event) => { state[key] = event.target.value; keep(); redraw(); } } },
          values.map((value) => el("option", { value, selected: state[key] === value, text: name(value) }))));
    return el("header", { class: "top" },
      el("div", {},
        el("h1", {}, doc.run.name),
        el("p", { class: "muted", text: K.say("run", { trainer: doc.run.trainer, logged: doc.run.logged, first: doc.run.first, last: doc.run.last }) })),
      options.switches
        ? el("div", { class: "switches" },
            choose("lang", ["en", "zh"], (v) => (v === "zh" ? "中文" : "English")),
            choose("theme", ["auto", "light", "dark"], (v) => K.say(`theme.${v}`)),
            el("button", { type: "button", "data-key": "print", text: K.say("print"), on: { click: () => globalThis.print() } }))
        : null);
  }

  function runs() {
    if (documents.length < 2) return null;
    return el("nav", { class: "runs", "aria-label": K.say("runs") }, el("ul", {}, documents.map((doc, i) =>
      el("li", {}, el("button", { type: "button", class: doc.status, "aria-current": i === K.state.run ? "true" : null, "data-key": `run ${i}`, on: { click: () => { K.state.run = i; K.state.zoom = null; redraw(); } } },
        el("strong", { text: doc.run.name }), el("span", { text: `${K.text(doc.statusText)}${doc.failure ? ` · ${doc.failure}` : ""}` }))))));
  }

  // What a reader chose for every report of this browser; a page from a file may have no storage.
  function keep() {
    if (!options.switches) return;
    try {
      localStorage.setItem("klinic", JSON.stringify({ lang: K.state.lang, theme: K.state.theme }));
    } catch {
      // Private windows and some file:// pages refuse: then the choice lasts as long as the page.
    }
  }

  function redraw() {
    if (!root || !documents.length) return;
    const doc = documents[Math.min(K.state.run, documents.length - 1)];
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
    const scroll = [globalThis.scrollX, globalThis.scrollY];
    const cursor = group ? group.cursor : null;
    if (group) group.destroy();
    if (watcher) watcher.disconnect();
    watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watcher.unobserve(entry.target);
        entry.target.onseen();
      }
    }, { rootMargin: "200px" });
    waiting = [];
    K.words = doc.words;
    theme();
    if (options.switches) document.documentElement.lang = K.state.lang === "zh" ? "zh-Hans" : "en";
    const model = group && group.model.doc === doc ? group.model : new K.Model(doc);
    const evaluations = doc.parts.evaluations.length ? Array.from(model.curve(doc.parts.evaluations[0]).steps) : [];
    group = new K.Group(model, { evaluations: evaluations.length <= 100 ? evaluations : [] });
    root.classList.add("klinic-report");
    root.replaceChildren(...[
      header(doc),
      runs(),
      el(options.switches ? "main" : "div", {},
        K.verdict(doc), K.panels(doc, group, redraw), K.views(doc, group, redraw), K.samples(doc), K.findings(doc), K.metrics(doc, group), K.reading(doc)),
      el("footer", { class: "muted", text: K.say("made", { version: doc.klinic }) }),
    ].filter(Boolean));
    group.charts.forEach((chart) => chart.show());
    settle();
    group.cursor = cursor;
    if (cursor !== null) group.move(cursor);
    if (focused) {
      const again = root.querySelector(`[data-key="${CSS.escape(focused)}"]`);
      if (again) again.focus({ preventScroll: true });
    }
    globalThis.scrollTo(...scroll);
  }

  // element: where the report goes. given: {lang, theme, switches}; switches: false where the page around has its own.
  K.mount = (element, given) => {
    root = element;
    options = { switches: true, ...given };
    if (options.lang) K.state.lang = options.lang;
    if (options.theme) K.state.theme = options.theme;
    redraw();
  };

  // A document of klinic.render.report.data, or several, worst first; zoom, choices and what is open stay as they are.
  K.update = (given) => {
    documents = Array.isArray(given) ? given : [given];
    redraw();
  };

  // Change a choice from outside: klinicReport.choose({lang: "zh"}).
  K.choose = (choices) => {
    Object.assign(K.state, choices);
    redraw();
  };

  let printing = null;
  globalThis.addEventListener("beforeprint", () => {
    if (!root) return;
    printing = K.state.theme;
    K.state.theme = "light";
    redraw();
  });
  globalThis.addEventListener("afterprint", () => {
    if (printing === null) return;
    K.state.theme = printing;
    printing = null;
    redraw();
  });
  globalThis.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

  function start() {
    const place = document.getElementById("klinic-report");
    const data = document.getElementById("klinic-data");
    if (!place || !data) return;
    try {
      Object.assign(K.state, JSON.parse(localStorage.getItem("klinic") || "{}"));
    } catch {
      // No storage: the file's own language, the system's colours.
    }
    if (!localStorageHas()) K.state.lang = place.dataset.lang;
    K.mount(place, {});
    K.update(JSON.parse(data.textContent));
  }

  function localStorageHas() {
    try {
      return localStorage.getItem("klinic") !== null;
    } catch {
      return false;
    }
  }

  start();
})();
