import { fileURLToPath } from 'node:url';
import { validate } from '@scalar/openapi-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../../src/http/endpoint.ts';
import { buildOpenApi, type MediaModel } from '../../../src/api/openapi/document.ts';
import { mediaModels } from '../../../src/api/openapi/reference.ts';
import { openCatalog } from '../../../src/catalog/catalog.ts';
import { exampleData } from '../../../src/api/webhook-examples.ts';
import { ApiError, service_errors } from '../../../src/errors.ts';
import { listEndpoints } from '../../../src/server.ts';
import { eventBody, event_types } from '../../../src/webhooks/events.ts';
import { formattedJson } from '../../helpers/formatted-json.ts';
import { asObject } from '../harness.ts';
import { completions_errors } from '../../../src/styles/completions/errors.ts';
import { messages_errors } from '../../../src/styles/messages/errors.ts';

const published = fileURLToPath(new URL('../../../openapi.json', import.meta.url));
const base_url = 'http://127.0.0.1:8080';

let models: MediaModel[];
let document: ReturnType<typeof buildOpenApi>;
beforeAll(async () => {
  models = mediaModels((await openCatalog({ adapters: ['sandbox'] })).current);
  document = buildOpenApi(listEndpoints(), { base_url, models });
});

/** The value at the end of a path of keys. */
function at(value: unknown, ...keys: string[]): unknown {
  return keys.reduce((inner: unknown, key) => asObject(inner)[key], value);
}

/** A validator of one schema of the document, by its JSON pointer. */
function validatorOf(pointer: string, of: object = document) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ ...of, $id: 'openapi' });
  const check = ajv.compile({ $ref: `openapi#${pointer}` });
  return (value: unknown) =>
    check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1');

