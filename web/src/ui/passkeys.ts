import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser';
import { api } from '../api.ts';

/** Ceremonies of passkeys. The library is loaded by the first of them. */

const library = () => import('@simplewebauthn/browser');

/** True where this browser knows passkeys at all. */
export const browser_has_passkeys = 'PublicKeyCredential' in globalThis;

/** Tells whether it offers them in a field for the user name, among what it fills in. */
export async function browserFillsPasskeys(): Promise<boolean> {
  return browser_has_passkeys && (await library()).browserSupportsWebAuthnAutofill();
}

/** Waits, until it is over, for a passkey to be chosen in the field for the user name. */
type Autofill = { isOver(): boolean };

/** Signs in by a passkey that the browser asks for, or by one that somebody chooses in a field. */
export async function signInByPasskey(autofill?: Autofill): Promise<void> {
  const { startAuthentication } = await library();
  const optionsJSON = await api.post<PublicKeyCredentialRequestOptionsJSON>('/auth/passkey/start');
  if (autofill?.isOver()) throw new DOMException('it is over', 'AbortError');
  const answer = await startAuthentication({ optionsJSON, useBrowserAutofill: autofill !== undefined }).catch(inWords);
  await api.post('/auth/sign-in/passkey', answer);
}

/** Ends a ceremony that waits. */
export async function cancelPasskey(): Promise<void> {
  (await library()).WebAuthnAbortService.cancelCeremony();
}

/** Proves that it is still the same person. The session has two factors from then on. */
export async function proveByPasskey(): Promise<void> {
  const { startAuthentication } = await library();
  const optionsJSON = await api.post<PublicKeyCredentialRequestOptionsJSON>('/dash/passkeys/proof/start');
  const answer = await startAuthentication({ optionsJSON }).catch(inWords);
  await api.post('/dash/passkeys/proof', answer);
}

/** Makes a passkey under this name. */
export async function addPasskey(name: string): Promise<void> {
  const { startRegistration } = await library();
  const optionsJSON = await api.post<PublicKeyCredentialCreationOptionsJSON>('/dash/passkeys/start');
  const credential = await startRegistration({ optionsJSON }).catch(inWords);
  await api.post('/dash/passkeys', { name, credential });
}

/** A ceremony gave way to another one, or its page was left: nothing to say. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** Throws what the browser did not do as people understand it. */
function inWords(error: unknown): never {
  if (!(error instanceof Error) || isGivenUp(error)) throw error;
  switch (error.name) {
    case 'InvalidStateError':
      throw new Error('This device has a passkey of yours already. Use it, or choose another device.');
    case 'NotAllowedError':
      throw new Error(
        'No passkey was chosen: you cancelled, waited too long, or this device has none for this service.',
      );
    case 'NotSupportedError':
    case 'ConstraintError':
      throw new Error(
        'This device cannot keep passkeys. Give it a PIN or a fingerprint first, or choose another device.',
      );
    default:
      throw new Error(`The browser refused: ${error.message}`);
  }
}
