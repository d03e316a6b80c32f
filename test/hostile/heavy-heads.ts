import fc from 'fast-check';
import type { Operation } from './operations.ts';
import type { HostileRequest } from './requests.ts';

type Head = Pick<HostileRequest, 'headers'> & { query: string };

/** As much as the head of a request may have: 64 KiB of headers, 2,048 characters of URL. */
const heads: readonly Head[] = [
  header('cookie', 'a=b; '.repeat(10_000)),
  header('cookie', `medley.session_token=${'%'.repeat(50_000)}`),
  header('cookie', `${'='.repeat(50_000)}`),
  header('cookie', `__Secure-medley.session_token=${'a.'.repeat(20_000)}`),
  header('authorization', `Bearer ${' '.repeat(50_000)}x`),
  header('authorization', `Bearer ${'mdl_'.repeat(12_000)}`),
  header('authorization', 'Bearer '.repeat(7_000)),
  header('authorization', `Basic ${'A'.repeat(50_000)}`),
  header('x-api-key', 'a'.repeat(60_000)),
  header('range', `bytes=${'0-0,'.repeat(12_000)}`),
  header('range', `bytes=${'9'.repeat(50_000)}-`),
  header('if-none-match', '"a", '.repeat(10_000)),
  header('if-range', 'W/"'.repeat(15_000)),
  header('accept', 'text/html;q=0.1, '.repeat(3_500)),
  header('accept-language', 'en;q=0.1,'.repeat(6_500)),
  header('content-type', `application/json${'; a=b'.repeat(10_000)}`),
  header('content-type', `application/json;${' '.repeat(50_000)}charset=x`),
  header('content-type', `multipart/form-data; ${' '.repeat(50_000)}boundary=`),
  header('content-type', `multipart/form-data${'; boundary="'.repeat(4_000)}`),
  header('content-encoding', ' '.repeat(50_000)),
  header('content-encoding', 'gzip,'.repeat(10_000)),
  header('x-forwarded-for', '1.2.3.4, '.repeat(6_000)),
  header('forwarded', 'for="[::1]";by=a, '.repeat(3_000)),
  header('x-client-request-id', 'a'.repeat(60_000)),
  header('idempotency-key', 'a'.repeat(255)),
  header('idempotency-key', '\u00ff'.repeat(50_000)),
  header('origin', `https://${'a.'.repeat(25_000)}b`),
  header('origin', `${'https://'.repeat(6_000)}`),
  header('host', `${'a.'.repeat(25_000)}b:80`),
  header('host', `${'['.repeat(50_000)}`),
  header('anthropic-beta', 'a-2025-01-01,'.repeat(4_500)),
  header('anthropic-beta', ','.repeat(50_000)),
  header('anthropic-version', '2023-06-01'.repeat(5_000)),
  header('stripe-signature', `t=1,${'v1=aa,'.repeat(9_000)}`),
  header('stripe-signature', `${'t=1,'.repeat(12_000)}`),
  header('transfer-encoding', 'chunked, '.repeat(6_000)),
  header('connection', 'a, '.repeat(15_000)),
  header('expect', 'x'.repeat(50_000)),
  { headers: Array.from({ length: 900 }, (_, index) => [`x-${index}`, 'v'.repeat(50)] as const), query: '' },
  { headers: Array.from({ length: 999 }, () => ['cookie', 'a=b'] as const), query: '' },
  { headers: Array.from({ length: 900 }, () => ['x-api-key', 'a'] as const), query: '' },
  { headers: Array.from({ length: 900 }, () => ['accept', 'a/b'] as const), query: '' },
  ...[
    'a&'.repeat(990),
    'a=b&'.repeat(490),
    '&'.repeat(1_990),
    '%41'.repeat(660),
    '+'.repeat(1_990),
    `model=${'%ff'.repeat(600)}`,
    `after=${'task_'.repeat(390)}`,
    `status=${'succeeded,'.repeat(190)}`,
    `group_by=${'day,model,key,modality,'.repeat(80)}`,
    `from=${'2026-01-01T00:00:00Z'.repeat(90)}`,
    'from=0001-01-01&to=9999-12-31&group_by=day,model,key',
    `created_after=2026-01-01T00:00:00.${'1'.repeat(1_900)}Z`,
    Array.from({ length: 90 }, (_, index) => `metadata[k${index}]=v`).join('&'),
    `metadata${'[a'.repeat(900)}=1`,
    `metadata[${'%25'.repeat(600)}]=1`,
    `limit=${'9'.repeat(1_900)}`,
    `wait=${'0'.repeat(1_900)}1`,
    `search=${'%25_'.repeat(480)}`,
    `q=${'(a%2B)%2B'.repeat(200)}`,
    `cursor=${'eyJ'.repeat(640)}`,
    `token=${'a'.repeat(1_990)}`,
    `sig=${'A'.repeat(1_900)}&exp=${'9'.repeat(60)}`,
  ].map((query): Head => ({ headers: [], query })),
];

function header(name: string, value: string): Head {
  return { headers: [[name, value]], query: '' };
}

/** Heads that are long in one way, at every endpoint. */
export function heavyHead(operation: Operation): fc.Arbitrary<HostileRequest> {
  return fc.tuple(fc.constantFrom(...heads), fc.boolean()).chain(([{ headers, query }, with_body]) =>
    operation.send(with_body && operation.method !== 'GET' ? '{}' : undefined).map((request) => ({
      ...request,
      headers: [...request.headers, ...headers],
      target: query === '' ? request.target : `${request.target}${request.target.includes('?') ? '&' : '?'}${query}`,
    })),
  );
}
