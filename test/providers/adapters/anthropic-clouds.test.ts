import { generateKeyPairSync } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderConfig } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { anthropic_bedrock } from '../../../src/providers/adapters/anthropic/bedrock.ts';
import { anthropic_vertex } from '../../../src/providers/adapters/anthropic/vertex.ts';
import { signatureProblem, type Received } from '../imitations/aws-signature.ts';
import { chunkFrame, exceptionFrame } from '../imitations/event-stream.ts';
import { callOf, never, textOf } from '../upstreams.ts';

const guard = openGuard();
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
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
    for (const frame of frames) response.write(frame);
    response.end();
  };
};

let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const last = () => {
  const request = received.at(-1);
  if (!request) throw new Error('nothing was asked');
  return request;
};
const bodyOf = () => JSON.parse(last().body) as Record<string, unknown>;
const aws_secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';

const bedrock = (more: Partial<ProviderConfig> = {}) =>
  anthropic_bedrock.openChat(
    {
      name: 'p',
      adapter: 'anthropic-bedrock',
      base_url: origin,
      allow_private: true,
      credentials: {
        kind: 'aws',
        region: 'eu-central-1',
        service: 'bedrock',
        access_key_id: 'AKID',
        secret_access_key: aws_secret,
      },
      ...more,
    },
    { guard },
  );
const callWith = (more: Parameters<typeof callOf>[1] = {}) => callOf('messages', more);
const body = { model: 'ignored', max_tokens: 10, stream: true, messages: [{ role: 'user', content: 'Hello' }] };

