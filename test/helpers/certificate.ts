import { generateKeyPairSync, sign } from 'node:crypto';

/** A certificate for one name, valid now, signed by itself: also its own authority. */
export type Certificate = { key: string; cert: string };

/** Made as X.509 says, piece by piece: no private key lies in the repository, and no program is needed. */
export function makeCertificate(name: string, { lives_ms = 3_600_000 } = {}): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const ecdsa_with_sha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const subject = sequence(tagged(0x31, sequence(oid(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(name)))));
  const alternative_names = sequence(tagged(0x82, Buffer.from(name)));
  const authority = sequence(tagged(0x01, Buffer.from([0xff])));
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, Buffer.from([1])),
    ecdsa_with_sha256,
    subject,
    sequence(time(Math.min(0, lives_ms) - 3_600_000), time(lives_ms)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(
      0xa3,
      sequence(
        sequence(oid(0x55, 0x1d, 0x11), tagged(0x04, alternative_names)),
        sequence(oid(0x55, 0x1d, 0x13), tagged(0x04, authority)),
      ),
    ),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]);
  const whole = sequence(body, ecdsa_with_sha256, tagged(0x03, signature)).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${(whole.match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function oid(...bytes: number[]): Buffer {
  return tagged(0x06, Buffer.from(bytes));
}

/** UTCTime, so and so far from now. */
function time(from_now_ms: number): Buffer {
  const digits = new Date(Date.now() + from_now_ms).toISOString().replace(/\D/g, '').slice(2, 14);
  return tagged(0x17, Buffer.from(`${digits}Z`));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  if (length < 256) return Buffer.concat([Buffer.from([tag, 0x81, length]), content]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), content]);
}
