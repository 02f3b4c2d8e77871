
"use strict";
// All text comes from a model file that nobody vouches for: it reaches the page through
// textContent and fillText alone, never as markup.
const { facts, graphs, colours, others, row: ROW } =
  JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const canvas = byId("graph"), map = byId("map"), tip = byId("tip"), search = byId("search");
const pen = canvas.getContext("2d"), mapPen = map.getContext("2d");
const FONT = getComputedStyle(document.body).fontFamily;
const MAP_WIDTH = 96;

let current = 0;                       // the graph that is shown
let view = { x: 0, y: 0, scale: 1 };   // screen = world * scale + (x, y)
let chosen = null;                     // a box of the current graph
let matches = [], match = -1;          // [graph, box] of each hit of the search
let lit = null;                        // boxes of the current graph that match
let theme = {};

// --- small helpers ---------------------------------------------------------------------------

function add(parent, tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  parent.append(made);
  return made;
}

function link(parent, text, action) {
  const made = add(parent, "button", text, "link");
  made.addEventListener("click", action);
  return made;
}

function swatch(parent, colour) {
  add(parent, "span", "", "swatch").style.background = colour;
}

const colourOf = (family) => {
  const known = family.split("_").find((word) => word in colours);  // lite_conv: conv
  if (known) return colours[known];
  const sum = [...family].reduce((total, letter) => total + letter.codePointAt(0), 0);
  return others[sum % others.length];
};
const bytes = (n) => {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return unit === "B" ? `${n} B` : `${n.toFixed(1)} ${unit}`;
    n /= 1024;
  }
};
const count = (n) => n.toLocaleString("en");
const refusal = ({ op, problem }) =>
  problem === op ? "This operator is not supported." : `Not supported: ${problem}`;
const shape = (port) => `${port.dtype} ${port.shape ? `[${port.shape.join(", ")}]` : "of any rank"}`;

// --- the graph -------------------------------------------------------------------------------

function prepare(graph) {
  for (const edge of graph.edges) {
    const box = edge.box = [Infinity, Infinity, -Infinity, -Infinity];
    edge.points.forEach((value, i) => {
      box[i % 2] = Math.min(box[i % 2], value);
      box[2 + i % 2] = Math.max(box[2 + i % 2], value);
    });
  }
  graph.feeds = new Set(graph.edges.map((edge) => edge.ends[0]));
}

function path(target, points) {
  target.beginPath();
  target.moveTo(points[0], points[1]);
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = points.slice(i - 2, i + 2), half = (y0 + y1) / 2;
    if (Math.abs(x0 - x1) < 0.5) target.lineTo(x1, y1);
    else target.bezierCurveTo(x0, half, x1, half, x1, y1);
  }
}

function fitted(text, width) {
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

function drawEdges(graph, seen) {
  const block = chosen === null ? -1 : graph.boxes[chosen].block;
  for (const strong of [false, true]) {
    pen.strokeStyle = pen.fillStyle = strong ? theme.chosen : theme.edge;
    pen.lineWidth = strong ? 2.2 : 1.3;
    for (const { ends, points, box } of graph.edges) {
      if (ends.includes(block) !== strong) continue;
      if (box[0] > seen[2] || box[2] < seen[0] || box[1] > seen[3] || box[3] < seen[1]) continue;
      path(pen, points);
      pen.stroke();
      if (view.scale > 0.25) {
        const [x, y] = points.slice(-2);
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x - 4, y - 8);
        pen.lineTo(x + 4, y - 8);
        pen.fill();
      }
    }
  }
}

function drawBlock(graph, block, seen, sources) {
  if (block.x > seen[2] || block.x + block.w < seen[0]) return;
  if (block.y > seen[3] || block.y + block.h + 30 < seen[1]) return;
  const readable = view.scale > 0.35;
  if (block.caption) {
    pen.fillStyle = theme.panel;
    pen.beginPath();
    pen.roundRect(block.x, block.y, block.w, block.h, 6);
    pen.fill();
    if (readable) {
      pen.font = `11px ${FONT}`;
      pen.fillStyle = theme.soft;
      pen.textAlign = "left";
      pen.fillText(fitted(block.caption, block.w - 16), block.x + 8, block.y + 13);
    }
  }
  const dims = /\[(.+?)\]/.exec(graph.boxes[block.last].result);  // the first of a tuple
  if (dims && sources && view.scale > 0.45) {
    pen.font = `11px ${FONT}`;
    pen.textAlign = "left";
    const text = dims[1].replaceAll(", ", "×").replaceAll("-1", "?");
    const x = block.x + block.w / 2 + 8, y = block.y + block.h + 14;
    pen.lineWidth = 5;
    pen.strokeStyle = theme.back;  // keeps edges off the letters
    pen.strokeText(text, x, y);
    pen.fillStyle = theme.soft;
    pen.fillText(text, x, y);
  }
}

