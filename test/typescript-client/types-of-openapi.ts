/** A JSON Schema of openapi.json, as far as it is used there. */
export type Schema = {
  $ref?: string;
  type?: string | string[];
  format?: string;
  const?: string;
  enum?: string[];
  anyOf?: Schema[];
  items?: Schema;
  required?: string[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  description?: string;
};

export type Operation = {
  parameters?: { name: string; in: string; description?: string; schema: Schema }[];
  requestBody?: { content: { 'application/json'?: { schema: Schema } } };
};

export type OpenApi = {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema> };
};

/** Answers that the clients return, and webhooks that they verify. */
export const answers = [
  'Task',
  'OutputItem',
  'Cost',
  'TaskError',
  'Estimate',
  'Links',
  'Model',
  'Balance',
  'KeyUse',
  'Transaction',
  'Usage',
  'Refusals',
  'Key',
  'UploadedFile',
  'Call',
  'Feedback',
  'SubscribedEvent',
  'WebhookEventType',
  'WebhookFilters',
  'WebhookEndpoint',
  'NewWebhookEndpoint',
  'WebhookTest',
  'WebhookReplay',
  'TaskEvent',
  'BalanceLowEvent',
  'BalanceToppedUpEvent',
  'BudgetEvent',
  'InvoiceCreatedEvent',
  'ModelRetiringEvent',
  'EventEnvelope',
];

/** Bodies of requests, beside that of POST /v1/generate. */
const bodies = ['WebhookEndpointFields', 'WebhookEndpointChange', 'WebhookReplayRequest'];

/** Lists and their parameters. */
const queries = {
  ListTasksQuery: '/v1/tasks',
  ListModelsQuery: '/v1/models',
  ListTransactionsQuery: '/v1/balance/transactions',
  UsageQuery: '/v1/usage',
  RefusalsQuery: '/v1/usage/refusals',
  ListFilesQuery: '/v1/files',
  ListCallsQuery: '/v1/calls',
  ListFeedbackQuery: '/v1/feedback',
  ListWebhookEndpointsQuery: '/v1/webhook_endpoints',
};

/** Returns the text of clients/typescript/src/types.ts. */
export function typesOf(openapi: OpenApi): string {
  const { paths } = openapi;
  const of = (name: string) => schemaOf(openapi, name);
  return [
    '// Written from openapi.json by test/typescript-client/types.unit.test.ts: run it with --update after a change.\n',
    ...[...answers, ...bodies].map(
      (name) => `${comment(of(name), '')}export type ${name} = ${typeOf(of(name), '')};\n`,
    ),
    requestType(of('Generate_sandbox_image')),
    chatRequestType(paths['/v1/chat/completions']?.['post']),
    ...Object.entries(queries).map(([name, path]) => queryType(name, paths[path]?.['get'])),
  ].join('\n');
}

export function schemaOf(openapi: OpenApi, name: string): Schema {
  const schema = name === 'EventEnvelope' ? anyEvent(openapi) : openapi.components.schemas[name];
  if (!schema) throw new Error(`openapi.json has no ${name}`);
  return schema;
}

/** The body of any webhook to an endpoint, which has no name in openapi.json. */
function anyEvent({ webhooks }: OpenApi): Schema {
  const refs = Object.values(webhooks).flatMap(
    ({ post }) => post.requestBody?.content['application/json']?.schema.$ref ?? [],
  );
  const description = 'The body of a webhook to an endpoint; `type` decides about its `data`.';
  return { description, anyOf: [...new Set(refs)].map(($ref) => ({ $ref })) };
}

/** Returns the type of the body of POST /v1/generate; the model decides about `input`. */
function requestType(schema: Schema): string {
  const input: Schema = { type: 'object', description: 'Fields of the model: its `input_schema`.' };
  const properties = { ...schema.properties, model: { type: 'string' }, input };
  return `export type GenerateRequest = ${typeOf({ ...schema, properties }, '')};\n`;
}

/** Returns the type of the body of POST /v1/chat/completions, without what the client says better or by itself. */
function chatRequestType(operation: Operation | undefined): string {
  const { properties = {}, ...schema } = operation?.requestBody?.content['application/json']?.schema ?? {};
  const { messages, stream, ...others } = properties;
  if (!messages || !stream) throw new Error('openapi.json has no body of chat');
  return `export type ChatCompletionsRequest = ${typeOf({ ...schema, properties: others }, '')};\n`;
}

function queryType(name: string, operation: Operation | undefined): string {
  const parameters = operation?.parameters?.filter((each) => each.in === 'query') ?? [];
  if (parameters.length === 0) throw new Error(`openapi.json has no parameters for ${name}`);
  const lines = parameters.map(({ name: key, description, schema }) => {
    const type = schema.type === 'object' ? 'Record<string, string>' : typeOf(schema, '  ');
    return `${comment({ description }, '  ')}  ${key}?: ${schema.format === 'date-time' ? `${type} | Date` : type} | undefined;`;
  });
  return `export type ${name} = {\n${lines.join('\n')}\n};\n`;
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? '';
  if (schema.const !== undefined) return quote(schema.const);
  if (schema.enum) return schema.enum.map(quote).join(' | ');
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return arrayOf(typeOf(schema.items ?? {}, indent));
    case 'object':
      return objectType(schema, indent);
    default:
      return 'unknown';
  }
}

function arrayOf(item: string): string {
  return /^\w+$/.test(item) ? `${item}[]` : `Array<${item}>`;
}

function objectType({ properties = {}, patternProperties, required = [] }: Schema, indent: string): string {
  const values = Object.values(patternProperties ?? {});
  if (values[0]) return `Record<string, ${typeOf(values[0], indent)}>`;
  const entries = Object.entries(properties);
  if (entries.length === 0) return 'Record<string, unknown>';
  const lines = entries.map(([key, schema]) => {
    const mark = required.includes(key) ? '' : '?';
    return `${comment(schema, `${indent}  `)}${indent}  ${key}${mark}: ${typeOf(schema, `${indent}  `)};`;
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

function comment(schema: { description?: string | undefined; anyOf?: Schema[] }, indent: string): string {
  const text = schema.description ?? schema.anyOf?.[0]?.description;
  return text === undefined ? '' : `${indent}/** ${text} */\n`;
}

function quote(text: string): string {
  return `'${text}'`;
}
