/**
 * True if `printed` is what `shown` promises. In a text `…` stands for anything within a line, and for
 * any number of lines where it stands alone; in JSON for any value, or any part of a text, and what a
 * document leaves out may be there.
 */
export function matches(language: string, shown: string, printed: string): boolean {
  return language === 'json' ? jsonMatches(JSON.parse(shown), JSON.parse(printed)) : textMatches(shown, printed);
}

function textMatches(shown: string, printed: string): boolean {
  const lines = shown.trim().split('\n');
  const patterns = lines.map((line) => (line.trim() === '…' ? '(?:.*\n)*?' : `${pattern(line.trimEnd())}[ ]*\n`));
  return new RegExp(`^\\s*${patterns.join('')}\\s*$`).test(`${printed.trim()}\n`);
}

function pattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*');
}

function jsonMatches(shown: unknown, printed: unknown): boolean {
  if (shown === '…') return printed !== undefined && printed !== null;
  if (typeof shown === 'string') return typeof printed === 'string' && new RegExp(`^${pattern(shown)}$`).test(printed);
  if (typeof shown !== 'object' || shown === null) return shown === printed;
  if (typeof printed !== 'object' || printed === null || Array.isArray(shown) !== Array.isArray(printed)) return false;
  if (Array.isArray(shown) && Array.isArray(printed) && shown.length !== printed.length) return false;
  return Object.entries(shown).every(([key, value]) => jsonMatches(value, Reflect.get(printed, key)));
}
