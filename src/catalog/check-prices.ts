import { showValue } from '../lib/show-value.ts';
import { rational } from '../money/money.ts';
import { rowsOn } from './dated.ts';
import { usualFactors, factorsOf } from './estimate.ts';
import { own, type InputFields } from './input-schema.ts';
import { media_keyword } from './media-fields.ts';
import { isMediaKind, units, units_of_kind, type Condition, type Factor, type Kind, type Unit } from './model.ts';
import type { Path } from './problem.ts';
import type { Report } from './report.ts';
import type { ModelEntry, PriceEntry } from './schema.ts';
import { suggestion } from './shape.ts';

/** Units that tokens fall back to, or that nothing is lost without. */
const units_needed: { readonly [kind in Kind]?: readonly Unit[] } = {
  chat: ['input_token', 'output_token'],
  embedding: ['input_token'],
};

/** Checks the price and the estimate of a model. `fields` is undefined for kinds without an input schema, or if its schema has mistakes. */
export function checkPrices(model: ModelEntry, fields: InputFields | undefined, at: Path, report: Report): void {
  const price = model.price ?? [];
  checkRows(price, { kind: model.kind, fields, at: [...at, 'price'] }, report);
  for (const day of daysOf(price)) checkCoverage(holdingOn(price, day), fields, [...at, 'price'], report);
  if (price.length === 0) report.warn(at, 'has no price: every run is free.');
  else {
    const missing = units_needed[model.kind]?.filter((unit) => !price.some((row) => row.unit === unit)) ?? [];
    for (const unit of missing) report.warn([...at, 'price'], `has no row for ${unit}: they are free.`);
  }
  if (isMediaKind(model.kind)) checkEstimate(model, fields, [...at, 'estimate'], report);
}

type Rows = { kind: Kind; fields: InputFields | undefined; at: Path };

/** Checks the units and conditions of price or cost rows. */
export function checkRows(rows: readonly PriceEntry[], { kind, fields, at }: Rows, report: Report): void {
  for (const [index, row] of rows.entries()) {
    const here = [...at, index];
    if (!units_of_kind[kind].includes(row.unit)) {
      const unit_names = units_of_kind[kind].join(', ');
      report.error([...here, 'unit'], `${row.unit} is not a unit of ${kind} models. Their units: ${unit_names}.`);
    }
    if (row.above_input_tokens !== undefined && isMediaKind(kind)) {
      report.error([...here, 'above_input_tokens'], `has no meaning for ${kind} models.`, 'key');
    }
    if (row.when && !isMediaKind(kind)) report.error([...here, 'when'], `has no meaning for ${kind} models.`, 'key');
    else if (row.when && fields) checkCondition(row.when, fields, [...here, 'when'], report);
  }
}

function checkCondition(when: Condition, fields: InputFields, at: Path, report: Report): void {
  for (const [field, values] of Object.entries(when)) {
    if (!checkField(field, fields, [...at, field], report, 'key')) continue;
    const allowed = fields.keyword(field, 'enum');
    if (!Array.isArray(allowed)) continue;
    for (const value of [values].flat()) {
      if (allowed.includes(value)) continue;
      const hint = suggestion(String(value), allowed.map(String)) ?? `It may be: ${allowed.map(showValue).join(', ')}.`;
      report.error([...at, field], `${showValue(value)} is not a value of ${field}. ${hint}`);
    }
  }
}

/** Returns true if the input schema has the field; else reports an error. */
export function checkField(
  field: string,
  fields: InputFields,
  at: Path,
  report: Report,
  target: 'key' | 'value' = 'value',
): boolean {
  if (fields.names.includes(field)) return true;
  const hint = suggestion(field, fields.names) ?? `There are: ${fields.names.join(', ')}.`;
  report.error(at, `the input_schema has no field ${showValue(field)}. ${hint}`, target);
  return false;
}

/** A row with its place in the list. */
type Placed = readonly [index: number, row: PriceEntry];

