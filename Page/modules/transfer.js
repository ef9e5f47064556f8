// Deletes, exports and imports pushes.
import { bodyOf, download, get, request } from "./api.js";
import { showError, showMessage } from "./copy.js";
import { choices, openDialog } from "./dialog.js";
import { button, h, replace } from "./dom.js";
import { count, counted, pushes } from "./format.js";
import { seqRanges } from "./records.js";
import { filterOf } from "./terms.js";

/** The largest number of pushes that are kept in the page so that their deletion can be undone. */
const MAX_UNDO = 20_000;
const FORMATS = [
  ["ndjson", "NDJSON: one push per line, for Import"], ["json", "JSON: an array, for Import"], ["har", "HAR: for browsers and HTTP debuggers"],
  ["csv", "CSV: for spreadsheets"],
];

/**
 * What an action can apply to, as options: the selected pushes, those of the search, all. The number of pushes of one may be null: not counted.
 * In a grouped list, `records` is null until the attempts of the pushes are counted.
 */
function scopes({ selected, query, matched, total, isGrouped }) {
  const options = [];
  const add = (value, label, number, isWhole) => options.push({ value, label, number, records: isWhole || !isGrouped ? number : null });
  if (selected.length) add("selected", selected.length === 1 ? "The selected push" : `The ${count(selected.length)} selected pushes`, selected.length);
  if (query) add("search", matched === null || matched === 0 ? `The pushes that match ${query}` : matched === 1 ? `The push that matches ${query}` : `The ${pushes(matched)} that match ${query}`, matched);
  const all = isGrouped ? total : Math.max(total, matched ?? 0);
  add("all", isGrouped ? `All pushes, ${counted(all, "attempt")}` : `All ${pushes(all)}`, all, true);
  return options;
}

/** The option that is selected at first: several selected pushes, else the search. */
function initial({ selected }, options) {
  return options.find(({ value }) => value === (selected.length > 1 ? "selected" : "search"))?.value ?? "all";
}

/**
 * The parameters that select what an option names, up to the push `newest`; several if they are too long for one request. In a grouped list, a push
 * is all of its attempts.
 */
function filtersOf(what, { selected, query, isGrouped }, newest) {
  const whole = isGrouped ? { attempts: "all" } : {};
  if (what === "selected") return seqRanges(selected).map((seqs) => ({ seqs, kind: "*", before: newest + 1, ...whole }));
  return [what === "search" ? { ...filterOf(query), before: newest + 1, ...whole } : { kind: "*", before: newest + 1 }];
}

/** Deletes pushes after a confirmation that names their number. */
export function clearPushes(scope, onDone) {
  const options = scopes(scope);
  // Pushes that arrive after the question are kept.
  const newest = get("/pushes", { kind: "*", order: "desc", limit: 1, fields: "seq" }).then((page) => page.items[0]?.seq ?? 0);
  newest.catch(() => {}); // Reported when it is awaited.
  const what = choices("Delete", "clear-scope", options.map(({ value, label }) => [value, label]), initial(scope, options));
  const confirm = button("", () => run(), { class: "danger" });
  const question = h("p", { class: "dialog-question", role: "status" });
  const note = h("p", { class: "quiet" });
  const option = () => options.find(({ value }) => value === what.value());
  const label = () => {
    const { value, number, records } = option();
    const isKnown = records !== null;
    const isOfAttempts = scope.isGrouped && value !== "all";
    const text = isKnown && (!isOfAttempts || records === number ? pushes(records) : `${pushes(number)} with ${counted(records, "attempt")}`);
    replace(question, !isKnown ? "Counting …" : records === 0 ? "No pushes match: there is nothing to delete." : scope.isGrouped && !isOfAttempts ? `Delete all pushes, ${counted(records, "attempt")}?` : `Delete ${text}?`);
    replace(note, !isKnown || records === 0 ? "" : records > MAX_UNDO ? "This cannot be undone: these are too many." : "You can undo this for a minute. The pushes then have new numbers.");
    confirm.textContent = !isKnown || records === 0 ? "Delete" : scope.isGrouped && !isOfAttempts ? "Delete all pushes" : `Delete ${pushes(isOfAttempts ? number : records)}`;
    confirm.disabled = !isKnown || records === 0;
  };
  const countRecords = async () => {
    const open = option();
    if (open.records !== null) return;
    let records = 0;
    for (const filter of filtersOf(open.value, scope, await newest)) records += (await get("/pushes", { ...filter, limit: 0, count: "exact" })).matched;
    open.records = records;
    open.number ??= records;
    label();
  };
  const run = async () => {
    confirm.disabled = true;
    try {
      const filters = filtersOf(what.value(), scope, await newest);
      const kept = option().records > MAX_UNDO ? null : await exported(filters);
      let deleted = 0;
      for (const filter of filters) deleted += (await (await request("DELETE", "/pushes", { query: filter })).json()).deleted;
      dialog.close();
      showMessage(`Deleted ${scope.isGrouped ? counted(deleted, "attempt") : pushes(deleted)}`, false, kept && (() => restore(kept, onDone)));
      onDone();
    } catch (error) {
      confirm.disabled = false;
      showError(error);
      onDone(); // A part may be deleted.
    }
  };
  const dialog = openDialog("Clear", {}, options.length > 1 && what.element, question, note,
    h("p", { class: "dialog-buttons" }, button("Cancel", () => dialog.close(), { autofocus: true }), confirm));
  what.element.addEventListener("change", () => { label(); countRecords().catch(showError); });
  label();
  countRecords().catch(showError);
}

/** The pushes that filters select, as an export. */
async function exported(filters) {
  const parts = [];
  for (const filter of filters) parts.push(await bodyOf(await request("GET", "/export", { query: { format: "ndjson", ...filter } }), "blob"));
  return new Blob(parts);
}

/** Adds deleted pushes again. They keep their connections, because they are this server's. */
async function restore(blob, onDone) {
  try {
    const response = await request("POST", "/import", { query: { connections: "own" }, body: blob, headers: { "content-type": "application/x-ndjson" } });
    showMessage(`Restored ${pushes((await response.json()).imported)}`);
  } catch (error) {
    showError(error);
  }
  onDone();
}

/** Saves pushes as a file. */
export function exportPushes(scope) {
  const options = scopes(scope);
  const what = choices("Pushes", "export-scope", options.map(({ value, label }) => [value, label]), initial(scope, options));
  const format = choices("Format", "export-format", FORMATS, "ndjson");
  const run = () => {
    const filters = what.value() === "all" ? [{}] : filtersOf(what.value(), scope, Infinity);
    if (filters.length > 1) return showMessage("Too many separate pushes are selected. Use a search instead.", true);
    const { before, ...filter } = filters[0];
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
