// npm run bench: see programs/bench.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/bench.mjs');
