import { rational } from '../../money/money.ts';
import { isObject, type Json, type JsonObject, type PriceRow, type Unit } from '../model.ts';

/** `other`: of a kind that a list does not describe well enough to add it. Its prices may be compared. */
export type ListedKind = (typeof listed_kinds)[number] | 'other';

const listed_kinds = ['chat', 'embedding', 'rerank', 'moderation', 'image'] as const;

/** Says whether a list describes models of this kind well enough. */
export function isListedKind(kind: string): kind is (typeof listed_kinds)[number] {
  return listed_kinds.some((each) => each === kind);
}

/** A model as somebody else's list has it. Prices are in US dollars, those of tokens by the million. */
export type ListedModel = {
  /** The name by which its provider is asked. */
  upstream_model: string;
  /** The provider, as the list names it; absent: the list has one only. */
  provider?: string;
  kind: ListedKind;
  name?: string;
  description?: string;
  /** Days. */
  created?: string;
  retires?: string;
  replaced_by?: string;
  context_tokens?: number;
  max_output_tokens?: number;
  capabilities: readonly string[];
  price: readonly PriceRow[];
};

/** A list that is none. The message completes "PLACE ". */
export class ListError extends Error {
  override name = 'ListError';
}

const million = 1_000_000;

type TokenUnit = Extract<Unit, `${string}_token`>;

/** Prices of one token, as numbers or texts; what is not a price above zero has no row. */
export type TokenPrices = Partial<Record<TokenUnit, Json | undefined>>;

/** Units of the prices of tokens. */
export const token_units: readonly TokenUnit[] = [
  'input_token',
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
  'output_token',
];

/** Rows of prices that the list has by the token (`places` 6), or by the million tokens (0). */
export function tokenRows(prices: TokenPrices, places: 0 | 6, above_input_tokens?: number): PriceRow[] {
  return token_units.flatMap((unit) => {
    const amount = movedDecimal(prices[unit], places);
    if (amount === undefined) return [];
    return [{ unit, amount, per: million, ...(above_input_tokens !== undefined && { above_input_tokens }) }];
  });
}

/** The row of a price of one, at one resolution or at any; none for what is no price above zero. */
export function unitRow(unit: Unit, price: Json | undefined, resolution?: string): PriceRow[] {
  const amount = movedDecimal(price, 0);
  return amount === undefined
    ? []
    : [{ unit, amount, per: 1, ...(resolution !== undefined && { when: { resolution } }) }];
}

/**
 * The decimal text of a number or a text such as `1.25e-06`, with the point moved to the right; exact. Undefined for zero
 * and for what is no plain amount.
 */
function movedDecimal(value: Json | undefined, places: number): string | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,2}))?$/i.exec(String(value).trim());
  if (!match) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent) + places;
  const padded = digits.padStart(digits.length + Math.max(0, 1 - point), '0').padEnd(point, '0');
  const at = Math.max(point, 1);
  const integer = padded.slice(0, at).replace(/^0+(?=\d)/, '');
  const rest = padded.slice(at).replace(/0+$/, '').slice(0, 12);
  const text = rest === '' ? integer : `${integer}.${rest}`;
  return rational(text)?.numerator === 0n ? undefined : text;
}

export function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

export function countOf(value: Json | undefined): number | undefined {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : undefined;
}

/** A day out of `2027-01-06` or of seconds since 1970. */
export function dayIn(value: Json | undefined): string | undefined {
  if (typeof value === 'number' && value > 0 && value < 1e11) return new Date(value * 1000).toISOString().slice(0, 10);
  const [day] = /^\d{4}-\d{2}-\d{2}(?!\d)/.exec(textOf(value) ?? '') ?? [];
  return day !== undefined && !Number.isNaN(Date.parse(day)) ? day : undefined;
}

export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Texts in a list; none if it is no list. */
export function textsIn(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** Words of our own catalogue for the abilities that are true. */
export function abilities(of: {
  [word in 'tools' | 'json_schema' | 'images' | 'documents' | 'audio' | 'thinking']?: boolean;
}) {
  return [...Object.entries(of).flatMap(([word, is_there]) => (is_there ? [word] : [])), 'streaming'];
}
