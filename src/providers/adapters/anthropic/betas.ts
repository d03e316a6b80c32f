/** The betas that a caller's header names. */
export function betasIn({ 'anthropic-beta': header = '' }: Record<string, string>): string[] {
  return header
    .split(',')
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '');
}
