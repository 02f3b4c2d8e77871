// A request of one's own: made from the model's metadata, sent from the page.

import { byId, h, say } from "./dom.js";
import { ask } from "./feed.js";
import { ms } from "./text.js";

const MOST_VALUES = 200_000; // of an input; more is for a program
const SHOWN_VALUES = 12;

let current = null; // { name, version, inputs }

export async function offerTry(model) {
  const same = model && current?.name === model.name && current?.version === model.version;
  if (same) return;
  current = model ? { name: model.name, version: model.version, inputs: [] } : null;
  byId("try-inputs").replaceChildren();
  byId("try-send").disabled = true;
  say(byId("try-hint"), "Choose a model.");
  if (model) await describe(current);
}

async function describe(wanted) {
  try {
    const answer = await ask(path(wanted));
    const found = await answer.json();
    if (wanted !== current) return; // another was chosen meanwhile
    if (!answer.ok) throw new Error(found.error);
    wanted.inputs = found.inputs;
    byId("try-inputs").replaceChildren(...found.inputs.map(inputFields));
    byId("try-send").disabled = false;
    say(byId("try-hint"), `A request to ${wanted.name} version ${wanted.version}, as JSON.`);
  } catch (error) {
    if (wanted === current) say(byId("try-hint"), `Its metadata cannot be read: ${error.message}`);
  }
}

const path = ({ name, version }) =>
  `v2/models/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;

function inputFields(input, at) {
  const own = h("textarea", {
    rows: 3,
    name: `own-${at}`,
    spellcheck: "false",
    placeholder: "[1, 2, 3]",
    "aria-label": `Values of ${input.name}`,
  });
  own.hidden = true;
  const fill = h(
    "select",
    {
      name: `fill-${at}`,
      "aria-label": `How to fill ${input.name}`,
      onchange: () => {
        own.hidden = fill.value !== "own";
      },
    },
    ...["random", "zeros", "own"].map((value) =>
      h("option", { value }, value === "own" ? "own values" : value),
    ),
  );
  const shape = input.shape.map((size) => Math.max(1, size)).join(", ");
  return h(
    "fieldset",
    {},
    h(
      "legend",
      {},
      `${input.name} `,
      h("span", { class: "quiet" }, `${input.datatype} [${input.shape.join(", ")}]`),
    ),
    h(
      "label",
      {},
      "Shape ",
      h("input", { name: `shape-${at}`, value: shape, inputmode: "numeric", autocomplete: "off" }),
    ),
    h("label", {}, "Values ", fill),
    own,
  );
}

export function watchTry() {
  byId("try-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (current) send(current, new FormData(event.target));
  });
}

async function send(wanted, form) {
  const button = byId("try-send");
  let body;
  try {
    body = JSON.stringify({ inputs: wanted.inputs.map((input, at) => tensor(input, at, form)) });
  } catch (error) {
    showError(error.message);
    return;
  }
  button.disabled = true;
  say(byId("try-said"), "Sent.");
  const began = performance.now();
  try {
    const answer = await ask(`${path(wanted)}/infer`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    const text = await answer.text();
    const took = performance.now() - began;
    say(
      byId("try-said"),
      `${answer.ok ? "✓" : "✕"} ${answer.status} after ${ms(took)}, as this page saw it.`,
    );
    show(answer.ok ? described(text) : text);
  } catch (error) {
    showError(`The server does not answer: ${error.message}`);
  }
  button.disabled = false;
}

function tensor(input, at, form) {
  const shape = form
    .get(`shape-${at}`)
    .split(",")
    .map((size) => Number(size.trim()));
  if (shape.some((size) => !Number.isInteger(size) || size < 0))
    throw new Error(`The shape of ${input.name} must be whole numbers, such as 1, 3, 8.`);
  const size = shape.reduce((product, one) => product * one, 1);
  const fill = form.get(`fill-${at}`);
  if (fill !== "own" && size > MOST_VALUES)
    throw new Error(
      `${input.name} would have ${size} values; at most ${MOST_VALUES} can be made up here.`,
    );
  const data =
    fill === "own"
      ? ownValues(input, form.get(`own-${at}`))
      : Array.from({ length: size }, () => value(input.datatype, fill));
  return { name: input.name, shape, datatype: input.datatype, data };
}

function ownValues(input, text) {
  try {
    const found = JSON.parse(text);
    if (Array.isArray(found)) return found;
  } catch {
    // said below
  }
  throw new Error(`The values of ${input.name} must be a JSON list, such as [1, 2, 3].`);
}

function value(datatype, fill) {
  const isRandom = fill === "random";
  if (datatype === "BOOL") return isRandom && Math.random() < 0.5;
  if (datatype === "BYTES") return isRandom ? "text" : "";
  if (/^U?INT/.test(datatype)) return isRandom ? Math.floor(Math.random() * 10) : 0;
  return isRandom ? Math.round((Math.random() * 2 - 1) * 1e4) / 1e4 : 0;
}

/** The outputs in short; an answer with NaN is not JSON, and is shown as it is. */
function described(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return text.slice(0, 4000);
  }
  return found.outputs.map(outputText).join("\n\n");
}

function outputText({ name, datatype, shape, data }) {
  const values = (data ?? []).flat(Infinity);
  const lines = [`${name}  ${datatype} [${shape.join(", ")}]`];
  const shown = values
    .slice(0, SHOWN_VALUES)
    .map((one) =>
      typeof one === "number" && !Number.isInteger(one) ? Number(one.toPrecision(5)) : one,
    );
  lines.push(
    `  ${shown.join(", ")}${values.length > SHOWN_VALUES ? `, … ${values.length} in all` : ""}`,
  );
  if (values.length > 1 && typeof values[0] === "number") {
    const high = values.reduce((best, one, at) => (one > values[best] ? at : best), 0);
    lines.push(`  highest: ${Number(values[high].toPrecision(5))} at ${high}`);
  }
  return lines.join("\n");
}

function showError(text) {
  say(byId("try-said"), `✕ ${text}`);
  byId("try-answer").hidden = true;
}

function show(text) {
  const place = byId("try-answer");
  place.hidden = false;
  say(place, text);
}
