import type { SearchResult } from '../web-search/search.ts';

/**
 * Sources in a text: models are told to name the pages that they use as links, so a source is cited where its link
 * stands. Callers find these places where their style has citations.
 */
export type Citation = {
  result: SearchResult;
  /** In UTF-16 units, as JavaScript and most SDKs count; `end` is the place after it. */
  start: number;
  end: number;
};

const citations_max = 100;
const label_length_max = 300;

/** A link goes on with these: what stands there is the address of another page. */
const goes_on = /[\w/%?&=#~+@-]/;

/** Returns the places of these results in a text, in order. */
export function citationsIn(text: string, results: readonly SearchResult[]): Citation[] {
  const citations: Citation[] = [];
  const by_url = new Map(results.map((result) => [result.url, result]));
  for (const result of by_url.values()) {
    for (let at = text.indexOf(result.url); at !== -1; at = text.indexOf(result.url, at + 1)) {
      const end = at + result.url.length;
      if (goes_on.test(text[end] ?? '') || isFollowedByPath(text, end)) continue;
      citations.push({ result, ...aroundLink(text, at, end) });
      if (citations.length === citations_max) return sorted(citations);
    }
  }
  return sorted(citations);
}

function sorted(citations: Citation[]): Citation[] {
  return citations.toSorted((a, b) => a.start - b.start);
}

/** A dot ends a sentence, or stands within the name of a file. */
function isFollowedByPath(text: string, end: number): boolean {
  return text[end] === '.' && goes_on.test(text[end + 1] ?? '');
}

/** The whole of `[label](address)`, or the address alone. */
function aroundLink(text: string, start: number, end: number): { start: number; end: number } {
  if (text.slice(start - 2, start) !== '](' || text[end] !== ')') return { start, end };
  const label = text.lastIndexOf('[', start - 3);
  return label === -1 || start - label > label_length_max ? { start, end } : { start: label, end: end + 1 };
}

/** Collects the text that follows the first search, and what was found: streams forget what they have sent. */
export class CitedText {
  #skipped = 0;
  #text: string | undefined;
  readonly #results: SearchResult[] = [];

  /** Adds what the model wrote. */
  add(text: string): void {
    if (this.#text === undefined) this.#skipped += text.length;
    else this.#text += text;
  }

  /** Adds what a search found. */
  addResults(results: readonly SearchResult[]): void {
    this.#text ??= '';
    this.#results.push(...results);
  }

  /** The citations, by their places in the whole text. */
  get citations(): Citation[] {
    return citationsIn(this.#text ?? '', this.#results).map(({ result, start, end }) => ({
      result,
      start: start + this.#skipped,
      end: end + this.#skipped,
    }));
  }
}
