// What the page knows: the latest numbers, and what they were before.

const SLOT_SECONDS = 60;
const STATES = { i: "idle", g: "gathering", c: "computing", s: "stuck" };
const SPARK_STEP_S = 5;
const SPARK_POINTS = 60;
const KEPT_S = 900;
const KEPT_EVENTS = 5;

export const keyOf = (model) => `${model.name}/${model.version}`;

export class Store {
  numbers = null;
  sparks = new Map(); // by model: requests a second, in steps
  slots = new Map(); // by model: a list of states for each slot
  chosen = null; // the key of a model
  history = null; // of the chosen one
  #latest = []; // the last events
  #steps = new Map(); // by model: the step of its sparkline that is being filled

  addSparks(models) {
    this.sparks = new Map(models.map((model) => [keyOf(model), model.rate]));
    const states = (letters) => [...letters].map((letter) => STATES[letter]);
    this.slots = new Map(models.map((model) => [keyOf(model), model.slots.map(states)]));
  }

  addNumbers(numbers) {
    this.numbers = numbers;
    this.#latest = [...this.#latest, numbers].slice(-KEPT_EVENTS);
    const keys = new Set(numbers.models.map(keyOf));
    for (const map of [this.sparks, this.slots, this.#steps]) {
      for (const key of map.keys()) if (!keys.has(key)) map.delete(key);
    }
    for (const model of numbers.models) {
      this.#addSlots(model);
      this.#addSpark(model);
      if (keyOf(model) === this.chosen) this.#addSecond(model.second, numbers.at);
    }
  }

  model(key = this.chosen) {
    return this.numbers?.models.find((model) => keyOf(model) === key);
  }

  /** When a sample was taken, by this page's clock of the server: the newest one is now. */
  time(at) {
    return this.numbers.time - (this.numbers.at - at);
  }

  /** Take the history of a model, and what came while it was asked for. */
  setHistory(key, history) {
    if (key !== this.chosen) return;
    this.history = history;
    for (const { at, models } of this.#latest) {
      this.#addSecond(models.find((model) => keyOf(model) === key)?.second, at);
    }
  }

  #addSlots(model) {
    const rows = this.slots.get(keyOf(model)) ?? [];
    rows.length = model.slots.length;
    model.slots.forEach((state, slot) => {
      rows[slot] = [...(rows[slot] ?? []), state].slice(-SLOT_SECONDS);
    });
    this.slots.set(keyOf(model), rows);
  }

  #addSpark(model) {
    const key = keyOf(model);
    const values = this.sparks.get(key) ?? [];
    const step = this.#steps.get(key) ?? { requests: 0, seconds: 0 };
    if (model.second) {
      step.requests += model.second.values.requests;
      step.seconds += model.second.took_s;
    }
    if (step.seconds >= SPARK_STEP_S) {
      values.push(step.requests / step.seconds);
      step.requests = step.seconds = 0;
    }
    this.sparks.set(key, values.slice(-SPARK_POINTS));
    this.#steps.set(key, step);
  }

  #addSecond(second, at) {
    const history = this.history;
    if (!history || !second) return;
    if (history.at.length && history.at.at(-1) >= at) return; // it came with the history
    history.at.push(at);
    history.took_s.push(second.took_s);
    for (const [name, value] of Object.entries(second.values)) {
      (history.columns[name] ??= new Array(history.at.length - 1).fill(0)).push(value);
    }
    history.latency.push(second.latency);
    const old = history.at.findIndex((one) => one >= at - KEPT_S);
    if (old > 0) {
      for (const list of [history.at, history.took_s, history.latency]) list.splice(0, old);
      for (const list of Object.values(history.columns)) list.splice(0, old);
    }
  }
}
