// The theme: light, dark or the system's. The selection is stored in the browser.

const THEMES = ["auto", "light", "dark"];
const STORAGE_KEY = "apns-mock.theme";

function stored() {
  try {
    return localStorage.getItem(STORAGE_KEY);
  } catch {
    return null; // Storage can be disabled; then the selection lasts until reload.
  }
}

let theme = "auto";

/** Applies the stored theme. */
export function start() {
  set(THEMES.includes(stored()) ? stored() : "auto");
}

/** Switches to the next theme and returns its name for people. */
export function next() {
  set(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  return theme === "auto" ? "system" : theme;
}

function set(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(STORAGE_KEY, name);
  } catch {
    // See above.
  }
}