/** The days from which on the rows are others than before, beginning with the first. */
function daysOf(price: readonly PriceEntry[]): string[] {
  return [...new Set(['', ...price.flatMap(({ from }) => from ?? [])])].toSorted();
}

function holdingOn(price: readonly PriceEntry[], day: string): Placed[] {
  if (price.every(({ from }) => from === undefined)) return [...price.entries()];
  const holding = new Set(rowsOn(price, day));
  return [...price.entries()].filter(([, row]) => holding.has(row));
}

/** Inputs that fit no row are free of the unit, and rows after one without `when` are never used: both surprise. */
function checkCoverage(price: readonly Placed[], fields: InputFields | undefined, at: Path, report: Report): void {
  for (const unit of units) {
    const rows = price.filter(([, row]) => row.unit === unit && row.above_input_tokens === undefined);
    checkSteps(price, unit, rows.length > 0, at, report);
    const last = rows.findIndex(([, row]) => row.when === undefined);
    for (const [index] of last === -1 ? [] : rows.slice(last + 1)) {
      report.warn([...at, index], `is never used: an earlier row for ${unit} fits every input.`);
    }
    const [first] = rows;
    if (
      !first ||
      last !== -1 ||
      coversField(
        rows.map(([, row]) => row.when ?? {}),
        fields,
      )
    )
      continue;
    report.warn([...at, first[0]], `inputs that fit no row for ${unit} are free: add one without \`when\`.`);
  }
}

/** Steps of one unit by the length of the input: without a row below them shorter inputs are free. */
function checkSteps(price: readonly Placed[], unit: Unit, has_base: boolean, at: Path, report: Report): void {
  const seen = new Set<number>();
  for (const [index, { unit: own_unit, above_input_tokens }] of price) {
    if (own_unit !== unit || above_input_tokens === undefined) continue;
    const here = [...at, index, 'above_input_tokens'];
    if (seen.has(above_input_tokens)) report.warn(here, `is never used: an earlier row for ${unit} has the same.`);
    if (!has_base && seen.size === 0) report.warn(here, `shorter inputs are free of ${unit}: add a row without it.`);
    seen.add(above_input_tokens);
  }
}

/** Do the conditions name all values of one field that every input has? */
function coversField(conditions: readonly Condition[], fields: InputFields | undefined): boolean {
  const [field, ...others] = new Set(conditions.flatMap((when) => Object.keys(when)));
  if (!fields || field === undefined || others.length > 0 || !fields.certain(field)) return false;
  const allowed = fields.keyword(field, 'enum');
  const named = conditions.flatMap((when) => [when[field]].flat());
  return Array.isArray(allowed) && allowed.every((value) => named.some((each) => each === value));
}

function checkEstimate(model: ModelEntry, fields: InputFields | undefined, at: Path, report: Report): void {
  const names = fields?.names ?? [];
  const priced = new Set((model.price ?? []).map((row) => row.unit));
  for (const unit of units) {
    const assumed = factorsOf(model.estimate, unit);
    if (assumed && !units_of_kind[model.kind].includes(unit)) {
      report.error([...at, unit], `${unit} is not a unit of ${model.kind} models.`, 'key');
    } else if (assumed || priced.has(unit)) {
      const factors = assumed ?? usualFactors(unit, names);
      if (factors) {
        checkFactors(unit, factors, fields, [...at, unit], report);
        checkTokens(unit, factors, fields, [...at, unit], report);
      } else if (fields && !isMeasuredElsewhere(model, unit)) {
        const message = `is required, since the price counts ${unit}s: $input.FIELD, a number, or a list of these.`;
        report.error([...at, unit], message);
      }
    }
  }
}

