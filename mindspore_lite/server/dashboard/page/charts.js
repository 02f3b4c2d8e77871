// The three charts of a model, drawn by uPlot.

import { quantile, paint, place } from "./heat.js";
import { colour } from "./theme.js";
import { PHASES, clock, count, ms } from "./text.js";

const HEIGHT_REM = 13;
const SIGNS = {
  load: "+",
  unload: "−",
  reload_failed: "✕",
  weights: "◆",
  unready: "!",
  reload: "↻",
};

export const hasCharts = () => typeof window.uPlot === "function";

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** What all charts share. `data` and `state` are replaced every second; hooks read the latest. */
class Chart {
  constructor(figure) {
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.u = null;
    this.state = null;
    this.plot.addEventListener("keydown", (event) => this.#step(event));
    new ResizeObserver(() => this.u?.setSize(this.#size())).observe(this.plot);
  }

  /** Forget the drawing: colours or series are others. */
  reset() {
    this.u?.destroy();
    this.u = null;
  }

  draw(state) {
    this.state = state;
    const data = this.data(state);
    if (!hasCharts() || !this.plot.clientWidth) return;
    if (this.u) this.u.setData(data);
    else this.u = new window.uPlot(this.#options(), data, this.plot);
    this.plot.setAttribute("aria-label", this.label(state));
    this.#read();
  }

  #size() {
    return { width: Math.max(200, this.plot.clientWidth), height: Math.round(HEIGHT_REM * rem()) };
  }

  #options() {
    const [ink, grid] = [colour("quiet"), colour("grid")];
    const font = `${Math.round(0.75 * rem())}px system-ui, sans-serif`;
    const axis = {
      stroke: ink,
      font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1 },
    };
    const own = this.options(axis);
    return {
      ...this.#size(),
      legend: { show: false },
      cursor: {
        sync: { key: "model" },
        drag: { x: false, y: false },
        points: { show: false },
        y: false,
      },
      ...own,
      axes: [
        {
          ...axis,
          size: 2 * rem(),
          space: 4.2 * rem(),
          values: (_, times, __, ___, step) =>
            times.map((time) => clock(time).slice(0, step % 60 ? 8 : 5)),
        },
        own.axis,
      ],
      scales: { x: { time: true, range: () => this.#range() }, ...own.scales },
      hooks: { ...own.hooks, setCursor: [() => this.#read()] },
    };
  }

  #range() {
    const { bins, step } = this.state;
    return [bins[0].time - step, bins.at(-1).time];
  }

  /** Arrows move from sample to sample. */
  #step(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.u || !move) return;
    event.preventDefault();
    const last = this.state.bins.length - 1;
    const at = Math.min(last, Math.max(0, (this.u.cursor.idx ?? last) + move));
    this.u.setCursor({ left: this.u.valToPos(this.state.bins[at].time, "x"), top: 10 });
  }

  #read() {
    const { bins } = this.state;
    const at = this.u?.cursor.idx;
    const bin = bins[at ?? bins.length - 1];
    if (bin) this.readout.textContent = [clock(bin.time), ...this.words(bin)].join(" · ");
  }
}

class Latency extends Chart {
  data({ bins }) {
    return [
      bins.map((bin) => bin.time),
      bins.map((bin) => place(bin.counts, 0.5)),
      bins.map((bin) => place(bin.counts, 0.99)),
    ];
  }

  options(axis) {
    const line = colour("ink");
    const fill = colour("accent");
    return {
      series: [
        {},
        { stroke: line, width: 1.5, dash: [4, 3], spanGaps: false, points: { show: false } },
        { stroke: line, width: 1.5, spanGaps: false, points: { show: false } },
      ],
      scales: { y: { range: () => this.#buckets() } },
      axis: {
        ...axis,
        size: 4.2 * rem(),
        splits: () => this.#splits(),
        values: (_, places) => places.map((one) => (one ? ms(this.state.bounds[one - 1]) : "0")),
      },
      hooks: { drawAxes: [(u) => paint(u, this.state.bins, this.state.step, fill)] },
    };
  }

  /** Only the buckets that are used, and one on either side. */
  #buckets() {
    const { bins, bounds } = this.state;
    const used = bounds.map((_, bucket) => bins.some((bin) => bin.counts[bucket]));
    const first = used.indexOf(true);
    if (first < 0) return [0, bounds.length];
    const last = bins.some((bin) => bin.counts[bounds.length])
      ? bounds.length + 1
      : used.lastIndexOf(true) + 1;
    return [Math.max(0, first - 1), Math.min(bounds.length + 1, Math.max(last + 1, first + 5))];
  }

  #splits() {
    const [low, high] = this.#buckets();
    const step = Math.max(1, Math.ceil((high - low) / 6));
    const found = [];
    for (let one = low; one <= Math.min(high, this.state.bounds.length); one += step)
      found.push(one);
    return found;
  }

  words(bin) {
    const { bounds } = this.state;
    const [p50, p99] = [quantile(bounds, bin.counts, 0.5), quantile(bounds, bin.counts, 0.99)];
    return [`p50 ${ms(p50)}`, `p99 ${ms(p99)}`, `${count(bin.requests)} requests`];
  }

  label({ bins }) {
    const counts = bins[0].counts.map((_, bucket) =>
      bins.reduce((sum, bin) => sum + bin.counts[bucket], 0),
    );
    const { bounds } = this.state;
    const [p50, p99] = [0.5, 0.99].map((part) => ms(quantile(bounds, counts, part)));
    return `Latency over time: p50 ${p50}, p99 ${p99}`;
  }
}

class Phases extends Chart {
  /** Sums from the bottom up: the band between two of them is a phase. */
  data({ bins }) {
    const tops = PHASES.map((_, phase) =>
      bins.map((bin) =>
        bin.timed
          ? bin.phases.slice(0, phase + 1).reduce((sum, us) => sum + us, 0) / 1000 / bin.timed
          : null,
      ),
    );
    return [bins.map((bin) => bin.time), ...tops.reverse()];
  }

  options(axis) {
    const series = PHASES.map((phase, at) => {
      const stroke = colour(`phase-${phase}`);
      return {
        stroke,
        width: 1,
        fill: at === 0 ? stroke : undefined,
        spanGaps: false,
        points: { show: false },
      };
    }).reverse();
    const bands = PHASES.slice(1).map((_, at) => ({
      series: [at + 1, at + 2],
      fill: colour(`phase-${PHASES[PHASES.length - 1 - at]}`),
    }));
    return {
      series: [{}, ...series],
      bands,
      scales: { y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axis: {
        ...axis,
        size: 4.2 * rem(),
        values: (_, values) => values.map((value) => (value ? ms(value) : "0")),
      },
    };
  }

  words(bin) {
    if (!bin.timed) return ["no requests"];
    const parts = PHASES.map((phase, at) => [phase, bin.phases[at] / 1000 / bin.timed]).filter(
      ([, value]) => value > 0,
    );
    return parts
      .sort((a, b) => b[1] - a[1])
      .slice(0, 4)
      .map(([phase, value]) => `${phase} ${ms(value)}`);
  }

  label() {
    return "Where the time went, over time; the list below the charts says it in numbers";
  }
}

class Queue extends Chart {
  data({ bins }) {
    return [bins.map((bin) => bin.time), bins.map((bin) => bin.queued)];
  }

  options(axis) {
    const stroke = colour("accent");
    const stepped = window.uPlot.paths?.stepped?.({ align: -1 });
    return {
      series: [
        {},
        {
          stroke,
          fill: colour("accent-soft"),
          width: 1.5,
          paths: stepped,
          spanGaps: true,
          points: { show: false },
        },
      ],
      scales: { y: { range: (_, __, high) => [0, this.#top(high ?? 0)] } },
      axis: { ...axis, size: 4.2 * rem(), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] },
      hooks: { draw: [(u) => this.#marks(u)] },
    };
  }

  /** The bound is in the picture once the queue comes near it. */
  #top(high) {
    const { bound } = this.state;
    return bound && high > bound / 4 ? bound * 1.4 : Math.max(4, high * 1.4);
  }

  #marks(u) {
    const { bins, bound, marks } = this.state;
    const { ctx, bbox } = u;
    const size = 0.8 * rem() * devicePixelRatio;
    ctx.save();
    ctx.font = `${size}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    const sign = (time, text, name, row) => {
      const x = u.valToPos(time, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.fillStyle = ctx.strokeStyle = colour(name);
      ctx.fillText(text, x, bbox.top + row * size);
    };
    const warn = bins.filter((bin) => bin.rejected || bin.deadlines);
    for (const bin of warn) {
      if (bin.rejected) sign(bin.time, "▲", "bad", 0);
      if (bin.deadlines) sign(bin.time, "✕", "warn", 1);
    }
    for (const mark of marks) {
      sign(mark.time, SIGNS[mark.what] ?? "↻", "ink", 2);
      const x = u.valToPos(mark.time, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top + 3 * size);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    if (bound && u.scales.y.max >= bound) {
      const y = u.valToPos(bound, "y", true);
      ctx.strokeStyle = ctx.fillStyle = colour("bad");
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.textAlign = "left";
      ctx.textBaseline = "bottom";
      ctx.fillText(`bound ${bound}`, bbox.left + size / 2, y);
    }
    ctx.restore();
  }

  words(bin) {
    const more = [];
    if (bin.rejected) more.push(`▲ ${count(bin.rejected)} rejected`);
    if (bin.deadlines) more.push(`✕ ${count(bin.deadlines)} past their deadline`);
    return [`${count(bin.queued ?? 0)} queued of ${count(this.state.bound)}`, ...more];
  }

  label({ bins, bound }) {
    const most = Math.max(0, ...bins.map((bin) => bin.queued ?? 0));
    const rejected = bins.reduce((sum, bin) => sum + bin.rejected, 0);
    return `Queue over time: at most ${most} of ${bound}, ${rejected} requests rejected`;
  }
}

export function makeCharts(byId) {
  return [new Latency(byId("latency")), new Phases(byId("phases")), new Queue(byId("queue"))];
}
