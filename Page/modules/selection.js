// The selected pushes of the list: one, several, or all that match the search.
import { showError } from "./copy.js";
import { isNamed } from "./seq.js";

export class Selection {
  /** @param onChange called after each change. */
  constructor(records, onChange) {
    this.records = records;
    this.onChange = onChange;
    this.current = null;
    this.anchor = null;
    this.seqs = new Set();
    // Whether several rows are marked one by one: then moving changes only the current row.
    this.isMarking = false;
    // While the rest of a list is loaded of which all are selected: the newest selected push, and the list; else null.
    this.allThrough = null;
    this.allOf = null;
  }

  get size() {
    return this.seqs.size;
  }

  /** Whether the others of a list are loaded of which all are selected. */
  get isLoading() {
    return this.allThrough !== null;
  }

  has(seq) {
    return this.seqs.has(seq);
  }

  /** Selects a single push, or none if `seq` is null. */
  set(seq) {
    this.current = seq;
    this.anchor = seq;
    this.allThrough = null;
    this.isMarking = false;
    this.seqs = new Set(seq === null ? [] : [seq]);
    this.onChange();
  }

  /** Makes a row the current one; what is marked stays selected. */
  move(seq) {
    if (!this.isMarking) return this.set(seq);
    this.current = seq;
    this.anchor = seq;
    return this.onChange();
  }

  /** Marks the current row, or removes its mark. The first mark is that of the row that is selected already. */
  mark() {
    if (this.current === null) return;
    const isFirst = !this.isMarking && this.seqs.size === 1;
    this.isMarking = true;
    if (isFirst) this.onChange();
    else this.toggle(this.current);
  }

  /** Adds a push to the selection, or removes it. */
  toggle(seq) {
    this.allThrough = null;
    this.isMarking = true;
    if (!this.seqs.delete(seq)) this.seqs.add(seq);
    this.current = seq;
    this.anchor = seq;
    this.onChange();
  }

  /** Selects from the anchor to `seq`. */
  extend(seq) {
    const from = this.records.indexOf(this.anchor ?? seq);
    const to = this.records.indexOf(seq);
    this.current = seq;
    if (from < 0 || to < 0) return this.set(seq);
    this.allThrough = null;
    this.seqs = new Set(this.records.seqsBetween(from, to));
    return this.onChange();
  }

  /** Selects all pushes of the list. Those whose seq is not known yet are added by `addLoaded`. */
  all() {
    this.allThrough = this.records.newest;
    this.allOf = this.records.loaded;
    this.addLoaded();
    if (this.allThrough === null) return;
    const { allOf } = this;
    this.records.loadAll().catch((error) => {
      if (error.name === "AbortError" || this.allOf !== allOf || this.allThrough === null) return;
      this.allThrough = null;
      showError(error);
      this.onChange();
    });
  }

  /** Selects the other pushes of a list of which all were selected, as far as they are known now. */
  addLoaded() {
    const { records } = this;
    // Another search has another list.
    if (this.allOf !== records.loaded) this.allThrough = null;
    if (this.allThrough === null) return;
    const known = records.seqsBetween(0, records.length - 1);
    this.seqs = new Set(known.filter((seq) => isNamed(seq) || seq <= this.allThrough));
    if (known.length === records.length) this.allThrough = null;
    this.onChange();
  }

  /** Selects the row of a push by another attempt, if it is selected. */
  replace(former, seq) {
    if (this.current === former) this.current = seq;
    if (this.anchor === former) this.anchor = seq;
    if (this.seqs.delete(former)) this.seqs.add(seq);
  }

  /** Removes pushes that are no longer in the list. */
  prune() {
    const kept = [...this.seqs].filter((seq) => this.records.indexOf(seq) >= 0);
    if (kept.length === this.seqs.size) return;
    if (this.current !== null && this.records.indexOf(this.current) < 0) this.current = null;
    if (!kept.length) this.isMarking = false;
    this.seqs = new Set(kept);
    this.onChange();
  }
}
