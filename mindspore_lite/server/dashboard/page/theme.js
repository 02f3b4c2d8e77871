// Light, dark, or as the system has it: the choice is kept in this browser.

const KEY = "mslite-theme";
const CHOICES = ["auto", "light", "dark"];

function stored() {
  try {
    const found = localStorage.getItem(KEY);
    return CHOICES.includes(found) ? found : "auto";
  } catch {
    return "auto"; // storage is off
  }
}

let chosen = stored();

function apply() {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  const button = document.getElementById("theme-button");
  if (button) button.textContent = `Theme: ${chosen}`;
}

/** Let the button change the theme; `changed` is called whenever colours are others. */
export function followTheme(changed) {
  apply();
  document.getElementById("theme-button").addEventListener("click", () => {
    chosen = CHOICES[(CHOICES.indexOf(chosen) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // it lasts until the page is closed
    }
    apply();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** A colour of the style sheet, as a canvas wants it. */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

apply(); // before anything is drawn
