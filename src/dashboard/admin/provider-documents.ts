import { invalidField } from '../../errors.ts';
import { addModels, type AddedModel, type AddedProvider } from '../../catalog/added/rows.ts';
import { isMediaKind, kinds, type Json } from '../../catalog/model.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import { isRecord } from '../../lib/is-record.ts';
import { JsonShape, JsonTooComplex } from '../../lib/json-shape.ts';
import { adapters } from '../../providers/index.ts';
import {
  DocumentError,
  type ChosenField,
  type DocumentFacts,
  type DocumentField,
  type DocumentModel,
  type Documents,
} from '../../providers/offer/document.ts';
import { priceIn } from './provider-models.ts';
import { changeAdded, providerIn, reading, storedKey, type OfferParts } from './providers.ts';
import { configOf } from '../provider-offer.ts';
import { readBodyFields } from '../body-fields.ts';
import { session_endpoint } from '../page.ts';
import type { DocumentFieldView, DocumentView, ModelsAdded } from '../views/admin-providers.ts';

/** Models of documents that operators have, such as workflows, over a provider that was added. */

const body_limit_bytes = 3_000_000;

/** Reads a document: the fields that may be inputs of its model. Changes nothing. */
export const admin_read_document = session_endpoint(
  'POST',
  '/dash/admin/providers/{name}/document',
  'operator',
  async (app, call) => {
    const provider = await providerIn(app, call);
    const documents = documentsOf(provider);
    const document = documentIn(call, documents);
    const facts = await factsOf(app, provider, document);
    const { kind, fields } = await orRefusal(() => documents.read(document, facts));
    const view: DocumentView = {
      kind,
      problems: facts.problems,
      fields: fields.map(fieldView),
    };
    return { status: 200, body: view };
  },
  { body_limit_bytes },
);

function fieldView(offered: DocumentField): DocumentFieldView {
  const { target, part, field, type, value, name, is_suggested, maximum, choices = [] } = offered;
  return { target, part, field, type, value, name, is_suggested, maximum: maximum ?? null, choices: choices.length };
}

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
    const facts = await factsOf(app, provider, document);
    const place = { provider: provider.name, prefix: provider.prefix, facts };
    const entry = await orRefusal(() => documents.entry(document, model, place));
    const price = priceIn(call.body?.['price'], entry.id);
    const row: AddedModel = { id: entry.id, provider: provider.name, entry, shipped: null, margin: null, price };
    const details = { models: [entry.id], fields: model.fields.map(({ name }) => name), price };
    const audit_entry = { action: 'provider.models.add', subject: provider.name, details };
    await changeAdded(app, call, audit_entry, async (tx, now) => {
      const [taken] = await addModels(tx, [row], now);
      if (taken !== undefined)
        throw invalidField('id', `${taken} was added over another provider already. Choose another id.`);
    });
    const view: ModelsAdded = { added: [entry.id] };
    return { status: 201, body: view };
  },
  { body_limit_bytes, needs_proof: true },
);

/** The machine's own words for a document. */
async function factsOf(app: OfferParts, provider: AddedProvider, document: Json): Promise<DocumentFacts> {
  const config = configOf(provider, await storedKey(app, provider.name));
  return orRefusal(() => documentsOf(provider).ask(document, config, reading(app)));
}

function documentsOf({ entry }: AddedProvider): Documents {
  const documents = adapters[entry.adapter]?.documents;
  if (documents) return documents;
  throw invalidField('document', 'The models of this provider are in its list.');
}

/** A document is sent as its text, or as what is in it. */
function documentIn({ body }: SessionCall, { noun }: Documents): Json {
  const value: unknown = body?.['document'];
  if (typeof value !== 'string') return isRecord(value) ? JSON.parse(JSON.stringify(value)) : null;
  try {
    new JsonShape().add(Buffer.from(value));
    return JSON.parse(value);
  } catch (error) {
    if (error instanceof JsonTooComplex) throw invalidField('document', `The ${noun} ${error.what}.`);
    throw invalidField('document', `This is no JSON. Paste the whole ${noun}, as it was exported.`);
  }
}

const fields_max = 64;

function modelIn(body: SessionCall['body']): DocumentModel {
  const texts = readBodyFields(body);
  const kind = texts.oneOf('kind', kinds.filter(isMediaKind));
  const name = texts.optionalText('name', 200);
  const fields: unknown = body?.['fields'];
  if (!Array.isArray(fields) || fields.length > fields_max)
    throw invalidField('fields', `Tick at most ${fields_max} fields.`);
  return { id: texts.text('id', 100), ...(name !== undefined && { name }), kind, fields: fields.map(fieldIn) };
}

function fieldIn(value: unknown): ChosenField {
  const { target, name, maximum } = isRecord(value) ? value : {};
  if (typeof target !== 'string' || typeof name !== 'string')
    throw invalidField('fields', 'Each field needs its place and a name.');
  if (maximum === undefined || maximum === null) return { target, name };
  if (typeof maximum !== 'number' || !Number.isFinite(maximum))
    throw invalidField('fields', `The most of ${name} must be a number.`);
  return { target, name, maximum };
}

async function orRefusal<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof DocumentError ? invalidField(error.field, error.message) : error;
  }
}
