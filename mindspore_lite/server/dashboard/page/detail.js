// The chosen model: its charts, the split of its time, what happened to it.

import { hasCharts, makeCharts } from "./charts.js";
import { byId, h, keyed, mark, say, stacked } from "./dom.js";
import { binned } from "./heat.js";
import { PHASES, clock, count, ms, percent, reason } from "./text.js";

const WORDS = {
  load: "loaded",
  unload: "unloaded",
  reload: "reloaded",
  reload_failed: "reload failed; the version before goes on",
  weights: "weights updated",
  unready: "not ready",
  rejected: "rejected",
  deadline: "deadline passed",
};
const SHOWN_MARKS = 8;
const TOGETHER_S = 5;

let charts = null;
let span = 300;

export function watchDetail(redraw) {
  byId("spans").addEventListener("change", (event) => {
    span = Number(event.target.value);
    redraw();
  });
}

export function resetCharts() {
  charts?.forEach((chart) => chart.reset());
}

export function drawDetail(store) {
  const model = store.model();
  byId("detail").hidden = !model;
  if (!model) return;
  say(byId("detail-title"), `${model.name} version ${model.version}`);
  const marks = store.numbers.marks.filter(
    (one) => one.model === model.name && one.version === model.version,
  );
  drawMarks(marks);
  byId("no-charts").hidden = hasCharts();
  if (!store.history) return;
  const state = {
    ...binned(store.history, store, span),
    span,
    bound: model.queue_size,
    marks: marks.filter((one) => !["rejected", "deadline"].includes(one.what)),
  };
  charts ??= makeCharts(byId);
  for (const chart of charts) chart.draw(state);
  drawSplit(state.bins);
}

/** The mean request of the time shown, phase by phase. */
function drawSplit(bins) {
  const requests = bins.reduce((sum, bin) => sum + bin.timed, 0);
  const totals = PHASES.map((_, at) => bins.reduce((sum, bin) => sum + bin.phases[at], 0));
  const all = totals.reduce((sum, us) => sum + us, 0);
  const place = byId("split");
  if (!place.children.length) {
    place.append(
      h("p", { class: "quiet" }),
      h("div", { class: "bar tall", "aria-hidden": "true" }),
      h("ul", { class: "legend" }),
    );
  }
  const [head, bar, list] = place.children;
  bar.hidden = list.hidden = !requests || !all;
  if (bar.hidden) {
    say(head, "No request was answered in this time.");
    return;
  }
  say(head, `The mean successful request took ${ms(all / requests / 1000)}:`);
  const parts = PHASES.map((name, at) => {
    const text = `${name} ${percent(totals[at] / all)}, ${ms(totals[at] / requests / 1000)}`;
    return { name, value: totals[at], text };
  });
  stacked(bar, parts, all);
  keyed(
    list,
    parts,
    (part) => part.name,
    (part) => h("li", {}, h("i", { class: "key", "data-part": part.name }), h("span")),
    (item, part) => say(item.lastElementChild, part.text),
  );
}

function drawMarks(marks) {
  const shown = together(marks).slice(-SHOWN_MARKS).reverse();
  keyed(
    byId("marks"),
    shown.length ? shown : [{}],
    (one) => `${one.time}/${one.what}`,
    () => h("li"),
    (item, one) => {
      mark(item, "data-what", one.what ?? "");
      say(item, one.what ? sentence(one) : "Nothing to report.");
    },
  );
}

/** Marks of a kind that follow each other closely are one, from the oldest to the newest. */
function together(marks) {
  const found = [];
  for (const { text, ...rest } of [...marks].sort((a, b) => a.time - b.time)) {
    const one = { ...rest, text: rest.what === "rejected" ? "" : text }; // one of many reasons
    const same = found.findLast((other) => other.what === one.what && other.text === one.text);
    if (same && one.time - same.until < TOGETHER_S) {
      same.until = one.time;
      same.count += one.count ?? 1;
    } else found.push({ ...one, until: one.time, count: one.count ?? 1 });
  }
  return found;
}

function sentence({ time, until, what, count: times, text }) {
  const when = until - time < 1 ? clock(time) : `${clock(time)} to ${clock(until)}`;
  const number = times > 1 ? `${count(times)} × ` : "";
  return `${when} ${number}${WORDS[what] ?? what}${text ? `: ${reason(text)}` : ""}`;
}
