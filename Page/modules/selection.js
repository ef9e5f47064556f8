// The selected pushes of the list: one, several, or all that match the search.

export class Selection {
  /** @param onChange called after each change. */
  constructor(records, onChange) {
    this.records = records;
    this.onChange = onChange;
    this.current = null;
    this.anchor = null;
    this.seqs = new Set();
  }

  get size() {
    return this.seqs.size;
  }

  has(seq) {
    return this.seqs.has(seq);
  }

  /** Selects a single push, or none if `seq` is null. */
  set(seq) {
    this.current = seq;
    this.anchor = seq;
    this.seqs = new Set(seq === null ? [] : [seq]);
    this.onChange();
  }

  /** Adds a push to the selection, or removes it. */
  toggle(seq) {
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
    this.seqs = new Set(this.records.seqsBetween(from, to));
    return this.onChange();
  }

  /** Selects all pushes of the list. */
  all() {
    this.seqs = new Set(this.records.seqsBetween(0, this.records.length - 1));
    this.onChange();
  }

  /** Removes pushes that are no longer in the list. */
  prune() {
    const kept = [...this.seqs].filter((seq) => this.records.indexOf(seq) >= 0);
    if (kept.length === this.seqs.size) return;
    this.seqs = new Set(kept);
    this.onChange();
  }
}
