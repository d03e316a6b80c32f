import { createSocket, type Socket } from 'node:dgram';

/** Records of a name: addresses of both kinds, no name at all, or a server that never answers. */
export type Zone = string[] | 'nothing' | 'hang';

export type DnsServer = {
  /** As a resolver's `servers` takes it. */
  address: string;
  /** Sets the records of a name, read anew for each query; `count` is the number of the A query, from 1. */
  answer(name: string, zone: Zone | ((count: number, kind: 'A' | 'AAAA') => Zone)): void;
  /** Returns the number of queries for the A records of a name. */
  queriesFor(name: string): number;
  stop(): Promise<void>;
};

const type_a = 1;
const type_aaaa = 28;

/** A real name server on loopback (RFC 1035, A and AAAA, TTL 0). */
export async function startDns(): Promise<DnsServer> {
  const socket: Socket = createSocket('udp4');
  const zones = new Map<string, Parameters<DnsServer['answer']>[1]>();
  const queries = new Map<string, number>();
  socket.on('message', (query, peer) => {
    const { name, type, end } = readQuestion(query);
    if (type === type_a) queries.set(name, (queries.get(name) ?? 0) + 1);
    const known_zone = zones.get(name) ?? 'nothing';
    const zone =
      typeof known_zone === 'function'
        ? known_zone(queries.get(name) ?? 1, type === type_a ? 'A' : 'AAAA')
        : known_zone;
    if (zone === 'hang') return;
    socket.send(reply(query, end, type, zone), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    answer: (name, zone) => void zones.set(name, zone),
    queriesFor: (name) => queries.get(name) ?? 0,
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function reply(query: Buffer, end: number, type: number, zone: string[] | 'nothing'): Buffer {
  const all = zone === 'nothing' ? [] : zone;
  const records = all.filter((address) => address.includes(':') === (type === type_aaaa)).map(record);
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(zone === 'nothing' ? 0x8183 : 0x8180, 2); // NXDOMAIN, or an answer
  head.writeUInt16BE(records.length, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}

function record(address: string): Buffer {
  const data = address.includes(':') ? bytesOfIPv6(address) : Buffer.from(address.split('.').map(Number));
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0); // the name of the question
  head.writeUInt16BE(address.includes(':') ? type_aaaa : type_a, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function bytesOfIPv6(address: string): Buffer {
  const [left = '', right = ''] = address.split('::');
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)));
  const [first, last] = [words(left), words(right)];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  const bytes = Buffer.alloc(16);
  for (const [i, word] of all.entries()) bytes.writeUInt16BE(word, i * 2);
  return bytes;
}
