import { modelOf, mayTypeListPrice } from '../../catalog/added/part.ts';
import {
  addProvider,
  changeProvider,
  listAddedModels,
  listAddedProviders,
  readAdded,
  removeProvider,
  type AddedModel,
  type AddedProvider,
  type NewProvider,
} from '../../catalog/added/rows.ts';
import { added_channel } from '../../catalog/added/watch.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { defaultProviders, needsKey } from '../../catalog/default.ts';
import { factorOf, percentOf } from '../../catalog/margin.ts';
import { knownPresets, shippedTitle } from '../../catalog/presets.ts';
import type { ProviderEntry } from '../../catalog/schema.ts';
import { sandbox_name } from '../../catalog/check-settings.ts';
import type { ContentKeys } from '../../db/content.ts';
import type { Db, Queryable } from '../../db/database.ts';
import type { Notifier } from '../../db/notify.ts';
import type { Watcher } from '../../db/watched.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Guard } from '../../net/guard.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import { adapters } from '../../providers/index.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { readBodyFields } from '../body-fields.ts';
import { changeAsOperator, type OperatorChange } from '../operator-change.ts';
import { session_endpoint } from '../page.ts';
import { checksKeys, noProvider, priceViews, readOffer, usdRate } from '../provider-offer.ts';
import type {
  AddedModelView,
  AddedProviderView,
  AdminProviders,
  ProviderAdded,
  ProviderChoice,
  ProviderProtocol,
} from '../views/admin-providers.ts';

/** Providers that operators add while the service runs: beside those of medley.yaml, whose names go first. */

type KeyParts = { readonly db: Db; readonly content_keys: ContentKeys };

/** Parts that reading a list takes. */
export type OfferParts = KeyParts & { readonly guard: Guard; readonly stopping: AbortSignal };

type ChangeParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly notifier: Notifier;
  readonly added: Pick<Watcher, 'refresh'> | undefined;
};

/** Lists what was added, and what can be. */
export const admin_providers = session_endpoint('GET', '/dash/admin/providers', 'operator', async (app) => {
  const [providers, models] = await Promise.all([listAddedProviders(app.db), listAddedModels(app.db)]);
  const { current } = app.catalog;
  const { settings, file_providers } = current;
  const view: AdminProviders = {
    choices: choices(),
    protocols: protocols(),
    providers: providers.map((provider) => providerView(provider, models, current)),
    file_providers,
    file: app.config.config_file ?? null,
    is_encrypted: app.content_keys.current !== undefined,
    currency: settings.base_currency,
    usd_rate: usdRate(settings),
  };
  return { status: 200, body: view };
});

function choices(): ProviderChoice[] {
  const shipped = Object.entries(defaultProviders()).map(([name, entry]): ProviderChoice => {
    const needs_key = entry.api_key !== undefined || needsKey(entry);
    const { base_url = null } = entry;
    return { name, title: shippedTitle(name), group: 'shipped', base_url, allow_private: false, needs_key };
  });
  const servers = Object.entries(knownPresets()).map(([name, { title, provider }]): ProviderChoice => {
    const { base_url = null, allow_private = false, api_key } = provider;
    const group = allow_private ? 'local' : 'cloud';
    return { name, title, group, base_url, allow_private, needs_key: api_key !== undefined };
  });
  return [...shipped, ...servers];
}

/** Protocols of servers with an address of one's own whose models are found by their list, or typed. */
function protocols(): ProviderProtocol[] {
  return Object.entries(adapters).flatMap(([name, { listModels, openChat, has_whole_list }]) =>
    listModels && (openChat || has_whole_list) ? [{ name, title: shippedTitle(name) }] : [],
  );
}