function drawBox(box, number, seen) {
  if (box.x > seen[2] || box.x + box.w < seen[0] || box.y > seen[3] || box.y + ROW < seen[1]) return;
  const rounded = box.family === "input" || box.family === "output";
  pen.globalAlpha = lit && !lit.has(number) ? 0.22 : 1;
  pen.fillStyle = box.problem ? colours.problem : colourOf(box.family);
  pen.beginPath();
  if (view.scale < 0.15) {  // nothing but colours can be seen, each at least a pixel high
    pen.rect(box.x, box.y, box.w, Math.max(ROW, 1 / view.scale));
  } else {
    pen.roundRect(box.x, box.y + 0.5, box.w, ROW - 1, rounded ? ROW / 2 : 4);
  }
  pen.fill();
  if (view.scale > 0.3) {
    pen.fillStyle = "#ffffff";
    pen.font = `600 13px ${FONT}`;
    pen.textAlign = rounded ? "center" : "left";
    const name = (box.problem ? "✕ " : "") + box.op;
    const room = box.w - 18, text = fitted(name, room);
    pen.fillText(text, rounded ? box.x + box.w / 2 : box.x + 9, box.y + 16.5);
    const left = room - pen.measureText(text).width - 8;
    if (box.note && left > 30) {
      pen.font = `11px ${FONT}`;
      pen.textAlign = "right";
      pen.fillText(fitted(box.note, left), box.x + box.w - 9, box.y + 16);
    }
  }
  pen.globalAlpha = 1;
  if (number === chosen || box.problem) {
    pen.strokeStyle = number === chosen ? theme.chosen : theme.bad;
    pen.lineWidth = Math.max(3, 2 / view.scale);
    pen.stroke();
  }
}

function draw() {
  const ratio = devicePixelRatio || 1, graph = graphs[current];
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
  const seen = [-view.x / view.scale, -view.y / view.scale,
    (width - view.x) / view.scale, (height - view.y) / view.scale];
  drawEdges(graph, seen);
  graph.blocks.forEach((block, i) => drawBlock(graph, block, seen, graph.feeds.has(i)));
  graph.boxes.forEach((box, i) => drawBox(box, i, seen));
  drawMap(graph, seen, ratio);
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

// The whole graph beside the part that is shown; not there when all of it is in sight anyway.
function drawMap(graph, seen, ratio) {
  const whole = seen[0] <= 0 && seen[1] <= 0 && seen[2] >= graph.width && seen[3] >= graph.height;
  map.style.display = whole ? "none" : "";
  if (whole) return;
  const tall = canvas.clientHeight - 24;
  const scale = Math.min((MAP_WIDTH - 8) / graph.width, (tall - 8) / graph.height);
  const height = Math.max(40, graph.height * scale + 8);
  map.width = MAP_WIDTH * ratio;
  map.height = height * ratio;
  map.style.width = `${MAP_WIDTH}px`;
  map.style.height = `${height}px`;
  const dx = (MAP_WIDTH - graph.width * scale) / 2;
  map.world = (x, y) => [(x - dx) / scale, (y - 4) / scale];
  mapPen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * dx, ratio * 4);
  graph.boxes.forEach((box, i) => {
    mapPen.fillStyle = box.problem ? colours.problem : colourOf(box.family);
    mapPen.globalAlpha = lit && !lit.has(i) ? 0.2 : 1;
    const least = box.problem || lit ? 3 / scale : 1 / scale;
    mapPen.fillRect(box.x, box.y, box.w, Math.max(ROW, least));
  });
  mapPen.globalAlpha = 1;
  mapPen.strokeStyle = theme.chosen;
  mapPen.lineWidth = 1.5 / scale;
  const x = Math.max(seen[0], -dx / scale), right = Math.min(seen[2], (MAP_WIDTH - dx) / scale);
  mapPen.strokeRect(x, seen[1], right - x, seen[3] - seen[1]);
}

