// Reads the tracks of one event from a file of predictions on this machine. Nothing is uploaded.

import { parquetMetadataAsync, parquetRead, zstd } from "../../vendor/hyparquet.js";

const COLUMNS = ["event_id", "hit_id", "track_id"];
// Maximum number of rows of row groups that may hold an event, as memory is limited.
const MAX_ROWS = 20_000_000;
const READABLE = ["UNCOMPRESSED", "SNAPPY", "ZSTD"];

/** The file is invalid; the message is for users. */
export class UnusableFile extends Error {}

/** A Map from hit id to track id (numbers) of event `eventId` in `file`. Throws UnusableFile. */
export async function tracksIn(file, eventId) {
  const source = { byteLength: file.size, slice: (from, to) => file.slice(from, to).arrayBuffer() };
  const metadata = await footer(source);
  check(metadata);
  const groups = mayHold(metadata, BigInt(eventId));
  if (groups.reduce((sum, { rows }) => sum + rows, 0) > MAX_ROWS) {
    throw new UnusableFile("The event's rows lie among too many others to be read here: write smaller row groups, sorted by event.");
  }
  const tracks = new Map();
  for (const { begin, rows } of groups) await collect(source, metadata, { begin, rows }, eventId, tracks);
  if (!tracks.size) throw new UnusableFile(`The file has no row for event ${eventId}.`);
  return tracks;
}

async function footer(source) {
  try {
    return await parquetMetadataAsync(source);
  } catch {
    throw new UnusableFile("This is not a parquet file.");
  }
}

function check({ schema, row_groups: groups }) {
  const names = schema.slice(1).map(({ name }) => name);
  const missing = COLUMNS.filter((name) => !names.includes(name));
  if (missing.length) {
    throw new UnusableFile(`Predictions have the columns ${COLUMNS.join(", ")}; this file lacks ${missing.join(", ")}.`);
  }
  const packed = groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data.codec));
  const strange = packed.find((codec) => !READABLE.includes(codec));
  if (strange) throw new UnusableFile(`Browsers cannot read files compressed with ${strange}: write it with zstd or snappy.`);
}

/** Row groups that may have rows of the event, by their statistics. */
function mayHold(metadata, eventId) {
  let begin = 0;
  return metadata.row_groups.flatMap((group) => {
    const rows = Number(group.num_rows);
    const place = { begin, rows };
    begin += rows;
    const range = group.columns.find(({ meta_data }) => meta_data.path_in_schema[0] === "event_id").meta_data.statistics;
    const [low, high] = [range?.min_value ?? range?.min, range?.max_value ?? range?.max];
    const outside = low !== undefined && high !== undefined && (eventId < BigInt(low) || eventId > BigInt(high));
    return outside ? [] : [place];
  });
}

async function collect(file, metadata, { begin, rows }, eventId, tracks) {
  const events = await values(file, metadata, "event_id", begin, rows);
  const wanted = Array.from(events.keys()).filter((row) => Number(events[row]) === eventId);
  if (!wanted.length) return;
  const hits = await values(file, metadata, "hit_id", begin, rows);
  const found = await values(file, metadata, "track_id", begin, rows);
  for (const row of wanted) tracks.set(Number(hits[row]), Number(found[row]));
}

async function values(file, metadata, column, begin, rows) {
  const parts = [];
  try {
    await parquetRead({
      file,
      metadata,
      columns: [column],
      rowStart: begin,
      rowEnd: begin + rows,
      compressors: { ZSTD: (bytes, length) => zstd(bytes, new Uint8Array(length)) },
      onChunk: ({ columnData, rowStart }) => parts.push({ columnData, rowStart }),
    });
  } catch (error) {
    throw new UnusableFile(`The file cannot be read: ${error.message}`);
  }
  const ordered = parts.sort((a, b) => a.rowStart - b.rowStart).map(({ columnData }) => Array.from(columnData));
  return ordered.length === 1 ? ordered[0] : ordered.flat();
}
