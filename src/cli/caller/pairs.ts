import { CommandError } from '../result.ts';

/** Adds a word to those of an option that may come several times. */
export function collectPair(word: string, before: string[] = []): string[] {
  return [...before, word];
}

/** Returns the pairs of an option whose words are like `team=web`. Throws CommandError (usage). */
export function pairsIn(option: string, words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=');
      if (at < 1) throw new CommandError(`${option} must be like team=web, not "${word}".`, 2);
      return [word.slice(0, at), word.slice(at + 1)];
    }),
  );
}
