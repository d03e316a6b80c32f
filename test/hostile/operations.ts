import fc from 'fast-check';
import type { HostileRequest, World } from './requests.ts';
import { isRecord } from './text.ts';
import type { SchemaDocument } from './schema-values.ts';

/** A path of the service with its method, as heavy requests are made for it. */
export type Operation = {
  method: string;
  path: string;
  /** The operation in the reference; empty if it is left out there. */
  docs: Record<string, unknown>;
  /** Of the JSON body, as far as the reference has one. */
  schema: unknown;
  body_bytes_max: number;
  takes_form: boolean;
  /** A request with this body, and with the credentials of somebody: right ones, wrong ones, none. */
  send(body: string | undefined, type?: string): fc.Arbitrary<HostileRequest>;
};

/** Every endpoint of the service, in the reference or not. */
export function operationsOf(world: World): Operation[] {
  return world.endpoints.map(({ method, path, body_bytes_max, takes_form }) => {
    const docs = docsOf(world.document, method, path);
    return {
      method,
      path,
      docs,
      schema: bodySchema(docs),
      body_bytes_max,
      takes_form,
      send: (body, type = 'application/json') => {
        return fc
          .tuple(targetOf(path, world), credentialsOf(path, world), fc.boolean())
          .map(([target, credentials, chunked]) => ({
            method,
            target,
            headers: [
              ['host', '127.0.0.1'],
              ...credentials,
              ...(body === undefined ? [] : [['content-type', type] as const]),
            ],
            body: body === undefined ? undefined : Buffer.from(body),
            chunked,
          }));
      },
    };
  });
}

function docsOf(document: SchemaDocument, method: string, path: string): Record<string, unknown> {
  const paths = isRecord(document['paths']) ? document['paths'] : {};
  const item = paths[path.replace('{+', '{')];
  const docs = isRecord(item) ? item[method.toLowerCase()] : undefined;
  return isRecord(docs) ? docs : {};
}

/** The schema of an operation's JSON body; undefined if it has none. */
export function bodySchema(docs: Record<string, unknown>): unknown {
  const { requestBody } = docs;
  const content = isRecord(requestBody) ? requestBody['content'] : undefined;
  const json = isRecord(content) ? content['application/json'] : undefined;
  const schema = isRecord(json) ? json['schema'] : undefined;
  const each = isRecord(schema) ? schema['oneOf'] : undefined;
  // A film in full size takes the sandbox longer than a thousand requests.
  return Array.isArray(each) ? { oneOf: each.filter((one) => !JSON.stringify(one).includes('video')) } : schema;
}

const login_paths = `sign-in/email sign-in/link set-up join email confirm-email change-password request-password-reset
 reset-password update-user two-factor/enable two-factor/disable two-factor/verify-totp two-factor/verify-backup-code
 two-factor/generate-backup-codes issuer/start issuer/link issuer/callback/google nothing`.split(/\s+/);

function targetOf(path: string, world: World): fc.Arbitrary<string> {
  const [, area = ''] = path.split('/');
  const ids = (name: string): fc.Arbitrary<string> => {
    if (name === 'account') return fc.constantFrom(...world.visitors.map(({ account_id }) => account_id));
    if (area === 'auth') return fc.constantFrom(...login_paths);
    if (path.startsWith('/v1/models/') || path.includes('/models/')) return fc.constantFrom(...world.models);
    if (area === 'files') return fc.constantFrom(...world.links.map((link) => link.replace('/files/', '')));
    if (name === 'index') return fc.constantFrom('0', '9'.repeat(300));
    const own = area === 'dash' ? world.visitors.flatMap(({ tasks }) => tasks) : world.tasks;
    return fc.oneof(fc.constantFrom(...own), fc.constantFrom('x', '%25'.repeat(500), 'task_'.repeat(300)));
  };
  const parts = path.split(/\{\+?(\w+)\}/); // texts and names in turn
  return fc
    .tuple(...parts.map((part, index) => (index % 2 === 0 ? fc.constant(part) : ids(part))))
    .map((all) => all.join(''));
}

type Headers = readonly (readonly [string, string])[];

function credentialsOf(path: string, world: World): fc.Arbitrary<Headers> {
  // Most by those who have money: who has none is refused before much is done.
  const keys = [...world.keys.slice(0, 2), ...world.keys.slice(0, 2), ...world.keys.slice(0, 2), ...world.keys];
  const key = fc.constantFrom(...keys).map((text): Headers => [['authorization', `Bearer ${text}`]]);
  const wrong_key = fc.constantFrom(...world.wrong_keys).map((text): Headers => [['x-api-key', text]]);
  const session = fc
    .constantFrom(...world.visitors)
    .map(({ cookie }): Headers => [['cookie', cookie], ...same_origin(world)]);
  const none = fc.constantFrom<Headers>([], same_origin(world), [['stripe-signature', 't=1,v1=aa']]);
  if (path.startsWith('/v1/')) {
    return fc.oneof(
      { weight: 12, arbitrary: key },
      { weight: 2, arbitrary: wrong_key },
      { weight: 2, arbitrary: none },
      { weight: 1, arbitrary: session },
    );
  }
  return fc.oneof({ weight: 12, arbitrary: session }, { weight: 4, arbitrary: none }, { weight: 1, arbitrary: key });
}

function same_origin({ origin }: World): Headers {
  return [['origin', origin]];
}
