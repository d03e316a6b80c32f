/**
 * A round-robin balancer: every request goes to the next node, whichever connection it comes on. Nothing may be
 * pipelined: bytes of a caller that follow an answer are its next request.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export type Balancer = {
  port: number;
  /** From now on requests go to these, in turn. Connections of callers that are open stay with those that they know. */
  balance(ports: readonly number[]): void;
  close(): Promise<void>;
};

/** A balancer in this process. */
export async function openBalancer(first: readonly number[] = []): Promise<Balancer> {
  let ports = first;
  let turn = 0;
  const callers = new Set<Socket>();
  const server = createServer({ noDelay: true }, (caller) => {
    callers.add(caller);
    caller.once('close', () => callers.delete(caller));
    pass(caller, ports, () => turn++);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    balance: (more) => (ports = more),
    close: async () => {
      server.close();
      for (const caller of callers) caller.destroy();
      await once(server, 'close');
    },
  };
}

/** Has a connection to each node that the caller's requests have come to. */
function pass(caller: Socket, ports: readonly number[], nextTurn: () => number): void {
  const nodes = new Map<number, Socket>();
  let port: number | undefined;
  let is_answered = true;
  const open = (to: number): Socket => {
    const node = connect({ port: to, host: '127.0.0.1', noDelay: true });
    nodes.set(to, node);
    node.on('data', (chunk) => {
      is_answered = true;
      if (!caller.write(chunk)) node.pause();
    });
    node.on('error', () => undefined);
    node.on('close', () => {
      nodes.delete(to);
      if (port === to) caller.destroy(); // it has the request, or would have the rest of it
    });
    return node;
  };
  caller.on('data', (chunk) => {
    if (is_answered || port === undefined) port = ports[nextTurn() % ports.length];
    is_answered = false;
    if (port === undefined) caller.destroy();
    else (nodes.get(port) ?? open(port)).write(chunk);
  });
  caller.on('drain', () => {
    for (const node of nodes.values()) node.resume();
  });
  caller.on('error', () => undefined);
  caller.on('close', () => {
    for (const node of nodes.values()) node.destroy();
  });
}

/** The same in a process of its own, so that a bench can tell its CPU from that of callers and nodes. */
export type BalancerProcess = { child: ChildProcess; port: number; balance(ports: readonly number[]): void };

export async function startBalancer(): Promise<BalancerProcess> {
  const child = fork(import.meta.filename, ['--balance']);
  const [port] = (await once(child, 'message')) as [number];
  return { child, port, balance: (ports) => void child.send(ports) };
}

if (process.argv.includes('--balance')) {
  const balancer = await openBalancer();
  process.on('disconnect', () => process.exit());
  process.on('message', (ports: number[]) => balancer.balance(ports));
  process.send?.(balancer.port);
}
