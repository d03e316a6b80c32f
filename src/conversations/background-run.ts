import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { ContentLog } from '../contents/content-log.ts';
import { findAccount } from '../accounts/accounts.ts';
import type { Caller } from '../accounts/authenticate.ts';
import type { JsonObject } from '../catalog/model.ts';
import type { Pricing } from '../catalog/price.ts';
import type { ChatCaller } from '../chat/attempt.ts';
import { keepPrice } from '../chat/call-prices.ts';
import { runCall, takeCallPermit, type AttemptRoute, type CallParts, type EndedCall } from '../chat/call.ts';
import { attemptWithLinks, type LinkedParts } from '../chat/linked.ts';
import type { ChosenModel } from '../chat/candidates.ts';
import { tokensWithin, type TokensByModel } from '../chat/plan.ts';
import {
  candidatesOf,
  forgetBodies,
  priceChatRequest,
  type PricedChatRequest,
  type PricingParts,
} from '../chat/priced-request.ts';
import { countCall, rowOf } from '../chat/record.ts';
import { RequestMemory } from '../chat/request-memory.ts';
import { withUploads, type UploadParts } from '../chat/uploads.ts';
import { ApiError } from '../errors.ts';
import { failpoint } from '../lib/failpoint.ts';
import { acquireBodyMemory } from '../limits/body-memory.ts';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import type { Job, Outcome } from '../queue/queue.ts';
import { openHoldMost } from '../money/open-hold.ts';
import { routeName } from '../routing/health.ts';
import type { CallerCodec, Codec, StateHalf } from '../styles/codec.ts';
import type { Usage } from '../styles/conversation.ts';
import { readRef } from '../tasks/task.ts';
import { endResponse, endWithout, finishEnded, workerDied, type EndParts, type Verdict } from './background-end.ts';
import { EventsWriter } from './background-events.ts';
import {
  addEvents,
  claimSent,
  claimUnsent,
  findBackground,
  noteSent,
  readBackground,
  readBackgroundResponse,
  requestBytes,
  responses_channel,
  saySeen,
  suspect,
  type BackgroundRow,
} from './background.ts';
import { withSummaries, type SummaryParts } from './compactions.ts';
import type { KeptFacts } from './continue.ts';

/** The parts of the app that making a response in the background takes. `runs`: aborted when this worker stops. */
export type RunParts = EndParts &
  SummaryParts &
  PricingParts &
  LinkedParts &
  CallParts &
  UploadParts & {
    readonly log: Logger;
    readonly limits: { readonly body_memory: Semaphore };
    readonly runs: AbortSignal;
    readonly contents: Pick<ContentLog, 'begin'>;
  };

/** The request of a response, as it waits for its worker. */
export type StoredRequest = {
  caller: Caller;
  body: JsonObject;
  echo: JsonObject;
  facts: KeptFacts;
  pricing: Pricing;
  /** Its models with their prices, if they are several or an operator's choice. */
  chosen?: readonly [FrozenModel, ...FrozenModel[]];
};

type FrozenModel = ChosenModel & { readonly pricing: Pricing };

const seen_every_ms = 2_000;

/** A worker that said nothing for so long may be dead, and is if it says nothing for as long again. */
const silent_ms = 10_000;
const suspected_ms = 6_000;

/** Time until the next try where there is no room, and where a key has as many calls as it may. */
const again_ms = 1_000;

/** As of bodies. */
const counted_bytes_min = 65_536;

/** The style whose responses are made in the background. */
type Style = { codec: CallerCodec; state: StateHalf };

function styleOf(styles: readonly Codec[]): Style {
  for (const codec of styles) {
    const { caller } = codec;
    if (caller?.state) return { codec: codec as CallerCodec, state: caller.state };
  }
  throw new Error('no style has responses in the background');
}

/** Works on a response: makes it, or ends what a worker that died has left of it. */
export async function runBackground(parts: RunParts, job: Job): Promise<Outcome> {
  const { account_id, task_id: id } = readRef(job.data);
  const row = await findBackground(parts, { account_id, id });
  if (!row || row.done_at) return 'done';
  if (row.completed_at) {
    await finishEnded(parts, row);
    return 'done';
  }
  const style = styleOf(parts.styles);
  if (row.sent_at) return takeOver(parts, style, row);
  const is_late = parts.clock.now() > row.begin_before.getTime();
  if (!row.cancel_requested && !is_late) return begin(parts, style, row);
  const late = new ApiError('timeout', 'No worker began this response in time. It costs nothing: try again.');
  const claim = randomUUID();
  if (await claimUnsent(parts, row, claim))
    await endWithout(parts, style.state.background, row, claim, row.cancel_requested ? 'cancelled' : late);
  return { again_after_ms: again_ms };
}

