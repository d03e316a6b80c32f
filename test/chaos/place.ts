import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

/** What all processes of a run share: a folder with this as `place.json`, their journals and their logs. */
export type Place = {
  folder: string;
  seed: number;
  database_url: string;
  upstream_port: number;
  receivers_port: number;
  api_ports: number[];
  accounts: Account[];
};

export type Account = { id: string; keys: string[] };

export const placeFile = (folder: string) => join(folder, 'place.json');

export function readPlace(folder: string): Place {
  return JSON.parse(readFileSync(placeFile(folder), 'utf8')) as Place;
}

/** What clients asked for: sent as the prompt, so that the upstream knows what to do. */
export type Order = {
  /** One of `ways`, and how long the run takes. */
  way: Way;
  run_ms: number;
};

/** How a run goes at the upstream. */
export const ways = ['at once', 'run', 'fail', 'refuse', 'refuse all', 'cut', 'reject', 'broken'] as const;
export type Way = (typeof ways)[number];

/** One line of the upstream's journal. */
export type UpstreamNote = {
  at_ms: number;
  /** taken: a run began, and is billed; repeated: the same run again, by a provider that knows its tasks. */
  event: 'asked' | 'refused' | 'taken' | 'repeated' | 'stopped';
  task_id: string;
  route: string;
  job: string;
  order: Order;
};

/** One line of the receivers' journal. */
export type ReceiverNote = {
  at_ms: number;
  task_id: string;
  account_id: string;
  status: string;
  /** The receiver's number, which decides how it behaves. */
  receiver: number;
  /** What it was decided to answer; `lost`: processed, and the connection cut instead of the answer. */
  answer: 'accepted' | 'refused' | 'silent' | 'lost';
  sha256: string;
  /** What GET answered meanwhile. */
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
  order: Order;
};

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