function providerView(provider: AddedProvider, models: readonly AddedModel[], catalog: Catalog): AddedProviderView {
  const { name, preset, entry, last_four, margin, prefix, is_off } = provider;
  const server = preset === null ? undefined : knownPresets()[preset];
  return {
    name,
    title: server?.title ?? (preset === null ? name : shippedTitle(preset)),
    preset,
    adapter: entry.adapter,
    base_url: entry.base_url ?? null,
    has_address: hasAddress(preset),
    allow_private: entry.allow_private ?? false,
    last_four,
    margin: percentOf(margin),
    prefix,
    is_off,
    problem: is_off ? null : (catalog.unused.get(`provider ${name}`) ?? null),
    models: models.filter((model) => model.provider === name).map((model) => modelView(provider, model, catalog)),
  };
}

function modelView(provider: AddedProvider, row: AddedModel, catalog: Catalog): AddedModelView {
  const { id, margin, price } = row;
  const { settings, models, unused } = catalog;
  const in_use = models.get(id);
  const at_cost = entryAtCost(provider, row);
  return {
    id,
    name: at_cost?.name ?? id,
    kind: at_cost?.kind ?? '',
    upstream_model: at_cost?.routes[0]?.upstream_model ?? at_cost?.id ?? '',
    list_price: priceViews(at_cost?.price, 'USD'),
    price: priceViews(in_use?.price, settings.base_currency),
    margin: margin === null ? null : percentOf(margin),
    has_own_price: price !== null,
    may_type_list_price: mayTypeListPrice(row),
    is_off: in_use?.changed?.is_off ?? false,
    problem: unused.get(`model ${id}`) ?? null,
  };
}

/** A row that no version of ours wrote shows nothing but its id. */
function entryAtCost(provider: AddedProvider, row: AddedModel) {
  try {
    const entry = modelOf(
      { ...provider, margin: '1' },
      { ...row, margin: null, price: null },
      { currencies: { USD: '1' } },
    );
    return typeof entry === 'string' ? undefined : entry;
  } catch {
    return undefined;
  }
}

const name_form = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const key_length_max = 4_096;

/** Adds a provider whose key opens its list of models; one without a list is taken unseen. */
export const admin_add_provider = session_endpoint(
  'POST',
  '/dash/admin/providers',
  'operator',
  async (app, call) => {
    const added = newProvider(app.catalog.current, call);
    const offer = call.body?.['unseen'] === true ? undefined : await readOffer(added, added.api_key, reading(app));
    const { name, preset, entry, margin, api_key } = added;
    const details = {
      preset,
      adapter: entry.adapter,
      base_url: entry.base_url ?? null,
      margin,
      last_four: api_key?.slice(-4),
    };
    const { action, subject } = { action: 'provider.add', subject: name };
    await changeAdded(app, call, { action, subject, details }, async (tx, now) => {
      if (!(await addProvider(tx, app.content_keys, added, now))) {
        throw invalidField('name', `A provider ${name} was added already. Choose another name.`);
      }
    });
    const view: ProviderAdded = { name, is_checked: offer !== undefined && api_key !== undefined && checksKeys(added) };
    return { status: 201, body: view };
  },
  { needs_proof: true },
);

/** Parts of a request about an upstream, which ends when the service stops. */
export function reading({ guard, stopping }: Pick<OfferParts, 'guard' | 'stopping'>) {
  return { guard, signal: stopping };
}

function newProvider(catalog: Catalog, { body }: SessionCall): NewProvider {
  const fields = readBodyFields(body);
  const preset = fields.optionalText('preset', 64) ?? null;
  const name = fields.optionalText('name', 64) ?? preset ?? '';
  if (!name_form.test(name))
    throw invalidField('name', 'The name must have 1 to 64 lower-case letters, digits, dashes and underscores.');
  if (name === sandbox_name)
    throw invalidField('name', `The name ${name} belongs to the built-in sandbox. Choose another name.`);
  if (catalog.file_providers.includes(name))
    throw invalidField(
      'name',
      `medley.yaml has a provider ${name}, which would be used in place of this one. Choose another name.`,
    );
  const entry = entryIn(preset, body);
  const api_key = keyIn(body);
  if (api_key === undefined && wantsKey(preset)) throw invalidField('api_key', 'Paste the key of the provider.');
  const default_prefix =
    preset !== null && defaultProviders()[preset] ? '' : (knownPresets()[preset ?? '']?.prefix ?? `${name}/`);
  const prefix = body?.['prefix'] === undefined ? default_prefix : prefixIn(body['prefix']);
  return { name, preset, entry, api_key, margin: marginIn(body?.['margin'] ?? '0'), prefix };
}

