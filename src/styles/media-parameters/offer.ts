import { fieldsOf, own, type InputFields } from '../../catalog/input-schema.ts';
import type { Json, JsonObject, MediaField, MediaKind, Model } from '../../catalog/model.ts';
import { ApiError } from '../../errors.ts';

/**
 * Callers of SDKs name what they want in the words of one provider (`size`, `seconds`, `voice`); models have fields of
 * their own. What a model's schema offers decides which of its fields takes a parameter.
 */
export type Offer = {
  model: string;
  kind: MediaKind;
  fields: InputFields;
  media: readonly MediaField[];
};

export function offerOf(model: Model, kind: MediaKind): Offer {
  return { model: model.id, kind, fields: fieldsOf(model.input_schema), media: model.media };
}

/** The first of these that is a field of the model. */
export function fieldNamed(offer: Offer, names: readonly string[]): string | undefined {
  return names.find((name) => offer.fields.names.includes(name));
}

/** The only values that a field may have, if its schema lists them. */
export function choicesOf({ fields }: Offer, field: string): Json[] | undefined {
  const choices = fields.keyword(field, 'enum');
  if (Array.isArray(choices)) return choices;
  const only = fields.keyword(field, 'const');
  return only === undefined ? undefined : [only];
}

export function isList({ fields }: Offer, field: string): boolean {
  return [fields.keyword(field, 'type') ?? []].flat().includes('array');
}

/**
 * A value as the field has it: the choice that reads the same, a number where it wants one and got its digits (all
 * values of forms are texts), and the other way round. What fits nothing stays, and is refused by the schema.
 */
export function asField(offer: Offer, field: string, value: Json): Json {
  const choice = choicesOf(offer, field)?.find((each) => sameText(each, value));
  if (choice !== undefined) return choice;
  const types = [offer.fields.keyword(field, 'type') ?? []].flat();
  if (typeof value === 'string' && !types.includes('string')) {
    if ((types.includes('number') || types.includes('integer')) && number_form.test(value)) return Number(value);
    if (types.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true';
    if (types.includes('array')) return [value];
  }
  return typeof value === 'number' && types.length > 0 && types.every((type) => type === 'string')
    ? String(value)
    : value;
}

const number_form = /^-?\d{1,15}(\.\d{1,15})?$/;

function sameText(a: Json, b: Json): boolean {
  return typeof a !== 'object' && typeof b !== 'object' && String(a) === String(b);
}

/** A text, or the text under one of these keys of an object. */
export function textOf(value: Json, keys: readonly string[]): string | undefined {
  if (typeof value === 'string') return value;
  return keys.map((key) => own(value, key)).find((each) => typeof each === 'string');
}

/** Returns the error for a parameter that the model does not have; to be thrown. */
export function refused(parameter: string, message: string): ApiError {
  return new ApiError('invalid_request', message, { param: parameter });
}

/** Choices in a sentence. */
export function listed(choices: readonly Json[]): string {
  return choices.map((choice) => JSON.stringify(choice)).join(', ');
}

/** Fields of an input, and which parameter they come from. */
export type MappedInput = { input: JsonObject; origins: ReadonlyMap<string, string> };
