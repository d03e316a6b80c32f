import { readBytes } from '../../lib/read-bytes.ts';
import type { ChatReply } from '../provider.ts';

const count_bytes_max = 65_536;

/** The tokens that an upstream has counted, by the name that it gives them. Throws if that is no number of tokens. */
export async function readCount({ body }: ChatReply, field: string): Promise<number> {
  const counted: unknown = JSON.parse((await readBytes(body, count_bytes_max)).toString('utf8'));
  const tokens: unknown = typeof counted === 'object' && counted !== null ? Reflect.get(counted, field) : undefined;
  if (typeof tokens !== 'number' || !Number.isSafeInteger(tokens) || tokens < 0)
    throw new Error('the count is no number');
  return tokens;
}
