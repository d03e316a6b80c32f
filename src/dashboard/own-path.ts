/** Below which path of its host the service is, as an attribute has it: nothing, or `/medley`. */
export function ownPath({ base_url }: { base_url(): string }): string {
  const { pathname } = new URL(base_url());
  return pathname.replace(/\/+$/, '').replaceAll('&', '&amp;');
}

/** Tells whether the client of this header takes a compressed answer. */
export function takesGzip(accepted: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test([accepted].flat().join(','));
}
