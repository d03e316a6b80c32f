import { Buffer } from 'node:buffer';
import type { Json, JsonObject } from '../../../catalog/model.ts';
import { idIn, runIdIn, statusIn, unanswered } from '../../http/answers.ts';
import type { Answer } from '../../http/http.ts';
import { goingOn, readPollState, unknownRun, type PollInterval } from '../../http/poll-state.ts';
import { countIn, objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { upstreamErrorOf, type RunTrouble } from '../../http/refusal.ts';
import type { RunContext, RunFile, RunRequest, RunState } from '../../provider.ts';
import { bodyOf } from './body.ts';
import { readUsage } from './tokens.ts';
import { interaction_hints, isBackground, type InteractionsUpstream } from './upstream.ts';

/** The official guide asks every ten seconds; the first videos are there after thirty. */
const poll_interval: PollInterval = { min_ms: 5_000, max_ms: 15_000 };

/** A video of fifteen seconds in base64. */
const answer_bytes_max = 268_435_456;

/** Creates an interaction. It ends in its answer, or is asked for later. */
export async function startInteraction(
  upstream: InteractionsUpstream,
  run: RunRequest,
  signal: AbortSignal,
): Promise<RunState> {
  const json = bodyOf(upstream, run);
  const answer = await upstream.call({ method: 'POST', path: upstream.path, json, signal, answer_bytes_max });
  if (!answer.ok) throw upstream.refusal(answer, { ...interaction_hints, is_synchronous: !isBackground(run) });
  const interaction = answer.object();
  const refOf = () => ({ id: runIdIn(interaction, 'id'), started_at_ms: run.now_ms });
  return stateOf(upstream, run, interaction, (phase) => goingOn(refOf(), phase, run.now_ms, poll_interval));
}

export async function pollInteraction(
  upstream: InteractionsUpstream,
  run: RunContext,
  ref: Json,
  signal: AbortSignal,
): Promise<RunState> {
  const state = readPollState(ref);
  const answer = await get(upstream, ref, signal);
  if (isUnknown(answer)) return unknownRun(state, run.now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  return stateOf(upstream, run, answer.object(), (phase) => goingOn(state, phase, run.now_ms, poll_interval));
}

function get(upstream: InteractionsUpstream, ref: Json, signal: AbortSignal): Promise<Answer> {
  return upstream.call({ method: 'GET', path: pathOf(upstream, ref), signal, answer_bytes_max });
}

function pathOf({ path }: InteractionsUpstream, ref: Json): string {
  return `${path}/${encodeURIComponent(idIn(readPollState(ref), 'id') ?? '')}`;
}

/** An id that it does not have is a 404, or a 400 of these words. Other 400s and 403s came about runs that were at work. */
function isUnknown(answer: Answer): boolean {
  if (answer.status === 404) return true;
  return answer.status === 400 && /invalid interaction (?:name|id)/i.test(upstreamErrorOf(answer.text()).message);
}

/**
 * Stops an interaction that waits: nothing says that one at work is not charged. Where it began in between, the answer
 * counts tokens, and it is taken as charged.
 */
export async function cancelInteraction(
  upstream: InteractionsUpstream,
  ref: Json,
  signal: AbortSignal,
): Promise<'stopped' | 'billed'> {
  const seen = await get(upstream, ref, signal);
  if (!seen.ok || statusIn(seen.object(), 'status') !== 'queued') return 'billed';
  const answer = await upstream.call({ method: 'POST', path: `${pathOf(upstream, ref)}/cancel`, signal });
  if (!answer.ok) return 'billed';
  const interaction = answer.object();
  const has_cost = (countIn(objectIn(interaction, 'usage'), 'total_output_tokens') ?? 0) > 0;
  return /^cancell?ed$/.test(statusIn(interaction, 'status')) && !has_cost ? 'stopped' : 'billed';
}

function stateOf(
  upstream: InteractionsUpstream,
  run: RunContext,
  interaction: JsonObject,
  onward: (phase: 'waiting' | 'running') => RunState,
): RunState {
  const status = statusIn(interaction, 'status');
  switch (status) {
    case 'queued':
      return onward('waiting');
    case 'completed':
      return resultOf(upstream, run, interaction);
    case 'failed':
    case 'cancelled':
    case 'canceled':
    case 'incomplete':
    case 'budget_exceeded':
    case 'requires_action': // nothing here answers it
    case 'requires_continuation': // a further paid request
      return failureOf(upstream, run, interaction, status);
    case '':
      throw new Error('the interaction has no status');
    default:
      return onward('running'); // in_progress
  }
}

/** A model that does not want to make something often completes with words alone. */
function resultOf(upstream: InteractionsUpstream, run: RunContext, interaction: JsonObject): RunState {
  const contents = outputsOf(interaction);
  const { upstream_cost, units } = readUsage(interaction, run);
  const cost = upstream_cost ? { upstream_cost } : {};
  const files = contents.filter((content) => content['type'] === run.kind).flatMap((one) => fileOf(upstream, one));
  if (files.length > 0) return { phase: 'done', files, ...(units && { units }), ...cost };
  const message = contents.flatMap((content) => textIn(content, 'text') ?? []).join(' ');
  const trouble = troubleIn(interaction);
  if (message === '' && trouble === undefined) return { phase: 'done', files: [], ...cost };
  const failed = upstream.failure({ message, ...trouble }, interaction_hints);
  if (trouble !== undefined || failed.type === 'content_policy_violation') return { ...failed, ...cost };
  const advice = `The model answered without ${run.kind === 'video' ? 'a video' : 'audio'}: change the prompt.`;
  return { ...failed, ...cost, type: 'invalid_request', message: advice };
}

/** The contents of all outputs of the model; an answer without steps has the last one beside them. */
function outputsOf(interaction: JsonObject): JsonObject[] {
  const steps = objectsIn(interaction, 'steps').filter((step) => step['type'] === 'model_output');
  const contents = steps.flatMap((step) => objectsIn(step, 'content'));
  const last = ['output_video', 'output_audio'].map((name) => objectIn(interaction, name));
  return contents.length > 0 ? contents : last;
}

/** Links are downloaded with the key, which goes to the upstream's own hosts only. */
function fileOf({ link, key }: InteractionsUpstream, content: JsonObject): RunFile[] {
  const data = textIn(content, 'data');
  if (data !== undefined) return [{ bytes: Buffer.from(data, 'base64') }];
  const uri = textIn(content, 'uri');
  if (uri === undefined || !/^https?:/i.test(uri)) return []; // a bucket of Google's
  const own = link(uri);
  if (own === undefined) return [{ url: uri }];
  const url = new URL(own);
  if (!url.searchParams.has('alt')) url.searchParams.set('alt', 'media'); // else it is the file's description
  return [{ url: url.href, credentials: { origin: url.origin, headers: key } }];
}

function failureOf(
  upstream: InteractionsUpstream,
  run: RunContext,
  interaction: JsonObject,
  status: string,
): RunState & { phase: 'failed' } {
  const { upstream_cost } = readUsage(interaction, run);
  const failed = upstream.failure(troubleIn(interaction) ?? { code: status }, interaction_hints);
  return { ...failed, ...(upstream_cost && { upstream_cost }) };
}

/** The error of an interaction, of one of its steps, or beside its faults. */
function troubleIn(interaction: JsonObject): RunTrouble | undefined {
  const own = objectIn(interaction, 'error');
  const steps = objectsIn(interaction, 'steps').map((step) => objectIn(step, 'error'));
  const errors = [own, ...steps, ...objectsIn(interaction, 'errors')];
  const error = errors.find((one) => Object.keys(one).length > 0);
  const reason = textIn(interaction, 'finish_reason');
  if (error === undefined && reason === undefined) return undefined;
  const code = [error && (textIn(error, 'status') ?? idIn(error, 'code')), reason].filter((word) => word !== undefined);
  return { code: code.join(' '), message: (error && textIn(error, 'message')) ?? '' };
}
