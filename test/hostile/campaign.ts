import fc from 'fast-check';
import { makeJudge } from './judge.ts';
import { hostileRequests, wireBytes, type HostileRequest, type World } from './requests.ts';
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
  /** Aborted: no more requests are sent. */
  signal?: AbortSignal;
};

export type Finding = {
  number: number;
  complaints: string[];
  request: HostileRequest;
  answer: string;
  /** What was sent before it on the same connection. */
  before: HostileRequest | undefined;
};

export type Outcome = {
  findings: Finding[];
  /** How often each status was answered. */
  statuses: Map<number, number>;
  elapsed_ms: number;
};

/** A campaign that goes wrong goes wrong often: the first findings tell enough. */
const findings_max = 20;

/** Sends hostile requests over some connections at once and judges every answer. */
export async function runCampaign(campaign: Campaign): Promise<Outcome> {
  const { world, port, first, count, connections } = campaign;
  const requests = hostileRequests(world);
  const judge = makeJudge(world, campaign.secrets);
  const findings: Finding[] = [];
  const statuses = new Map<number, number>();
  const started_ms = performance.now();
  let next = first;
  const work = async () => {
    const wire = new Wire(port);
    let before: HostileRequest | undefined;
    while (next < first + count && findings.length < findings_max && !campaign.signal?.aborted) {
      const number = next++;
      const request = requestNumber(requests, campaign.seed, number);
      const { complaints, status, answer } = await attempt(wire, request, judge);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (complaints.length > 0) findings.push({ number, complaints, request, answer, before });
      before = request;
    }
    wire.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  return { findings, statuses, elapsed_ms: performance.now() - started_ms };
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
  judge: ReturnType<typeof makeJudge>,
): Promise<{ complaints: string[]; status: number; answer: string }> {
  try {
    const reply = await wire.exchange(wireBytes(request), request.method === 'HEAD');
    const complaints = judge(request, reply);
    return { complaints, status: reply.status, answer: `${reply.status} ${reply.body.toString('utf8', 0, 500)}` };
  } catch (error) {
    return { complaints: [String(error)], status: 0, answer: '' };
  }
}

/** A finding as a person reads it. */
export function showFinding({ number, complaints, request, answer, before }: Finding): string {
  const shown = (one: HostileRequest) => JSON.stringify(wireBytes(one).toString('latin1', 0, 1_500));
  const context = before ? `\nafter ${shown(before)}` : '';
  return `request ${number}: ${complaints.join('; ')}\n${shown(request)}\n${JSON.stringify(answer)}${context}`;
}
