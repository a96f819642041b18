// Decodes the document that klinic.render.report.data makes, and reduces curves to what a screen can show.
(function () {
  "use strict";
  const K = (globalThis.klinicReport = globalThis.klinicReport || {});

  function bytes(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out.buffer;
  }

  function stepsOf(grid) {
    const out = new Float64Array(grid.n);
    if (!grid.n) return out;
    out[0] = grid.first;
    if (grid.gaps === undefined) {
      for (let i = 1; i < grid.n; i++) out[i] = out[i - 1] + grid.by;
      return out;
    }
    const Width = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[grid.width];
    const gaps = new Width(bytes(grid.gaps));
    for (let i = 1; i < grid.n; i++) out[i] = out[i - 1] + gaps[i - 1];
    return out;
  }

  // Index of the last of xs that is not above x; -1 below the first.
  function below(xs, x) {
    let low = 0;
    let high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  function nearest(xs, x) {
    const i = Math.max(0, below(xs, x));
    return i + 1 < xs.length && xs[i + 1] - x < x - xs[i] ? i + 1 : i;
  }

  function between(xs, ys, x) {
    const i = below(xs, x);
    if (i < 0) return ys[0];
    if (i >= xs.length - 1) return ys[ys.length - 1];
    return ys[i] + ((ys[i + 1] - ys[i]) * (x - xs[i])) / (xs[i + 1] - xs[i]);
  }

  // The curves of one run, decoded when they are first asked for.
  class Model {
    constructor(doc) {
      this.doc = doc;
      this.grids = new Map();
      this.known = new Map();
      this.placed = new Map();
      this.clocks = new Map();
    }

    grid(i) {
      if (!this.grids.has(i)) this.grids.set(i, stepsOf(this.doc.grids[i]));
      return this.grids.get(i);
    }

    has(name) {
      return Object.hasOwn(this.doc.curves, name);
    }

    curve(name) {
      if (!this.known.has(name)) {
        const given = this.doc.curves[name];
        const values = new Float32Array(bytes(given.values));
        this.known.set(name, { name, grid: given.grid, steps: this.grid(given.grid), values });
      }
      return this.known.get(name);
    }

    // The value logged nearest to a step, with its own step.
    at(name, step) {
      const curve = this.curve(name);
      const i = nearest(curve.steps, step);
      return { step: curve.steps[i], value: curve.values[i], index: i };
    }

    clock(kind) {
      if (!this.clocks.has(kind)) {
        const given = this.doc.clocks[kind];
        const ys = new Float32Array(bytes(given.values));
        this.clocks.set(kind, { xs: this.grid(given.grid), ys });
      }
      return this.clocks.get(kind);
    }

    // Where a step stands on an axis ("step", "time" in seconds, "tokens"), and back.
    place(step, kind) {
      if (kind === "step") return step;
      const clock = this.clock(kind);
      return between(clock.xs, clock.ys, step);
    }

    step(x, kind) {
      if (kind === "step") return x;
      const clock = this.clock(kind);
      return between(clock.ys, clock.xs, x);
    }

    axis(grid, kind) {
      const steps = this.grid(grid);
      if (kind === "step") return steps;
      const key = `${grid} ${kind}`;
      if (!this.placed.has(key)) this.placed.set(key, steps.map((step) => this.place(step, kind)));
      return this.placed.get(key);
    }
  }

  // Centred mean over `width` points, leaving out what is not finite; a gap stays a gap.
  function smooth(values, width) {
    if (width < 2) return values;
    const n = values.length;
    const sums = new Float64Array(n + 1);
    const counts = new Int32Array(n + 1);
    for (let i = 0; i < n; i++) {
      const fine = Number.isFinite(values[i]);
      sums[i + 1] = sums[i] + (fine ? values[i] : 0);
      counts[i + 1] = counts[i] + (fine ? 1 : 0);
    }
    const half = width >> 1;
    const out = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      const from = Math.max(0, i - half);
      const to = Math.min(n, i + half + 1);
      const count = counts[to] - counts[from];
      out[i] = Number.isFinite(values[i]) && count ? (sums[to] - sums[from]) / count : NaN;
    }
    return out;
  }

  // At most two points a column between two places: the lowest and the highest, in their order, so that no spike is lost.
  function thin(xs, ys, low, high, columns, accept) {
    const from = Math.max(0, below(xs, low));
    const to = Math.min(xs.length, below(xs, high) + 2);
    const outX = [];
    const outY = [];
    const put = (i) => {
      const fine = Number.isFinite(ys[i]) && accept(ys[i]);
      outX.push(xs[i]);
      outY.push(fine ? ys[i] : null);
    };
    if (to - from <= 2 * columns) {
      for (let i = from; i < to; i++) put(i);
      return [outX, outY];
    }
    for (let c = 0; c < columns; c++) {
      const start = from + Math.floor(((to - from) * c) / columns);
      const end = from + Math.floor(((to - from) * (c + 1)) / columns);
      let least = -1;
      let most = -1;
      let gap = -1;
      for (let i = start; i < end; i++) {
        const y = ys[i];
        if (!Number.isFinite(y) || !accept(y)) gap = i;
        else {
          if (least < 0 || y < ys[least]) least = i;
          if (most < 0 || y > ys[most]) most = i;
        }
      }
      const kept = [...new Set([least, most, gap].filter((i) => i >= 0))].sort((a, b) => a - b);
      kept.forEach(put);
    }
    return [outX, outY];
  }

  // About `count` medians along a curve, for small pictures: [[step, value], ...].
  function medians(curve, count) {
    const n = curve.values.length;
    const size = Math.max(1, Math.ceil(n / count));
    const out = [];
    for (let i = 0; i < n; i += size) {
      const part = Array.from(curve.values.subarray(i, i + size)).filter(Number.isFinite);
      if (!part.length) continue;
      part.sort((a, b) => a - b);
      out.push([curve.steps[Math.min(n - 1, i + (size >> 1))], part[part.length >> 1]]);
    }
    return out;
  }

  Object.assign(K, { Model, below, nearest, between, smooth, thin, medians });
})();
