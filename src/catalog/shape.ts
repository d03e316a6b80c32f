import { isIP } from 'node:net';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import ipaddr from 'ipaddr.js';
import published_schema from '../../medley.schema.json' with { type: 'json' };
import { patternProblem } from '../accounts/content-rules.ts';
import { parseDuration } from '../lib/duration.ts';
import { nearest } from '../lib/edit-distance.ts';
import { pointerKeys, valueAt } from '../lib/json-pointer.ts';
import { validationMessage } from '../json-schema/validation-messages.ts';
import { showValue } from '../lib/show-value.ts';
import { own, pathIn } from './input-schema.ts';
import type { Json } from './model.ts';
import type { Path } from './problem.ts';
import type { Target } from './source.ts';

/** Something that does not have the shape of `medley.schema.json`; `message` goes after the path. */
export type Misshape = { path: Path; target: Target; message: string };

let compiled: ValidateFunction | undefined;

/** Everything in `value` that does not have the shape of a catalogue file: one complaint per place. */
export function misshapes(value: unknown): Misshape[] {
  compiled ??= makeAjv().compile(published_schema); // 30 ms, which not every process needs
  const validate = compiled;
  if (validate(value)) return [];
  const by_field = new Map<string, Misshape>();
  for (const error of validate.errors ?? []) {
    if (error.propertyName !== undefined && error.keyword !== 'propertyNames') continue; // told by propertyNames
    const misshape = misshapeOf(error, value);
    const key = JSON.stringify(misshape.path);
    if (!by_field.has(key)) by_field.set(key, misshape);
  }
  return [...by_field.values()];
}

function makeAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: false,
    ownProperties: true,
    logger: false,
    validateSchema: false, // the meta-schema takes three times as long to compile; our own schema is tested against it
  });
  addFormats.default(ajv, ['date']);
  ajv.addFormat('plain-http-url', isPlainHttpUrl);
  ajv.addFormat(
    'origin',
    (text: string) => /^https?:\/\/[^/]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text,
  );
  ajv.addFormat('cidr', isCidr);
  ajv.addFormat('wildcard', (text: string) => patternProblem(text) === undefined);
  ajv.addKeyword({
    keyword: 'maxDuration',
    type: 'string',
    schemaType: 'string',
    validate: (longest: string, text: string) => (parseDuration(text) ?? 0) <= (parseDuration(longest) ?? Infinity),
  });
  return ajv;
}

function isPlainHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === '';
}

function isCidr(text: string): boolean {
  const [address = ''] = text.split('/');
  return isIP(address) !== 0 && ipaddr.isValidCIDR(text);
}

function misshapeOf(error: ErrorObject, root: unknown): Misshape {
  const keys = pointerKeys(error.instancePath);
  const path = pathIn(root, keys);
  const params: Record<string, unknown> = error.params;
  const of_key = (key: unknown, message: string): Misshape => ({
    path: [...path, String(key)],
    target: 'key',
    message,
  });
  switch (error.keyword) {
    case 'required':
      return of_key(params['missingProperty'], 'is required.');
    case 'additionalProperties':
      return of_key(params['additionalProperty'], unknownKey(String(params['additionalProperty']), error));
    case 'propertyNames':
      return of_key(
        params['propertyName'],
        `${advice(own(asJson(error.parentSchema), 'propertyNames')) ?? 'is no valid name'}.`,
      );
    default:
      return { path, target: 'value', message: valueMessage(error, valueAt(root, keys)) };
  }
}

function unknownKey(key: string, error: ErrorObject): string {
  const names = Object.keys(own(asJson(error.parentSchema), 'properties') ?? {});
  return `is not a known setting. ${suggestion(key, names) ?? `Known here: ${names.join(', ')}.`}`;
}

/** `Did you mean "x"?`, if one of `candidates` is near. */
export function suggestion(word: string, candidates: readonly string[]): string | undefined {
  const near = nearest(word, candidates);
  return near === undefined ? undefined : `Did you mean ${showValue(near)}?`;
}

function valueMessage(error: ErrorObject, value: unknown): string {
  const schema = asJson(error.parentSchema);
  const got = own(schema, 'writeOnly') === true ? '' : ` (got ${showValue(value)})`;
  if (error.keyword === 'maxDuration') return `must be at most ${String(error.schema)}${got}.`;
  const advised = ['type', 'pattern', 'format'].includes(error.keyword) ? advice(schema) : undefined;
  if (advised !== undefined) return `${advised}${got}.`;
  return validationMessage(error, value, (key) => key, published_schema);
}

function advice(schema: Json | undefined): string | undefined {
  const message = own(schema, 'errorMessage');
  return typeof message === 'string' ? message : undefined;
}

/** Ajv tells which part of `published_schema`, which is JSON, an error is about. */
function asJson(schema: unknown): Json | undefined {
  return schema as Json | undefined;
}
