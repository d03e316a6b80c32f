import type { Catalog } from '../../catalog/catalog.ts';
import { listMargin } from '../../catalog/list-margin.ts';
import type { Model, PriceRow } from '../../catalog/model.ts';
import { allRoutes } from '../../catalog/overrides.ts';
import { session_endpoint } from '../page.ts';
import type { AdminPrice, AdminPrices } from '../views/admin.ts';
import type { PriceView } from '../views/models.ts';

/** The prices that hold now, with what the routes of each model cost, in the order of the catalogue. */
export const admin_prices = session_endpoint('GET', '/dash/admin/prices', 'operator', (app) => {
  const { current } = app.catalog;
  const view: AdminPrices = { data: [...current.models.values()].map((model) => renderPrice(model, current)) };
  return { status: 200, body: view };
});

function renderPrice(model: Model, { settings }: Catalog): AdminPrice {
  const { id, kind, name, price, price_source } = model;
  return {
    model: id,
    kind,
    name,
    price: price.map((row) => priceView(row, settings.base_currency)),
    price_source: price_source ?? null,
    routes: allRoutes(model).map((route) => {
      const margin = listMargin(model, route, settings);
      return {
        id: route.id,
        provider: route.provider,
        cost: route.cost.map((row) => priceView(row, row.currency)),
        margin_percent: margin === undefined ? null : margin / 10,
      };
    }),
  };
}

function priceView({ unit, amount, per, when, above_input_tokens }: PriceRow, currency: string): PriceView {
  return {
    unit,
    amount,
    per,
    currency,
    ...(when && { when }),
    ...(above_input_tokens !== undefined && { above_input_tokens }),
  };
}
