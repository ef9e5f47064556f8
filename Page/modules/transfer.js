// Deletes, exports and imports pushes.
import { download, get, request } from "./api.js";
import { showError, showMessage } from "./copy.js";
import { choices, openDialog } from "./dialog.js";
import { button, h, replace } from "./dom.js";
import { count } from "./format.js";
import { seqRanges } from "./records.js";
import { filterOf } from "./terms.js";

const FORMATS = [
  ["ndjson", "NDJSON: one push per line, for Import"], ["json", "JSON: an array, for Import"], ["har", "HAR: for browsers and HTTP debuggers"],
  ["csv", "CSV: for spreadsheets"],
];

function pushes(number) {
  return `${count(number)} ${number === 1 ? "push" : "pushes"}`;
}

/** What an action can apply to, as options: the selected pushes, those of the search, all. */
function scopes({ selected, query, matched, total }) {
  const options = [];
  if (selected.length) options.push(["selected", `The ${selected.length === 1 ? "selected push" : `${count(selected.length)} selected pushes`}`, selected.length]);
  if (query) options.push(["search", `The ${pushes(matched)} that match the search`, matched]);
  options.push(["all", `All ${pushes(Math.max(total, matched))}`, Math.max(total, matched)]);
  return options;
}

/** The option that is selected at first: several selected pushes, else the search. */
function initial({ selected, query }) {
  return selected.length > 1 ? "selected" : query ? "search" : "all";
}

/** Deletes pushes after a confirmation that names their number. */
export function clearPushes(scope, onDone) {
  const options = scopes(scope);
  // Pushes that arrive after the question are kept.
  const newest = get("/pushes", { kind: "*", order: "desc", limit: 1, fields: "seq" }).then((page) => page.items[0]?.seq ?? 0);
  newest.catch(() => {}); // Reported when it is awaited.
  const what = choices("Delete", "clear-scope", options.map(([value, label]) => [value, label]), initial(scope));
  const confirm = button("", () => run(), { class: "danger" });
  const question = h("p", { class: "dialog-question", role: "status" });
  const number = () => options.find(([value]) => value === what.value())[2];
  const label = () => {
    replace(question, `Delete ${pushes(number())}? This cannot be undone.`);
    confirm.textContent = `Delete ${pushes(number())}`;
  };
  const run = async () => {
    confirm.disabled = true;
    try {
      const deleted = await remove(what.value(), scope, await newest);
      dialog.close();
      showMessage(`Deleted ${pushes(deleted)}`);
      onDone();
    } catch (error) {
      confirm.disabled = false;
      showError(error);
      onDone(); // A part may be deleted.
    }
  };
  const dialog = openDialog("Clear", {}, options.length > 1 && what.element, question,
    h("p", { class: "dialog-buttons" }, button("Cancel", () => dialog.close(), { autofocus: true }), confirm));
  what.element.addEventListener("change", label);
  label();
}

async function remove(what, { selected, query }, newest) {
  const queries = what === "all" ? [{ kind: "*", before: newest + 1 }] : what === "search" ? [{ ...filterOf(query), before: newest + 1 }] : seqRanges(selected).map((seqs) => ({ seqs, kind: "*" }));
  let deleted = 0;
  for (const one of queries) deleted += (await (await request("DELETE", "/pushes", { query: one })).json()).deleted;
  return deleted;
}

/** Saves pushes as a file. */
export function exportPushes(scope) {
  const options = scopes(scope);
  const what = choices("Pushes", "export-scope", options.map(([value, label]) => [value, label]), initial(scope));
  const format = choices("Format", "export-format", FORMATS, "ndjson");
  const run = () => {
    const ranges = what.value() === "selected" ? seqRanges(scope.selected) : null;
    if (ranges?.length > 1) return showMessage("Too many separate pushes are selected. Use a search instead.", true);
    const filter = ranges ? { seqs: ranges[0], kind: "*" } : what.value() === "search" ? filterOf(scope.query) : {};
    download("/export", { format: format.value(), ...filter }, `pushes.${format.value()}`).then(() => dialog.close(), showError);
    return null;
  };
  const dialog = openDialog("Export", {}, what.element, format.element,
    h("p", { class: "dialog-buttons" }, button("Cancel", () => dialog.close()), button("Download", run, { class: "primary", autofocus: true })));
}

/** Adds the pushes of a file. */
export async function importFile(file, onDone) {
  try {
    const isArray = /^\s*\[/.test(await file.slice(0, 64).text());
    const response = await request("POST", "/import", { body: file, headers: { "content-type": isArray ? "application/json" : "application/x-ndjson" } });
    showMessage(`Imported ${pushes((await response.json()).imported)}`);
    onDone();
  } catch (error) {
    showError(error);
  }
}
