import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';

export type Received = { from: string; to: string[]; subject: string; text: string; raw: string };

/**
 * `hang`: takes connections and says nothing. `mute`: says nothing of a recipient. `refuse`: no such recipient. `fail`:
 * not now. `refuse sender`, `refuse relaying`: not from us, whoever it is for. `take in silence`: takes mails and does
 * not say so.
 */
export type Mood =
  | 'take'
  | 'hang'
  | 'mute'
  | 'refuse'
  | 'fail'
  | 'refuse sender'
  | 'refuse relaying'
  | 'take in silence';

const refusals: Partial<Record<Mood, string>> = {
  refuse: '550 nobody here',
  fail: '451 come again',
  'refuse relaying': '554 5.7.1 relay access denied',
};

export type MailServer = {
  /** For `mail.url`: the file has the address, as secrets have. */
  readonly reference: string;
  readonly mails: Received[];
  /** Connections so far. */
  connections(): number;
  /** Of `only` this recipient, if one is named; all others are taken. */
  be(mood: Mood, only?: string): void;
  stop(): Promise<void>;
};

/** A mail server on loopback that speaks as much of RFC 5321 as a client needs. */
export async function startMailServer(): Promise<MailServer> {
  const mails: Received[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let mood: Mood = 'take';
  let only: string | undefined;
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    const moodFor = (to: string) => (only === undefined || only === to ? mood : 'take');
    if (mood !== 'hang') converse(socket, moodFor, (mail) => mails.push(mail));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const folder = mkdtempSync(join(tmpdir(), 'medley-mail-'));
  writeFileSync(join(folder, 'url'), `smtp://127.0.0.1:${port}\n`);
  return {
    reference: `file:${join(folder, 'url')}`,
    mails,
    connections: () => connections,
    be: (next, recipient) => {
      mood = next;
      only = recipient;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
      rmSync(folder, { recursive: true });
    },
  };
}

function converse(socket: Socket, moodFor: (to: string) => Mood, take: (mail: Received) => void): void {
  let rest = '';
  let body: string[] | undefined;
  let envelope = { from: '', to: [] as string[] };
  const say = (line: string) => socket.write(`${line}\r\n`);
  const answer = (line: string): void => {
    if (body && line !== '.') return void body.push(line.replace(/^\.\./, '.'));
    if (body) {
      take({ ...envelope, ...contentOf(body.join('\r\n')) });
      body = undefined;
      return void (moodFor('') === 'take in silence' || say('250 taken'));
    }
    const [verb = '', path = ''] = [line.slice(0, 4).toUpperCase(), /<([^>]*)>/.exec(line)?.[1] ?? ''];
    if (verb === 'MAIL') envelope = { from: path, to: [] };
    const mood = verb === 'RCPT' && moodFor(path) !== 'take in silence' ? moodFor(path) : 'take';
    if (verb === 'RCPT' && mood === 'take') envelope.to.push(path);
    if (verb === 'DATA') body = [];
    if (verb === 'MAIL' && moodFor('') === 'refuse sender') return void say('550 5.7.1 not a sender of ours');
    if (mood === 'mute') return;
    const refusal = refusals[mood];
    if (refusal !== undefined) return void say(refusal);
    say(verb === 'QUIT' ? '221 bye' : verb === 'DATA' ? '354 go on' : '250 ok');
    if (verb === 'QUIT') socket.end();
  };
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) answer(line);
  });
  say('220 loopback');
}

function contentOf(raw: string): { subject: string; text: string; raw: string } {
  const end = raw.indexOf('\r\n\r\n');
  const head = raw.slice(0, end).replaceAll(/\r\n[ \t]/g, ' ');
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim() ?? '';
  const body = raw.slice(end + 4);
  const encoding = field('Content-Transfer-Encoding').toLowerCase();
  const text =
    encoding === 'base64'
      ? Buffer.from(body, 'base64').toString()
      : encoding === 'quoted-printable'
        ? quoted(body.replaceAll('=\r\n', ''))
        : body;
  return { subject: wordsOf(field('Subject')), text: text.replaceAll('\r\n', '\n'), raw };
}

function quoted(text: string): string {
  const bytes = text.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** RFC 2047. */
function wordsOf(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?(b|q)\?([^?]*)\?=/gi, (_, how: string, word: string) =>
      how.toLowerCase() === 'b' ? Buffer.from(word, 'base64').toString() : quoted(word.replaceAll('_', ' ')),
    );
}