function wantsKey(preset: string | null): boolean {
  if (preset === null) return false;
  return (defaultProviders()[preset] ?? knownPresets()[preset]?.provider)?.api_key !== undefined;
}

function entryIn(preset: string | null, body: SessionCall['body']): ProviderEntry {
  const shipped = preset === null ? undefined : defaultProviders()[preset];
  if (shipped) return hasAddress(preset) ? addressIn(withoutKey(shipped), body) : withoutKey(shipped);
  const server = preset === null ? undefined : knownPresets()[preset]?.provider;
  if (preset !== null && !server) throw invalidField('preset', 'preset must be one of the providers that are known.');
  const protocol = server?.adapter ?? body?.['adapter'];
  const adapter = protocols().find((each) => each.name === protocol)?.name;
  if (adapter === undefined) throw invalidField('adapter', 'Choose the protocol that the server speaks.');
  return addressIn({ ...withoutKey(server ?? { adapter }), adapter }, body);
}

/** Tells whether the address of a provider may be another: of a region, or of the operator's own. */
function hasAddress(preset: string | null): boolean {
  if (preset === null || knownPresets()[preset]) return true;
  return defaultProviders()[preset]?.base_url !== undefined;
}

function withoutKey(entry: ProviderEntry): ProviderEntry {
  const { api_key: _, ...rest } = entry;
  return rest;
}

/** The entry with the address of the body, if it has one. */
function addressIn(entry: ProviderEntry, body: SessionCall['body']): ProviderEntry {
  const { base_url = entry.base_url, allow_private = entry.allow_private ?? false } = body ?? {};
  if (typeof allow_private !== 'boolean') throw invalidField('allow_private', 'allow_private must be true or false.');
  if (typeof base_url !== 'string' || !isAddress(base_url.trim()))
    throw invalidField('base_url', 'Enter an address such as https://api.example.com/v1, without a key in it.');
  const { allow_private: _, ...rest } = entry;
  return { ...rest, base_url: base_url.trim().replace(/\/+$/, ''), ...(allow_private && { allow_private }) };
}

