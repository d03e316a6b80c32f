import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { bodyChanges } from './bodies.ts';
import { forms } from './forms.ts';
import { nastyText, words } from './nasty.ts';
import { bodySchema } from './operations.ts';
import { fitting, type SchemaDocument } from './schema-values.ts';
import { isRecord, writeJson } from './text.ts';

/** Things that requests of a campaign may name. Nobody uses a key of the account whose tasks are foreign. */
export type World = {
  document: SchemaDocument;
  /** Keys that work, those of a blocked and of a poor account among them. */
  keys: readonly string[];
  /** Texts that look like keys and open nothing. */
  wrong_keys: readonly string[];
  tasks: readonly string[];
  foreign_tasks: readonly string[];
  models: readonly string[];
  /** Paths with query of files that can be downloaded. */
  links: readonly string[];
  /** Models of chat, whose upstreams speak all styles. */
  chat_models: readonly string[];
  /** All endpoints, those of the dashboard among them. */
  endpoints: readonly { method: string; path: string; body_bytes_max: number; takes_form: boolean }[];
  /** People who have signed in, each with an account and tasks of its own. Sessions end; others take their place. */
  visitors: readonly { cookie: string; account_id: string; tasks: readonly string[] }[];
  /** The address of the dashboard. */
  origin: string;
};

/** A request as it goes over the wire; its framing is right, everything else may be wrong. */
export type HostileRequest = {
  method: string;
  target: string;
  headers: readonly (readonly [string, string])[];
  body: Buffer | undefined;
  chunked: boolean;
};

type Documented = { method: string; path: string; docs: Record<string, unknown>; weight: number };

/** Weights of endpoints: those that change state or read the most deserve the most attempts. */
const weights: Record<string, number> = {
  'post /v1/generate': 8,
  'post /v1/estimate': 4,
  'get /v1/tasks': 5,
  'post /v1/chat/completions': 4,
  'post /v1/messages': 4,
  'get /v1/models/{id}': 2,
};

/** Requests from the reference: valid ones, and valid ones that were changed in up to four places. */
export function hostileRequests(world: World): fc.Arbitrary<HostileRequest> {
  const operations = listOperations(world.document);
  const choices = operations.map((operation) => ({ weight: operation.weight, arbitrary: requestOf(operation, world) }));
  return fc
    .oneof(...choices)
    .chain((request) =>
      fc
        .oneof(
          { weight: 2, arbitrary: fc.constant<Change[]>([]) },
          { weight: 5, arbitrary: fc.array(changes(world), { minLength: 1, maxLength: 1 }) },
          { weight: 3, arbitrary: fc.array(changes(world), { minLength: 2, maxLength: 4 }) },
        )
        .map((list) => list.reduce((changed, change) => change(changed), request)),
    );
}

export function listOperations(document: SchemaDocument): Documented[] {
  const paths = isRecord(document['paths']) ? document['paths'] : {};
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isRecord(item) ? item : {}).map(([method, docs]) => ({
      method: method.toUpperCase(),
      path,
      docs: isRecord(docs) ? docs : {},
      weight: weights[`${method} ${path}`] ?? 1,
    })),
  );
}

function requestOf(operation: Documented, world: World): fc.Arbitrary<HostileRequest> {
  return fc
    .record({
      path: pathOf(operation, world),
      query: queryOf(operation, world),
      body: bodyOf(operation, world),
      key: fc.constantFrom(...world.keys),
      key_header: fc.constantFrom('authorization', 'authorization', 'authorization', 'x-api-key'),
      chunked: fc.boolean(),
    })
    .map(({ path, query, body, key, key_header, chunked }) => ({
      method: operation.method,
      target: path.includes('?') ? path : path + query,
      headers: [
        ['host', '127.0.0.1'],
        [key_header, key_header === 'authorization' ? `Bearer ${key}` : key],
        ...(body === undefined ? [] : [['content-type', body.type] as const]),
      ],
      body: body?.bytes,
      chunked,
    }));
}

