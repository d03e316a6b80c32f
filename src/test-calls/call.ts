import { freezePricing } from '../catalog/price.ts';
import { costOf, unitsOf } from '../chat/price.ts';
import { openGuard } from '../net/guard.ts';
import { newId } from '../lib/ids.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { exact } from '../money/money.ts';
import type { ChatProvider, ChatReply } from '../providers/provider.ts';
import { renderAnswer } from '../styles/answer.ts';
import type { ChatRequest, Codec } from '../styles/codec.ts';
import { completions } from '../styles/completions/codec.ts';
import { quirksOf } from '../styles/quirks.ts';
import { readChatRequest, upstreamBody } from '../styles/request.ts';
import { chargedUsage } from '../styles/usage.ts';
import { TestCallError } from './plan.ts';
import { nothing, whyNot, type TestCall, type TestCallJob } from './run.ts';

const answer_bytes_max = 16_777_216;

/** Asks a chat or an embedding model once. */
export async function runCall(job: TestCallJob): Promise<TestCall> {
  const provider = job.adapter.openChat?.(job.provider, { guard: openGuard(), prober: job.prober });
  if (!provider) throw new TestCallError(`The adapter ${job.provider.adapter} does not support ${job.model.kind}.`);
  const begun_at_ms = performance.now();
  const signal = AbortSignal.timeout(job.route.timeout_ms.total);
  try {
    const result = await (job.model.kind === 'chat' ? chat(job, provider, signal) : embed(job, provider, signal));
    return { ...nothing, outcome: 'done', ...result, steps: [], took_ms: Math.round(performance.now() - begun_at_ms) };
  } catch (error) {
    return {
      ...nothing,
      ...whyNot(error),
      steps: [],
      took_ms: Math.round(performance.now() - begun_at_ms),
    };
  } finally {
    await provider.close?.();
  }
}

type TestCallResult = Pick<TestCall, 'text' | 'units' | 'cost'>;

async function chat(job: TestCallJob, provider: ChatProvider, signal: AbortSignal): Promise<TestCallResult> {
  const { model, route, sent } = job;
  const [style] = provider.styles;
  if (style === undefined) throw new TestCallError(`${route.provider} speaks no style.`);
  const content = String(sent['message']);
  // What a call without max_tokens is sent: some upstreams refuse more than they can give.
  const { max_output_tokens, default_output_tokens = 4_096 } = model.limits;
  const max_tokens = max_output_tokens ?? default_output_tokens;
  const request = readChatRequest(completions, { model: model.id, max_tokens, messages: [{ role: 'user', content }] });
  const quirks = quirksOf(route.options);
  const { body } = upstreamBody(request, { style, model: route.upstream_model, max_tokens, quirks });
  const call = { request_id: newId('req'), style, model: route.upstream_model, body, stream: false, headers: {} };
  const reply = await provider.send({ ...call, timeout_ms: route.timeout_ms, options: route.options }, signal);
  return readAnswer(job, request, style, await bytesOf(reply));
}

function readAnswer(
  { model, currency }: TestCallJob,
  request: ChatRequest,
  style: Codec,
  bytes: Buffer,
): TestCallResult {
  const named = { model: model.id, request_id: newId('req'), created: Math.floor(Date.now() / 1000) };
  const options = { ...named, input_tokens_estimated: 0 };
  const answer = renderAnswer(request, style, bytes, options);
  const whole: { choices?: { message?: { content?: unknown } }[] } = JSON.parse(answer.bytes.toString());
  const text = whole.choices?.[0]?.message?.content;
  const pricing = freezePricing(model, {}, currency, { currencies: new Map([[currency, '1']]) });
  const { usage, is_counted } = chargedUsage(answer.usage, answer.delivered, { input_tokens_counted: 0 });
  const units = is_counted ? {} : unitsOf(pricing, usage);
  return {
    text: typeof text === 'string' ? text : '',
    units,
    cost: is_counted ? null : exact(costOf(pricing, units)),
  };
}

async function embed(job: TestCallJob, provider: ChatProvider, signal: AbortSignal): Promise<TestCallResult> {
  const { model, route, sent, currency } = job;
  if (!provider.embed) throw new TestCallError(`${route.provider} makes no embeddings.`);
  const body = { model: route.upstream_model, input: String(sent['message']) };
  const call = { request_id: newId('req'), model: route.upstream_model, body };
  const reply = await provider.embed({ ...call, timeout_ms: route.timeout_ms, options: route.options }, signal);
  const whole: { data?: { embedding?: unknown }[]; usage?: { prompt_tokens?: unknown } } = JSON.parse(
    (await bytesOf(reply)).toString(),
  );
  const vector = whole.data?.[0]?.embedding;
  const tokens = whole.usage?.prompt_tokens;
  const pricing = freezePricing(model, {}, currency, { currencies: new Map([[currency, '1']]) });
  const units = typeof tokens === 'number' ? { input_token: String(tokens) } : {};
  return {
    text: Array.isArray(vector) ? `A vector of ${vector.length} numbers.` : 'An answer without a vector.',
    units,
    cost: typeof tokens === 'number' ? exact(costOf(pricing, units)) : null,
  };
}

async function bytesOf({ body }: ChatReply): Promise<Buffer> {
  return readBytes(body, answer_bytes_max);
}
