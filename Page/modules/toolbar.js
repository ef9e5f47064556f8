// The actions on pushes: Clear, Export, Import, Resend and Compare.
import { hasServer } from "./api.js";
import { button, h } from "./dom.js";
import { comparePushes, MAX_COMPARED } from "./compare.js";
import { resend } from "./resend.js";
import { clearPushes, exportPushes, importFile } from "./transfer.js";

export class Toolbar {
  /**
   * `callbacks`: `query()` returns the search of the list, `onChange()` is called after pushes were removed or added,
   * `onSize(number, isLoading)` with the number of selected pushes, and whether others are added as soon as they are loaded.
   */
  constructor(list, records, callbacks) {
    this.list = list;
    this.records = records;
    this.callbacks = callbacks;
    this.file = h("input", { type: "file", accept: ".ndjson,.json,.jsonl,application/json", hidden: true, "aria-label": "File to import", on: { change: () => this.importFile() } });
    this.clear = button("Clear", () => clearPushes(this.scope(), this.callbacks.onChange), { class: "small", title: "Delete pushes" });
    this.export = button("Export", () => exportPushes(this.scope()), { class: "small", title: "Save pushes as a file" });
    this.import = button("Import", () => this.file.click(), { class: "small", title: "Add the pushes of an exported file" });
    this.resend = button("Resend", () => this.sendAgain(), { class: "small", title: "Send the selected pushes again" });
    this.progress = h("span", { class: "toolbar-progress", role: "status" });
    this.cancel = button("Cancel", () => this.sending?.abort(), { class: "small", hidden: true, title: "Send no further pushes" });
    this.compare = button("Compare", () => comparePushes(this.selected()), { class: "small" });
    this.selectAll = button("Select all", () => this.toggleAll(), { class: "small", title: "Select all pushes of the list (Ctrl+A)" });
    this.element = h("div", { class: "toolbar", role: "group", "aria-label": "Actions" }, hasServer() && [this.clear, this.export, this.import, this.resend, this.progress, this.cancel], this.compare, this.file);
  }

  /** Sends the selected pushes again; once at a time, and it can be canceled. */
  async sendAgain() {
    if (this.sending) return;
    const seqs = this.selected();
    this.sending = new AbortController();
    this.cancel.hidden = seqs.length < 2;
    this.update();
    await resend(seqs, { signal: this.sending.signal, onProgress: (sent) => { this.progress.textContent = seqs.length > 1 ? `Sending ${sent + 1} of ${seqs.length}` : "Sending"; } });
    this.sending = null;
    this.cancel.hidden = true;
    this.progress.textContent = "";
    this.update();
  }

  /** The selected pushes in the order of arrival. */
  selected() {
    return [...this.list.selection.seqs].sort((one, other) => one - other);
  }

  /** What an action can apply to. */
  scope() {
    return { selected: this.selected(), query: this.callbacks.query(), matched: this.records.matched, total: this.records.total, isGrouped: this.records.isGrouped };
  }

  toggleAll() {
    const { selection } = this.list;
    if (this.areAllSelected) selection.set(null); else selection.all();
    this.list.box.focus({ preventScroll: true });
  }

  get areAllSelected() {
    return this.records.length > 0 && this.list.selection.size >= this.records.length;
  }

  update() {
    const { size } = this.list.selection;
    const isEmpty = this.records.total === 0 && this.records.length === 0;
    this.clear.disabled = isEmpty;
    this.export.disabled = isEmpty;
    this.resend.disabled = size === 0 || Boolean(this.sending);
    this.compare.disabled = size < 2 || size > MAX_COMPARED;
    this.compare.title = this.compare.disabled ? `Select 2 to ${MAX_COMPARED} pushes to compare them: with Ctrl+click, or the key x` : "Show the selected pushes side by side (c)";
    this.selectAll.disabled = this.records.length === 0;
    this.selectAll.textContent = this.areAllSelected ? "Select none" : "Select all";
    this.callbacks.onSize(size, this.list.selection.isLoading);
  }

  async importFile() {
    const file = this.file.files[0];
    this.file.value = "";
    if (file) await importFile(file, this.callbacks.onChange);
  }

  /** Compares the selected pushes, if there are several. */
  compareSelected() {
    if (!this.compare.disabled) comparePushes(this.selected());
  }
}