function pathOf({ path }: Documented, world: World): fc.Arbitrary<string> {
  if (path.startsWith('/files/')) return fc.constantFrom(...world.links);
  if (!path.includes('{')) return fc.constant(path);
  const ids = path.startsWith('/v1/models/')
    ? fc.constantFrom(...world.models, ...world.models.map(encodeURIComponent))
    : fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...world.tasks) },
        { weight: 2, arbitrary: fc.constantFrom(...world.foreign_tasks) },
      );
  return ids.map((id) => path.replace(/\{\w+\}/, id));
}

function queryOf({ docs }: Documented, world: World): fc.Arbitrary<string> {
  const parameters = Array.isArray(docs['parameters']) ? docs['parameters'] : [];
  const pairs = parameters
    .filter((parameter) => isRecord(parameter) && parameter['in'] === 'query')
    .map((parameter) => fc.option(pairOf(String(parameter.name), parameter, world), { nil: undefined, freq: 4 }));
  return fc.tuple(...pairs).map((drawn_pairs) => {
    const present = drawn_pairs.filter((pair) => pair !== undefined);
    return present.length === 0
      ? ''
      : `?${present.map(([name, value]) => `${escape(name)}=${escape(value)}`).join('&')}`;
  });
}

function pairOf(
  name: string,
  parameter: Record<string, unknown>,
  world: World,
): fc.Arbitrary<readonly [string, string]> {
  // Waiting is tested elsewhere; here it would only take time.
  if (name === 'wait') return fc.constantFrom('0', '1', '2').map((value) => [name, value]);
  if (/^(after|before)(_id)?$/.test(name)) return fc.constantFrom(...world.tasks).map((value) => [name, value]);
  if (name === 'model') return fc.constantFrom(...world.models).map((value) => [name, value]);
  if (name === 'group_by') return fc.constantFrom('day', 'day,model', 'key,modality').map((value) => [name, value]);
  if (parameter['style'] === 'deepObject') {
    return fc
      .tuple(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }))
      .map(([key, value]) => [`${name}[${key}]`, value]);
  }
  return fitting(parameter['schema'], world.document).map((value) => [name, String(value)]);
}

/** Percent-encodes what a lone surrogate would make impossible, too. */
function escape(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

type Body = { type: string; bytes: Buffer };

function bodyOf(operation: Documented, world: World): fc.Arbitrary<Body | undefined> {
  if (JSON.stringify(operation.docs['requestBody'] ?? {}).includes('multipart/form-data')) return forms;
  const json = jsonBodyOf(operation, world);
  return json.map((bytes) => bytes && { type: 'application/json', bytes });
}

function jsonBodyOf({ docs, path }: Documented, world: World): fc.Arbitrary<Buffer | undefined> {
  const schema = bodySchema(docs);
  if (schema === undefined) {
    const optional = docs['requestBody'] === undefined && path.includes('{');
    return optional ? fc.constantFrom(undefined, undefined, Buffer.from('{}')) : fc.constant(undefined);
  }
  return fc
    .tuple(fitting(schema, world.document), bodyChanges)
    .map(([value, list]) => Buffer.from(writeJson(list.reduce((changed, change) => change(changed), value))));
}

type Change = (request: HostileRequest) => HostileRequest;

function changes(world: World): fc.Arbitrary<Change> {
  return fc.oneof(
    { weight: 2, arbitrary: methodChange },
    { weight: 4, arbitrary: pathChange },
    { weight: 4, arbitrary: queryChange },
    { weight: 3, arbitrary: keyChange(world) },
    { weight: 5, arbitrary: headerChange },
    { weight: 2, arbitrary: wholeBodyChange },
  );
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH'];

const methodChange: fc.Arbitrary<Change> = fc
  .constantFrom(...methods)
  .map((method) => (request) => ({ ...request, method }));

const segments = ['', '.', '..', '%2e%2e', '%00', '%2F', '%5C', '%', '%zz', '%ff', '%ed%a0%80', ';a=b', '__proto__'];

const pathChange: fc.Arbitrary<Change> = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...segments, 'v1', 'messages', 'chat', 'cancel', 'x'.repeat(3_000)) },
      { weight: 2, arbitrary: nastyText.map(escape) },
      { weight: 1, arbitrary: fc.constant('\u00ff\u0080') },
    ),
    fc.nat(8),
    fc.constantFrom<'insert' | 'replace' | 'append' | 'absolute' | 'case'>(
      ...(['insert', 'replace', 'append', 'append', 'absolute', 'case'] as const),
    ),
  )
  .map(([text, position, kind]) => (request) => {
    const [path = '', ...query] = request.target.split('?');
    const changed = changedPath(path, text, position, kind);
    return { ...request, target: [changed, ...query].join('?') };
  });

