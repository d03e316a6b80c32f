import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';

/** The password of Zoe, who owns an account. */
export const password = 'correct horse battery';

export type Stage = {
  service: TestApp;
  chromium: Awaited<ReturnType<typeof launchBrowser>>;
  zoe: Someone;
  stop(): Promise<void>;
};

/** Starts a service without a worker, whose account Acme has an owner with a password, and a browser. */
export async function startWithZoe(): Promise<Stage> {
  const service = await startTestApp({ worker: false });
  const chromium = await launchBrowser();
  const zoe = await ownerOfNew(service, 'Acme');
  okBody(await zoe.post('/auth/set-up', { email: 'zoe@example.com', name: 'Zoe', password }));
  const stop = async () => {
    await chromium.close();
    await service.stop();
  };
  return { service, chromium, zoe, stop };
}
