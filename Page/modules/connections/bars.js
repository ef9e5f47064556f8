// Arranges the pushes of a connection as bars: concurrent pushes in different rows, and no bar on another one.

const MIN_WIDTH = 5;
const GAP = 1;
const MAX_ROWS = 4;

/**
 * Returns bars `{left, right, row, pushes}` for pushes `{seq, from, until}`. A push gets another row only if it began
 * before an earlier one ended. Pushes that would share pixels in their row are one bar.
 */
export function arrange(pushes, at) {
  const rows = []; // the end time and the last bar of each row
  const bars = [];
  for (const push of [...pushes].sort((a, b) => a.from - b.from || a.seq - b.seq)) {
    let row = rows.findIndex((one) => one.until <= push.from);
    if (row < 0) row = rows.length < MAX_ROWS ? rows.length : rows.reduce((best, one, index) => (one.until < rows[best].until ? index : best), 0);
    const left = at(push.from);
    const right = Math.max(left + MIN_WIDTH, at(push.until));
    const last = rows[row]?.bar;
    if (last && left < last.right + GAP) {
      last.pushes.push(push);
      last.right = Math.max(last.right, right);
    } else {
      rows[row] = { until: 0, bar: { left, right, row, pushes: [push] } };
      bars.push(rows[row].bar);
    }
    rows[row].until = Math.max(rows[row].until, push.until);
  }
  return { bars, rows: Math.max(1, rows.length) };
}
