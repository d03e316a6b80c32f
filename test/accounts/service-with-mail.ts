import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp, type TestAppOptions } from '../helpers/app.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';

/** The password of everybody whom `personWith` sets up. */
export const password = 'correct horse battery';

/** Starts a service that sends mail and believes `x-forwarded-for`, so that people can come from many addresses. */
export async function startServiceWithMail(
  env: Record<string, string> = {},
  options: Pick<TestAppOptions, 'clock'> = {},
): Promise<{ test: TestApp; server: MailServer; yaml: string; stop(): Promise<void> }> {
  const server = await startMailServer();
  const mail = `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  const yaml = `version: 1\n${mail}\nserver: { trusted_proxies: [127.0.0.1/32] }\n`;
  const test = await startTestApp({ worker: false, yaml, env, ...options });
  const stop = async () => {
    await test.stop();
    await server.stop();
  };
  return { test, server, yaml, stop };
}

/** Sets up the owner of a new account with this proved address, from the address that the headers name. */
export async function personWith(test: TestApp, email: string, from: Record<string, string>): Promise<Someone> {
  const who = await ownerOfNew(test);
  okBody(await who.post('/auth/set-up', { email, name: 'Zoe', password }, from));
  await test.app.db.query('update auth."user" set email = $2, "emailVerified" = true where id = $1', [
    who.user_id,
    email,
  ]);
  return who;
}
