import { expect, it } from 'vitest';
import { KeyRuleError } from '../../src/accounts/key-rule-error.ts';
import { readAddresses, readExpiry, readRequestsPerMinute, readScopes } from '../../src/accounts/key-rules.ts';
import { scopesOf } from '../../src/http/scopes.ts';
import { listEndpoints } from '../../src/server.ts';

const now = new Date('2026-11-15T12:00:00Z');

it.each<[unknown, string | null]>([
  [null, null],
  ['90d', '2027-02-13T12:00:00.000Z'],
  ['2027-01-31', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T10:00:00+02:00', '2027-01-31T08:00:00.000Z'],
])('an expiry of %j is read as %j', (value, at) => {
  expect(readExpiry(value, now)?.toISOString() ?? null).toBe(at);
});

it.each(['', '0s', '2026-11-15T11:59:59Z', 'tomorrow', '2027-13-01', '9999-01-01', '1e9', 5, {}, '90d '.repeat(9)])(
  'an expiry of %j is refused',
  (value) => {
    expect(() => readExpiry(value, now)).toThrow(KeyRuleError);
  },
);

it('scopes are some of three words, and all of them are no rule', () => {
  expect(readScopes(['read', 'chat', 'chat'])).toEqual(['chat', 'read']);
  expect(readScopes(['read', 'chat', 'media'])).toBeNull();
  expect(readScopes(null)).toBeNull();
  for (const wrong of [[], 'chat', ['admin'], ['chat', 7], {}]) expect(() => readScopes(wrong)).toThrow(KeyRuleError);
});

it('address rules are addresses or ranges, and an empty list is no rule', () => {
  expect(readAddresses(['203.0.113.7', ' 10.0.0.0/8 ', '2001:db8::/32', '2001:db8::1', '203.0.113.7'])).toEqual([
    '203.0.113.7/32',
    '10.0.0.0/8',
    '2001:db8::/32',
    '2001:db8::1/128',
  ]);
  expect(readAddresses([])).toBeNull();
  for (const wrong of [
    '10.0.0.1',
    ['10.0.0.0/33'],
    ['example.com'],
    ['fe80::1%eth0'],
    [1],
    Array.from({ length: 51 }, () => '10.0.0.1'),
  ])
    expect(() => readAddresses(wrong)).toThrow(KeyRuleError);
});

it('requests per minute are a whole number above zero, and null is no limit', () => {
  expect([1, 60, 1_000_000, null].map(readRequestsPerMinute)).toEqual([1, 60, 1_000_000, null]);
  for (const wrong of [0, -1, 1.5, 1_000_001, '60', Number.NaN, [], undefined])
    expect(() => readRequestsPerMinute(wrong)).toThrow(KeyRuleError);
});

/** The endpoints that a key with these scopes may call; any key those of `any`, and one without scopes those of `none`. */
const endpoints_of_scopes = {
  none: [
    'DELETE /v1/webhook_endpoints/{id}',
    'PATCH /v1/webhook_endpoints/{id}',
    'POST /v1/webhook_endpoints',
    'POST /v1/webhook_endpoints/{id}/replay',
    'POST /v1/webhook_endpoints/{id}/rotate_secret',
    'POST /v1/webhook_endpoints/{id}/test',
  ],
  any: [
    'GET /v1/key',
    'GET /v1/models',
    'GET /v1/models/{+id}',
    'GET /v1beta/models',
    'GET /v1beta/models/{+name}',
    'POST /mcp',
  ],
  chat: [
    'DELETE /v1/conversations/{id}',
    'DELETE /v1/conversations/{id}/items/{item_id}',
    'DELETE /v1/responses/{id}',
    'GET /v1/chat/completions',
    'GET /v1/conversations/{id}',
    'GET /v1/conversations/{id}/items',
    'GET /v1/conversations/{id}/items/{item_id}',
    'GET /v1/responses/{id}',
    'GET /v1/responses/{id}/input_items',
    'POST /v1/batches',
    'POST /v1/batches/{id}/cancel',
    'POST /v1/chat/completions',
    'POST /v1/completions',
    'POST /v1/conversations',
    'POST /v1/conversations/{id}',
    'POST /v1/conversations/{id}/items',
    'POST /v1/embeddings',
    'POST /v1/messages',
    'POST /v1/messages/count_tokens',
    'POST /v1/models/{+name}',
    'POST /v1/moderations',
    'POST /v1/rerank',
    'POST /v1/responses',
    'POST /v1/responses/compact',
    'POST /v1/responses/input_tokens',
    'POST /v1/responses/{id}/cancel',
    'POST /v1beta/models/{+name}',
    'POST /v2/rerank',
  ],
  'chat read': [
    'DELETE /v1/chat/{request_id}/content',
    'GET /v1/batches',
    'GET /v1/batches/{id}',
    'GET /v1/chat/contents',
    'GET /v1/chat/{request_id}',
    'GET /v1/chat/{request_id}/content',
  ],
  'chat media': ['DELETE /v1/feedback/{id}', 'POST /v1/feedback'],
  'chat media read': ['GET /v1/feedback'],
  media: [
    'DELETE /v1/files/{id}',
    'DELETE /v1/tasks/{id}/output',
    'DELETE /v1/videos/{id}',
    'DELETE /v1beta/files/{name}',
    'POST /upload/v1/files',
    'POST /upload/v1beta/files',
    'POST /v1/audio/speech',
    'POST /v1/audio/transcriptions',
    'POST /v1/audio/translations',
    'POST /v1/estimate',
    'POST /v1/files',
    'POST /v1/generate',
    'POST /v1/images/edits',
    'POST /v1/images/generations',
    'POST /v1/images/variations',
    'POST /v1/tasks/{id}/cancel',
    'POST /v1/tasks/{id}/links',
    'POST /v1/uploads',
    'POST /v1/uploads/{id}/cancel',
    'POST /v1/uploads/{id}/complete',
    'POST /v1/uploads/{id}/parts',
    'POST /v1/videos',
    'POST /v1/videos/edits',
    'POST /v1/videos/extensions',
    'POST /v1/videos/{id}/edits',
    'POST /v1/videos/{id}/extensions',
    'POST /v1/videos/{id}/remix',
  ],
  'media read': [
    'GET /v1/files',
    'GET /v1/files/{id}',
    'GET /v1/files/{id}/content',
    'GET /v1/tasks',
    'GET /v1/tasks/{id}',
    'GET /v1/videos',
    'GET /v1/videos/{id}',
    'GET /v1/videos/{id}/content',
    'GET /v1beta/files',
    'GET /v1beta/files/{name}',
  ],
  read: [
    'GET /v1/balance',
    'GET /v1/balance/transactions',
    'GET /v1/calls',
    'GET /v1/speed',
    'GET /v1/usage',
    'GET /v1/usage/refusals',
    'GET /v1/webhook_endpoints',
    'GET /v1/webhook_endpoints/{id}',
  ],
};

it('every endpoint that needs a key is opened by the scopes that its users expect', () => {
  const of = (scopes: readonly string[] = ['any']) => scopes.join(' ') || 'none';
  const keyed = listEndpoints().filter((endpoint) => endpoint.public !== true && endpoint.session === undefined);
  const groups = Object.groupBy(keyed, (endpoint) => of(scopesOf(endpoint)));
  const table = Object.entries(groups).map(([scopes, endpoints = []]) => [
    scopes,
    endpoints.map(({ method, path }) => `${method} ${path}`).toSorted(),
  ]);
  expect(Object.fromEntries(table)).toEqual(endpoints_of_scopes);
});
