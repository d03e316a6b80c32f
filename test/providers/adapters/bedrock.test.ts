import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { bedrock } from '../../../src/providers/adapters/bedrock/adapter.ts';
import { converse } from '../../../src/styles/converse/codec.ts';
import { signatureProblem, type Received } from '../imitations/aws-signature.ts';
import { eventFrame, exceptionFrame, frameOf } from '../imitations/event-stream.ts';
import { callOf, never, textOf } from '../upstreams.ts';

const received: Received[] = [];
let answer: (response: ServerResponse) => void = () => undefined;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() });
      answer(response);
    });
});
const whole = (json: object, status = 200) => {
  answer = (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
};
const streamed = (...frames: Buffer[]) => {
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' }).end(Buffer.concat(frames));
  };
};

let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const region = 'us-west-2';
const open = () =>
  bedrock.openChat(
    {
      name: 'p',
      adapter: 'bedrock',
      base_url: origin,
      allow_private: true,
      credentials: { kind: 'aws', region, service: 'bedrock', access_key_id: 'AKID', secret_access_key: secret },
    },
    { guard: openGuard() },
  );
const body: JsonObject = { messages: [{ role: 'user', content: [{ text: 'Hi' }] }], inferenceConfig: { maxTokens: 9 } };
const callWith = (more: Parameters<typeof callOf>[1] = {}) => callOf('messages', { style: converse, body, ...more });
const last = () => {
  const request = received.at(-1);
  if (!request) throw new Error('nothing was asked');
  return request;
};
const bodyOf = () => JSON.parse(last().body) as unknown;

describe('Converse of Bedrock', () => {
  it.each([
    ['us.amazon.nova-pro-v1:0', 'us.amazon.nova-pro-v1%3A0'],
    [
      'arn:aws:bedrock:us-west-2:1:application-inference-profile/a1b2',
      'arn%3Aaws%3Abedrock%3Aus-west-2%3A1%3Aapplication-inference-profile%2Fa1b2',
    ],
  ])('is asked for %s by its path, signed', async (model, encoded) => {
    whole({ output: {} });
    expect(await textOf(open(), callWith({ model }))).toBe('{"output":{}}');
    expect(last().path).toBe(`/model/${encoded}/converse`);
    expect(bodyOf()).toEqual(body);
    expect(signatureProblem(last(), secret, { region, service: 'bedrock' })).toBeUndefined();
  });

  it('gets fields and the guardrail that the route names', async () => {
    whole({});
    const guardrail = { guardrailIdentifier: 'gr-1', guardrailVersion: '2' };
    const options = { additional_fields: { top_k: 5 }, guardrail };
    const more = { ...body, additionalModelRequestFields: { top_k: 1, thinking: { type: 'adaptive' } } };
    await textOf(open(), callWith({ options, body: more }));
    expect(bodyOf()).toEqual({
      ...body,
      additionalModelRequestFields: { top_k: 5, thinking: { type: 'adaptive' } },
      guardrailConfig: guardrail,
    });
    expect(bedrock.checkChatOptions({ ...options, thinking: 'budget', model_family: 'nova' })).toEqual([]);
    const wrong = bedrock.checkChatOptions({ additional_fields: 1, guardrail: [], model_family: 'x', other: 1 });
    expect(wrong.map(({ field }) => field).toSorted()).toEqual([
      'additional_fields',
      'guardrail',
      'model_family',
      'other',
    ]);
  });

  it('streams events with their names out of frames', async () => {
    streamed(
      eventFrame('messageStart', { role: 'assistant', p: 'ab' }),
      eventFrame('contentBlockDelta', '{"contentBlockIndex":0,\n"delta":{"text":"Hi"}}'),
      frameOf({ ':message-type': 'event' }, { nameless: true }),
    );
    expect(await textOf(open(), callWith({ model: 'm', stream: true }))).toBe(
      'event: messageStart\ndata: {"role":"assistant","p":"ab"}\n\n' +
        'event: contentBlockDelta\ndata: {"contentBlockIndex":0, "delta":{"text":"Hi"}}\n\n',
    );
    expect(last().path).toBe('/model/m/converse-stream');
    expect(signatureProblem(last(), secret, { region, service: 'bedrock' })).toBeUndefined();
  });

  it.each([
    [exceptionFrame('validationException', 'No.'), 'invalid_request_error', 'No.'],
    [exceptionFrame('modelStreamErrorException', 'Oh.'), 'modelStreamErrorException', 'Oh.'],
    [
      frameOf({ ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'Hm.' }, ''),
      'internalError',
      'Hm.',
    ],
  ])('tells of exceptions in a stream', async (frame, type, message) => {
    streamed(frame);
    const expected = `event: error\ndata: ${JSON.stringify({ error: { type, message } })}\n\n`;
    expect(await textOf(open(), callWith({ stream: true }))).toBe(expected);
  });

  it('counts the tokens of a conversation', async () => {
    whole({ inputTokens: 42 });
    const { inferenceConfig: _, ...counted } = body;
    expect(await open().countTokens?.(callWith({ model: 'm:0', body: counted }), never)).toBe(42);
    expect(last().path).toBe('/model/m%3A0/count-tokens');
    expect(bodyOf()).toEqual({ input: { converse: counted } });
  });

  it.each([
    [
      400,
      'The model returned the following errors: prompt is too long: 9 tokens > 8 maximum',
      { name: 'InputRefused', overflow: { limit_tokens: 8 } },
    ],
    [400, 'This model doesn’t support converse.', { name: 'NotStarted', reason: 'unavailable' }],
    [403, 'You don’t have access to the model with the specified model ID.', { reason: 'rejected_credentials' }],
    [429, 'Too many tokens, please wait before trying again.', { reason: 'rate_limited' }],
    [500, 'The system encountered an unexpected error.', { reason: 'unavailable' }],
  ])('knows its refusals: %s %s', async (status, message, expected) => {
    whole({ message }, status);
    await expect(textOf(open(), callWith())).rejects.toMatchObject(expected);
  });
});
