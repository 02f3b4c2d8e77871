// The top of the page: is it well, and if not, what is wrong.

import { byId, h, keyed, mark, say, stacked, svg } from "./dom.js";
import { keyOf } from "./store.js";
import { byNumber, bytes, count, duration, ms, percent, plural, rate, reason } from "./text.js";

const ICONS = { good: ["✓", "#1a7f4b"], bad: ["✕", "#c62f3b"], wait: ["◌", "#777"] };
const HEIGHTS = { idle: 1.5, gathering: 6, computing: 12, stuck: 12 };

const sum = (values) => values.reduce((total, value) => total + value, 0);
const errorsOf = (model) => sum(Object.values(model.recent.errors));
const title = (model) => `${model.name} version ${model.version}`;

/** Everything that is wrong, worst first: [level, sentence]. */
export function problems(numbers) {
  const found = [];
  if (!numbers.ready) {
    const why = (numbers.reason || "a model is not ready").replace(/^not ready: /, "");
    found.push(["bad", `Not ready: ${why}.`]);
  }
  for (const model of numbers.models) {
    if (model.state !== "READY") {
      const why = model.reason ? `: ${model.reason}` : "";
      found.push(["bad", `${title(model)} is ${model.state.toLowerCase()}${why}.`]);
    }
    const stuck = model.slots.filter((state) => state === "stuck").length;
    if (stuck) found.push(["bad", `${title(model)} has ${plural(stuck, "stuck slot")}.`]);
    if (model.queue_size && model.queued >= 0.8 * model.queue_size) {
      const full = `${model.queued} of ${model.queue_size}`;
      found.push(["warn", `The queue of ${title(model)} is nearly full (${full}).`]);
    }
    const failed = errorsOf(model);
    if (failed) {
      const why = byNumber(model.recent.errors).map(
        ([name, number]) => `${count(number)} ${reason(name)}`,
      );
      const what = `${plural(failed, "request")} failed in the last minute`;
      found.push(["warn", `${title(model)}: ${what} (${why.join(", ")}).`]);
    }
  }
  return found.sort((a, b) => (a[0] === b[0] ? 0 : a[0] === "bad" ? -1 : 1));
}

export function drawHeader(store) {
  const { numbers } = store;
  say(byId("version"), numbers.version);
  say(byId("uptime"), `up ${duration(numbers.uptime_s)}`);
  setHealth(numbers.ready ? "good" : "bad", numbers.ready ? "ready" : "not ready");
  drawVerdict(numbers);
  drawTiles(numbers);
  drawSlots(store);
}

