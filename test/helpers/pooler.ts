import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** Answers of PostgreSQL to what `reach` asks, from a pooler that chooses the process of PostgreSQL for each question. */
export type Pooler = { url: string; stop(): Promise<void> };

/** `processOf` has the number of the connection, the first one 1, and counts all questions for a process. */
export async function startPooler(processOf: (connection: number, question: number) => number): Promise<Pooler> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let questions = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    const connection = ++connections;
    const answer = (text: string) => {
      if (text.includes('server_version_num'))
        return row(['version', 23, '180000'], ['encoding', 25, 'UTF8'], ['standby', 16, 'f']);
      if (text.includes('pg_backend_pid')) return row(['pid', 23, String(processOf(connection, ++questions))]);
      return complete;
    };
    serve(socket, connection, answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('there is no port');
  return {
    url: `postgres://u@127.0.0.1:${address.port}/medley?sslmode=disable`,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The protocol as far as simple questions go. The key that the client gets is the pooler's own. */
function serve(socket: Socket, connection: number, answer: (text: string) => Buffer): void {
  let waiting = Buffer.alloc(0);
  let has_begun = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    waiting = Buffer.concat([waiting, chunk]);
    for (;;) {
      const head = has_begun ? 1 : 0; // the first message has no type
      const end = waiting.length >= head + 4 ? head + waiting.readInt32BE(head) : Infinity;
      if (waiting.length < end) return;
      const body = waiting.subarray(head + 4, end);
      const is_question = has_begun && waiting[0] === 'Q'.charCodeAt(0);
      waiting = waiting.subarray(end);
      if (!has_begun)
        socket.write(
          Buffer.concat([message('R', int32(0)), message('K', int32(900_000 + connection), int32(7)), ready]),
        );
      else if (is_question) socket.write(Buffer.concat([answer(body.toString()), ready]));
      has_begun = true;
    }
  });
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function message(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

const complete = message('C', Buffer.from('SELECT 1\0'));
const ready = message('Z', Buffer.from('I'));

/** One row; each column as its name, its type and its text. */
function row(...columns: [string, number, string][]): Buffer {
  const fields = columns.map(([name, type]) =>
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]),
  );
  const values = columns.map(([, , text]) => Buffer.concat([int32(text.length), Buffer.from(text)]));
  return Buffer.concat([
    message('T', int16(columns.length), ...fields),
    message('D', int16(columns.length), ...values),
    complete,
  ]);
}
