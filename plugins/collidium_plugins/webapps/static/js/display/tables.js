// Reads the tables of an event from the backend's response.

import { tableFromIPC } from "../../vendor/flechette.js";
import { split } from "./streams.js";

/** An event: its source, and tables by name, each `{rows, columns, withheld}`. */
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

/** A column as array; null if all of its values are null, like withheld truth. */
function values(column) {
  return column.length > 0 && column.nullCount === column.length ? null : column.toArray();
}

/** Column `name` of `table` of `event`, or null. */
export function column(event, table, name) {
  return event.tables[table]?.columns[name] ?? null;
}

/** Whether the truth of `event` is withheld. */
export function isWithheld(event) {
  return Object.values(event.tables).some((table) => table.withheld);
}

/** The number of rows of `table`; 0 if it is missing. */
export function rows(event, table) {
  return event.tables[table]?.rows ?? 0;
}
