import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** Questions of a service, as far as the authenticator reads them. */
export type CreationAsked = { challenge: string; rp: { id: string }; user: { id: string } };
export type AssertionAsked = { challenge: string; rpId: string };

/** Everything that may differ from a right answer. */
export type Deviations = {
  origin?: string;
  type?: string;
  challenge?: string;
  rp_id?: string;
  user_handle?: string | null;
  is_verified?: boolean;
  counter?: number;
  /** Of another credential. */
  key?: KeyObject;
};

type Json = Record<string, unknown>;

export type Authenticator = {
  /** Id of the passkey, base64url. */
  readonly id: string;
  counter: number;
  create(request: CreationAsked, deviations?: Deviations): Json;
  get(request: AssertionAsked, deviations?: Deviations): Json;
};

/** A security key in software (Web Authentication, 6 and 7): one ES256 passkey, which can also sign what no browser would. */
export function makeAuthenticator(page_origin: string): Authenticator {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const raw_id = randomBytes(32);
  const id = raw_id.toString('base64url');
  let user_handle: string | null = null;

  const clientData = (type: string, challenge: string, { origin = page_origin, ...other }: Deviations) =>
    Buffer.from(JSON.stringify({ type: other.type ?? type, challenge: other.challenge ?? challenge, origin }));

  const self: Authenticator = {
    id,
    counter: 0,
    create: (request, deviations = {}) => {
      user_handle = request.user.id;
      const client = clientData('webauthn.create', request.challenge, deviations);
      const size = Buffer.alloc(2);
      size.writeUInt16BE(raw_id.length);
      const credential = Buffer.concat([Buffer.alloc(16), size, raw_id, coseOf(publicKey)]);
      const data = authData(deviations.rp_id ?? request.rp.id, 0x40 | flagsOf(deviations), self.counter, credential);
      const attestation = map([
        [text('fmt'), text('none')],
        [text('attStmt'), map([])],
        [text('authData'), bytes(data)],
      ]);
      const response = {
        clientDataJSON: client.toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['usb', 'nfc'],
      };
      return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
    },
    get: (request, deviations = {}) => {
      self.counter = deviations.counter ?? self.counter + 1;
      const client = clientData('webauthn.get', request.challenge, deviations);
      const data = authData(deviations.rp_id ?? request.rpId, flagsOf(deviations), self.counter);
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
      const response = {
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: sign('sha256', signed, deviations.key ?? privateKey).toString('base64url'),
        userHandle: deviations.user_handle === undefined ? user_handle : deviations.user_handle,
      };
      return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
    },
  };
  return self;
}

/** User present, and user verified. */
const flagsOf = ({ is_verified = true }: Deviations) => (is_verified ? 0x05 : 0x01);

function authData(rp_id: string, flags: number, counter: number, rest = Buffer.alloc(0)): Buffer {
  const tail = Buffer.alloc(5);
  tail.writeUInt8(flags);
  tail.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash('sha256').update(rp_id).digest(), tail, rest]);
}

/** RFC 9053: an EC2 key of P-256 for ES256. */
function coseOf(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return map([
    [integer(1), integer(2)],
    [integer(3), integer(-7)],
    [integer(-1), integer(1)],
    [integer(-2), bytes(Buffer.from(x, 'base64url'))],
    [integer(-3), bytes(Buffer.from(y, 'base64url'))],
  ]);
}

/** CBOR (RFC 8949, 3), as much as is needed. */
function head(major: number, value: number): Buffer {
  const kind = major << 5;
  if (value < 24) return Buffer.from([kind | value]);
  if (value < 256) return Buffer.from([kind | 24, value]);
  return Buffer.from([kind | 25, value >> 8, value & 255]);
}

const integer = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value));
const bytes = (value: Buffer) => Buffer.concat([head(2, value.length), value]);
const text = (value: string) => Buffer.concat([head(3, value.length), Buffer.from(value)]);
const map = (pairs: [Buffer, Buffer][]) => Buffer.concat([head(5, pairs.length), ...pairs.flat()]);
