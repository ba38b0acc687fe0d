// Cuts a body of consecutive Arrow IPC streams into its streams.
//
// Each message is: 0xFFFFFFFF, the length of its metadata (int32), the metadata (a flatbuffer), the body. The
// length of the body stands in the metadata; a length of 0 ends a stream. Source: the specification of Arrow's
// columnar format, "Serialization and Interprocess Communication", and Message.fbs.

const CONTINUATION = 0xffffffff;
const HEADER_BYTES = 8;
// Message.fbs: the fields of a message are version, header_type, header, bodyLength.
const BODY_LENGTH_FIELD = 3;

/** Uint8Arrays, one for each stream of `bytes`. Throws RangeError where the body ends within one. */
export function split(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const streams = [];
  let begin = 0;
  let at = 0;
  while (at < bytes.length) {
    if (view.getUint32(at, true) !== CONTINUATION) throw new RangeError("this is not a stream of Arrow");
    const metadata = view.getInt32(at + 4, true);
    at += HEADER_BYTES;
    if (metadata === 0) {
      streams.push(bytes.subarray(begin, at));
      begin = at;
      continue;
    }
    at += metadata + bodyLength(view, at);
    if (at > bytes.length) throw new RangeError("the stream breaks off");
  }
  if (begin !== at) throw new RangeError("the last stream has no end");
  return streams;
}

/** The bytes of a message's body, from its metadata at `start`. */
function bodyLength(view, start) {
  const table = start + view.getUint32(start, true);
  const fields = table - view.getInt32(table, true);
  const place = 4 + 2 * BODY_LENGTH_FIELD;
  const offset = place < view.getUint16(fields, true) ? view.getUint16(fields + place, true) : 0;
  return offset === 0 ? 0 : Number(view.getBigInt64(table + offset, true));
}
