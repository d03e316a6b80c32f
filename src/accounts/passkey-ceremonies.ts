import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { isRecord } from '../lib/is-record.ts';
import { challenge_ms } from './passkey-challenges.ts';
import type { PasskeyRef, StoredPasskey } from './passkeys.ts';
import type { RelyingParty } from './relying-party.ts';

/**
 * Questions to browsers and authenticators, and the check of their answers (Web Authentication, levels 2 and 3).
 * The authenticator always verifies its user, so that a passkey is two factors: the device, and what unlocks it.
 */

/** EdDSA, ES256 and RS256 (RFC 9053 and 8812): one of them has every authenticator. */
const algorithms = [-8, -7, -257];

/** A question for an authenticator, as browsers take it. */
export type AssertionOptions = {
  challenge: string;
  rpId: string;
  timeout: number;
  userVerification: 'required';
  allowCredentials: CredentialRef[];
};

type CredentialRef = { type: 'public-key'; id: string; transports: string[] };

/** Asks for one of these passkeys; with none for any that the authenticator has of this service. */
export function assertionOptions(
  { host }: RelyingParty,
  challenge: Buffer,
  passkeys: readonly PasskeyRef[],
): AssertionOptions {
  return {
    challenge: challenge.toString('base64url'),
    rpId: host,
    timeout: challenge_ms,
    userVerification: 'required',
    allowCredentials: passkeys.map(refOf),
  };
}

function refOf({ credential_id, transports }: PasskeyRef): CredentialRef {
  return { type: 'public-key', id: credential_id.toString('base64url'), transports };
}

/** The owner of a new passkey, as their authenticator shows them. */
export type PasskeyOwner = { id: string; name: string; email: string };

/** Asks for a new passkey of this person. `others` are theirs already. */
export function creationOptions(
  { host }: RelyingParty,
  challenge: Buffer,
  { owner, others }: { owner: PasskeyOwner; others: readonly PasskeyRef[] },
): object {
  return {
    challenge: challenge.toString('base64url'),
    rp: { id: host, name: 'Medley' },
    user: { id: Buffer.from(owner.id).toString('base64url'), name: owner.email, displayName: owner.name },
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    timeout: challenge_ms,
    excludeCredentials: others.map(refOf),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  };
}

/** An answer whose texts have their form; nothing of it is trusted yet. */
export type PasskeyAnswer<T> = { credential_id: Buffer; challenge: Buffer; json: T };

/** Reads the answer of an authenticator that signs. Undefined if it has another form. */
export function readAssertion(value: unknown): PasskeyAnswer<AuthenticationResponseJSON> | undefined {
  const read = readCredential(value);
  if (!read) return undefined;
  const { id, response, clientDataJSON, challenge } = read;
  const authenticatorData = base64In(response, 'authenticatorData', 2_000);
  const signature = base64In(response, 'signature', 2_000);
  const userHandle = base64In(response, 'userHandle', 100);
  if (authenticatorData === undefined || signature === undefined) return undefined;
  const signed = { clientDataJSON, authenticatorData, signature, ...(userHandle !== undefined && { userHandle }) };
  const json = { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {}, response: signed };
  return { credential_id: Buffer.from(id, 'base64url'), challenge, json };
}

/** Reads the answer of an authenticator that has made a passkey. Undefined if it has another form. */
export function readCreation(value: unknown): PasskeyAnswer<RegistrationResponseJSON> | undefined {
  const read = readCredential(value);
  if (!read) return undefined;
  const { id, response, clientDataJSON, challenge } = read;
  const attestationObject = base64In(response, 'attestationObject', 20_000);
  if (attestationObject === undefined) return undefined;
  const attested = { clientDataJSON, attestationObject };
  const json = { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {}, response: attested };
  return { credential_id: Buffer.from(id, 'base64url'), challenge, json };
}

type Credential = { id: string; response: Record<string, unknown>; clientDataJSON: string; challenge: Buffer };

function readCredential(value: unknown): Credential | undefined {
  if (!isRecord(value) || value['type'] !== 'public-key' || !isRecord(value['response'])) return undefined;
  const { response } = value;
  const id = base64In(value, 'id', 1_364); // 1,023 bytes
  const clientDataJSON = base64In(response, 'clientDataJSON', 4_000);
  if (id === undefined || id !== value['rawId'] || clientDataJSON === undefined) return undefined;
  const challenge = challengeIn(clientDataJSON);
  return challenge && { id, response, clientDataJSON, challenge };
}

function base64In(record: Record<string, unknown>, name: string, length_max: number): string | undefined {
  const text = record[name];
  const fits = typeof text === 'string' && text.length <= length_max && /^[\w-]+$/.test(text);
  return fits ? text : undefined;
}

function challengeIn(client_data: string): Buffer | undefined {
  try {
    const data: unknown = JSON.parse(Buffer.from(client_data, 'base64url').toString());
    const text = isRecord(data) ? base64In(data, 'challenge', 200) : undefined;
    return text === undefined ? undefined : Buffer.from(text, 'base64url');
  } catch {
    return undefined;
  }
}

/** Names of ways to an authenticator, which a browser remembers for the next time. */
const transport_names = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const;

export function transportsIn(value: unknown): string[] {
  const response = isRecord(value) ? value['response'] : undefined;
  const listed: unknown = isRecord(response) ? response['transports'] : undefined;
  return transport_names.filter((name) => Array.isArray(listed) && listed.includes(name));
}

export type CheckedCreation = { public_key: Buffer; counter: number; is_synced: boolean };

/** Checks a new passkey: the service and the page that it is for, its challenge, its key, and that its user was verified. */
export async function checkCreation(
  { host, origin }: RelyingParty,
  { json, challenge, credential_id }: PasskeyAnswer<RegistrationResponseJSON>,
): Promise<CheckedCreation | undefined> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const checked = await verifyRegistrationResponse({
    response: json,
    expectedChallenge: challenge.toString('base64url'),
    expectedOrigin: origin,
    expectedRPID: host,
    requireUserVerification: true,
    supportedAlgorithmIDs: algorithms,
  }).catch(() => undefined); // it throws for whatever is not as it should be
  if (!checked?.verified) return undefined;
  const { credential, credentialDeviceType } = checked.registrationInfo;
  if (!Buffer.from(credential.id, 'base64url').equals(credential_id)) return undefined;
  const is_synced = credentialDeviceType === 'multiDevice';
  return { public_key: Buffer.from(credential.publicKey), counter: credential.counter, is_synced };
}

/**
 * Checks a signature: the service and the page that it is for, its challenge, its person, and that its user was verified.
 * Returns the counter of the authenticator, which `usePasskey` compares.
 */
export async function checkAssertion(
  { host, origin }: RelyingParty,
  { json, challenge }: PasskeyAnswer<AuthenticationResponseJSON>,
  { user_id, public_key }: Pick<StoredPasskey, 'user_id' | 'public_key'>,
): Promise<{ counter: number } | undefined> {
  const { userHandle } = json.response;
  if (userHandle !== undefined && Buffer.from(userHandle, 'base64url').toString() !== user_id) return undefined;
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  const checked = await verifyAuthenticationResponse({
    response: json,
    expectedChallenge: challenge.toString('base64url'),
    expectedOrigin: origin,
    expectedRPID: host,
    requireUserVerification: true,
    credential: { id: json.id, publicKey: new Uint8Array(public_key), counter: 0 },
  }).catch(() => undefined);
  return checked?.verified ? { counter: checked.authenticationInfo.newCounter } : undefined;
}
