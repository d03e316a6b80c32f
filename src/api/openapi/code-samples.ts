import { isObject, type JsonObject } from '../../catalog/model.ts';
import type { Endpoint, EndpointDocs } from '../../http/endpoint.ts';
import { renderCurl, renderPython, renderTypeScript, type SampleBody, type SampleRequest } from './sample-languages.ts';

/** Value of `x-codeSamples` of an operation: the request of its own example in curl, TypeScript and Python. */
export function codeSamples<App>(endpoint: Endpoint<App>, base_url: string): JsonObject[] {
  const request = sampleOf(endpoint, base_url);
  return [
    { lang: 'Shell', label: 'curl', source: renderCurl(request) },
    { lang: 'TypeScript', label: 'TypeScript', source: renderTypeScript(request) },
    { lang: 'Python', label: 'Python', source: renderPython(request) },
  ];
}

/** Returns the request that the examples of an endpoint make. */
export function sampleOf<App>(endpoint: Endpoint<App>, base_url: string): SampleRequest {
  const { docs, method } = endpoint;
  const headers = Object.entries(docs.headers ?? {}).flatMap(([name, { example }]): [string, string][] =>
    example === undefined ? [] : [[name, String(example)]],
  );
  return {
    method,
    url: base_url.replace(/\/+$/, '') + pathOf(endpoint) + queryOf(docs),
    has_key: endpoint.public !== true,
    headers: [...(docs.accept === undefined ? [] : [['accept', docs.accept] as const]), ...headers],
    body: (docs.body && bodyOf(docs.body)) ?? (endpoint.stream && { kind: 'bytes', file: 'file.pdf' }),
    answer: answerOf(docs),
  };
}

/** Parameters without an example of their own become a name in capitals, such as TASK_ID. */
function pathOf<App>({ path, docs }: Endpoint<App>): string {
  const parts = path.split('/');
  return parts
    .map((part, index) => {
      const name = /^\{\+?(\w+)\}$/.exec(part)?.[1];
      if (name === undefined) return part;
      const example = docs.params?.[name]?.example;
      return typeof example === 'string' ? example : placeholder(name, parts[index - 1] ?? '');
    })
    .join('/');
}

function placeholder(name: string, collection: string): string {
  const owner = collection.replace(/(?<=ch)es$|s$/, '');
  return (name === 'id' && /^[a-z]+$/.test(owner) ? `${owner}_id` : name).toUpperCase();
}

function queryOf({ query }: EndpointDocs): string {
  const shown = Object.entries(query ?? {}).filter(([, each]) => each.required || each.example !== undefined);
  const words = shown.map(([name, { example }]) => `${name}=${example === undefined ? name.toUpperCase() : example}`);
  return words.length === 0 ? '' : `?${words.join('&')}`;
}

function bodyOf(body: NonNullable<EndpointDocs['body']>): SampleBody | undefined {
  const [example] = Object.values(body.examples ?? {});
  const fields = Object.entries(isObject(example) ? example : {});
  if (body.content_type === 'application/x-www-form-urlencoded')
    return { kind: 'fields', fields: fields.map(([name, value]) => [name, String(value)]) };
  if (body.content_type !== 'multipart/form-data')
    return example === undefined ? undefined : { kind: 'json', value: example };
  return {
    kind: 'form',
    fields: fields.map(([name, value]) => [name, isFileField(body.schema, name) ? { file: `${value}` } : `${value}`]),
  };
}

/** Tells whether a field of a form is a file; its example is the name of one. */
function isFileField(schema: object, name: string): boolean {
  const properties = 'properties' in schema && isObject(schema.properties) ? schema.properties : {};
  const field = properties[name];
  return isObject(field) && field['format'] === 'binary';
}

function answerOf({ responses }: EndpointDocs): SampleRequest['answer'] {
  const success = Object.entries(responses).find(([status]) => Number(status) < 300);
  if (success === undefined || Number(success[0]) === 204) return 'nothing';
  const { content_type, schema } = success[1];
  if (content_type === undefined || schema !== undefined) return 'json';
  if (content_type.startsWith('text/')) return 'text';
  return { file: content_type === 'video/mp4' ? 'output.mp4' : 'output' };
}
