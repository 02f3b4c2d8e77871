// The event stream. EventSource cannot send a token, so the stream is read by fetch.

const BASE = new URL(".", import.meta.url);
const ROOT = new URL("..", import.meta.url);
const SILENT_MS = 3500; // events come every second
const DEAD_MS = 10_000; // a connection that is worth nothing any more
const KEY = "mslite-token";

let token = "";
try {
  token = sessionStorage.getItem(KEY) ?? "";
} catch {
  // storage is off: it lasts until the page is loaded again
}

export const hasToken = () => token !== "";

export function setToken(value) {
  token = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // as above
  }
}

const headers = () => (token ? { authorization: `Bearer ${token}` } : {});

/** Ask the dashboard (a path without a slash) or the protocol (such as "v2/models"). */
export function ask(path, options = {}) {
  const base = path.startsWith("v2") ? ROOT : BASE;
  return fetch(new URL(path, base), {
    cache: "no-store",
    credentials: "omit",
    ...options,
    headers: { ...headers(), ...options.headers },
  });
}

/** The stream, opened again whenever it ends. `said(name, value)` gets the events, `state(word)` is
 * told "open", "silent", "locked" or "lost". */
export class Feed {
  #said;
  #state;
  #abort = new AbortController();
  #silence = 0;
  #death = 0;
  #tries = 0;

  constructor(said, state) {
    this.#said = said;
    this.#state = state;
  }

  /** Connect, or connect anew with another token. */
  async open() {
    this.#abort.abort();
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    while (!signal.aborted) {
      const goesOn = await this.#read(signal);
      clearTimeout(this.#silence);
      clearTimeout(this.#death);
      if (!goesOn || signal.aborted) return;
      this.#tries += 1;
      await new Promise((wake) => setTimeout(wake, Math.min(1000 * this.#tries, 10_000)));
    }
  }

  /** Read until the stream ends; whether to try again. */
  async #read(signal) {
    const dead = new AbortController();
    this.#death = setTimeout(() => dead.abort(), DEAD_MS);
    try {
      const answer = await ask("events", { signal: AbortSignal.any([signal, dead.signal]) });
      if (answer.status === 401 || answer.status === 403) {
        this.#state("locked");
        return false;
      }
      if (!answer.ok) throw new Error((await answer.json()).error);
      this.#heard(dead);
      await this.#parse(answer.body.pipeThrough(new TextDecoderStream()).getReader(), dead);
      this.#state("lost", "the server ended the stream");
    } catch (error) {
      if (signal.aborted) return false;
      const isGone = dead.signal.aborted || error instanceof TypeError;
      this.#state("lost", isGone ? "the server does not answer" : error.message);
    }
    return true;
  }

  async #parse(reader, dead) {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
        if (!name) continue;
        this.#heard(dead);
        this.#said(name, JSON.parse(data));
      }
    }
  }

  #heard(dead) {
    this.#tries = 0;
    this.#state("open");
    clearTimeout(this.#silence);
    clearTimeout(this.#death);
    this.#silence = setTimeout(() => this.#state("silent"), SILENT_MS);
    this.#death = setTimeout(() => dead.abort(), DEAD_MS);
  }
}
