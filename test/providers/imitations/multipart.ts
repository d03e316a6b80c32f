import type { ReceivedRequest } from './imitation.ts';

export type Part = { name: string; filename?: string | undefined; type?: string | undefined; bytes: Buffer };

/** The parts of a form that was sent (RFC 7578). */
export function partsOf({ headers, body }: Pick<ReceivedRequest, 'headers' | 'body'>): Part[] {
  const boundary = /boundary="?([^";]+)/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) return [];
  const parts = body.toString('latin1').split(`--${boundary}`).slice(1, -1);
  return parts.map((part) => {
    const end = part.indexOf('\r\n\r\n');
    const head = part.slice(0, end);
    return {
      name: /name="([^"]*)"/.exec(head)?.[1] ?? '',
      filename: /filename="([^"]*)"/.exec(head)?.[1],
      type: /content-type: *(\S+)/i.exec(head)?.[1],
      bytes: Buffer.from(part.slice(end + 4, -2), 'latin1'),
    };
  });
}

/** The texts of a form, by name; the last one of each. */
export function textsOf(request: Pick<ReceivedRequest, 'headers' | 'body'>): Record<string, string> {
  const texts = partsOf(request).filter(({ filename }) => filename === undefined);
  return Object.fromEntries(texts.map(({ name, bytes }) => [name, bytes.toString('utf8')]));
}
