// One chart: uPlot with the onset, the bands and the marks drawn around it, moved by mouse or keyboard together with the others.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});
  const ROWS = 200; // of a data table: more are thinned, since nobody reads them
  const STRIP = 9; // pixels between the plot's floor and the marks on it

  // Charts that share their cursor and their zoom.
  class Group {
    constructor(model, marks) {
      this.model = model;
      this.marks = marks;
      this.charts = [];
      const run = model.doc.run;
      this.full = [run.first, Math.max(run.last, run.first + 1)];
      this.cursor = null;
    }

    get range() {
      const [low, high] = K.state.zoom || this.full;
      return [Math.max(low, this.full[0]), Math.min(high, this.full[1])];
    }

    zoom(range) {
      if (range) {
        const [low, high] = [Math.max(range[0], this.full[0]), Math.min(range[1], this.full[1])];
        if (high - low < 2) return;
        range = high - low >= this.full[1] - this.full[0] ? null : [low, high];
      }
      K.state.zoom = range;
      this.charts.forEach((chart) => chart.view());
      if (this.onzoom) this.onzoom();
    }

    // Put every cursor on a step.
    move(step) {
      const [low, high] = this.range;
      this.cursor = Math.min(high, Math.max(low, step));
      for (const chart of this.charts) chart.point(this.cursor);
    }

    destroy() {
      this.charts.forEach((chart) => chart.destroy());
      this.charts = [];
    }
  }

  class Chart {
    // spec: {curves: [{name, label, colour, points}], bands: [[low, high]], line, label, height, marks, oncursor}
    constructor(group, spec) {
      this.group = group;
      this.spec = spec;
      this.host = K.el("div", {
        class: "chart",
        tabindex: "0",
        role: "slider",
        "aria-label": spec.label,
        "aria-orientation": "horizontal",
        "aria-valuemin": group.full[0],
        "aria-valuemax": group.full[1],
        "aria-valuenow": group.full[1],
        "data-key": `chart ${spec.curves[0].name}`,
        on: { keydown: (event) => this.key(event), focus: () => group.move(group.cursor ?? group.full[1]) },
      });
      group.charts.push(this);
      this.speak(group.full[1]);
    }

    // Draw into the page; the host must be in it, so that its width is known.
    show() {
      const width = this.host.clientWidth;
      if (!width || this.plot) return;
      this.plot = new uPlot(this.options(width), this.data(width), this.host);
      this.resize = new ResizeObserver(() => {
        const now = this.host.clientWidth;
        if (now && now !== this.plot.width) {
          this.plot.setSize({ width: now, height: this.spec.height });
          this.view();
        }
      });
      this.resize.observe(this.host);
    }

    destroy() {
      if (this.resize) this.resize.disconnect();
      if (this.plot) this.plot.destroy();
      this.plot = null;
    }

    x(step) {
      return this.group.model.place(step, K.state.axis);
    }

    values(name) {
      const curve = this.group.model.curve(name);
      if (K.state.smooth < 1) return curve.values;
      const width = Math.max(3, Math.round((K.state.smooth / 100) * curve.values.length)) | 1;
      if (!this.smoothed || this.width !== K.state.smooth) {
        this.smoothed = new Map();
        this.width = K.state.smooth;
      }
      if (!this.smoothed.has(name)) this.smoothed.set(name, K.smooth(curve.values, width));
      return this.smoothed.get(name);
    }

    // Aligned columns for uPlot of what lies in view; the raw curve comes first where a smooth one is drawn over it.
    data(width) {
      const [low, high] = this.group.range.map((step) => this.x(step));
      const columns = Math.max(50, Math.round(width));
      const accept = this.log ? (y) => y > 0 : () => true;
      const tables = [];
      for (const { name } of this.spec.curves) {
        const xs = this.group.model.axis(this.group.model.curve(name).grid, K.state.axis);
        if (this.raw) tables.push(K.thin(xs, this.group.model.curve(name).values, low, high, columns, accept));
        tables.push(K.thin(xs, this.values(name), low, high, columns, accept));
      }
      this.range = [low, high > low ? high : low + 1];
      this.levels = this.extent(tables, low, high);
      return tables.length === 1 ? tables[0] : uPlot.join(tables);
    }

    // A curve that is mostly zero or negative stays on its linear axis.
    get log() {
      if (!K.state.log) return false;
      return this.spec.curves.some(({ name }) => {
        const finite = this.group.model.curve(name).values.filter(Number.isFinite);
        return 2 * finite.filter((y) => y > 0).length > finite.length;
      });
    }

    get raw() {
      return K.state.smooth >= 1 && this.spec.curves.length < 4;
    }

    extent(tables, low, high) {
      let least = Infinity;
      let most = -Infinity;
      const see = (xs, ys) => {
        for (let i = 0; i < xs.length; i++) {
          if (ys[i] === null || xs[i] < low || xs[i] > high || !Number.isFinite(ys[i])) continue;
          if (this.log && ys[i] <= 0) continue;
          least = Math.min(least, ys[i]);
          most = Math.max(most, ys[i]);
        }
      };
      tables.forEach(([xs, ys]) => see(xs, ys));
      for (const name of (this.spec.bands || [])[0] || []) {
        const curve = this.group.model.curve(name);
        see(this.group.model.axis(curve.grid, K.state.axis), curve.values);
      }
      if (least > most) return this.log ? [0.1, 1] : [0, 1];
      if (this.spec.line !== null && this.spec.line !== undefined) {
        least = Math.min(least, this.spec.line * 0.95);
        most = Math.max(most, this.spec.line * 1.05);
      }
      if (this.log) return most > least * 1.05 ? [least / 1.1, most * 1.1] : [least / 2, most * 2];
      const room = (most - least) * 0.08 || Math.abs(most) * 0.1 || 0.5;
      return [least - room, most + room];
    }

    options(width) {
      const ink = K.colour("muted");
      const grid = { stroke: K.colour("grid"), width: 1 };
      const font = '11px system-ui, "Noto Sans CJK SC", sans-serif';
      const series = [{}];
      for (const { colour, points } of this.spec.curves) {
        const line = { stroke: colour, width: 1.6, spanGaps: this.spec.curves.length > 1, points: { show: Boolean(points), size: 5, fill: colour } };
        if (this.raw) series.push({ ...line, width: 1, alpha: 0.28, points: { show: false } });
        series.push(line);
      }
      return {
        width,
        height: this.spec.height,
        padding: [8, 10, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          sync: { key: "klinic", scales: ["x", null] },
          drag: { x: true, y: false, setScale: false },
          points: { size: 7 },
          bind: { dblclick: () => () => this.group.zoom(null) },
        },
        scales: {
          x: { time: false, range: () => this.range },
          y: { distr: this.log ? 3 : 1, range: () => this.levels },
        },
        axes: [
          { stroke: ink, grid, ticks: { ...grid, size: 4 }, font, size: 26, gap: 3, space: 64, values: (_, ticks) => ticks.map((x) => K.placed(x, K.state.axis)) },
          { stroke: ink, grid, ticks: { ...grid, size: 4 }, font, size: 50, gap: 4, space: 28, ...(this.log ? { splits: (_, __, low, high) => K.logTicks(low, high), filter: (_, splits) => splits } : {}), values: (_, ticks) => ticks.map((y) => (y === null ? "" : K.figure(y))) },
        ],
        series,
        hooks: {
          drawAxes: [(plot) => this.under(plot)],
          draw: [(plot) => this.over(plot)],
          setCursor: [(plot) => this.moved(plot)],
          setSelect: [(plot) => this.selected(plot)],
        },
      };
    }

    // Bands, the onset and the line of reference, below the curves.
    under(plot) {
      const { ctx, bbox } = plot;
      const at = (step) => plot.valToPos(this.x(step), "x", true);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      (this.spec.bands || []).forEach((pair, i) => this.band(plot, pair, i === 0 ? 0.22 : 0.1));
      const onset = this.group.model.doc.onset;
      if (onset) {
        const from = at(onset.low);
        ctx.fillStyle = K.colour("onset");
        ctx.fillRect(from, bbox.top, Math.max(2 * devicePixelRatio, at(onset.high) - from), bbox.height);
        this.rule(ctx, at(onset.step), bbox, K.colour("sick"), []);
      }
      for (const segment of this.group.model.doc.marks.segments.slice(1)) this.rule(ctx, at(segment.first), bbox, K.colour("muted"), [5, 4]);
      if (this.spec.line !== null && this.spec.line !== undefined) {
        const y = plot.valToPos(this.spec.line, "y", true);
        ctx.strokeStyle = K.colour("sick");
        ctx.setLineDash([6, 4]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
      }
      ctx.restore();
    }

    rule(ctx, x, bbox, colour, dash) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }

    band(plot, [low, high], alpha) {
      const { ctx } = plot;
      const [from, to] = this.range;
      const edge = (name) => {
        const curve = this.group.model.curve(name);
        const accept = this.log ? (y) => y > 0 : () => true;
        return K.thin(this.group.model.axis(curve.grid, K.state.axis), this.values(name), from, to, 400, accept);
      };
      ctx.beginPath();
      let begun = false;
      const walk = ([xs, ys], back) => {
        for (let k = 0; k < xs.length; k++) {
          const i = back ? xs.length - 1 - k : k;
          if (ys[i] === null) continue;
          const spot = [plot.valToPos(xs[i], "x", true), plot.valToPos(ys[i], "y", true)];
          if (begun) ctx.lineTo(...spot);
          else ctx.moveTo(...spot);
          begun = true;
        }
      };
      walk(edge(high), false);
      walk(edge(low), true);
      ctx.closePath();
      ctx.globalAlpha = alpha;
      ctx.fillStyle = K.colour("accent");
      ctx.fill();
      ctx.globalAlpha = 1;
    }

    // Checkpoints, evaluations, events and what was not finite, above the curves.
    over(plot) {
      const { ctx, bbox } = plot;
      const ratio = devicePixelRatio;
      const [low, high] = this.group.range;
      const at = (step) => plot.valToPos(this.x(step), "x", true);
      const floor = bbox.top + bbox.height;
      ctx.save();
      const shape = (x, y, points, colour) => {
        ctx.fillStyle = colour;
        ctx.beginPath();
        points.forEach(([dx, dy], i) => (i ? ctx.lineTo(x + dx * ratio, y + dy * ratio) : ctx.moveTo(x + dx * ratio, y + dy * ratio)));
        ctx.fill();
      };
      const seen = (step) => step !== null && step >= low && step <= high;
      if (this.spec.marks) {
        const { checkpoints, events } = this.group.model.doc.marks;
        for (const step of this.group.marks.evaluations) if (seen(step)) shape(at(step), floor, [[-1, 0], [1, 0], [1, -5], [-1, -5]], K.colour("muted"));
        for (const c of checkpoints) if (seen(c.step)) shape(at(c.step), floor, [[-5, 0], [5, 0], [0, -STRIP]], K.colour(c.complete ? "ok" : "caution"));
        for (const e of events) if (seen(e.step)) shape(at(e.step), bbox.top + 5 * ratio, [[0, -5], [5, 0], [0, 5], [-5, 0]], K.colour("caution"));
      }
      const curve = this.group.model.curve(this.spec.curves[0].name);
      ctx.strokeStyle = K.colour("sick");
      ctx.lineWidth = 1.5 * ratio;
      let last = -9;
      for (let i = 0; i < curve.values.length; i++) {
        if (Number.isFinite(curve.values[i]) || !seen(curve.steps[i])) continue;
        const x = at(curve.steps[i]);
        if (x - last < 6) continue;
        last = x;
        const s = 3.5 * ratio;
        const y = floor - 8 * ratio;
        ctx.beginPath();
        ctx.moveTo(x - s, y - s);
        ctx.lineTo(x + s, y + s);
        ctx.moveTo(x - s, y + s);
        ctx.lineTo(x + s, y - s);
        ctx.stroke();
      }
      ctx.restore();
    }

    moved(plot) {
      const left = plot.cursor.left;
      if (left === undefined || left < 0) {
        if (this.spec.oncursor) this.spec.oncursor(null);
        return;
      }
      const step = this.group.model.step(plot.posToVal(left, "x"), K.state.axis);
      this.group.cursor = step;
      this.speak(step);
      if (this.spec.oncursor) this.spec.oncursor(step);
    }

    selected(plot) {
      const { left, width } = plot.select;
      if (width < 4) return;
      const ends = [left, left + width].map((x) => this.group.model.step(plot.posToVal(x, "x"), K.state.axis));
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.group.zoom(ends);
    }

    point(step) {
      if (!this.plot) return;
      this.plot.setCursor({ left: this.plot.valToPos(this.x(step), "x"), top: this.plot.over.clientHeight / 2 }, true, false);
    }

    speak(step) {
      const said = this.spec.curves.slice(0, 4).map(({ name, label }) => `${label} ${K.figure(this.group.model.at(name, step).value)}`);
      this.host.setAttribute("aria-valuenow", String(Math.round(step)));
      this.host.setAttribute("aria-valuetext", `${K.say("step")} ${Math.round(step)}: ${said.join(", ")}`);
    }

    view() {
      if (!this.plot) return;
      const data = this.data(this.plot.width);
      this.plot.batch(() => {
        this.plot.setData(data, false);
        this.plot.setScale("x", { min: this.range[0], max: this.range[1] });
        this.plot.setScale("y", { min: this.levels[0], max: this.levels[1] });
      });
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const group = this.group;
      const curve = group.model.curve(this.spec.curves[0].name);
      const [low, high] = group.range;
      const now = group.cursor ?? high;
      const hop = (by) => curve.steps[Math.min(curve.steps.length - 1, Math.max(0, K.nearest(curve.steps, now) + by))];
      const far = Math.max(1, Math.round((K.below(curve.steps, high) - K.below(curve.steps, low)) / 20));
      const size = event.shiftKey ? far : 1;
      const moves = {
        ArrowLeft: () => group.move(hop(-size)),
        ArrowRight: () => group.move(hop(size)),
        ArrowDown: () => group.move(hop(-size)),
        ArrowUp: () => group.move(hop(size)),
        PageDown: () => group.move(hop(-far)),
        PageUp: () => group.move(hop(far)),
        Home: () => group.move(low),
        End: () => group.move(high),
        "+": () => group.zoom([now - (now - low) / 2, now + (high - now) / 2]),
        "-": () => group.zoom([low - (high - low) / 2, high + (high - low) / 2]),
        0: () => group.zoom(null),
        Escape: () => group.zoom(null),
      };
      const act = moves[event.key === "=" ? "+" : event.key];
      if (!act) return;
      event.preventDefault();
      act();
    }
  }

  // What a chart shows, as a table: at most ROWS of its steps.
  K.table = (model, curves) => {
    const base = model.curve(curves[0].name);
    const n = base.steps.length;
    const every = Math.ceil(n / ROWS);
    const rows = [];
    for (let i = 0; i < n; i += every) {
      const step = base.steps[i];
      const cells = curves.map(({ name }) => {
        const near = model.at(name, step);
        return K.el("td", { text: near.step === step ? K.figure(near.value) : "" });
      });
      rows.push(K.el("tr", {}, K.el("th", { scope: "row", text: String(step) }), cells));
    }
    const heads = [K.say("step"), ...curves.map(({ label }) => label)].map((text) => K.el("th", { scope: "col", text }));
    const caption = every > 1 ? K.say("table.every", { every, n }) : K.say("table.all", { n });
    return K.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": K.say("table") },
      K.el("table", {}, K.el("caption", { text: caption }), K.el("thead", {}, K.el("tr", {}, heads)), K.el("tbody", {}, rows)));
  };

  Object.assign(K, { Group, Chart });
})();