function isAddress(text: string): boolean {
  if (text.length > 2_048 || !URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username + password + search + hash === '';
}

/** A key that was pasted: spaces and line ends around it are no part of it. */
function keyIn(body: SessionCall['body']): string | undefined {
  const value = body?.['api_key'];
  if (value === undefined || value === null || (typeof value === 'string' && value.trim() === '')) return undefined;
  const text = typeof value === 'string' ? value.trim() : '';
  if (text.length <= key_length_max && /^[\x21-\x7e]{8,}$/.test(text)) return text;
  throw invalidField('api_key', 'This is no key: a key has at least 8 characters, and no spaces between them.');
}

/** A margin in percent, as a factor. */
export function marginIn(value: unknown): string {
  const factor = typeof value === 'string' || typeof value === 'number' ? factorOf(String(value)) : undefined;
  if (factor !== undefined) return factor;
  throw invalidField('margin', 'Enter a percentage such as 20 or 7.5.');
}

function prefixIn(value: unknown): string {
  if (typeof value === 'string' && /^(?:[A-Za-z0-9._:-]{1,40}\/)?$/.test(value)) return value;
  throw invalidField('prefix', 'Enter nothing, or letters and digits with a slash at the end, such as groq/.');
}

/** Changes the key, the address or the margin of a provider, or switches it off or on. A new key or address is tried first. */
export const admin_change_provider = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/change',
  'operator',
  async (app, call) => {
    const provider = await providerIn(app, call);
    const { name } = provider;
    const { body } = call;
    const api_key = keyIn(body);
    const has_address = body?.['base_url'] !== undefined || body?.['allow_private'] !== undefined;
    if (has_address && !hasAddress(provider.preset))
      throw invalidField('base_url', 'The address of this provider comes with Medley.');
    const entry = has_address ? addressIn(provider.entry, body) : undefined;
    if (entry && api_key === undefined) keepFromOthers(provider, entry);
    const margin = body?.['margin'] === undefined ? undefined : marginIn(body['margin']);
    const is_off = flagIn(body, 'is_off');
    if ((api_key !== undefined || entry) && body?.['unseen'] !== true)
      await readOffer(
        { ...provider, entry: entry ?? provider.entry },
        api_key ?? (await storedKey(app, name)),
        reading(app),
      );
    const details = {
      ...(api_key !== undefined && { last_four: api_key.slice(-4) }),
      ...(entry && { base_url: entry.base_url, allow_private: entry.allow_private ?? false }),
      ...(margin !== undefined && { margin, before: provider.margin }),
      ...(is_off !== undefined && { is_off }),
    };
    const change = {
      ...(api_key !== undefined && { api_key }),
      ...(entry && { entry }),
      ...(margin !== undefined && { margin }),
      ...(is_off !== undefined && { is_off }),
    };
    await changeAdded(app, call, { action: 'provider.change', subject: name, details }, async (tx, now) => {
      if (!(await changeProvider(tx, app.content_keys, name, change, now))) throw noProvider();
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

/** A key that nobody is shown is not sent to whatever address somebody types. */
function keepFromOthers({ entry, last_four }: AddedProvider, { base_url }: ProviderEntry): void {
  const originOf = (url: string | undefined) => (url === undefined ? undefined : new URL(url).origin);
  if (last_four === null || originOf(entry.base_url) === originOf(base_url)) return;
  throw invalidField('api_key', 'Paste the key again: the stored one is not sent to another address.');
}

function flagIn(body: SessionCall['body'], name: string): boolean | undefined {
  const value = body?.[name];
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalidField(name, `${name} must be true or false.`);
}

/** Removes a provider with its models. */
export const admin_remove_provider = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/remove',
  'operator',
  async (app, call) => {
    const { name } = await providerIn(app, call);
    await changeAdded(app, call, { action: 'provider.remove', subject: name }, async (tx) => {
      if (!(await removeProvider(tx, name))) throw noProvider();
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

/** Returns the provider that the path names. Throws ApiError 404. */
export async function providerIn({ db }: Pick<KeyParts, 'db'>, { params }: SessionCall): Promise<AddedProvider> {
  const provider = (await listAddedProviders(db)).find(({ name }) => name === params['name']);
  if (provider) return provider;
  throw noProvider();
}

/** Returns the key of a provider. Throws ApiError if it cannot be read any more. */
export async function storedKey(app: KeyParts, name: string): Promise<string | undefined> {
  const { keys } = await readAdded(app.db, app.content_keys);
  if (keys.has(name) && keys.get(name) === undefined)
    throw new ApiError('invalid_request', 'Its key cannot be read with MEDLEY_SECRET. Paste the key again.', {
      param: 'api_key',
    });
  return keys.get(name);
}

/** Changes providers or their models. This node acts on it at once; the others get a notification. */
export async function changeAdded(
  app: ChangeParts,
  call: SessionCall,
  audit_entry: OperatorChange,
  work: (tx: Queryable, now: Date) => Promise<void>,
): Promise<void> {
  await changeAsOperator(app, call, audit_entry, work);
  await app.added?.refresh();
  app.notifier.notify(added_channel, audit_entry.subject);
}
