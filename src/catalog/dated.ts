import type { Model, PriceRow, Retirement, Route } from './model.ts';

/**
 * Dates of a catalogue: prices that hold from a day on, and models that end on one. A day begins at midnight, UTC. The
 * catalogue of a file has all of them; the one that is in use has what holds now.
 */

type Dated = {
  readonly models: ReadonlyMap<string, Model>;
  readonly retired: ReadonlyMap<string, Model>;
};

type DatedRow = Pick<PriceRow, 'unit' | 'when' | 'above_input_tokens' | 'from'>;

/** Returns the day of a time: `2027-01-06`. */
export function dayOf(now_ms: number): string {
  return new Date(now_ms).toISOString().slice(0, 10);
}

/** Returns the rows that hold on a day: of those for the same thing, the one with the latest date. */
export function rowsOn<Row extends DatedRow>(rows: readonly Row[], day: string): Row[] {
  const holding = new Map<string, Row>();
  for (const row of rows) {
    const before = holding.get(subjectOf(row));
    const is_later = before === undefined || (row.from ?? '') > (before.from ?? '');
    if ((row.from ?? '') <= day && is_later) holding.set(subjectOf(row), row);
  }
  return rows.filter((row) => holding.get(subjectOf(row)) === row);
}

function subjectOf({ unit, when = {}, above_input_tokens = 0 }: DatedRow): string {
  const conditions = Object.entries(when).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([unit, conditions, above_input_tokens]);
}

/** Returns the catalogue as it is at a time, and until when; a catalogue without dates is left as it is. */
export function atTime<C extends Dated>(catalog: C, now_ms: number): { catalog: C; until_ms: number } {
  const today = dayOf(now_ms);
  const days = [...catalog.models.values()].flatMap(daysOf);
  const next = days.filter((day) => day > today).toSorted()[0];
  const until_ms = next === undefined ? Infinity : Date.parse(next);
  if (days.length === 0) return { catalog, until_ms };
  const models = new Map<string, Model>();
  const retired = new Map(catalog.retired);
  for (const [id, model] of catalog.models) {
    const has_ended = model.retirement !== undefined && model.retirement.on <= today;
    (has_ended ? retired : models).set(id, daysOf(model).length === 0 ? model : modelOn(model, today));
  }
  return { catalog: { ...catalog, models, retired }, until_ms };
}

/** Every day on which something of the model changes. */
function daysOf({ price, routes, retirement }: Model): string[] {
  const rows: readonly DatedRow[] = [...price, ...routes.flatMap(({ cost }) => cost)];
  return [...rows.flatMap(({ from }) => from ?? []), ...(retirement ? [retirement.on] : [])];
}

/** A price that begins on a day, and the one in whose place it comes; or the end of a model. */
export type DatedChange = { readonly model: Model; readonly on: string } & (
  | { readonly is: 'price'; readonly row: PriceRow; readonly before: PriceRow | undefined }
  | { readonly is: 'end'; readonly replaced_by: string | undefined }
);

/** Returns the changes that the catalogue has dates for, past and coming, the latest first. */
export function datedChanges({ models }: Pick<Dated, 'models'>): DatedChange[] {
  return [...models.values()]
    .flatMap((model) => [...priceChanges(model), ...endOf(model)])
    .toSorted((a, b) => (a.on === b.on ? 0 : a.on < b.on ? 1 : -1));
}

function priceChanges(model: Model): DatedChange[] {
  return model.price.flatMap((row) => {
    const { from: on } = row;
    if (on === undefined) return [];
    const earlier = model.price
      .filter((each) => subjectOf(each) === subjectOf(row) && (each.from ?? '') < on)
      .toSorted((a, b) => ((a.from ?? '') < (b.from ?? '') ? 1 : -1));
    return [{ model, on, is: 'price' as const, row, before: earlier[0] }];
  });
}

function endOf(model: Model): DatedChange[] {
  const { retirement } = model;
  if (!retirement) return [];
  return [{ model, on: retirement.on, is: 'end', replaced_by: retirement.replaced_by }];
}

function modelOn(model: Model, day: string): Model {
  const routes = model.routes.map((route): Route => ({ ...route, cost: rowsOn(route.cost, day).map(withoutDate) }));
  return { ...model, price: rowsOn(model.price, day).map(withoutDate), routes };
}

function withoutDate<Row extends DatedRow>({ from: _from, ...row }: Row): Omit<Row, 'from'> {
  return row;
}

/** The time before the end of a model in which operators are warned. */
const warned_ms = 30 * 86_400_000;

/** Says which models end within 30 days. */
export function endingSoon(models: Iterable<Model>, now_ms: number): string[] {
  const last = dayOf(now_ms + warned_ms);
  return [...models].flatMap(({ id, retirement }) =>
    retirement && retirement.on <= last ? [`${id} ${endText(retirement)}`] : [],
  );
}

/** Completes a sentence about a model: `ends on 2027-01-06; use a/b instead.` */
export function endText({ on, replaced_by }: Retirement, verb = 'ends'): string {
  return `${verb} on ${on}${replaced_by === undefined ? '' : `; use ${replaced_by} instead`}.`;
}
