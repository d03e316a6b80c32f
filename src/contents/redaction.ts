import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ContentRules } from '../accounts/content-rules.ts';
import type { Json } from '../catalog/model.ts';
import { LongInteger } from '../lib/long-integers.ts';
import { findPersonalData, type PersonalData } from '../lib/personal-data.ts';
import { markMatches, readWildcard, type Wildcard } from '../lib/wildcards.ts';
import { CutText, type Copied } from './copy.ts';

/** The kinds of data and the patterns that are replaced in contents. */
export type Redaction = { readonly kinds: readonly PersonalData[]; readonly patterns: readonly Wildcard[] };

type Rules = Pick<ContentRules, 'redact' | 'patterns'>;

/** Puts the rules of the operator and of a key together: what one of them names is replaced. */
export function redactionOf(...rules: readonly Rules[]): Redaction {
  const kinds = new Set(rules.flatMap(({ redact }) => redact));
  const patterns = new Set(rules.flatMap((each) => each.patterns));
  return { kinds: [...kinds], patterns: [...patterns].map(readWildcard) };
}

/** Counts of what was replaced, by its kind; of all patterns together. */
export type RedactionCounts = { [kind in PersonalData | 'pattern']?: number };

/** After so much work others get their turn. */
const turn_ms = 4;

/** Replaces what a redaction names, in all texts of one call. */
export class Redactor {
  readonly counts: RedactionCounts = {};
  readonly #redaction: Redaction;
  #since_ms = performance.now();

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  /** Returns the value with every text in it redacted; so are names of members, and numbers that are as long as a card's. */
  async redact(value: Copied): Promise<Json> {
    if (value instanceof CutText) return value.shorten(await this.#redactText(value.text));
    if (value instanceof LongInteger) return this.#redactText(value.digits);
    if (typeof value === 'string') return this.#redactText(value);
    if (typeof value === 'number') return isLong(value) ? this.#redactText(String(value)) : value;
    if (Array.isArray(value)) {
      const items: Json[] = [];
      for (const item of value) items.push(await this.redact(item));
      return items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const members: [string, Json][] = [];
    for (const [name, member] of Object.entries(value))
      members.push([await this.#redactText(name), await this.redact(member)]);
    return Object.fromEntries(members);
  }

  async #redactText(text: string): Promise<string> {
    const { kinds, patterns } = this.#redaction;
    const marks = new Uint8Array(text.length);
    for (const [index, kind] of kinds.entries()) {
      await this.#giveTurn();
      for (const { from, to } of findPersonalData[kind](text)) marks.fill(index + 1, from, to);
    }
    for (const pattern of patterns) {
      await this.#giveTurn();
      markMatches(pattern, text, marks, kinds.length + 1);
    }
    return this.#replace(text, marks);
  }

  /** Texts that stand side by side and have the same mark are replaced as one. */
  #replace(text: string, marks: Uint8Array): string {
    let redacted = '';
    let from = 0;
    for (let at = 0; at <= text.length; at += 1) {
      const mark = marks[from] ?? 0;
      if (at < text.length && marks[at] === mark) continue;
      redacted += mark === 0 ? text.slice(from, at) : `[${this.#count(mark)}]`;
      from = at;
    }
    return redacted;
  }

  #count(mark: number): string {
    const kind = this.#redaction.kinds[mark - 1] ?? 'pattern';
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    return kind === 'pattern' ? 'redacted' : kind;
  }

  async #giveTurn(): Promise<void> {
    if (performance.now() - this.#since_ms < turn_ms) return;
    await nextTurn();
    this.#since_ms = performance.now();
  }
}

/** The fewest digits of a card. */
const long_number = 1e12;

function isLong(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) >= long_number;
}
