import { describe, expect, it } from 'vitest';
import { ApiError, service_errors, type ErrorKind } from '../src/errors.ts';
import { completions_errors } from '../src/styles/completions/errors.ts';
import { messages_errors } from '../src/styles/messages/errors.ts';

/** Specification 7.2, and the errors that docs/spec-coverage.md adds to it. */
const table: [ErrorKind, number, string][] = [
  ['invalid_request', 400, 'invalid_request'],
  ['unauthenticated', 401, 'authentication_error'],
  ['insufficient_balance', 402, 'insufficient_balance'],
  ['key_limit', 403, 'permission_error'],
  ['account_blocked', 403, 'permission_error'],
  ['not_found', 404, 'not_found'],
  ['method_not_allowed', 405, 'invalid_request'],
  ['conflict', 409, 'invalid_request'],
  ['upgrade_refused', 426, 'invalid_request'],
  ['too_large', 413, 'invalid_request'],
  ['unsupported_media_type', 415, 'invalid_request'],
  ['invalid_input', 422, 'invalid_request'],
  ['rate_limit', 429, 'rate_limit'],
  ['failures_pause', 429, 'rate_limit_error'],
  ['internal_error', 500, 'internal_error'],
  ['upstream_error', 502, 'upstream_error'],
  ['unavailable', 503, 'upstream_error'],
  ['timeout', 504, 'timeout'],
];

it.each(table)('%s is %d %s', (kind, status, type) => {
  const error = new ApiError(kind, 'A sentence.');
  expect(error).toMatchObject({ name: 'ApiError', kind, status, type, message: 'A sentence.', extras: {} });
  expect(error).toBeInstanceOf(Error);
});

describe('specification 7.1', () => {
  const error = new ApiError('not_found', 'No such task.');

  it('service', () => {
    expect(service_errors.render(error, 'req_1')).toEqual({
      error: { type: 'not_found', message: 'No such task.', request_id: 'req_1' },
    });
  });

  it('completions: param and code are always there', () => {
    expect(completions_errors.render(error, 'req_1')).toEqual({
      error: { message: 'No such task.', type: 'not_found', param: null, code: null, request_id: 'req_1' },
    });
  });

  it('messages: request_id stands beside', () => {
    expect(messages_errors.render(error, 'req_1')).toEqual({
      type: 'error',
      error: { type: 'not_found', message: 'No such task.' },
      request_id: 'req_1',
    });
  });
});

describe.each([service_errors, completions_errors, messages_errors])('extras in $name', (format) => {
  const mistakes = ['a', 'b'].map((name) => ({ field: name, rule: 'required', message: `${name} is required.` }));
  const render = (extras: ConstructorParameters<typeof ApiError>[2]) =>
    format.render(new ApiError('invalid_input', 'a is required.', extras), 'req_1');

  it('stand inside error, and headers nowhere', () => {
    const body = render({ code: 'conflict', param: 'a', details: mistakes, headers: { 'retry-after': '1' } });
    expect(body).toMatchObject({ error: { code: 'conflict', param: 'a', details: mistakes } });
    expect(Object.keys(body)).toEqual(format === messages_errors ? ['type', 'error', 'request_id'] : ['error']);
    expect(JSON.stringify(body)).not.toContain('retry-after');
  });

  it('repeat a single mistake in no list', () => {
    expect(JSON.stringify(render({ details: mistakes.slice(0, 1) }))).not.toContain('details');
  });
});