describe('openapi.json', () => {
  test('is what the source generates (vitest -u writes it again)', async () => {
    await expect(formattedJson(document)).toMatchFileSnapshot(published);
  });

  test.each(event_types)('has a schema that the example of the event %s fits', (type) => {
    const now = new Date('2026-01-31T12:00:00Z');
    const event = { id: 'evt_x', type, account_id: 'acct_x', data: exampleData(type, 'USD', now) };
    const body: unknown = JSON.parse(eventBody(event, now));
    const { $ref } = asObject(
      at(document, 'webhooks', type, 'post', 'requestBody', 'content', 'application/json', 'schema'),
    );
    expect(validatorOf(String($ref).slice(1))(body)).toEqual([]);
    expect(validatorOf(String($ref).slice(1))({ ...asObject(body), data: {} })).not.toEqual([]);
  });

  test('is valid OpenAPI 3.1', () => {
    expect(validate(document, { checkPathParameters: true })).toMatchObject({
      valid: true,
      version: '3.1',
      errors: [],
    });
  });

  test('has every path and method of the table of contents', () => {
    const described = Object.entries(asObject(document['paths'])).flatMap(([path, methods]) =>
      Object.keys(asObject(methods)).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const listed = listEndpoints()
      .filter(({ docs }) => !docs.hidden)
      .map(({ method, path }) => `${method} ${path.replace('{+', '{')}`);
    expect(described.toSorted()).toEqual(listed.toSorted());
  });

  test('names each operation once', () => {
    const ids = Object.values(asObject(document['paths'])).flatMap((methods) =>
      Object.values(asObject(methods)).map((operation) => asObject(operation)['operationId']),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('has no reference that leads nowhere', () => {
    const names = Object.keys(asObject(at(document, 'components', 'schemas')));
    expect(names).toContain('Task');
    for (const name of names) validatorOf(`/components/schemas/${escaped(name)}`); // compiling resolves them
    const references = JSON.stringify(document).match(/"\$ref":"#[^"]+"/g) ?? [];
    expect(references.length).toBeGreaterThan(100);
    for (const reference of new Set(references)) {
      const keys = reference
        .slice('"$ref":"#/'.length, -1)
        .split('/')
        .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
      expect(at(document, ...keys), reference).toBeDefined();
    }
  });

  test('requires a key everywhere but on the public paths, by both headers', () => {
    expect(document['security']).toEqual([{ bearer: [] }, { api_key: [] }]);
    const open = listEndpoints().filter((endpoint) => endpoint.public && !endpoint.docs.hidden);
    expect(open.map(({ path }) => path)).toEqual([
      '/upload/v1beta/files/{account}/{id}',
      '/files/{+key}',
      '/oauth/device_authorization',
      '/oauth/token',
      '/oauth/revoke',
      '/openapi.json',
      '/livez',
      '/readyz',
    ]);
    for (const { path, method } of open)
      expect(at(document, 'paths', path.replace('{+', '{'), method.toLowerCase(), 'security')).toEqual([]);
    expect(at(document, 'paths', '/v1/tasks', 'get')).not.toHaveProperty('security');
  });

  test('has the rate limit headers on limited responses, and Retry-After on 429', () => {
    const headers = (status: string) =>
      Object.keys(asObject(at(document, 'paths', '/v1/generate', 'post', 'responses', status, 'headers')));
    expect(headers('202')).toContain('x-ratelimit-remaining-requests');
    expect(headers('202')).not.toContain('retry-after');
    expect(headers('429')).toContain('retry-after');
    expect(headers('401')).toEqual(['x-request-id']);
  });

  test('lists the errors that the pipeline itself returns', () => {
    const statuses = (path: string, method: string) =>
      Object.keys(asObject(at(document, 'paths', path, method, 'responses')));
    const reading = ['400', '401', '429', '500'];
    for (const { method, path, public: open } of listEndpoints().filter(({ docs }) => !docs.hidden)) {
      const expected = open ? ['400'] : method === 'GET' ? reading : [...reading, '413', '415'];
      expect(statuses(path.replace('{+', '{'), method.toLowerCase()), path).toEqual(expect.arrayContaining(expected));
    }
  });

  test('lists the errors of specification 4.1 for POST /v1/generate', () => {
    const statuses = Object.keys(asObject(at(document, 'paths', '/v1/generate', 'post', 'responses')));
    expect(statuses).toEqual(
      expect.arrayContaining(['202', '400', '401', '402', '403', '404', '422', '429', '502', '504']),
    );
  });
});

describe('the schemas of openapi.json', () => {
  test('accept every example of a request', () => {
    let examples = 0;
    for (const endpoint of listEndpoints()) {
      if (endpoint.docs.body?.content_type !== undefined) continue; // of a form, whose files JSON has not
      for (const [name, example] of Object.entries(endpoint.docs.body?.examples ?? {})) {
        const pointer = `/paths/${escaped(endpoint.path.replace('{+', '{'))}/${endpoint.method.toLowerCase()}/requestBody/content/application~1json/schema`;
        expect(validatorOf(pointer)(example), `${endpoint.path} ${name}`).toEqual([]);
        examples += 1;
      }
    }
    expect(examples).toBeGreaterThan(1);
  });

  test.each([service_errors, completions_errors, messages_errors])('accept every $name', ({ name, render }) => {
    const check = validatorOf(`/components/schemas/${name}`);
    const details = [1, 2].map((number) => ({ field: `f${number}`, rule: 'type', message: 'no' }));
    for (const error of [
      new ApiError('invalid_input', 'no', { param: 'input.a', code: 'x', details }),
      new ApiError('internal_error', 'no'),
      new ApiError('failures_pause', 'no'),
      new ApiError('timeout', 'no'),
    ]) {
      expect(check(render(error, 'req_1'))).toEqual([]);
    }
    expect(check({ error: { message: 'no', type: 'made_up' } })).not.toEqual([]);
  });

  test('accept a task of the specification', () => {
    const cost = { amount: '0.02', currency: 'USD', exact: '0.020000' };
    const task = {
      id: 'task_1',
      status: 'queued',
      model: 'sandbox/image',
      output: [],
      cost,
      estimated_cost: cost,
      error: null,
      created_at: '2026-01-01T00:00:00.000Z',
      started_at: null,
      completed_at: null,
      metadata: { a: 'b' },
    };
    const check = validatorOf('/components/schemas/Task');
    expect(check(task)).toEqual([]);
    expect(check({ ...task, status: 'done' })).not.toEqual([]);
    expect(check({ ...task, completed_at: undefined })).not.toEqual([]);
  });
});

describe('the models of the catalogue in openapi.json', () => {
  const generate = () =>
    asObject(at(document, 'paths', '/v1/generate', 'post', 'requestBody', 'content', 'application/json', 'schema'));

  test('are in the body of generate, each with its own input', () => {
    const check = validatorOf('/paths/~1v1~1generate/post/requestBody/content/application~1json/schema');
    expect(check({ model: 'sandbox/image', input: { prompt: 'a' } })).toEqual([]);
    expect(check({ model: 'sandbox/image', input: { prompt: 'a', resolution: '480p' } })).not.toEqual([]);
    expect(check({ model: 'sandbox/video', input: { prompt: 'a', resolution: '480p' } })).toEqual([]);
    expect(check({ model: 'sandbox/nothing', input: { prompt: 'a' } })).not.toEqual([]);
    expect(at(generate(), 'discriminator', 'mapping', 'sandbox/image')).toBe(
      '#/components/schemas/Generate_sandbox_image',
    );
    expect(at(document, 'components', 'schemas', 'Input_sandbox_image', 'type')).toBe('object');
  });

  const model = (id: string, input_schema: MediaModel['input_schema'] = { type: 'object' }): MediaModel => ({
    id,
    name: id,
    description: '',
    input_schema,
  });

  test('have names of their own when their ids differ only in signs', () => {
    const built = buildOpenApi(listEndpoints(), { base_url, models: [model('a/b-c'), model('a-b/c'), model('a.b.c')] });
    const names = Object.keys(asObject(at(built, 'components', 'schemas'))).filter((name) => name.startsWith('Input_'));
    expect(names).toEqual(['Input_a_b_c', 'Input_a_b_c_2', 'Input_a_b_c_3']);
    expect(at(built, 'components', 'schemas', 'Generate_a_b_c_2', 'properties', 'model')).toEqual({ const: 'a-b/c' });
  });

  test('may refer to parts of themselves', () => {
    const recursive = model('tree', {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/tree',
      type: 'object',
      properties: { left: { $ref: '#/$defs/node' }, all: { type: 'array', items: { $ref: '#' } } },
      $defs: { node: { type: 'integer' } },
    });
    const built = buildOpenApi(listEndpoints(), { base_url, models: [recursive] });
    const check = validatorOf('/components/schemas/Input_tree', built);
    expect(check({ left: 1, all: [{ left: 2 }] })).toEqual([]);
    expect(check({ left: 1, all: [{ left: 'x' }] })).not.toEqual([]);
  });

  test('may be missing altogether', () => {
    const built = buildOpenApi(listEndpoints(), { base_url, models: [] });
    expect(validate(built, { checkPathParameters: true })).toMatchObject({ valid: true });
    const schema = at(built, 'paths', '/v1/generate', 'post', 'requestBody', 'content', 'application/json', 'schema');
    expect(schema).toEqual({ $ref: '#/components/schemas/GenerateBody' });
  });
});

describe('the builder of openapi.json', () => {
  test('writes object parameters as name[key] and leaves hidden endpoints out', () => {
    const docs = { tag: 'T', summary: 'S', responses: { 200: { description: 'ok' } } };
    const query = {
      metadata: { description: 'm', schema: { type: 'object' } },
      limit: { description: 'l', schema: { type: 'integer' } },
    };
    const endpoints: Endpoint<null>[] = [
      {
        method: 'GET',
        path: '/v1/a/{b}',
        format: messages_errors,
        docs: { ...docs, query },
        handle: () => ({ status: 200 }),
      },
      {
        method: 'GET',
        path: '/hidden',
        public: true,
        docs: { ...docs, hidden: true },
        handle: () => ({ status: 200 }),
      },
    ];
    const built = buildOpenApi(endpoints, { base_url, models: [] });
    expect(Object.keys(asObject(built['paths']))).toEqual(['/v1/a/{b}']);
    const operation = at(built, 'paths', '/v1/a/{b}', 'get');
    expect(asObject(operation)['operationId']).toBe('get_a_b');
    expect(asObject(operation)['parameters']).toEqual([
      {
        name: 'metadata',
        in: 'query',
        description: 'm',
        required: false,
        style: 'deepObject',
        explode: true,
        schema: { type: 'object' },
      },
      { name: 'limit', in: 'query', description: 'l', required: false, schema: { type: 'integer' } },
    ]);
    expect(at(operation, 'responses', '401', 'content', 'application/json', 'schema')).toEqual({
      $ref: '#/components/schemas/MessagesError',
    });
  });
});