/** An upstream was asked, and its worker said nothing since: it is given time to say that it is there. */
async function takeOver(parts: RunParts, { state }: Style, row: BackgroundRow): Promise<Outcome> {
  const now = parts.clock.now();
  const silent_for_ms = now - (row.seen_at?.getTime() ?? 0);
  if (silent_for_ms < silent_ms) return { again_after_ms: silent_ms - silent_for_ms };
  if (!row.suspected_at) {
    await suspect(parts, row, new Date(now));
    return { again_after_ms: suspected_ms };
  }
  const left_ms = row.suspected_at.getTime() + suspected_ms - now;
  if (left_ms > 0) return { again_after_ms: left_ms };
  const claim = randomUUID();
  if (await claimSent(parts, row, claim)) {
    parts.log.warn({ account_id: row.account_id, request_id: row.request_id }, 'the worker of a response has died');
    await endWithout(parts, state.background, row, claim, row.cancel_requested ? 'cancelled' : workerDied());
  }
  return { again_after_ms: again_ms };
}

async function begin(parts: RunParts, style: Style, row: BackgroundRow): Promise<Outcome> {
  if (parts.runs.aborted) return { again_after_ms: 0 };
  const memory = new RequestMemory();
  try {
    if (!(await takeMemory(parts, row, memory))) return { again_after_ms: again_ms };
    const json = await readBackground(parts, row, 'request');
    const claim = randomUUID();
    if (json === undefined) {
      const lost = new ApiError('internal_error', 'The stored request of this response cannot be read. Send it again.');
      if (await claimUnsent(parts, row, claim)) await endWithout(parts, style.state.background, row, claim, lost);
      return { again_after_ms: again_ms };
    }
    const request = JSON.parse(json) as StoredRequest;
    const permit = await callPermitOf(parts, request.caller);
    if (!permit) return { again_after_ms: again_ms * (1 + Math.random()) };
    try {
      if (!(await claimUnsent(parts, row, claim))) return { again_after_ms: again_ms };
      await failpoint('response.claimed');
      return await new Run(parts, { style, row, claim, request, memory }).work(permit);
    } finally {
      permit.release();
    }
  } finally {
    memory.release();
  }
}

/** Returns false where there is no memory for the request now. */
async function takeMemory(parts: RunParts, row: BackgroundRow, memory: RequestMemory): Promise<boolean> {
  const bytes = await requestBytes(parts, row);
  if (bytes < counted_bytes_min) return true;
  const waiting = { timeout_ms: again_ms, signal: parts.runs };
  const permit = await acquireBodyMemory(parts.limits.body_memory, row.account_id, bytes, waiting).catch(
    (error: unknown) => {
      if (error instanceof ApiError) return undefined;
      throw error;
    },
  );
  if (permit) memory.add(() => permit.release());
  return permit !== undefined;
}

