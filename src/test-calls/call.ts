import type { JsonObject, Kind } from '../catalog/model.ts';
import { freezePricing, type Units } from '../catalog/price.ts';
import { costOf, unitsOf } from '../chat/price.ts';
import { openGuard } from '../net/guard.ts';
import { newId } from '../lib/ids.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { exact } from '../money/money.ts';
import type { ChatProvider, ChatReply, WholeCall } from '../providers/provider.ts';
import { renderAnswer } from '../styles/answer.ts';
import type { ChatRequest, Codec } from '../styles/codec.ts';
import { completions } from '../styles/completions/codec.ts';
import { renderModerations } from '../styles/moderations.ts';
import { quirksOf } from '../styles/quirks.ts';
import { readRanking } from '../styles/rerank.ts';
import { readChatRequest, upstreamBody } from '../styles/request.ts';
import { chargedUsage } from '../styles/usage.ts';
import { TestCallError } from './plan.ts';
import { nothing, whyNot, type TestCall, type TestCallJob } from './run.ts';

const answer_bytes_max = 16_777_216;

/** Asks a model that answers at once, once. */
export async function runTestCall(job: TestCallJob): Promise<TestCall> {
  const provider = job.adapter.openChat?.(job.provider, { guard: openGuard(), prober: job.prober });
  if (!provider) throw new TestCallError(`The adapter ${job.provider.adapter} does not support ${job.model.kind}.`);
  const begun_at_ms = performance.now();
  const signal = AbortSignal.timeout(job.route.timeout_ms.total);
  try {
    const result = await callOf(job.model.kind)(job, provider, signal);
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

function callOf(kind: Kind): typeof chat {
  if (kind === 'embedding') return embed;
  if (kind === 'rerank') return rerank;
  return kind === 'moderation' ? moderate : chat;
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
  const { route, sent } = job;
  if (!provider.embed) throw new TestCallError(`${route.provider} makes no embeddings.`);
  const reply = await provider.embed(wholeCall(job, { input: String(sent['message']) }), signal);
  const whole: { data?: { embedding?: unknown }[]; usage?: { prompt_tokens?: unknown } } = JSON.parse(
    (await bytesOf(reply)).toString(),
  );
  const vector = whole.data?.[0]?.embedding;
  const tokens = whole.usage?.prompt_tokens;
  const text = Array.isArray(vector) ? `A vector of ${vector.length} numbers.` : 'An answer without a vector.';
  return { text, ...costIn(job, typeof tokens === 'number' ? { input_token: String(tokens) } : {}) };
}

/** The message is the query, and the first of the documents. */
async function rerank(job: TestCallJob, provider: ChatProvider, signal: AbortSignal): Promise<TestCallResult> {
  const { route, sent } = job;
  if (!provider.rerank) throw new TestCallError(`${route.provider} ranks nothing.`);
  const query = String(sent['message']);
  const documents = [query, 'A red bicycle stands in front of the house.'];
  const request = { documents, count: documents.length };
  const reply = await provider.rerank(wholeCall(job, { query, documents, top_n: documents.length }), signal);
  const { results, input_tokens, search_units } = readRanking(await bytesOf(reply), request);
  const scores = results.map(({ index, relevance_score }) => `document ${index + 1} scores ${relevance_score}`);
  const units = {
    ...(input_tokens !== undefined && { input_token: String(input_tokens) }),
    ...(search_units !== undefined && { search_unit: String(search_units) }),
  };
  return { text: `Of two documents, ${scores.join(', ')}.`, ...costIn(job, units) };
}

async function moderate(job: TestCallJob, provider: ChatProvider, signal: AbortSignal): Promise<TestCallResult> {
  const { model, route, sent } = job;
  if (!provider.moderate) throw new TestCallError(`${route.provider} moderates nothing.`);
  const reply = await provider.moderate(wholeCall(job, { input: String(sent['message']) }), signal);
  const named = { model: model.id, id: newId('req') };
  const { bytes, input_tokens } = renderModerations({ count: 1 }, await bytesOf(reply), named);
  const whole: { results?: { flagged?: unknown }[] } = JSON.parse(bytes.toString());
  const text = whole.results?.[0]?.flagged === true ? 'The message is flagged.' : 'The message is not flagged.';
  return { text, ...costIn(job, input_tokens === undefined ? {} : { input_token: String(input_tokens) }) };
}

function wholeCall({ route }: TestCallJob, body: JsonObject): WholeCall {
  const { upstream_model: model, timeout_ms, options } = route;
  return { request_id: newId('req'), model, body: { model, ...body }, timeout_ms, options };
}

/** The cost is null where the upstream does not report all that has a price. */
function costIn({ model, currency }: TestCallJob, reported: Units): Pick<TestCallResult, 'units' | 'cost'> {
  const pricing = freezePricing(model, {}, currency, { currencies: new Map([[currency, '1']]) });
  const units: Units = { request: '1', ...reported };
  const is_whole = pricing.rows.every(({ unit }) => units[unit] !== undefined);
  return { units: reported, cost: is_whole ? exact(costOf(pricing, units)) : null };
}

async function bytesOf({ body }: ChatReply): Promise<Buffer> {
  return readBytes(body, answer_bytes_max);
}
