import { setTimeout as sleep } from 'node:timers/promises';
import { startTestApp, type Client, type TestApp } from '../../helpers/app.ts';
import { limits, mediaModel, required_prompt } from '../../helpers/catalog.ts';
import { flagged_prompt, predictions, queue, startSite, ways, type Site, type Way } from './site.ts';

/** While one provider fails in one way, for models that ask it first. */
export type Phase = { way: Way; failing: 'a' | 'b'; model: string };

/** A task as its caller sees it. */
export type TaskResult = { phase: Phase; prompt: string; currency: string; status: number; task: Ended };
type Ended = { id: string; status: string; cost: string; error: { type: string } | null };

export type Stage = {
  service: TestApp;
  a: Site;
  b: Site;
  clients: { [currency: string]: Client };
  phases: Phase[];
  stop(): Promise<void>;
};

/** Our costs of a run, in `currency`: at a, which reports 2.5 seconds of 0.001; at b, which reports nothing, by its row. */
export const costs = { a: { amount: '0.0025', currency: 'USD' }, b: { amount: '0.0032', currency: 'EUR' } } as const;
export const price = '0.03';
/** EUR for one USD, which is the base. */
export const rate = '0.87';

const flagged_share = 20;
const at_once = 24;

/** Then the provider that is to fail is known to work. */
const calm_tasks = 4;

/**
 * `lasting`: two models, of which the breakers remember earlier phases, and of four submits one works; else each
 * phase has a model of its own and fails whoever asks.
 */
export async function openStage(tasks: number, lasting: boolean): Promise<Stage> {
  process.env['TEST_TWO_KEY'] = 'key-0123456789';
  const a = await startSite(predictions);
  const b = await startSite(queue);
  const phases = ways.flatMap((way, i) =>
    (['a', 'b'] as const).map((failing): Phase => ({ way, failing, model: `test/${failing}-${lasting ? 0 : i}` })),
  );
  // Only what never answers or begins is to meet its limit; all else has the time that a busy machine takes.
  const startOf = ({ way }: Phase) => (lasting ? '10s' : way === 'silent' || way === 'never' ? '6s' : '30s');
  const models = new Map(phases.map((phase) => [phase.model, { failing: phase.failing, start: startOf(phase) }]));
  const service = await startTestApp({ yaml: yamlOf(a.url, b.url, models) });
  const credit = String(tasks);
  const clients = {
    USD: await service.client({ credit }),
    EUR: await service.client({ credit, currency: 'EUR' }),
  };
  const stop = async () => {
    await service.stop();
    await a.stop();
    await b.stop();
  };
  return { service, a, b, clients, phases, stop };
}

/** A model whose first route is that of the provider that fails, with the time that a run has to start there. */
type TwoRoutes = { failing: 'a' | 'b'; start: string };

function yamlOf(a: string, b: string, models: ReadonlyMap<string, TwoRoutes>): string {
  const route = {
    a: (limit: string) =>
      `{ provider: a, upstream_model: acme/painter, timeout: { start: ${limit}, total: 60s }, options: { second_price: "0.001" }`,
    b: (limit: string) =>
      `{ provider: b, upstream_model: acme/painter/dev, timeout: { start: ${limit}, total: 60s }, cost: [{ unit: image, amount: "${costs.b.amount}", currency: EUR }]`,
  };
  const rest = 'on_ambiguous_submit: failover, poll: { first: 20ms, max: 200ms } }';
  const entries = [...models].map(([id, { failing, start }]) => {
    const routes = [`${route[failing](start)}, ${rest}`, `${route[failing === 'a' ? 'b' : 'a']('30s')}, ${rest}`];
    return mediaModel({ id, schema: required_prompt, price, routes });
  });
  return `
version: 1
sandbox: false
currencies: { USD: "1", EUR: "${rate}" }
${limits({ failed_per_24h: 1_000_000 })}
providers:
  a: { adapter: replicate, base_url: "${a}/v1", api_key: env:TEST_TWO_KEY, allow_private: true }
  b: { adapter: fal, base_url: "${b}", api_key: env:TEST_TWO_KEY, allow_private: true }
models:${entries.join('')}
`;
}

export type PhaseResult = { phase: Phase; results: TaskResult[]; failures: number; seconds: number };

/** Makes the tasks of one phase, several at once, and waits for the last. */
export async function playPhase(stage: Stage, phase: Phase, first: number, end: number, lasting: boolean) {
  const site = stage[phase.failing];
  const other = stage[phase.failing === 'a' ? 'b' : 'a'];
  await pauseIsOver(stage, phase);
  await other.fail(undefined);
  await site.fail(undefined);
  const begun_at_ms = performance.now();
  const failures_before = site.failed.get(phase.way) ?? 0;
  const results: TaskResult[] = [];
  let next = first;
  const work = async (before: number) => {
    while (next < before) {
      const number = next++;
      const prompt = `${number % flagged_share === 7 ? flagged_prompt : 'picture'} ${number}`;
      const currency = number % 2 === 0 ? 'USD' : 'EUR';
      results.push({ phase, prompt, currency, ...(await generate(stage, phase.model, prompt, currency)) });
    }
  };
  await work(lasting ? first + calm_tasks : first);
  await site.fail(phase.way, lasting ? 'most' : 'all');
  await Promise.all(Array.from({ length: at_once }, () => work(end)));
  const failures = (site.failed.get(phase.way) ?? 0) - failures_before;
  const result: PhaseResult = { phase, results, failures, seconds: (performance.now() - begun_at_ms) / 1000 };
  return result;
}

/** The route that is to fail is asked again: the breaker lets one request through. */
async function pauseIsOver({ service }: Stage, { model, failing }: Phase): Promise<void> {
  for (;;) {
    const open = await service.app.db.query(
      `select from route_health where route = $1 and retry_at > now() - interval '1 second'`,
      [`${model}#${failing}`],
    );
    if (open.length === 0) return;
    await sleep(100);
  }
}

async function generate({ clients }: Stage, model: string, prompt: string, currency: string) {
  const client = clients[currency];
  if (!client) throw new Error(`nobody pays in ${currency}`);
  let answer = await client.call('POST', '/v1/generate?wait=60', { model, input: { prompt } });
  const created_status = answer.status;
  while (['queued', 'running'].includes(answer.json.status)) {
    await sleep(100);
    answer = await client.call('GET', `/v1/tasks/${answer.json.id}`);
  }
  const { id, status, cost, error } = answer.json;
  return { status: created_status, task: { id, status, cost: cost?.exact, error } };
}
