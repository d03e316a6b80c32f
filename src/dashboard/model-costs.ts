import { invalidField } from '../errors.ts';
import { units as unit_names, type JsonObject, type Model, type Unit } from '../catalog/model.ts';
import { unknownModel } from '../catalog/model-errors.ts';
import { freezePricing, measuredCost, pricingOfInput, unitsByRows, type Units } from '../catalog/price.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { listedAlias } from '../catalog/alias.ts';
import { isRecord } from '../lib/is-record.ts';
import { costView, rational } from '../money/money.ts';
import { account_endpoint } from './page.ts';
import type { UnitCostView } from './views/models.ts';

/** The calculator of the models page: so many units of each model, priced by the code that charges calls and tasks. */

const models_max = 4;
const text = { type: 'string' };

/** Returns the cost of these units of each model, in the currency of the account. */
export const cost_of_units = account_endpoint(
  'GET',
  '/model-costs',
  'read',
  (app, { account, query }) => {
    const { current } = app.catalog;
    const models = readModels(current, query.get('models'));
    const units = readUnits(jsonIn(query.get('units')));
    const input = readInput(jsonIn(query.get('input') ?? '{}'));
    const data = models.map((model): UnitCostView => {
      const frozen = freezePricing(model, input, account.currency, current.settings);
      const pricing = pricingOfInput(frozen, Number(units.input_token ?? 0));
      const priced = new Set(pricing.rows.flatMap(({ unit }) => same_units[unit] ?? [unit]));
      const counted = unitsByRows(units, pricing.rows);
      const unpriced = unit_names.filter((unit) => counted[unit] !== undefined && !priced.has(unit));
      return { model: model.id, cost: costView(measuredCost(pricing, units, units), account.currency), unpriced };
    });
    return { status: 200, body: { data } };
  },
  {
    query: {
      models: { description: 'Ids with commas between them.', schema: text },
      units: { description: 'A quantity for each unit, as JSON.', schema: text },
      input: { description: 'Values of an input that decide the price, as JSON.', schema: text },
    },
    limited: 'same',
  },
);

/** Either is charged for the other. */
const same_units: { readonly [unit in Unit]?: readonly Unit[] } = {
  second: ['second', 'minute'],
  minute: ['second', 'minute'],
};

function readModels(catalog: Catalog, list = ''): Model[] {
  const ids = list.split(',').filter((id) => id !== '');
  if (ids.length === 0 || ids.length > models_max) {
    throw invalidField('models', `models must be 1 to ${models_max} ids with commas between them.`);
  }
  return ids.map((id) => {
    const model = catalog.models.get(id) ?? listedAlias(catalog, id)?.model;
    if (!model) throw unknownModel(id, 'models', catalog.retired.get(id)?.retirement);
    return model;
  });
}

function jsonIn(value: string | undefined): unknown {
  try {
    return JSON.parse(value ?? '');
  } catch {
    return undefined;
  }
}

const quantity_form = /^\d{1,12}(\.\d{1,6})?$/;

function readUnits(value: unknown): Units {
  if (!isRecord(value))
    throw invalidField('units', 'units must have a quantity for each unit, such as {"image": "4"}.');
  const units: { [unit in Unit]?: string } = {};
  for (const [name, quantity] of Object.entries(value)) {
    const unit = unit_names.find((each) => each === name);
    if (unit === undefined) throw invalidField('units', `${name} is no unit of prices.`);
    if (typeof quantity !== 'string' || !quantity_form.test(quantity) || rational(quantity) === undefined) {
      throw invalidField('units', `The quantity of ${name} must be a decimal text such as "1000".`);
    }
    units[unit] = quantity;
  }
  return units;
}

/** Values of an input that decide the price, such as a resolution. */
function readInput(value: unknown): JsonObject {
  if (!isRecord(value)) throw invalidField('input', 'input must be an object.');
  const entries = Object.entries(value).map(([name, each]): [string, string | number | boolean] => {
    if (typeof each === 'string' || typeof each === 'number' || typeof each === 'boolean') return [name, each];
    throw invalidField('input', `input.${name} must be a text, a number, true or false.`);
  });
  return Object.fromEntries(entries);
}
