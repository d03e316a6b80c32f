/** A file that is written into an address (RFC 2397). The type is what the address says, nobody looked. */
export type DataUrl = {
  /** Without parameters, in lower case. */
  content_type: string;
  bytes: Buffer;
};

/** `data:`, a type, parameters, perhaps `;base64`; all before the first comma. */
const head_form = /^data:([\w.+-]+\/[\w.+-]+)?((?:;[\w.+-]+=(?:[\w.+-]*|"[^"\\,;]*"))*)(;base64)?$/i;

/** Longer ones are no honest type with its parameters, and nobody has to look for a comma in a gigabyte. */
const head_length_max = 256;

export function isDataUrl(text: string): boolean {
  return /^data:/i.test(text);
}

/** Returns the most bytes that a data URL can hold, by its length alone. */
export function dataUrlBytesMax(text: string): number {
  const data_length = text.length - text.slice(0, head_length_max + 1).indexOf(',') - 1;
  return /;base64,/i.test(text.slice(0, head_length_max + 1)) ? Math.ceil((data_length * 3) / 4) : data_length;
}

/**
 * Reads a data URL; undefined if it is none, or not exactly in its form: base64 with its padding and nothing
 * between, percent signs that all mean a byte. `size_bytes_max` is checked before anything is decoded.
 */
export function readDataUrl(text: string, size_bytes_max = Infinity): DataUrl | undefined {
  const comma = text.slice(0, head_length_max + 1).indexOf(',');
  const head = comma === -1 ? null : head_form.exec(text.slice(0, comma));
  if (!head) return undefined;
  const [, type = 'text/plain', , base64] = head;
  const data = text.slice(comma + 1);
  const bytes = base64 === undefined ? decodePercents(data, size_bytes_max) : decodeBase64(data, size_bytes_max);
  return bytes && { content_type: type.toLowerCase(), bytes };
}

/** Node skips what is no base64, so a text that decodes to fewer bytes than its length says is wrong. */
function decodeBase64(data: string, size_bytes_max: number): Buffer | undefined {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  const size_bytes = (data.length / 4) * 3 - padding;
  if (data.length % 4 !== 0 || size_bytes > size_bytes_max) return undefined;
  if (data.includes('-') || data.includes('_')) return undefined; // another alphabet, which Node takes too
  const bytes = Buffer.from(data, 'base64');
  const is_whole = bytes.length === size_bytes;
  // The spare bits of the last character are zero, so that a file has one spelling.
  const is_canonical = bytes.subarray(bytes.length - (bytes.length % 3 || 3)).toString('base64') === data.slice(-4);
  return is_whole && is_canonical ? bytes : undefined;
}

const percent = 0x25;

function decodePercents(data: string, size_bytes_max: number): Buffer | undefined {
  if (data.length > size_bytes_max * 3) return undefined;
  const encoded = Buffer.from(data, 'utf8');
  let size_bytes = 0;
  for (let at = 0; at < encoded.length; at++) {
    const byte = encoded[at] ?? 0;
    if (byte <= 0x20 || byte > 0x7e) return undefined;
    if (byte === percent) {
      const digits = encoded.toString('latin1', at + 1, at + 3);
      if (!/^[0-9a-f]{2}$/i.test(digits)) return undefined;
      encoded[size_bytes++] = Number.parseInt(digits, 16);
      at += 2;
    } else {
      encoded[size_bytes++] = byte;
    }
  }
  return size_bytes > size_bytes_max ? undefined : encoded.subarray(0, size_bytes);
}

/** `bytes` as a data URL. */
export function writeDataUrl({ content_type, bytes }: DataUrl): string {
  return `data:${content_type};base64,${bytes.toString('base64')}`;
}
