import { expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { allRoutes, startableRoutes, withOverrides, type Override } from '../../src/catalog/overrides.ts';

const { current } = await openCatalog({ adapters: ['sandbox'] });
const id = 'sandbox/failover';
const ids = (routes: readonly { id: string }[]) => routes.map((route) => route.id);
const configured = ids(current.models.get(id)?.routes ?? []);

function changed(override: Partial<Override>) {
  const catalog = withOverrides(current, [{ model: id, is_off: false, route_order: [], drained: [], ...override }]);
  const model = catalog.models.get(id);
  if (!model) throw new Error('the model is gone');
  expect([...catalog.models.keys()]).toEqual([...current.models.keys()]);
  expect(catalog.providers).toBe(current.providers); // connections to them go on
  return model;
}

it('the tests of overrides have models to change', () => {
  expect(configured.length).toBeGreaterThan(1);
  expect(withOverrides(current, [])).toBe(current);
  expect(withOverrides(current, [{ model: 'no/model', is_off: true, route_order: [], drained: [] }])).toBe(current);
});

it('routes that an override leaves out follow in their own order, and unknown ones are ignored', () => {
  const [first = '', ...others] = configured;
  expect(ids(changed({ route_order: ['gone', ...others] }).routes)).toEqual([...others, first]);
  expect(changed({ route_order: ['gone'] })).toMatchObject({ changed: { is_reordered: false } });
});

it('a model that is switched off accepts nothing new, and its accepted tasks keep their routes', () => {
  const [first = ''] = configured;
  const model = changed({ is_off: true, drained: [first] });
  expect(model.routes).toEqual([]);
  expect(ids(startableRoutes(model))).toEqual(configured.slice(1));
  expect(ids(allRoutes(model))).toEqual(configured);
});
