// Clipboard access and notifications.
import { openDialog } from "./dialog.js";
import { button, h } from "./dom.js";

/** How long an action can be undone, in milliseconds. */
const UNDO_TIME = 60000;

/** Shows a temporary notification, also to screen readers. `undo`, if there is one, is offered for a minute. */
export function showMessage(message, isError = false, undo = null) {
  const note = h("p", { class: isError ? "toast is-error" : "toast" }, h("span", {}, message));
  if (undo) note.append(button("Undo", () => { note.remove(); undo(); }, { class: "small" }));
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), undo ? UNDO_TIME : isError ? 8000 : 2500);
}

/** Copies `text`; `what` is its name in the notification. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    showMessage(`Copied ${what}`);
  } catch {
    showText(text, what);
  }
}

/** Shows a text selected: a browser lets a page copy only at localhost or with https. */
function showText(text, what) {
  const field = h("textarea", { class: "mono", rows: Math.min(14, text.split("\n").length + 1), readonly: true, "aria-label": what, spellcheck: "false" });
  field.value = text;
  const dialog = openDialog(`Copy ${what}`, { isWide: text.length > 300 },
    h("p", {}, "The browser does not let this page copy, because its address is neither localhost nor https. Press Ctrl+C or Command+C: the text is selected."), field,
    h("p", { class: "dialog-buttons" }, button("Close", () => dialog.close(), { class: "primary" })));
  field.focus();
  field.select();
  field.addEventListener("copy", () => setTimeout(() => { dialog.close(); showMessage(`Copied ${what}`); }));
}

/** Shows the error of an action. */
export function showError(error) {
  showMessage([error.message, error.hint].filter(Boolean).join(" — "), true);
}
