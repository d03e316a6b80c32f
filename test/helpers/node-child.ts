/** The service as src/main.ts starts it, with adapters of the tests beside its own. */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/medley'));

const [{ runService }, { atFailpoint, failpoints }, { adapters }, { scripted }] = await Promise.all([
  import('../../src/main/service.ts'),
  import('../../src/lib/failpoint.ts'),
  import('../../src/providers/index.ts'),
  import('./upstream.ts'),
]);
adapters['scripted'] = scripted;
const [point, count = ''] = process.env['TEST_KILL_AT']?.split(' ') ?? [];
const killing = failpoints.find((each) => each === point);
if (killing) {
  let times = 0;
  atFailpoint(killing, async () => {
    times += 1;
    if (times < Number(count)) return;
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => setInterval(() => undefined, 1_000));
  });
}
await runService();
flushCompileCache();
