// The slowest requests, with where their time went.

import { byId, h, keyed, mark, say, stacked } from "./dom.js";
import { PHASES, clock, ms, percent } from "./text.js";

const LABELS = ["When", "Model", "Took", "Status", "Split", "Mostly", "Id"];
const SHOWN = 20;

export function drawSlowest(store) {
  const found = [...store.numbers.slowest].sort((a, b) => b.ms - a.ms).slice(0, SHOWN);
  byId("no-slow").hidden = found.length > 0;
  const seen = new Map(); // two may have the same time
  const keys = found.map((one) => {
    const key = `${one.time}/${one.model}/${one.id}/${one.ms}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return { ...one, key: `${key}/${seen.get(key)}` };
  });
  keyed(byId("slow-rows"), keys, (one) => one.key, newRow, drawRow);
}

function newRow() {
  const row = h(
    "tr",
    { role: "row" },
    ...LABELS.map((label) => h("td", { role: "cell", "data-label": label })),
  );
  row.children[4].append(h("div", { class: "bar", role: "img" }));
  return row;
}

function drawRow(row, one) {
  const [when, model, took, status, split, mostly, id] = row.children;
  const parts = PHASES.map((name) => ({ name, value: one.phases_ms[name] ?? 0 }));
  for (const part of parts) part.text = `${part.name} ${ms(part.value)}`;
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  const worst = parts.reduce((a, b) => (b.value > a.value ? b : a));
  say(when, clock(one.time));
  say(model, `${one.model} v${one.version}`);
  say(took, ms(one.ms));
  const failed = one.status >= 400;
  say(status, `${failed ? "✕" : "✓"} ${one.status}`);
  mark(status, "data-level", failed ? "bad" : "");
  stacked(split.firstElementChild, parts, total || 1);
  const text = parts
    .filter((part) => part.value > 0)
    .map((part) => part.text)
    .join(", ");
  mark(split.firstElementChild, "aria-label", text || "no times");
  say(mostly, total ? `${worst.name} ${percent(worst.value / total)}` : "–");
  say(id, one.id || "–");
}