/** The pill, the title of the tab and its icon: all say the same. */
export function setHealth(level, words) {
  const [sign, fill] = ICONS[level];
  const pill = byId("health");
  mark(pill, "data-level", level);
  say(pill.firstElementChild, sign);
  pill.lastChild.data = ` ${words}`;
  document.title = `${sign} ${words} · mslite`;
  const dot = `<circle cx="8" cy="8" r="7" fill="${fill}"/>`;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${dot}</svg>`;
  mark(byId("icon"), "href", `data:image/svg+xml,${encodeURIComponent(picture)}`);
}

export function setVerdict(level, text) {
  const verdict = byId("verdict");
  mark(verdict, "data-level", level);
  say(verdict, text);
}

function drawVerdict(numbers) {
  const found = problems(numbers);
  if (!found.length) {
    const models = plural(numbers.models.length, "model");
    setVerdict("good", `All is well: ${models} ready, no failed request in the last minute.`);
    return;
  }
  const more = found.length > 3 ? ` And ${found.length - 3} more.` : "";
  setVerdict(
    found[0][0],
    found
      .slice(0, 3)
      .map(([, text]) => text)
      .join(" ") + more,
  );
}

function drawTiles(numbers) {
  const { models, memory, connections } = numbers;
  const worst = models.reduce(
    (a, b) => ((b.recent.p99_ms ?? -1) > (a?.recent.p99_ms ?? -1) ? b : a),
    null,
  );
  const errors = sum(models.map(errorsOf));
  const queued = sum(models.map((model) => model.queued));
  const room = sum(models.map((model) => model.queue_size));
  const refused = sum(Object.values(numbers.refused));
  const tiles = [
    {
      name: "Requests/s",
      value: rate(sum(models.map((model) => model.recent.rate))),
      note: "mean of 10 s",
    },
    {
      name: "Errors",
      value: count(errors),
      note: "in the last minute",
      level: errors ? "warn" : "",
    },
    {
      name: "Highest p99",
      value: ms(worst?.recent.p99_ms),
      note: worst?.recent.p99_ms ? worst.name : "no requests lately",
    },
    {
      name: "Queued",
      value: count(queued),
      note: `of ${count(room)}, all models`,
      part: room ? queued / room : 0,
    },
    { name: "Memory", value: bytes(memory.rss_bytes), memory },
    { name: "Connections", value: count(sum(Object.values(connections))), note: traffic(numbers) },
    { name: "Refused", value: count(refused), note: refusals(numbers.refused) },
  ];
  keyed(byId("tiles"), tiles, (tile) => tile.name, newTile, drawTile);
}

function traffic(numbers) {
  const kinds = Object.entries(numbers.connections).map(([kind, number]) => `${number} ${kind}`);
  return `${kinds.join(", ")}; ${bytes(numbers.flight_bytes)} in flight`;
}

function refusals(refused) {
  const kinds = Object.entries(refused).filter(([, number]) => number);
  return kinds.length
    ? kinds.map(([status, number]) => `${status}: ${count(number)}`).join(", ")
    : "since the start";
}

function newTile(tile) {
  const bar = tile.memory || tile.part !== undefined ? h("div", { class: "bar" }) : undefined;
  return h(
    "div",
    { class: "tile" },
    h("h3", {}, tile.name),
    h("strong"),
    ...(bar ? [bar] : []),
    h("small"),
  );
}

function drawTile(element, tile) {
  mark(element, "data-level", tile.level ?? "");
  say(element.querySelector("strong"), tile.value);
  const bar = element.querySelector(".bar");
  if (tile.memory) drawMemory(element, bar, tile.memory);
  else say(element.querySelector("small"), tile.note);
  if (tile.part !== undefined) {
    stacked(bar, [{ name: "used", value: tile.part, text: percent(tile.part) }], 1);
  }
}

function drawMemory(element, bar, memory) {
  const weights = Math.min(memory.weights_bytes, memory.shared_bytes);
  const parts = [
    { name: "private", value: memory.private_bytes },
    { name: "weights", value: weights },
    { name: "shared", value: memory.shared_bytes - weights },
  ];
  for (const part of parts) part.text = `${part.name}: ${bytes(part.value)}`;
  stacked(bar, parts, Math.max(memory.quota_bytes, sum(parts.map((part) => part.value)), 1));
  const quota = memory.quota_bytes ? `; quota ${bytes(memory.quota_bytes)}` : "";
  say(element.querySelector("small"), `${bytes(weights)} are shared weights (striped)${quota}`);
}

function drawSlots(store) {
  const models = store.numbers.models.filter((model) => model.slots.length);
  keyed(byId("slots"), models, keyOf, newSlots, (element, model) =>
    drawModelSlots(element, model, store),
  );
}

function newSlots(model) {
  return h(
    "div",
    { class: "slot-group" },
    h("h3", {}, `${model.name} `, h("span", { class: "quiet" }, model.version)),
    h("ul"),
  );
}

function drawModelSlots(element, model, store) {
  const rows = store.slots.get(keyOf(model));
  keyed(
    element.querySelector("ul"),
    model.slots.map((state, slot) => ({ state, slot, past: rows[slot] })),
    ({ slot }) => String(slot),
    newSlot,
    drawSlot,
  );
}

function newSlot() {
  const strip = svg("svg", {
    viewBox: "0 0 60 12",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  for (const state of Object.keys(HEIGHTS)) strip.append(svg("path", { "data-state": state }));
  return h("li", { class: "slot" }, strip, h("span"));
}

/** A minute of a slot: the higher, the busier; one path for each state. */
function drawSlot(element, { state, slot, past }) {
  const strip = element.querySelector("svg");
  for (const path of strip.children) {
    const own = path.getAttribute("data-state");
    const height = HEIGHTS[own];
    const cells = past.map((one, at) =>
      one === own ? `M${60 - past.length + at},12v-${height}h1v${height}z` : "",
    );
    mark(path, "d", cells.join(""));
  }
  const busy = past.filter((one) => one !== "idle").length / past.length;
  mark(element, "data-state", state);
  mark(element, "aria-label", `slot ${slot}: ${state}, busy ${percent(busy)} of the last minute`);
  say(element.querySelector("span"), `${state === "stuck" ? "! " : ""}${state} ${percent(busy)}`);
}
