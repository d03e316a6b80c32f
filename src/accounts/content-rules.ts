import { isRecord } from '../lib/is-record.ts';
import { personal_data, type PersonalData } from '../lib/personal-data.ts';
import { readWildcard, WildcardError } from '../lib/wildcards.ts';
import { KeyRuleError } from './key-rule-error.ts';

/** The rules by which the content of a key's chat calls is stored. */
export type ContentRules = {
  /** Time for which it is kept. */
  readonly keep_days: number;
  /** Kinds of data that are replaced before anything is stored. */
  readonly redact: readonly PersonalData[];
  /** Patterns of texts that are replaced, too: src/lib/wildcards.ts. */
  readonly patterns: readonly string[];
};

export const patterns_max = 20;
/** With a `\` before each of its characters, the longest pattern has so many. */
const pattern_length_max = 60;

const usual_keep_days = 30;

/**
 * Reads the rules of a key: an object, whose members may be left out; null: nothing is stored. `days_max`: what the
 * operator allows, 0 for nothing. Throws KeyRuleError.
 */
export function readContentRules(value: unknown, days_max: number): ContentRules | null {
  if (value === null) return null;
  if (!isRecord(value))
    throw new KeyRuleError('must be an object with keep_days, redact and patterns, or null for no content.');
  if (days_max === 0) throw new KeyRuleError('must be null: this service stores no content of calls.');
  const { keep_days = Math.min(usual_keep_days, days_max), redact = personal_data, patterns = [], ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new KeyRuleError(`has no member ${JSON.stringify(unknown.slice(0, 40))}.`);
  return { keep_days: readDays(keep_days, days_max), redact: readKinds(redact), patterns: readPatterns(patterns) };
}

function readDays(value: unknown, days_max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= days_max) return value;
  throw new KeyRuleError(`must have keep_days from 1 to ${days_max}, as the operator allows.`);
}

function readKinds(value: unknown): readonly PersonalData[] {
  const words: readonly unknown[] = Array.isArray(value) ? value : [undefined];
  const chosen = personal_data.filter((kind) => words.includes(kind));
  if (words.every((word) => chosen.some((kind) => kind === word))) return chosen;
  throw new KeyRuleError(`must have redact with some of ${personal_data.join(', ')}, or an empty list.`);
}

function readPatterns(value: unknown): readonly string[] {
  const list: readonly unknown[] | undefined = Array.isArray(value) ? value : undefined;
  if (!list || list.length > patterns_max)
    throw new KeyRuleError(`must have patterns: a list of at most ${patterns_max} texts.`);
  return list.map((pattern, index) => {
    const problem = problemOf(pattern);
    if (problem !== undefined) throw new KeyRuleError(`has a mistake: patterns[${index}] ${problem}`);
    return String(pattern);
  });
}

function problemOf(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return 'must be a text.';
  if (pattern.length > pattern_length_max) return `must have at most ${pattern_length_max} characters.`;
  return patternProblem(pattern);
}

/** Returns why a text is no pattern; undefined if it is one. Ends a sentence that begins with where it stands. */
export function patternProblem(pattern: string): string | undefined {
  try {
    readWildcard(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof WildcardError) return error.message;
    throw error;
  }
}
