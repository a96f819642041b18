// The four answers, before anything else.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const el = K.el;
  const ICONS = { failing: "✕", caution: "!", healthy: "✓", unclear: "?" };

  function copier(command) {
    const button = el("button", { type: "button", class: "quiet", text: K.say("copy"), "aria-label": `${K.say("copy")}: ${command}` });
    button.addEventListener("click", () => {
      const done = () => {
        button.textContent = K.say("copied");
        setTimeout(() => (button.textContent = K.say("copy")), 1500);
      };
      if (navigator.clipboard) navigator.clipboard.writeText(command).then(done, () => {});
    });
    return button;
  }

  function named(finding) {
    const since = K.text(finding.since);
    return el("li", {}, el("strong", { text: K.text(finding.title) }), " ", el("code", { text: finding.failure }), since ? el("span", { class: "muted", text: ` ${since}` }) : null);
  }

  function group(key, findings) {
    if (!findings.length) return null;
    return [el("h4", { text: K.say(key) }), el("ul", { class: "plain" }, findings.map(named))];
  }

  function card(number, question, ...content) {
    const id = `answer-${number}`;
    return el("section", { class: "answer", "aria-labelledby": id },
      el("h3", { id }, el("span", { class: "number", "aria-hidden": "true", text: String(number) }), question), content);
  }

  function what(doc) {
    const a = doc.answers;
    const of = (status) => doc.findings.filter((f) => f.status === status && !f.main);
    const words = [K.text(doc.statusText), doc.status === "caution" && doc.severity === "caution" ? "" : K.text(a.severity), K.text(a.confidence)].filter(Boolean);
    return card(1, K.say("q1"), el("p", { class: "big", text: words.join(" · ") }),
      a.hitRate ? el("p", { class: "muted", text: K.text(a.hitRate) }) : null,
      group("also", of("present")), group("benign", of("benign")));
  }

  function when(doc) {
    const a = doc.answers;
    const follows = doc.findings.filter((f) => f.status === "consequence");
    return card(2, K.say("q2"), el("p", { class: "big", text: K.text(a.since) || K.say("no.onset") }),
      a.mover ? el("p", {}, `${K.say("mover")} `, el("strong", { text: K.text(a.mover) })) : null,
      group("follows", follows));
  }

  function first(doc) {
    const { change, then } = doc.answers;
    if (!change) return card(3, K.say("q3"), el("p", { class: "big", text: K.say("no.change") }));
    const why = K.text(change.why);
    return card(3, K.say("q3"),
      change.command
        ? el("p", { class: "command" }, el("code", { text: change.command }), copier(change.command))
        : el("p", { class: "big", text: K.text(change.text) }),
      change.old !== null ? el("p", { class: "muted", text: K.say("was", { old: change.old }) }) : null,
      why && why !== K.text(change.text) ? el("p", { text: why }) : null,
      el("p", {}, el("span", { class: "tag", text: K.text(change.restart) })),
      then.length ? [el("h4", { text: K.say("then") }), el("ol", { class: "plain" }, then.map((t) => el("li", {}, t.command ? el("code", { text: t.command }) : K.text(t.text))))] : null);
  }

  function back(doc) {
    const a = doc.answers;
    const said = K.text(a.back) || K.text(a.noCheckpoint) || K.say("no.back");
    return card(4, K.say("q4"), el("p", { class: "big", text: said }), a.smoke ? el("p", { class: "muted", text: K.text(a.smoke) }) : null);
  }

  K.verdict = (doc) => {
    const a = doc.answers;
    return el("section", { class: `verdict ${doc.status}`, "aria-labelledby": "verdict" },
      el("div", { class: "headline" },
        el("span", { class: "icon", "aria-hidden": "true", text: ICONS[doc.status] || "?" }),
        el("div", {},
          el("h2", { id: "verdict" }, K.text(a.title) || K.text(doc.statusText), doc.failure ? el("code", { text: doc.failure }) : null),
          el("p", { text: K.text(a.summary) }))),
      el("div", { class: "answers" }, what(doc), when(doc), first(doc), back(doc)),
      doc.notes.length
        ? el("div", { class: "notes" }, el("h3", { text: K.say("mind") }), el("ul", {}, doc.notes.map((n) => el("li", {}, n.metric ? [el("strong", { text: n.metric }), " "] : null, K.text(n.text)))))
        : null);
  };
})();