// --- moving about ----------------------------------------------------------------------------

function fit() {
  const graph = graphs[current], width = canvas.clientWidth, height = canvas.clientHeight;
  const scale = Math.min((width - 40) / graph.width, (height - 60) / graph.height, 1.5);
  place(scale, (height - graph.height * scale) / 2);
}

function place(scale, top) {
  view = { scale, x: (canvas.clientWidth - graphs[current].width * scale) / 2, y: top };
  redraw();
}

// At first sight labels must be legible: a graph that only fits when tiny begins at its inputs.
function begin() {
  const graph = graphs[current];
  fit();
  if (view.scale >= 0.8) return;
  place(Math.max(0.8, Math.min(1, (canvas.clientWidth - 2 * MAP_WIDTH) / graph.width)), 28);
  const first = graph.boxes[0];
  if (graph.width * view.scale > canvas.clientWidth && first) {
    view.x = canvas.clientWidth / 2 - (first.x + first.w / 2) * view.scale;
  }
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.01, view.scale * factor)), by = scale / view.scale;
  view = { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  redraw();
}

function centre(x, y) {
  view.x = canvas.clientWidth / 2 - x * view.scale;
  view.y = canvas.clientHeight / 2 - y * view.scale;
  redraw();
}

function boxAt(event) {
  const x = (event.offsetX - view.x) / view.scale, y = (event.offsetY - view.y) / view.scale;
  const found = graphs[current].boxes.findIndex(
    (box) => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + ROW);
  return found < 0 ? null : found;
}

function show(number) {
  current = number;
  chosen = null;
  byId("details").hidden = true;
  lightUp();
  [...byId("tabs").children].forEach((tab, i) => tab.setAttribute("aria-selected", i === number));
  begin();
}

function choose(graph, box, move = true) {
  if (graph !== current) show(graph);
  chosen = box;
  if (box === null) {
    byId("details").hidden = true;
  } else {
    const { x, y, w } = graphs[graph].boxes[box];
    const left = x * view.scale + view.x, top = y * view.scale + view.y;
    const inSight = view.scale >= 0.6 && left >= 0 && left + w * view.scale <= canvas.clientWidth
      && top >= 0 && top + ROW * view.scale <= canvas.clientHeight;
    if (!inSight && move) {
      view.scale = Math.max(view.scale, 0.8);
      centre(x + w / 2, y + ROW / 2);
    }
    details(graph, box);
  }
  history.replaceState(null, "", box === null ? "#" : `#${graph}.${box}`);
  redraw();
}

// --- details, summary, search ----------------------------------------------------------------

function term(list, name, fill) {
  add(list, "dt", name);
  const place = add(list, "dd");
  if (typeof fill === "function") fill(place);
  else place.textContent = fill;
}

function details(graph, number) {
  const panel = byId("details"), box = graphs[graph].boxes[number];
  panel.hidden = false;
  panel.replaceChildren();
  const close = add(panel, "button", "✕", "close");
  close.title = "Close (Esc)";
  close.addEventListener("click", () => choose(current, null));
  const title = add(panel, "h2");
  swatch(title, box.problem ? colours.problem : colourOf(box.family));
  title.append(box.op);
  if (box.problem) add(panel, "p", refusal(box), "bad");
  const about = add(panel, "dl");
  if (box.label !== box.family) term(about, "where", box.label);
  term(about, "family", box.family);
  term(about, "result", box.result || "not told by the file");
  if (box.operands.length) {
    add(panel, "h3", "Inputs");
    const list = add(panel, "dl");
    box.operands.forEach((operand, i) => term(list, operand.argument || String(i), (place) => {
      const { kind } = operand;
      const source = kind === "box" && operand.box !== null ? graphs[graph].boxes[operand.box] : null;
      if (source) link(place, source.op, () => choose(graph, operand.box));
      if (kind === "weight") add(place, "span", operand.name);
      if (kind === "outer") add(place, "span", `${operand.name} of the graph around`);
      if (kind === "graph") {
        const at = graphs.findIndex((g) => g.name === operand.name);
        link(place, `graph ${operand.name}`, () => at >= 0 && show(at));
      }
      if (operand.text) add(place, kind === "constant" ? "span" : "div", operand.text, "soft");
    }));
  }
  const readers = graphs[graph].boxes.map((_, i) => i)
    .filter((i) => graphs[graph].boxes[i].operands.some((o) => o.box === number));
  if (readers.length) {
    add(panel, "h3", "Read by");
    for (const i of readers.slice(0, 100)) {
      link(add(panel, "p"), graphs[graph].boxes[i].op, () => choose(graph, i));
    }
  }
  if (box.attributes.length) {
    add(panel, "h3", "Attributes");
    const list = add(panel, "dl");
    for (const [name, value] of box.attributes) term(list, name, value);
  }
  panel.parentElement.scrollTop = 0;
}

