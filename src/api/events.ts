import type { NoticeEvent } from '../tasks/events.ts';
import { readToken } from '../tasks/event-token.ts';
import type { Endpoint } from '../http/endpoint.ts';

/** The parts of the app that hearing of an event takes. */
type Parts = { readonly secret: string; readonly noticeEvent: NoticeEvent };

/**
 * Upstreams call here when something has happened to a run. Nothing that they send is read: whoever calls learns
 * nothing and changes nothing, but that we ask the upstream sooner.
 */
export const run_event: Endpoint<Parts> = {
  method: 'POST',
  path: '/events/{token}',
  public: true,
  lenient_query: true, // upstreams add parameters of their own
  ignores_body: true,
  docs: {
    tag: 'Events',
    summary: 'Receive an event of a run from its upstream',
    params: { token: { description: 'Names the run.', schema: { type: 'string' } } },
    responses: { 200: { description: 'Always.' } },
    hidden: true,
  },
  handle: (app, { params }) => {
    const run = readToken(app.secret, params['token'] ?? '');
    if (run) app.noticeEvent(run);
    return { status: 200, body: {} };
  },
};
