// The selection of objects that are drawn, counted, listed and picked.

/**
 * 1 for each row that passes, 0 for others. `values` has arrays pt (GeV; below 0: not known), eta, time (ns) and
 * volume, or null where the event has none; a missing one cannot be filtered by, and passes. An object whose
 * own p_T is not known while others' are passes only where none is asked.
 */
export function passing(count, values, view) {
  const shown = new Uint8Array(count).fill(1);
  if (values.pt && view.pt > 0) keep(shown, (row) => values.pt[row] >= view.pt);
  if (values.eta && view.eta !== null) keep(shown, (row) => Math.abs(values.eta[row]) <= view.eta);
  if (values.time && view.time) {
    const [low, high] = [view.time[0] ?? -Infinity, view.time[1] ?? Infinity];
    keep(shown, (row) => values.time[row] >= low && values.time[row] <= high);
  }
  if (values.volume && view.off.size) keep(shown, (row) => !view.off.has(values.volume[row]));
  return shown;
}

function keep(shown, passes) {
  for (let row = 0; row < shown.length; row += 1) if (shown[row] && !passes(row)) shown[row] = 0;
}

/** How many rows are shown. */
export function count(shown) {
  return shown.reduce((sum, one) => sum + one, 0);
}

/** How many of all rows have each value, as a Map in ascending order of values. */
export function tally(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return new Map([...counts].sort(([a], [b]) => a - b));
}
