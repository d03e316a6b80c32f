/**
 * A paid upstream with a journal on disk: `upstream-child.ts FOLDER`. What it has taken survives its
 * own death. Route names that begin with `again` belong to a provider that knows a task it was given before.
 */
import { createServer, type ServerResponse } from 'node:http';
import sharp from 'sharp';
import { answerChat } from './chat-upstream.ts';
import { openJournal, readJournal, readPlace, type BillNote, type TaskRequest, type UpstreamNote } from './place.ts';

const folder = process.argv[2] ?? '';
const place = readPlace(folder);
const journal = openJournal<UpstreamNote>(folder, 'upstream');
const bills = openJournal<BillNote>(folder, 'bills');
const image = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#3a7' } })
  .png()
  .toBuffer();

type Job = { order: TaskRequest; taken_at_ms: number; stopped: boolean };
const jobs = new Map<string, Job>();
const job_ids = new Map<string, string>(); // route and task → job
for (const line of readJournal<UpstreamNote>(folder, 'upstream')) remember(line);

function remember({ event, job, order, at_ms, route, task_id }: UpstreamNote): void {
  if (event === 'taken') {
    jobs.set(job, { order, taken_at_ms: at_ms, stopped: false });
    job_ids.set(`${route} ${task_id}`, job);
  }
  const before = event === 'stopped' ? jobs.get(job) : undefined;
  if (before) before.stopped = true;
}

function note(
  event: UpstreamNote['event'],
  route: string,
  task_id: string,
  job: string,
  order: TaskRequest,
  at_ms = Date.now(),
): void {
  const line = { at_ms, event, route, task_id, job, order };
  journal.add(line);
  remember(line);
}

function submit(
  route: string,
  task_id: string,
  order: TaskRequest,
  sent_at_ms: number,
  response: ServerResponse,
): void {
  note('asked', route, task_id, '', order, sent_at_ms);
  if (order.way === 'refuse all' || (order.way === 'refuse' && route.endsWith('a'))) {
    note('refused', route, task_id, '', order);
    return void response.writeHead(503).end();
  }
  if (order.way === 'reject') {
    note('refused', route, task_id, '', order);
    return void response.writeHead(400).end('that prompt will not do');
  }
  const before = route.startsWith('again') ? job_ids.get(`${route} ${task_id}`) : undefined;
  const job = before ?? `${route}.${task_id}.${jobs.size}`;
  note(before ? 'repeated' : 'taken', route, task_id, job, order);
  if (order.way === 'cut' && !before) return void response.destroy();
  if (order.way === 'at once') return void response.writeHead(200, { 'x-done': '1' }).end(image);
  response.writeHead(202).end(JSON.stringify({ id: job }));
}

function poll(id: string, response: ServerResponse): void {
  const job = jobs.get(id);
  if (!job) return void response.writeHead(404).end();
  if (job.stopped) return void response.writeHead(200).end('{"state":"failed"}');
  if (Date.now() < job.taken_at_ms + job.order.run_ms) return void response.writeHead(200).end('{"state":"running"}');
  if (job.order.way === 'fail') return void response.writeHead(200).end('{"state":"failed"}');
  response.writeHead(200, { 'x-done': '1' }).end(job.order.way === 'broken' ? 'no picture' : image);
}

function cancel(id: string, response: ServerResponse): void {
  const job = jobs.get(id);
  if (job) note('stopped', id.split('.')[0] ?? '', id.split('.')[1] ?? '', id, job.order);
  response.writeHead(job ? 200 : 404).end();
}

createServer((message, response) => {
  const [, verb, name = '', task_id = ''] = (message.url ?? '').split('/').map(decodeURIComponent);
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => {
    const text = Buffer.concat(chunks).toString();
    if (verb === 'v1') void answerChat(message.url ?? '', text, response, bills);
    else if (verb === 'submit')
      submit(name, task_id, JSON.parse(text) as TaskRequest, Number(message.headers['x-now']), response);
    else if (verb === 'poll') poll(name, response);
    else cancel(name, response);
  });
}).listen(place.upstream_port, '127.0.0.1', () => process.stdout.write('upstream is running\n'));

process.stdin.on('end', () => process.exit(0)).resume();
