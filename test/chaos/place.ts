import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

/** Facts that all processes of a run share: a folder with this as `place.json`, their journals and their logs. */
export type Place = {
  folder: string;
  seed: number;
  database_url: string;
  /** The same database as nodes reach it: through a proxy that can go mute and refuse. */
  nodes_database_url: string;
  upstream_port: number;
  receivers_port: number;
  api_ports: number[];
  accounts: Account[];
  /** Sends requests of chat faster than its key may, and nothing else. */
  hasty: Account;
};

/** A poor one has money for a few chat calls, and keys with small limits; tasks are for the others. */
export type Account = { id: string; currency: 'USD' | 'PLN'; is_poor: boolean; keys: Key[] };

/** `limit`: of a month, in millionths. */
export type Key = { id: string; text: string; limit: string };

export const placeFile = (folder: string) => join(folder, 'place.json');

export function readPlace(folder: string): Place {
  return JSON.parse(readFileSync(placeFile(folder), 'utf8')) as Place;
}

/** The request of a client: sent as the prompt, so that the upstream knows what to do. */
export type TaskRequest = {
  /** One of `ways`, and how long the run takes. */
  way: Way;
  run_ms: number;
};

/** Ways in which a run goes at the upstream. */
export const ways = ['at once', 'run', 'fail', 'refuse', 'refuse all', 'cut', 'reject', 'broken'] as const;
export type Way = (typeof ways)[number];

/** One line of the upstream's journal. */
export type UpstreamNote = {
  /** Of what was asked: when, by the clock of the node that asked. */
  at_ms: number;
  /** taken: a run began, and is billed; repeated: the same run again, by a provider that knows its tasks. */
  event: 'asked' | 'refused' | 'taken' | 'repeated' | 'stopped';
  task_id: string;
  route: string;
  job: string;
  order: TaskRequest;
};

/** Points that an answer has reached when its caller leaves. */
export const points = ['before the first byte', 'ping', 'first word', 'last word', 'finish reason', 'usage'] as const;
export type Point = (typeof points)[number];

/** Ways in which a chat call goes at the upstream. `refuse`: by the first route; `break`: cut before any content. */
export const chat_ways = ['answer', 'no usage', 'cut', 'break', 'silent', 'refuse', 'refuse all'] as const;
export type ChatWay = (typeof chat_ways)[number];

/** The request of a caller of chat: its text, so that the upstream knows what to do. */
export type ChatOrder = {
  call: string;
  way: ChatWay;
  /** The point at which its caller leaves; the upstream pauses there. */
  leaves_at: Point | 'never';
  /** Each byte of its text is a token; else every fourth. */
  is_dense: boolean;
  /** As many tokens as it may have at the most. */
  output_tokens: number;
  /** Between two pieces of the answer. */
  pause_ms: number;
};

/** One line of the chat upstream's journal: a request came, or what it bills for one. A kill leaves one without. */
export type BillNote = {
  at_ms: number;
  event: 'asked' | 'billed';
  call: string;
  route: string;
  number: string;
  way: ChatWay;
  input_tokens: number;
  output_tokens: number;
  ended: 'done' | 'left' | 'cut' | 'refused' | 'under way';
};

/** One line of a node: the request that it sends upstream is of this call. */
export type SentNote = { call: string; request_id: string };

/** One chat call, as its caller saw it. `complete`: the whole answer, up to its end. */
export type ChatNote = {
  at_ms: number;
  ended_at_ms: number;
  call: string;
  account_id: string;
  key_id: string;
  api: number;
  model: string;
  stream: boolean;
  max_tokens: number | undefined;
  outcome: 'complete' | 'left' | 'refused' | 'failed' | 'broken' | 'unreached';
  status: number;
  request_id: string;
  order: ChatOrder;
};

/** One line of the receivers' journal. */
export type ReceiverNote = {
  at_ms: number;
  task_id: string;
  account_id: string;
  status: string;
  /** The receiver's number, which decides how it behaves. */
  receiver: number;
  /** The planned answer; `lost`: processed, and the connection cut instead of the answer. */
  answer: 'accepted' | 'refused' | 'silent' | 'lost';
  sha256: string;
  /** The answer of GET meanwhile. */
  got: 'same' | 'different' | 'not final' | 'unknown';
  headers: Record<string, string>;
};

/** One call of a client, as it went. */
export type CallNote = {
  at_ms: number;
  ended_at_ms: number;
  call: string;
  account_id: string;
  idempotent: boolean;
  outcome: 'ok' | 'refused' | 'unknown';
  status: number;
  task_id: string;
  order: TaskRequest;
};

/** One request of the hasty caller: 400 is accepted by its window, 429 is not. */
export type HastyNote = { at_ms: number; ended_at_ms: number; api: number; status: number };

export type FaultNote = { at_ms: number; ended_at_ms: number; fault: string; target: string };

/** A secret of an account, and between which times it became the current one. */
export type SecretNote = { account_id: string; secret: string; began_at_ms: number; done_at_ms: number };

export type Journal<Note> = { add(note: Note): void };

/** A journal that survives the death of its process: each line is with the system when `add` returns. */
export function openJournal<Note>(folder: string, name: string): Journal<Note> {
  return { add: (note) => appendFileSync(join(folder, `${name}.jsonl`), `${JSON.stringify(note)}\n`) };
}

/** All whole lines; the last one may have been cut by a kill. */
export function readJournal<Note>(folder: string, name: string): Note[] {
  const path = join(folder, `${name}.jsonl`);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Note);
}

/** Ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
