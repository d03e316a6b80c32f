import type { Json, JsonObject } from '../../catalog/model.ts';
import package_json from '../../../package.json' with { type: 'json' };
import { service_errors } from '../../errors.ts';
import { completions_errors } from '../../styles/completions/errors.ts';
import { gemini_errors } from '../../styles/gemini/errors.ts';
import { messages_errors } from '../../styles/messages/errors.ts';
import type { Endpoint, EndpointDocs, ParameterDocs, ResponseDocs } from '../../http/endpoint.ts';
import { model_schema } from '../models.ts';
import { codeSamples } from './code-samples.ts';
import { inputComponents, type MediaModel, perModelBody } from './inputs.ts';
import { error_descriptions, introduction, tag_descriptions } from './texts.ts';
import { isObjectSchema } from '../../http/query.ts';
import * as bodies from '../schemas.ts';
import * as webhook_bodies from '../webhook-schemas.ts';

export type { MediaModel } from './inputs.ts';

export type OpenApiOptions = {
  base_url: string;
  /** The models of POST /v1/generate, for their inputs. */
  models: readonly MediaModel[];
};

/** Everything that is said of the API in one OpenAPI 3.1 document, made of the endpoint list. */
export function buildOpenApi<App>(endpoints: readonly Endpoint<App>[], options: OpenApiOptions): JsonObject {
  const components = new Components();
  const shown = endpoints.filter((endpoint) => endpoint.docs.hidden !== true);
  const paths: Record<string, JsonObject> = {};
  for (const endpoint of shown) {
    const path = endpoint.path.replaceAll('{+', '{');
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, options, components) };
  }
  const inputs = inputComponents(options.models, components.inline(bodies.generate_body));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Medley',
      version: package_json.version,
      description: introduction,
      contact: { name: 'The operator of this service', url: options.base_url },
      license: { name: 'Apache License 2.0', identifier: package_json.license },
    },
    servers: [{ url: options.base_url }],
    security: [{ bearer: [] }, { api_key: [] }],
    tags: [...new Set(shown.map((endpoint) => endpoint.docs.tag))].map((name) => ({
      name,
      description: tag_descriptions[name] ?? name,
    })),
    paths,
    webhooks: webhooks(components),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: '`Authorization: Bearer <API_KEY>`' },
        api_key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      headers: components.headers,
      schemas: { ...components.schemas, ...inputs },
    },
  };
}

function operation<App>(
  endpoint: Endpoint<App>,
  { models, base_url }: OpenApiOptions,
  components: Components,
): JsonObject {
  const { docs } = endpoint;
  return {
    operationId: operationId(endpoint),
    tags: [docs.tag],
    summary: docs.summary,
    ...(docs.description !== undefined && { description: docs.description }),
    ...(endpoint.public && { security: [] }),
    parameters: [
      ...parameters('path', docs.params, components),
      ...parameters('query', docs.query, components),
      ...parameters('header', docs.headers, components),
    ],
    ...(docs.body && { requestBody: requestBody(docs.body, models, components) }),
    responses: responses(endpoint, components),
    'x-codeSamples': codeSamples(endpoint, base_url),
  };
}

/** Describes the events that the service posts to endpoints of an account. */
function webhooks(components: Components): JsonObject {
  const entries = webhook_bodies.event_docs.map(({ type, summary, schema }) => {
    const content = { 'application/json': { schema: components.convert(schema) } };
    const answers = { '2XX': { description: 'It is received. Any other answer, or none, is tried again.' } };
    const post = {
      operationId: `receive_${type.replace('.', '_')}`,
      tags: ['Webhooks'],
      summary,
      security: [],
      requestBody: { content },
      responses: answers,
    };
    return [type, { post }];
  });
  return Object.fromEntries(entries);
}

