/** Links of an answer, which anybody may have written who could speak to the model. */

const schemes = new Set(['http:', 'https:', 'mailto:']);

/** Returns the address in its normal form; undefined for one that is not whole, or that would run or load something. */
export function safeLink(href: string): string | undefined {
  try {
    const url = new URL(href.trim());
    return schemes.has(url.protocol) && url.username === '' && url.password === '' ? url.href : undefined;
  } catch {
    return undefined; // relative ones would lead into this dashboard
  }
}

/** Tells whether this is an image inside the answer itself, of a kind that cannot hold a program. */
export function isInlineImage(src: string): boolean {
  return /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i.test(src);
}
