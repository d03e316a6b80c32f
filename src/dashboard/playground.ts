import { refuseBlocked } from '../api/blocked.ts';
import { answerChat, body_limit_bytes as chat_body_limit_bytes } from '../api/chat.ts';
import { answerModeration, type ModeratingParts } from '../api/moderations.ts';
import { answerRerank } from '../api/rerank.ts';
import { priceModerationRequest } from '../chat/moderate.ts';
import { priceRerankRequest } from '../chat/rerank.ts';
import type { Answer, Call } from '../http/endpoint.ts';
import { estimate, estimateTask, estimateHold, type CostEstimate } from '../api/estimate.ts';
import { handleUpload } from '../api/uploads.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { priceChatRequest, type PricedCall } from '../chat/priced-request.ts';
import { planHold } from '../chat/plan.ts';
import { ApiError } from '../errors.ts';
import { withTempFiles } from '../files/temp-files.ts';
import { createTask, priceTaskRequest } from '../tasks/create.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { playgroundCaller, takeWindow } from './playground-key.ts';
import type { CallerCodec } from '../styles/codec.ts';
import { completions } from '../styles/completions/codec.ts';
import { messages } from '../styles/messages/codec.ts';
import type { EstimateView, FieldProblem } from './views/playground.ts';

/** The playground: what `/v1` does for a key, done for a person by the account's key "Playground". */

const { body_limit_bytes = 20_000_000 } = estimate;

/** Returns the hold of a run, by the code that makes it. Problems of the input are a response here, not an error. */
export const estimate_run = account_endpoint(
  'POST',
  '/estimate',
  'run',
  async (app, call) => {
    const caller = await playgroundCaller(app, call);
    await takeWindow(app, caller, 'other');
    return estimateAnswer(call, estimateTask(app, caller, call));
  },
  { body_limit_bytes, limited: 'own' },
);

/** Whoever is limited to projects sees whether the money is enough, and not how much there is. */
async function estimateAnswer({ scope }: AccountCall, estimating: Promise<CostEstimate>) {
  const view = await estimating.then(
    ({ paused_until, available, ...estimate_view }): EstimateView => {
      const left = scope ? null : available;
      return { ok: true, ...estimate_view, available: left, paused_until: paused_until?.toISOString() ?? null };
    },
    (error: unknown): EstimateView => ({ ok: false, errors: problemsOf(error) }),
  );
  return { status: 200, body: view };
}

/** Returns the problems that the caller can mend, with their fields; throws every other error on. */
function problemsOf(error: unknown): FieldProblem[] {
  if (!(error instanceof ApiError) || (error.status !== 400 && error.status !== 422)) throw error;
  const { message, extras } = error;
  const { details, param } = extras;
  return details && details.length > 0 ? [...details] : [{ field: param ?? '', message }];
}

/** Creates a task as POST /v1/generate does. */
export const generate_run = account_endpoint(
  'POST',
  '/generate',
  'run',
  async (app, call) => {
    const caller = await playgroundCaller(app, call);
    await takeWindow(app, caller, 'generate');
    refuseBlocked(caller);
    const { ref } = await withTempFiles(app, caller.account.id, call, async (spool) => {
      const request = await priceTaskRequest(app, caller, call.body ?? {}, { spool });
      return createTask(app, caller, request, undefined);
    });
    return { status: 202, body: { id: ref.task_id } };
  },
  { body_limit_bytes, limited: 'own' },
);

/** Keeps a file for inputs as POST /v1/files does. */
export const upload_for_run = account_endpoint(
  'POST',
  '/files',
  'run',
  async (app, call) => {
    const keyed = await withCaller(app, call);
    await takeWindow(app, keyed.caller, 'other');
    return handleUpload(app, keyed);
  },
  { form: true, limited: 'own' },
);

/** A chat call in the style that its address names, streamed if it asks for that. */
const chatIn = (style: CallerCodec) =>
  account_endpoint(
    'POST',
    `/chat/${style.name}`,
    'run',
    async (app, call) => {
      const keyed = await withCaller(app, call);
      await takeWindow(app, keyed.caller, 'chat');
      return answerChat(app, style, keyed);
    },
    { body_limit_bytes: chat_body_limit_bytes, long_integers: true, limited: 'own' },
  );

/** Returns the hold of a chat call: its input and its longest possible output. */
const chatEstimateIn = (style: CallerCodec) =>
  account_endpoint(
    'POST',
    `/chat/${style.name}/estimate`,
    'run',
    (app, call) => estimateCall(app, call, (keyed) => priceChatRequest(app, style, keyed)),
    { body_limit_bytes: chat_body_limit_bytes, long_integers: true, limited: 'own' },
  );

type EstimateParts = Parameters<typeof estimateHold>[0] & Parameters<typeof takeWindow>[0];

/** Returns the hold of a call, or the problems of its body. */
async function estimateCall(
  app: EstimateParts,
  call: AccountCall,
  price: (keyed: Call) => PricedCall,
): Promise<Answer> {
  const keyed = await withCaller(app, call);
  await takeWindow(app, keyed.caller, 'other');
  const estimating = async () => {
    const priced = price(keyed);
    return estimateHold(app, keyed.caller, (funds) => {
      const plan = planHold(priced, funds);
      return 'outcome' in plan ? plan.least : plan.amount;
    });
  };
  return estimateAnswer(call, estimating());
}

/** A chat style of the page each (`ChatStyle`). */
export const chat_runs = [completions, messages].flatMap((style) => [chatIn(style), chatEstimateIn(style)]);

type WholeRun = {
  path: '/rerank' | '/moderations';
  answer: (app: ModeratingParts, call: Call) => Promise<Answer>;
  price: (app: ModeratingParts, call: Call) => PricedCall;
};

/** Calls that are answered in one piece, as on `/v1`. */
const whole_calls: readonly WholeRun[] = [
  { path: '/rerank', answer: answerRerank, price: (app, call) => priceRerankRequest(app.catalog, call) },
  { path: '/moderations', answer: answerModeration, price: (app, call) => priceModerationRequest(app, call) },
];

const whole_options = { body_limit_bytes: chat_body_limit_bytes, long_integers: true, limited: 'own' } as const;

/** Runs of rerank and moderation models, and their holds. */
export const whole_runs = whole_calls.flatMap(({ path, answer, price }) => [
  account_endpoint(
    'POST',
    path,
    'run',
    async (app, call) => {
      const keyed = await withCaller(app, call);
      await takeWindow(app, keyed.caller, 'chat');
      return answer(app, keyed);
    },
    whole_options,
  ),
  account_endpoint(
    'POST',
    `${path}/estimate`,
    'run',
    (app, call) => estimateCall(app, call, (keyed) => price(app, keyed)),
    whole_options,
  ),
]);

async function withCaller(parts: { db: Db; clock: Clock }, call: AccountCall): Promise<Call> {
  return Object.assign(call, { caller: await playgroundCaller(parts, call) });
}
