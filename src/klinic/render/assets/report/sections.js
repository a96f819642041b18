// What stands below the curves: the plane, the parts, every finding, all other metrics, samples, and how the log was read.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const el = K.el;
  const DRAWN = 8; // curves in one chart: as many as colours can be told apart

  function section(id, title, ...content) {
    return el("section", { "aria-labelledby": id }, el("h2", { id, text: title }), content);
  }

  function together(doc, group, key, names) {
    const curves = names.slice(0, DRAWN).map((name, i) => ({ name, label: name.slice(name.indexOf("/") + 1), colour: K.colour(K.COLOURS[i]), points: group.model.curve(name).values.length < 40 }));
    const chart = new K.Chart(group, { curves, height: 260, label: K.say(key), marks: false });
    return el("article", { class: "panel" }, el("header", {}, el("h3", { text: K.say(key) })),
      names.length > DRAWN ? el("p", { class: "muted", text: K.say("first.of", { n: DRAWN, all: names.length }) }) : null,
      chart.host, K.legend(curves), K.fold(`table ${key}`, K.say("table"), () => K.table(group.model, curves), { class: "more" }));
  }

  function plane(doc, group, redraw) {
    const of = (role) => doc.panels.find((p) => p.role === role);
    const kl = of("kl");
    const gains = ["reward", "acc"].map(of).filter((p) => p.curve && group.model.curve(p.curve).values.length > 2);
    if (!kl.curve || !gains.length) return null;
    const gain = gains.find((p) => p.role === K.state.plane) || gains[0];
    const host = el("div", { class: "plane-host" });
    const draw = () => {
      const width = host.clientWidth;
      if (!width) return;
      const made = K.plane(group.model, { name: kl.curve, label: kl.shown }, { name: gain.curve, label: gain.shown }, width);
      host.replaceChildren(made || K.say("plane.none"));
    };
    K.after(draw, host);
    const choose = gains.length > 1
      ? el("label", { class: "choice" }, K.say("plane.against"), el("select", { "data-key": "plane", on: { change: (event) => { K.state.plane = event.target.value; redraw(); } } }, gains.map((p) => el("option", { value: p.role, selected: p === gain, text: p.role }))))
      : null;
    return el("article", { class: "panel" }, el("header", {}, el("h3", { text: K.say("plane", { y: gain.role }) }), choose), el("p", { class: "muted", text: K.say("plane.how") }), host);
  }

  function heat(doc, group) {
    const names = doc.parts.positions;
    if (names.length < 2) return null;
    const curves = names.map((name) => ({ name, label: name.slice(name.lastIndexOf("/") + 1) }));
    return el("article", { class: "panel" }, el("header", {}, el("h3", { text: K.say("heat") })), el("p", { class: "muted", text: K.say("heat.how") }),
      K.heat(group.model, names), K.fold("table heat", K.say("table"), () => K.table(group.model, curves), { class: "more" }));
  }

  K.views = (doc, group, redraw) => {
    const made = [
      plane(doc, group, redraw),
      doc.parts.reward.length ? together(doc, group, "parts", doc.parts.reward) : null,
      heat(doc, group),
      doc.parts.evaluations.length ? together(doc, group, "evaluations", doc.parts.evaluations) : null,
    ].filter(Boolean);
    return made.length ? section("views", K.say("views"), el("div", { class: "panels" }, made)) : null;
  };

  function row(finding) {
    const texts = finding.evidence.map((e) => el("li", {}, el("span", { class: "muted", text: `${K.text(e.title)} ` }), K.text(e.text)));
    const missing = finding.missing.map((m) => el("li", {}, el("code", { text: m.metric }), " ", el("span", { class: "muted", text: K.text(m.how) })));
    const crashed = finding.crashed ? el("li", { text: K.say("crashed", { what: finding.crashed }) }) : null;
    return el("tr", { class: finding.status },
      el("th", { scope: "row" }, K.text(finding.title), el("code", { text: finding.failure })),
      el("td", {}, K.say(`is.${finding.status}`), finding.because ? el("span", { class: "muted", text: ` ${K.say("of", { failure: finding.because })}` }) : null, el("div", { class: "muted", text: K.text(finding.since) })),
      el("td", {}, el("ul", { class: "plain" }, texts, missing, crashed)));
  }

  K.findings = (doc) => {
    if (!doc.findings.length) return null;
    const of = (...statuses) => doc.findings.filter((f) => statuses.includes(f.status));
    const fold = (key, list) => list.length
      ? K.fold(`findings ${key}`, K.say(`findings.${key}`, { n: list.length }), () =>
          el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": K.say(`findings.${key}`, { n: list.length }) },
            el("table", { class: "findings" }, el("thead", {}, el("tr", {}, ["failure", "status", "because"].map((h) => el("th", { scope: "col", text: K.say(`head.${h}`) })))), el("tbody", {}, list.map(row)))))
      : null;
    return section("findings", K.say("findings"), doc.stages ? el("p", { class: "muted", text: K.text(doc.stages) }) : null,
      fold("present", of("present", "consequence")), fold("benign", of("benign")), fold("ruled", of("ruled_out")), fold("unchecked", of("not_checked")));
  };

  function metric(doc, group, name) {
    const given = doc.curves[name];
    const values = group.model.curve(name).values;
    const summary = [
      el("span", { class: "name" }, el("code", { text: name }), el("small", { text: K.text(given.title) })),
      el("span", { class: "holder" }),
      el("span", { class: "last", text: K.figure(values[values.length - 1]) }),
    ];
    const item = K.fold(`metric ${name}`, summary, () => {
      const chart = new K.Chart(group, { curves: [{ name, label: name, colour: K.colour("accent"), points: values.length < 40 }], height: 200, label: name, marks: true });
      K.after(() => chart.show(), chart.host);
      return [el("p", { class: "muted" }, el("code", { text: given.key }), given.unit && given.unit !== "1" ? ` ${given.unit}` : "", ` · ${given.definition}`), chart.host,
        K.fold(`table metric ${name}`, K.say("table"), () => K.table(group.model, [{ name, label: name }]), { class: "more" })];
    }, { class: "metric" });
    K.seen(item, () => item.querySelector(".holder").append(K.spark(group.model, name)));
    return item;
  }

  K.metrics = (doc, group) => {
    const shown = new Set(doc.panels.map((p) => p.curve));
    const names = Object.keys(doc.curves).filter((name) => !shown.has(name)).sort();
    if (!names.length) return null;
    const list = el("div", { class: "metrics" });
    const count = el("output", { class: "muted", "aria-live": "polite" });
    const items = names.map((name) => {
      const given = doc.curves[name];
      const titles = typeof given.title === "string" ? given.title : Object.values(given.title).join(" ");
      return { words: `${name} ${given.key} ${titles} ${given.definition}`.toLowerCase(), node: metric(doc, group, name) };
    });
    list.append(...items.map((item) => item.node));
    const filter = () => {
      const asked = K.state.query.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const item of items) {
        item.node.hidden = !asked.every((word) => item.words.includes(word));
        if (!item.node.hidden) found += 1;
      }
      count.textContent = K.say("metrics.count", { n: found, all: items.length });
    };
    const search = el("input", { type: "search", value: K.state.query, placeholder: K.say("metrics.search"), "aria-label": K.say("metrics.search"), "data-key": "search", on: { input: (event) => { K.state.query = event.target.value; filter(); } } });
    filter();
    return section("metrics", K.say("metrics"), el("div", { class: "search" }, search, count), list);
  };

  K.samples = (doc) => {
    if (!doc.samples.length) return null;
    const one = (s) => el("article", { class: "sample" },
      el("header", {}, el("strong", { text: `${K.say("step")} ${s.step}` }), s.reward === null || s.reward === undefined ? null : el("span", { class: "tag", text: `reward ${K.figure(s.reward)}` }), s.why ? el("span", { class: "muted", text: K.text(s.why) }) : null),
      el("h4", { text: K.say("prompt") }), el("pre", { tabindex: "0", text: s.prompt }), el("h4", { text: K.say("completion") }), el("pre", { tabindex: "0", text: s.completion }));
    return section("samples", K.say("samples"), el("p", { class: "muted", text: K.say("samples.how") }), doc.samples.map(one));
  };

  K.reading = (doc) => {
    const m = doc.marks;
    const list = (items) => el("ul", {}, items.map((item) => el("li", {}, item)));
    return section("reading", K.say("reading"),
      K.fold("reading", K.say("reading.open"), () => [
        el("h3", { text: K.say("sources") }), list(doc.run.sources.map((s) => el("code", { text: s }))),
        doc.run.unread.length ? [el("h3", { text: K.say("unread") }), list(doc.run.unread.map((s) => el("code", { text: s })))] : null,
        m.checkpoints.length ? [el("h3", { text: K.say("checkpoints") }), list(m.checkpoints.map((c) => `${c.name} (${K.say("step")} ${c.step}${c.complete ? "" : `, ${K.say("incomplete")}`})`))] : null,
        m.segments.length > 1 ? [el("h3", { text: K.say("segments") }), list(m.segments.map((s) => `${s.first}–${s.last}`))] : null,
        m.events.length ? [el("h3", { text: K.say("events") }), list(m.events.map((e) => [el("code", { text: `${e.at} ` }), `${e.kind}${e.step === null ? "" : `, ${K.say("step")} ${e.step}`}: `, e.text]))] : null,
      ].flat(2).filter(Boolean)));
  };
})();