function changedPath(path: string, text: string, position: number, kind: string): string {
  const parts = path.split('/');
  switch (kind) {
    case 'insert':
      return parts.toSpliced(1 + (position % parts.length), 0, text).join('/');
    case 'replace':
      return parts.toSpliced(1 + (position % Math.max(1, parts.length - 1)), 1, text).join('/');
    case 'append':
      return path + text;
    case 'absolute':
      return `http://somewhere.example${path}`;
    default:
      return path.toUpperCase();
  }
}

const query_texts = ['=', '&&', 'a', 'a=b', '%=1', 'limit=%ff', '__proto__[x]=1', 'metadata[]=1', 'metadata[a][b]=1'];

const queryChange: fc.Arbitrary<Change> = fc
  .oneof(
    { weight: 3, arbitrary: fc.constantFrom(...query_texts, 'limit=-1', 'limit=1e3', 'wait=-1', 'wait=1.5', 'wait=') },
    { weight: 2, arbitrary: fc.tuple(nastyText, nastyText).map(([name, value]) => `${escape(name)}=${escape(value)}`) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom('limit', 'after', 'status', 'model', 'from', 'to', 'group_by', 'exp', 'sig'), nastyText)
        .map(([name, value]) => `${name}=${escape(value)}`),
    },
    { weight: 1, arbitrary: fc.constant('a&'.repeat(900)) },
  )
  .map((text) => (request) => ({
    ...request,
    target: `${request.target}${request.target.includes('?') ? '&' : '?'}${text}`,
  }));

const without = (request: HostileRequest, ...names: string[]) =>
  request.headers.filter(([name]) => !names.includes(name.toLowerCase()));

function keyChange(world: World): fc.Arbitrary<Change> {
  const wrong = fc.oneof(fc.constantFrom(...world.wrong_keys), nastyText.map(headerText));
  return fc
    .tuple(fc.constantFrom('none', 'bearer', 'raw', 'x-api-key', 'twice', 'basic'), wrong)
    .map(([kind, text]): Change => (request) => {
      const others = without(request, 'authorization', 'x-api-key');
      const bearer = ['authorization', `Bearer ${text}`] as const;
      switch (kind) {
        case 'none':
          return { ...request, headers: others };
        case 'raw':
          return { ...request, headers: [...others, ['Authorization', text]] };
        case 'x-api-key':
          return { ...request, headers: [...others, ['X-Api-Key', text]] };
        case 'twice':
          return { ...request, headers: [...others, bearer, ['authorization', `Bearer ${world.wrong_keys[0]}`]] };
        case 'basic':
          return {
            ...request,
            headers: [...others, ['authorization', `Basic ${Buffer.from(text).toString('base64')}`]],
          };
        default:
          return { ...request, headers: [...others, bearer] };
      }
    });
}

/** A header may hold any byte but CR and LF, which would end it and with it the framing. */
function headerText(text: string): string {
  return Buffer.from(text.slice(0, 2_000))
    .toString('latin1')
    .replaceAll(/[\r\n]/g, ' ');
}

