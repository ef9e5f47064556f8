// Keyboard shortcuts, and the dialog that lists them.
import { openDialog } from "./dialog.js";
import { button, h } from "./dom.js";

const KEYS = [
  ["j", "next push"], ["k", "previous push"], ["Enter", "open"], ["Esc", "back"], ["/", "search"], ["1 … 6", "tabs of the push"],
  ["Shift+↑ Shift+↓", "select more"], ["x", "select or unselect"], ["Alt+click", "on a topic, reason, token, … in a row: search it"], ["Ctrl+A", "select all of the list"], ["PageUp PageDown Home End", "move further"],
  ["← →", "on a column header: its width; on the border of the list: that of the list"], ["c", "compare the selected pushes"], ["n", "write a new push"], ["e", "edit and send again"], ["y", "copy the apns-id"], ["[ ]", "previous, next attempt"], [".", "pause or resume"], ["t", "theme"], ["?", "this list"],
];

/** `actions` has a function for each key, and `escape`. Keys with Ctrl, Alt or Command are left to the browser. */
export function start(actions) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const isTyping = event.target.closest("input, textarea, select") !== null;
    // Escape closes a dialog and does nothing else.
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (isTyping) event.target.blur();
      else actions.escape();
      return;
    }
    if (isTyping) return;
    // Enter on a button clicks it.
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** Shows the keyboard shortcuts. */
export function showSheet() {
  openDialog("Keyboard shortcuts", {},
    h("dl", { class: "keys" }, KEYS.map(([key, meaning]) => h("div", {}, h("dt", {}, key.split(" ").map((one) => (one === "…" ? " … " : h("kbd", {}, one)))), h("dd", {}, meaning)))));
}

/** Asks for the admin token; returns a promise of it, and of null if it was appended to the address in the meantime. */
export function askForToken(wasWrong) {
  return new Promise((resolve) => {
    const field = h("input", { id: "admin-token", type: "password", autocomplete: "off", on: { keydown: (event) => event.key === "Enter" && dialog.close() } });
    const dialog = openDialog("Admin token", {}, h("p", {}, wasWrong ? "The token is wrong." : "This server requires the token of --admin-token."),
      h("label", { for: "admin-token" }, "Token"), field,
      h("p", { class: "quiet" }, "The token stays in memory until the page is reloaded. To skip this dialog, append #token=… to the URL."),
      h("p", { class: "dialog-buttons" }, button("Continue", () => dialog.close(), { class: "primary" })));
    const inAddress = () => {
      resolve(null);
      dialog.close();
    };
    addEventListener("hashchange", inAddress, { once: true });
    dialog.addEventListener("close", () => {
      removeEventListener("hashchange", inAddress);
      resolve(field.value);
    });
    field.focus();
  });
}
