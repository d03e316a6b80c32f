/** Bytes of text as they are priced where nobody counts tokens: ASCII is denser in tokens than the rest. */
export type TextSize = { ascii_bytes: number; other_bytes: number };

/** Adds the UTF-8 bytes of `text` to `size`. A lone surrogate counts as the three bytes that replace it. */
export function addText(size: TextSize, text: string): void {
  const total_bytes = Buffer.byteLength(text, 'utf8');
  const ascii_bytes = total_bytes === text.length ? total_bytes : asciiIn(text);
  size.ascii_bytes += ascii_bytes;
  size.other_bytes += total_bytes - ascii_bytes;
}

/** Tokens where nobody counts them, as they usually come out: 4 bytes of ASCII to one, 1.5 of other text. */
export function tokensOf({ ascii_bytes, other_bytes }: TextSize): number {
  return Math.ceil(ascii_bytes / 4 + other_bytes / 1.5);
}

function asciiIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 0x80) count++;
  return count;
}
