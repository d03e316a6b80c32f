import { describe, expect, it } from 'vitest';
import { refusalError } from '../../src/providers/refusal.ts';
import { InputRefused, NotStarted } from '../../src/providers/provider.ts';

const secret = 'sk-upstream-secret-0123456789';

function refusal(status: number, body: unknown, retry_after?: string): NotStarted | InputRefused {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return refusalError({ status, retry_after, body: text }, [secret]);
}

const told = (message: string, more: object = {}) => ({ error: { message, ...more } });

describe('trouble of ours or of the upstream’s: another route may be tried', () => {
  it.each<[number, unknown, NotStarted['reason']]>([
    [301, '', 'unavailable'],
    [401, told('Incorrect API key provided', { code: 'invalid_api_key' }), 'rejected_credentials'],
    [402, told('Insufficient credits'), 'rejected_credentials'],
    [403, told('Your account may not use this model'), 'rejected_credentials'],
    [400, told('Your credit balance is too low to access the API'), 'rejected_credentials'],
    [400, [told('API key not valid. Please pass a valid API key.')], 'rejected_credentials'],
    [400, told('x', { code: 'insufficient_quota' }), 'rejected_credentials'],
    [429, told('You exceeded your current quota, please check your billing'), 'rejected_credentials'],
    [429, told('Rate limit reached'), 'rate_limited'],
    [429, '', 'rate_limited'],
    [404, told('The model x does not exist', { code: 'model_not_found' }), 'unavailable'],
    [404, '<html>404</html>', 'unavailable'],
    [405, '', 'unavailable'],
    [408, '', 'timeout'],
    [409, told('conflict'), 'unavailable'],
    [500, 'oops', 'unavailable'],
    [502, '<html><h1>Bad gateway</h1></html>', 'unavailable'],
    [503, told('overloaded'), 'unavailable'],
    [504, '', 'timeout'],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'unavailable'],
  ])('%i %j: %s', (status, body, reason) => {
    const error = refusal(status, body);
    expect(error).toBeInstanceOf(NotStarted);
    expect(error).toMatchObject({ reason, simulated: false });
    expect(error.message).toContain(String(status));
  });
});

describe('the caller’s own mistake: in the upstream’s words, in whatever shape they come', () => {
  it.each<[number, unknown, InputRefused['type'], string]>([
    [400, told('messages.3: image too large'), 'invalid_request', 'messages.3: image too large'],
    [
      400,
      { type: 'error', error: { type: 'invalid_request_error', message: 'max_tokens: too many' } },
      'invalid_request',
      'max_tokens: too many',
    ],
    [413, told('Request too large'), 'invalid_request', 'Request too large'],
    [422, { detail: 'temperature must be a number' }, 'invalid_request', 'temperature must be a number'],
    [400, { message: 'no tools here' }, 'invalid_request', 'no tools here'],
    [400, { error: 'unknown field' }, 'invalid_request', 'unknown field'],
    [400, [told('first of a list')], 'invalid_request', 'first of a list'],
    [400, 'no JSON', 'invalid_request', 'The model provider refused the request.'],
    [400, '', 'invalid_request', 'The model provider refused the request.'],
    [400, '{"error":', 'invalid_request', 'The model provider refused the request.'],
    [400, 'null', 'invalid_request', 'The model provider refused the request.'],
    [
      400,
      told('Your request was rejected', { code: 'content_policy_violation' }),
      'content_policy_violation',
      'Your request was rejected',
    ],
    [
      400,
      told('The response was filtered', { code: 'content_filter' }),
      'content_policy_violation',
      'The response was filtered',
    ],
  ])('%i %j: %s', (status, body, type, message) => {
    const error = refusal(status, body);
    expect(error).toBeInstanceOf(InputRefused);
    expect(error).toMatchObject({ type, message });
  });
});

describe('Retry-After', () => {
  const wait = (status: number, given?: string) => {
    const error = refusal(status, '', given);
    return error instanceof NotStarted ? error.retry_after_ms : 'not at all';
  };

  it('is seconds', () => {
    expect(wait(429, '7')).toBe(7_000);
    expect(wait(503, '1.5')).toBe(1_500);
  });

  it('or a date', () => {
    const later = new Date(Date.now() + 60_000).toUTCString();
    expect(wait(429, later)).toBeGreaterThan(57_000);
    expect(wait(429, later)).toBeLessThanOrEqual(60_000);
  });

  it('is believed up to 5 minutes', () => {
    expect(wait(429, '86400')).toBe(300_000);
  });

  it.each(['soon', '-5', '0', 'NaN', 'Infinity', new Date(0).toUTCString()])('%j says nothing: 5 s', (given) => {
    expect(wait(429, given)).toBe(5_000);
  });

  it('without it 5 s after a 429, and nothing after others', () => {
    expect([wait(429), wait(503)]).toEqual([5_000, undefined]);
  });
});

it('keys, links and ids never reach the words that are told or logged', () => {
  const leak = `Key ${secret} of org-AbCdEf123456 (request req_0123456789abcdef), see https://internal.example/x?token=1 or ask ops@example.com`;
  for (const status of [400, 401, 404, 429, 500]) {
    expect(refusal(status, told(leak)).message).not.toMatch(
      /sk-upstream|AbCdEf|0123456789abcdef|internal\.example|ops@/,
    );
  }
});
