import { Counter, Histogram } from './registry.ts';

/** Times of requests and calls, in seconds: from a look at a table to a long answer. */
const call_bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Times of tasks, in seconds: from a small image to a long video. */
const task_bounds = [0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1_800, 3_600];

/** All that a process counts by itself. Labels are bounded: routes, models, outcomes; never accounts, keys or ids. */
export type Metrics = ReturnType<typeof openMetrics>;

/** Opens the counters of a process; they begin at zero. */
export function openMetrics() {
  return {
    http_requests: new Counter('medley_http_requests_total', 'HTTP requests that have ended.', [
      'method',
      'route',
      'status',
    ]),
    http_seconds: new Histogram(
      'medley_http_request_seconds',
      'Time from the head of a request to the end of its answer.',
      ['method', 'route'],
      call_bounds,
    ),
    chat_calls: new Counter(
      'medley_chat_calls_total',
      'Calls of chat, embeddings, rankings and moderation that have ended, by their outcome.',
      ['model', 'route', 'style', 'outcome'],
    ),
    chat_seconds: new Histogram(
      'medley_chat_call_seconds',
      'Time from the start of a call to its end.',
      ['model', 'route'],
      call_bounds,
    ),
    chat_first_content_seconds: new Histogram(
      'medley_chat_first_content_seconds',
      'Time from the start of a call to its first content.',
      ['model', 'route'],
      call_bounds,
    ),
    units: new Counter('medley_units_total', 'Tokens, searches and other units that were charged.', ['model', 'unit']),
    spend: new Counter('medley_spend_total', 'Money that was charged, in units of the currency.', [
      'model',
      'currency',
    ]),
    tasks_created: new Counter('medley_tasks_created_total', 'Tasks that were created.', ['model']),
    tasks_ended: new Counter('medley_tasks_ended_total', 'Tasks that have ended; `error` is the type of the error.', [
      'model',
      'status',
      'error',
    ]),
    task_wait_seconds: new Histogram(
      'medley_task_wait_seconds',
      'Time from the creation of a task to the start of its run.',
      ['model'],
      task_bounds,
    ),
    task_seconds: new Histogram(
      'medley_task_seconds',
      'Time from the creation of a task to its end.',
      ['model', 'status'],
      task_bounds,
    ),
    route_attempts: new Counter('medley_route_attempts_total', 'Attempts of routes that have ended.', [
      'route',
      'outcome',
    ]),
    deliveries: new Counter('medley_webhook_attempts_total', 'Attempts to deliver a webhook, by their outcome.', [
      'outcome',
    ]),
    ...openLosses(),
    delivery_seconds: new Histogram(
      'medley_webhook_attempt_seconds',
      'Time of an attempt to deliver a webhook.',
      [],
      call_bounds,
    ),
  };
}

/** Counters of what is refused or lost rather than waited for. */
function openLosses() {
  return {
    refusals: new Counter(
      'medley_refusals_total',
      'Requests that were refused before any work, for want of money or a right, or at a limit.',
      ['reason'],
    ),
    refusals_lost: new Counter(
      'medley_refusals_lost_total',
      'Refused requests that the reports of their accounts lack: too many waited for the database.',
      [],
    ),
    contents: new Counter('medley_chat_contents_total', 'Contents of chat calls that were stored, or not.', [
      'outcome',
    ]),
    spans_lost: new Counter('medley_trace_spans_lost_total', 'Spans that the collector of traces did not take.', []),
  };
}
