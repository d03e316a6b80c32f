import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';

/** All addresses of a name, IPv4 and IPv6. Rejects when there are none. */
export type Resolve = (name: string) => Promise<string[]>;

export type ResolveOptions = {
  /** Name servers as `address` or `address:port`; those of the system if not given. */
  servers?: readonly string[];
  hosts_file?: string;
};

const tries = 2;
const try_timeout_ms = 2_000;

/**
 * Resolves as the system does, but for search domains: localhost, then the hosts file, then DNS. Not by
 * getaddrinfo, which waits in one of four threads: a few names whose servers hang would stop everybody's.
 */
export function systemResolve(options: ResolveOptions = {}): Resolve {
  const resolver = new Resolver({ timeout: try_timeout_ms, tries });
  if (options.servers) resolver.setServers(options.servers);
  const hosts_file = options.hosts_file ?? '/etc/hosts';
  return async (given) => {
    const name = given.toLowerCase().replace(/\.$/, '');
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']; // RFC 6761
    const known = await lookInFile(hosts_file, name);
    if (known.length > 0) return known;
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    throw answers[0].status === 'rejected' ? answers[0].reason : new Error(`${name} has no address`);
  };
}

/** What a container's `extra_hosts` says. Read each time: it is short, and in the page cache. */
async function lookInFile(path: string, name: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return address && names.some((one) => one.toLowerCase() === name) ? [address] : [];
  });
}
