import { Resolver } from 'node:dns/promises';
import { readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocalName } from './address.ts';

/** All addresses of a name, IPv4 first. Rejects if there are none. */
export type Resolve = (name: string) => Promise<string[]>;

export type ResolverOptions = {
  /** Name servers as `address:port`; those of the system if there are none. */
  servers?: readonly string[];
  hosts_file?: string;
};

/** Time after which name servers and host files are read again: a laptop wanders between networks. */
const renew_after_ms = 10_000;

/** Broken name servers answer A and stay silent on AAAA, or the other way round. */
const straggler_ms = 1_000;

/** A question is repeated twice; whoever asks has given up long before, this only frees c-ares. */
const question = { timeout: 2_000, tries: 3 };

/**
 * Looks names up by c-ares, in which a silent name server costs only its own question: the system's
 * getaddrinfo has four threads for the whole process, and four dead names would stop all look-ups,
 * file reads and key derivations. What that would have done beside DNS is done here: the hosts file.
 */
export function systemResolve(options: ResolverOptions = {}): Resolve {
  const hosts = openHosts(options.hosts_file ?? system_hosts_file);
  let created_at_ms = -Infinity;
  let resolver: Resolver;
  return async (host) => {
    const name = host.toLowerCase().replace(/\.$/, '');
    if (isLocalName(name)) return ['127.0.0.1', '::1'];
    if (performance.now() - created_at_ms > renew_after_ms) {
      created_at_ms = performance.now();
      resolver = new Resolver(question);
      if (options.servers) resolver.setServers(options.servers);
      hosts.refresh();
    }
    return hosts.find(name) ?? askBoth(resolver, name);
  };
}

/** A and AAAA; the slower one is waited for a little, and one that fails does not spoil the other. */
async function askBoth(resolver: Resolver, name: string): Promise<string[]> {
  const answers: [string[], string[]] = [[], []];
  const keep = (place: 0 | 1) => (resolved: string[]) => void (answers[place] = resolved);
  const questions = [resolver.resolve4(name).then(keep(0)), resolver.resolve6(name).then(keep(1))];
  const all = Promise.allSettled(questions);
  const addresses = () => answers.flat();
  await Promise.any(questions).catch(() => undefined);
  if (addresses().length === 0) await all;
  else await waitAtMost(all, straggler_ms);
  if (addresses().length > 0) return addresses();
  await Promise.all(questions); // throws why
  throw Object.assign(new Error('no addresses'), { code: 'ENODATA' });
}

async function waitAtMost(work: Promise<unknown>, limit_ms: number): Promise<void> {
  const timer = new AbortController();
  const limit = sleep(limit_ms, undefined, { signal: timer.signal, ref: false }).catch(() => undefined);
  await Promise.race([work, limit]);
  timer.abort();
}

const system_hosts_file = process.platform === 'win32' ? 'C:\\Windows\\System32\\drivers\\etc\\hosts' : '/etc/hosts';

/**
 * The names of a hosts file; none if it cannot be read. Read synchronously, at most every ten seconds
 * and only if it has changed: the asynchronous way leads through the threads that others may fill.
 */
function openHosts(path: string): { refresh(): void; find(name: string): string[] | undefined } {
  let version = '';
  let names = new Map<string, string[]>();
  const refresh = () => {
    try {
      const { mtimeMs, size } = statSync(path);
      if (`${mtimeMs} ${size}` === version) return;
      names = parseHosts(readFileSync(path, 'utf8'));
      version = `${mtimeMs} ${size}`;
    } catch {
      names = new Map();
      version = '';
    }
  };
  return { refresh, find: (name) => names.get(name) };
}

function parseHosts(text: string): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address, ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (!address) continue;
    for (const alias of aliases) {
      const name = alias.toLowerCase();
      names.set(name, [...(names.get(name) ?? []), address]);
    }
  }
  return names;
}