/** `get_tasks_id` for GET /v1/tasks/{id}: generated clients name their functions by it. */
function operationId<App>({ method, path }: Endpoint<App>): string {
  const words = path.replace(/^\/v1\//, '').match(/\w+/g) ?? [];
  return [method.toLowerCase(), ...words].join('_');
}

function parameters(
  place: string,
  docs: Record<string, ParameterDocs> | undefined,
  components: Components,
): JsonObject[] {
  return Object.entries(docs ?? {}).map(([name, parameter]) => ({
    name,
    in: place,
    description: parameter.description,
    required: place === 'path' || parameter.required === true,
    ...(place === 'query' && isObjectSchema(parameter) && { style: 'deepObject', explode: true }),
    schema: components.convert(parameter.schema),
    ...(parameter.example !== undefined && { example: toJson(parameter.example) }),
  }));
}

function requestBody(
  body: NonNullable<EndpointDocs['body']>,
  models: readonly MediaModel[],
  components: Components,
): JsonObject {
  const shown = body.content_type === 'multipart/form-data' ? {} : body.examples; // JSON has no files
  const examples = Object.entries(shown ?? {}).map(([name, value]) => [name, { value: toJson(value) }]);
  const schema = body.schema === bodies.generate_body ? perModelBody(models) : undefined;
  return {
    required: body.required !== false,
    content: {
      [body.content_type ?? 'application/json']: {
        schema: schema ?? components.convert(body.schema),
        ...(examples.length > 0 && { examples: Object.fromEntries(examples) }),
      },
      ...(body.form_schema && { 'multipart/form-data': { schema: components.convert(body.form_schema) } }),
    },
  };
}

function responses<App>(endpoint: Endpoint<App>, components: Components): JsonObject {
  const { docs } = endpoint;
  const declared = Object.entries(docs.responses).map(([status, response]) => ({ status: Number(status), response }));
  const described = new Set(declared.map(({ status }) => status));
  const others = errorsOf(endpoint).filter((status) => !described.has(status));
  const all = [
    ...declared,
    ...others.map((status) => ({ status, response: { description: error_descriptions[status] ?? 'Error' } })),
  ];
  return Object.fromEntries(
    all
      .toSorted((a, b) => a.status - b.status)
      .map(({ status, response }) => [String(status), responseObject(endpoint, status, response, components)]),
  );
}

/** Lists the errors of the pipeline and those of the endpoint. */
function errorsOf<App>(endpoint: Endpoint<App>): number[] {
  if (endpoint.public) return [400, ...(endpoint.docs.errors ?? [])];
  const by_path = endpoint.docs.params ? [404] : [];
  const by_body = endpoint.method === 'GET' ? [] : [413, 415]; // a body that is not asked for is read, too
  return [400, 401, ...by_path, ...by_body, 429, 500, ...(endpoint.docs.errors ?? [])];
}

function responseObject<App>(
  endpoint: Endpoint<App>,
  status: number,
  response: ResponseDocs,
  components: Components,
): JsonObject {
  const error = status >= 400;
  const schema = response.schema ?? (error ? (endpoint.format ?? service_errors).schema : undefined);
  const type = response.content_type ?? (schema ? 'application/json' : undefined);
  return {
    description: response.description,
    headers: components.responseHeaders(endpoint.public !== true, status, response.headers ?? {}),
    ...(type !== undefined && {
      content: {
        [type]: {
          ...(schema && { schema: components.convert(schema) }),
          ...(response.example !== undefined && { example: toJson(response.example) }),
        },
      },
    }),
  };
}

/** Schemas that have a name, by themselves: whoever uses one gets a reference to it. */
const names = new Map<object, string>([
  ...[service_errors, completions_errors, messages_errors, gemini_errors].map(({ schema, name }): [object, string] => [
    schema,
    name,
  ]),
  [model_schema, 'Model'],
  ...[...Object.entries(bodies), ...Object.entries(webhook_bodies)].flatMap(([name, schema]): [object, string][] =>
    typeof schema === 'object' ? [[schema, pascalCase(name)]] : [],
  ),
]);

function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

const limited_headers: Record<string, string> = {
  'x-ratelimit-limit-requests': 'Requests per minute that this key may make here.',
  'x-ratelimit-remaining-requests': 'Requests that are left right now.',
  'x-ratelimit-reset-requests': 'Time until one more request is possible, such as `1s` or `6m0s`.',
};

/** The components that the document has turned out to need. */
class Components {
  readonly schemas: Record<string, JsonObject> = {};
  readonly headers: Record<string, JsonObject> = {};

  /** `schema` as JSON, with references in place of the schemas that have a name. */
  convert(schema: object): JsonObject {
    const name = names.get(schema);
    if (name === undefined) return this.inline(schema);
    if (!(name in this.schemas)) {
      this.schemas[name] = {}; // first, so that a schema may contain itself
      this.schemas[name] = this.inline(schema);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** The same, written out even if it has a name; only what is in it is referred to. */
  inline(schema: object): JsonObject {
    return Object.fromEntries(
      Object.entries(schema)
        .filter(([, value]) => value !== undefined)
        .map(([key, value]) => [key, this.#member(value)]),
    );
  }

  #member(value: unknown): Json {
    if (Array.isArray(value)) return value.map((item) => this.#member(item));
    return typeof value === 'object' && value !== null ? this.convert(value) : toJson(value);
  }

  responseHeaders(limited: boolean, status: number, own: Record<string, ParameterDocs>): JsonObject {
    const common = {
      'x-request-id': 'Id of this request in the log; quote it when you ask for help.',
      ...(limited && status !== 401 && limited_headers),
      ...(status === 429 && { 'retry-after': 'Seconds to wait.' }),
    };
    const references = Object.entries(common).map(([name, description]) => {
      this.headers[name] = { description, schema: { type: 'string' } };
      return [name, { $ref: `#/components/headers/${name}` }];
    });
    const declared = Object.entries(own).map(([name, { description, schema }]) => [
      name,
      { description, schema: this.convert(schema) },
    ]);
    return Object.fromEntries([...references, ...declared]);
  }
}

function toJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}
