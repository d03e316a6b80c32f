import type { ErrorObject } from 'ajv';
import { nearest } from '../lib/edit-distance.ts';
import { fragmentAt, pointerKeys, valueAt } from '../lib/json-pointer.ts';
import { pickBranches, schemaOf } from './branches.ts';
import { validationMessage, list } from './validation-messages.ts';
import { showText, showValue } from '../lib/show-value.ts';

/** One mistake in a request body: the field as the caller wrote it, the rule, a sentence. */
export type FieldError = { field: string; rule: string; message: string };

export type MessageOptions = {
  /** First part of the field names: `input`. */
  prefix: string;
  /** Owner of the fields, for messages about unknown ones: `model sandbox/image`. */
  owner: string;
  /** The schema that Ajv compiled: the same object, not a copy. */
  schema: object;
};

const errors_max = 20;

/** More are not even looked at: a wrong array of a million items makes a million errors. */
const errors_read_max = 1000;

/**
 * Ajv's errors for `input` as sentences that name the field. Missing fields come first, then unknown
 * ones, wrong types, wrong values; at most 20. `rule` is the keyword of JSON Schema. Ajv should run
 * with `allErrors`, and with `verbose` where schemas refer to themselves (its paths are ambiguous there);
 * `allErrors` only on inputs of bounded size: five million wrong items took it 2.3 s and 0.9 GB.
 */
export function fieldErrors(errors: readonly ErrorObject[], input: unknown, options: MessageOptions): FieldError[] {
  const ordered = pickBranches(errors.slice(0, errors_read_max), options.schema).toSorted(
    (a, b) => rankOf(a.keyword) - rankOf(b.keyword),
  );
  const by_message = new Map<string, FieldError>();
  for (const error of ordered) {
    if (by_message.size === errors_max) break;
    const field_error = fieldErrorOf(error, input, options);
    by_message.set(field_error.message, field_error);
  }
  return [...by_message.values()];
}

const ranks: readonly (readonly string[])[] = [
  ['required', 'dependentRequired', 'dependencies'],
  ['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'false schema'],
  ['type'],
];

function rankOf(keyword: string): number {
  const rank = ranks.findIndex((keywords) => keywords.includes(keyword));
  return rank === -1 ? ranks.length : rank;
}

function fieldErrorOf(error: ErrorObject, input: unknown, options: MessageOptions): FieldError {
  const keys = pointerKeys(error.instancePath);
  const name = fieldName(options.prefix, keys, input);
  const described = aboutMember(error, name, options) ?? {
    field: name,
    message: `${name} ${validationMessage(error, valueAt(input, keys), (key) => name + member(key), options.schema)}`,
  };
  return { field: described.field, rule: error.keyword, message: described.message };
}

/** `input.loras[0].url`; names that are no plain words stand in brackets and quotes. */
function fieldName(prefix: string, keys: readonly string[], input: unknown): string {
  let name = prefix;
  let container = input;
  for (const key of keys) {
    name += Array.isArray(container) ? `[${key}]` : member(key);
    container = valueAt(container, [key]);
  }
  return name;
}

function member(key: string): string {
  return /^[A-Za-z_$][\w$-]{0,57}$/.test(key) ? `.${key}` : `[${showText(key)}]`;
}

/** Mistakes about a member of the object called `name`: missing, unknown, badly named. */
function aboutMember(
  error: ErrorObject,
  name: string,
  options: MessageOptions,
): { field: string; message: string } | undefined {
  const params: Record<string, unknown> = error.params;
  const full = (key: unknown) => name + member(String(key));
  switch (error.keyword) {
    case 'required': {
      const names = [params['missingProperties'] ?? params['missingProperty']].flat().map(full);
      return { field: names[0] ?? name, message: `${list(names, 'or')} is required.` };
    }
    case 'dependentRequired':
    case 'dependencies': {
      const field = full(params['missingProperty']);
      return { field, message: `${field} is required when ${full(params['property'])} is set.` };
    }
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const key = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
      const near = nearest(key, knownMembers(schemaOf(error, options.schema), options.schema));
      const hint = near === undefined ? '' : ` Did you mean ${showValue(near)}?`;
      return { field: full(key), message: `${full(key)} is not a known field of ${options.owner}.${hint}` };
    }
    case 'propertyNames': {
      const field = full(params['propertyName']);
      return { field, message: `${field} is not a valid name for a field.` };
    }
    default:
      return undefined;
  }
}

const depth_max = 8;

/** Names under `properties` of a schema and of the schemas that it is made of. */
function knownMembers(node: unknown, schema: object, depth = 0): string[] {
  if (typeof node !== 'object' || node === null || depth > depth_max) return [];
  const part = (key: string): unknown => valueAt(node, [key]);
  const reference = part('$ref');
  const parts = ['allOf', 'anyOf', 'oneOf', 'then', 'else'].flatMap(part);
  if (typeof reference === 'string') parts.push(fragmentAt(schema, reference));
  return [...Object.keys(part('properties') ?? {}), ...parts.flatMap((each) => knownMembers(each, schema, depth + 1))];
}
