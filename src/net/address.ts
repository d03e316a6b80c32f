import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** Which addresses beyond public ones a user-chosen URL may name. */
export type AddressRules = {
  /** CIDR ranges of `net.allow`. */
  allow: readonly string[];
  /** Local development: private and loopback addresses too, never link-local or metadata ones. */
  allow_private: boolean;
  /** This machine's own addresses: public ones among them lead inside as loopback does, past a firewall. */
  own?: ReadonlySet<string>;
};

/** Ports of services that must not be spoken to by a POST from here: mail, DNS, NetBIOS, IRC and the like. */
const denied_ports = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 5060, 5061, 6000, 6566, 6665,
  6666, 6667, 6668, 6669, 6697, 10080,
]);

/**
 * Addresses of the clouds' metadata services, which give credentials to their machines. Always refused: a
 * range of `net.allow` is meant for receivers, and none lives here.
 */
const metadata_ranges = [
  '169.254.0.0/16', // nearly all of them; also AWS containers (169.254.170.2) and Tencent (169.254.0.23)
  'fe80::/10', // OpenStack: fe80::a9fe:a9fe
  '100.100.100.200/32', // Alibaba, in the range of carriers
  '168.63.129.16/32', // Azure's host, a public number
  '192.0.0.192/32', // Oracle
  'fd00:ec2::/32', // AWS
  'fd20:ce::/32', // Google
  'fd00:c1::a9fe:a9fe/128', // Oracle
  'fd00:42::42/128', // Scaleway
  'fd00:a9fe:a9fe::/48', // Linode
].map((range) => ipaddr.parseCIDR(range));

/** Addresses assigned to hosts of the internet; ipaddr.js calls everything unicast that it has no other name for. */
const global_unicast = ipaddr.parseCIDR('2000::/3');

const private_ranges = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [Address, number];

/** May a connection go to this IP address? False for anything that is none, or names an interface. */
export function addressAllowed(text: string, rules: AddressRules): boolean {
  // A zone (fe80::1%eth0) says by which door to leave, which nobody outside may choose.
  if (text.includes('%') || !ipaddr.isValid(text)) return false;
  const address = unmapped(ipaddr.parse(text));
  if (metadata_ranges.some((range) => inRange(address, range))) return false;
  if (rules.allow.some((range) => inRange(address, ipaddr.parseCIDR(range)))) {
    const carried = carriedAddress(address);
    return carried === undefined || addressAllowed(carried.toString(), rules);
  }
  if (rules.own?.has(address.toString())) return rules.allow_private;
  const kind = address.range();
  if (rules.allow_private && private_ranges.has(kind)) return true;
  return kind === 'unicast' && (address instanceof ipaddr.IPv4 || inRange(address, global_unicast));
}

let own: { addresses: ReadonlySet<string>; read_at_ms: number } | undefined;

/** Addresses of an interface seldom change, and to list them takes 0.2 ms. */
const own_age_max_ms = 10_000;

/** The addresses of this machine's interfaces, at most ten seconds old. */
export function ownAddresses(): ReadonlySet<string> {
  const now_ms = performance.now();
  if (!own || now_ms - own.read_at_ms > own_age_max_ms) own = { addresses: readOwnAddresses(), read_at_ms: now_ms };
  return own.addresses;
}

function readOwnAddresses(): ReadonlySet<string> {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return new Set(interfaces.map(({ address }) => unmapped(ipaddr.parse(address.replace(/%.*/, ''))).toString()));
}

/** Is this IP address in one of these CIDR ranges? False for anything that is none. */
export function isWithin(text: string, ranges: readonly string[]): boolean {
  if (ranges.length === 0 || !ipaddr.isValid(text)) return false;
  const address = unmapped(ipaddr.parse(text));
  return ranges.some((range) => inRange(address, ipaddr.parseCIDR(range)));
}

/** In which bits the addresses of one customer of a network differ: providers give a /56 (RIPE 690). */
export const customer_bits = 56;

/**
 * Returns the network of an address, for limits: IPv4 itself, the /56 of IPv6. A text that is no address is
 * returned as it is.
 */
export function networkOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = unmapped(ipaddr.parse(text));
  if (address instanceof ipaddr.IPv4) return address.toString();
  const bytes = address.toByteArray().fill(0, customer_bits / 8);
  return `${new ipaddr.IPv6(bytes).toString()}/${customer_bits}`;
}

/** `::ffff:1.2.3.4` is judged as 1.2.3.4: the system connects to that. */
function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/**
 * The IPv4 address within one that a translator or a tunnel takes apart (NAT64, 6to4): who allows the
 * translator's range has not allowed what lies behind it.
 */
function carriedAddress(address: Address): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  const kind = address.range();
  if (kind === '6to4') return new ipaddr.IPv4(bytes.slice(2, 6));
  if (kind === 'rfc6052' || kind === 'rfc6145') return new ipaddr.IPv4(bytes.slice(12, 16));
  return undefined;
}

function inRange(address: Address, [network, bits]: Range): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}

/** The host of a URL as it is looked up or dialled: without brackets and without the root's dot. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** `localhost` and what is below it never leave this machine (RFC 6761). */
export function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

/** Problem of a URL whose address is not public. */
export const not_public =
  'must be reachable from the internet: private, loopback and reserved addresses are not allowed here. An operator allows them by net.allow in medley.yaml or, for development, MEDLEY_ALLOW_PRIVATE=1.';

/**
 * Returns the problem of a URL that a user chose, as the end of a sentence that begins with the field's name;
 * undefined if there is none. Host names are checked again by their addresses when they are dialled.
 */
export function checkUserUrl(text: string, rules: AddressRules): string | undefined {
  // The parser drops or escapes them: what is stored would not be what is dialled, and no database stores NUL.
  if (!text.isWellFormed() || /[\s\p{Cc}]/u.test(text)) return 'must not contain spaces or control characters.';
  if (!URL.canParse(text)) return 'must be an absolute http(s) URL.';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http(s) URL.';
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password.';
  if (url.port !== '' && denied_ports.has(Number(url.port))) return `must not use port ${url.port}.`;
  const host = hostOf(url);
  const literal = ipaddr.isValid(host);
  const allowed = literal ? addressAllowed(host, rules) : !isLocalName(host) || addressAllowed('127.0.0.1', rules);
  if (allowed) return undefined;
  return not_public;
}
