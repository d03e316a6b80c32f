import { rational } from '../../money/money.ts';
import { rowsOn } from '../dated.ts';
import type { Model, PriceRow, Route } from '../model.ts';
import type { ListedModel } from './listed.ts';

/** A point in which a route and a list differ. */
export type Difference = {
  model: string;
  route: string;
  upstream_model: string;
  what: string;
  ours: string;
  theirs: string;
};

/**
 * Compares costs per token and ends of models with a list, as they are on a day. `providerOf` is how the list names the
 * provider of a route; absent: it does not have it.
 */
export function compareWithList(
  models: readonly Model[],
  list: readonly ListedModel[],
  { day, providerOf }: { day: string; providerOf: (route: Route) => string | undefined },
): { compared: number; differences: Difference[]; unlisted: string[] } {
  const listed = new Map(list.map((one) => [`${one.provider ?? ''} ${one.upstream_model}`, one]));
  const differences: Difference[] = [];
  const unlisted: string[] = [];
  let compared = 0;
  for (const model of models) {
    for (const route of model.routes) {
      const provider = providerOf(route);
      if (provider === undefined || (model.kind !== 'chat' && model.kind !== 'embedding')) continue;
      const theirs = listed.get(`${provider} ${route.upstream_model}`);
      if (!theirs) {
        unlisted.push(`${model.id} (${route.upstream_model})`);
        continue;
      }
      compared += 1;
      differences.push(...differencesOf(model, route, theirs, day));
    }
  }
  return { compared, differences, unlisted };
}

function differencesOf(model: Model, route: Route, theirs: ListedModel, day: string): Difference[] {
  const place = { model: model.id, route: route.id, upstream_model: route.upstream_model };
  const [mine, other] = [rowsByName(rowsOn(route.cost, day)), rowsByName(theirs.price)];
  const names = [...new Set([...mine.keys(), ...other.keys()])];
  const costs = names.flatMap((name): Difference[] => {
    const [ours = 'nothing', listed = 'nothing'] = [mine.get(name), other.get(name)];
    return ours === listed ? [] : [{ ...place, what: name, ours, theirs: listed }];
  });
  const [ends = 'nothing', listed_end = 'nothing'] = [model.retirement?.on, theirs.retires];
  return ends === listed_end ? costs : [...costs, { ...place, what: 'retires', ours: ends, theirs: listed_end }];
}

/** Prices of a million tokens by unit and step. */
function rowsByName(rows: readonly PriceRow[]): Map<string, string> {
  return new Map(
    rows.flatMap(({ unit, amount, per, above_input_tokens: above }): [string, string][] => {
      const exact = rational(amount);
      if (!exact || !unit.endsWith('_token')) return [];
      const millionths = (exact.numerator * 1_000_000_000_000n) / (exact.denominator * BigInt(per));
      return [[above === undefined ? unit : `${unit} above ${above}`, String(Number(millionths) / 1_000_000)]];
    }),
  );
}
