import { hash } from 'node:crypto';

/** Returns the SHA-256 of a text or bytes, for secrets that are compared or looked up and never stored themselves. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}
