// Samples brought together into the columns of a picture.

import { PHASES } from "./text.js";

const POINTS = 150;

/** The samples of the last `span` seconds in steps of equal length. */
export function binned(history, store, span) {
  const last = store.numbers.at;
  const step = Math.max(1, Math.ceil(span / POINTS));
  const steps = Math.ceil(span / step);
  const bounds = store.model().latency.bounds_ms;
  const bins = Array.from({ length: steps }, (_, at) =>
    empty(store.time(last - (steps - 1 - at) * step), bounds.length + 1),
  );
  history.at.forEach((at, index) => {
    const bin = bins[steps - 1 - Math.round((last - at) / step)];
    if (bin) add(bin, history, index);
  });
  return { bins, step, bounds };
}

function empty(time, buckets) {
  return {
    time,
    seconds: 0,
    requests: 0,
    timed: 0, // those that succeeded: only they have phases and latencies
    queued: null,
    rejected: 0,
    deadlines: 0,
    phases: PHASES.map(() => 0),
    counts: new Array(buckets).fill(0),
  };
}

function add(bin, history, index) {
  const { columns } = history;
  bin.seconds += history.took_s[index];
  bin.requests += columns.requests[index];
  bin.queued = Math.max(bin.queued ?? 0, columns.queued[index]);
  bin.deadlines += columns["failed.deadline"]?.[index] ?? 0;
  for (const [name, values] of Object.entries(columns)) {
    if (name.startsWith("rejected.")) bin.rejected += values[index];
  }
  PHASES.forEach((phase, at) => {
    bin.phases[at] += columns[`phases_us.${phase}`]?.[index] ?? 0;
  });
  history.latency[index].forEach((number, bucket) => {
    bin.counts[bucket] += number;
    bin.timed += number;
  });
}

/** Where a part of the counts lies below, as a place among the buckets: 2.5 is the middle of the
 * third. Null without any. */
export function place(counts, part) {
  const total = counts.reduce((sum, number) => sum + number, 0);
  if (!total) return null;
  let seen = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    const number = counts[bucket];
    if (number && seen + number >= part * total) return bucket + (part * total - seen) / number;
    seen += number;
  }
  return counts.length;
}

/** The same in milliseconds. */
export function quantile(bounds, counts, part) {
  const found = place(counts, part);
  if (found === null) return null;
  const bucket = Math.min(Math.floor(found), bounds.length - 1);
  const low = bucket ? bounds[bucket - 1] : 0;
  return low + (bounds[bucket] - low) * Math.min(1, found - bucket);
}

/** Paint the counts of every bin as cells; the more, the denser. */
export function paint(u, bins, step, fill) {
  const { ctx } = u;
  const most = Math.max(1, ...bins.flatMap((bin) => bin.counts));
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  ctx.fillStyle = fill;
  for (const bin of bins) {
    const right = u.valToPos(bin.time, "x", true);
    const width = Math.max(1, right - u.valToPos(bin.time - step, "x", true));
    bin.counts.forEach((number, bucket) => {
      if (!number) return;
      const top = u.valToPos(bucket + 1, "y", true);
      ctx.globalAlpha = 0.15 + (0.85 * Math.log1p(number)) / Math.log1p(most);
      ctx.fillRect(right - width, top, width + 0.5, u.valToPos(bucket, "y", true) - top);
    });
  }
  ctx.restore();
}
