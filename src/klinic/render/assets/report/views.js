// Pictures other than curves over steps: the plane of KL against what it buys, entropy by position, small curves.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const POINTS = 160; // of the plane's path: medians of equal stretches

  function ticks(low, high, count) {
    const raw = (high - low) / count || 1;
    const size = 10 ** Math.floor(Math.log10(raw));
    const by = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw);
    const out = [];
    for (let v = Math.ceil(low / by) * by; v <= high + by / 1e6; v += by) out.push(Math.abs(v) < by / 1e6 ? 0 : v);
    return out;
  }

  // Places on a logarithmic axis: 1, 2 and 5 of each decade, or decades alone; equal steps where the range is less than that.
  K.logTicks = (low, high) => {
    const out = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++) for (const m of [1, 2, 5]) if (m * 10 ** k >= low && m * 10 ** k <= high) out.push(Number(`${m}e${k}`));
    if (out.length < 3) return ticks(low, high, 4);
    const decades = out.filter((v) => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6));
    if (out.length <= 7) return out;
    const every = Math.ceil(decades.length / 7);
    return decades.filter((_, i) => i % every === 0);
  };

  // One curve as a line of 120 by 24, without axes.
  K.spark = (model, name) => {
    const points = K.medians(model.curve(name), 60);
    if (points.length < 2) return K.svg("svg", { class: "spark", viewBox: "0 0 120 24", "aria-hidden": "true" });
    const ys = points.map(([, y]) => y);
    const [low, high] = [Math.min(...ys), Math.max(...ys)];
    const [first, last] = model.doc.run.last > model.doc.run.first ? [model.doc.run.first, model.doc.run.last] : [points[0][0], points[0][0] + 1];
    const path = points.map(([x, y], i) => {
      const px = 1 + (118 * (x - first)) / (last - first);
      const py = high > low ? 22 - (20 * (y - low)) / (high - low) : 12;
      return `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    });
    return K.svg("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", "aria-hidden": "true" }, K.svg("path", { d: path.join("") }));
  };

  // The plane: each point is a stretch of the run; where it went on to the right and not up, KL bought nothing.
  K.plane = (model, kl, gain, width) => {
    const along = K.medians(model.curve(gain.name), POINTS).filter(([step]) => step >= model.curve(kl.name).steps[0]);
    const path = K.medians(model.curve(kl.name), POINTS);
    if (along.length < 3 || path.length < 3) return null;
    const steps = path.map(([s]) => s);
    const costs = path.map(([, v]) => v);
    const points = along.map(([step, y]) => ({ step, x: K.between(steps, costs, step), y }));
    const height = 300;
    const box = { left: 54, right: width - 14, top: 14, bottom: height - 40 };
    const span = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = (high - low) * 0.06 || 0.5;
      return [low - room, high + room];
    };
    const [x0, x1] = span(points.map((p) => p.x));
    const [y0, y1] = span(points.map((p) => p.y));
    const px = (x) => box.left + ((box.right - box.left) * (x - x0)) / (x1 - x0);
    const py = (y) => box.bottom - ((box.bottom - box.top) * (y - y0)) / (y1 - y0);
    const nodes = [];
    for (const y of ticks(y0, y1, 5)) {
      nodes.push(K.svg("line", { class: "grid", x1: box.left, x2: box.right, y1: py(y), y2: py(y) }));
      nodes.push(K.svg("text", { x: box.left - 7, y: py(y) + 4, "text-anchor": "end", text: K.figure(y) }));
    }
    for (const x of ticks(x0, x1, Math.max(2, Math.round(width / 110)))) {
      nodes.push(K.svg("line", { class: "grid", x1: px(x), x2: px(x), y1: box.top, y2: box.bottom }));
      nodes.push(K.svg("text", { x: px(x), y: box.bottom + 16, "text-anchor": "middle", text: K.figure(x) }));
    }
    nodes.push(K.svg("text", { class: "axis", x: box.right, y: height - 6, "text-anchor": "end", text: `${kl.label} →` }));
    const onset = model.doc.onset;
    const turn = onset ? points.findIndex((p) => p.step >= onset.step) : -1;
    const line = (some, name) => K.svg("path", { class: name, d: some.map((p, i) => `${i ? "L" : "M"}${px(p.x).toFixed(1)} ${py(p.y).toFixed(1)}`).join("") });
    if (turn > 0) nodes.push(line(points.slice(0, turn + 1), "path"), line(points.slice(turn), "path sick"));
    else nodes.push(line(points, "path"));
    points.forEach((p, i) => {
      nodes.push(K.svg("circle", { class: turn >= 0 && i >= turn ? "dot sick" : "dot", cx: px(p.x), cy: py(p.y), r: 2.2 }, K.svg("title", { text: `${K.say("step")} ${p.step}: ${kl.label} ${K.figure(p.x)}, ${gain.label} ${K.figure(p.y)}` })));
    });
    const flag = (p, text, name) => {
      const right = px(p.x) < box.right - 90;
      nodes.push(K.svg("circle", { class: `flag ${name}`, cx: px(p.x), cy: py(p.y), r: 5 }));
      nodes.push(K.svg("text", { class: "flag-text", x: px(p.x) + (right ? 9 : -9), y: py(p.y) - 7, "text-anchor": right ? "start" : "end", text }));
    };
    flag(points[0], K.say("plane.start"), "");
    if (turn > 0) flag(points[turn], K.say("plane.onset", { step: onset.step }), "sick");
    flag(points[points.length - 1], K.say("plane.end"), turn >= 0 ? "sick" : "");
    const label = K.say("plane.label", { x: kl.label, y: gain.label });
    return K.svg("svg", { class: "plane", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, nodes);
  };

  // Dark to light through blue: readable in grey and by every eye.
  function shade(t) {
    const stops = [[22, 26, 60], [38, 70, 140], [42, 120, 170], [80, 170, 160], [180, 210, 130], [250, 235, 150]];
    const at = Math.min(0.999, Math.max(0, t)) * (stops.length - 1);
    const [a, b] = [stops[Math.floor(at)], stops[Math.floor(at) + 1]];
    return a.map((v, i) => Math.round(v + (b[i] - v) * (at % 1)));
  }

  // Rows: the parts of the response, the opening on top. Columns: steps.
  K.heat = (model, names) => {
    const curves = names.map((name) => model.curve(name));
    const n = Math.min(400, curves[0].values.length);
    const canvas = K.el("canvas", { class: "heat", width: n, height: names.length, role: "img", "aria-label": K.say("heat.label") });
    const rows = curves.map((curve) => Array.from({ length: n }, (_, i) => curve.values[Math.floor((i * curve.values.length) / n)]));
    const fine = rows.flat().filter((v) => Number.isFinite(v) && v > 0).sort((a, b) => a - b);
    const low = Math.log(Math.max(1e-4, fine[Math.floor(fine.length * 0.01)] || 1e-4));
    const high = Math.log(Math.max(2e-4, fine[Math.ceil(fine.length * 0.99) - 1] || 1));
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(n, names.length);
    rows.forEach((row, r) => row.forEach((v, i) => {
      const rgb = Number.isFinite(v) ? shade((Math.log(Math.max(1e-4, v)) - low) / (high - low || 1)) : [128, 128, 128];
      image.data.set([...rgb, 255], 4 * (r * n + i));
    }));
    pen.putImageData(image, 0, 0);
    const legend = K.el("canvas", { class: "heat-legend", width: 64, height: 1, "aria-hidden": "true" });
    const ink = legend.getContext("2d");
    const ramp = ink.createImageData(64, 1);
    for (let i = 0; i < 64; i++) ramp.data.set([...shade(i / 63), 255], 4 * i);
    ink.putImageData(ramp, 0, 0);
    const run = model.doc.run;
    return K.el("div", { class: "heat-box" },
      K.el("div", { class: "heat-side" }, K.el("span", { text: K.say("heat.opening") }), K.el("span", { text: K.say("heat.ending") })),
      canvas,
      K.el("div", { class: "heat-foot" }, K.el("span", { text: `${K.say("step")} ${run.first}` }),
        K.el("span", { class: "heat-key" }, K.figure(Math.exp(low)), legend, `${K.figure(Math.exp(high))} nats/token`),
        K.el("span", { text: String(run.last) })));
  };
})();