function ports(panel, title, list) {
  add(panel, "h3", title);
  for (const port of list) {
    add(panel, "p", port.name);
    add(panel, "p", shape(port), "soft indent");
  }
}

function problems(panel) {
  const words = facts.can_run ? "Can run: everything in it is supported."
    : `Cannot run: ${facts.problems.length} thing(s) not supported.`;
  add(panel, "p", words, facts.can_run ? "good" : "bad");
  for (const { reason, places } of facts.problems) {
    add(panel, "p", reason, "bad");
    for (const place of places.slice(0, 200)) link(add(panel, "p"), place, () => find(place));
    if (places.length > 200) add(panel, "p", `and ${places.length - 200} more`);
  }
}

function summary() {
  const panel = byId("summary"), { weights, memory } = facts;
  add(panel, "h2", "Summary");
  problems(panel);
  const about = add(panel, "dl");
  term(about, "file", `${facts.file}, ${bytes(facts.size_bytes)}`);
  term(about, "format", `${facts.format}, ${facts.encoding}`);
  term(about, "producer", `${facts.producer} ${facts.producer_version}`);
  const ir = facts.mind_ir_version === null ? "" : `, mind_ir_version ${facts.mind_ir_version}`;
  term(about, "ir_version", `${facts.ir_version}${ir}`);
  term(about, "weights", !weights.tensors ? "none" : `${count(weights.elements)} in ${count(weights.tensors)} tensors, ` +
    `${bytes(weights.size_bytes)} (${Object.keys(weights.by_dtype).join(", ")})`);
  if (memory) {
    term(about, "memory", `about ${bytes(memory.weights_bytes + memory.activations_bytes)}: ` +
      `weights ${bytes(memory.weights_bytes)}, activations ${bytes(memory.activations_bytes)}` +
      (memory.open_dims_as_one ? ", open dims taken as 1" : ""));
  }
  for (const file of facts.external_files) {
    term(about, "data file", `${file.name}, ${bytes(file.size_bytes)}`);
  }
  ports(panel, "Inputs", facts.inputs);
  ports(panel, "Outputs", facts.outputs);
  add(panel, "h3", "Operators");
  const drawn = new Set(graphs.flatMap((graph) => graph.boxes.map((box) => box.op)));
  const body = add(add(panel, "table"), "tbody");
  for (const operator of facts.operators) {
    const line = add(body, "tr"), cell = add(line, "td");
    swatch(cell, operator.supported ? colourOf(operator.family || "unknown") : colours.problem);
    if (drawn.has(operator.name)) link(cell, operator.name, () => find(operator.name));
    else cell.append(operator.name);
    add(line, "td", operator.supported ? operator.family : "not supported",
      operator.supported ? "soft" : "bad");
    add(line, "td", count(operator.count), "number");
  }
  const told = Object.entries(facts.user_info);
  if (told.length) add(panel, "h3", "User info");
  const list = add(panel, "dl");
  for (const [name, value] of told) term(list, name, value);
}

function find(text) {
  search.value = text;
  look();
  step(1);
}

