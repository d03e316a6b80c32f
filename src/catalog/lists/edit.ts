import { isMap, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml';
import { isObject, kinds, type JsonObject, type Kind } from '../model.ts';
import type { ModelEntry, PriceEntry, ProviderEntry } from '../schema.ts';

/**
 * Changes to the text of a `medley.yaml`. Comments and the order of what is there stay; of a model that is there, only
 * what a list knows better changes: prices, costs, limits and dates.
 */

/** `lines` is how a person reads it. */
export type Change = { id: string; kind: 'added' | 'changed' | 'unchanged'; lines: string[] };

/** A model of the file, with its first route over a provider; `estimated`: the units that its input decides. */
export type WrittenModel = {
  id: string;
  kind: Kind;
  upstream_model: string;
  price: JsonObject[];
  cost: JsonObject[];
  estimated: string[];
};

export class CatalogText {
  readonly #doc: Document;

  /** Throws Error for a text that is no YAML. */
  constructor(text: string) {
    this.#doc = parseDocument(text.trim() === '' ? 'version: 1\n' : text, { stringKeys: true });
    const [mistake] = this.#doc.errors;
    if (mistake) throw mistake;
  }

  has(provider: string): boolean {
    return this.#doc.hasIn(['providers', provider]);
  }

  addProvider(name: string, entry: ProviderEntry): void {
    const node = this.#doc.createNode(entry, { flow: true });
    if (!isMap(this.#doc.get('providers'))) this.#doc.set('providers', this.#doc.createNode({}));
    this.#doc.setIn(['providers', name], node);
  }

  /** Offers the shipped models of a provider, beside those that are offered already. */
  offerShipped(provider: string): void {
    const place = ['catalog', 'default'];
    const present = this.#doc.getIn(place);
    if (present === true || (isSeq(present) && present.items.some((item) => plain(item) === provider))) return;
    if (isSeq(present)) present.add(this.#doc.createNode(provider));
    else this.#doc.setIn(place, this.#doc.createNode([provider], { flow: true }));
  }

  /** Adds a model, or brings it up to date. */
  putModel(entry: ModelEntry, provider: string): Change {
    if (!isSeq(this.#doc.get('models'))) this.#doc.set('models', this.#doc.createNode([]));
    const models = this.#doc.get('models');
    if (!isSeq(models)) throw new Error('models is a list');
    const present = models.items.find((item): item is YAMLMap => isMap(item) && item.get('id') === entry.id);
    if (present) return this.#update(present, entry, provider);
    models.add(this.#node(entry));
    return { id: entry.id, kind: 'added', lines: rowTexts(entry.price) };
  }

  /** Models with a route over a provider, each with the first such route; those without an id or a kind are left out. */
  modelsOver(provider: string): WrittenModel[] {
    const models: unknown = plain(this.#doc.get('models'));
    return listIn(models).flatMap((model) => {
      const route = listIn(model['routes']).find((each) => each['provider'] === provider);
      const kind = kinds.find((each) => each === model['kind']);
      const { id, price, estimate } = model;
      const upstream_model = route?.['upstream_model'] ?? id;
      if (!route || kind === undefined || typeof id !== 'string' || typeof upstream_model !== 'string') return [];
      return [
        { id, kind, upstream_model, price: listIn(price), cost: listIn(route['cost']), estimated: namesIn(estimate) },
      ];
    });
  }

  toString(): string {
    return this.#doc.toString({ lineWidth: 120, flowCollectionPadding: true });
  }

  #update(present: YAMLMap, entry: ModelEntry, provider: string): Change {
    const lines: string[] = [];
    const put = (name: keyof ModelEntry, show: (value: unknown) => string) => {
      const [before, after] = [plain(present.get(name)), entry[name]];
      if (after === undefined || JSON.stringify(before) === JSON.stringify(after)) return;
      present.set(name, this.#node({ [name]: after }).get(name, true));
      lines.push(`${name}: ${show(before)} → ${show(after)}`);
    };
    put('price', showRows);
    put('max_output_tokens', String);
    put('limits', JSON.stringify);
    put('retires', String);
    put('replaced_by', String);
    if (lines.length > 0 && entry.price_source)
      present.set('price_source', this.#node({ price_source: entry.price_source }).get('price_source', true));
    this.#updateCost(present, entry, provider, lines);
    return { id: entry.id, kind: lines.length === 0 ? 'unchanged' : 'changed', lines };
  }

  /** The cost of the first route over this provider. */
  #updateCost(present: YAMLMap, entry: ModelEntry, provider: string, lines: string[]): void {
    const routes = present.get('routes');
    const route = isSeq(routes)
      ? routes.items.find((item): item is YAMLMap => isMap(item) && item.get('provider') === provider)
      : undefined;
    const [listed] = entry.routes;
    if (!route || !listed?.cost) return;
    const before = plain(route.get('cost'));
    if (JSON.stringify(before) === JSON.stringify(listed.cost)) return;
    for (const name of ['cost', 'cost_source'] as const) {
      if (listed[name] !== undefined) route.set(name, this.#node({ [name]: listed[name] }).get(name, true));
    }
    lines.push(`cost of ${provider}: ${showRows(before)} → ${showRows(listed.cost)}`);
  }

  /** A node whose rows and other small parts stand on one line each. */
  #node(value: object): YAMLMap {
    const node = this.#doc.createNode(value, { aliasDuplicateObjects: false });
    if (!isMap(node)) throw new Error('an object is a map');
    makeFlow(node, 0);
    return node;
  }
}

const small_names = new Set(['limits', 'capabilities', 'price_source', 'cost_source', 'options']);

function makeFlow(node: unknown, depth: number): void {
  if (isSeq(node)) {
    for (const item of node.items) {
      if (isMap(item) && item.has('unit')) item.flow = true;
      else makeFlow(item, depth + 1);
    }
  } else if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (small_names.has(String(key)) && (isMap(value) || isSeq(value))) value.flow = true;
      else makeFlow(value, depth + 1);
    }
  }
}

function listIn(value: unknown): JsonObject[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  return list.filter((each) => isObject(each));
}

function namesIn(value: unknown): string[] {
  return isObject(value) ? Object.keys(value) : [];
}

function plain(node: unknown): unknown {
  return isMap(node) || isSeq(node) ? node.toJSON() : node;
}

function showRows(rows: unknown): string {
  return Array.isArray(rows) ? rowTexts(rows).join(', ') : 'none';
}

function rowTexts(rows: readonly PriceEntry[] | undefined): string[] {
  return (rows ?? []).map(({ unit, amount, above_input_tokens }) => {
    return `${unit}${above_input_tokens === undefined ? '' : ` above ${above_input_tokens}`} ${amount}`;
  });
}
