// Copying to the clipboard, and saying so.
import { h } from "./dom.js";

/** Says something for a moment at the edge of the page, also to screen readers. */
export function say(words, isError = false) {
  const note = h("p", { class: isError ? "toast is-error" : "toast" }, words);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), isError ? 8000 : 2500);
}

/** Copies `text`; `what` is its name in the notice. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}`);
  } catch {
    say(`The browser does not let this page copy. It works over localhost or https.`, true);
  }
}

/** Tells what an action could not do. */
export function sayError(error) {
  say([error.message, error.hint].filter(Boolean).join(" — "), true);
}