function look() {
  const wanted = search.value.trim().toLowerCase();
  const fits = (box) => [box.op, box.label, ...box.operands.map((o) => o.name || "")]
    .some((text) => text.toLowerCase().includes(wanted));
  matches = [];
  match = -1;
  if (wanted) {
    graphs.forEach((graph, g) => graph.boxes.forEach((box, b) => fits(box) && matches.push([g, b])));
  }
  lightUp();
  byId("count").textContent = wanted ? `${matches.length} found` : "";
  redraw();
}

function lightUp() {
  lit = search.value.trim()
    ? new Set(matches.filter(([graph]) => graph === current).map(([, box]) => box)) : null;
}

function step(by) {
  if (!matches.length) return;
  match = (match + by + matches.length) % matches.length;
  choose(...matches[match]);
  byId("count").textContent = `${match + 1} of ${matches.length}`;
}

// --- what the user does ----------------------------------------------------------------------

const pointers = new Map();
let moved = 0;

function pointerMoved(event) {
  const before = pointers.get(event.pointerId);
  if (!before) return hover(event);
  const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
  if (other) {  // two fingers
    const far = (a) => Math.hypot(a.offsetX - other.offsetX, a.offsetY - other.offsetY);
    zoom(far(event) / Math.max(1, far(before)), other.offsetX, other.offsetY);
  } else {
    view.x += event.offsetX - before.offsetX;
    view.y += event.offsetY - before.offsetY;
    redraw();
  }
  moved += Math.abs(event.offsetX - before.offsetX) + Math.abs(event.offsetY - before.offsetY);
  pointers.set(event.pointerId, event);
}

function hover(event) {
  const number = boxAt(event);
  canvas.classList.toggle("over", number !== null);
  tip.hidden = number === null;
  if (number === null) return;
  const box = graphs[current].boxes[number];
  const weights = box.operands.filter((o) => o.kind === "weight")
    .slice(0, 12).map((o) => `${o.argument || "weight"}: ${o.name} ${o.text}`);
  tip.textContent = [box.problem && refusal(box), `${box.op}  ${box.label}`,
    ...weights, box.result && `→ ${box.result}`].filter(Boolean).join("\n");
  const room = canvas.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(event.offsetX + 16, room))}px`;
  const below = event.offsetY + 18 + tip.offsetHeight < canvas.clientHeight;
  tip.style.top = `${below ? event.offsetY + 18 : event.offsetY - tip.offsetHeight - 10}px`;
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event);
  moved = 0;
  tip.hidden = true;
  canvas.classList.add("dragging");
});
canvas.addEventListener("pointermove", pointerMoved);
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
for (const kind of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(kind, (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    if (kind === "pointerup" && moved < 4) choose(current, boxAt(event), false);
  });
}
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.shiftKey) {
    view.x -= event.deltaY + event.deltaX;
    redraw();
  } else {
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
  }
}, { passive: false });
for (const kind of ["pointerdown", "pointermove"]) {
  map.addEventListener(kind, (event) => {
    if (event.buttons) centre(...map.world(event.offsetX, event.offsetY));
  });
}
search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
});
byId("in").addEventListener("click", () => zoom(1.3));
byId("out").addEventListener("click", () => zoom(1 / 1.3));
byId("fit").addEventListener("click", fit);
const KEYS = {
  "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": fit,
  "/": () => search.focus(),
  ArrowUp: () => { view.y += 80; }, ArrowDown: () => { view.y -= 80; },
  ArrowLeft: () => { view.x += 80; }, ArrowRight: () => { view.x -= 80; },
};
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    search.value = "";
    look();
    choose(current, null);
  } else if (event.target !== search && !event.ctrlKey && !event.metaKey && KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
    redraw();
  }
});

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "edge", "soft", "panel", "chosen", "bad"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  redraw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readTheme);
new ResizeObserver(redraw).observe(canvas);

graphs.forEach(prepare);
if (graphs.length > 1) {
  graphs.forEach((graph, i) => {
    const tab = add(byId("tabs"), "button", `${graph.role} (${graph.boxes.length})`);
    tab.setAttribute("role", "tab");
    tab.title = graph.name;
    tab.addEventListener("click", () => show(i));
  });
}
readTheme();
summary();
show(0);
const asked = /^#(\d+)\.(\d+)$/.exec(location.hash);
if (asked && graphs[asked[1]]?.boxes[asked[2]]) choose(Number(asked[1]), Number(asked[2]));