/** A text may have a token for every byte: a number that holds for fewer leaves the rest to the operator. */
function checkTokens(
  unit: Unit,
  factors: readonly Factor[],
  fields: InputFields | undefined,
  at: Path,
  report: Report,
): void {
  if (unit !== 'input_token' || !fields || !factors.every((factor) => 'constant' in factor)) return;
  const held = factors.reduce((so_far, { constant }) => so_far * Number(constant), 1);
  const texts = fields.names.filter((name) => isFreeText(name, fields));
  const longest = texts.reduce((so_far, name) => so_far + bytes_per_character * lengthMax(name, fields), 0);
  if (longest <= held) return;
  const most = Number.isFinite(longest) ? `${longest} tokens` : 'any number of tokens';
  report.warn(
    at,
    `holds for ${held} tokens, but ${texts.join(' and ')} may have ${most}: the excess is your loss. Write $bytes.${texts.join('+')}.`,
  );
}

const bytes_per_character = 4;

function isFreeText(name: string, fields: InputFields): boolean {
  const types = [fields.keyword(name, 'type') ?? []].flat();
  const listed = Array.isArray(fields.keyword(name, 'enum')) || fields.keyword(name, 'const') !== undefined;
  return types.includes('string') && !listed && fields.keyword(name, media_keyword) === undefined;
}

function lengthMax(name: string, fields: InputFields): number {
  const factors = fields.keyword(name, 'maxLength');
  return typeof factors === 'number' ? factors : Infinity;
}

/** Seconds and minutes tell each other; what is wrong with the other is told there. */
function isMeasuredElsewhere({ estimate }: ModelEntry, unit: Unit): boolean {
  if (unit === 'minute') return factorsOf(estimate, 'second') !== undefined;
  return unit === 'second' && factorsOf(estimate, 'minute') !== undefined;
}

function checkFactors(
  unit: Unit,
  factors: readonly Factor[],
  fields: InputFields | undefined,
  at: Path,
  report: Report,
): void {
  for (const factor of factors) {
    if ('constant' in factor) {
      if (!rational(factor.constant))
        report.error(at, `${factor.constant} must be written as a plain decimal in quotes.`);
    } else if ('bytes_of' in factor) {
      for (const field of factor.bytes_of) if (fields) checkField(field, fields, at, report);
    } else if ('duration_of' in factor) {
      checkDuration(unit, factor.duration_of, fields, at, report);
    } else if (fields && checkField(factor.field, fields, at, report)) {
      const { field } = factor;
      if (!countable(unit, field, fields)) {
        report.error(
          at,
          `${field} has no value that can be counted as ${unit}s: its type is ${showType(field, fields)}.`,
        );
      } else if (!fields.certain(field)) {
        report.warn(at, `${field} is neither required nor has a default: inputs without it are refused.`);
      }
    }
  }
}

/** Minutes have no exact decimal of seconds; a price by the minute is charged from the seconds anyway. */
function checkDuration(unit: Unit, field: string, fields: InputFields | undefined, at: Path, report: Report): void {
  if (unit !== 'second') report.error(at, 'durations are in seconds: write it under second, minutes follow from that.');
  if (!fields || !checkField(field, fields, at, report)) return;
  const items = fields.keyword(field, 'items');
  const kind = fields.keyword(field, media_keyword) ?? own(items, media_keyword);
  if (kind !== 'audio' && kind !== 'video') {
    report.error(at, `${field} has no duration: it must have ${media_keyword}: audio or video.`);
  } else if (!fields.certain(field)) {
    report.warn(at, `${field} is neither required nor has a default: inputs without it are refused.`);
  }
}

/** Numbers count; texts do where their characters are counted, or where each allowed one is a number. */
function countable(unit: Unit, field: string, fields: InputFields): boolean {
  const allowed = fields.keyword(field, 'enum');
  const types = [fields.keyword(field, 'type') ?? []].flat();
  if (unit === 'character' && (types.length === 0 || types.includes('string'))) return true;
  if (Array.isArray(allowed)) return allowed.every((value) => rational(String(value)) !== undefined);
  return types.length === 0 || types.includes('number') || types.includes('integer');
}

function showType(field: string, fields: InputFields): string {
  return Array.isArray(fields.keyword(field, 'enum'))
    ? 'a list of texts'
    : [fields.keyword(field, 'type')].flat().join(' or ');
}
