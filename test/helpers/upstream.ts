import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import type { ProviderConfig } from '../../src/catalog/model.ts';
import {
  InputRefused,
  NotStarted,
  type Adapter,
  type FailureType,
  type Json,
  type Provider,
  type RunState,
} from '../../src/providers/provider.ts';

/** Response of an upstream to one submit; the script of a route is a list of these, the last one repeats. */
export type Behaviour =
  | 'done' // the file at once
  | 'run' // accepted, running, done at the second poll
  | 'queue' // accepted and waiting for ever
  | 'run forever'
  | 'run then fail'
  | 'drop' // accepted, and at the second poll dropped before its start
  | 'run then drop' // the same, but it was seen running
  | 'refuse' // 503 before anything started
  | 'reject input' // 400: the caller's fault
  | 'no key' // 401: ours
  | 'cut' // takes the job, then drops the connection without an answer
  | 'hang'; // takes the job and never answers

export type Submit = { route: string; task_id: string; at_ms: number };

/** A real HTTP upstream on loopback with a journal of what it was asked. */
export type Upstream = {
  url: string;
  submits: Submit[];
  polls: string[];
  cancels: string[];
  /** Behaviour per `upstream_model`. */
  script(route: string, ...behaviours: Behaviour[]): void;
  /** Tells whether a cancel is confirmed as unbilled. */
  stoppable: boolean;
  /** Lets runs that would go on for ever be done at their next polls. */
  endAll(): void;
  close(): Promise<void>;
};

export async function startUpstream(file: Buffer): Promise<Upstream> {
  const scripts = new Map<string, Behaviour[]>();
  const jobs = new Map<string, { behaviour: Behaviour; polls: number }>();
  const upstream = { submits: [] as Submit[], polls: [] as string[], cancels: [] as string[], stoppable: true };

  const submit = (route: string, task_id: string, response: ServerResponse) => {
    upstream.submits.push({ route, task_id, at_ms: Date.now() });
    const script = scripts.get(route) ?? ['done'];
    const behaviour = (script.length > 1 ? script.shift() : script[0]) ?? 'done';
    const id = `job-${upstream.submits.length}`;
    if (behaviour === 'refuse') return void response.writeHead(503).end();
    if (behaviour === 'reject input') return void response.writeHead(400).end('that prompt will not do');
    if (behaviour === 'no key') return void response.writeHead(401).end();
    jobs.set(id, { behaviour, polls: 0 });
    if (behaviour === 'cut') return void response.destroy();
    if (behaviour === 'hang') return;
    if (behaviour === 'done') return void response.writeHead(200, { 'x-done': '1' }).end(file);
    response.writeHead(202).end(JSON.stringify({ id }));
  };
  const poll = (id: string, response: ServerResponse) => {
    upstream.polls.push(id);
    const job = jobs.get(id);
    if (!job) return void response.writeHead(404).end();
    job.polls += 1;
    if (job.behaviour === 'drop' && job.polls < 2) return void response.writeHead(200).end('{"state":"waiting"}');
    if (job.behaviour === 'queue') return void response.writeHead(200).end('{"state":"waiting"}');
    const over = job.polls >= 2 && job.behaviour !== 'run forever';
    if (!over) return void response.writeHead(200).end('{"state":"running"}');
    if (job.behaviour.endsWith('drop')) return void response.writeHead(200).end('{"state":"dropped"}');
    if (job.behaviour === 'run then fail') return void response.writeHead(200).end('{"state":"failed"}');
    response.writeHead(200, { 'x-done': '1' }).end(file);
  };
  const server = createServer((message, response) => {
    const [, verb, name = '', task_id = ''] = (message.url ?? '').split('/').map(decodeURIComponent);
    void drain(message).then(() => {
      if (verb === 'submit') submit(name, task_id, response);
      else if (verb === 'poll') poll(name, response);
      else {
        upstream.cancels.push(name);
        response.writeHead(upstream.stoppable ? 200 : 409).end();
      }
    });
  });
  return Object.assign(upstream, {
    url: await listen(server),
    script: (route: string, ...behaviours: Behaviour[]) => void scripts.set(route, behaviours),
    endAll: () => {
      for (const job of jobs.values()) if (job.behaviour === 'run forever') job.behaviour = 'run';
    },
    close: () => closeServer(server),
  });
}

async function drain(message: IncomingMessage): Promise<void> {
  for await (const _chunk of message);
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

const poll_after_ms = 50;

/** Speaks the upstream above over HTTP, as an adapter of a real provider would. */
export const scripted: Adapter = { serves: (kind) => kind !== 'chat', open: (config) => openScripted(config) };

const openScripted = (config: ProviderConfig): Provider => ({
  start: async (run, signal) => {
    const url = `${config.base_url}/submit/${encodeURIComponent(run.model)}/${run.task_id}`;
    const { statusCode, headers, body } = await request(url, {
      method: 'POST',
      body: JSON.stringify(run.input),
      signal,
    }).catch((error: unknown) => {
      if (isRefused(error)) throw new NotStarted('unreachable', 'connection refused', { cause: error });
      throw error;
    });
    const bytes = Buffer.from(await body.arrayBuffer());
    if (statusCode === 400) throw new InputRefused('invalid_request', bytes.toString());
    if (statusCode === 401) throw new NotStarted('rejected_credentials', 'status 401');
    if (statusCode >= 500) throw new NotStarted('refused', `status ${statusCode}`);
    if (headers['x-done']) return { phase: 'done', files: [{ bytes }] };
    const { id } = JSON.parse(bytes.toString()) as { id: string };
    return { phase: 'waiting', ref: { id }, poll_after_ms };
  },
  poll: async (_run, ref, signal) => {
    const { headers, body } = await request(`${config.base_url}/poll/${idOf(ref)}`, { signal });
    const bytes = Buffer.from(await body.arrayBuffer());
    if (headers['x-done']) return { phase: 'done', files: [{ bytes }] };
    const { state } = JSON.parse(bytes.toString()) as { state: string };
    return stateOf(state, ref);
  },
  cancel: async (_run, ref, signal) => {
    const { statusCode, body } = await request(`${config.base_url}/cancel/${idOf(ref)}`, { method: 'POST', signal });
    await body.dump();
    return statusCode === 200 ? 'stopped' : 'billed';
  },
});

function stateOf(state: string, ref: Json): RunState {
  const failure: FailureType = 'upstream_error';
  if (state === 'dropped') throw new NotStarted('unavailable', 'the queue was closed');
  if (state === 'failed') return { phase: 'failed', type: failure, message: 'The run failed.' };
  return { phase: state === 'running' ? 'running' : 'waiting', ref, poll_after_ms };
}

function idOf(ref: Json): string {
  return String((ref as { id: string }).id);
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
