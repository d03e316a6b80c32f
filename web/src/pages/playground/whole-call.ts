import { Failure, isRecord } from '../../api.ts';
import { below } from '../../below.ts';
import type { Cost } from '../../ui/Money.tsx';

/** An answer that came in one piece, with its cost. */
export type WholeAnswer = { body: Record<string, unknown>; cost: Cost; took_ms: number; request_id: string };

/** Makes a call by the relay of the dashboard. Throws Failure for what the service or the model's provider says. */
export async function callOnce(path: string, body: object, signal?: AbortSignal): Promise<WholeAnswer> {
  const begun_at_ms = performance.now();
  const response = await fetch(below(path), {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  }).catch(() => {
    throw new Failure(0, { message: 'The service cannot be reached. It may be restarting.' });
  });
  const answer = parsed(await response.text());
  const request_id = response.headers.get('x-request-id') ?? '';
  if (!response.ok || !isRecord(answer)) throw failureOf(response.status, answer, request_id);
  const exact = response.headers.get('x-cost-amount') ?? '0.000000';
  const cost = { amount: exact, exact, currency: response.headers.get('x-cost-currency') ?? '' };
  return { body: answer, cost, took_ms: Math.round(performance.now() - begun_at_ms), request_id };
}

/** Errors of a path are read by their message, whatever else their format has. */
function failureOf(status: number, answer: unknown, request_id: string): Failure {
  const error = isRecord(answer) && isRecord(answer['error']) ? answer['error'] : {};
  const message = typeof error['message'] === 'string' ? error['message'] : `The service answered ${status}.`;
  return new Failure(status, { message, request_id });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
