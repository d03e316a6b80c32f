import { isIP } from 'node:net';

/** This service as browsers and authenticators name it: passkeys are bound to the host. */
export type RelyingParty = { host: string; origin: string };

/** Returns how passkeys name the service at this address, or the reason why browsers offer none there. */
export function relyingPartyOf(base_url: string): RelyingParty | { obstacle: string } {
  const { protocol, hostname, origin } = new URL(base_url);
  if (isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0) {
    return { obstacle: `Browsers offer passkeys at a name only, not at the IP address ${hostname}.` };
  }
  const is_here = hostname === 'localhost' || hostname.endsWith('.localhost');
  if (protocol !== 'https:' && !is_here) {
    return { obstacle: `Browsers offer passkeys over https only, and this service is at ${origin}.` };
  }
  return { host: hostname, origin };
}

/** Returns the host of passkeys that sign people in; undefined where none does. */
export function passkeyHostOf(base_url: string, { passkeys }: { passkeys: boolean }): string | undefined {
  const party = relyingPartyOf(base_url);
  return passkeys && 'host' in party ? party.host : undefined;
}
