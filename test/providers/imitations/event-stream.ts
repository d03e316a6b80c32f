/** AWS's frames, written as their specification has them (smithy.io, "Amazon Event Stream Specification"). */

type Value = string | boolean | number | Buffer;

/** A frame with these headers and this payload. */
export function frameOf(headers: Record<string, Value>, payload: object | Buffer | string): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.isBuffer(payload)
    ? payload
    : Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(checksum(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(checksum(all));
  return Buffer.concat([all, end]);
}

/** An event as Bedrock names it. */
export function eventFrame(name: string, payload: object | string): Buffer {
  const headers = { ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' };
  return frameOf(headers, payload);
}

/** An exception as Bedrock names it. */
export function exceptionFrame(name: string, message: string): Buffer {
  const headers = { ':exception-type': name, ':content-type': 'application/json', ':message-type': 'exception' };
  return frameOf(headers, { message });
}

/** A piece of InvokeModel's stream: the event of the model in base64. */
export function chunkFrame(event: object | string): Buffer {
  const text = typeof event === 'string' ? event : JSON.stringify(event);
  return eventFrame('chunk', { bytes: Buffer.from(text).toString('base64'), p: 'abcdefgh' });
}

function header(name: string, value: Value): Buffer {
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), valueOf(value)]);
}

function valueOf(value: Value): Buffer {
  if (typeof value === 'boolean') return Buffer.from([value ? 0 : 1]);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(5, 4);
    bytes.writeInt32BE(value, 1);
    return bytes;
  }
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([Buffer.from([Buffer.isBuffer(value) ? 6 : 7]), length, bytes]);
}

/** CRC-32 of ISO 3309, bit by bit. */
export function checksum(bytes: Buffer): number {
  let sum = 0xff_ff_ff_ff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xed_b8_83_20 : sum >>> 1;
  }
  return ~sum >>> 0;
}
