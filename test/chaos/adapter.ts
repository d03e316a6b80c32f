import { request } from 'undici';
import type { ProviderConfig } from '../../src/catalog/model.ts';
import { anthropic } from '../../src/providers/adapters/anthropic/adapter.ts';
import { openai } from '../../src/providers/adapters/openai/adapter.ts';
import {
  InputRefused,
  NotStarted,
  type Adapter,
  type ChatProvider,
  type Json,
  type Provider,
} from '../../src/providers/provider.ts';
import { openJournal, type Journal, type SentNote } from './place.ts';

/** Speaks the upstream of upstream-child.ts over HTTP, as an adapter of a real provider would. */
export const chaos: Adapter = { serves: (kind) => kind !== 'chat', open: (config) => openChaos(config) };

/** The service's own adapters for chat, and a journal of which call each request belongs to. */
export function chatAdapters(folder: string): Record<'chaos-openai' | 'chaos-anthropic', Adapter> {
  const journal = openJournal<SentNote>(folder, 'sent');
  const { serves, openChat } = openai;
  return {
    'chaos-openai': { serves, openChat: (...parts) => noting(openChat(...parts), journal) },
    'chaos-anthropic': {
      serves: anthropic.serves,
      openChat: (...parts) => noting(anthropic.openChat(...parts), journal),
    },
  };
}

function noting(provider: ChatProvider, journal: Journal<SentNote>): ChatProvider {
  return {
    ...provider,
    send: (call, signal) => {
      const [, id = ''] = /\{\\"call\\":\\"([\w-]+)/.exec(JSON.stringify(call.body)) ?? [];
      journal.add({ call: id, request_id: call.request_id });
      return provider.send(call, signal);
    },
  };
}

/** The same upstream by routes on which a repeated submit is the same run. */
export const chaos_again: Adapter = {
  serves: (kind) => kind !== 'chat',
  open: (config) => ({ ...openChaos(config), idempotent: true }),
};

const poll_after_ms = 100;

/** As `Upstream.call` has them for a read. */
const read_limits = { headersTimeout: 15_000, bodyTimeout: 30_000 };

const openChaos = ({ base_url }: ProviderConfig): Provider => ({
  start: async (run, signal) => {
    const url = `${base_url}/submit/${encodeURIComponent(run.model)}/${run.task_id}`;
    const { prompt } = run.input;
    const headers = { 'x-now': String(run.now_ms) };
    const answer = await request(url, { method: 'POST', headers, body: String(prompt), signal }).catch(
      (error: unknown) => {
        if (isRefused(error)) throw new NotStarted('unreachable', 'connection refused', { cause: error });
        throw error;
      },
    );
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    if (answer.statusCode === 400) throw new InputRefused('invalid_request', bytes.toString());
    if (answer.statusCode >= 500) throw new NotStarted('refused', `status ${answer.statusCode}`);
    if (answer.headers['x-done']) return { phase: 'done', files: [{ bytes }] };
    return { phase: 'waiting', ref: JSON.parse(bytes.toString()) as Json, poll_after_ms };
  },
  poll: async (_run, ref, signal) => {
    const { statusCode, headers, body } = await request(`${base_url}/poll/${idOf(ref)}`, { signal, ...read_limits });
    const bytes = Buffer.from(await body.arrayBuffer());
    if (statusCode !== 200) throw new Error(`status ${statusCode}`);
    if (headers['x-done']) return { phase: 'done', files: [{ bytes }] };
    const { state } = JSON.parse(bytes.toString()) as { state: string };
    if (state === 'failed') return { phase: 'failed', type: 'upstream_error', message: 'The run failed.' };
    return { phase: 'running', ref, poll_after_ms };
  },
  cancel: async (_run, ref, signal) => {
    const { statusCode, body } = await request(`${base_url}/cancel/${idOf(ref)}`, { method: 'POST', signal });
    await body.dump();
    return statusCode === 200 ? 'stopped' : 'billed';
  },
});

function idOf(ref: Json): string {
  return encodeURIComponent(String((ref as { id: string }).id));
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
