// The dashboard: numbers come once a second over one stream, and everything is drawn from them.

import { offerAdmin, watchAdmin } from "./admin.js";
import { drawDetail, resetCharts, watchDetail } from "./detail.js";
import { byId, say } from "./dom.js";
import { Feed, ask, hasToken, setToken } from "./feed.js";
import { drawHeader, setHealth, setVerdict } from "./header.js";
import { drawModels } from "./models.js";
import { drawSlowest } from "./slowest.js";
import { Store, keyOf } from "./store.js";
import { clock } from "./text.js";
import { followTheme } from "./theme.js";
import { offerTry, watchTry } from "./try.js";

const store = new Store();
const feed = new Feed(said, contact);

function said(name, value) {
  if (name === "sparks") store.addSparks(value.models);
  if (name !== "numbers") return;
  store.addNumbers(value);
  if (!store.model()) choose(mostInteresting(value.models));
  if (!document.hidden) draw();
}

/** The key of the model with most errors, or else with most requests. */
function mostInteresting(models) {
  const errors = (model) =>
    Object.values(model.recent.errors).reduce((sum, number) => sum + number, 0);
  const [first] = [...models].sort(
    (a, b) => errors(b) - errors(a) || b.recent.rate - a.recent.rate,
  );
  return first && keyOf(first);
}

function draw() {
  if (!store.numbers) return;
  drawHeader(store);
  drawModels(store, choose);
  drawDetail(store);
  drawSlowest(store);
}

function choose(key) {
  if (key === store.chosen) return;
  store.chosen = key ?? null;
  store.history = null;
  offerTry(store.model());
  readHistory();
  draw();
}

/** A quarter of an hour of the chosen model; the stream goes on from there. */
async function readHistory() {
  const model = store.model();
  if (!model) return;
  const path = `history/${encodeURIComponent(model.name)}/${encodeURIComponent(model.version)}`;
  try {
    const answer = await ask(path);
    if (!answer.ok) return; // unloaded just now
    store.setHistory(keyOf(model), await answer.json());
    draw();
  } catch {
    // the stream is lost as well, and says so
  }
}

function contact(state, why) {
  document.body.dataset.contact = state;
  if (state === "open") {
    say(byId("contact"), "");
    return;
  }
  const since = store.numbers ? `numbers of ${clock(store.numbers.time)}` : "no numbers yet";
  if (state === "locked") {
    setHealth("wait", "locked");
    setVerdict(
      "warn",
      hasToken() ? "The server does not take this token." : "The server asks for a token.",
    );
    if (!byId("token-dialog").open) byId("token-dialog").showModal();
    return;
  }
  setHealth("bad", "no contact");
  setVerdict("bad", `No contact with the server (${why ?? "it sends nothing"}); ${since}.`);
  say(byId("contact"), since);
  if (state === "lost") store.history = null; // what was missed is asked for
}

function opened() {
  if (store.chosen && !store.history) readHistory();
}

function watchToken() {
  const dialog = byId("token-dialog");
  byId("token-button").addEventListener("click", () => dialog.showModal());
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { value } = event.submitter ?? { value: "use" };
    if (value === "use") setToken(byId("token").value.trim());
    if (value === "forget") setToken("");
    byId("token").value = "";
    dialog.close();
    if (value !== "cancel") reopen();
  });
}

function reopen() {
  feed.open();
  offerAdmin();
}

followTheme(() => {
  resetCharts();
  draw();
});
watchDetail(draw);
watchTry();
watchToken();
watchAdmin();
document.addEventListener("visibilitychange", () => document.hidden || draw());
setInterval(opened, 1000);
reopen();
