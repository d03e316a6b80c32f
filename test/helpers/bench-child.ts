/** A bench that has begun: says one line of JSON when its PostgreSQL is there, and never ends by itself. */
import { openHome } from '../../bench/home.ts';

const { folder, embedded } = await openHome({ fsync: 'off' });
process.stdout.write(`${JSON.stringify({ folder, pid: embedded.pid })}\n`);
