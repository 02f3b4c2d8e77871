// Elements, without a template language: texts are never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element: properties that begin with "on" listen, the others are attributes. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for pictures. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Set a text only if it is another one: what does not change is not announced, nor drawn. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Keep one child per key, in order: children that stay keep the focus. */
export function keyed(parent, items, keyOf, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    let child = known.get(key);
    known.delete(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    const place = before ? before.nextElementSibling : parent.firstElementChild;
    if (place !== child) parent.insertBefore(child, place);
    update(child, item);
    before = child;
  }
  for (const child of known.values()) child.remove();
}

/** A bar of parts, [{name, value, text}]; each part says what it is in its title. */
export function stacked(bar, parts, total) {
  const shown = parts.filter((part) => part.value > 0);
  keyed(
    bar,
    shown,
    (part) => part.name,
    (part) => h("i", { "data-part": part.name }),
    (element, part) => {
      element.style.flexGrow = String(part.value / total);
      mark(element, "title", part.text);
    },
  );
}

/** A line of values over equal steps, scaled to its own highest one. */
export function sparkline(picture, values) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, at) => {
    const x = (at / Math.max(1, values.length - 1)) * 100;
    return `${x.toFixed(1)},${(23 - (value / most) * 22).toFixed(1)}`;
  });
  const line = points.length ? `M${points.join("L")}` : "";
  picture.children[0].setAttribute("d", line && `${line}L100,24L0,24Z`);
  picture.children[1].setAttribute("d", line);
}

export function emptySpark() {
  return svg(
    "svg",
    { viewBox: "0 0 100 24", preserveAspectRatio: "none", class: "spark", "aria-hidden": "true" },
    svg("path", { class: "area" }),
    svg("path", { class: "line" }),
  );
}