/** Takes the permit of a call; undefined if the key has as many calls as it may have at once. */
async function callPermitOf(parts: RunParts, caller: Caller): Promise<Permit | undefined> {
  try {
    return await takeCallPermit(parts, { caller });
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** The response of a run, under a claim of this worker. */
type RunFacts = { style: Style; row: BackgroundRow; claim: string; request: StoredRequest; memory: RequestMemory };

/** One response that this worker makes. */
class Run {
  readonly #parts: RunParts;
  readonly #style: Style;
  readonly #row: BackgroundRow;
  readonly #claim: string;
  readonly #request: StoredRequest;
  readonly #memory: RequestMemory;
  readonly #gone = new AbortController();
  readonly #stop = new AbortController();
  #has_sent = false;
  #is_cancelled = false;
  #is_lost = false;
  /** Nothing was sent, and the database could not be told that it would be. */
  #unsent: { error: unknown } | undefined;
  #answer: JsonObject | undefined;

  constructor(parts: RunParts, { style, row, claim, request, memory }: RunFacts) {
    this.#parts = parts;
    this.#style = style;
    this.#row = row;
    this.#claim = claim;
    this.#request = request;
    this.#memory = memory;
  }

  async work(permit: Permit): Promise<Outcome> {
    const { background } = this.#style.state;
    let priced: PricedChatRequest;
    try {
      priced = await this.#price();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await endWithout(this.#parts, background, this.#row, this.#claim, error);
      return { again_after_ms: again_ms };
    }
    const onStop = () => this.#abort();
    this.#parts.runs.addEventListener('abort', onStop);
    if (this.#parts.runs.aborted) onStop();
    const beat = setInterval(() => void this.#saySeen(), seen_every_ms);
    try {
      await this.#call(priced, permit);
    } catch (error) {
      if (this.#has_sent || !(error instanceof ApiError)) throw error;
      await endWithout(this.#parts, background, this.#row, this.#claim, error); // no route, before anything was sent
    } finally {
      clearInterval(beat);
      this.#parts.runs.removeEventListener('abort', onStop);
    }
    return { again_after_ms: this.#parts.runs.aborted ? 0 : again_ms };
  }

  /** The same checks as of every call; prices are those of the moment in which it was made. */
  async #price(): Promise<PricedChatRequest> {
    const { account_id, request_id } = this.#row;
    const { caller, body, echo, chosen } = this.#request;
    const account = await findAccount(this.#parts.db, account_id);
    if (account?.status !== 'active') throw new ApiError('account_blocked', 'This account is blocked.');
    const { codec, state } = this.#style;
    const readable = await withSummaries(this.#parts, state, account_id, body);
    const sent = { account_id, body: readable, gone: this.#gone.signal };
    const whole = (await withUploads(this.#parts, codec, sent, this.#memory)) ?? readable;
    const call = { caller, request_id, body: { ...whole, stream: true }, echo, ...(chosen && { chosen }) };
    const priced = priceChatRequest(this.#parts, codec, call);
    this.#memory.add(() => forgetBodies(priced));
    return this.#frozen(priced);
  }

  /** The call at the prices of the moment in which it was made. */
  #frozen(priced: PricedChatRequest): PricedChatRequest {
    const { chosen, pricing: first_pricing } = this.#request;
    const prices = new Map(chosen?.map(({ id, pricing }) => [id, pricing]));
    const freeze = (each: PricedChatRequest) => {
      const pricing = prices.get(each.model.id) ?? first_pricing;
      return { ...each, pricing, ...(chosen && { hold_pricing: pricing }) };
    };
    const { fallbacks } = priced;
    return { ...freeze(priced), ...(fallbacks && { fallbacks: fallbacks.map(freeze) }) };
  }

  /** The output that the hold pays, by model. Throws ApiError 402 if it pays none of the models that are left. */
  async #tokens(priced: PricedChatRequest): Promise<TokensByModel> {
    const { account_id, request_id, max_tokens } = this.#row;
    if (!this.#request.chosen) return new Map([[priced.model.id, max_tokens]]);
    const money = await openHoldMost(this.#parts.db, account_id, request_id);
    const tokens = candidatesOf(priced).flatMap((each): [string, number][] => {
      const affordable = tokensWithin(each, money);
      return affordable === undefined ? [] : [[each.model.id, affordable]];
    });
    if (tokens.length > 0) return new Map(tokens);
    throw new ApiError(
      'insufficient_balance',
      'The hold of this response pays none of the models that are still offered. Send the request again.',
    );
  }

  async #call(priced: PricedChatRequest, permit: Permit): Promise<void> {
    const { account_id, request_id, is_streamed, model } = this.#row;
    const max_tokens = await this.#tokens(priced);
    const writer = new EventsWriter(this.#style.state.background, 2, is_streamed ? this.#keepEvents : undefined);
    const caller: ChatCaller = {
      headers: {},
      gone: this.#gone.signal,
      memory: this.#memory,
      keep: async (answer) => void (this.#answer = answer),
    };
    const parts = { ...this.#parts, stopping: AbortSignal.any([this.#parts.stopping, this.#stop.signal]) };
    const attempt: AttemptRoute<PricedChatRequest> = async (paid, route, context) => {
      await this.#noteSent({ provider: route.provider, route: routeName(paid.model.id, route.id) }, writer);
      return attemptWithLinks(parts, paid, route, context);
    };
    const key_id = priced.caller.key.id;
    const hold = { account_id, key_id, ref: request_id, amount: 0n, model, kind: priced.model.kind };
    const owner = {
      permit,
      held: { hold, max_tokens },
      end: (ended: EndedCall) => this.#end(writer, ended),
    };
    const content = this.#parts.contents.begin(this.#style.codec, priced);
    try {
      await runCall(parts, priced, attempt, { caller, writer, owner });
      content?.end(this.#answer && Buffer.from(JSON.stringify(this.#answer)));
    } finally {
      content?.drop();
    }
  }

  readonly #keepEvents = async (content: Parameters<typeof addEvents>[3]): Promise<boolean> => {
    const is_kept = await addEvents(this.#parts, this.#row, this.#claim, content);
    if (is_kept) this.#parts.notifier.notify(responses_channel, this.#row.id);
    return is_kept;
  };

  /** Before an upstream is asked: from here on nobody else makes this response. */
  async #noteSent(sent: { provider: string; route: string }, writer: EventsWriter): Promise<void> {
    let is_noted: boolean;
    try {
      is_noted = await noteSent(this.#parts, this.#row, this.#claim, {
        ...sent,
        now: new Date(this.#parts.clock.now()),
      });
    } catch (error) {
      if (!this.#has_sent) this.#unsent = { error };
      throw error;
    }
    if (!is_noted) {
      this.#is_lost = true;
      throw new ApiError('internal_error', 'Another worker has taken over this response.');
    }
    if (!this.#has_sent) {
      const stored = await readBackgroundResponse(this.#parts, this.#row);
      if (stored)
        writer.add('response.in_progress', {
          response: this.#style.state.background.inStatus(stored.response, 'in_progress'),
        });
    }
    this.#has_sent = true;
    this.#parts.notifier.notify(responses_channel, this.#row.id);
    await failpoint('response.sent');
  }

  async #saySeen(): Promise<void> {
    try {
      const now = new Date(this.#parts.clock.now());
      const { is_own, cancel_requested } = await saySeen(this.#parts, this.#row, this.#claim, now);
      if (!is_own) {
        this.#is_lost ||= (await findBackground(this.#parts, this.#row))?.claim !== this.#claim;
        if (this.#is_lost) this.#abort();
      } else if (cancel_requested && !this.#is_cancelled) {
        this.#is_cancelled = true;
        this.#gone.abort();
      }
    } catch {
      // The database is away: the next word may be heard.
    }
  }

  /** Lets the upstream go at once. */
  #abort(): void {
    this.#stop.abort(new Error('the worker stops'));
    this.#gone.abort();
  }

  async #end(writer: EventsWriter, ended: EndedCall): Promise<void> {
    if (this.#is_lost) return;
    if (this.#unsent) throw this.#unsent.error;
    const is_stopped = this.#parts.runs.aborted && !this.#answer;
    if (is_stopped && !this.#has_sent) return; // another worker begins it
    const { priced, outcome, created_at, total_ms } = ended;
    if (is_stopped) outcome.error ??= workerDied();
    const charge = is_stopped ? undefined : ended.charge;
    const upstream = is_stopped && ended.upstream ? unknownOf(ended.upstream) : ended.upstream;
    const verdict = await this.#verdict(outcome.error, writer.output(), charge?.usage);
    const finished = { outcome, charge, charged: charge?.cost ?? 0n, upstream_cost: null, created_at, total_ms };
    countCall(this.#parts.metrics, priced, finished);
    keepPrice(this.#parts, priced.pricing);
    const type = this.#style.state.background.lastEventType(verdict.status);
    const is_ours = await endResponse(this.#parts, this.#row, this.#claim, {
      ...verdict,
      facts: this.#request.facts,
      events: await writer.last(type, { response: verdict.response }),
      ended: {
        currency: priced.caller.account.currency,
        previous_id: this.#request.facts.previous_id,
        charge: charge ?? null,
        upstream: upstream ?? null,
        record: rowOf(priced, finished),
        model: priced.model.id,
      },
    });
    if (!is_ours) this.#is_lost = true;
  }

  /** `output`: what has come, which is charged as `usage`. */
  async #verdict(error: ApiError | undefined, output: JsonObject[], usage: Usage | undefined): Promise<Verdict> {
    const { background } = this.#style.state;
    const stored = await readBackgroundResponse(this.#parts, this.#row);
    const queued = stored?.response ?? { id: this.#row.id, object: 'response', model: this.#row.model, output: [] };
    if (this.#answer)
      return { status: background.statusOf(this.#answer), response: background.completed(this.#answer, queued) };
    const broken = background.broken(queued, output, usage);
    if (this.#is_cancelled) return { status: 'cancelled', response: background.inStatus(broken, 'cancelled') };
    return { status: 'failed', response: background.failed(broken, error ?? workerDied()) };
  }
}

function unknownOf({ provider, route }: { provider: string; route: string }) {
  return { basis: 'unknown' as const, provider, route };
}
