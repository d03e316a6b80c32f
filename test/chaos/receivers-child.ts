/**
 * Webhook receivers with a journal on disk: `receivers-child.ts FOLDER`. The number in the path decides how one
 * behaves: 70 % are healthy, 10 % slow, 10 % answer 500 first, 10 % are dead for the first two attempts. Each
 * fetches the task inside its handler and compares the bytes, as the specification says they are the same.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { openJournal, readJournal, readPlace, type ReceiverNote } from './place.ts';

const folder = process.argv[2] ?? '';
const place = readPlace(folder);
const journal = openJournal<ReceiverNote>(folder, 'receivers');
const slow_ms = 700;
const lost_per_mille = 10;

/** The number of times that each task has come; 500-first and dead ones count. */
const seen = new Map<string, number>();
for (const { task_id } of readJournal<ReceiverNote>(folder, 'receivers'))
  seen.set(task_id, (seen.get(task_id) ?? 0) + 1);

createServer((message, response) => {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => void receive(message, Buffer.concat(chunks), response));
}).listen(place.receivers_port, '127.0.0.1', () => process.stdout.write('receivers are running\n'));

async function receive(message: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
  const [, account_id = '', receiver_text = ''] = (message.url ?? '').split('/');
  const receiver = Number(receiver_text);
  const { id: task_id, status } = JSON.parse(body.toString()) as { id: string; status: string };
  const times = (seen.get(task_id) ?? 0) + 1;
  seen.set(task_id, times);
  const answer = decide(receiver % 10, times, task_id);
  const at_ms = Date.now();
  const got = await compare(account_id, task_id, body);
  if (receiver % 10 === 7) await sleep(slow_ms);
  const headers = Object.fromEntries(
    Object.entries(message.headers).filter(([name]) => /^(?:x-service-|webhook-|content-type$)/.test(name)),
  ) as Record<string, string>;
  const sha256 = createHash('sha256').update(body).digest('hex');
  journal.add({ at_ms, task_id, account_id, status, receiver, answer, sha256, got, headers });
  if (answer === 'silent' || answer === 'lost') response.destroy();
  else response.writeHead(answer === 'accepted' ? 204 : 500).end();
}

function decide(kind: number, times: number, task_id: string): ReceiverNote['answer'] {
  if (kind === 8 && times === 1) return 'refused';
  if (kind === 9 && times <= 2) return 'silent';
  const draw = createHash('sha256').update(`${place.seed} ${task_id}`).digest().readUInt32BE() % 1000;
  return times === 1 && draw < lost_per_mille ? 'lost' : 'accepted';
}

/** Whichever API node answers; both may be down for a moment. */
async function compare(account_id: string, task_id: string, body: Buffer): Promise<ReceiverNote['got']> {
  const key = place.accounts.find((account) => account.id === account_id)?.keys[0]?.text;
  for (const port of place.api_ports) {
    try {
      const answer = await request(`http://127.0.0.1:${port}/v1/tasks/${task_id}`, {
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(1_500),
      });
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      if (answer.statusCode === 404) return 'not final';
      if (answer.statusCode !== 200) continue;
      if (bytes.equals(body)) return 'same';
      const { completed_at } = JSON.parse(bytes.toString()) as { completed_at: string | null };
      return completed_at === null ? 'not final' : 'different';
    } catch {
      continue; // that node is down
    }
  }
  return 'unknown';
}

process.stdin.on('end', () => process.exit(0)).resume();
