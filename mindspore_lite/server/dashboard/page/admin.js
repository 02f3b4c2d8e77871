// Load and unload: only for the administrator's token, and where the server has a repository.

import { byId, h, say } from "./dom.js";
import { ask, hasToken } from "./feed.js";

/** Offer what the token allows. */
export async function offerAdmin() {
  byId("admin").hidden = true;
  if (!hasToken()) return;
  try {
    const { admin } = await answered(await ask("access"));
    const { extensions } = await answered(await ask("v2"));
    if (!admin || !extensions.some((name) => name.startsWith("model_repository"))) return;
    await readIndex();
    byId("admin").hidden = false;
  } catch {
    // a token that is not taken, or no contact: said elsewhere
  }
}

async function answered(answer) {
  const text = await answer.text();
  const found = text ? JSON.parse(text) : {};
  if (!answer.ok) throw new Error(found.error ?? String(answer.status));
  return found;
}

/** The names of all models, loaded or not. */
async function readIndex() {
  const rows = await answered(await ask("v2/repository/index", { method: "POST", body: "{}" }));
  const names = [...new Set(rows.map((row) => row.name))].sort();
  const chosen = byId("admin-name").value;
  byId("admin-name").replaceChildren(
    ...names.map((name) => h("option", { selected: name === chosen }, name)),
  );
}

export function watchAdmin() {
  for (const action of ["load", "unload"]) {
    byId(action).addEventListener("click", () => change(action, byId("admin-name").value));
  }
}

async function change(action, name) {
  if (action === "unload" && !confirm(`Unload ${name}? Requests to it will be refused.`)) return;
  say(byId("admin-said"), `${action} of ${name} …`);
  try {
    const path = `v2/repository/models/${encodeURIComponent(name)}/${action}`;
    await answered(await ask(path, { method: "POST", body: "{}" }));
    say(byId("admin-said"), `✓ ${action} of ${name}: done`);
    await readIndex();
  } catch (error) {
    say(byId("admin-said"), `✕ ${action} of ${name}: ${error.message}`);
  }
}
