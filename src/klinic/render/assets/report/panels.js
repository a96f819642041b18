// The eight curves in their fixed order, each with what speaks for and against beside it, and the controls of all of them.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const el = K.el;
  const HEIGHT = 168;
  const TOLD = 3; // lines of evidence beside a panel; the others unfold
  K.COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

  function speaking(doc, panel) {
    const mine = (e) => panel.speaks.includes(e.metric) || e.metric === panel.curve || (panel.role === "acc" && e.metric.startsWith("acc_task/"));
    const shown = [];
    const ruled = [];
    for (const finding of doc.findings) {
      for (const e of finding.evidence) {
        if (!mine(e)) continue;
        if (finding.status === "ruled_out") ruled.push({ finding, e });
        else shown.push({ finding, e });
      }
    }
    return { shown, ruled };
  }

  function line({ finding, e }, panel) {
    const kind = finding.status === "ruled_out" ? "rules-out" : finding.status === "benign" ? "benign" : e.says;
    const word = kind === "for" ? K.say("for", { failure: finding.failure }) : kind === "against" ? K.say("against", { failure: finding.failure }) : kind === "benign" ? K.say("fine", { failure: finding.failure }) : K.say("rules", { failure: finding.failure });
    const own = panel.role === e.metric || panel.shown === e.metric;
    const numbers = [own ? "" : K.text(e.title), e.levels, K.text(e.shape)].filter(Boolean).join("  ");
    return el("li", { class: `evidence ${kind}` }, el("span", { class: "says", text: word }), el("span", { text: K.text(e.text) }), numbers ? el("span", { class: "muted figures", text: numbers }) : null);
  }

  function evidence(doc, panel) {
    const { shown, ruled } = speaking(doc, panel);
    if (!shown.length && !ruled.length) return null;
    const slugs = [...new Set(ruled.map(({ finding }) => finding.failure))];
    return el("div", { class: "speaks" },
      shown.length ? el("ul", { class: "plain" }, shown.slice(0, TOLD).map((x) => line(x, panel))) : null,
      shown.length > TOLD
        ? K.fold(`more ${panel.role}`, K.say("more.count", { n: shown.length - TOLD }), () => el("ul", { class: "plain" }, shown.slice(TOLD).map((x) => line(x, panel))), { class: "more" })
        : null,
      ruled.length
        ? K.fold(`rules ${panel.role}`, [el("span", { class: "says", text: K.say("rules.count", { n: slugs.length }) }), " ", el("span", { class: "muted", text: slugs.join(", ") })],
            () => el("ul", { class: "plain" }, ruled.map((x) => line(x, panel))), { class: "rules-out" })
        : null);
  }

  function panel(doc, group, spec) {
    const model = group.model;
    const id = `panel-${spec.role}`;
    const standIn = spec.shown !== spec.role;
    const value = el("output", { class: "value", "aria-hidden": "true" });
    const title = el("h3", { id }, standIn ? [el("em", { text: K.text(spec.title) }), el("small", { text: K.say("stands.in", { role: spec.role }) })] : [spec.role, el("small", { text: K.text(spec.title) === spec.role ? "" : K.text(spec.title) })]);
    if (!spec.curve) {
      return el("article", { class: "panel empty", "aria-labelledby": id }, el("header", {}, title), el("p", { class: "absent", text: K.text(spec.absent) }), evidence(doc, spec));
    }
    const meta = doc.curves[spec.curve];
    const label = standIn ? K.text(spec.title) : spec.role;
    const n = model.curve(spec.curve).values.length;
    const curves = [{ name: spec.curve, label, colour: K.colour("accent"), points: n < 40 }];
    spec.overlays.forEach((name, i) => curves.push({ name, label: name.replace("eval/", ""), colour: K.colour(K.COLOURS[(i + 1) % 8]), points: true }));
    const show = (step) => {
      const near = model.at(spec.curve, step ?? doc.run.last);
      value.textContent = `${K.figure(near.value)}${step === null || step === undefined ? "" : ` @ ${near.step}`}`;
    };
    const chart = new K.Chart(group, {
      curves, bands: spec.bands, line: spec.line, height: HEIGHT, marks: true, oncursor: show,
      label: K.say("chart.label", { name: label, healthy: K.text(spec.healthy) }),
    });
    show(null);
    return el("article", { class: "panel", "aria-labelledby": id },
      el("header", {}, title, value),
      el("p", { class: "muted source" }, el("code", { text: meta.key }), meta.unit && meta.unit !== "1" ? ` ${meta.unit}` : "", spec.bands.length ? ` · ${K.say("band", { list: spec.bands.map((b) => b.map((x) => x.split(/[/_]/).pop()).join("–")).join(", ") })}` : ""),
      chart.host,
      curves.length > 1 ? legend(curves) : null,
      evidence(doc, spec),
      K.fold(`table ${spec.role}`, K.say("read"), () => [
        el("p", {}, el("strong", { text: `${K.say("healthy")}: ` }), K.text(spec.healthy)),
        el("p", {}, el("strong", { text: `${K.say("abnormal")}: ` }), K.text(spec.abnormal)),
        el("p", { class: "muted", text: meta.definition }),
        K.table(model, curves),
      ], { class: "more" }));
  }

  function legend(curves) {
    return el("ul", { class: "legend" }, curves.map(({ label, colour }) => {
      const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = colour;
      return el("li", {}, swatch, label);
    }));
  }
  K.legend = legend;

  K.controls = (doc, group, redraw) => {
    const state = K.state;
    const axes = ["step", "time", "tokens"].filter((kind) => kind === "step" || doc.clocks[kind]);
    if (!axes.includes(state.axis)) state.axis = "step";
    const choice = (kind) => el("label", {}, el("input", { type: "radio", name: "klinic-axis", value: kind, checked: state.axis === kind, "data-key": `axis ${kind}`, on: { change: () => { state.axis = kind; redraw(); } } }), K.say(`axis.${kind}`));
    const reset = el("button", { type: "button", "data-key": "reset", text: K.say("reset"), disabled: !state.zoom, on: { click: () => group.zoom(null) } });
    group.onzoom = () => (reset.disabled = !state.zoom);
    const amount = el("output", { text: state.smooth ? `${state.smooth} %` : K.say("off") });
    const slider = el("input", { type: "range", min: 0, max: 20, step: 1, value: String(state.smooth), "data-key": "smooth", on: { input: (event) => { state.smooth = Number(event.target.value); amount.textContent = state.smooth ? `${state.smooth} %` : K.say("off"); }, change: redraw } });
    return el("div", { class: "controls", role: "group", "aria-label": K.say("controls") },
      axes.length > 1 ? el("fieldset", {}, el("legend", { text: K.say("axis") }), axes.map(choice)) : null,
      el("label", {}, K.say("smooth"), slider, amount),
      el("label", {}, el("input", { type: "checkbox", checked: state.log, "data-key": "log", on: { change: (event) => { state.log = event.target.checked; redraw(); } } }), K.say("log")),
      reset,
      el("span", { class: "muted keys", text: K.say("keys") }));
  };

  function marks(doc, group) {
    const m = doc.marks;
    const items = [];
    const item = (name, symbol, text) => items.push(el("li", {}, el("span", { class: `mark ${name}`, "aria-hidden": "true", text: symbol }), text));
    if (doc.onset) item("sick", "▮", K.say("mark.onset", doc.onset));
    if (m.checkpoints.length) item("ok", "▲", K.say("mark.checkpoints", { list: m.checkpoints.map((c) => c.step).join(", ") }));
    if (m.segments.length > 1) item("", "┊", K.say("mark.segments", { list: m.segments.slice(1).map((s) => s.first).join(", ") }));
    if (group.marks.evaluations.length) item("", "▘", K.say("mark.evaluations", { n: group.marks.evaluations.length }));
    if (m.events.length) item("caution", "◆", K.say("mark.events", { n: m.events.length }));
    return items.length ? el("ul", { class: "legend marks", "aria-label": K.say("marks") }, items) : null;
  }

  K.panels = (doc, group, redraw) =>
    el("section", { "aria-labelledby": "curves" },
      el("h2", { id: "curves", text: K.say("curves") }),
      K.controls(doc, group, redraw),
      marks(doc, group),
      el("div", { class: "panels" }, doc.panels.map((spec) => panel(doc, group, spec))));
})();
