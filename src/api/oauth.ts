import { audit } from '../accounts/audit.ts';
import type { Authenticator } from '../accounts/authenticate.ts';
import { beginDeviceLogin, interval_s, lifetime_ms, pollDeviceLogin } from '../accounts/sign-in/device-logins.ts';
import { KeyRuleError } from '../accounts/key-rule-error.ts';
import { readScopes, scopes as all_scopes, type Scope } from '../accounts/key-rules.ts';
import { revokeKey } from '../accounts/keys.ts';
import { tellKeyChange } from '../app/channels.ts';
import type { Db } from '../db/database.ts';
import type { Notifier } from '../db/notify.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Endpoint, EndpointDocs, PublicCall } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { readBytes } from '../lib/read-bytes.ts';

/** The device authorization grant (RFC 8628), by which a program gets a key from a person who has signed in. */

/** The parts of the app that these endpoints take. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly secret: string;
  readonly authenticator: Pick<Authenticator, 'invalidate'>;
  readonly notifier: Notifier;
  base_url(): string;
};

const form_bytes_max = 8_000;
const text_length_max = 100;
const device_grant = 'urn:ietf:params:oauth:grant-type:device_code';

const text = (description: string) => ({ type: 'string', maxLength: text_length_max, description }) as const;

const error_schema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: { type: 'string', description: 'The code of RFC 6749 or RFC 8628.' },
    error_description: { type: 'string', description: 'For people; may change.' },
  },
} as const;

/** The fields of a form, and one that is sent. */
type Fields = { properties: object; required: string[]; example: Record<string, string> };

/** Bodies are forms, as OAuth has them; there are no cookies and no keys. */
function oauthEndpoint(
  path: `/oauth/${string}`,
  per_minute_per_address: number,
  docs: Pick<EndpointDocs, 'summary' | 'description' | 'responses'> & Fields,
  handle: (app: Parts, call: PublicCall, form: URLSearchParams) => Promise<Answer>,
): Endpoint<Parts> {
  const { properties, required, example, ...others } = docs;
  const content_type = 'application/x-www-form-urlencoded';
  return {
    method: 'POST',
    path,
    public: true,
    per_minute_per_address,
    stream: true,
    docs: {
      tag: 'Sign in of programs',
      errors: [413, 415, 429, 500],
      ...others,
      body: { content_type, schema: { type: 'object', required, properties }, examples: { form: example } },
    },
    handle: async (app, call) => {
      const answer = await handle(app, call, await readForm(call));
      return { ...answer, headers: { 'cache-control': 'no-store', ...answer.headers } };
    },
  };
}

async function readForm({ readStream, headers }: PublicCall): Promise<URLSearchParams> {
  const type = headers['content-type'] ?? '';
  if (!readStream || !/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    const message = 'Send the body as "content-type: application/x-www-form-urlencoded".';
    throw new ApiError('unsupported_media_type', message);
  }
  const tooLarge = () => new ApiError('too_large', 'The body is larger than 8 kB.');
  const bytes = await readStream({ bytes_max: form_bytes_max, tooLarge }, (stream) =>
    readBytes(stream, form_bytes_max),
  );
  return new URLSearchParams(bytes.toString());
}

/** A refusal in the form of RFC 6749, 5.2. */
function refusal(error: string, error_description: string, status = 400, headers: Record<string, string> = {}): Answer {
  return { status, body: { error, error_description }, headers };
}

/** Returns a name that a page can show; undefined if it is none. */
function nameIn(form: URLSearchParams, field: string): string | undefined {
  const value = form.get(field)?.trim() ?? '';
  return value !== '' && value.length <= text_length_max && !/[\p{Cc}\p{Cf}\p{Cs}]/u.test(value) ? value : undefined;
}

const begin = oauthEndpoint(
  '/oauth/device_authorization',
  30,
  {
    summary: 'Ask for a key by a code',
    description:
      'Begins the device authorization grant (RFC 8628). Show `user_code` and `verification_uri` to the person, then poll POST /oauth/token with `device_code`, at most every `interval` seconds. No key is needed.',
    required: ['client_id'],
    example: { client_id: 'my-program', device_name: 'laptop' },
    properties: {
      client_id: text('What the program calls itself.'),
      scope: text(`Some of ${all_scopes.join(', ')}, with spaces between them. All unless sent.`),
      device_name: text('What the machine is called: the person sees it.'),
    },
    responses: {
      200: {
        description: 'The codes.',
        schema: {
          type: 'object',
          required: [
            'device_code',
            'user_code',
            'verification_uri',
            'verification_uri_complete',
            'expires_in',
            'interval',
          ],
          properties: {
            device_code: { type: 'string' },
            user_code: { type: 'string', examples: ['WDJB-MJHT'] },
            verification_uri: { type: 'string', format: 'uri' },
            verification_uri_complete: { type: 'string', format: 'uri' },
            expires_in: { type: 'integer', description: 'Seconds.' },
            interval: { type: 'integer', description: 'Seconds.' },
          },
        },
      },
      400: { description: 'A field is missing or wrong.', schema: error_schema },
      503: { description: 'Too many programs wait.', schema: error_schema },
    },
  },
  async (app, { address }, form) => {
    const client = nameIn(form, 'client_id');
    if (client === undefined)
      return refusal('invalid_request', `client_id must have 1 to ${text_length_max} characters.`);
    const device = form.get('device_name') === null ? 'an unnamed machine' : nameIn(form, 'device_name');
    if (device === undefined)
      return refusal('invalid_request', `device_name must have 1 to ${text_length_max} characters.`);
    const scopes = scopesIn(form);
    if (scopes === undefined) return refusal('invalid_scope', `scope must be some of ${all_scopes.join(', ')}.`);
    const codes = await beginDeviceLogin(app, { client, device, scopes, address }, new Date(app.clock.now()));
    if (!codes) {
      const message = 'Too many programs wait for their key. Try again in a few minutes.';
      return refusal('temporarily_unavailable', message, 503, { 'retry-after': '120' });
    }
    const verification_uri = `${app.base_url()}/device`;
    const { device_code, user_code } = codes;
    return {
      status: 200,
      body: {
        device_code,
        user_code,
        verification_uri,
        verification_uri_complete: `${verification_uri}?code=${user_code}`,
        expires_in: lifetime_ms / 1000,
        interval: interval_s,
      },
    };
  },
);

