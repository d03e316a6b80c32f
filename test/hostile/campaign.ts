import fc from 'fast-check';
import { makeJudge, type Judge } from './judge.ts';
import { heavyRequests } from './heavy.ts';
import { hostileRequests, wireBytes, type HostileRequest, type World } from './requests.ts';
import type { SlowRequest, SlowRequests } from './slow-requests.ts';
import { Wire } from './wire.ts';

export type Campaign = {
  world: World;
  port: number;
  /** Texts that no answer may show. */
  secrets: readonly string[];
  seed: number;
  /** The numbers of the requests: the same seed and number make the same request. */
  first: number;
  count: number;
  connections: number;
  /** Of a hundred requests, so many are heavy ones. */
  heavy_percent?: number;
  /** Judges requests by the turns of the service's event loop, too. */
  slow?: SlowRequests;
  /** Called now and then, with the number of the next request; false ends the campaign. */
  goOn?: () => boolean;
  /** Aborted: no more requests are sent. */
  signal?: AbortSignal;
};

export type Finding = {
  number: number;
  problems: string[];
  request: HostileRequest;
  answer: string;
  /** The request before it on the same connection. */
  before: HostileRequest | undefined;
};

export type Outcome = {
  findings: Finding[];
  /** The number of answers with each status. */
  statuses: Map<number, number>;
  /** The number of requests to each endpoint, by method and path. */
  endpoints: Map<string, number>;
  /** Behind the last request. */
  next: number;
  elapsed_ms: number;
};

/** A campaign that goes wrong goes wrong often: the first findings tell enough. */
const findings_max = 20;

/** Sends hostile requests over some connections at once and judges every answer. */
export async function runCampaign(campaign: Campaign): Promise<Outcome> {
  const { world, port, first, count, connections, slow } = campaign;
  const requests = requestsOf(campaign);
  const judge = makeJudge(world, campaign.secrets);
  const outcome: Outcome = { findings: [], statuses: new Map(), endpoints: new Map(), next: first, elapsed_ms: 0 };
  const { findings, statuses } = outcome;
  const started_ms = performance.now();
  const goesOn = () =>
    outcome.next < first + count &&
    findings.length < findings_max &&
    !campaign.signal?.aborted &&
    campaign.goOn?.() !== false;
  const work = async (_: unknown, index: number) => {
    const wire = new Wire(port, addressOf(index));
    let before: HostileRequest | undefined;
    while (goesOn()) {
      const number = outcome.next++;
      const request = requestNumber(requests, campaign.seed, number);
      const ended = slow?.begin(number);
      const { problems, status, answer } = await attempt(wire, request, judge);
      ended?.();
      addOne(statuses, status);
      addOne(outcome.endpoints, judge.endpointOf(request));
      if (problems.length > 0) findings.push({ number, problems, request, answer, before });
      before = request;
    }
    wire.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const guilty = (await slow?.confirm((number) => repeat(campaign, number))) ?? [];
  findings.push(...guilty.map((each) => slowFinding(campaign, each)));
  return { ...outcome, elapsed_ms: performance.now() - started_ms };
}

function requestsOf(campaign: Campaign): fc.Arbitrary<HostileRequest> {
  const { world, heavy_percent = 0 } = campaign;
  const hostile = hostileRequests(world);
  if (heavy_percent === 0) return hostile;
  return fc.oneof(
    { weight: 100 - heavy_percent, arbitrary: hostile },
    { weight: heavy_percent, arbitrary: heavyRequests(world) },
  );
}

/** All of 127/8 leads here: the limits of one address are met in tests of their own. */
function addressOf(index: number): string {
  return `127.0.${1 + Math.floor(Math.random() * 250)}.${1 + index}`;
}

function addOne<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Sends it again, with nothing beside it. */
async function repeat(campaign: Campaign, number: number): Promise<void> {
  const request = requestNumber(requestsOf(campaign), campaign.seed, number);
  const wire = new Wire(campaign.port, addressOf(0));
  await attempt(wire, request);
  wire.close();
}

function slowFinding(campaign: Campaign, { number, cpu_ms }: SlowRequest): Finding {
  const request = requestNumber(requestsOf(campaign), campaign.seed, number);
  const problem = `others wait ${Math.round(cpu_ms)} ms`;
  return { number, problems: [problem], request, answer: '', before: undefined };
}

function requestNumber(requests: fc.Arbitrary<HostileRequest>, seed: number, number: number): HostileRequest {
  // Multiplied by a large odd number, neighbours have nothing in common.
  const [request] = fc.sample(requests, { seed: (seed + Math.imul(number, 0x9e3779b1)) | 0, numRuns: 1 });
  if (!request) throw new Error('fast-check made no request');
  return request;
}

async function attempt(
  wire: Wire,
  request: HostileRequest,
  judge?: Judge,
): Promise<{ problems: string[]; status: number; answer: string }> {
  try {
    const reply = await wire.exchange(wireBytes(request), request.method === 'HEAD');
    const problems = judge?.problemsOf(request, reply) ?? [];
    return { problems, status: reply.status, answer: `${reply.status} ${reply.body.toString('utf8', 0, 500)}` };
  } catch (error) {
    return { problems: [String(error)], status: 0, answer: '' };
  }
}

/** A finding as a person reads it. */
export function showFinding({ number, problems, request, answer, before }: Finding): string {
  const shown = (one: HostileRequest) => JSON.stringify(wireBytes(one).toString('latin1', 0, 1_500));
  const context = before ? `\nafter ${shown(before)}` : '';
  return `request ${number}: ${problems.join('; ')}\n${shown(request)}\n${JSON.stringify(answer)}${context}`;
}
