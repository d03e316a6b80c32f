/** Cleans an upstream's message for a caller: its words about the request, nothing about us. */

const length_max = 600;

/** The patterns below take quadratic time: 58 s for 60,000 letters. What is cut off is a whole word. */
const read_length_max = 2_400;

const private_parts: readonly [RegExp, string][] = [
  [/\bhttps?:\/\/\S+/gi, '[link]'],
  [/\b(?:bearer|basic)\s+\S+/gi, '[key]'],
  [/\b(?:sk|pk|rk|key|api|token|org|proj|acct|account|user|req|request|session)[-_][A-Za-z0-9_-]{6,}/gi, '[id]'],
  [/[\w.+-]+@[\w-]+\.[\w.]+/g, '[address]'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '[id]'],
  [/\b(?=\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9]{24,}\b/g, '[id]'],
];

/** Takes keys, links, account ids and the given secrets out of an upstream's message, and shortens it. */
export function scrub(message: string, secrets: readonly string[]): string {
  let clean = message;
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, '[key]');
  if (clean.length > read_length_max) clean = clean.slice(0, read_length_max).replace(/\S*$/, '…');
  for (const [pattern, placeholder] of private_parts) clean = clean.replaceAll(pattern, placeholder);
  clean = clean.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  return clean.length > length_max ? `${clean.slice(0, length_max)}…` : clean;
}
