import { describe, expect, it } from 'vitest';
import { refusalError, retryAfter, runFailure, upstreamErrorOf } from '../../../src/providers/http/refusal.ts';
import { InputRefused, NotStarted } from '../../../src/providers/provider.ts';

const secret = 'sk-upstream-secret-0123456789';

function refusal(status: number, body: unknown, retry_after?: string): NotStarted | InputRefused {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return refusalError({ status, retry_after, body: text }, [secret]);
}

const errorBody = (message: string, more: object = {}) => ({ error: { message, ...more } });

describe("a fault of ours or of the upstream's permits another route", () => {
  it.each<[number, unknown, NotStarted['reason']]>([
    [301, '', 'unavailable'],
    [401, errorBody('Incorrect API key provided', { code: 'invalid_api_key' }), 'rejected_credentials'],
    [402, errorBody('Insufficient credits'), 'rejected_credentials'],
    [403, errorBody('Your account may not use this model'), 'rejected_credentials'],
    [400, errorBody('Your credit balance is too low to access the API'), 'rejected_credentials'],
    [400, [errorBody('API key not valid. Please pass a valid API key.')], 'rejected_credentials'],
    [400, errorBody('x', { code: 'insufficient_quota' }), 'rejected_credentials'],
    [429, errorBody('You exceeded your current quota, please check your billing'), 'rejected_credentials'],
    [429, errorBody('Rate limit reached'), 'rate_limited'],
    [429, '', 'rate_limited'],
    [404, errorBody('The model x does not exist', { code: 'model_not_found' }), 'unavailable'],
    [404, '<html>404</html>', 'unavailable'],
    [405, '', 'unavailable'],
    [408, '', 'timeout'],
    [409, errorBody('conflict'), 'unavailable'],
    [500, 'oops', 'unavailable'],
    [502, '<html><h1>Bad gateway</h1></html>', 'unavailable'],
    [503, errorBody('overloaded'), 'unavailable'],
    [504, '', 'timeout'],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'unavailable'],
  ])('after %i %j: %s', (status, body, reason) => {
    const error = refusal(status, body);
    expect(error).toBeInstanceOf(NotStarted);
    expect(error).toMatchObject({ reason, simulated: false });
    expect(error.message).toContain(String(status));
  });
});

describe("the caller's own mistake keeps the upstream's words, whatever their form", () => {
  it.each<[number, unknown, InputRefused['type'], string]>([
    [400, errorBody('messages.3: image too large'), 'invalid_request', 'messages.3: image too large'],
    [
      400,
      { type: 'error', error: { type: 'invalid_request_error', message: 'max_tokens: too many' } },
      'invalid_request',
      'max_tokens: too many',
    ],
    [413, errorBody('Request too large'), 'invalid_request', 'Request too large'],
    [422, { detail: 'temperature must be a number' }, 'invalid_request', 'temperature must be a number'],
    [400, { message: 'no tools here' }, 'invalid_request', 'no tools here'],
    [400, { error: 'unknown field' }, 'invalid_request', 'unknown field'],
    [400, { error: 'validation_error', message: 'width is too large' }, 'invalid_request', 'width is too large'],
    [422, { error: 'content_policy_violation', message: 'Not this.' }, 'content_policy_violation', 'Not this.'],
    [400, [errorBody('first of a list')], 'invalid_request', 'first of a list'],
    [400, 'no JSON', 'invalid_request', 'The model provider refused the request.'],
    [400, '', 'invalid_request', 'The model provider refused the request.'],
    [400, '{"error":', 'invalid_request', 'The model provider refused the request.'],
    [400, 'null', 'invalid_request', 'The model provider refused the request.'],
    [
      400,
      errorBody('Your request was rejected', { code: 'content_policy_violation' }),
      'content_policy_violation',
      'Your request was rejected',
    ],
    [
      400,
      errorBody('The response was filtered', { code: 'content_filter' }),
      'content_policy_violation',
      'The response was filtered',
    ],
  ])('after %i %j: %s', (status, body, type, message) => {
    const error = refusal(status, body);
    expect(error).toBeInstanceOf(InputRefused);
    expect(error).toMatchObject({ type, message });
  });
});

