// The tables of one event, from the bytes that the backend sends.

import { tableFromIPC } from "../../vendor/flechette.js";
import { split } from "./streams.js";

/** What one event is: where it comes from, and its tables by name, each `{rows, columns, withheld}`. */
export function readTables(bytes) {
  const event = { source: {}, tables: {} };
  for (const stream of split(bytes)) {
    const table = tableFromIPC(stream, { useBigInt: true });
    const notes = Object.fromEntries(table.schema.metadata ?? []);
    event.source = { ...event.source, ...notes };
    event.tables[notes.table] = {
      rows: table.numRows,
      columns: Object.fromEntries(table.names.map((name) => [name, values(table.getChild(name))])),
      withheld: notes.withheld ?? "",
    };
  }
  return event;
}

/** An array of a column; null where every value of it is null, as withheld truth is. */
function values(column) {
  return column.length > 0 && column.nullCount === column.length ? null : column.toArray();
}

/** Column `name` of `table` of `event`, or null where it has none. */
export function column(event, table, name) {
  return event.tables[table]?.columns[name] ?? null;
}

/** Whether the server keeps truth of `event` to itself. */
export function isWithheld(event) {
  return Object.values(event.tables).some((table) => table.withheld);
}

/** How many rows `table` has; 0 where it is not there. */
export function rows(event, table) {
  return event.tables[table]?.rows ?? 0;
}
