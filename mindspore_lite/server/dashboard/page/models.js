// The table of models: a row for each version.

import { byId, emptySpark, h, keyed, mark, say, sparkline, stacked, svg } from "./dom.js";
import { keyOf } from "./store.js";
import { ago, byNumber, count, ms, percent, rate, reason } from "./text.js";

const STATES = {
  READY: ["✓", "good"],
  LOADING: ["◌", "wait"],
  UNLOADING: ["◌", "wait"],
  UNAVAILABLE: ["✕", "bad"],
};
const LABELS = [
  "Model",
  "State",
  "Requests/s",
  "Errors, 1 min",
  "p50",
  "p99",
  "Queue",
  "Batch sizes",
  "Weights",
];

export function drawModels(store, choose) {
  const { models } = store.numbers;
  byId("no-models").hidden = models.length > 0;
  keyed(
    byId("rows"),
    models,
    keyOf,
    (model) => newRow(model, choose),
    (row, model) => drawRow(row, model, store),
  );
}

function newRow(model, choose) {
  const cells = LABELS.map((label) => h("td", { role: "cell", "data-label": label }));
  const [name, , requests, , , , queue, batch] = cells;
  const button = h(
    "button",
    { type: "button", class: "name", onclick: () => choose(keyOf(model)) },
    model.name,
    " ",
  );
  button.append(h("span", { class: "quiet" }, `v${model.version}`));
  name.append(button);
  requests.append(h("span"), emptySpark());
  queue.append(h("span"), h("div", { class: "bar" }));
  batch.append(h("span", { class: "batches" }));
  const row = h("tr", { role: "row", onclick: () => choose(keyOf(model)) }, ...cells);
  button.addEventListener("click", (event) => event.stopPropagation());
  return row;
}

function drawRow(row, model, store) {
  const [name, state, requests, errors, p50, p99, queue, batch, weights] = row.children;
  const isChosen = keyOf(model) === store.chosen;
  mark(name.firstElementChild, "aria-pressed", String(isChosen));
  mark(row, "data-chosen", String(isChosen));
  drawState(state, model);
  say(requests.firstElementChild, rate(model.recent.rate));
  sparkline(requests.lastElementChild, store.sparks.get(keyOf(model)) ?? []);
  drawErrors(errors, model.recent.errors);
  say(p50, ms(model.recent.p50_ms));
  say(p99, ms(model.recent.p99_ms));
  drawQueue(queue, model);
  drawBatches(batch.firstElementChild, model.batches);
  drawWeights(weights, model, store.numbers.time);
}

function drawState(cell, model) {
  const [sign, level] = STATES[model.state] ?? ["?", "bad"];
  mark(cell, "data-level", level);
  mark(cell, "title", model.reason);
  say(cell, `${sign} ${model.state.toLowerCase()}${model.reason ? `: ${model.reason}` : ""}`);
}

function drawErrors(cell, errors) {
  const found = byNumber(errors);
  mark(cell, "data-level", found.length ? "warn" : "");
  if (!found.length) {
    say(cell, "none");
    return;
  }
  keyed(
    cellList(cell),
    found,
    ([name]) => name,
    () => h("li"),
    (item, [name, number]) => say(item, `${count(number)} ${reason(name)}`),
  );
}

function cellList(cell) {
  let list = cell.querySelector("ul");
  if (!list) {
    list = h("ul", { class: "reasons" });
    cell.replaceChildren(list);
  }
  return list;
}

function drawQueue(cell, model) {
  const part = model.queue_size ? Math.min(1, model.queued / model.queue_size) : 0;
  say(cell.firstElementChild, `${count(model.queued)} of ${count(model.queue_size)}`);
  mark(cell, "data-level", part >= 0.8 ? "warn" : "");
  stacked(cell.lastElementChild, [{ name: "used", value: part, text: percent(part) }], 1);
}

/** How many runs had how many rows: a bar for each size. */
function drawBatches(place, batches) {
  const sizes = Object.entries(batches)
    .map(([rows, runs]) => [Number(rows), runs])
    .sort((a, b) => a[0] - b[0]);
  const runs = sizes.reduce((total, [, number]) => total + number, 0);
  const text = sizes.map(([rows, number]) => `${rows} rows: ${percent(number / runs)}`).join(", ");
  if (place.title === text) return;
  place.title = text;
  if (!runs) {
    place.replaceChildren("–");
    return;
  }
  const most = Math.max(...sizes.map(([, number]) => number));
  const picture = svg("svg", {
    viewBox: `0 0 ${sizes.length * 5} 24`,
    class: "histogram",
    role: "img",
    "aria-label": text,
  });
  sizes.forEach(([, number], at) => {
    const height = Math.max(1, (number / most) * 23);
    picture.append(svg("rect", { x: at * 5, y: 24 - height, width: 4, height }));
  });
  picture.style.width = `${Math.min(8, sizes.length * 0.4)}rem`;
  const mean = sizes.reduce((total, [rows, number]) => total + rows * number, 0) / runs;
  place.replaceChildren(picture, h("small", {}, `mean ${mean.toFixed(1)}`));
}

function drawWeights(cell, model, now) {
  if (!model.weights_version) {
    say(cell, "as loaded");
    return;
  }
  say(cell, `update ${model.weights_version}, ${ago(model.weights_updated, now)}`);
}
