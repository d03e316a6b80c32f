import { addModels, type AddedModel, type AddedProvider } from '../catalog/added/rows.ts';
import { isMediaKind, kinds, type Json } from '../catalog/model.ts';
import type { SessionCall } from '../http/endpoint.ts';
import { isRecord } from '../lib/is-record.ts';
import { adapters } from '../providers/index.ts';
import { DocumentError, type ChosenField, type DocumentModel, type Documents } from '../providers/offer/document.ts';
import { priceIn } from './admin-provider-models.ts';
import { changeAdded, providerIn } from './admin-providers.ts';
import { readBodyFields, wrong } from './body-fields.ts';
import { session_endpoint } from './page.ts';
import type { DocumentView, ModelsAdded } from './views/admin-providers.ts';

/** Models of documents that operators have, such as workflows, over a provider that was added. */

const body_limit_bytes = 3_000_000;

/** Reads a document: the fields that may be inputs of its model. Changes nothing. */
export const admin_read_document = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/document',
  'operator',
  async (app, call) => {
    const documents = documentsOf(await providerIn(app, call));
    const document = documentIn(call, documents);
    const { kind, fields } = orRefusal(() => documents.read(document));
    const view: DocumentView = {
      kind,
      fields: fields.map(({ maximum = null, ...field }) => ({ ...field, maximum })),
    };
    return { status: 200, body: view };
  },
  { body_limit_bytes },
);

/** Adds the model of a document, or replaces the one of the same id. */
export const admin_add_document = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/documents',
  'operator',
  async (app, call) => {
    const provider = await providerIn(app, call);
    const documents = documentsOf(provider);
    const document = documentIn(call, documents);
    const model = modelIn(call.body);
    const place = { provider: provider.name, prefix: provider.prefix };
    const entry = orRefusal(() => documents.entry(document, model, place));
    const price = priceIn(call.body?.['price'], entry.id);
    const row: AddedModel = { id: entry.id, provider: provider.name, entry, shipped: null, margin: null, price };
    const details = { models: [entry.id], fields: model.fields.map(({ name }) => name), price };
    const deed = { action: 'provider.models.add', subject: provider.name, details };
    await changeAdded(app, call, deed, async (tx, now) => {
      const [taken] = await addModels(tx, [row], now);
      if (taken !== undefined)
        throw wrong('id', `${taken} was added over another provider already. Choose another id.`);
    });
    const view: ModelsAdded = { added: [entry.id] };
    return { status: 201, body: view };
  },
  { body_limit_bytes, needs_proof: true },
);

function documentsOf({ entry }: AddedProvider): Documents {
  const documents = adapters[entry.adapter]?.documents;
  if (documents) return documents;
  throw wrong('document', 'The models of this provider are in its list.');
}

/** A document is sent as its text, or as what is in it. */
function documentIn({ body }: SessionCall, { noun }: Documents): Json {
  const value: unknown = body?.['document'];
  if (typeof value !== 'string') return isRecord(value) ? JSON.parse(JSON.stringify(value)) : null;
  try {
    return JSON.parse(value);
  } catch {
    throw wrong('document', `This is no JSON. Paste the whole ${noun}, as it was exported.`);
  }
}

const fields_max = 64;

function modelIn(body: SessionCall['body']): DocumentModel {
  const texts = readBodyFields(body);
  const kind = texts.oneOf('kind', kinds.filter(isMediaKind));
  const name = texts.optionalText('name', 200);
  const fields: unknown = body?.['fields'];
  if (!Array.isArray(fields) || fields.length > fields_max) throw wrong('fields', `Tick at most ${fields_max} fields.`);
  return { id: texts.text('id', 100), ...(name !== undefined && { name }), kind, fields: fields.map(fieldIn) };
}

function fieldIn(value: unknown): ChosenField {
  const { target, name, maximum } = isRecord(value) ? value : {};
  if (typeof target !== 'string' || typeof name !== 'string')
    throw wrong('fields', 'Each field needs its place and a name.');
  if (maximum === undefined || maximum === null) return { target, name };
  if (typeof maximum !== 'number' || !Number.isFinite(maximum))
    throw wrong('fields', `The most of ${name} must be a number.`);
  return { target, name, maximum };
}

function orRefusal<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof DocumentError ? wrong(error.field, error.message) : error;
  }
}
