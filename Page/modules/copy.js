// Clipboard access and notifications.
import { h } from "./dom.js";

/** Shows a temporary notification, also to screen readers. */
export function showMessage(message, isError = false) {
  const note = h("p", { class: isError ? "toast is-error" : "toast" }, message);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), isError ? 8000 : 2500);
}

/** Copies `text`; `what` is its name in the notification. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    showMessage(`Copied ${what}`);
  } catch {
    showMessage(`The browser does not allow this page to copy. Use localhost or https.`, true);
  }
}

/** Shows the error of an action. */
export function showError(error) {
  showMessage([error.message, error.hint].filter(Boolean).join(" — "), true);
}