const content_types = `application/json; charset=utf-8|APPLICATION/JSON| application/json|application/json\t|text/plain|
application/json;charset=utf-16|application/json; charset=latin1|application/jsonx|text/json||application/json, text/plain|
application/json; x="; charset=latin1"|multipart/form-data; boundary=a|application/x-www-form-urlencoded|application/\u00ff|
multipart/form-data; boundary=${'b'.repeat(5_000)}`.split(/\|\n?/);

const header_names = [
  ...words('x-client-request-id idempotency-key range if-none-match if-match if-range origin cookie accept'),
  ...words('accept-version x-forwarded-for x-forwarded-host forwarded x-http-method-override te x-request-id via'),
  ...words('anthropic-version anthropic-beta __proto__ constructor upgrade prefer'),
];

const headerChange: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom(...header_names), nastyText).map(([name, text]): Change => (request) => ({
      ...request,
      headers: [...request.headers, [name, headerText(text)]],
    })),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...content_types).map((type): Change => (request) => ({
      ...request,
      headers: [...without(request, 'content-type'), ['Content-Type', type]],
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom<readonly (readonly [string, string])[]>(
        [['content-encoding', 'gzip']],
        [['content-encoding', 'identity']],
        [['content-encoding', 'GZIP, br']],
        [['expect', '100-continue']],
        [['expect', 'the unexpected']],
        [['connection', 'close']],
        [['connection', 'upgrade']],
        [['range', 'bytes=0-0']],
        [['host', '169.254.169.254']],
        [['host', 'a@b:c']],
        Array.from({ length: 1_200 }, (_, index) => [`x-${index}`, ''] as const),
        [['x-long', 'x'.repeat(30_000)]],
      )
      .map((more): Change => (request) => ({ ...request, headers: [...request.headers, ...more] })),
  },
  {
    weight: 1,
    arbitrary: fc.constant<Change>((request) => ({ ...request, headers: without(request, 'host') })),
  },
);

const wholeBodyChange: fc.Arbitrary<Change> = fc
  .constantFrom('none', 'truncated', 'mark', 'utf16', 'gzip', 'garbage', 'broken', 'spaces', 'large', 'twice')
  .map((kind) => (request) => {
    const body = changedBody(request.body ?? Buffer.from('{"model":"sandbox/image","input":{}}'), kind);
    return { ...request, body };
  });

/** Above the limit of the small endpoints; the large limits are tested by hand, each body taking 20 MB. */
const large_body = Buffer.alloc(1_000_001, 0x20);

function changedBody(body: Buffer, kind: string): Buffer | undefined {
  switch (kind) {
    case 'none':
      return undefined;
    case 'truncated':
      return body.subarray(0, Math.floor(body.length / 2));
    case 'mark':
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body]);
    case 'utf16':
      return Buffer.from(body.toString(), 'utf16le');
    case 'gzip':
      return gzipSync(body);
    case 'garbage':
      return Buffer.concat([body, Buffer.from('}garbage')]);
    case 'broken':
      return Buffer.concat([body.subarray(0, 5), Buffer.from([0xff, 0xc0, 0x80]), body.subarray(5)]);
    case 'spaces':
      return Buffer.from('   \n');
    case 'large':
      return large_body;
    default:
      return Buffer.concat([body, body]);
  }
}

/** The bytes of a request. */
export function wireBytes(request: HostileRequest): Buffer {
  const { method, target, headers, body, chunked } = request;
  const framing =
    body === undefined ? [] : chunked ? ['transfer-encoding: chunked'] : [`content-length: ${body.length}`];
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), ...framing];
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (body === undefined) return head;
  if (!chunked) return Buffer.concat([head, body]);
  const chunks = body.length === 0 ? [] : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')];
  return Buffer.concat([head, ...chunks, Buffer.from('0\r\n\r\n')]);
}