describe('Claude by InvokeModel of Bedrock', () => {
  it.each([
    ['anthropic.claude-sonnet-4-5-20250929-v1:0', 'anthropic.claude-sonnet-4-5-20250929-v1%3A0'],
    ['global.anthropic.claude-opus-5-5', 'global.anthropic.claude-opus-5-5'],
    [
      'arn:aws:bedrock:us-east-2:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
      'arn%3Aaws%3Abedrock%3Aus-east-2%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-5-20250929-v1%3A0',
    ],
  ])('has %s in its path, encoded, and in the signature', async (model, encoded) => {
    whole({ id: 'msg_1' });
    expect(await textOf(bedrock(), callWith({ model, body: { ...body, stream: false } }))).toBe('{"id":"msg_1"}');
    expect(last().path).toBe(`/model/${encoded}/invoke`);
    expect(signatureProblem(last(), aws_secret, { region: 'eu-central-1', service: 'bedrock' })).toBeUndefined();
    expect(last().headers.accept).toBe('application/json');
  });

  it('gets a version and the betas in the body, neither the model nor whether it streams', async () => {
    whole({});
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07, effort-2025-11-24', 'anthropic-version': '2023-06-01' };
    await textOf(bedrock(), callWith({ body: { ...body, stream: false, temperature: 0.5 }, headers }));
    const { model: _, stream: __, ...rest } = body;
    expect(bodyOf()).toEqual({
      ...rest,
      temperature: 0.5,
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['context-1m-2025-08-07', 'effort-2025-11-24'],
    });
    expect(last().headers).not.toHaveProperty('anthropic-beta');
    expect(last().headers).not.toHaveProperty('anthropic-version');
  });

  it('streams the events of the style out of frames, without what Bedrock measured', async () => {
    const stop = { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 9 } };
    streamed(
      chunkFrame({ type: 'message_start', message: { id: 'msg_1' } }),
      chunkFrame('{"type":"content_block_delta",\n"index":0,"n":12345678901234567890}'),
      chunkFrame({}),
      chunkFrame(stop),
    );
    expect(await textOf(bedrock(), callWith({ model: 'm:0', stream: true, body }))).toBe(
      'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1"}}\n\n' +
        'event: content_block_delta\ndata: {"type":"content_block_delta", "index":0,"n":12345678901234567890}\n\n' +
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    );
    expect(last().path).toBe('/model/m%3A0/invoke-with-response-stream');
    expect(last().headers.accept).toBe('application/vnd.amazon.eventstream');
    expect(signatureProblem(last(), aws_secret, { region: 'eu-central-1', service: 'bedrock' })).toBeUndefined();
  });

  it.each([
    ['validationException', 'invalid_request_error'],
    ['throttlingException', 'rate_limit_error'],
    ['serviceUnavailableException', 'overloaded_error'],
    ['modelTimeoutException', 'timeout_error'],
    ['modelStreamErrorException', 'api_error'],
    ['internalServerException', 'api_error'],
  ])('tells of %s in a stream as the style does: %s', async (name, type) => {
    streamed(exceptionFrame(name, 'So it "is".\n'));
    const error = { type: 'error', error: { type, message: 'So it "is".\n' } };
    const expected = `event: error\ndata: ${JSON.stringify(error)}\n\n`;
    expect(await textOf(bedrock(), callWith({ stream: true, body }))).toBe(expected);
  });

  it('breaks off with a damaged frame', async () => {
    const frame = chunkFrame({ type: 'ping' });
    streamed(frame.fill(0, 20, 24));
    await expect(textOf(bedrock(), callWith({ stream: true, body }))).rejects.toThrow('A frame is damaged.');
  });

  it.each([
    [429, 'Too many requests, please wait before trying again.', { name: 'NotStarted', reason: 'rate_limited' }],
    [400, 'Input is too long for requested model.', { name: 'InputRefused', overflow: {} }],
    [400, 'messages: roles must alternate', { name: 'InputRefused', type: 'invalid_request' }],
    [400, 'The provided model identifier is invalid.', { name: 'NotStarted', reason: 'unavailable' }],
    [
      400,
      'Invocation of model ID anthropic.claude with on-demand throughput isn’t supported.',
      { name: 'NotStarted', reason: 'unavailable' },
    ],
    [403, 'The security token included in the request is invalid.', { reason: 'rejected_credentials' }],
    [404, 'This Model is marked by provider as Legacy.', { name: 'NotStarted' }],
    [408, 'The request took too long.', { name: 'NotStarted', reason: 'timeout' }],
    [424, 'The model returned an error.', { name: 'NotStarted', reason: 'unavailable' }],
    [503, 'Bedrock is unable to process your request.', { name: 'NotStarted', reason: 'unavailable' }],
  ])('knows its refusals: %s %s', async (status, message, expected) => {
    whole({ message }, status);
    await expect(textOf(bedrock(), callWith())).rejects.toMatchObject(expected);
  });

  it('may be asked with an API key of Bedrock, and then needs an address', async () => {
    const { credentials: _, ...config } = { credentials: undefined, api_key: 'bedrock-key' };
    whole({});
    const provider = anthropic_bedrock.openChat(
      { name: 'p', adapter: 'anthropic-bedrock', base_url: origin, allow_private: true, ...config },
      { guard },
    );
    await textOf(provider, callWith());
    expect(last().headers.authorization).toBe('Bearer bedrock-key');
    expect(anthropic_bedrock.checkProvider({ adapter: 'a', api_key: 'env:KEY' })).toHaveLength(1);
    expect(anthropic_bedrock.checkProvider({ adapter: 'a', credentials: { aws: { region: 'us-east-1' } } })).toEqual(
      [],
    );
  });

  it('has the address of its region', async () => {
    const { base_url: _, ...config } = { name: 'p', adapter: 'a', allow_private: false, base_url: '' };
    const refusing = { ...guard, connect: (url: string) => Promise.reject(new Error(`asked for ${url}`)) };
    const credentials = {
      kind: 'aws',
      region: 'eu-west-3',
      service: 'bedrock',
      access_key_id: 'a',
      secret_access_key: 'b',
    } as const;
    const provider = anthropic_bedrock.openChat({ ...config, credentials }, { guard: refusing });
    await expect(provider.send(callWith(), never)).rejects.toThrow(
      'asked for https://bedrock-runtime.eu-west-3.amazonaws.com',
    );
  });

  it('counts tokens of a body that could be sent', async () => {
    whole({ inputTokens: 17 });
    const { stream: _, max_tokens: __, ...counted } = body;
    expect(await bedrock().countTokens?.(callWith({ model: 'm:0', body: counted }), never)).toBe(17);
    expect(last().path).toBe('/model/m%3A0/count-tokens');
    const { input } = bodyOf() as { input: { invokeModel: { body: string } } };
    expect(JSON.parse(Buffer.from(input.invokeModel.body, 'base64').toString())).toEqual({
      max_tokens: 1,
      messages: body.messages,
      anthropic_version: 'bedrock-2023-05-31',
    });
  });
});

