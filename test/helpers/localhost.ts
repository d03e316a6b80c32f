import { freePort } from './free-port.ts';

/** Returns the environment of a service at http://localhost and a port of its own: passkeys need a name. */
export async function localhost(): Promise<{ PORT: string; MEDLEY_BASE_URL: string }> {
  const port = await freePort();
  return { PORT: String(port), MEDLEY_BASE_URL: `http://localhost:${port}` };
}