describe('Retry-After', () => {
  const wait = (status: number, retry_after?: string) => {
    const error = refusal(status, '', retry_after);
    return error instanceof NotStarted ? error.retry_after_ms : 'not at all';
  };

  it('may be seconds', () => {
    expect(wait(429, '7')).toBe(7_000);
    expect(wait(503, '1.5')).toBe(1_500);
  });

  it('may be a date', () => {
    const later = new Date(Date.now() + 60_000).toUTCString();
    expect(wait(429, later)).toBeGreaterThan(57_000);
    expect(wait(429, later)).toBeLessThanOrEqual(60_000);
  });

  it('counts up to 5 minutes', () => {
    expect(wait(429, '86400')).toBe(300_000);
  });

  it.each(['soon', '-5', '0', 'NaN', 'Infinity', new Date(0).toUTCString()])(
    'is 5 s when it is invalid: %j',
    (text) => {
      expect(wait(429, text)).toBe(5_000);
    },
  );

  it('is 5 s when it is missing after a 429, and nothing after other errors', () => {
    expect([wait(429), wait(503)]).toEqual([5_000, undefined]);
  });
});

it('keys, links and ids never appear in messages or in the log', () => {
  const leak = `Key ${secret} of org-AbCdEf123456 (request req_0123456789abcdef), see https://internal.example/x?token=1 or ask ops@example.com`;
  for (const status of [400, 401, 404, 429, 500]) {
    expect(refusal(status, errorBody(leak)).message).not.toMatch(
      /sk-upstream|AbCdEf|0123456789abcdef|internal\.example|ops@/,
    );
  }
});

describe('an error body', () => {
  it.each<[unknown, object]>([
    [{ detail: 'no credit' }, { message: 'no credit' }],
    [
      { title: 'Wrong', detail: 'prompt is required', status: 422 },
      { message: 'prompt is required', type: '422' },
    ],
    [
      { detail: 'gone', error_type: 'startup_timeout' },
      { message: 'gone', type: 'startup_timeout' },
    ],
    [
      { detail: [{ loc: ['body', 'size', 0], msg: 'too big', type: 'value_error' }, { msg: 'and more' }] },
      { message: 'size.0: too big; and more', type: 'value_error' },
    ],
    [{ detail: { status: 'quota_exceeded', message: 'no more' } }, { message: 'no more', type: 'quota_exceeded' }],
    [{ name: 'bad_request', errors: ['a', 'b'] }, { message: 'a; b' }],
    [
      { code: 1301, msg: 'no' },
      { message: 'no', code: '1301' },
    ],
    [
      { error: 'text', type: 'x' },
      { message: 'text', type: 'x' },
    ],
    ['<html>', { message: '', type: '', code: '' }],
    ['7', { message: '' }],
  ])('may have the form %j', (body, expected) => {
    expect(upstreamErrorOf(typeof body === 'string' ? body : JSON.stringify(body))).toMatchObject(expected);
  });
});

describe('an error of one upstream only', () => {
  const hints = {
    moderation: /\bE005\b/,
    about_us: /user is locked/i,
    unavailable: /no such version/i,
    callers: /^too dark/,
  };
  it.each<[number, string, object]>([
    [422, 'flagged (E005)', { type: 'content_policy_violation' }],
    [403, 'flagged (E005)', { type: 'content_policy_violation' }],
    [400, 'User is locked.', { reason: 'rejected_credentials' }],
    [400, 'The prompt says: user is locked', { type: 'invalid_request' }],
    [422, 'There is no such version', { reason: 'unavailable' }],
  ])('is recognized: %i %s', (status, message, expected) => {
    expect(
      refusalError({ status, retry_after: undefined, body: JSON.stringify({ message }) }, [], hints),
    ).toMatchObject(expected);
  });

  it.each<[string, object]>([
    ['flagged (E005)', { type: 'content_policy_violation', message: 'flagged (E005)' }],
    ['too dark', { type: 'invalid_request', message: 'too dark' }],
    [`gpu-17 lost ${secret}`, { type: 'upstream_error', message: 'The model provider could not finish the run.' }],
  ])('of a failed run is recognized: %s', (message, expected) => {
    expect(runFailure({ message }, [secret], hints)).toMatchObject({ phase: 'failed', ...expected });
  });

  it('leaves no key in the reason that a caller gets', () => {
    expect(runFailure({ message: `too dark for ${secret}` }, [secret], hints).message).toBe('too dark for [key]');
  });

  it('may name a field called safety without being a block', () => {
    const detail = [{ loc: ['body', 'safety_tolerance'], msg: 'must be at most 6', type: 'less_than_equal' }];
    const error = refusal(422, { detail });
    expect(error).toMatchObject({ type: 'invalid_request', message: 'safety_tolerance: must be at most 6' });
    expect(refusal(400, errorBody('Rejected by the safety system'))).toMatchObject({
      type: 'content_policy_violation',
    });
  });

  it('may have its retry time in its message only', () => {
    const body = JSON.stringify({ detail: 'Request was throttled. Your rate limit resets in ~30s.' });
    expect(retryAfter({ status: 429, retry_after: undefined, body })).toBe(30_000);
    expect(retryAfter({ status: 429, retry_after: '2', body })).toBe(2_000);
  });
});