function scopesIn(form: URLSearchParams): readonly Scope[] | null | undefined {
  const words = (form.get('scope') ?? '').split(' ').filter((word) => word !== '');
  if (words.length === 0) return null;
  try {
    return readScopes(words);
  } catch (error) {
    if (error instanceof KeyRuleError) return undefined;
    throw error;
  }
}

const sentences = {
  authorization_pending: 'Nobody has decided yet. Ask again after the interval.',
  slow_down: 'Ask less often: the interval is 5 seconds longer now.',
  access_denied: 'The person refused.',
  expired_token: 'The code has expired. Begin again.',
  invalid_grant: 'There is no such code, or it has been used. Begin again.',
} as const;

const poll = oauthEndpoint(
  '/oauth/token',
  300,
  {
    summary: 'Get the key for a code',
    description:
      'Answers 400 with `authorization_pending`, `slow_down`, `access_denied`, `expired_token` or `invalid_grant` (RFC 8628, 3.5) until the person has given a key. A code gives one key, once.',
    required: ['grant_type', 'device_code', 'client_id'],
    example: { grant_type: device_grant, device_code: 'DEVICE_CODE', client_id: 'my-program' },
    properties: {
      grant_type: { const: device_grant },
      device_code: text('From POST /oauth/device_authorization.'),
      client_id: text('As in that request.'),
    },
    responses: {
      200: {
        description: 'The key.',
        schema: {
          type: 'object',
          required: ['access_token', 'token_type', 'scope', 'account', 'key'],
          properties: {
            access_token: { type: 'string', description: 'An API key.' },
            token_type: { const: 'Bearer' },
            scope: { type: 'string' },
            expires_in: { type: 'integer', description: 'Seconds; absent if the key does not expire.' },
            account: { type: 'object', properties: { id: { type: 'string' }, name: { type: 'string' } } },
            key: { type: 'object', properties: { id: { type: 'string' }, name: { type: 'string' } } },
          },
        },
      },
      400: { description: 'There is no key yet, or there will be none.', schema: error_schema },
    },
  },
  async (app, _call, form) => {
    if (form.get('grant_type') !== device_grant)
      return refusal('unsupported_grant_type', `grant_type must be ${device_grant}.`);
    const [device_code, client] = [form.get('device_code') ?? '', nameIn(form, 'client_id')];
    if (device_code === '' || client === undefined)
      return refusal('invalid_request', 'device_code and client_id must be sent.');
    const now = new Date(app.clock.now());
    const polled = await pollDeviceLogin(app.db, { device_code, client }, now);
    if (polled.error !== undefined) return refusal(polled.error, sentences[polled.error]);
    const { key, account_name, text: access_token } = polled;
    const body = {
      access_token,
      token_type: 'Bearer',
      scope: (key.scopes ?? all_scopes).join(' '),
      ...(key.expires_at && { expires_in: Math.floor((key.expires_at.getTime() - now.getTime()) / 1000) }),
      account: { id: key.account_id, name: account_name },
      key: { id: key.id, name: key.name },
    };
    return { status: 200, body };
  },
);

const revoke = oauthEndpoint(
  '/oauth/revoke',
  60,
  {
    summary: 'Delete the key that is sent',
    description: 'RFC 7009: whoever holds a key may end it. Answers 200 for what is no key, too.',
    required: ['token'],
    example: { token: 'mdl_…' },
    properties: { token: text('The API key.') },
    responses: {
      200: { description: 'The key opens nothing any more.' },
      400: { description: 'The token is missing.', schema: error_schema },
    },
  },
  async (app, { address }, form) => {
    const token = form.get('token') ?? '';
    if (token === '') return refusal('invalid_request', 'token must be sent.');
    const now = new Date(app.clock.now());
    const key = await revokeKey(app.db, token, now);
    if (key) {
      const { account_id, id: subject, name } = key;
      await audit(app.db, {
        account_id,
        by: 'holder of the key',
        action: 'key.delete',
        subject,
        details: { name },
        address,
        now,
      });
      tellKeyChange(app);
    }
    return { status: 200, body: {} };
  },
);

export const oauth_endpoints: readonly Endpoint<Parts>[] = [begin, poll, revoke];
