import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { addressAllowed, checkUserUrl, ownAddresses } from '../../src/net/address.ts';

const own = new Set(['198.41.0.4', '2606:4700::5']);

it.each(['198.41.0.4', '::ffff:198.41.0.4', '2606:4700::5', '2606:4700:0:0::5'])(
  'a public address of this machine is refused like loopback: %s',
  (address) => {
    expect(addressAllowed(address, { allow: [], allow_private: false })).toBe(true);
    expect(addressAllowed(address, { allow: [], allow_private: false, own })).toBe(false);
    expect(addressAllowed(address, { allow: [], allow_private: true, own })).toBe(true);
    expect(addressAllowed(address, { allow: ['198.41.0.0/24', '2606:4700::/64'], allow_private: false, own })).toBe(
      true,
    );
  },
);

it('a URL with an address of this machine is refused when it is entered', () => {
  expect(checkUserUrl('https://198.41.0.4/hook', { allow: [], allow_private: false, own })).toMatch(/reachable/);
  expect(checkUserUrl('https://198.41.0.5/hook', { allow: [], allow_private: false, own })).toBeUndefined();
});

it('all addresses of the interfaces belong to this machine', () => {
  const addresses = ownAddresses();
  expect(addresses).toContain('127.0.0.1');
  const ipv4 = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family }) => family === 'IPv4');
  expect(ipv4.filter(({ address }) => !addresses.has(address))).toEqual([]);
});
