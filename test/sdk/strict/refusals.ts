import type { Stage } from '../../chat/setup.ts';
import { eventsIn, sampleOf } from './asking.ts';
import { upstreams } from './chat.ts';
import type { Sample } from './vendor-types.ts';
import { chunk, event, messageStart } from '../../chat/streams.ts';

/** Errors of every style: before an answer, and in a stream that has begun. */

const openai = '{ error: OpenAI.ErrorObject }';
const anthropic = 'Anthropic.ErrorResponse';
/** As google.rpc.Status has it (AIP-193): its SDK has no type for it. */
const google = '{ error: { code: number; message: string; status: string; details?: unknown[] } }';
const hello = [{ role: 'user', content: 'Hello' }];
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];

export async function refusalSamples({ client, test }: Stage): Promise<Sample[]> {
  const poor = await test.client({ credit: '0.000001' });
  const samples: Sample[] = [];
  for (const [who, model, status] of [
    [client, 'acme/none', 404],
    [poor, 'acme/oai', 402],
  ] as const) {
    const ask = (path: string, body: object) => who.call('POST', path, body);
    const what = `a ${status}`;
    samples.push(
      sampleOf(what, openai, await ask('/v1/chat/completions', { model, messages: hello }), status),
      sampleOf(what, openai, await ask('/v1/responses', { model, input: 'Hello' }), status),
      sampleOf(what, openai, await ask('/v1/completions', { model, prompt: 'Hello' }), status),
      sampleOf(what, anthropic, await ask('/v1/messages', { model, max_tokens: 10, messages: hello }), status),
      sampleOf(what, google, await ask(`/v1beta/models/${model}:generateContent`, { contents }), status),
    );
  }
  return samples;
}

/** Streams that break off after their first words. */
export async function brokenSamples({ client, upstream }: Stage): Promise<Sample[]> {
  const begun = { content: 'Hi' };
  upstream.script(upstreams.completions[1], { stream: [chunk(begun)], then: 'cut' });
  upstream.script(upstreams.messages[1], {
    stream: [
      messageStart(),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    ],
    then: 'cut',
  });
  const last = async (path: string, body: object) => eventsIn(await client.call('POST', path, body));
  const [model, other] = [upstreams.completions[0], upstreams.messages[0]];
  const completions = await last('/v1/chat/completions', { model: other, messages: hello, stream: true });
  const messages = await last('/v1/messages', { model, max_tokens: 10, messages: hello, stream: true });
  const responses = await last('/v1/responses', { model, input: 'Hello', stream: true });
  const gemini = await last(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents });
  const what = 'a stream that breaks off';
  return [
    { what, type: openai, value: completions.at(-1) },
    { what, type: anthropic, value: messages.at(-1) },
    ...responses.slice(-2).map((value) => ({ what, type: 'OpenAI.Responses.ResponseStreamEvent', value })),
    { what, type: google, value: gemini.at(-1) },
  ];
}
