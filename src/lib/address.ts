import ipaddr from 'ipaddr.js';

/** Which addresses beyond public ones a user-chosen URL may name. */
export type AddressRules = {
  /** CIDR ranges of `net.allow`. */
  allow: readonly string[];
  /** Local development: private and loopback addresses too, never link-local or metadata ones. */
  allow_private: boolean;
};

/** Ports of services that must not be spoken to by a POST from here: mail, DNS, NetBIOS, IRC and the like. */
const denied_ports = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 5060, 5061, 6000, 6566, 6665,
  6666, 6667, 6668, 6669, 6697, 10080,
]);

/** Where clouds tell a machine its secrets: Azure's number is public, Alibaba's and Amazon's are in private ranges. */
const metadata_addresses = new Set(['168.63.129.16', '100.100.100.200', 'fd00:ec2::254']);

const private_ranges = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

/** May a connection go to this IP address (any spelling that the URL parser yields)? */
export function addressAllowed(text: string, rules: AddressRules): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text); // ::ffff:1.2.3.4 is judged as 1.2.3.4
  if (rules.allow.some((range) => inRange(address, range))) return true;
  if (metadata_addresses.has(address.toString())) return false;
  const kind = address.range();
  return kind === 'unicast' || (rules.allow_private && private_ranges.has(kind));
}

function inRange(address: ipaddr.IPv4 | ipaddr.IPv6, range: string): boolean {
  const [network, bits] = ipaddr.parseCIDR(range);
  return network.kind() === address.kind() && address.match(network, bits);
}

/**
 * What is wrong with a URL that a user chose, as the end of a sentence that begins with the field's
 * name; undefined if nothing. Names are judged again by what they resolve to when they are dialled.
 */
export function checkUserUrl(text: string, rules: AddressRules): string | undefined {
  // The parser drops or escapes them: what is stored would not be what is dialled, and no database stores NUL.
  if (!text.isWellFormed() || /[\s\p{Cc}]/u.test(text)) return 'must not contain spaces or control characters.';
  if (!URL.canParse(text)) return 'must be an absolute http(s) URL.';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http(s) URL.';
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password.';
  if (url.port !== '' && denied_ports.has(Number(url.port))) return `must not use port ${url.port}.`;
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const literal = ipaddr.isValid(host);
  const local_name = host === 'localhost' || host.endsWith('.localhost');
  const allowed = literal ? addressAllowed(host, rules) : !local_name || addressAllowed('127.0.0.1', rules);
  if (allowed) return undefined;
  return 'must be reachable from the internet: private, loopback and reserved addresses are not allowed here.';
}