describe('Claude on Vertex AI', () => {
  const place = '/v1/projects/my-project/locations/europe-west1';
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const account = { client_email: 'a@b', private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
  const vertex = (path = place) =>
    anthropic_vertex.openChat(
      {
        name: 'p',
        adapter: 'anthropic-vertex',
        base_url: origin + path,
        allow_private: true,
        credentials: { kind: 'google', service_account: JSON.stringify(account), scope: 'cloud' },
      },
      { guard },
    );

  it.each([place, `${place}/publishers/anthropic`, `${place}/`])(
    'has its model and its method behind %s, and a version in the body',
    async (path) => {
      whole({ id: 'msg_1' });
      const model = 'claude-sonnet-4-5@20250929';
      expect(await textOf(vertex(path), callWith({ model, body: { ...body, stream: false } }))).toBe('{"id":"msg_1"}');
      expect(last().path).toBe(`${place}/publishers/anthropic/models/${model}:rawPredict`);
      const { model: _, ...rest } = body;
      expect(bodyOf()).toEqual({ ...rest, stream: false, anthropic_version: 'vertex-2023-10-16' });
      expect(last().headers.authorization).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    },
  );

  it('streams server-sent events as they come, and gets the betas in their header', async () => {
    const text = 'event: ping\ndata: {"type":"ping"}\n\n';
    answer = (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
    const headers = { 'anthropic-beta': 'effort-2025-11-24', 'anthropic-version': '2023-06-01' };
    expect(await textOf(vertex(), callWith({ model: 'claude-opus-5-5', stream: true, body, headers }))).toBe(text);
    expect(last().path).toBe(`${place}/publishers/anthropic/models/claude-opus-5-5:streamRawPredict`);
    expect(bodyOf()).toMatchObject({ stream: true, anthropic_version: 'vertex-2023-10-16' });
    expect(last().headers).toMatchObject({ accept: 'text/event-stream', 'anthropic-beta': 'effort-2025-11-24' });
    expect(last().headers).not.toHaveProperty('anthropic-version');
  });

  it('counts tokens by a path of its own', async () => {
    whole({ input_tokens: 17 });
    const counted = { model: 'claude-opus-5-5', messages: body.messages };
    expect(await vertex().countTokens?.(callWith({ body: counted }), never)).toBe(17);
    expect(last().path).toBe(`${place}/publishers/anthropic/models/count-tokens:rawPredict`);
    expect(bodyOf()).toEqual({ ...counted, anthropic_version: 'vertex-2023-10-16' });
  });

  it.each([
    [
      400,
      { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 2 tokens > 1 maximum' } },
      { name: 'InputRefused', overflow: { request_tokens: 2, limit_tokens: 1 } },
    ],
    [
      429,
      [{ error: { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' } }],
      { reason: 'rate_limited' },
    ],
    [
      404,
      { error: { code: 404, message: 'Publisher Model `x` was not found.', status: 'NOT_FOUND' } },
      { name: 'NotStarted' },
    ],
    [401, { error: { code: 401, message: 'no', status: 'UNAUTHENTICATED' } }, { reason: 'rejected_credentials' }],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, { reason: 'unavailable' }],
  ])('knows refusals of Google and of Anthropic: %s %j', async (status, json, expected) => {
    whole(json, status);
    await expect(textOf(vertex(), callWith())).rejects.toMatchObject(expected);
  });

  it('is refused in a file without its project and location', () => {
    const problems = (base_url?: string) =>
      anthropic_vertex.checkProvider({ adapter: 'a', ...(base_url !== undefined && { base_url }) });
    expect(problems()).toHaveLength(1);
    expect(problems('https://aiplatform.googleapis.com/v1')).toHaveLength(1);
    expect(problems(`https://aiplatform.googleapis.com${place}`)).toEqual([]);
  });
});
