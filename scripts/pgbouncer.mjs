// npm run test:pgbouncer: see programs/pgbouncer.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/pgbouncer.mjs');
