import type { JsonObject } from '../../catalog/model.ts';
import type { Background } from '../codec.ts';
import { isObject } from '../fields.ts';
import { frameOf } from '../stream.ts';
import { PartialOutput } from './partial-output.ts';
import { echoOf, writeError, writeResponse } from './response.ts';
import { usage_format } from './usage.ts';

/** Events of the state of a response: in the background they are ours, not the upstream's. */
const state_events: ReadonlySet<string> = new Set([
  'error',
  'response.created',
  'response.queued',
  'response.in_progress',
  'response.completed',
  'response.incomplete',
  'response.failed',
]);

/** Responses that are made in the background. */
export const background: Background = {
  queued: ({ body, echo, ...options }) => ({
    ...writeResponse({ ...options, echo: { ...echoOf(body), ...echo } }, { status: 'queued', output: [] }),
    background: true,
  }),
  inStatus: (response, status) => ({ ...response, status }),
  failed: (response, error) => {
    const { type, message, extras } = error;
    return { ...response, status: 'failed', error: writeError({ type, code: extras.code, message }) };
  },
  openOutput: () => new PartialOutput(),
  broken: (response, output, usage) => ({
    ...response,
    output,
    ...(usage && { usage: usage_format.write(usage) }),
  }),
  completed: (answer, queued) => {
    const { created_at = null, ...own } = queued;
    return { ...answer, ...echoIn(own), id: own['id'] ?? null, created_at, background: true };
  },
  statusOf: ({ status }) => (status === 'incomplete' ? 'incomplete' : 'completed'),
  event: (type, fields, sequence_number) => frameOf(type, { type, sequence_number, ...fields }).toString('utf8'),
  upstreamEvent: (event) => {
    const { type } = event;
    return typeof type === 'string' && !state_events.has(type) ? type : undefined;
  },
  /** The SDKs read the response of the event, whatever its status is called. */
  lastEventType: (status) =>
    status === 'completed' || status === 'incomplete' ? `response.${status}` : 'response.failed',
};

/** Members about what is kept: an upstream says others of itself. */
function echoIn({ store = null, previous_response_id = null, conversation }: JsonObject): JsonObject {
  return { store, previous_response_id, ...(isObject(conversation) && { conversation }) };
}
