// Light, dark, or as the system has it. The choice is kept in this browser.

const THEMES = ["auto", "light", "dark"];
const PLACE = "apns-mock.theme";

function kept() {
  try {
    return localStorage.getItem(PLACE);
  } catch {
    return null; // Storage can be forbidden; then the choice lasts until reload.
  }
}

let theme = "auto";

/** Applies what was chosen before. */
export function start() {
  set(THEMES.includes(kept()) ? kept() : "auto");
}

/** Goes to the next one; its name. */
export function next() {
  set(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  return theme;
}

function set(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(PLACE, name);
  } catch {
    // See above.
  }
}
